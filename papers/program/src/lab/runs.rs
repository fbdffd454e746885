//! Shared parts of experiments with many runs: traces of programs, the file of runs, the machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use clap::Args;
use indicatif::ProgressBar;
use oblivio_cli::clock::Stopwatch;
use oblivio_cli::error::CliError;
use oblivio_cli::files::OutputDir;
use oblivio_cli::{files, output, progress};
use oblivio_lab::evaluation::Programs;
use oblivio_lab::{Host, KeptRecords, LabError, Trace, counted_runs, line_of, unpack};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::threads;
use crate::error::ProgramError;

// A doc comment would become the help of each command.
#[derive(Args)]
pub(crate) struct RunsArgs {
    /// Directory with traces of programs, named as by `oblivio-lab trace record-set`, such as
    /// gcc.trace.gz, or as in Ramulator 1.0, such as 403.gcc.gz. May be given more than once
    /// [default: short built-in samples].
    #[arg(long, value_name = "DIR")]
    traces: Vec<PathBuf>,
    /// The seed of all runs.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Runs at a time [default: one per processor]. They change time and memory, not the results.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(super) jobs: Option<NonZeroUsize>,
}

impl RunsArgs {
    /// Reads the traces, or returns the samples if no directory is given.
    pub(super) fn programs(&self) -> Result<Arc<Programs>, ProgramError> {
        let none = self.traces.is_empty();
        Ok(Arc::new(if none { Programs::samples()? } else { recorded(&self.traces)? }))
    }
}

/// Parses a number of runs, at least 1.
fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    let number: usize = text.parse().map_err(|error: std::num::ParseIntError| error.to_string())?;
    NonZeroUsize::new(number).ok_or_else(|| "0 is not in 1..".to_owned())
}

/// Reads the traces in `directories`. Skips files whose names do not belong to a known program.
/// Fails if a program has two traces, or if a directory or a trace cannot be read.
fn recorded(directories: &[PathBuf]) -> Result<Programs, ProgramError> {
    let mut traces = Vec::new();
    for directory in directories {
        add_recorded(directory, &mut traces)?;
    }
    Ok(Programs::recorded(traces))
}

fn add_recorded(directory: &Path, traces: &mut Vec<(String, Trace)>) -> Result<(), ProgramError> {
    let cannot_read = |error| files::cannot_read(directory, &error);
    for entry in fs::read_dir(directory).map_err(cannot_read)? {
        let path = entry.map_err(cannot_read)?.path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(program) = Programs::known(&file_name) else { continue };
        if traces.iter().any(|(name, _)| name == program) {
            return Err(CliError::Input(format!(
                "{} is a second trace of {program}: remove one of them",
                path.display()
            ))
            .into());
        }
        let trace = Trace::read(&file_name, files::open_regular(&path)?)?;
        traces.push((program.to_owned(), trace));
    }
    Ok(())
}

/// The name of the compressed form of the file `name`.
fn packed(name: &str) -> String {
    format!("{name}.gz")
}

/// Refuses a directory without recorded runs, since `--recorded` makes none.
pub(super) fn check_recorded(path: &Path) -> Result<(), CliError> {
    const RUNS: &str = "results.jsonl";
    if [RUNS.to_owned(), packed(RUNS)].iter().any(|name| path.join(name).is_file()) {
        return Ok(());
    }
    Err(CliError::Input(format!(
        "there are no recorded runs in {}: name the directory of an evaluation with --output, or \
         leave --recorded out",
        path.display()
    )))
}

/// The file of runs, locked by this process.
pub(super) struct RunsFile {
    path: PathBuf,
    file: File,
}

