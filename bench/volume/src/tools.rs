//! Finds, runs and stops other programs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Deserializer, Value};
use signal_hook::consts::TERM_SIGNALS;

use crate::subjects::Description;

/// The interval of checks while this program waits for another.
const LOOK: Duration = Duration::from_millis(20);

/// Time within which a started program must be ready, and a stopped program must end. A program
/// that does not end in time is killed. The time is long, because a volume writes back its cache
/// before it ends.
const PATIENCE: Duration = Duration::from_secs(120);

/// A flag that is set by a signal that asks this program to end.
pub struct End(Arc<AtomicBool>);

impl End {
    /// Starts to listen for signals.
    pub fn listen() -> Result<Self, String> {
        let requested = Arc::new(AtomicBool::new(false));
        for signal in TERM_SIGNALS {
            signal_hook::flag::register(*signal, requested.clone())
                .map_err(|error| format!("cannot listen for signals: {error}"))?;
        }
        Ok(Self(requested))
    }

    pub fn check(&self) -> Result<(), String> {
        match self.0.load(Ordering::Relaxed) {
            true => Err("stopped by a signal; stopped all programs and removed all files".into()),
            false => Ok(()),
        }
    }
}

/// A program that runs until it is stopped.
pub struct Running {
    name: String,
    child: Child,
}

impl Running {
    pub fn start(command: &mut Command) -> Result<Self, String> {
        Self::spawn(command, Stdio::null())
    }

    fn spawn(command: &mut Command, stdout: Stdio) -> Result<Self, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command
            .stdout(stdout)
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}"))?;
        Ok(Self { name, child })
    }

    /// Starts a program that prints a JSON value, such as its address, and waits for that value.
    pub fn start_and_hear(command: &mut Command, end: &End) -> Result<(Self, Value), String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| format!("cannot read the output of {name}: {error}");
        // A file, because a pipe without a reader would block the program later.
        let mut output = tempfile::tempfile().map_err(failed)?;
        let out = output.try_clone().map_err(failed)?;
        let mut running = Self::spawn(command, out.into())?;
        let start = Instant::now();
        loop {
            let text = read_from_start(&mut output).map_err(failed)?;
            if let Some(Ok(value)) = Deserializer::from_str(&text).into_iter().next() {
                return Ok((running, value));
            }
            running.check_waiting(start, end)?;
            sleep(LOOK);
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program has created `path`.
    pub fn wait_for(&mut self, path: &Path, end: &End) -> Result<(), String> {
        let start = Instant::now();
        while !path.exists() {
            self.check_waiting(start, end)?;
            sleep(LOOK);
        }
        Ok(())
    }

    /// Returns an error if waiting is pointless: a signal came, the program ended, or it took too
    /// long.
    fn check_waiting(&mut self, start: Instant, end: &End) -> Result<(), String> {
        end.check()?;
        if let Ok(Some(status)) = self.child.try_wait() {
            return Err(format!("{} ended before it was ready: {status}", self.name));
        }
        if start.elapsed() > PATIENCE {
            return Err(format!("{} is not ready after {PATIENCE:?}", self.name));
        }
        Ok(())
    }

    /// Asks the program to end, and waits until it has ended. If it does not end within a timeout,
    /// kills it and returns an error.
    pub fn stop(&mut self) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("cannot stop {}: {error}", self.name);
        if self.child.try_wait().map_err(failed)?.is_some() {
            return Ok(());
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM).map_err(|e| failed(e.into()))?;
        let start = Instant::now();
        while self.child.try_wait().map_err(failed)?.is_none() {
            if start.elapsed() > PATIENCE {
                self.child.kill().and_then(|()| self.child.wait()).map_err(failed)?;
                return Err(format!("{} did not end within the timeout and was killed", self.name));
            }
            sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Err(message) = self.stop() {
            eprintln!("warning: {message}");
        }
    }
}

/// Runs a program and returns its stdout. Returns an error if the program fails. If a signal asks
/// this tool to end, kills the program and returns an error.
pub fn run_to_its_end(command: &mut Command, end: &End) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| format!("cannot run {name}: {error}");
    // Files, because a full pipe without a reader would block the program.
    let (out, err) = (tempfile::tempfile(), tempfile::tempfile());
    let (mut out, mut err) = (out.map_err(failed)?, err.map_err(failed)?);
    let mut child = command
        .stdout(out.try_clone().map_err(failed)?)
        .stderr(err.try_clone().map_err(failed)?)
        .spawn()
        .map_err(failed)?;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if let Err(message) = end.check() {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(message);
        }
        sleep(LOOK);
    };
    end.check()?;
    let out = read_from_start(&mut out).map_err(failed)?;
    if status.success() {
        return Ok(out);
    }
    let err = read_from_start(&mut err).map_err(failed)?;
    Err(format!("{name}: {status}\n{}", [out.trim(), err.trim()].join("\n").trim()))
}

