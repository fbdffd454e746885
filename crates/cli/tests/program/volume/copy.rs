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
use super::world::{Bytes, MIB, World, bytes, end, end_by, hearing_signals, wait_until};
use crate::common;

/// The progress file of the copy `copy.obl`.
const PROGRESS: &str = "copy.obl.copying";

/// Records the progress very often.
const OFTEN: &str = "--keep-every 64K";

fn same(world: &World, one: &str, other: &str) -> bool {
    fs::read(world.path(one)).unwrap() == fs::read(world.path(other)).unwrap()
}

fn allocated(path: &Path) -> u64 {
    path.metadata().unwrap().blocks() * 512
}

/// Begins a copy, and kills it after it has surely copied some buckets, before it is complete.
fn begin_and_kill(world: &World) {
    let command_line = format!("copy disk.obl copy.obl {OFTEN}");
    let mut child =
        common::command(&world.path(""), &command_line).stdout(Stdio::null()).spawn().unwrap();
    wait_until("it has begun", || {
        const BUCKETS: std::ops::Range<usize> = 56..64;
        let kept = fs::read(world.path(PROGRESS)).unwrap_or_default();
        kept.get(BUCKETS).is_some_and(|buckets| buckets != [0; 8])
    });
    end(&mut child);
    assert!(world.path(PROGRESS).exists(), "the copy was complete before it was killed");
}

/// Kills a copy a while after it has made progress, if it has not ended.
fn kill_later(world: &World, command_line: &str, later: Duration) {
    let kept = || fs::read(world.path(PROGRESS)).ok();
    let before = kept();
    let mut child = common::command(&world.path(""), command_line);
    let mut child = child.stdout(Stdio::null()).spawn().unwrap();
    wait_until("it comes further", || kept() != before || child.try_wait().unwrap().is_some());
    thread::sleep(later);
    end(&mut child);
}

#[test]
fn a_volume_goes_from_a_file_to_a_stripe_and_back_and_stays_sparse() {
    let world = World::new();
    // Most of the volume was never written.
    world.good("create disk.obl --key-file key --size 64M");
    fs::write(world.path("data"), bytes(2, MIB)).unwrap();
    world.good("serve nbd disk.obl --key-file key --run 'nbdcopy --flush data \"$uri\"'");
    let there = world.json("copy disk.obl stripe:a.obl,b.obl,c.obl --json");
    assert!(world.good("copy stripe:a.obl,b.obl,c.obl copy.obl").contains("compared"));
    assert!(same(&world, "disk.obl", "copy.obl"), "bit for bit, headers included");
    assert_eq!(there["read_back"], true);
    assert!(there["buckets_written"].as_u64().unwrap() < there["buckets"].as_u64().unwrap() / 4);
    let now = allocated(&world.path("disk.obl"));
    let members: u64 =
        ["a.obl", "b.obl", "c.obl"].map(|name| allocated(&world.path(name))).iter().sum();
    for taken in [members, allocated(&world.path("copy.obl"))] {
        assert!(taken < now + MIB && now < world.path("disk.obl").metadata().unwrap().len() / 4);
    }
    let left = fs::read_dir(world.path("")).unwrap().map(|it| it.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_str().unwrap().contains("copying")));
}

#[test]
fn the_copy_is_the_volume_and_the_original_is_refused_once_the_copy_was_opened() {
    let world = World::with_data(4);
    world.good("copy disk.obl stripe:a.obl,b.obl --no-verify");
    let striped = "stripe:a.obl,b.obl --key-file key";
    world.good(&format!("serve nbd {striped} --run 'nbdcopy \"$uri\" back'"));
    assert!(same(&world, "data", "back"));
    for command in ["check disk.obl --key-file key", "serve nbd disk.obl --key-file key --run true"]
    {
        world.bad(command, 8, "older than the client");
    }
    world.good(&format!("check {striped}"));
}

#[test]
fn a_copy_that_is_killed_repeatedly_is_resumed_until_it_is_complete() {
    let world = World::with_data(4);
    begin_and_kill(&world);
    let mut kills = 1;
    while world.path(PROGRESS).exists() && kills < 12 {
        // An incomplete copy is not a volume, and the error says what to do.
        let info = common::oblivio(world.path(""), "info copy.obl --public");
        assert!(info.0 == 7 && info.2.contains("copy --resume"), "{info:?}");
        let later = Duration::from_micros(kills * 997 % 5000);
        kill_later(&world, &format!("copy --resume disk.obl copy.obl {OFTEN}"), later);
        kills += 1;
    }
    if world.path(PROGRESS).exists() {
        world.good("copy --resume disk.obl copy.obl");
    }
    println!("{kills} kills");
    assert!(same(&world, "disk.obl", "copy.obl"));
    world.good("check copy.obl --key-file key");
}

