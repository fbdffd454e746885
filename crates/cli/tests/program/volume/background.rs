//! Volumes that are mounted or served in the background.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{mem, thread};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::needs::can_mount;
use super::page_reader::Address;
use super::test_dir::{TestDir, VOLUME, wait_until};
use crate::common::terminal::Terminal;
use crate::common::{command, fails_with, succeeds};

/// Whether a process exists and is not a zombie.
fn is_running(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let has_ended = status.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with('Z'));
    !has_ended && test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

/// The ID of the process that a log of background processes names last.
fn logged_pid(log: &str) -> i32 {
    let line = log.lines().rfind(|line| line.contains("process ")).unwrap();
    let pid = line.split("process ").nth(1).unwrap().split(':').next().unwrap();
    pid.parse().unwrap()
}

#[test]
fn a_mount_continues_in_the_background_until_it_is_unmounted() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(16);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    let printed = test_dir.succeeds(&format!("mount {VOLUME} mnt --background"));
    assert!(printed.contains("mounted on") && printed.contains("oblivio umount"), "{printed}");
    // The directory is mounted by now.
    fs::write(test_dir.path("mnt/file"), "kept").unwrap();
    let log = || fs::read_to_string(test_dir.state().join("background.log")).unwrap();
    let pid = logged_pid(&log());
    assert!(is_running(pid));

    let printed = test_dir.succeeds("umount mnt");
    assert!(printed.contains("its volume is closed"), "{printed}");
    wait_until("the process has ended", || !is_running(pid));
    let log = log();
    assert!(log.ends_with("unmounted, and the volume is closed\n"), "{log}");
    assert!(log.lines().all(|line| line.starts_with("20")), "each line has a time: {log}");
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));

    // Again, with a log elsewhere, and ended by a signal.
    test_dir.succeeds(&format!("mount {VOLUME} mnt --background --log ./mount.log"));
    assert_eq!(fs::read_to_string(test_dir.path("mnt/file")).unwrap(), "kept");
    let pid = logged_pid(&fs::read_to_string(test_dir.path("mount.log")).unwrap());
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    wait_until("the process has ended", || !is_running(pid));
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
    test_dir.succeeds(&format!("check {VOLUME}"));
}

/// If the disk failed because storage was damaged, `umount` fails as well, so that its user does
/// not assume that all data was stored.
#[test]
fn an_unmount_of_a_disk_that_failed_fails() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(16);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    test_dir.succeeds(&format!("mount {VOLUME} mnt --background --cache 0"));
    let contents = vec![7; 4 << 20];
    fs::write(test_dir.path("mnt/file"), &contents).unwrap();
    File::open(test_dir.path("mnt"))
        .and_then(|it| rustix::fs::syncfs(it).map_err(Into::into))
        .unwrap();
    let store = test_dir.store();
    store.replace(1 << 20, &vec![0; store.len() as usize - (2 << 20)]);
    fs::write(test_dir.path("mnt/other"), &contents).unwrap();
    let _ = rustix::fs::syncfs(File::open(test_dir.path("mnt")).unwrap());
    test_dir.fails_with("umount mnt", 1, "but its server failed");
    test_dir.fails_with(&format!("info {VOLUME} --require-clean"), 14, "");
}

#[test]
fn an_error_before_mounting_is_reported_with_its_exit_code() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_data(4);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    fs::write(test_dir.path("other"), "another key, of 32 bytes or more").unwrap();
    let pipe = Command::new("mkfifo").arg(test_dir.path("pipe")).status().unwrap();
    assert!(pipe.success());
    for (command_line, code, advice) in [
        ("mount disk.obl mnt --background --key-file other", 6, "key list"),
        ("mount disk.obl mnt --background --key-file key", 3, "it was not changed"),
        ("mount nowhere.obl mnt --background --key-file key", 3, "check the path"),
        ("mount disk.obl mnt --background --key-file key --state none", 11, "--state"),
        ("serve nbd disk.obl --background --log pipe --key-file key", 4, "choose another"),
        ("serve nbd disk.obl --rescued --background --key-file key", 3, "with --log"),
        ("mount disk.obl mnt --log x --key-file key", 2, "required arguments"),
        ("mount disk.obl mnt --raw --background --log no/x --key-file key", 4, "choose another"),
    ] {
        let message = fails_with(test_dir.path(""), command_line, code);
        assert_eq!(message.matches(advice).count(), 1, "{command_line}: {message}");
    }
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(test_dir.path("mnt").to_str().unwrap()), "{mounts}");
}

