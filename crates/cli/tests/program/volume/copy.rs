//! `oblivio copy`: moves a volume to another location, in spite of interruptions.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::own_file_system::{folder, on_a_file_system};
use super::store_file::BUCKETS_AT;
use super::test_dir::{Bytes, MIB, TestDir, bytes, end, end_by, hearing_signals, wait_until};
use crate::common;

/// The progress file of the copy `copy.obl`.
const PROGRESS: &str = "copy.obl.copying";

/// The option that records the progress after every 64 KiB.
const OFTEN: &str = "--keep-every 64K";

fn same(test_dir: &TestDir, one: &str, other: &str) -> bool {
    fs::read(test_dir.path(one)).unwrap() == fs::read(test_dir.path(other)).unwrap()
}

fn allocated(path: &Path) -> u64 {
    path.metadata().unwrap().blocks() * 512
}

/// Begins a copy, and kills it when its progress file shows that it has copied some buckets, but
/// not all.
fn begin_and_kill(test_dir: &TestDir) {
    let command_line = format!("copy disk.obl copy.obl {OFTEN}");
    let mut child =
        common::command(&test_dir.path(""), &command_line).stdout(Stdio::null()).spawn().unwrap();
    wait_until("it has begun", || {
        const BUCKETS: std::ops::Range<usize> = 56..64;
        let progress = fs::read(test_dir.path(PROGRESS)).unwrap_or_default();
        progress.get(BUCKETS).is_some_and(|buckets| buckets != [0; 8])
    });
    end(&mut child);
    assert!(test_dir.path(PROGRESS).exists(), "the copy was complete before it was killed");
}

/// Runs a copy, and kills the process `later` after the progress file first changed, unless the
/// process has ended.
fn kill_later(test_dir: &TestDir, command_line: &str, later: Duration) {
    let progress = || fs::read(test_dir.path(PROGRESS)).ok();
    let before = progress();
    let mut child = common::command(&test_dir.path(""), command_line);
    let mut child = child.stdout(Stdio::null()).spawn().unwrap();
    wait_until("it comes further", || progress() != before || child.try_wait().unwrap().is_some());
    thread::sleep(later);
    end(&mut child);
}

#[test]
fn a_volume_goes_from_a_file_to_a_stripe_and_back_and_stays_sparse() {
    let test_dir = TestDir::new();
    // Most of the volume was never written.
    test_dir.succeeds("create disk.obl --key-file key --size 64M");
    fs::write(test_dir.path("data"), bytes(2, MIB)).unwrap();
    test_dir.succeeds("serve nbd disk.obl --key-file key --run 'nbdcopy --flush data \"$uri\"'");
    let there = test_dir.json("copy disk.obl stripe:a.obl,b.obl,c.obl --json");
    assert!(test_dir.succeeds("copy stripe:a.obl,b.obl,c.obl copy.obl").contains("compared"));
    assert!(same(&test_dir, "disk.obl", "copy.obl"), "bit for bit, headers included");
    assert_eq!(there["read_back"], true);
    assert!(there["buckets_written"].as_u64().unwrap() < there["buckets"].as_u64().unwrap() / 4);
    let now = allocated(&test_dir.path("disk.obl"));
    let members: u64 =
        ["a.obl", "b.obl", "c.obl"].map(|name| allocated(&test_dir.path(name))).iter().sum();
    for taken in [members, allocated(&test_dir.path("copy.obl"))] {
        assert!(taken < now + MIB && now < test_dir.path("disk.obl").metadata().unwrap().len() / 4);
    }
    let left = fs::read_dir(test_dir.path("")).unwrap().map(|it| it.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_str().unwrap().contains("copying")));
}

#[test]
fn the_copy_is_the_volume_and_the_original_is_refused_once_the_copy_was_opened() {
    let test_dir = TestDir::with_data(4);
    test_dir.succeeds("copy disk.obl stripe:a.obl,b.obl --no-verify");
    let striped = "stripe:a.obl,b.obl --key-file key";
    test_dir.succeeds(&format!("serve nbd {striped} --run 'nbdcopy \"$uri\" back'"));
    assert!(same(&test_dir, "data", "back"));
    for command in ["check disk.obl --key-file key", "serve nbd disk.obl --key-file key --run true"]
    {
        test_dir.fails_with(command, 8, "older than the client");
    }
    test_dir.succeeds(&format!("check {striped}"));
}

