//! Small programs that use memory as those of Table II of IR-ORAM do.
//!
//! Each kernel is one habit: chasing pointers, sorting in place, storing without reading. Sizes and the
//! work between accesses are arguments, and there is no chance: the same arguments make the same
//! accesses. `oblivio-lab trace record` makes traces of them.

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

/// Small programs that use memory as those of Table II of IR-ORAM do.
#[derive(Parser)]
#[command(name = "oblivio-kernels", version)]
enum Kernel {
    /// Follow pointers through memory in an order nobody can foresee (mcf). Reads only.
    Chase(chase::Args),
    /// Put counters into a table, at places that keys give (deepsjeng). Stores only.
    Hash(hash::Args),
    /// Read an array in order and write a few results (blackscholes, streamcluster, freqmine).
    Scan(scan::Args),
    /// Sort an array in place, then fill it with other keys (xz).
    Sort(sort::Args),
    /// Print a program in C, for a compiler to work on (gcc).
    Source(source::Args),
    /// Compute a large field from the neighbours in a small one (cam4, imagick).
    Stencil(stencil::Args),
    /// Store to arrays in order, and read none (lbm, bwaves, roms).
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