#[test]
fn a_server_continues_in_the_background_until_it_is_killed() {
    let test_dir = TestDir::with_data(4);
    let printed = test_dir.json(&format!("serve nbd {VOLUME} --background --json"));
    let pid = printed["pid"].as_i64().unwrap() as i32;
    assert!(is_running(pid));
    let copied = Command::new("nbdcopy")
        .args([printed["uri"].as_str().unwrap(), test_dir.path("back").to_str().unwrap()])
        .status()
        .unwrap();
    assert!(copied.success());
    assert!(fs::read(test_dir.path("back")).unwrap() == fs::read(test_dir.path("data")).unwrap());
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    wait_until("the process has ended", || !is_running(pid));
    let log = fs::read_to_string(test_dir.state().join("background.log")).unwrap();
    assert!(log.ends_with("the volume is closed\n"), "{log}");
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
    test_dir.fails_with(&format!("serve nbd {VOLUME} --background --run true"), 2, "--background");
}

/// A server in the background keeps serving the disk after the terminal session that started it has
/// ended. Only the owner can read its log.
#[test]
fn a_server_in_the_background_outlives_its_terminal() {
    let test_dir = TestDir::new();
    fs::write(test_dir.path("words"), "Vollmond-Kaktus-7193\n").unwrap();
    test_dir.succeeds("create disk.obl --size 4M --passphrase-file words --unlock-millis 1");
    let terminal = Terminal::new();
    let line = "serve nbd disk.obl --background --json --log ./serve.log";
    let mut session = terminal.run(&command(&test_dir.path(""), line)).spawn().unwrap();
    let mut answered = false;
    let shown = terminal.type_secrets(|shown| {
        (shown.contains("Passphrase:") && !mem::replace(&mut answered, true))
            .then(|| "Vollmond-Kaktus-7193".to_owned())
    });
    assert!(session.wait().unwrap().success(), "{shown}");
    let log = fs::read_to_string(test_dir.path("serve.log")).unwrap();
    assert_eq!(
        fs::metadata(test_dir.path("serve.log")).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let pid = logged_pid(&log);
    // Wait for the signal that a closing terminal sends.
    thread::sleep(Duration::from_millis(200));
    assert!(is_running(pid), "{log}");
    for file in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("Vollmond"), "{file}");
    }
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    wait_until("the process has ended", || !is_running(pid));
}

/// If the report about the disk cannot be delivered, the disk is closed.
#[test]
fn a_disk_is_closed_if_its_report_cannot_be_delivered() {
    let test_dir = TestDir::with_volume(4);
    let line = format!("serve nbd {VOLUME} --background --log ./serve.log");
    let full = File::options().write(true).open("/dev/full").unwrap();
    let ended = command(&test_dir.path(""), &line).stdout(full).stderr(Stdio::null()).status();
    assert_eq!(ended.unwrap().code(), Some(4));
    let log = fs::read_to_string(test_dir.path("serve.log")).unwrap();
    assert!(log.ends_with("the volume is closed\n"), "{log}");
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

/// The passphrase does not appear in the command line or the environment of the process in the
/// background.
#[test]
fn the_passphrase_is_not_handed_over() {
    let test_dir = TestDir::new();
    fs::write(test_dir.path("words"), "Vollmond-Kaktus-7193\n").unwrap();
    test_dir.succeeds("create disk.obl --size 4M --passphrase-file words --unlock-millis 1");
    let printed = succeeds(
        test_dir.path(""),
        "serve nbd disk.obl --passphrase-command 'cat words' --background --json",
    );
    let pid = serde_json::from_str::<serde_json::Value>(&printed).unwrap()["pid"].as_i64().unwrap();
    for file in ["cmdline", "environ"] {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("Vollmond"), "{file}");
    }
    let pid = pid as i32;
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    wait_until("the process has ended", || !is_running(pid));
}