#[test]
fn a_copy_that_is_killed_repeatedly_is_resumed_until_it_is_complete() {
    let test_dir = TestDir::with_data(4);
    begin_and_kill(&test_dir);
    let mut kills = 1;
    while test_dir.path(PROGRESS).exists() && kills < 12 {
        // An incomplete copy is not a volume, and the error says what to do.
        let info = common::oblivio(test_dir.path(""), "info copy.obl --public");
        assert!(info.0 == 7 && info.2.contains("copy --resume"), "{info:?}");
        let later = Duration::from_micros(kills * 997 % 5000);
        kill_later(&test_dir, &format!("copy --resume disk.obl copy.obl {OFTEN}"), later);
        kills += 1;
    }
    if test_dir.path(PROGRESS).exists() {
        test_dir.succeeds("copy --resume disk.obl copy.obl");
    }
    println!("{kills} kills");
    assert!(same(&test_dir, "disk.obl", "copy.obl"));
    test_dir.succeeds("check copy.obl --key-file key");
}

#[test]
fn ctrl_c_leaves_a_copy_that_can_be_resumed_with_a_message() {
    let test_dir = TestDir::with_data(4);
    let command = common::command(&test_dir.path(""), &format!("copy disk.obl copy.obl {OFTEN}"));
    let mut command = hearing_signals(&command);
    let messages = test_dir.path("messages");
    let mut child = command.stderr(File::create(&messages).unwrap()).spawn().unwrap();
    wait_until("it has begun", || test_dir.path(PROGRESS).exists());
    let code = end_by(&mut child, &[Signal::INT]);
    let printed = fs::read_to_string(messages).unwrap();
    assert!(code == Some(1) && printed.contains("--resume continues"), "{code:?}: {printed}");
    test_dir.fails_with("check copy.obl --key-file key", 7, "copy --resume");
    test_dir.succeeds("copy --resume disk.obl copy.obl");
    assert!(same(&test_dir, "disk.obl", "copy.obl"));
}

#[test]
fn a_volume_that_was_used_meanwhile_cannot_be_resumed() {
    let test_dir = TestDir::with_data(4);
    begin_and_kill(&test_dir);
    test_dir.succeeds("check disk.obl --key-file key");
    test_dir.fails_with("copy --resume disk.obl copy.obl", 3, "has been opened since");
    for name in ["copy.obl", PROGRESS] {
        fs::remove_file(test_dir.path(name)).unwrap();
    }
    test_dir.succeeds("copy disk.obl copy.obl");
    assert!(same(&test_dir, "disk.obl", "copy.obl"));
}

#[test]
fn what_changes_at_the_new_place_before_it_is_read_back_is_code_5() {
    let test_dir = TestDir::with_data(4);
    begin_and_kill(&test_dir);
    let undo = spoil(&test_dir);
    test_dir.fails_with("copy --resume disk.obl copy.obl", 5, "is not the same at both places");
    test_dir.fails_with("check copy.obl --key-file key", 7, "copy --resume");
    undo();
    test_dir.succeeds("copy --resume disk.obl copy.obl");
}

/// Changes a byte of the first written bucket of `copy.obl`. Returns a function that restores the
/// byte.
fn spoil(test_dir: &TestDir) -> impl FnOnce() + use<> {
    let copy = Bytes::of(&test_dir.path("copy.obl"));
    let written = fs::read(test_dir.path("copy.obl")).unwrap();
    let from = BUCKETS_AT as usize;
    let at = written[from..].iter().position(|byte| *byte != 0).unwrap() + from;
    let before = written[at];
    copy.replace(at as u64, &[before ^ 1]);
    move || {
        copy.replace(at as u64, &[before]);
    }
}

