//! What can be typed after `oblivio-lab trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use oblivio_sim::trace::{Compression, Format};

use super::{TRACE_RECORD_EXAMPLES, TraceRecordArgs, TraceRecordSetArgs};

pub(crate) const TRACE_FORMATS: &str = "\
Formats, each as it is or compressed with gzip or zstd; which one it is, the file says itself:
  usimm      `<gap> R <hex address> [<hex pc>]` or `<gap> W <hex address>`, a record a line
  ramulator  `<gap> <read address> [<write-back address>]` in decimal, a record or two a line
  binary     this program's own: about four bytes a record, with a checksum

A gap is the instructions before the record that asked for nothing. Addresses are those of bytes; what
counts is which line of 64 bytes they are in.";

#[derive(Subcommand)]
pub(crate) enum TraceCommand {
    /// Say what traces are like: how often they ask, for how much, and how soon again.
    #[command(
        after_help = "Examples:\n  oblivio-lab trace info 403.gcc.gz 458.sjeng.gz\n  oblivio-lab trace info --json own.trace | jq .[0].reuse"
    )]
    Info(TraceInfoArgs),
    /// Write a trace in another format, or move it into a small memory.
    #[command(
        after_help = "Examples:\n  oblivio-lab trace convert 403.gcc.gz gcc.obt\n  oblivio-lab trace convert gcc.obt gcc.usimm.gz --to usimm --compress gzip\n  oblivio-lab trace convert 403.gcc.gz gcc-small.obt --remap 4194304"
    )]
    Convert(TraceConvertArgs),
    /// Let several programs take turns, each in a range of addresses of its own.
    #[command(
        after_help = "Example:\n  oblivio-lab trace mix 403.gcc.gz 456.hmmer.gz --output both.obt --slice 1000000"
    )]
    Mix(TraceMixArgs),
    /// Make a trace.
    #[command(
        after_help = "Examples:\n  oblivio-lab trace make zipf --lines 1000000 --records 500000 --writes 0.3 --output zipf.obt\n  oblivio-lab trace make pointer-chase --gap-mean 49 --output chase.obt"
    )]
    Make(TraceMakeArgs),
    /// Run a program under an emulator, and write its first-level cache misses.
    ///
    /// The program runs as it is, with its own input and output, under QEMU's user-mode emulator, until it
    /// ends or enough is recorded; then it is killed. Its children are not recorded. Pages are numbered
    /// from 0 in the order of their first use.
    #[command(after_help = TRACE_RECORD_EXAMPLES)]
    Record(TraceRecordArgs),
    /// Record a set of programs that use memory as those of Table II of IR-ORAM, and compare.
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
    /// Where it goes. A file that exists is left alone.
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// The format of the trace, when it is not what it looks like.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) from: Option<FormatName>,
    #[command(flatten)]
    pub(crate) remap: RemapArgs,
    #[command(flatten)]
    pub(crate) write: TraceWriteArgs,
}

#[derive(Args)]
pub(crate) struct TraceMixArgs {
    /// The traces, one for each program.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where the mix goes. A file that exists is left alone.
    #[arg(long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// Instructions of a turn.
    #[arg(long, value_name = "INSTRUCTIONS", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) slice: u64,
    #[command(flatten)]
    pub(crate) remap: RemapArgs,
    #[command(flatten)]
    pub(crate) write: TraceWriteArgs,
}

#[derive(Args)]
pub(crate) struct TraceMakeArgs {
    /// What asks for lines.
    #[arg(value_enum)]
    pub(crate) kind: KindName,
    /// Where the trace goes. A file that exists is left alone.
    #[arg(long, value_name = "OUT")]
    pub(crate) output: PathBuf,
    /// How many lines of 64 bytes there are to ask for, from address 0 on.
    #[arg(long, value_name = "LINES", default_value_t = 1 << 16)]
    pub(crate) lines: u64,
    /// How many records to make.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) records: usize,
    /// Instructions before each record, always the same.
    #[arg(long, value_name = "N", default_value_t = 49, conflicts_with = "gap_mean")]
    pub(crate) gap: u32,
    /// Instructions before each record on average, with a geometric distribution.
    #[arg(long, value_name = "MEAN")]
    pub(crate) gap_mean: Option<f64>,
    /// The part of records that write, from 0 to 1 [default: 0]. Only for scan, uniform, zipf, stride.
    #[arg(long, value_name = "PART")]
    pub(crate) writes: Option<f64>,
    /// Lines from one to the next [default: 64, a page]. Only for stride.
    #[arg(long, value_name = "LINES")]
    pub(crate) stride: Option<u64>,
    /// Where all coins come from.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) write: TraceWriteArgs,
}

/// How a trace is written.
#[derive(Args)]
pub(crate) struct TraceWriteArgs {
    /// The format to write. That of Ramulator has no place for a write that does not come right after a
    /// read: such a trace is refused.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatName::Binary)]
    pub(crate) to: FormatName,
    /// How to compress it.
    #[arg(long, value_enum, value_name = "HOW", default_value_t = CompressionName::None)]
    pub(crate) compress: CompressionName,
    /// Print JSON: what the written trace is like.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Whether a trace is moved into a small memory.
#[derive(Args)]
pub(crate) struct RemapArgs {
    /// Move the trace, page by page of 4 KiB, into a memory of so many lines of 64 bytes. A page that is
    /// touched first gets the next page.
    #[arg(long, value_name = "LINES")]
    pub(crate) remap: Option<u64>,
    /// Give it a random free page instead, as coins of this seed fall.
    #[arg(long, value_name = "SEED", requires = "remap")]
    pub(crate) scatter: Option<u64>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FormatName {
    /// Of USIMM.
    Usimm,
    /// Of Ramulator.
    Ramulator,
    /// This program's own.
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
    /// Not at all.
    None,
    /// With gzip.
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
    /// All lines in turn.
    Scan,
    /// Uniformly random lines.
    Uniform,
    /// Few lines often, most of them seldom.
    Zipf,
    /// Every so many lines, around and around.
    Stride,
    /// A linked list through all lines in random order. Reads only.
    PointerChase,
    /// All lines in turn. Writes only.
    StoreStream,
    /// A random line is read, and then written.
    HashUpdates,
}
