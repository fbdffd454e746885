//! A plugin for QEMU's user-mode emulator that records the first-level cache misses of a program.
//!
//! The emulator translates a program block by block. Into each block the plugin has it weave one
//! addition, of the block's instructions to a counter, and a call for each load and store. The call
//! knows how many instructions of its block are still to come, and so which instruction it stands for.
//! It goes through [`oblivio_sim::recording::FirstLevel`]; what misses is written to a
//! [raw file](oblivio_sim::recording::raw). `oblivio-lab trace record` starts it, and reads that file.
//!
//! It speaks version 1 of the emulator's interface for plugins: that of QEMU 4.2 to 8.2.

mod arguments;
#[cfg(not(test))] // The functions of the emulator are there inside it alone.
mod qemu;
mod recorder;
