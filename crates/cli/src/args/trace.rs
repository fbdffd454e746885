//! What `oblivio trace` takes.

use clap::Subcommand;

use super::{TRACE_RECORD_EXAMPLES, TraceRecordArgs, TraceRecordSetArgs};

#[derive(Subcommand)]
pub(crate) enum TraceCommand {
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
