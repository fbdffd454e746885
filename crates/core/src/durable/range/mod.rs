//! rORAM, an ORAM whose accesses are to ranges, in its durable form (Chakraborti et al., "rORAM:
//! Efficient Range ORAM with O(log² N) Locality", NDSS 2019).
//!
//! For each *class* `i` there is a sub-ORAM `R_i` with its own tree. It holds a copy of every
//! block, and serves aligned ranges of `2^i` blocks. The blocks of such a range are on paths with
//! consecutive leaves, which are neighbours in storage. So reading a range takes one contiguous
//! read per level of the tree, not one per block and level.
//!
//! ```text
//! an access to a range of class i:
//!   R_i:         reads 2^i paths from p on; the range moves to p' (ReadRange)
//!   every R_j:   written blocks wait on the client for R_j, too
//!   every R_j:   evicts 2^i / A paths (BatchEvict)
//! ```
//!
//! Differences from the paper, and their reasons:
//! - **One aligned range per access**, not two: the caller cuts requests at the borders of ranges.
//! - **Reads do not write.** As in [rotating RAW ORAM](crate::durable::rotating), copies that were
//!   read stay in storage. A copy counts if it has the block's leaf in the position map on the
//!   client, and no other such copy is nearer to the root. A newer copy is never below an older
//!   one, because an eviction takes in every copy on its part of the path before it places one. So
//!   storage needs no versions, and blocks carry no labels of other trees.
//! - **A path is evicted after A blocks**, not after each, and trees have at most `A / 2` blocks
//!   per leaf (Ring ORAM's analysis, as in RAW ORAM). `oblivio-lab run range-stash` counts the
//!   blocks left on the client.
//! - **Evictions rotate** ([`VersionedTree`](crate::scheme::VersionedTree)): each level has `W`
//!   spare places. The client keeps enough of the first levels that no batch writes a bucket twice.
//! - All sub-ORAMs have made the same number of evictions. Place, name and version of every bucket
//!   follow from that number.
//!
//! **What storage sees** of an access: its class, the first leaf of the run, and the evictions that
//! follow. The leaf was drawn at random and not shown before. Storage learns how many ranges of
//! each class were requested, and nothing else.

mod access;
mod array;
mod check;
mod client;
mod params;
mod plan;
mod state;
mod sub_oram;

use alloc::boxed::Box;
use alloc::string::String;

pub use params::RangeParams;

use super::{ArrayRequirements, DurableConfig, DurableScheme};
use crate::error::{Error, ErrorKind};

/// rORAM with rotating evictions as a durable scheme.
pub struct DurableRange;

const NAME: &str = "range";

impl DurableScheme for DurableRange {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "rORAM, which keeps ranges contiguous: for long sequential requests if seeks are slow"
    }

    fn plan(&self, requirements: &ArrayRequirements) -> Result<Box<dyn DurableConfig>, Error> {
        Ok(Box::new(plan::fulfil(requirements)?))
    }

    fn decode(
        &self,
        blocks: u64,
        block_bytes: u32,
        params: &[u8],
    ) -> Result<Box<dyn DurableConfig>, Error> {
        Ok(Box::new(RangeParams::decode(blocks, block_bytes, params)?))
    }
}

fn impossible(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, problem)
}

fn invalid(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, problem)
}
