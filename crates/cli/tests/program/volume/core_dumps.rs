//! Processes that hold keys leave no core dumps.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use super::test_dir::{Server, TestDir};

const UNLIMITED: Rlimit = Rlimit { current: None, maximum: None };

/// The soft limit of a process on the size of core dumps.
fn core_file_bytes_max(pid: u32) -> String {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    line.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_server_has_no_core_dumps_whatever_its_shell_allows() {
    let test_dir = TestDir::with_volume(1);
    let server = Server::start_in_shell(&test_dir, "ulimit -Sc \"$(ulimit -Hc)\"; exec").ready();
    assert_eq!(core_file_bytes_max(server.pid()), "0");
    assert_eq!(server.stop(), (0, String::new()));
}

/// The size limit does not apply to dumps that the kernel passes to a program. Even if the limit is
/// raised, a server leaves no core dump.
#[test]
fn a_server_is_not_dumped_even_without_a_limit() {
    let test_dir = TestDir::with_volume(1);
    let mut any = Command::new("sleep");
    let mut any =
        any.arg("1000").current_dir(test_dir.path("")).stdin(Stdio::null()).spawn().unwrap();
    let server = test_dir.serve("");
    let mut dumped = Vec::new();
    for pid in [any.id(), server.pid()].map(|pid| Pid::from_raw(pid as i32).unwrap()) {
        if prlimit(Some(pid), Resource::Core, UNLIMITED).is_err() {
            any.kill().unwrap();
            any.wait().unwrap();
            eprintln!("LEFT OUT: the limits of this user cannot be raised");
            return;
        }
        kill_process(pid, Signal::ABORT).unwrap();
    }
    dumped.push(any.wait().unwrap().core_dumped());
    dumped.push(server.wait_for_death().core_dumped());
    if !dumped[0] {
        eprintln!("LEFT OUT: this system makes no core dumps of any process");
    }
    assert!(!dumped[1]);
}
