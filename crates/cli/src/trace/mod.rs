//! `oblivio trace`: traces of real programs.

mod emulator;
mod record;
mod set;
mod summary;
mod workloads;
mod writing;

pub(crate) use record::record;
pub(crate) use set::record_set;
