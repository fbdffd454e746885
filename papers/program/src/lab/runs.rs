//! What experiments of many runs have in common: traces of programs, a file that keeps runs, this computer.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use indicatif::ProgressBar;
use oblivio_cli::clock::Stopwatch;
use oblivio_cli::error::CliError;
use oblivio_cli::files::OutputDir;
use oblivio_cli::{files, output, progress};
use oblivio_lab::evaluation::Programs;
use oblivio_lab::report::Figure;
use oblivio_lab::{Host, Kept, LabError, Trace, counted_runs, line_of, unpack};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::made::Made;
use super::threads;
use crate::args::RunsArgs;
use crate::error::ProgramError;

/// A line for each run.
const RUNS: &str = "results.jsonl";

/// The traces that are asked for.
pub(super) fn programs(args: &RunsArgs) -> Result<Programs, ProgramError> {
    if args.traces.is_empty() { Ok(Programs::samples()?) } else { recorded(&args.traces) }
}

/// What runs are made with, and where they go.
pub(super) struct Making<'a> {
    pub(super) programs: &'a Programs,
    pub(super) jobs: NonZeroUsize,
    pub(super) output: PathBuf,
}

impl<'a> Making<'a> {
    /// As asked for.
    pub(super) fn new(args: &RunsArgs, programs: &'a Programs, output: &Path) -> Self {
        Self { programs, jobs: threads(args.jobs), output: output.to_owned() }
    }
}

/// Keeps the figures of so many runs.
pub(super) fn keep<R: Serialize>(
    figures: Vec<Figure>,
    output_dir: &OutputDir,
    host: &Here<R>,
    runs: usize,
) -> Result<Made, ProgramError> {
    host.bar.finish_and_clear();
    let (seconds, path) = (host.seconds(), output_dir.path(RUNS));
    let runs = counted_runs(runs);
    let done = format!("{runs}, {seconds:.0} s\nruns     {}", path.display());
    Made::keep(figures, output_dir, &done)
}

/// The traces of directories that are called by the name of a program.
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
                "{} is a second trace of {program}: leave one there",
                path.display()
            ))
            .into());
        }
        let trace = Trace::read(&file_name, files::open_regular(&path)?)?;
        traces.push((program.to_owned(), trace));
    }
    Ok(())
}

/// The name of the file `name` as the repository keeps it: compressed.
fn packed(name: &str) -> String {
    format!("{name}.gz")
}

/// The file of runs, locked by this process.
pub(super) struct RunsFile {
    path: PathBuf,
    file: File,
}

impl RunsFile {
    /// Opens it and returns its records. If there are compressed runs alone, they are unpacked first; a
    /// torn last line is dropped.
    pub(super) fn open<R: DeserializeOwned>(
        directory: &OutputDir,
    ) -> Result<(Self, Vec<R>), ProgramError> {
        Self::open_named(directory, RUNS)
    }

    /// The same of runs that were recorded: a directory without any is not made.
    pub(super) fn open_recorded<R: DeserializeOwned>(
        path: &Path,
    ) -> Result<(OutputDir, Self, Vec<R>), ProgramError> {
        if ![RUNS.to_owned(), packed(RUNS)].iter().any(|name| path.join(name).is_file()) {
            return Err(CliError::Input(format!(
                "there are no recorded runs in {}: name the directory of an evaluation with --output, or leave \
                 --recorded out",
                path.display()
            )).into());
        }
        let directory = OutputDir::prepare(path)?;
        let (file, kept) = Self::open(&directory)?;
        Ok((directory, file, kept))
    }

    /// The same, of an experiment that shares its directory with others.
    pub(super) fn open_named<R: DeserializeOwned>(
        directory: &OutputDir,
        name: &str,
    ) -> Result<(Self, Vec<R>), ProgramError> {
        let path = directory.path(name);
        let mut options = OpenOptions::new();
        let options = options.create(true).read(true).append(true);
        let mut file = options.open(&path).map_err(|error| files::cannot_write(&path, &error))?;
        if !file.metadata().is_ok_and(|data| data.is_file()) {
            return Err(CliError::Output(format!(
                "{} is no regular file, and cannot keep runs: remove it, or choose another --output",
                path.display()
            )).into());
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
            // A run that was killed while it unpacked has left the beginning.
            if text.len() < whole.len() && whole.starts_with(&text) {
                file.write_all(&whole[text.len()..])
                    .map_err(|error| files::cannot_write(&path, &error))?;
                text = whole;
                output::remark(&format!("unpacked {} to {}", packed.display(), path.display()));
            }
        }
        let Kept { records, whole_bytes } = Kept::read(&path.display().to_string(), &text)?;
        if whole_bytes < text.len() {
            output::remark(&format!(
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
                // Another run may end yet, whose line would go on where this one broke off.
                let _ = self.file.set_len(whole_bytes);
            }
            written
        };
        append()
            .map_err(|error| LabError::Output(files::cannot_write(&self.path, &error).to_string()))
    }
}

/// This computer, this program, and where its runs go.
pub(super) struct Here<R> {
    stopwatch: Stopwatch,
    pub(super) bar: ProgressBar,
    file: Mutex<RunsFile>,
    machine: String,
    records: PhantomData<fn(R)>,
}

/// The version of this program, and the commit if it was built with one.
pub(super) const VERSION: &str = match option_env!("OBLIVIO_COMMIT") {
    Some(commit) => commit,
    None => env!("CARGO_PKG_VERSION"),
};

impl<R> Here<R> {
    /// Its bar counts the steps of an experiment, which are `things`.
    pub(super) fn new(file: RunsFile, things: &str) -> Self {
        Self {
            stopwatch: Stopwatch::start(),
            bar: progress::bar_of(0, things),
            file: Mutex::new(file),
            machine: machine(),
            records: PhantomData,
        }
    }
}

impl<R: Serialize> Host<R> for Here<R> {
    fn seconds(&self) -> f64 {
        self.stopwatch.elapsed().as_secs_f64()
    }

    fn planned(&self, steps: u64) {
        self.bar.inc_length(steps);
    }

    fn made(&self, steps: u64) {
        self.bar.inc(steps);
    }

    fn keep(&self, record: &R) -> Result<(), LabError> {
        self.file.lock().expect("no thread panics while it holds this").append(record)
    }

    fn foreseen(&self, text: &str) {
        self.remark(text);
    }

    fn remark(&self, text: &str) {
        self.bar.suspend(|| output::remark(text));
    }

    fn machine(&self) -> &str {
        &self.machine
    }

    fn version(&self) -> &str {
        VERSION
    }
}

/// What the system says of the processor.
pub(super) fn machine() -> String {
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim())
    });
    let threads = threads(None);
    format!("{}, {threads} threads", model.unwrap_or(std::env::consts::ARCH))
}
