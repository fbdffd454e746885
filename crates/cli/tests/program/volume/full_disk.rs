//! Tests of a full disk. Commands end with exit code 10, and flushed data is intact once there is
//! space again.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use oblivio_volume::state_dir::{FILLER, FsStateDir, StateDir};

use super::needs::can_mount;
use super::own_file_system::{folder, on_a_file_system};
use super::test_dir::{MIB, Server, TestDir, VOLUME, bytes};
use super::tools::try_run;
use crate::common::{self, fails_with, succeeds};

fn on_a_small_file_system(bytes: u64, test: &str) {
    on_a_file_system(&format!("-t tmpfs -o size={bytes}"), &format!("{}::{test}", module_path!()));
}

#[test]
fn storage_fills_up() {
    on_a_small_file_system(20 * MIB, "writes_until_storage_is_full");
}

#[test]
fn the_clients_directory_fills_up() {
    on_a_small_file_system(4 * MIB, "writes_until_the_clients_directory_is_full");
}

#[test]
fn there_is_no_room_to_create_anything() {
    on_a_small_file_system(256 << 10, "creates_nothing");
}

#[test]
fn there_is_no_room_for_filler() {
    on_a_small_file_system(512 << 10, "appends_without_filler");
}

/// A file that exceeds the size limit of `ulimit -f` is reported like a full disk (exit code 10).
/// The signal that the kernel sends does not end the program.
#[test]
fn files_that_may_not_be_longer_are_a_full_disk() {
    let test_dir = TestDir::new();
    let with_short_files = |command: &str| {
        let (code, message) = common::after(test_dir.path(""), "ulimit -f 8;", command);
        assert_eq!(code, 10, "{command}: {message}");
        assert!(message.contains("allow longer files (`ulimit -f`)"), "{command}: {message}");
    };
    with_short_files(&format!("create {VOLUME} --size 16M --state ./state"));
    assert!(!test_dir.path("disk.obl").exists() && !test_dir.path("state").exists());
    for command in ["key client some.key --name alice", "key server some.key"] {
        let (code, message) = common::after(test_dir.path(""), "ulimit -f 0;", command);
        assert!(code == 10 && message.contains("allow longer files"), "{code}: {message}");
        assert!(!test_dir.path("some.key").exists());
    }

    test_dir.succeeds(&format!("create {VOLUME} --size 16M"));
    fs::write(test_dir.path("data"), bytes(2, MIB)).unwrap();
    test_dir.fill();
    with_short_files(&format!("rescue {VOLUME} saved"));
    with_short_files(&format!("serve nbd {VOLUME} --rescued --scratch . --run true"));
    with_short_files("copy disk.obl copy.obl");
    assert!(!test_dir.path("saved").exists() && !test_dir.path("copy.obl").exists());
    // The limit is in blocks of 512 bytes.
    let blocks = test_dir.store().len() / 2 / 512;
    let server = Server::start_in_shell(&test_dir, &format!("ulimit -f {blocks}; exec")).ready();
    let flushed = write_until_it_fails(&server, 64);
    assert!(flushed < 64);
    let (code, message) = server.stop();
    assert_eq!(code, 10, "{message}");
    assert!(message.contains("allow longer files"), "{message}");
    let server = test_dir.serve("");
    assert_flushed(&server, flushed);
    assert_eq!(server.stop().0, 0);
    test_dir.succeeds(&format!("check {VOLUME}"));
}

#[test]
fn a_shortage_of_descriptors_has_an_error_with_advice() {
    let test_dir = TestDir::with_volume(1);
    for command in ["check", "serve nbd --run true", "key add --new-key-file key"] {
        let command = format!("{command} {VOLUME}");
        let (code, printed) = common::after(test_dir.path(""), "ulimit -n 5;", &command);
        assert!(code != 0 && printed.contains("raise `ulimit -n`"), "{command}: {code}: {printed}");
    }
}

#[test]
fn storage_of_a_mounted_disk_fills_up() {
    if can_mount() {
        on_a_small_file_system(20 * MIB, "unmounts_a_disk_whose_storage_is_full");
    }
}

#[test]
#[ignore = "run by a test above, on a file system of its own"]
fn unmounts_a_disk_whose_storage_is_full() {
    let (test_dir, folder) = (TestDir::new(), folder());
    std::os::unix::fs::symlink(folder.join("disk.obl"), test_dir.path("disk.obl")).unwrap();
    test_dir.succeeds("create there.obl --key-file key --size 16M");
    test_dir.copy("there.obl", folder.join("disk.obl"));
    fs::create_dir(test_dir.path("mnt")).unwrap();
    test_dir.succeeds(&format!("mount {VOLUME} mnt --raw --background --cache 0"));
    let mut disk = fs::File::options().write(true).open(test_dir.path("mnt/disk")).unwrap();
    let piece = vec![7; 256 << 10];
    let fits = (0..64).all(|_| disk.write_all(&piece).and_then(|()| disk.sync_all()).is_ok());
    assert!(!fits, "storage must not have room for everything");
    drop(disk);
    // `umount` ends with the exit code that `mount` would have in the foreground.
    test_dir.fails_with("umount mnt", 10, "but its server failed");
}

