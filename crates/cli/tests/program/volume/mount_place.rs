//! A mount is refused if it would hide its own files, or if it could deadlock in a limited memory
//! cgroup.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio, id};

use super::needs::can_mount;
use super::test_dir::{TestDir, VOLUME, wait, wait_until};
use crate::common::{command, oblivio};

fn is_mounted(directory: &Path) -> bool {
    fs::read_to_string("/proc/self/mountinfo").unwrap().contains(directory.to_str().unwrap())
}

#[test]
fn a_mount_that_would_hide_its_own_files_is_refused() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(4);
    let at = |name: &str| test_dir.path(name);
    fs::create_dir(at("mnt")).unwrap();
    symlink("mnt/new", at("link")).unwrap();
    symlink("mnt", at("folder")).unwrap();
    for name in ["key", "disk.obl"] {
        fs::copy(at(name), at("mnt").join(name)).unwrap();
    }
    test_dir.succeeds("create other.obl --size 4M --key-file key --state mnt/state");
    let names = || fs::read_dir(at("mnt")).unwrap().count();
    let before = names();
    for (line, file) in [
        ("mount disk.obl mnt --key-file key --background --log mnt/log", "mnt/log"),
        ("mount disk.obl mnt --key-file key --background --log link", "link"),
        ("mount disk.obl mnt --key-file key --background --log folder/log", "folder/log"),
        ("mount disk.obl folder --key-file key --background --log mnt/log", "mnt/log"),
        ("mount other.obl mnt --key-file key --state mnt/state --background", "mnt/state"),
        ("mount other.obl mnt --key-file key --state mnt/state --raw", "mnt/state"),
        ("mount disk.obl mnt --key-file mnt/key", "mnt/key"),
        ("mount mnt/disk.obl mnt --key-file key", "mnt/disk.obl"),
        ("mount stripe:disk.obl,mnt/disk.obl mnt --key-file key", "mnt/disk.obl"),
        ("mount disk.obl mnt --key-file key --record-view mnt/view", "mnt/view"),
        // Files that no option names: the client's directory of this volume, and the directory in
        // which mounts are registered.
        ("mount disk.obl state-home --key-file key --background", "state-home/oblivio/"),
        ("mount disk.obl . --key-file key", "disk.obl"),
        ("mount disk.obl /run --key-file key --state nowhere", "/run/oblivio"),
        ("mount disk.obl / --key-file key --state nowhere --raw", ""),
    ] {
        let (code, _, message) = oblivio(at(""), line);
        assert!(code == 3, "{line}: {code}: {message}");
        assert!(
            message.contains(&format!("{file} lies below")) || file.ends_with('/'),
            "{line}: {message}"
        );
        assert!(message.contains("the mount would hide it"), "{line}: {message}");
        assert!(!is_mounted(&at("mnt")) && !is_mounted(&at("state-home")), "{line}");
    }
    assert_eq!(names(), before, "no log was made");
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

/// A log file below a bind mount of the mount point is refused, because the new mount may appear in
/// the bind mount as well and hide the file.
#[test]
fn a_file_below_a_bind_mount_of_the_mount_point_is_hidden_too() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::with_volume(4);
    let (directory, bound) = (test_dir.path("mnt"), test_dir.path("bound"));
    for folder in [&directory, &bound] {
        fs::create_dir(folder).unwrap();
    }
    let bind = Command::new("mount").arg("--bind").args([&directory, &bound]).status().unwrap();
    assert!(bind.success());
    let line = format!("mount {VOLUME} mnt --background --log bound/log");
    let (code, _, message) = oblivio(test_dir.path(""), &line);
    let unbound = Command::new("umount").arg(&bound).status().unwrap();
    assert!(code == 3 && message.contains("bound/log lies below"), "{code}: {message}");
    assert!(unbound.success() && !is_mounted(&directory));
}

