//! A volume that is mounted as a file system, once or repeatedly.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::needs::can_mount;
use super::test_dir::{
    MIB, TestDir, VOLUME, bytes, end, end_by, hearing_signals, wait, wait_until,
};
use crate::common::{self, oblivio};

/// A process that keeps a volume mounted on `mnt`.
pub(crate) struct Mount {
    child: Child,
    directory: PathBuf,
    messages: PathBuf,
}

impl Mount {
    pub(crate) fn new(test_dir: &TestDir, options: &str) -> Self {
        let mut mount = Self::start(test_dir, options);
        let mut printed = String::new();
        BufReader::new(mount.child.stdout.take().unwrap()).read_line(&mut printed).unwrap();
        assert!(printed.contains("mnt"), "{printed:?} {}", mount.messages());
        mount
    }

    /// Starts a mount that may fail.
    fn start(test_dir: &TestDir, options: &str) -> Self {
        let (directory, messages) = (test_dir.path("mnt"), test_dir.path("messages"));
        if !directory.is_dir() {
            fs::create_dir(&directory).unwrap();
        }
        let mount = common::command(&test_dir.path(""), &format!("mount {VOLUME} mnt {options}"));
        let child = hearing_signals(&mount)
            .stdout(Stdio::piped())
            .stderr(File::create(&messages).unwrap())
            .spawn()
            .unwrap();
        Self { child, directory, messages }
    }

    fn messages(&self) -> String {
        fs::read_to_string(&self.messages).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Sends each signal once, and waits until the mount ends. Returns its exit code (`None` if a
    /// signal ended it) and its messages.
    pub(crate) fn end_by(mut self, signals: &[Signal]) -> (Option<i32>, String) {
        (end_by(&mut self.child, signals), self.messages())
    }

    /// Waits for the mount's end. Returns its exit code and its messages.
    pub(crate) fn ended(self) -> (Option<i32>, String) {
        self.end_by(&[])
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Unmounts with `oblivio umount`, which also closes the volume.
    pub(crate) fn unmount(mut self, test_dir: &TestDir) {
        test_dir.succeeds("umount mnt");
        assert_eq!(wait(&mut self.child), Some(0));
        assert!(!is_mounted(&self.directory));
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|status| status.is_some()) {
            return;
        }
        // On this signal, a mount that still works unmounts by itself.
        let signaled = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let ended = (0..100).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            self.child.try_wait().is_ok_and(|status| status.is_some())
        });
        if signaled.is_err() || !ended {
            let _ = Command::new("umount").arg("--lazy").arg(&self.directory).status();
            end(&mut self.child);
        }
    }
}

fn is_mounted(directory: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    mounts.contains(directory.to_str().unwrap())
}

/// The options of the file system that is mounted on `directory`.
fn options_of(directory: &Path) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let line = lines.find(|fields| Path::new(fields[4]) == directory).unwrap();
    line[5].split(',').map(str::to_owned).collect()
}

fn fill(directory: &Path) {
    for (n, size) in [0, 1, 4096, 100_000, 3_000_000].into_iter().enumerate() {
        let inner = directory.join(format!("directory {n}"));
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("file"), bytes(n as u64, size)).unwrap();
    }
}

fn assert_same(one: &Path, other: &Path) {
    let output = Command::new("diff")
        .args(["--recursive", "--exclude=lost+found"])
        .args([one, other])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn files_survive_from_mount_to_mount() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(32);
    let source = test_dir.path("source");
    fs::create_dir(&source).unwrap();
    fill(&source);
    let mount = Mount::new(&test_dir, "");
    fill(&mount.directory);
    test_dir.fails_with(&format!("check {VOLUME}"), 9, "close it there first");
    mount.unmount(&test_dir);
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
    test_dir.succeeds(&format!("check {VOLUME}"));

    // The file system exists already, so it is not made again.
    let mount = Mount::new(&test_dir, "--no-mkfs");
    assert_same(&source, &mount.directory);
    fs::remove_dir_all(mount.path("directory 4")).unwrap();
    mount.unmount(&test_dir);
    let mount = Mount::new(&test_dir, "--read-only --cache 1M");
    assert!(!mount.path("directory 4").exists());
    assert!(fs::write(mount.path("new"), "").is_err());
    fs::remove_dir_all(source.join("directory 4")).unwrap();
    assert_same(&source, &mount.directory);
    mount.unmount(&test_dir);
    test_dir.succeeds(&format!("check {VOLUME}"));
}

