//! Arguments of `oblivio-lab trace record` and `record-set`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use oblivio_sim::recording::StoreMisses;

pub(crate) const TRACE_RECORD_EXAMPLES: &str = "\
Examples:
  oblivio-lab trace record --output sort.trace.gz -- sort words.txt
  oblivio-lab trace record --warm-up 0 --misses 10k --json -- /usr/bin/python3 -c 'print(1)'

The trace has one record a line: the number of instructions before it that made no request, R or W,
and the address in hexadecimal. It is compressed if the name ends in .gz. This command needs QEMU
4.2 to 8.2 (Debian: qemu-user) and its plugin (cargo build --release -p oblivio-trace-plugin).

The summary goes to standard error, after the program's output. With --json it goes to standard
output, and the program's output to standard error. If the program fails before --misses records are
written, the exit code is the program's; what was recorded is kept.";

#[derive(Args)]
pub(crate) struct TraceRecordArgs {
    /// The trace file; replaced if it exists [default: the command's name and .trace.gz].
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) how: RecordingArgs,
    /// Instructions before the first record; they fill the cache. Takes a unit, such as 100M.
    #[arg(long, value_name = "N", value_parser = parse_count, default_value = "100M")]
    pub(crate) warm_up: u64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Args)]
pub(crate) struct TraceRecordSetArgs {
    /// Directory for the traces. Created if missing; traces of an earlier run are replaced.
    #[arg(long, value_name = "DIR", default_value = "traces")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) how: RecordingArgs,
    /// Record only these programs, such as mcf lbm.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pub(crate) only: Vec<String>,
    /// The program that replaces programs that may not be distributed [default: oblivio-kernels,
    /// next to this program].
    #[arg(long, value_name = "FILE")]
    pub(crate) kernels: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Options for the recording.
#[derive(Args)]
pub(crate) struct RecordingArgs {
    /// Records in the trace. Takes a unit, such as 2M.
    #[arg(long, value_name = "N", value_parser = parse_misses, default_value = "2M")]
    pub(crate) misses: u64,
    /// Size of the first-level data cache in KiB.
    #[arg(
        long,
        value_name = "KIB",
        value_parser = clap::value_parser!(u32).range(1..=1 << 20),
        default_value_t = 256
    )]
    pub(crate) l1_kib: u32,
    /// Ways of the first-level data cache.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=1024),
        default_value_t = 2
    )]
    pub(crate) l1_ways: u32,
    /// The effect of a store whose line is not in the cache.
    #[arg(long, value_enum, default_value_t = StoreMissesName::Write)]
    pub(crate) store_misses: StoreMissesName,
    /// The emulator [default: qemu- and the architecture of this machine].
    #[arg(long, value_name = "FILE")]
    pub(crate) qemu: Option<PathBuf>,
    /// The plugin [default: `liboblivio_trace_plugin.so`, next to this program].
    #[arg(long, value_name = "FILE")]
    pub(crate) plugin: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum StoreMissesName {
    /// Request nothing until the line is evicted: only reads make a program wait (as Table II
    /// counts).
    Write,
    /// Request the line, as a load does.
    Fetch,
}

impl From<StoreMissesName> for StoreMisses {
    fn from(name: StoreMissesName) -> Self {
        match name {
            StoreMissesName::Write => Self::Write,
            StoreMissesName::Fetch => Self::Fetch,
        }
    }
}

/// Parses a number with a decimal unit: `2M`, `500k`, `4096`.
fn parse_count(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| "not a number".to_owned())?;
    let unit = match unit {
        "" => 1,
        "k" | "K" => 1000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        _ => return Err("the unit must be k, M or G".into()),
    };
    number.checked_mul(unit).ok_or_else(|| "the number exceeds 2^64 - 1".into())
}

fn parse_misses(text: &str) -> Result<u64, String> {
    match parse_count(text)? {
        0 => Err("a trace needs at least one record".into()),
        misses => Ok(misses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_units_of_thousands() {
        assert_eq!(parse_count("100M"), Ok(100_000_000));
        assert_eq!(parse_count("7"), Ok(7));
        assert_eq!(parse_count("3k"), Ok(3000));
        for wrong in ["", "M", "1T", "-1", "99999999999G", "1.5M"] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
        assert!(parse_misses("0").is_err());
    }
}
