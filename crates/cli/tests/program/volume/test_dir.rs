//! A directory with a volume in it, and a server that is killed when dropped.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use oblivio_volume::Coins;
use oblivio_volume::state_dir::{FILLER, FILLER_BYTES};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::tools::run;
use crate::common;

pub(crate) const MIB: u64 = 1 << 20;

/// Time limit of a wait: long enough for a busy machine, and short enough for a hanging test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Pause between signals. Signals of one kind that come too close together are merged.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(100);

/// The arguments that open the volume of a [`TestDir`].
pub(crate) const VOLUME: &str = "disk.obl --key-file key";

/// A temporary directory with a key file `key`.
pub(crate) struct TestDir(TempDir);

impl TestDir {
    pub(crate) fn new() -> Self {
        let dir = TempDir::new().unwrap();
        fs::write(dir.path().join("key"), bytes(1, 32)).unwrap();
        Self(dir)
    }

    /// A test directory with a volume `disk.obl` of `mib` MiB.
    pub(crate) fn with_volume(mib: u64) -> Self {
        let test_dir = Self::new();
        test_dir.succeeds(&format!("create {VOLUME} --size {mib}M"));
        test_dir
    }

    /// A test directory with a volume that holds random data, which is also in the file `data`.
    pub(crate) fn with_data(mib: u64) -> Self {
        let test_dir = Self::with_volume(mib);
        fs::write(test_dir.path("data"), bytes(2, mib * MIB)).unwrap();
        test_dir.fill();
        test_dir
    }

    /// Copies the file `data` to the volume.
    pub(crate) fn fill(&self) {
        self.succeeds(&format!("serve nbd {VOLUME} --run 'nbdcopy --flush data \"$uri\"'"));
    }

    /// Checks that the volume opens, is intact, and holds the contents of `data`.
    pub(crate) fn assert_nothing_is_lost(&self) {
        self.succeeds(&format!("check {VOLUME}"));
        self.succeeds(&format!(
            "serve nbd {VOLUME} --run 'nbdcopy \"$uri\" back && cmp data back'"
        ));
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn succeeds(&self, command_line: &str) -> String {
        common::succeeds(&self.0, command_line)
    }

    pub(crate) fn json(&self, command_line: &str) -> Value {
        serde_json::from_str(&self.succeeds(command_line)).unwrap()
    }

    /// Checks that `command_line` ends with `code`, and that its message contains `advice`.
    pub(crate) fn fails_with(&self, command_line: &str, code: i32, advice: &str) {
        let message = common::fails_with(&self.0, command_line, code);
        assert!(message.contains(advice), "{command_line}: {message:?} lacks {advice:?}");
    }

    /// Checks that the modes of the file or directory `path`, and of everything in it, deny access
    /// to other users.
    pub(crate) fn assert_private(&self, path: impl AsRef<Path>) {
        let path = self.path(path);
        let mode = path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
        if path.is_dir() {
            for entry in fs::read_dir(&path).unwrap() {
                self.assert_private(entry.unwrap().path());
            }
        }
    }

    /// The client's directory of the one volume.
    pub(crate) fn state(&self) -> PathBuf {
        let mut states = fs::read_dir(self.path("state-home/oblivio")).unwrap();
        let state = states.next().unwrap().unwrap().path();
        assert!(states.next().is_none(), "there is more than one");
        state
    }

    /// The latest state file in the client's directory.
    pub(crate) fn state_file(&self) -> PathBuf {
        let files = fs::read_dir(self.state()).unwrap().map(|entry| entry.unwrap().path());
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let states = files.filter(|path| name(path).starts_with("state-"));
        states.max_by_key(|path| name(path)["state-".len()..].parse::<u64>().unwrap_or(0)).unwrap()
    }

    /// Copies a file or a directory, and keeps it sparse. Replaces an existing directory `to`.
    pub(crate) fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) {
        let (from, to) = (self.path(from), self.path(to));
        if to.is_dir() {
            fs::remove_dir_all(&to).unwrap();
        }
        let output = std::process::Command::new("cp")
            .args(["-r", "--sparse=always"])
            .args([&from, &to])
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    /// The volume's file, for tests that tamper with it.
    pub(crate) fn store(&self) -> Bytes {
        Bytes::of(&self.path("disk.obl"))
    }

    /// Starts a server of the volume, and waits until it is ready.
    pub(crate) fn serve(&self, options: &str) -> Server {
        Server::start(self, options).ready()
    }
}

/// Pseudorandom bytes, the same for the same seed.
pub(crate) fn bytes(seed: u64, bytes: u64) -> Vec<u8> {
    let mut data = vec![0; bytes as usize];
    // `Coins` is in a crate that is optimised in tests: drawing here would take a fifth of their
    // time.
    Coins::from(StdRng::seed_from_u64(seed)).fill_bytes(&mut data);
    data
}

/// A file whose bytes are read and changed in place.
pub(crate) struct Bytes(File);

impl Bytes {
    pub(crate) fn of(path: &Path) -> Self {
        Self(File::options().read(true).write(true).open(path).unwrap())
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.metadata().unwrap().len()
    }