#[test]
fn files_that_were_synced_survive_a_kill() {
    survive_a_kill("raw", 32 * MIB, 2 * MIB);
    survive_a_kill("range", 16 * MIB, 2 * MIB);
    survive_a_kill("scan", 2 * MIB, MIB / 4);
}

fn survive_a_kill(scheme: &str, disk_bytes: u64, file_bytes: u64) {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::new();
    test_dir.succeeds(&format!("create {VOLUME} --scheme {scheme} --size {disk_bytes}"));
    let data = bytes(9, file_bytes);
    let mut mount = Mount::new(&test_dir, "");
    let file = File::create(mount.path("file")).unwrap();
    file.write_all_at(&data, 0).unwrap();
    file.sync_all().unwrap();
    File::open(&mount.directory).unwrap().sync_all().unwrap();
    drop(file);
    mount.child.kill().unwrap();
    assert_eq!(wait(&mut mount.child), None);
    test_dir.fails_with(&format!("info {VOLUME} --require-clean"), 14, "recovers");
    // The remains of the dead process are unmounted by this command, unless another mount did that.
    let (code, _, message) = oblivio(test_dir.path(""), "umount mnt");
    let is_unmounted = code == 3 && message.contains("no volume is mounted on mnt");
    assert!(code == 0 || is_unmounted, "{code}: {message}");
    assert!(!is_mounted(&mount.directory));
    let mount = Mount::new(&test_dir, "");
    assert!(fs::read(mount.path("file")).unwrap() == data);
    mount.unmount(&test_dir);
    test_dir.succeeds(&format!("check {VOLUME}"));
}

#[test]
fn the_raw_disk_is_a_file() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_data(4);
    let mut data = fs::read(test_dir.path("data")).unwrap();
    let mount = Mount::new(&test_dir, "--raw");
    assert!(fs::read(mount.path("disk")).unwrap() == data);
    let new = bytes(10, 100_000);
    let disk = File::options().write(true).open(mount.path("disk")).unwrap();
    disk.write_all_at(&new, 12_345).unwrap();
    disk.sync_all().unwrap();
    drop(disk);
    mount.unmount(&test_dir);
    data[12_345..12_345 + new.len()].copy_from_slice(&new);
    fs::write(test_dir.path("data"), data).unwrap();
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_file_system_is_made_only_if_no_block_holds_data() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(32);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    // The data lies far from both ends of the disk, where file systems keep their signatures.
    let qemu_io = |command: &str| {
        test_dir.succeeds(&format!(
            "serve nbd {VOLUME} --run 'qemu-io --format raw --discard unmap --cmd \"{command}\" \
             \"$uri\"'"
        ));
    };
    qemu_io("write -P 0x5a 12M 4M");
    for options in ["", "--no-mkfs", "--read-only"] {
        let (code, messages) = Mount::start(&test_dir, options).ended();
        assert_eq!(code, Some(3), "{options}: {messages}");
        assert!(messages.contains("mkfs.ext4 on the file `disk`"), "{options}: {messages}");
    }
    qemu_io("read -P 0x5a 12M 4M");
    qemu_io("read -P 0 0 12M");
    // Discarded blocks hold no data.
    qemu_io("discard 12M 4M");
    let mount = Mount::new(&test_dir, "");
    fs::write(mount.path("file"), "content").unwrap();
    mount.unmount(&test_dir);
    test_dir.succeeds(&format!("check {VOLUME}"));
}

/// A mount ignores set-uid bits and device files, because anyone who has a key can put such files
/// on the disk.
#[test]
fn set_uid_programs_and_devices_on_the_disk_give_no_rights() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(4);
    for options in ["", "--read-only", "--raw"] {
        let mount = Mount::new(&test_dir, options);
        let found = options_of(&mount.directory);
        for wanted in ["nosuid", "nodev"] {
            assert!(found.iter().any(|option| option == wanted), "{options}: {found:?}");
        }
        mount.unmount(&test_dir);
    }
}

#[test]
fn a_file_system_is_made_over_data_on_purpose() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_data(4);
    let mount = Mount::new(&test_dir, "--raw");
    let made = Command::new("mkfs.ext4").arg("-q").arg(mount.path("disk")).status().unwrap();
    assert!(made.success());
    mount.unmount(&test_dir);
    Mount::new(&test_dir, "--no-mkfs").unmount(&test_dir);
}