fn read_from_start(file: &mut std::fs::File) -> std::io::Result<String> {
    use std::io::{Read, Seek};
    file.rewind()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The paths of the programs that are not looked up in `PATH`.
pub struct Programs {
    pub oblivio: PathBuf,
    /// The path of `oblivio-lab`, next to `oblivio`.
    pub lab: PathBuf,
    pub oramfs: PathBuf,
}

impl Programs {
    /// Checks that `oblivio`, fio, the programs of the subjects, and the programs in `more` exist.
    /// Returns absolute paths; `oblivio-lab` is not checked, and oramfs only if it is a subject.
    pub fn find(
        oblivio: PathBuf,
        peers: &Path,
        subjects: &[Description],
        more: &[&str],
    ) -> Result<Self, String> {
        let lab = oblivio.with_file_name("oblivio-lab");
        if !oblivio.is_file() {
            let path = oblivio.display();
            return Err(format!(
                "{path} does not exist: run cargo build --release --package oblivio-cli"
            ));
        }
        let needed = subjects.iter().flat_map(|subject| subject.programs);
        for program in needed.chain(more).chain(&["fio"]) {
            if !is_in_path(program) {
                return Err(format!("{program} is not installed: run {}", how_to_install(program)));
            }
        }
        let absolute = |path: PathBuf| path.canonicalize().unwrap_or(path);
        let oramfs = peers.join("bin/oramfs");
        if subjects.iter().any(|subject| subject.name == "oramfs") && !oramfs.is_file() {
            return Err(format!(
                "{} does not exist: run apt install libfuse-dev pkg-config and cargo install \
                 oramfs --version 1.0.0 --locked --root {}, or exclude it with --only",
                oramfs.display(),
                peers.display()
            ));
        }
        Ok(Self { oblivio: absolute(oblivio), lab: absolute(lab), oramfs: absolute(oramfs) })
    }
}

fn is_in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

fn how_to_install(program: &str) -> String {
    let package = match program {
        "fusermount3" | "fusermount" => "fuse3",
        other => other,
    };
    format!("apt install {package}")
}

/// CPU time and bytes moved by a running program so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub cpu_seconds: f64,
    /// Number of bytes read from files, including the page cache, and from the FUSE device. Sockets
    /// do not count.
    pub read_bytes: u64,
    /// Number of bytes written to files and to the FUSE device.
    pub written_bytes: u64,
}

impl Usage {
    pub fn read(process: u32) -> Result<Self, String> {
        let file = |name: &str| {
            let path = format!("/proc/{process}/{name}");
            std::fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))
        };
        let (stat, io) = (file("stat")?, file("io")?);
        parse_usage(&stat, &io).ok_or_else(|| format!("cannot parse the usage: {stat}{io}"))
    }

    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds - earlier.cpu_seconds,
            read_bytes: self.read_bytes - earlier.read_bytes,
            written_bytes: self.written_bytes - earlier.written_bytes,
        }
    }
}

/// Returns the peak resident memory of a running program in bytes.
pub fn peak_memory(process: u32) -> Result<u64, String> {
    let path = format!("/proc/{process}/status");
    let status =
        std::fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
    parse_peak(&status).ok_or_else(|| format!("cannot parse the status: {status}"))
}

/// Resets the peak memory of a running program.
pub fn forget_peak_memory(process: u32) -> Result<(), String> {
    let path = format!("/proc/{process}/clear_refs");
    std::fs::write(&path, "5").map_err(|error| format!("cannot write {path}: {error}"))
}

fn parse_peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

fn parse_usage(stat: &str, io: &str) -> Option<Usage> {
    // The name, in parentheses, may contain any characters. The third field follows it.
    let fields: Vec<_> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let bytes = |name: &str| io.lines().find_map(|line| line.strip_prefix(name))?.parse().ok();
    Some(Usage {
        cpu_seconds: (ticks(14)? + ticks(15)?) as f64 / ticks_per_second,
        read_bytes: bytes("rchar: ")?,
        written_bytes: bytes("wchar: ")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_read_past_a_strange_name() {
        let stat = "7 (a) b) S 1 1 1 0 -1 0 0 0 0 0 250 50 0 0 20 0 4 0 1 2 3";
        let usage = parse_usage(stat, "rchar: 10\nwchar: 20\nsyscr: 1\n").unwrap();
        assert_eq!((usage.read_bytes, usage.written_bytes), (10, 20));
        let ticks = usage.cpu_seconds * rustix::param::clock_ticks_per_second() as f64;
        assert_eq!(ticks.round(), 300.0);
        assert!(Usage::read(std::process::id()).unwrap().read_bytes > 0);
        assert!(parse_usage("7 (x) S 1", "").is_none());
    }

    #[test]
    fn peaks_are_read() {
        let status = "Name:\toblivio\nVmPeak:\t  900 kB\nVmHWM:\t   123 kB\nVmRSS:\t 7 kB\n";
        assert_eq!(parse_peak(status), Some(123 << 10));
        assert_eq!(parse_peak("VmHWM: many"), None);
        let own = std::process::id();
        let block = vec![1_u8; 64 << 20];
        let with = peak_memory(own).unwrap();
        assert!(with >= block.len() as u64);
        drop(block);
        forget_peak_memory(own).unwrap();
        assert!(peak_memory(own).unwrap() < with);
    }

    #[test]
    fn programs_are_run_and_stopped() {
        let end = End::listen().unwrap();
        let out = run_to_its_end(Command::new("echo").arg("yes"), &end);
        assert_eq!(out.as_deref(), Ok("yes\n"));
        let error = run_to_its_end(Command::new("sh").args(["-c", "echo no >&2; exit 3"]), &end);
        assert!(error.unwrap_err().contains("no"));
        let mut running = Running::start(Command::new("sleep").arg("1000")).unwrap();
        let process = format!("/proc/{}", running.id());
        assert!(Path::new(&process).exists());
        running.stop().unwrap();
        assert!(!Path::new(&process).exists());
        let heard = Running::start_and_hear(
            Command::new("sh").args(["-c", "echo '{\"at\": 7}'; exec sleep 1000"]),
            &end,
        );
        let (mut speaker, answer) = heard.unwrap();
        assert_eq!(answer["at"], 7);
        speaker.stop().unwrap();
        assert!(Running::start_and_hear(&mut Command::new("true"), &end).is_err());
        let mut short = Running::start(&mut Command::new("true")).unwrap();
        assert!(short.wait_for(Path::new("/nowhere"), &end).is_err());
    }
}