/// Makes room on the file system of `folder`.
fn grow(folder: &Path) {
    let mut mount = Command::new("mount");
    assert!(mount.args(["-o", "remount,size=200M"]).arg(folder).status().unwrap().success());
}

/// Writes and flushes up to `pieces` pieces of 256 KiB, until one fails. Returns the number of
/// flushed pieces. Every byte of piece `n`, counted from 0, is `n + 1`.
fn write_until_it_fails(server: &Server, pieces: u64) -> u64 {
    let flushed = (0..pieces).take_while(|n| {
        let write = format!("write -P {} {} 256k", n + 1, n * (256 << 10));
        let output = try_run("qemu-io", &["-f", "raw", "-c", &write, "-c", "flush", server.uri()]);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        let failed = !output.status.success() || printed.contains("failed");
        assert!(!failed || printed.contains("No space left on device"), "{printed}");
        !failed
    });
    flushed.count() as u64
}

/// Checks that every flushed piece is there.
fn assert_flushed(server: &Server, flushed: u64) {
    let contents = server.contents();
    for (n, piece) in contents.chunks(256 << 10).take(flushed as usize).enumerate() {
        assert!(piece.iter().all(|byte| *byte == n as u8 + 1), "piece {n} of {flushed}");
    }
}

/// Writes to a volume of 16 MiB until `folder` is full, makes room again, and checks that
/// everything flushed is there and that the volume works.
fn fill_and_recover(test_dir: &TestDir, folder: &Path) {
    let server = test_dir.serve("");
    let flushed = write_until_it_fails(&server, 64);
    assert!((1..64).contains(&flushed), "{flushed} pieces fit");
    // Later requests fail, too.
    assert_eq!(write_until_it_fails(&server, 1), 0);
    // Every 50 ms, the server checks for failures to report. It reports this one again when it
    // ends.
    thread::sleep(Duration::from_millis(300));
    let (code, message) = server.stop();
    assert_eq!(code, 10, "{message}");
    assert!(
        message.contains("the disk has failed"),
        "the failure must be reported at once: {message}"
    );
    assert_eq!(message.matches("make room").count(), 2, "at once and at the end: {message}");
    // Without room, another opening fails or succeeds, but breaks nothing.
    let (code, _, message) =
        crate::common::oblivio(test_dir.path(""), &format!("serve nbd {VOLUME} --run true"));
    assert!(code == 10 || code == 0, "{code}: {message}");
    grow(folder);
    let server = test_dir.serve("");
    assert_flushed(&server, flushed);
    assert_eq!(write_until_it_fails(&server, 64), 64);
    assert_flushed(&server, 64);
    assert_eq!(server.stop().0, 0);
    test_dir.succeeds(&format!("check {VOLUME}"));
}

#[test]
#[ignore = "run by a test above, on a file system of its own"]
fn writes_until_storage_is_full() {
    let (test_dir, folder) = (TestDir::new(), folder());
    std::os::unix::fs::symlink(folder.join("disk.obl"), test_dir.path("disk.obl")).unwrap();
    test_dir.succeeds("create there.obl --key-file key --size 16M");
    test_dir.copy("there.obl", folder.join("disk.obl"));
    fill_and_recover(&test_dir, &folder);
}

#[test]
#[ignore = "run by a test above, on a file system of its own"]
fn writes_until_the_clients_directory_is_full() {
    let (test_dir, folder) = (TestDir::new(), folder());
    std::os::unix::fs::symlink(&folder, test_dir.path("state-home")).unwrap();
    test_dir.succeeds(&format!("create {VOLUME} --size 16M"));
    fill_and_recover(&test_dir, &folder);
}

#[test]
#[ignore = "run by a test above, on a file system of its own"]
fn creates_nothing() {
    let (test_dir, folder) = (TestDir::new(), folder());
    fs::copy(test_dir.path("key"), folder.join("key")).unwrap();
    fs::write(folder.join("ballast"), vec![1; 200 << 10]).unwrap();
    let message = fails_with(&folder, &format!("create {VOLUME} --size 16M"), 10);
    assert!(message.contains("make room"), "{message}");
    assert!(!folder.join("disk.obl").exists());
    fs::remove_file(folder.join("ballast")).unwrap();
    grow(&folder);
    succeeds(&folder, &format!("create {VOLUME} --size 16M"));
    succeeds(&folder, &format!("check {VOLUME}"));
}

/// On a full disk, records can be appended even if the filler after them does not fit. The filler
/// never changes records.
#[test]
#[ignore = "run by a test above, on a file system of its own"]
fn appends_without_filler() {
    let mut dir = FsStateDir::create(&folder().join("state")).unwrap();
    let mut file = dir.create("log").unwrap();
    file.expect_more();
    let mut expected = Vec::new();
    for record in 0..400 {
        let bytes = [record as u8; 1000];
        file.append(&bytes).unwrap();
        file.sync().unwrap();
        expected.extend_from_slice(&bytes);
        let held = dir.read("log").unwrap();
        let (records, filler) = held.split_at(expected.len());
        assert!(records == expected && filler.iter().all(|byte| *byte == FILLER), "{record}");
    }
}
