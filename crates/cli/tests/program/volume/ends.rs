//! Ends of servers and mounts by signals: nothing that was written is lost.

use std::fs::{self, File};
use std::io::Write;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::Signal;

use super::mount::Mount;
use super::needs::can_mount;
use super::test_dir::{MIB, Server, TestDir, VOLUME, bytes, hearing_signals};
use crate::common;

const ENDING: [Signal; 5] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::XCPU];

/// Options with which closing takes at least 32 ticks of 50 milliseconds, however fast the machine
/// is.
const CLOSES_SLOWLY: &str = "--period 50 --burst 8 --cache 2M";

/// Time that a process may take to notice a signal, on a busy machine.
const NOTICING: Duration = Duration::from_millis(300);

#[test]
fn every_ending_signal_closes_the_volume_of_a_server() {
    let test_dir = TestDir::with_volume(8);
    for (signal, seed) in ENDING.into_iter().zip(20..) {
        fs::write(test_dir.path("data"), bytes(seed, 8 * MIB)).unwrap();
        let server = test_dir.serve("");
        // Without a flush: a part of the data is only in the cache.
        super::tools::run("nbdcopy", &[test_dir.path("data").to_str().unwrap(), server.uri()]);
        assert_eq!(server.end_by(&[signal]), (0, String::new()), "{signal:?}");
        test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
        test_dir.assert_nothing_is_lost();
    }
}

#[test]
fn more_signals_neither_hasten_the_end_of_a_server_nor_lose_anything() {
    let test_dir = TestDir::with_volume(1);
    fs::write(test_dir.path("data"), bytes(3, MIB)).unwrap();
    let server = test_dir.serve(CLOSES_SLOWLY);
    super::tools::run("nbdcopy", &[test_dir.path("data").to_str().unwrap(), server.uri()]);
    let (code, messages) = server.end_by(&[Signal::INT, Signal::TERM, Signal::INT]);
    assert_eq!(code, 0, "{messages}");
    assert!(messages.contains("what was written is being made durable"), "{messages}");
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_hangup_that_was_ignored_from_the_start_stays_ignored() {
    let test_dir = TestDir::with_data(4);
    // The shell that starts the server ignores hangups, like `nohup`.
    let server = Server::start_in_shell(&test_dir, "trap '' HUP; exec").ready();
    server.signal(Signal::HUP);
    sleep(NOTICING);
    assert!(server.contents() == fs::read(test_dir.path("data")).unwrap());
    assert_eq!(server.stop(), (0, String::new()));
}

#[test]
fn a_signal_before_the_volume_is_open_ends_the_process_at_once() {
    let test_dir = TestDir::with_volume(1);
    let command_line = "serve nbd disk.obl --passphrase-command 'exec sleep 60'";
    let command = common::command(&test_dir.path(""), command_line);
    let mut child = hearing_signals(&command).stderr(Stdio::null()).spawn().unwrap();
    sleep(NOTICING);
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(super::test_dir::wait(&mut child), None, "the signal ended it");
}

#[test]
fn every_ending_signal_of_a_mount_keeps_what_was_written() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(32);
    for (signal, seed) in ENDING.into_iter().zip(30..) {
        let data = bytes(seed, 4 * MIB);
        let mount = Mount::new(&test_dir, "");
        // Without a sync: a part of the data is only in the page cache.
        fs::write(mount.path("file"), &data).unwrap();
        assert_eq!(mount.end_by(&[signal]).0, Some(0), "{signal:?}");
        test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
        let mount = Mount::new(&test_dir, "--no-mkfs");
        assert!(fs::read(mount.path("file")).unwrap() == data, "{signal:?}");
        mount.unmount(&test_dir);
    }
}

#[test]
fn more_signals_neither_hasten_the_end_of_a_mount_nor_lose_anything() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(64);
    let data = bytes(40, 30 * MIB);
    let mount = Mount::new(&test_dir, "");
    fs::write(mount.path("file"), &data).unwrap();
    let (code, messages) = mount.end_by(&[Signal::INT, Signal::INT, Signal::TERM, Signal::HUP]);
    assert_eq!(code, Some(0), "{messages}");
    assert!(messages.contains("nothing is lost"), "{messages}");
    let mount = Mount::new(&test_dir, "--no-mkfs");
    assert!(fs::read(mount.path("file")).unwrap() == data);
    mount.unmount(&test_dir);
}

#[test]
fn a_mount_in_use_stays_in_spite_of_signals() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(32);
    let mount = Mount::new(&test_dir, "");
    let mut file = File::create(mount.path("file")).unwrap();
    for signal in ENDING {
        mount.signal(signal);
        sleep(NOTICING);
    }
    file.write_all(b"written after all of them").unwrap();
    drop(file);
    let (code, messages) = mount.ended();
    assert_eq!(code, Some(0), "{messages}");
    assert!(messages.contains("is in use"), "{messages}");
    let mount = Mount::new(&test_dir, "--no-mkfs");
    assert_eq!(fs::read(mount.path("file")).unwrap(), b"written after all of them");
    mount.unmount(&test_dir);
}