#[test]
fn ctrl_c_leaves_a_copy_that_can_be_resumed_with_a_message() {
    let world = World::with_data(4);
    let command = common::command(&world.path(""), &format!("copy disk.obl copy.obl {OFTEN}"));
    let mut command = hearing_signals(&command);
    let complaints = world.path("complaints");
    let mut child = command.stderr(File::create(&complaints).unwrap()).spawn().unwrap();
    wait_until("it has begun", || world.path(PROGRESS).exists());
    let code = end_by(&mut child, &[Signal::INT]);
    let said = fs::read_to_string(complaints).unwrap();
    assert!(code == Some(1) && said.contains("--resume continues"), "{code:?}: {said}");
    world.bad("check copy.obl --key-file key", 7, "copy --resume");
    world.good("copy --resume disk.obl copy.obl");
    assert!(same(&world, "disk.obl", "copy.obl"));
}

#[test]
fn a_volume_that_was_used_meanwhile_cannot_be_resumed() {
    let world = World::with_data(4);
    begin_and_kill(&world);
    world.good("check disk.obl --key-file key");
    world.bad("copy --resume disk.obl copy.obl", 3, "has been opened since");
    for name in ["copy.obl", PROGRESS] {
        fs::remove_file(world.path(name)).unwrap();
    }
    world.good("copy disk.obl copy.obl");
    assert!(same(&world, "disk.obl", "copy.obl"));
}

#[test]
fn what_changes_at_the_new_place_before_it_is_read_back_is_code_5() {
    let world = World::with_data(4);
    begin_and_kill(&world);
    let undo = spoil(&world);
    world.bad("copy --resume disk.obl copy.obl", 5, "is not the same at both places");
    world.bad("check copy.obl --key-file key", 7, "copy --resume");
    undo();
    world.good("copy --resume disk.obl copy.obl");
}

/// Changes a byte of the first written bucket of `copy.obl`. Returns how to restore it.
fn spoil(world: &World) -> impl FnOnce() + use<> {
    let copy = Bytes::of(&world.path("copy.obl"));
    let written = fs::read(world.path("copy.obl")).unwrap();
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
    let world = World::with_data(4);
    let report = world.json("copy disk.obl copy.obl --no-verify --json");
    assert_eq!((&report["read_back"], &report["buckets_compared"]), (&false.into(), &0.into()));
    assert_eq!(report["resumed"], false);
    let undo = spoil(&world);
    assert!(
        world.good("copy --resume disk.obl copy.obl --no-verify").contains("nothing was read back")
    );
    for _ in 0..2 {
        world.bad("copy --resume disk.obl copy.obl", 5, "is not the same at both places");
    }
    undo();
    for _ in 0..2 {
        let report = world.json("copy --resume disk.obl copy.obl --json");
        assert_eq!((&report["read_back"], &report["resumed"]), (&true.into(), &true.into()));
        assert_eq!(report["buckets_compared"], report["buckets"]);
        assert!(!world.path(PROGRESS).exists());
    }
    let said = world.good("copy --resume disk.obl copy.obl");
    assert!(said.contains("everything was read back and compared"), "{said}");
    world.good("check copy.obl --key-file key");
}

#[test]
fn impossible_copies_are_refused_and_nothing_is_changed() {
    let world = World::with_data(4);
    symlink("disk.obl", world.path("link.obl")).unwrap();
    fs::hard_link(world.path("disk.obl"), world.path("hard.obl")).unwrap();
    fs::write(world.path("there.obl"), "something else").unwrap();
    let before = fs::read(world.path("disk.obl")).unwrap();
    for (command_line, code, advice) in [
        ("copy disk.obl disk.obl", 3, "choose another location"),
        ("copy disk.obl ./disk.obl", 3, "choose another location"),
        ("copy link.obl disk.obl", 3, "choose another location"),
        ("copy --resume disk.obl hard.obl", 3, "choose another location"),
        ("copy disk.obl stripe:new.obl,link.obl", 3, "choose another location"),
        ("copy disk.obl there.obl", 3, "there.obl exists"),
        ("copy disk.obl nowhere/copy.obl", 4, "make the folder, or choose another file"),
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
        world.bad(command_line, code, advice);
    }
    let server = world.serve("");
    world.bad("copy disk.obl copy.obl", 9, "close it there first");
    assert_eq!(server.stop().0, 0);
    for name in ["copy.obl", PROGRESS, "new.obl", "stripe:new.obl,link.obl"] {
        assert!(!world.path(name).exists(), "{name}");
    }
    assert_eq!(fs::read(world.path("there.obl")).unwrap(), b"something else");
    assert_eq!(before.len() as u64, world.store().len());
    world.assert_nothing_is_lost();
}

