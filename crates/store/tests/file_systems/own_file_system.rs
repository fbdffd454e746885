//! Runs a test on a temporary file system that no other process sees.

use std::path::PathBuf;
use std::process::Command;

/// The environment variable that tells an ignored test the folder of its file system.
const FOLDER: &str = "OBLIVIO_TEST_FILE_SYSTEM";

/// Runs an ignored test of this program, named by its full path, on a temporary file system. Only
/// this test sees the file system, which is removed afterwards. `mount` is passed to the command
/// `mount`.
pub(crate) fn on_a_file_system(mount: &str, test: &str) {
    let (_this_program, test) = test.split_once("::").expect("the path must begin with the crate");
    let folder = tempfile::tempdir().unwrap();
    let script = format!(r#"mount {mount} none "${FOLDER}" && exec "$0" --exact --ignored "$1""#);
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(FOLDER, folder.path())
        .output()
        .expect("this test needs unshare; install util-linux");
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && stdout.contains("1 passed"),
        "the test failed; if unshare or mount was refused, run this as root or allow user \
         namespaces:\n{stdout}\n{stderr}"
    );
}

/// The root of the temporary file system.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os(FOLDER).unwrap().into()
}
