//! A plugin for QEMU's user-mode emulator that records the first-level cache misses of a program.
//!
//! The emulator translates a program block by block. Into each block, the plugin inserts code that
//! adds the block's number of instructions to a counter, and a call for each load and store. The
//! call knows how many instructions of its block follow, and so the number of its own instruction.
//! It passes the access through [`oblivio_sim::recording::FirstLevel`], and writes the resulting
//! records to a [raw file](oblivio_sim::recording::raw). `oblivio-lab trace record` starts the
//! plugin and reads that file.
//!
//! The plugin uses version 1 of the emulator's plugin interface, as in QEMU 4.2 to 8.2.

mod arguments;
#[cfg(not(test))] // Only the emulator provides the functions that it calls.
mod qemu;
mod recorder;