#[test]
fn a_complete_copy_that_is_resumed_is_compared_again_and_the_report_is_correct() {
    let test_dir = TestDir::with_data(4);
    let report = test_dir.json("copy disk.obl copy.obl --no-verify --json");
    assert_eq!((&report["read_back"], &report["buckets_compared"]), (&false.into(), &0.into()));
    assert_eq!(report["resumed"], false);
    let undo = spoil(&test_dir);
    assert!(
        test_dir
            .succeeds("copy --resume disk.obl copy.obl --no-verify")
            .contains("nothing was read back")
    );
    for _ in 0..2 {
        test_dir.fails_with("copy --resume disk.obl copy.obl", 5, "is not the same at both places");
    }
    undo();
    for _ in 0..2 {
        let report = test_dir.json("copy --resume disk.obl copy.obl --json");
        assert_eq!((&report["read_back"], &report["resumed"]), (&true.into(), &true.into()));
        assert_eq!(report["buckets_compared"], report["buckets"]);
        assert!(!test_dir.path(PROGRESS).exists());
    }
    let printed = test_dir.succeeds("copy --resume disk.obl copy.obl");
    assert!(printed.contains("everything was read back and compared"), "{printed}");
    test_dir.succeeds("check copy.obl --key-file key");
}

#[test]
fn impossible_copies_are_refused_and_nothing_is_changed() {
    let test_dir = TestDir::with_data(4);
    symlink("disk.obl", test_dir.path("link.obl")).unwrap();
    fs::hard_link(test_dir.path("disk.obl"), test_dir.path("hard.obl")).unwrap();
    fs::write(test_dir.path("there.obl"), "something else").unwrap();
    let before = fs::read(test_dir.path("disk.obl")).unwrap();
    for (command_line, code, advice) in [
        ("copy disk.obl disk.obl", 3, "choose another location"),
        ("copy disk.obl ./disk.obl", 3, "choose another location"),
        ("copy link.obl disk.obl", 3, "choose another location"),
        ("copy --resume disk.obl hard.obl", 3, "choose another location"),
        ("copy disk.obl stripe:new.obl,link.obl", 3, "choose another location"),
        ("copy disk.obl there.obl", 3, "there.obl exists"),
        ("copy disk.obl nowhere/copy.obl", 4, "make the folder, or choose another destination"),
        ("copy disk.obl copy.obl --progress link.obl", 3, "is a part of a volume"),
        ("copy disk.obl copy.obl --progress ./copy.obl", 3, "is a part of a volume"),
        ("copy disk.obl copy.obl --progress there.obl", 3, "so a copy was begun"),
        ("copy --resume disk.obl copy.obl", 3, "leave --resume out"),
        ("copy --resume disk.obl copy.obl --progress there.obl", 3, "begin the copy again"),
        ("copy there.obl copy.obl", 3, "check the path"),
        ("copy nowhere.obl copy.obl", 3, "check the path"),
        ("copy disk.obl", 2, "--help"),
        ("copy disk.obl s3://bucket/copy", 2, "--help"),
    ] {
        test_dir.fails_with(command_line, code, advice);
    }
    let server = test_dir.serve("");
    test_dir.fails_with("copy disk.obl copy.obl", 9, "close it there first");
    assert_eq!(server.stop().0, 0);
    for name in ["copy.obl", PROGRESS, "new.obl", "stripe:new.obl,link.obl"] {
        assert!(!test_dir.path(name).exists(), "{name}");
    }
    assert_eq!(fs::read(test_dir.path("there.obl")).unwrap(), b"something else");
    assert_eq!(before.len() as u64, test_dir.store().len());
    test_dir.assert_nothing_is_lost();
}

#[test]
fn an_incomplete_copy_cannot_be_copied_and_an_opened_volume_is_not_overwritten() {
    let test_dir = TestDir::with_data(4);
    begin_and_kill(&test_dir);
    test_dir.fails_with("copy copy.obl third.obl", 7, "copy --resume");
    test_dir.fails_with("copy disk.obl copy.obl", 3, "continue it with --resume");
    test_dir.fails_with(
        "copy --resume disk.obl stripe:copy.obl,b.obl --progress copy.obl.copying",
        3,
        "",
    );
    test_dir.copy(PROGRESS, "kept");
    for _ in 0..2 {
        // The second time, the copy is already complete.
        test_dir.succeeds("copy --resume disk.obl copy.obl");
    }
    assert!(same(&test_dir, "disk.obl", "copy.obl") && !test_dir.path(PROGRESS).exists());
    test_dir.succeeds("check copy.obl --key-file key");
    test_dir.fails_with("copy --resume disk.obl copy.obl --progress kept", 3, "has been opened");
    test_dir.fails_with("copy --resume disk.obl copy.obl", 3, "copy.obl already holds this volume");
    test_dir.succeeds("check copy.obl --key-file key");
}