#[test]
fn an_incomplete_copy_cannot_be_copied_and_an_opened_volume_is_not_overwritten() {
    let world = World::with_data(4);
    begin_and_kill(&world);
    world.bad("copy copy.obl third.obl", 7, "copy --resume");
    world.bad("copy disk.obl copy.obl", 3, "continue it with --resume");
    world.bad("copy --resume disk.obl stripe:copy.obl,b.obl --progress copy.obl.copying", 3, "");
    world.copy(PROGRESS, "kept");
    for _ in 0..2 {
        // The second time, it is complete.
        world.good("copy --resume disk.obl copy.obl");
    }
    assert!(same(&world, "disk.obl", "copy.obl") && !world.path(PROGRESS).exists());
    world.good("check copy.obl --key-file key");
    world.bad("copy --resume disk.obl copy.obl --progress kept", 3, "has been opened");
    world.bad("copy --resume disk.obl copy.obl", 3, "copy.obl already holds this volume");
    world.good("check copy.obl --key-file key");
}

/// What a copy leaves if it is killed before its first file has its length.
fn kill_while_the_place_is_made(world: &World, to: &str) {
    let (first, second) = (world.path("copy.obl"), world.path("b.obl"));
    loop {
        let mut child = common::command(&world.path(""), &format!("copy disk.obl {to}"));
        let mut child = child.stdout(Stdio::null()).spawn().unwrap();
        wait_until("its place is there", || first.exists());
        end(&mut child);
        let _ = fs::remove_file(&second);
        if world.path(PROGRESS).exists() {
            break;
        }
        // The copy was complete before it was killed.
        fs::remove_file(&first).unwrap();
    }
    File::create(first).unwrap();
}

#[test]
fn a_copy_killed_while_its_file_was_being_made_can_be_resumed() {
    let world = World::with_data(4);
    let whole = world.store().len();
    for to in ["copy.obl", "stripe:copy.obl,b.obl"] {
        kill_while_the_place_is_made(&world, to);
        if to == "copy.obl" {
            // Another file has taken the path meanwhile.
            for other in [&b"something else"[..], &vec![1; whole as usize]] {
                fs::write(world.path("copy.obl"), other).unwrap();
                world.bad("copy --resume disk.obl copy.obl", 3, "check the path");
                assert!(fs::read(world.path("copy.obl")).unwrap() == other);
            }
            File::create(world.path("copy.obl")).unwrap().set_len(whole).unwrap();
        }
        world.good(&format!("copy --resume disk.obl {to}"));
        world.good(&format!("copy {to} back.obl"));
        assert!(same(&world, "disk.obl", "back.obl"));
        for name in ["copy.obl", "back.obl"] {
            fs::remove_file(world.path(name)).unwrap();
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
    let (world, folder) = (World::with_data(4), folder());
    let there = folder.display();
    world.bad(&format!("copy disk.obl {there}/copy.obl --keep-every 1M"), 10, "--resume continues");
    world.bad(&format!("copy --resume disk.obl {there}/copy.obl"), 10, "make room");
    // Other commands also name the full place.
    fs::remove_file(folder.join("copy.obl")).unwrap();
    let rescue = format!("rescue disk.obl {there}/saved --key-file key");
    world.bad(&rescue, 10, &format!("{there}/saved"));
    world.bad(&rescue, 10, "choose another place");
    let rescued =
        format!("serve nbd disk.obl --key-file key --rescued --scratch {there} --run true");
    world.bad(&rescued, 10, &format!("({there})"));
    let create = format!("create {there}/new.obl --key-file key --state new --from data");
    let (code, _, said) = common::oblivio(world.path(""), &create);
    assert!(code == 10 && said.contains("Nothing is left of the new volume"), "{code}: {said}");
    assert!(!said.contains("again;") && !said.contains("rescue"), "{said}");
    fs::remove_file(folder.join(PROGRESS)).unwrap();
    world.bad(&format!("copy disk.obl {there}/copy.obl --keep-every 1M"), 10, "--resume continues");
    let mut mount = Command::new("mount");
    assert!(mount.args(["-o", "remount,size=100M"]).arg(&folder).status().unwrap().success());
    world.good(&format!("copy --resume disk.obl {there}/copy.obl"));
    assert!(
        fs::read(folder.join("copy.obl")).unwrap() == fs::read(world.path("disk.obl")).unwrap()
    );
}
