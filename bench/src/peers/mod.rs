//! The peers: ORAMs from crates.io, each used through a minimal adapter.
//!
//! Every peer runs in the configuration that it recommends, and is filled and checked through the
//! same [`Ram`](crate::ram::Ram) interface as our engine.

mod mc_oblivious;
mod oram;
mod rostl;

use crate::subject::Description;

/// Returns every peer in every row, fastest first.
pub fn all() -> Vec<Description> {
    [rostl::all(), mc_oblivious::all(), oram::all()].into_iter().flatten().collect()
}
