//! The remaining data of a damaged volume is served read-only, and storage does not see which
//! blocks clients read.

use std::fs;
use std::path::Path;

use super::own_file_system::{folder, on_a_file_system};
use super::store_file::{BUCKETS_AT, back_at};
use super::test_dir::{Server, TestDir, VOLUME};
use super::tools::{run, try_run};
use crate::common::oblivio;

/// Changes a byte in many buckets.
fn damage(test_dir: &TestDir) {
    let store = test_dir.store();
    for at in (BUCKETS_AT..back_at(&store)).step_by(40 * 4096) {
        store.replace(at, &[store.read(at, 1)[0] ^ 1]);
    }
}

/// The files of a directory and their contents.
fn contents(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let named = files.map(|file| {
        (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap_or_default())
    });
    let mut named: Vec<_> = named.collect();
    named.sort();
    named
}

#[test]
fn a_sound_volume_is_served_completely_and_nothing_is_changed() {
    let test_dir = TestDir::with_data(16);
    let before = (fs::read(test_dir.path("disk.obl")).unwrap(), contents(&test_dir.state()));
    let serve = format!("serve nbd {VOLUME} --rescued");
    test_dir.succeeds(&format!("{serve} --run 'nbdcopy \"$uri\" copy && cmp data copy'"));
    let after = (fs::read(test_dir.path("disk.obl")).unwrap(), contents(&test_dir.state()));
    assert!(before == after, "a rescue changes neither side");
    test_dir.assert_nothing_is_lost();
}

#[test]
fn reading_lost_blocks_fails_and_the_rest_is_as_a_rescue_saves_it() {
    let test_dir = TestDir::with_data(16);
    damage(&test_dir);
    let rescue = oblivio(test_dir.path(""), &format!("rescue {VOLUME} saved"));
    assert_eq!(rescue.0, 7, "{}", rescue.2);
    let server = Server::start(&test_dir, "--rescued").ready();
    // With `--salvage`, qemu-img writes zeros where blocks are lost, like a rescue.
    let copy = test_dir.path("copy");
    let salvaged = ["convert", "--salvage", "-f", "raw", "-O", "raw", server.uri()];
    run("qemu-img", &[&salvaged[..], &[copy.to_str().unwrap()]].concat());
    assert!(fs::read(&copy).unwrap() == fs::read(test_dir.path("saved")).unwrap());
    let read_all = try_run("nbdcopy", &[server.uri(), "null:"]);
    let printed = String::from_utf8_lossy(&read_all.stderr).into_owned();
    assert!(!read_all.status.success() && printed.contains("Input/output error"), "{printed}");
    let write = try_run("qemu-io", &["-f", "raw", "-c", "write 0 4k", server.uri()]);
    let printed = String::from_utf8_lossy(&write.stderr).into_owned();
    assert!(printed.contains("Permission denied"), "{printed}");
    let (code, messages) = server.stop();
    assert_eq!(code, 7, "{messages}");
}

/// Wrong options are reported before storage is read, because reading all of it may take hours.
#[test]
fn errors_of_serving_are_reported_before_storage_is_read() {
    let test_dir = TestDir::with_data(1);
    for (options, code) in [("--socket nowhere/nbd.sock", 3), ("--tcp 0.0.0.0:0", 3)] {
        let line = format!("serve nbd {VOLUME} --rescued {options} --run true");
        let (actual, _, messages) = oblivio(test_dir.path(""), &line);
        assert_eq!(actual, code, "{messages}");
        assert!(!messages.contains("can be read"), "{messages}");
    }
}

/// The server reads all of storage before it serves the disk. So clients can read all data even
/// after the volume's file and the state file were deleted.
#[test]
fn storage_may_be_deleted_while_the_rescued_disk_is_read() {
    let test_dir = TestDir::with_data(16);
    let server = Server::start(&test_dir, "--rescued").ready();
    fs::remove_file(test_dir.path("disk.obl")).unwrap();
    fs::remove_file(test_dir.state_file()).unwrap();
    assert!(server.contents() == fs::read(test_dir.path("data")).unwrap());
    assert_eq!(server.stop().0, 0);
}

#[test]
fn it_ends_with_the_code_of_the_command_or_of_a_rescue() {
    let test_dir = TestDir::with_data(16);
    let serve = |options: &str| {
        let line = format!("serve nbd {VOLUME} --rescued --run {options}");
        let (code, _, messages) = oblivio(test_dir.path(""), &line);
        (code, messages)
    };
    assert_eq!(serve("'exit 3'").0, 3);
    test_dir.copy(test_dir.state(), "old");
    test_dir.fill();
    let (code, messages) = serve("true --state old");
    assert_eq!(code, 12, "{messages}");
    damage(&test_dir);
    let (code, messages) = serve("true");
    assert_eq!(code, 7, "{messages}");
    assert!(messages.contains("lost") && messages.contains("can be read"), "{messages}");
    assert_eq!(serve("'exit 3'").0, 3);
}

#[test]
fn options_of_a_volume_in_use_are_refused_for_a_rescued_one() {
    let test_dir = TestDir::with_volume(1);
    for option in ["--rate 100/s", "--cache 0", "--after-tampering", "--record-view view"] {
        test_dir.fails_with(
            &format!("serve nbd {VOLUME} --rescued {option}"),
            2,
            "cannot be used with",
        );
    }
    test_dir.fails_with(&format!("serve nbd {VOLUME} --scratch ."), 2, "--rescued");
    test_dir.fails_with(
        &format!("serve nbd {VOLUME} --rescued --scratch nowhere"),
        4,
        "another directory",
    );
}

#[test]
fn the_scratch_file_has_no_name_and_needs_room() {
    on_a_file_system(
        "-t tmpfs -o size=30M",
        concat!(module_path!(), "::needs_room_for_what_waits"),
    );
}

#[test]
#[ignore = "runs on a file system of its own"]
fn needs_room_for_what_waits() {
    let test_dir = TestDir::with_data(16);
    let scratch = folder();
    let serve = format!("serve nbd {VOLUME} --rescued --scratch {}", scratch.display());
    test_dir.succeeds(&format!("{serve} --run 'test -z \"$(ls -A {})\"'", scratch.display()));
    fs::write(scratch.join("fills it"), vec![1; 20 << 20]).unwrap();
    test_dir.fails_with(&format!("{serve} --run true"), 10, "--scratch");
}
