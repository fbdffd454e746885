//! Tests that run on a file system of their own.

use std::path::PathBuf;
use std::process::Command;

/// Names the one argument of the ignored tests.
const FOLDER: &str = "OBLIVIO_TEST_FILE_SYSTEM";

/// Runs an ignored test of this program, named by its whole path, on a file system that nobody else sees and
/// that is gone afterwards. `mount` is what the command `mount` is told of it.
pub(crate) fn on_a_file_system(mount: &str, test: &str) {
    let (_this_program, test) = test.split_once("::").expect("a path begins with its crate");
    let folder = tempfile::tempdir().unwrap();
    let script = format!(r#"mount {mount} none "${FOLDER}" && exec "$0" --exact --ignored "$1""#);
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", &script])
        .arg(std::env::current_exe().unwrap())
        .arg(test)
        .env(FOLDER, folder.path())
        .output()
        .expect("this test needs unshare: install util-linux");
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.contains("1 passed"),
        "if unshare or mount was refused, run this as root or allow user namespaces:\n{said}\n\
         {complained}"
    );
}

/// Where that file system is.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os(FOLDER).unwrap().into()
}