    /// Offset of the filler in a state file, after the records.
    pub(crate) fn appended(&self) -> u64 {
        let len = self.len();
        let from = len.saturating_sub(2 * FILLER_BYTES);
        let end = self.read(from, len - from);
        from + end.iter().rposition(|byte| *byte != FILLER).map_or(0, |last| last as u64 + 1)
    }

    pub(crate) fn read(&self, at: u64, bytes: u64) -> Vec<u8> {
        let mut read = vec![0; bytes as usize];
        self.0.read_exact_at(&mut read, at).unwrap();
        read
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) {
        self.0.write_all_at(bytes, at).unwrap();
    }

    /// Replaces the bytes at `at`, and returns the previous ones.
    pub(crate) fn replace(&self, at: u64, bytes: &[u8]) -> Vec<u8> {
        let old = self.read(at, bytes.len() as u64);
        self.0.write_all_at(bytes, at).unwrap();
        old
    }

    pub(crate) fn set_len(&self, bytes: u64) {
        self.0.set_len(bytes).unwrap();
    }
}

/// A process that serves the volume. Killed when dropped.
pub(crate) struct Server {
    child: Child,
    uri: String,
    page: Option<String>,
    repeated: u64,
    socket: PathBuf,
    messages: PathBuf,
}

impl Server {
    /// Starts the process, and does not wait until it is ready.
    pub(crate) fn start(test_dir: &TestDir, options: &str) -> Self {
        let command_line = format!("serve nbd {VOLUME} --json {options}");
        Self::spawn(test_dir, hearing_signals(&common::command(test_dir.0.path(), &command_line)))
    }

    /// Starts the process in a shell. `first` ends with `exec`, so that the shell becomes the
    /// process.
    pub(crate) fn start_in_shell(test_dir: &TestDir, first: &str) -> Self {
        let server = common::command(test_dir.0.path(), &format!("serve nbd {VOLUME} --json"));
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &format!("{first} \"$0\" \"$@\"")]);
        shell.arg(server.get_program()).args(server.get_args());
        shell.current_dir(test_dir.0.path()).stdin(Stdio::null());
        shell.envs(server.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self::spawn(test_dir, shell)
    }

    fn spawn(test_dir: &TestDir, mut command: Command) -> Self {
        let messages = test_dir.path("messages");
        let child = command
            .stdout(Stdio::piped())
            .stderr(File::create(&messages).unwrap())
            .spawn()
            .unwrap();
        let socket = test_dir.state().join("nbd.sock");
        Self { child, uri: String::new(), page: None, repeated: 0, socket, messages }
    }

