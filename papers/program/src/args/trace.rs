//! Arguments of `oblivio-lab trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use oblivio_sim::trace::{Compression, Format};

use super::{TRACE_RECORD_EXAMPLES, TraceRecordArgs, TraceRecordSetArgs};

pub(crate) const TRACE_FORMATS: &str = "\
Formats, uncompressed or compressed with gzip or zstd. The format is recognized from the contents:
  usimm      `<gap> R <hex address> [<hex pc>]` or `<gap> W <hex address>`, one record a line
  ramulator  `<gap> <read address> [<write-back address>]` in decimal, one or two records a line
  binary     of this program: about four bytes a record, with a checksum

A gap is the number of instructions before the record that made no request. Addresses are byte
addresses; only the line of 64 bytes counts.";

#[derive(Subcommand)]
pub(crate) enum TraceCommand {
    /// Describe traces: requests per instruction, footprint, and reuse.
    #[command(after_help = "Examples:\n  \
            oblivio-lab trace info 403.gcc.gz 458.sjeng.gz\n  \
            oblivio-lab trace info --json own.trace | jq .[0].reuse")]
    Info(TraceInfoArgs),
    /// Write a trace in another format, or move it into a smaller memory.
    #[command(after_help = "Examples:\n  \
            oblivio-lab trace convert 403.gcc.gz gcc.obt\n  \
            oblivio-lab trace convert gcc.obt gcc.usimm.gz --to usimm --compress gzip\n  \
            oblivio-lab trace convert 403.gcc.gz gcc-small.obt --remap 4194304")]
    Convert(TraceConvertArgs),
    /// Interleave the traces of several programs, each in its own range of addresses.
    #[command(after_help = "Example:\n  \
            oblivio-lab trace mix 403.gcc.gz 456.hmmer.gz --output both.obt --slice 1000000")]
    Mix(TraceMixArgs),
    /// Generate a trace.
    #[command(after_help = "Examples:\n  \
            oblivio-lab trace make zipf --lines 1000000 --records 500000 --writes 0.3 \
            --output zipf.obt\n  \
            oblivio-lab trace make pointer-chase --gap-mean 49 --output chase.obt")]
    Make(TraceMakeArgs),
    /// Run a program under an emulator, and write its first-level cache misses.
    ///
    /// The program runs unchanged, with its own input and output, under QEMU's user-mode emulator,
    /// until it ends or --misses records are written; then it is killed. Its children are not
    /// recorded. Pages are numbered from 0 in the order of their first use.
    #[command(after_help = TRACE_RECORD_EXAMPLES)]
    Record(TraceRecordArgs),
    /// Record a set of programs with memory use like those in Table II of IR-ORAM, and compare.
    RecordSet(TraceRecordSetArgs),
}

#[derive(Args)]
pub(crate) struct TraceInfoArgs {
    /// The traces.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct TraceConvertArgs {
    /// The trace.
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,
    /// The file to write. An existing file is not replaced.
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// The format of the trace [default: recognized from its contents].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) from: Option<FormatName>,
    #[command(flatten)]
    pub(crate) remap: RemapArgs,
    #[command(flatten)]
    pub(crate) write: TraceWriteArgs,
}

#[derive(Args)]
pub(crate) struct TraceMixArgs {
    /// The traces, one per program.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The file to write. An existing file is not replaced.
    #[arg(long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Instructions that a program executes before the next one continues.
    #[arg(
        long,
        value_name = "INSTRUCTIONS",
        default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub(crate) slice: u64,
    #[command(flatten)]
    pub(crate) remap: RemapArgs,
    #[command(flatten)]
    pub(crate) write: TraceWriteArgs,
}

#[derive(Args)]
pub(crate) struct TraceMakeArgs {
    /// The pattern of requests.
    #[arg(value_enum)]
    pub(crate) kind: KindName,
    /// The file to write. An existing file is not replaced.
    #[arg(long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Number of lines of 64 bytes that are used, from address 0 on.
    #[arg(long, value_name = "LINES", default_value_t = 1 << 16)]
    pub(crate) lines: u64,
    /// Records in the trace.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) records: usize,
    /// Instructions before each record, a constant.
    #[arg(long, value_name = "N", default_value_t = 49, conflicts_with = "gap_mean")]
    pub(crate) gap: u32,
    /// Mean number of instructions before each record, with a geometric distribution.
    #[arg(long, value_name = "MEAN")]
    pub(crate) gap_mean: Option<f64>,
    /// The fraction of records that are writes, from 0 to 1 [default: 0]. Only for scan, uniform,
    /// zipf, stride.
    #[arg(long, value_name = "PART")]
    pub(crate) writes: Option<f64>,
    /// Lines from one request to the next [default: 64, a page]. Only for stride.
    #[arg(long, value_name = "LINES")]
    pub(crate) stride: Option<u64>,
    /// The seed of all random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) write: TraceWriteArgs,
}

/// The format of the output.
#[derive(Args)]
pub(crate) struct TraceWriteArgs {
    /// The format to write. Ramulator's format cannot express a write that does not follow a read;
    /// such a trace is refused.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatName::Binary)]
    pub(crate) to: FormatName,
    /// The compression of the output.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = CompressionName::None)]
    pub(crate) compress: CompressionName,
    /// Print JSON: statistics of the written trace.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options that move a trace into a smaller memory.
#[derive(Args)]
pub(crate) struct RemapArgs {
    /// Move the trace, by pages of 4 KiB, into a memory of this many lines of 64 bytes. Pages are
    /// placed in the order of their first use.
    #[arg(long, value_name = "LINES")]
    pub(crate) remap: Option<u64>,
    /// Place each page at random, with this seed, instead of in order.
    #[arg(long, value_name = "SEED", requires = "remap")]
    pub(crate) scatter: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FormatName {
    /// USIMM's format.
    Usimm,
    /// Ramulator's format.
    Ramulator,
    /// This program's own format.
    Binary,
}

impl From<FormatName> for Format {
    fn from(name: FormatName) -> Self {
        match name {
            FormatName::Usimm => Self::Usimm,
            FormatName::Ramulator => Self::Ramulator,
            FormatName::Binary => Self::Binary,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum CompressionName {
    /// No compression.
    None,
    /// gzip.
    Gzip,
}

impl From<CompressionName> for Compression {
    fn from(name: CompressionName) -> Self {
        match name {
            CompressionName::None => Self::None,
            CompressionName::Gzip => Self::Gzip,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum KindName {
    /// All lines in order, repeatedly.
    Scan,
    /// Uniformly random lines.
    Uniform,
    /// Zipf-distributed lines: few of them often, most of them rarely.
    Zipf,
    /// Lines at a constant distance, modulo the number of lines.
    Stride,
    /// A linked list through all lines in random order. Reads only.
    PointerChase,
    /// All lines in order, repeatedly. Writes only.
    StoreStream,
    /// Random lines, each read and then written.
    HashUpdates,
}