impl RunsFile {
    /// Opens the file `name`, and returns its records. If a compressed file exists, and the file is
    /// missing or holds only the first part of the unpacked contents, unpacks the compressed file
    /// first. Drops a torn last line. Fails if another process has locked the file.
    pub(super) fn open<R: DeserializeOwned>(
        directory: &OutputDir,
        name: &str,
    ) -> Result<(Self, Vec<R>), ProgramError> {
        let path = directory.path(name);
        let mut options = OpenOptions::new();
        let options = options.create(true).read(true).append(true);
        let mut file = options.open(&path).map_err(|error| files::cannot_write(&path, &error))?;
        if !file.metadata().is_ok_and(|data| data.is_file()) {
            return Err(CliError::Output(format!(
                "{} is no regular file, and cannot keep runs: remove it, or choose another \
                 --output",
                path.display()
            ))
            .into());
        }
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => CliError::Locked(format!(
                "another run of the lab writes {}: wait for it, or choose another --output",
                path.display()
            )),
            TryLockError::Error(error) => files::cannot_write(&path, &error),
        })?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| files::cannot_read(&path, &error))?;
        let packed = directory.path(&packed(name));
        if packed.is_file() {
            let whole = unpack(&packed.display().to_string(), files::open_regular(&packed)?)?;
            // An earlier process that was killed while unpacking left the beginning.
            if text.len() < whole.len() && whole.starts_with(&text) {
                file.write_all(&whole[text.len()..])
                    .map_err(|error| files::cannot_write(&path, &error))?;
                text = whole;
                output::print_remark(&format!(
                    "unpacked {} to {}",
                    packed.display(),
                    path.display()
                ));
            }
        }
        let KeptRecords { records, whole_bytes } =
            KeptRecords::read(&path.display().to_string(), &text)?;
        if whole_bytes < text.len() {
            output::print_remark(&format!(
                "the last line of {} is torn and was dropped: that run is made again",
                path.display()
            ));
            file.set_len(whole_bytes as u64).map_err(|error| files::cannot_write(&path, &error))?;
        }
        Ok((Self { path, file }, records))
    }

    fn append(&mut self, record: &impl Serialize) -> Result<(), LabError> {
        let line = line_of(record)?;
        let append = || {
            let whole_bytes = self.file.metadata()?.len();
            let written = (&self.file).write_all(line.as_bytes());
            if written.is_err() {
                // Remove the torn record: another run may still append its line.
                let _ = self.file.set_len(whole_bytes);
            }
            written
        };
        append()
            .map_err(|error| LabError::Output(files::cannot_write(&self.path, &error).to_string()))
    }
}

/// The host of an experiment: this machine, this program, and the file of its runs.
pub(super) struct LabHost {
    stopwatch: Stopwatch,
    bar: ProgressBar,
    file: Option<Mutex<RunsFile>>,
    runs: AtomicUsize,
    machine: String,
}

/// The version of this program: the commit, if it was built with one.
pub(super) const VERSION: &str = match option_env!("OBLIVIO_COMMIT") {
    Some(commit) => commit,
    None => env!("CARGO_PKG_VERSION"),
};

impl LabHost {
    /// Creates a host whose progress bar counts steps. `steps` is their name, in the plural.
    pub(super) fn new(file: Option<RunsFile>, steps: &str) -> Self {
        Self {
            stopwatch: Stopwatch::start(),
            bar: progress::bar_of(0, steps),
            file: file.map(Mutex::new),
            runs: AtomicUsize::new(0),
            machine: machine(),
        }
    }

    /// Ends the progress bar. Returns the number of runs in words, if any were counted, and the
    /// seconds since the host was created.
    pub(super) fn finish(self) -> (Option<String>, f64) {
        self.bar.finish_and_clear();
        let runs = self.runs.into_inner();
        ((runs > 0).then(|| counted_runs(runs)), self.stopwatch.elapsed().as_secs_f64())
    }
}

impl<R: Serialize> Host<R> for LabHost {
    fn seconds(&self) -> f64 {
        self.stopwatch.elapsed().as_secs_f64()
    }

    fn planned(&self, steps: u64) {
        self.bar.inc_length(steps);
    }

    fn made(&self, steps: u64) {
        self.bar.inc(steps);
    }

    fn runs(&self, count: usize) {
        self.runs.fetch_add(count, Ordering::Relaxed);
    }

    fn keep(&self, record: &R) -> Result<(), LabError> {
        match &self.file {
            Some(file) => file.lock().expect("no thread panics while it holds this").append(record),
            None => Ok(()),
        }
    }

    fn foreseen(&self, text: &str) {
        Host::<R>::remark(self, text);
    }

    fn remark(&self, text: &str) {
        self.bar.suspend(|| output::print_remark(text));
    }

    fn machine(&self) -> &str {
        &self.machine
    }

    fn version(&self) -> &str {
        VERSION
    }
}

/// The processor model from `/proc/cpuinfo`, and the number of threads.
pub(super) fn machine() -> String {
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim())
    });
    let threads = threads(None);
    format!("{}, {threads} threads", model.unwrap_or(std::env::consts::ARCH))
}
