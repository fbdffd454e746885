//! `oblivio-lab trace record-set`: traces with request rates as in Table II of IR-ORAM.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use oblivio_cli::error::CliError;
use oblivio_cli::files::OutputDir;
use oblivio_cli::output;
use oblivio_cli::signals::StopFlag;
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::emulator::{self, Emulator};
use super::record::Recording;
use super::summary::Summary;
use super::workloads::{Program, WORKLOADS, Workload};
use crate::args::TraceRecordSetArgs;
use crate::error::ProgramError;

/// The minimum number of records for reliable rates. With fewer, a last-level cache of 2 MiB is not
/// filled often enough for its rates to settle.
const RECORDS_FOR_FIGURES: u64 = 500_000;

/// Runs `oblivio-lab trace record-set`.
pub(crate) fn record_set(args: &TraceRecordSetArgs) -> Result<(), ProgramError> {
    let wanted = wanted(&args.only)?;
    let emulator = Emulator::find(&args.how)?;
    let kernels = kernels(args.kernels.clone())?;
    let output_dir = OutputDir::prepare(&args.output)?;
    let end = StopFlag::listen()?;
    let mut rows = Vec::new();
    for workload in wanted {
        let Some(ready) = workload.program.prepare(&kernels)? else {
            output::print_remark(&format!(
                "skipping {}: {} is not installed",
                workload.name, workload.what
            ));
            continue;
        };
        output::print_remark(&format!("recording {} ({})", workload.name, workload.what));
        let recording = Recording {
            emulator: &emulator,
            how: &args.how,
            warm_up: workload.warm_up,
            program: emulator::program(ready.program.as_os_str())?,
            arguments: ready.arguments,
            stdout_apart: true,
        };
        let path = output_dir.path(&format!("{}.trace.gz", workload.name));
        let (summary, _) = recording.run(&path, &end)?;
        rows.push((workload, summary));
    }
    if args.how.misses < RECORDS_FOR_FIGURES {
        output::print_remark(
            "traces this short only fill the caches: their rates are not meaningful",
        );
    }
    if args.json {
        let json: Vec<_> = rows.iter().map(|(workload, summary)| json(workload, summary)).collect();
        return Ok(output::print(&format!("{:#}", Value::from(json)))?);
    }
    Ok(output::print(&table(&rows))?)
}

fn wanted(only: &[String]) -> Result<Vec<&'static Workload>, ProgramError> {
    let unknown = only.iter().find(|name| !WORKLOADS.iter().any(|known| known.name == **name));
    if let Some(name) = unknown {
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
        return Err(CliError::Input(format!(
            "{name} is not in the set: choose among {}",
            names.join(", ")
        ))
        .into());
    }
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|wanted| wanted == name);
    Ok(WORKLOADS.iter().filter(|workload| is_wanted(workload.name)).collect())
}

fn kernels(named: Option<PathBuf>) -> Result<PathBuf, ProgramError> {
    let path = named.map_or_else(|| emulator::beside_us("oblivio-kernels"), Ok)?;
    if path.is_file() {
        return Ok(path);
    }
    Err(CliError::Engine(format!(
        "the programs to record are missing: {} does not exist; build it with cargo build \
         --release -p oblivio-kernels or make traces, or give its path with --kernels",
        path.display()
    ))
    .into())
}

/// A program to run, with its arguments and its input.
struct Ready {
    program: PathBuf,
    arguments: Vec<OsString>,
    /// The generated source file. The file is removed on drop, so it must not be dropped before the
    /// program has ended.
    _source: Option<NamedTempFile>,
}

impl Program {
    /// Finds the program and makes its input. `None` if the program is not installed.
    fn prepare(&self, kernels: &Path) -> Result<Option<Ready>, ProgramError> {
        let ready = |program: PathBuf, arguments: &[&OsStr]| Ready {
            program,
            arguments: arguments.iter().map(OsString::from).collect(),
            _source: None,
        };
        match self {
            Self::Kernel(line) => {
                let words: Vec<_> = line.split_whitespace().map(OsStr::new).collect();
                Ok(Some(ready(kernels.to_owned(), &words)))
            }
            Self::System(name, arguments) => {
                let arguments: Vec<_> = arguments.iter().map(OsStr::new).collect();
                let program = emulator::on_path(OsStr::new(name));
                Ok(program.map(|program| ready(program, &arguments)))
            }
            Self::Python(program) => {
                // `python3` is often a wrapper script; the interpreter knows its own path.
                let python = answer("python3", &["-c", "import sys; print(sys.executable)"]);
                let arguments = ["-c", program].map(OsStr::new);
                Ok(python.map(|python| ready(python, &arguments)))
            }
            Self::Compiler { functions } => {
                let Some(compiler) = answer("gcc", &["-print-prog-name=cc1"]) else {
                    return Ok(None);
                };
                let source = source(kernels, *functions)?;
                let arguments = ["-O3", "-quiet", "-o", "/dev/null"].map(OsStr::new);
                let mut ready = ready(compiler, &arguments);
                ready.arguments.push(source.path().into());
                Ok(Some(Ready { _source: Some(source), ..ready }))
            }
        }
    }
}

/// Runs a program, and returns the path that it prints. Returns `None` if the program or the file
/// at that path does not exist.
fn answer(program: &str, arguments: &[&str]) -> Option<PathBuf> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    path.is_file().then_some(path)
}

/// Generates a C program with `functions` functions, in a temporary file.
fn source(kernels: &Path, functions: u32) -> Result<NamedTempFile, ProgramError> {
    let failed = |error| CliError::Engine(format!("cannot generate a C program: {error}"));
    let functions = functions.to_string();
    let output = Command::new(kernels)
        .args(["source", "--functions", &functions])
        .output()
        .map_err(failed)?;
    let mut file = tempfile::Builder::new().suffix(".c").tempfile().map_err(failed)?;
    file.write_all(&output.stdout).map_err(failed)?;
    Ok(file)
}

fn json(workload: &Workload, summary: &Summary) -> Value {
    let mut json = summary.json();
    json["name"] = json!(workload.name);
    json["recorded"] = json!(workload.what);
    if let Some((reads, writes)) = workload.paper {
        json["table_ii"] = json!({ "reads_per_1000": reads, "writes_per_1000": writes });
    }
    json
}

fn table(rows: &[(&Workload, Summary)]) -> String {
    let mut lines = vec![
        "Reads and writes per 1000 instructions past 256 KiB and 2 MiB of cache".to_owned(),
        format!(
            "| {:13} | {:17} | {:>7} | {:>7} | {:>7} | {:>7} | {:>8} | {:>6} | {:>6} |",
            "", "recorded", "reads", "Tab. II", "writes", "Tab. II", "records", "pages", "M/s"
        ),
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |".to_owned(),
    ];
    lines.extend(rows.iter().map(|(workload, summary)| {
        let traffic = summary.past_last_level;
        let paper = |figure: fn((f64, f64)) -> f64| {
            workload.paper.map_or_else(|| "-".to_owned(), |both| figure(both).to_string())
        };
        format!(
            "| {:13} | {:17} | {:7.2} | {:>7} | {:7.2} | {:>7} | {:8} | {:6} | {:6.0} |",
            workload.name,
            workload.what,
            traffic.per_kilo(traffic.reads),
            paper(|(reads, _)| reads),
            traffic.per_kilo(traffic.writes),
            paper(|(_, writes)| writes),
            summary.misses.reads + summary.misses.writes,
            summary.pages,
            summary.millions_a_second(),
        )
    }));
    lines.join("\n")
}
