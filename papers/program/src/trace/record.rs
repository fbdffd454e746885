//! `oblivio-lab trace record`: the first-level cache misses of a program.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use oblivio_cli::clock::Stopwatch;
use oblivio_cli::error::CliError;
use oblivio_cli::signals::StopFlag;
use oblivio_cli::{files, output, progress};
use oblivio_sim::recording::raw::{self, HEADER_BYTES, Progress, RECORD_BYTES, State};
use oblivio_sim::recording::{LastLevel, Pages, Traffic};
use oblivio_sim::trace::{AccessKind, Trace};

use super::emulator::{self, Emulator};
use super::summary::Summary;
use super::writing;
use crate::args::{RecordingArgs, StoreMissesName, TraceRecordArgs};
use crate::error::ProgramError;

/// The interval at which the progress of the recording is checked.
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Runs `oblivio-lab trace record`.
pub(crate) fn record(args: &TraceRecordArgs) -> Result<(), ProgramError> {
    let [name, arguments @ ..] = args.command.as_slice() else {
        return Err(CliError::Input("no command: give one after --".into()).into());
    };
    let recording = Recording {
        emulator: &Emulator::find(&args.how)?,
        how: &args.how,
        warm_up: args.warm_up,
        program: emulator::program(name)?,
        arguments: arguments.to_owned(),
        stdout_apart: args.json,
    };
    let path = args.output.clone().unwrap_or_else(|| default_output(name));
    let (summary, status) = recording.run(&path, &StopFlag::listen()?)?;
    if args.json {
        output::print(&format!("{:#}", summary.json()))?;
    } else {
        output::print_aside(&summary.text());
    }
    let records = summary.misses.reads + summary.misses.writes;
    if records < args.how.misses {
        output::print_remark(&format!(
            "the program ended after {records} records of {}: give it more to do, or lower \
             --warm-up",
            args.how.misses
        ));
    }
    match status {
        Some(status) if !status.success() => Err(CliError::Command(status).into()),
        _ => Ok(()),
    }
}

/// The parameters of a recording.
pub(super) struct Recording<'a> {
    pub(super) emulator: &'a Emulator,
    pub(super) how: &'a RecordingArgs,
    /// Instructions before the first record.
    pub(super) warm_up: u64,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    /// Whether the program's output goes to standard error.
    pub(super) stdout_apart: bool,
}