/// `umount` works at every moment of a mount's start. Only before the mount is registered, `umount`
/// reports that nothing is mounted.
#[test]
fn a_mount_that_is_still_starting_can_be_unmounted() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(4);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    for delay_ms in [20, 60, 120, 250, 400] {
        let line = format!("mount {VOLUME} mnt");
        let mut child =
            common::command(&test_dir.path(""), &line).stdout(Stdio::null()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(delay_ms));
        let mut umount = common::command(&test_dir.path(""), "umount mnt");
        let mut umount = umount.stderr(Stdio::piped()).spawn().unwrap();
        let code = wait(&mut umount);
        let messages = io::read_to_string(umount.stderr.take().unwrap()).unwrap();
        if code == Some(3) && messages.contains("no volume is mounted on") {
            // `umount` came before the registration.
            kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
            wait(&mut child);
        } else {
            assert_eq!((code, wait(&mut child)), (Some(0), Some(0)), "{delay_ms} ms: {messages}");
        }
        assert!(!is_mounted(&test_dir.path("mnt")));
    }
    test_dir.succeeds(&format!("check {VOLUME}"));
}

#[test]
fn impossible_mounts_and_unmounts_are_reported() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_data(4);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    test_dir.fails_with("umount mnt", 3, "no volume is mounted on");
    test_dir.fails_with(&format!("mount {VOLUME} key"), 3, "not a directory");
    test_dir.fails_with(&format!("mount {VOLUME} nowhere"), 3, "nowhere");
    // The disk holds data, but no file system.
    test_dir.fails_with(&format!("mount {VOLUME} mnt"), 3, "it was not changed");
    test_dir.fails_with(&format!("mount {VOLUME} mnt --no-mkfs"), 3, "it was not changed");
    let mount = Mount::new(&test_dir, "--raw");
    test_dir.succeeds("create other.obl --key-file key --size 16M --state others");
    test_dir.fails_with(
        "mount other.obl mnt --key-file key --state others --raw",
        9,
        "already served",
    );
    mount.unmount(&test_dir);
    test_dir.fails_with("mount other.obl mnt --key-file key --state others --no-mkfs", 3, "empty");
    fs::remove_dir_all(test_dir.path("others")).unwrap();
    test_dir.assert_nothing_is_lost();
}

/// If a mount was interrupted while it was unlocking its volume, `umount` reports that nothing is
/// mounted. If the mount was killed later, `umount` removes what it left.
#[test]
fn unmounting_what_was_never_mounted_is_reported() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(4);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    fs::write(test_dir.path("words"), "Vollmond-Kaktus-7193\n").unwrap();
    test_dir.succeeds("create slow.obl --size 4M --passphrase-file words --unlock-millis 1");
    let printed = umount_of_what_is_left(&test_dir, || {
        let line = "mount slow.obl mnt --passphrase-command 'touch asked; sleep 60'";
        let mut mount =
            hearing_signals(&common::command(&test_dir.path(""), line)).spawn().unwrap();
        wait_until("it asks", || test_dir.path("asked").exists());
        fs::remove_file(test_dir.path("asked")).unwrap();
        kill_process(Pid::from_child(&mount), Signal::INT).unwrap();
        assert_eq!(wait(&mut mount), None);
    });
    assert!(printed.contains("nothing is mounted on mnt"), "{printed}");
    test_dir.fails_with("umount mnt", 3, "no volume is mounted on");

    // A killed mount leaves something to unmount.
    let printed = umount_of_what_is_left(&test_dir, || {
        let mut mount = Mount::new(&test_dir, "--raw");
        mount.child.kill().unwrap();
        mount.child.wait().unwrap();
    });
    assert!(printed.contains("had died"), "{printed}");
}

/// Returns the output of `umount mnt` after `leave` has created the registration of a process that
/// is dead. If another mount, such as that of a parallel test, removes the registration first,
/// tries again.
fn umount_of_what_is_left(test_dir: &TestDir, leave: impl Fn()) -> String {
    const TIMES_MAX: u32 = 20;
    for _ in 0..TIMES_MAX {
        leave();
        let (code, printed, complaint) = oblivio(test_dir.path(""), "umount mnt");
        if code == 0 {
            return printed;
        }
        assert!(code == 3 && complaint.contains("no volume is mounted on"), "{code}: {complaint}");
    }
    panic!("another mount was always faster");
}
