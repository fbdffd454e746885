//! `oblivio-lab trace info`, `convert`, `mix` and `make`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use oblivio_cli::error::CliError;
use oblivio_cli::files::{self, AtomicFile};
use oblivio_cli::progress;
use oblivio_models::workload::Workload;
use oblivio_sim::trace::synthetic::{Gap, Pattern, Synthetic};
use oblivio_sim::trace::{Format, Placing, Trace};

use super::{report, writing};
use crate::args::{
    KindName, RemapArgs, TraceConvertArgs, TraceInfoArgs, TraceMakeArgs, TraceMixArgs,
    TraceWriteArgs,
};
use crate::error::ProgramError;

/// Default stride: a page.
const STRIDE_LINES: u64 = 64;

/// Runs `oblivio-lab trace info`.
pub(crate) fn info(args: &TraceInfoArgs) -> Result<(), ProgramError> {
    let bar = progress::bar_of(args.files.len() as u64, "traces");
    let traces = args.files.iter().map(|path| {
        let found = report::Entry::from_trace(&read(path)?);
        bar.inc(1);
        Ok(found)
    });
    let entries = traces.collect::<Result<Vec<_>, ProgramError>>()?;
    bar.finish_and_clear();
    report::print(&entries, args.json)
}

/// Runs `oblivio-lab trace convert`.
pub(crate) fn convert(args: &TraceConvertArgs) -> Result<(), ProgramError> {
    let output = AtomicFile::begin_new(&args.output)?;
    let trace = match args.from {
        None => read(&args.input)?,
        Some(format) => read_in(format.into(), &args.input)?,
    };
    write(&remapped(trace, &args.remap)?, output, &args.write)
}

/// Runs `oblivio-lab trace mix`.
pub(crate) fn mix(args: &TraceMixArgs) -> Result<(), ProgramError> {
    let output = AtomicFile::begin_new(&args.output)?;
    let traces = read_all(&args.files)?;
    let mixed = Trace::mix(&name_of_file(&args.output), &traces, args.slice)?;
    write(&remapped(mixed, &args.remap)?, output, &args.write)
}

/// Runs `oblivio-lab trace make`.
pub(crate) fn make(args: &TraceMakeArgs) -> Result<(), ProgramError> {
    let output = AtomicFile::begin_new(&args.output)?;
    let synthetic = Synthetic {
        pattern: pattern(args)?,
        lines: args.lines,
        gap: args.gap_mean.map_or(Gap::Constant(args.gap), |mean| Gap::Geometric { mean }),
        records: args.records,
        seed: args.seed,
    };
    write(&synthetic.make(&name_of(args.kind))?, output, &args.write)
}

/// Reads the traces of several files.
pub(crate) fn read_all(paths: &[PathBuf]) -> Result<Vec<Trace>, ProgramError> {
    paths.iter().map(|path| read(path)).collect()
}

/// Reads the trace in a file, in the format recognized from its contents.
pub(crate) fn read(path: &Path) -> Result<Trace, ProgramError> {
    Ok(Trace::read(&name_of_file(path), files::open_regular(path)?)?)
}

/// Reads a file as a trace in a given format.
fn read_in(format: Format, path: &Path) -> Result<Trace, ProgramError> {
    Ok(Trace::read_as(format, &name_of_file(path), files::open_regular(path)?)?)
}

/// The name of a trace: its file name, without the directory.
fn name_of_file(path: &Path) -> Cow<'_, str> {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy()
}

fn remapped(trace: Trace, args: &RemapArgs) -> Result<Trace, ProgramError> {
    let Some(lines) = args.remap else { return Ok(trace) };
    let placing = args.scatter.map_or(Placing::InOrder, |seed| Placing::Random { seed });
    Ok(trace.remap(lines, placing)?)
}

/// Writes `trace`, and prints its statistics.
fn write(trace: &Trace, output: AtomicFile, args: &TraceWriteArgs) -> Result<(), ProgramError> {
    let path = output.path();
    writing::write(trace, output.file(), path, args.to.into(), args.compress.into())?;
    output.persist_new()?;
    report::print(&[report::Entry::from_trace(trace)], args.json)
}

fn pattern(args: &TraceMakeArgs) -> Result<Pattern, ProgramError> {
    let writes = args.writes.unwrap_or(0.0);
    let of = |workload| Pattern::Workload { workload, writes };
    let pattern = match args.kind {
        KindName::Scan => of(Workload::Scan),
        KindName::Uniform => of(Workload::Uniform),
        KindName::Zipf => of(Workload::Zipf),
        KindName::Stride => Pattern::Stride { lines: args.stride.unwrap_or(STRIDE_LINES), writes },
        KindName::PointerChase => Pattern::PointerChase,
        KindName::StoreStream => Pattern::StoreStream,
        KindName::HashUpdates => Pattern::HashUpdates,
    };
    let takes_writes = matches!(pattern, Pattern::Workload { .. } | Pattern::Stride { .. });
    let takes_stride = matches!(pattern, Pattern::Stride { .. });
    for (option, is_given, is_taken) in [
        ("--writes", args.writes.is_some(), takes_writes),
        ("--stride", args.stride.is_some(), takes_stride),
    ] {
        if is_given && !is_taken {
            return Err(CliError::Input(format!(
                "{} has no use for {option}: omit it, or see --help for the kinds that use it",
                name_of(args.kind)
            ))
            .into());
        }
    }
    Ok(pattern)
}

fn name_of(kind: KindName) -> String {
    kind.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
