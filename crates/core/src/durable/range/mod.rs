//! rORAM: an ORAM whose accesses are to ranges (Chakraborti et al., "rORAM: Efficient Range ORAM with O(log² N)
//! Locality", NDSS 2019), in the durable form.
//!
//! For each *class* `i` there is a sub-ORAM `R_i` with a tree of its own, which holds a copy of every block and serves aligned
//! ranges of `2^i` blocks. The blocks of such a range lie on paths whose leaves follow each other, and such paths are
//! neighbours in storage. So a range is read in as many stretches as the tree has levels, and not in as many as it has
//! blocks times levels.
//!
//! ```text
//! an access to a range of class i:   R_i: reads 2^i paths from p on; the range moves to p' (ReadRange)
//!                                    every R_j: what was written comes to the client, too
//!                                    every R_j: evicts 2^i / A paths (BatchEvict)
//! ```
//!
//! Where this differs from the paper, and why:
//! - **One aligned range an access**, and not two: whoever asks cuts requests at the borders of ranges.
//! - **Reads do not write.** As in [rotating RAW ORAM](crate::durable::rotating), copies that were read stay, and a copy
//!   counts if the position map, which is on the client, has its leaf, and no other such copy is nearer to the root: a newer copy is never
//!   below an older one, because an eviction takes in every copy on its part of the path before it places one. So there are
//!   no versions in storage, and no labels of other trees beside a block.
//! - **A path is evicted after A blocks**, and not after each, to trees of `A / 2` blocks a leaf (Ring ORAM's analysis, as
//!   in RAW ORAM). `oblivio-lab run range-stash` counts what is left on the client.
//! - **Evictions rotate** ([`Places`](crate::scheme::RotatingScheme)): `W` spare places a level, and the first levels on the
//!   client, so many that no batch writes a bucket twice.
//! - All sub-ORAMs have made the same number of evictions. Everything about a bucket follows from that one count.
//!
//! **What storage sees** of an access is its class, the first leaf of the run that is read, which is fresh, and which evictions
//! follow. It learns how many ranges of which class were asked for, and nothing else.

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

/// rORAM whose evictions rotate.
pub struct DurableRange;

const NAME: &str = "range";

impl DurableScheme for DurableRange {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "rORAM, which reads ranges as they lie: for large sequential requests to storage that seeks"
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
