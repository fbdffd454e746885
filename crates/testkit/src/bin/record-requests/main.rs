//! Records the disk requests of ext4 while programs read and write files: the mixes of rORAM,
//! Fig. 7.
//!
//! The tool creates a sparse disk of 16 GiB behind a loop device, formats it with ext4, and runs
//! each mix on it. The requests come from the kernel's block trace. `oblivio-lab run roram` replays
//! the recordings on models of storage media. The tool needs root, a kernel with loop devices, ext4
//! and tracefs, and some gigabytes in the temporary directory.

mod block_trace;
mod disk;
mod mixes;

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;

use block_trace::BlockTrace;
use disk::LoopDisk;
use mixes::Mix;

/// Maximum number of requests in a recording. Later requests are dropped.
const REQUESTS_MAX: usize = 4000;

/// Records the disk requests of ext4, one file for each mix of programs
#[derive(Parser)]
#[command(name = "record-requests")]
struct Args {
    /// Directory for the recordings; existing recordings are replaced
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

fn main() -> io::Result<()> {
    let args = Args::parse();
    fs::create_dir_all(&args.output)?;
    for mix in Mix::ALL {
        let disk = LoopDisk::new(mix.read_ahead_kib())?;
        mix.prepare(disk.folder(), args.seed)?;
        disk.forget_what_is_cached()?;
        let trace = BlockTrace::start(disk.number()?)?;
        mix.run(disk.folder(), args.seed)?;
        disk.sync()?;
        let requests = trace.end()?;
        let path = args.output.join(format!("{}.csv", mix.name()));
        let mut file = io::BufWriter::new(fs::File::create(&path)?);
        for request in requests.iter().take(REQUESTS_MAX) {
            writeln!(file, "{request}")?;
        }
        file.flush()?;
        writeln!(io::stdout(), "{}: {} requests", path.display(), requests.len())?;
    }
    Ok(())
}

/// Prints an error that occurred during the cleanup.
fn warn(error: io::Error) {
    drop(writeln!(io::stderr(), "record-requests: {error}"));
}
