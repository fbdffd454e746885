//! Checks the machine for the features that the tests of mounting need.

use std::env;
use std::path::Path;

/// Whether to run the tests that mount disks. False if the environment variable
/// `OBLIVIO_WITHOUT_FUSE` is set.
///
/// # Panics
/// If the process is not root, or the machine lacks a device or program that the tests need.
pub fn can_mount() -> bool {
    if env::var_os("OBLIVIO_WITHOUT_FUSE").is_some() {
        eprintln!("SKIPPED: a test that needs root and /dev/fuse (OBLIVIO_WITHOUT_FUSE is set)");
        return false;
    }
    let missing: Vec<_> = [
        ("root", rustix::process::geteuid().is_root()),
        ("/dev/fuse (modprobe fuse)", Path::new("/dev/fuse").exists()),
        ("/dev/loop-control (modprobe loop)", Path::new("/dev/loop-control").exists()),
        ("e2fsck (apt install e2fsprogs)", on_path("e2fsck")),
        ("losetup (apt install mount)", on_path("losetup")),
    ]
    .into_iter()
    .filter_map(|(what, is_there)| (!is_there).then_some(what))
    .collect();
    assert!(
        missing.is_empty(),
        "this test needs root and /dev/fuse: missing {}. Set OBLIVIO_WITHOUT_FUSE=1 to skip it",
        missing.join(", ")
    );
    true
}

fn on_path(program: &str) -> bool {
    ["/usr/sbin", "/usr/bin", "/sbin", "/bin"]
        .iter()
        .any(|directory| Path::new(directory).join(program).exists())
}