    /// Waits until the volume is served.
    pub(crate) fn ready(mut self) -> Self {
        let mut line = String::new();
        BufReader::new(self.child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let printed: Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("{}", fs::read_to_string(&self.messages).unwrap()));
        self.uri = printed["uri"].as_str().unwrap().to_owned();
        self.page = printed["watch"].as_str().map(str::to_owned);
        // A server with `--rescued` reports no recovery.
        self.repeated = printed["accesses_repeated"].as_u64().unwrap_or_default();
        self
    }

    pub(crate) fn uri(&self) -> &str {
        &self.uri
    }

    /// The URL of the page that watches the disk.
    pub(crate) fn page(&self) -> &str {
        self.page.as_deref().unwrap()
    }

    /// The default socket file. With `--socket` or `--tcp`, the server does not use it.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Number of accesses that the recovery repeated when the volume was opened.
    pub(crate) fn repeated(&self) -> u64 {
        self.repeated
    }

    /// The messages of the process so far.
    pub(crate) fn messages(&self) -> String {
        fs::read_to_string(&self.messages).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the process has died.
    pub(crate) fn wait_for_death(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops the process with SIGTERM. Returns its exit code and its messages.
    pub(crate) fn stop(self) -> (i32, String) {
        self.end_by(&[Signal::TERM])
    }

    /// Sends each signal once, and waits until the process ends. Returns its exit code and its
    /// messages.
    pub(crate) fn end_by(mut self, signals: &[Signal]) -> (i32, String) {
        let code = end_by(&mut self.child, signals);
        let messages = self.messages();
        (code.unwrap_or_else(|| panic!("a signal ended it: {messages}")), messages)
    }

    /// Kills the process.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        assert_eq!(wait(&mut self.child), None, "it was killed");
    }

    /// Copies a file to the disk.
    pub(crate) fn write(&self, file: &Path) {
        run("nbdcopy", &["--flush", file.to_str().unwrap(), self.uri()]);
    }

    /// The contents of the disk.
    pub(crate) fn contents(&self) -> Vec<u8> {
        let folder = TempDir::new().unwrap();
        let copy = folder.path().join("copy");
        run("nbdcopy", &[self.uri(), copy.to_str().unwrap()]);
        fs::read(copy).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// Kills a process that has not ended, and waits for it.
pub(crate) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Sends each signal once, with time to notice each, and waits until the process ends. Returns the
/// exit code, or `None` if a signal ended the process.
pub(crate) fn end_by(child: &mut Child, signals: &[Signal]) -> Option<i32> {
    for (nth, signal) in signals.iter().enumerate() {
        if nth > 0 {
            thread::sleep(BETWEEN_SIGNALS);
        }
        // The process may have ended before a later signal.
        let _ = kill_process(Pid::from_child(child), *signal);
    }
    wait(child)
}

/// Polls until `is_so` returns true. Panics with `what` after [`PATIENCE`].
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    const LOOK: Duration = Duration::from_micros(200);
    let mut looks = 0;
    while !is_so() {
        thread::sleep(LOOK);
        looks += 1;
        assert!(looks < PATIENCE.as_micros() / LOOK.as_micros(), "waited too long: {what}");
    }
}

/// Returns `command` with the default handling of HUP, INT, QUIT and TERM. The tests themselves may
/// run with ignored signals: `nohup` ignores hangups, and a shell makes background processes ignore
/// Ctrl-C.
pub(crate) fn hearing_signals(command: &Command) -> Command {
    let mut env = Command::new("env");
    env.arg("--default-signal=HUP,INT,QUIT,TERM")
        .arg(command.get_program())
        .args(command.get_args());
    env.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    env.stdin(Stdio::null());
    if let Some(dir) = command.get_current_dir() {
        env.current_dir(dir);
    }
    env
}

/// Waits for the exit code, with a time limit. `None` if a signal ended the process.
pub(crate) fn wait(child: &mut Child) -> Option<i32> {
    const LOOK: Duration = Duration::from_millis(5);
    for _ in 0..PATIENCE.as_millis() / LOOK.as_millis() {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        thread::sleep(LOOK);
    }
    panic!("the process did not end");
}