/// A server in the background closes the files that it inherited, once the disk can be used. The
/// parent may have left them open by mistake: a lock, or a pipe whose reader waits until every
/// writer has closed it.
#[test]
fn inherited_files_are_closed() {
    let test_dir = TestDir::with_volume(4);
    fs::write(test_dir.path("lock"), "").unwrap();
    // The key comes from one of these files, so the server cannot close them at once.
    let script = "exec 7<lock 8<lock 9<key; \
                  exec \"$0\" serve nbd disk.obl --key-file /dev/fd/9 --background --json";
    let mut shell = Command::new("sh");
    shell.current_dir(test_dir.path("")).args(["-c", script]).arg(env!("CARGO_BIN_EXE_oblivio"));
    shell.envs(
        command(&test_dir.path(""), "").get_envs().filter_map(|(name, it)| Some((name, it?))),
    );
    let output = shell.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let pid = printed["pid"].as_i64().unwrap() as i32;
    let open = || fs::read_dir(format!("/proc/{pid}/fd")).unwrap().map(|it| it.unwrap().path());
    let inherited = [test_dir.path("lock"), test_dir.path("key")];
    let is_inherited = |path: &Path| inherited.iter().any(|it| it == path);
    let held = || open().filter_map(|it| fs::read_link(it).ok()).any(|it| is_inherited(&it));
    // The server reports that it is ready a moment before it closes these files.
    wait_until("what was inherited is closed", || !held());
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    wait_until("the process has ended", || !is_running(pid));
}

/// The address of the watch page is secret: it is printed, and written to no file.
#[test]
fn the_page_address_of_a_disk_in_the_background_is_printed_and_not_logged() {
    let test_dir = TestDir::with_volume(4);
    let printed = test_dir.succeeds(&format!("serve nbd {VOLUME} --background --watch"));
    let page = printed.lines().find_map(|line| line.strip_prefix("watch it at ")).unwrap();
    let address = Address::enter(page);
    let answer = address.get(&format!("/{}/", address.token), &address.host());
    assert!(answer.contains("What storage sees"), "{answer}");
    let log = fs::read_to_string(test_dir.state().join("background.log")).unwrap();
    assert!(log.contains("serving at") && !log.contains("watch it at"), "{log}");
    let pid = logged_pid(&log);
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    wait_until("the process has ended", || !is_running(pid));
}

/// If the starting process has died before the disk can be used, the disk is closed.
#[test]
fn a_disk_whose_starting_process_has_died_is_closed() {
    let test_dir = TestDir::new();
    fs::write(test_dir.path("words"), "Vollmond-Kaktus-7193\n").unwrap();
    test_dir.succeeds("create disk.obl --size 4M --passphrase-file words --unlock-millis 1");
    let wait = "echo $PPID > pid; until [ -e go ]; do sleep 0.01; done; cat words";
    let line = format!("serve nbd disk.obl --passphrase-command '{wait}' --background");
    let mut beginner = command(&test_dir.path(""), &line)
        .stdout(Stdio::null())
        .stderr(File::create(test_dir.path("messages")).unwrap())
        .spawn()
        .unwrap();
    let pid = || fs::read_to_string(test_dir.path("pid")).ok()?.trim().parse::<i32>().ok();
    wait_until("it asks for the passphrase", || pid().is_some());
    let pid = pid().unwrap();
    assert!(pid != beginner.id() as i32 && is_running(pid));
    beginner.kill().unwrap();
    beginner.wait().unwrap();
    fs::write(test_dir.path("go"), "").unwrap();
    wait_until("the process has ended", || !is_running(pid));
    let messages = fs::read_to_string(test_dir.path("messages")).unwrap();
    assert!(messages.contains("the process that started this one has ended"), "{messages}");
    test_dir.succeeds("info disk.obl --passphrase-file words --require-clean");
}