/// A memory cgroup (version 1), removed when dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// Makes a cgroup with a memory limit. `None`, with the reason on standard output, if the
    /// system has no such cgroups.
    fn with_limit(name: &str, bytes: u64) -> Option<Self> {
        let directory =
            PathBuf::from(format!("/sys/fs/cgroup/memory/oblivio-test-{name}-{}", id()));
        let limit = directory.join("memory.limit_in_bytes");
        let made = fs::create_dir(&directory).and_then(|()| fs::write(limit, bytes.to_string()));
        if let Err(error) = made {
            println!("left out: no memory cgroup of version 1 can be made here: {error}");
            return None;
        }
        Some(Self(directory))
    }

    /// Runs a line of shell in the cgroup. `$0` is the program.
    fn shell(&self, test_dir: &TestDir, line: &str) -> Command {
        let mut shell = Command::new("sh");
        let script = format!("echo $$ > {}/cgroup.procs && {line}", self.0.display());
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_oblivio")]).current_dir(test_dir.path(""));
        let program = command(&test_dir.path(""), "");
        shell.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        shell
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        wait_until("the cgroup is empty", || fs::remove_dir(&self.0).is_ok());
    }
}

const WITHOUT_CAPABILITY: &str = "setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource";

/// A writable mount in a memory cgroup with a limit is refused without `CAP_SYS_RESOURCE`: the
/// mount and a program that writes to it could wait for each other forever.
#[test]
fn a_mount_in_a_limited_memory_cgroup_needs_the_capability() {
    if !can_mount() {
        return;
    }
    let Some(group) = MemoryGroup::with_limit("refused", 100 << 20) else { return };
    let test_dir = TestDir::with_volume(4);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    let run =
        |line: &str| group.shell(&test_dir, &format!("exec {WITHOUT_CAPABILITY} \"$0\" {line}"));
    for options in ["", "--background", "--no-mkfs"] {
        let Output { status, stderr, .. } =
            run(&format!("mount {VOLUME} mnt {options}")).output().unwrap();
        let message = String::from_utf8(stderr).unwrap();
        assert_eq!(status.code(), Some(1), "{options}: {message}");
        assert!(message.contains("limited to 100 MiB"), "{message}");
        assert!(message.contains("SYS_RESOURCE") && message.contains("cgroup.procs"), "{message}");
        assert!(!is_mounted(&test_dir.path("mnt")));
    }
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));

    // A mount outside the cgroup works, and warns.
    let line = format!("mount {VOLUME} mnt --background");
    let program = env!("CARGO_BIN_EXE_oblivio");
    let mut outside = Command::new("setpriv");
    outside.args(WITHOUT_CAPABILITY.split(' ').skip(1)).arg(program);
    let same = command(&test_dir.path(""), &line);
    outside.args(same.get_args()).current_dir(test_dir.path("")).stdin(Stdio::null());
    outside.envs(same.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let Output { status, stderr, .. } = outside.output().unwrap();
    let message = String::from_utf8(stderr).unwrap();
    assert!(status.success() && message.contains("Grant CAP_SYS_RESOURCE"), "{message}");
    fs::write(test_dir.path("mnt/file"), "kept").unwrap();
    test_dir.succeeds("umount mnt");
    let log = fs::read_to_string(test_dir.state().join("background.log")).unwrap();
    assert!(log.contains("Grant CAP_SYS_RESOURCE"), "{log}");

    // A read-only mount and a mount of the raw disk cannot deadlock, because no file system of the
    // kernel writes back to them.
    for (options, name) in [("--read-only", "file"), ("--raw", "disk")] {
        let mounted = run(&format!("mount {VOLUME} mnt --background {options}")).output().unwrap();
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
        assert!(test_dir.path("mnt").join(name).exists());
        test_dir.succeeds("umount mnt");
    }
}

/// With `CAP_SYS_RESOURCE`, a mount and a program can share a memory cgroup, even if the program
/// writes more bytes than the cgroup's limit.
#[test]
fn a_mount_and_its_user_fit_into_one_memory_cgroup() {
    if !can_mount() {
        return;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    const SYS_RESOURCE: u32 = 24;
    if u64::from_str_radix(capabilities.trim(), 16).unwrap() >> SYS_RESOURCE & 1 == 0 {
        println!("left out: this process has no CAP_SYS_RESOURCE");
        return;
    }
    let Some(group) = MemoryGroup::with_limit("shared", 100 << 20) else { return };
    let test_dir = TestDir::with_volume(256);
    fs::create_dir(test_dir.path("mnt")).unwrap();
    let line = format!("\"$0\" mount {VOLUME} mnt --background");
    let mounted = group.shell(&test_dir, &line).output().unwrap();
    assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
    let write = "exec dd if=/dev/zero of=mnt/file bs=1M count=150 conv=fsync status=none";
    let mut writer: Child = group.shell(&test_dir, write).spawn().unwrap();
    assert_eq!(wait(&mut writer), Some(0));
    test_dir.succeeds("umount mnt");
}