/// Leaves the remains of a copy that was killed before its first file had its final length.
fn kill_while_the_place_is_made(test_dir: &TestDir, to: &str) {
    let (first, second) = (test_dir.path("copy.obl"), test_dir.path("b.obl"));
    loop {
        let mut child = common::command(&test_dir.path(""), &format!("copy disk.obl {to}"));
        let mut child = child.stdout(Stdio::null()).spawn().unwrap();
        wait_until("its place is there", || first.exists());
        end(&mut child);
        let _ = fs::remove_file(&second);
        if test_dir.path(PROGRESS).exists() {
            break;
        }
        // The copy was complete before it was killed.
        fs::remove_file(&first).unwrap();
    }
    File::create(first).unwrap();
}

#[test]
fn a_copy_killed_while_its_file_was_being_made_can_be_resumed() {
    let test_dir = TestDir::with_data(4);
    let whole = test_dir.store().len();
    for to in ["copy.obl", "stripe:copy.obl,b.obl"] {
        kill_while_the_place_is_made(&test_dir, to);
        if to == "copy.obl" {
            // Another file has taken the path meanwhile.
            for other in [&b"something else"[..], &vec![1; whole as usize]] {
                fs::write(test_dir.path("copy.obl"), other).unwrap();
                test_dir.fails_with("copy --resume disk.obl copy.obl", 3, "check the path");
                assert!(fs::read(test_dir.path("copy.obl")).unwrap() == other);
            }
            File::create(test_dir.path("copy.obl")).unwrap().set_len(whole).unwrap();
        }
        test_dir.succeeds(&format!("copy --resume disk.obl {to}"));
        test_dir.succeeds(&format!("copy {to} back.obl"));
        assert!(same(&test_dir, "disk.obl", "back.obl"));
        for name in ["copy.obl", "back.obl"] {
            fs::remove_file(test_dir.path(name)).unwrap();
        }
    }
}

#[test]
fn a_copy_that_fills_a_disk_can_be_resumed_when_there_is_room() {
    let test = format!("{}::copies_until_there_is_no_room", module_path!());
    on_a_file_system(&format!("-t tmpfs -o size={}", 3 * MIB), &test);
}

#[test]
#[ignore = "run by a test above, on a file system of its own"]
fn copies_until_there_is_no_room() {
    let (test_dir, folder) = (TestDir::with_data(4), folder());
    let there = folder.display();
    test_dir.fails_with(
        &format!("copy disk.obl {there}/copy.obl --keep-every 1M"),
        10,
        "--resume continues",
    );
    test_dir.fails_with(&format!("copy --resume disk.obl {there}/copy.obl"), 10, "make room");
    // Other commands also name the full place.
    fs::remove_file(folder.join("copy.obl")).unwrap();
    let rescue = format!("rescue disk.obl {there}/saved --key-file key");
    test_dir.fails_with(&rescue, 10, &format!("{there}/saved"));
    test_dir.fails_with(&rescue, 10, "choose another place");
    let rescued =
        format!("serve nbd disk.obl --key-file key --rescued --scratch {there} --run true");
    test_dir.fails_with(&rescued, 10, &format!("({there})"));
    let create = format!("create {there}/new.obl --key-file key --state new --from data");
    let (code, _, printed) = common::oblivio(test_dir.path(""), &create);
    assert!(
        code == 10 && printed.contains("Nothing is left of the new volume"),
        "{code}: {printed}"
    );
    assert!(!printed.contains("again;") && !printed.contains("rescue"), "{printed}");
    fs::remove_file(folder.join(PROGRESS)).unwrap();
    test_dir.fails_with(
        &format!("copy disk.obl {there}/copy.obl --keep-every 1M"),
        10,
        "--resume continues",
    );
    let mut mount = Command::new("mount");
    assert!(mount.args(["-o", "remount,size=100M"]).arg(&folder).status().unwrap().success());
    test_dir.succeeds(&format!("copy --resume disk.obl {there}/copy.obl"));
    assert!(
        fs::read(folder.join("copy.obl")).unwrap() == fs::read(test_dir.path("disk.obl")).unwrap()
    );
}