impl Recording<'_> {
    /// Runs the program, and writes its trace to `path`. Returns the program's exit status if it
    /// ended by itself.
    pub(super) fn run(
        &self,
        path: &Path,
        end: &StopFlag,
    ) -> Result<(Summary, Option<ExitStatus>), ProgramError> {
        let raw = files::temporary_beside(path)?;
        let stopwatch = Stopwatch::start();
        let (progress, status) = self.emulate(raw.path(), end)?;
        let seconds = stopwatch.elapsed().as_secs_f64();
        if progress.records == 0 {
            let ended = status.map_or_else(String::new, |status| format!(" ({status})"));
            return Err(CliError::Input(format!(
                "no miss was recorded: the program ended{ended} after {} instructions, and the \
                 first {} only fill the cache; give it more to do, or lower --warm-up",
                progress.instructions, self.warm_up
            ))
            .into());
        }
        let (misses, past_last_level, pages) = write_trace(raw.as_file(), &progress, path)?;
        let path = path.to_owned();
        let emulated = progress.instructions;
        Ok((Summary { path, misses, past_last_level, pages, emulated, seconds }, status))
    }

    fn emulate(
        &self,
        raw: &Path,
        end: &StopFlag,
    ) -> Result<(Progress, Option<ExitStatus>), ProgramError> {
        let mut command = self.command(raw);
        let child = command.spawn().map_err(|error| {
            let emulator = command.get_program().display();
            CliError::Engine(format!("{emulator} cannot be run: {error}"))
        })?;
        let file = files::open(raw)?;
        let mut program = Running(child);
        let bar = progress::bar_of(self.how.misses, "misses");
        loop {
            // First check for the end: a program that has ended has written its last header.
            let has_ended = program.0.try_wait().map_err(|error| {
                CliError::Engine(format!("cannot wait for the emulator: {error}"))
            })?;
            let progress = read_progress(&file)?;
            bar.set_position(progress.map_or(0, |progress| progress.records));
            let is_over = progress.is_some_and(|progress| progress.state != State::Running);
            if end.is_requested() {
                return Err(CliError::Engine(
                    "stopped before the end: no trace was written".into(),
                )
                .into());
            }
            if has_ended.is_some() || is_over {
                break;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
        bar.finish_and_clear();
        let progress = read_progress(&file)?.ok_or_else(|| not_loaded(self.emulator.path()))?;
        match progress.state {
            State::Failed => Err(CliError::Output(format!(
                "the records cannot be written beside {}: is the disk full? Choose another place \
                 with --output",
                raw.display()
            ))
            .into()),
            State::Full => Ok((progress, None)),
            // The program has ended or is about to: wait for its status.
            State::Ended | State::Running => Ok((progress, program.0.wait().ok())),
        }
    }

    fn command(&self, raw: &Path) -> Command {
        let Self { emulator, how, warm_up, program, arguments, stdout_apart } = self;
        let store_misses = match how.store_misses {
            StoreMissesName::Write => "write",
            StoreMissesName::Fetch => "fetch",
        };
        let mut command = emulator.command(&[
            ("out", raw.as_os_str()),
            ("warmup", OsStr::new(&warm_up.to_string())),
            ("records", OsStr::new(&how.misses.to_string())),
            ("l1_kib", OsStr::new(&how.l1_kib.to_string())),
            ("l1_ways", OsStr::new(&how.l1_ways.to_string())),
            ("store_misses", OsStr::new(store_misses)),
        ]);
        command.arg(program).args(arguments);
        if *stdout_apart {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        command
    }
}

/// A program in the emulator. It is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // The program may have ended by itself.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Reads the plugin's header. `None` if the plugin has not written it yet.
fn read_progress(raw: &File) -> Result<Option<Progress>, ProgramError> {
    let mut header = [0; HEADER_BYTES];
    match raw.read_exact_at(&mut header, 0) {
        Ok(()) => Ok(Some(Progress::decode(&header)?)),
        Err(_) => Ok(None),
    }
}

fn not_loaded(emulator: &Path) -> CliError {
    CliError::Engine(format!(
        "{} ended before it recorded anything: see its messages above; the plugin needs QEMU 4.2 \
         to 8.2 and programs of this machine's architecture",
        emulator.display()
    ))
}

/// Writes the trace. Returns its traffic, its traffic past a last-level cache after the first
/// quarter of the records, and its number of pages.
fn write_trace(
    mut raw: &File,
    progress: &Progress,
    path: &Path,
) -> Result<(Traffic, Traffic, u64), ProgramError> {
    let cannot_read = |error| files::cannot_read(path, &error);
    raw.seek(SeekFrom::Start(HEADER_BYTES as u64)).map_err(cannot_read)?;
    let mut raw = BufReader::new(raw);
    let mut records = Vec::new();
    let mut pages = Pages::default();
    let mut misses = Traffic::default();
    let mut last_level = LastLevel::new(LastLevel::SHAPE, progress.records)?;
    for _ in 0..progress.records {
        let mut bytes = [0; RECORD_BYTES];
        raw.read_exact(&mut bytes).map_err(cannot_read)?;
        let record = pages.compact(raw::decode(&bytes)?);
        misses += Traffic {
            instructions: u64::from(record.gap) + 1,
            reads: u64::from(record.kind == AccessKind::Read),
            writes: u64::from(record.kind == AccessKind::Write),
        };
        last_level.serve(record);
        records.push(record);
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    writing::write_recorded(&Trace::new(name, records)?, path)?;
    Ok((misses, last_level.traffic(), pages.count()))
}

fn default_output(name: &OsStr) -> PathBuf {
    let mut output = Path::new(name).file_name().unwrap_or(name).to_owned();
    output.push(".trace.gz");
    output.into()
}
