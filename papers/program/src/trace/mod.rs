//! `oblivio-lab trace`: memory traces, recorded and generated.

mod conversion;
mod emulator;
mod record;
mod report;
mod set;
mod summary;
mod workloads;
mod writing;

pub(crate) use conversion::{convert, info, make, mix, read, read_all};
pub(crate) use record::record;
pub(crate) use set::record_set;
