//! `oblivio lab run evaluation`.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use indicatif::ProgressBar;
use oblivio_lab::evaluation::{
    Host, Kept, Manifest, PROGRAMS, Plan, Programs, RunRecord, Scale, Switches, figures, run,
};
use oblivio_lab::report;
use oblivio_lab::{LabError, Trace};

use super::threads;
use crate::args::EvaluationArgs;
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::files::{self, OutputDir};
use crate::{output, progress};

/// A line for each run.
const RUNS: &str = "results.jsonl";

/// All figures.
const FIGURES: &str = "figures.json";

/// `oblivio lab run evaluation`.
pub(crate) fn run_evaluation(args: &EvaluationArgs) -> Result<(), CliError> {
    let (plan, manifests) = (plan(args), Manifest::chosen(&args.figure)?);
    let programs = args.traces.as_deref().map_or_else(|| Ok(Programs::samples()?), recorded)?;
    let runs = plan.runs(&manifests, &programs)?;
    let output_dir = OutputDir::prepare(&args.output)?;
    let (file, kept) = RunsFile::open(output_dir.path(RUNS))?;

    let host = Here::new(file);
    let records = run(&plan, &runs, &programs, &kept, threads(args.jobs), &host)?;
    host.bar.finish_and_clear();

    let figures = figures(&manifests, &plan, &programs, &records)?;
    let json = serde_json::to_string_pretty(&figures).map_err(LabError::from)?;
    let figures_path = output_dir.write(FIGURES, &json)?;
    if args.json {
        return output::print(&json);
    }
    let sections: Vec<_> = figures.iter().map(report::section).collect();
    output::print(&format!(
        "{}\n{} runs, {:.0} s\nruns     {}\nfigures  {}",
        sections.join("\n"),
        records.len(),
        host.seconds(),
        output_dir.path(RUNS).display(),
        figures_path.display()
    ))
}

/// What `oblivio lab list` says of it.
pub(super) fn list() -> Result<String, CliError> {
    let line = |figure: &Manifest| format!("  {:12} {}", figure.id, figure.title);
    Ok(Manifest::all()?.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn plan(args: &EvaluationArgs) -> Plan {
    let plan = if args.quick { Plan::quick() } else { Plan::full() };
    let records = args.records.unwrap_or(plan.scale.records);
    let scale = Scale {
        leaf_level: args.levels.unwrap_or(plan.scale.leaf_level),
        records,
        warm_up: args.warm_up.unwrap_or(records / 4),
    };
    let switches = Switches {
        pace: args.pace,
        fan_out: args.fan_out,
        channels: args.channels,
        llc_bytes: args.llc_kib.map_or(plan.switches.llc_bytes, |kib| kib << 10),
        fetch_on_write_miss: args.fetch_on_write_miss,
        layout: args.layout.into(),
        initial: args.initial.into(),
    };
    Plan { scale, switches, seed: args.seed }
}

/// The traces of a directory that are called by the name of a program.
fn recorded(directory: &Path) -> Result<Programs, CliError> {
    let entries = fs::read_dir(directory).map_err(|error| files::cannot_read(directory, &error))?;
    let mut traces = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| files::cannot_read(directory, &error))?.path();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let program = file_name.split('.').next().unwrap_or_default();
        if !PROGRAMS.contains(&program) {
            continue;
        }
        if traces.iter().any(|(name, _): &(String, Trace)| name == program) {
            return Err(CliError::Input(format!(
                "{} has two traces of {program}: leave one there",
                directory.display()
            )));
        }
        let trace = Trace::read(&file_name, files::open(&path)?)?;
        traces.push((program.to_owned(), trace));
    }
    Ok(Programs::recorded(traces))
}

/// The file of runs, which nobody else writes meanwhile.
struct RunsFile {
    path: PathBuf,
    file: File,
}

impl RunsFile {
    /// Opens it, and gives the records in it. What an interruption left of a line is dropped.
    fn open(path: PathBuf) -> Result<(Self, Vec<RunRecord>), CliError> {
        let mut options = OpenOptions::new();
        let options = options.create(true).read(true).append(true);
        let mut file = options.open(&path).map_err(|error| files::cannot_write(&path, &error))?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => CliError::Locked(format!(
                "another evaluation writes {}: wait for it, or choose another --output",
                path.display()
            )),
            TryLockError::Error(error) => files::cannot_write(&path, &error),
        })?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(|error| files::cannot_read(&path, &error))?;
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

    fn append(&mut self, record: &RunRecord) -> Result<(), LabError> {
        let line = record.to_line()?;
        self.file
            .write_all(line.as_bytes())
            .map_err(|error| LabError::Output(files::cannot_write(&self.path, &error).to_string()))
    }
}

/// This computer, this program, and where its runs go.
struct Here {
    stopwatch: Stopwatch,
    bar: ProgressBar,
    file: Mutex<RunsFile>,
    machine: String,
}

/// The version of this program, and the commit if it was built with one.
const VERSION: &str = match option_env!("OBLIVIO_COMMIT") {
    Some(commit) => commit,
    None => env!("CARGO_PKG_VERSION"),
};

impl Here {
    fn new(file: RunsFile) -> Self {
        Self {
            stopwatch: Stopwatch::start(),
            bar: progress::bar_of(0, "records"),
            file: Mutex::new(file),
            machine: machine(),
        }
    }
}

impl Host for Here {
    fn seconds(&self) -> f64 {
        self.stopwatch.elapsed().as_secs_f64()
    }

    fn planned(&self, records: u64) {
        self.bar.inc_length(records);
    }

    fn made(&self, records: u64) {
        self.bar.inc(records);
    }

    fn keep(&self, record: &RunRecord) -> Result<(), LabError> {
        self.file.lock().expect("no thread panics while it holds this").append(record)
    }

    fn machine(&self) -> &str {
        &self.machine
    }

    fn version(&self) -> &str {
        VERSION
    }
}

/// What the system says of the processor.
fn machine() -> String {
    let known = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = known.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "model name").then(|| value.trim())
    });
    let threads = threads(None);
    format!("{}, {threads} threads", model.unwrap_or(std::env::consts::ARCH))
}
