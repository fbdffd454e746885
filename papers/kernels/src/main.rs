//! Small programs with the access patterns of the programs in Table II of IR-ORAM.
//!
//! Each kernel has one access pattern, such as pointer chasing, sorting in place, or storing
//! without reading. Arguments set the sizes and the work between accesses. Nothing is random: the
//! same arguments give the same accesses. `oblivio-lab trace record` records traces of them.

mod chase;
mod hash;
mod scan;
mod sort;
mod source;
mod stencil;
mod stream;
mod work;

use std::process::ExitCode;

use clap::Parser;

/// Small programs with the access patterns of the programs in Table II of IR-ORAM.
#[derive(Parser)]
#[command(name = "oblivio-kernels", version)]
enum Kernel {
    /// Follow pointers through memory in an unpredictable order (mcf). Reads only.
    Chase(chase::Args),
    /// Store counters into a table at hashed indices (deepsjeng). Stores only.
    Hash(hash::Args),
    /// Read an array in order and write a few results (blackscholes, streamcluster, freqmine).
    Scan(scan::Args),
    /// Sort an array in place, then refill it with other keys (xz).
    Sort(sort::Args),
    /// Print a C program to be compiled (gcc).
    Source(source::Args),
    /// Compute a large field from neighbours in a small one (cam4, imagick).
    Stencil(stencil::Args),
    /// Store to arrays in order, without reading (lbm, bwaves, roms).
    Stream(stream::Args),
}

fn main() -> ExitCode {
    let result = match Kernel::parse() {
        Kernel::Chase(args) => chase::run(&args),
        Kernel::Hash(args) => hash::run(&args),
        Kernel::Scan(args) => scan::run(&args),
        Kernel::Sort(args) => sort::run(&args),
        Kernel::Source(args) => return source::run(&args),
        Kernel::Stencil(args) => stencil::run(&args),
        Kernel::Stream(args) => stream::run(&args),
    };
    std::hint::black_box(result);
    ExitCode::SUCCESS
}
