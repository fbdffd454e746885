//! The trivial ORAM: every access reads everything, and writes go round.
//!
//! The oldest oblivious RAM there is: touch all blocks at each access, and nobody learns which was meant (Goldreich and
//! Ostrovsky, J. ACM 1996, section 1, the trivial solution). It costs O(N) an access, and nothing else: no stash, no
//! position map, nothing that happens seldom. So it is for arrays of a few MiB, and an oracle of privacy for all other
//! schemes: what storage sees is the same, to the piece, for all uses of the same length.
//!
//! Instead of writing everything back, access `t` writes one bucket of two blocks: the block it was for, and block
//! `t mod N`, which is carried on. So after `N` accesses every block has been written anew, and the latest copy of each
//! lies in the last `N` buckets:
//!
//! ```text
//! bucket    …  t-N   t-N+1   …   t-1  │ t
//! read         └────── all of them ─┘ │ written: the block wanted, and block t mod N
//! ```
//!
//! Buckets lie on a ring of `N + W` places, bucket `t` at `t mod (N + W)`: a state outlives `W` accesses, so that a
//! client that crashed can go back to it (ADR 5 of the repository). Number, place and version of a bucket are
//! all `t`, the number of accesses so far. The client keeps that, and which blocks have contents.

mod access;
mod array;
mod params;
mod state;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;

pub use params::ScanParams;

use super::{ArrayRequirements, DurableConfig, DurableScheme};
use crate::error::{Error, ErrorKind};

/// The trivial ORAM.
pub struct DurableScan;

const NAME: &str = "scan";

impl DurableScheme for DurableScan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the trivial ORAM, in which every access reads everything: for disks of a few MiB"
    }

    fn plan(&self, requirements: &ArrayRequirements) -> Result<Box<dyn DurableConfig>, Error> {
        if let Some(said) = requirements.of_trees().iter().chain(&requirements.of_servers()).next()
        {
            return Err(impossible(format!(
                "the scheme `{NAME}` has no {said}: leave it out, or choose another scheme"
            )));
        }
        let params = ScanParams::new(requirements.blocks(), requirements.block_bytes);
        params.check()?;
        let client_bytes = params.cost()?.client_bytes();
        if client_bytes > requirements.client_bytes_max {
            return Err(impossible(format!(
                "such a volume takes {client_bytes} bytes of client memory: allow as many"
            )));
        }
        Ok(Box::new(params))
    }

    fn decode(
        &self,
        blocks: u64,
        block_bytes: u32,
        params: &[u8],
    ) -> Result<Box<dyn DurableConfig>, Error> {
        let spare = params.try_into().map(u64::from_le_bytes);
        let spare = spare.map_err(|_| impossible("parameters of `scan` have another length"))?;
        let params = ScanParams { blocks, block_bytes, spare };
        params.check()?;
        Ok(Box::new(params))
    }
}

fn impossible(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, problem)
}

fn invalid(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, problem)
}
