//! The trivial ORAM: every access reads everything, and writes one bucket of a ring.
//!
//! This is the oldest oblivious RAM: every access reads all blocks, so storage cannot tell which
//! block was wanted (Goldreich and Ostrovsky, J. ACM 1996, section 1, the trivial solution). An
//! access costs O(N), so the scheme suits arrays of a few MiB. There is no position map, and no
//! stash that could overflow. It is also a privacy oracle for all other schemes: for any two
//! sequences with the same number of requests, storage sees the same pieces.
//!
//! An access does not write everything back. Access `t` writes one bucket of two blocks: the wanted
//! block, and block `t mod N`, which is carried on. After `N` accesses every block has been
//! rewritten, so the last `N` buckets hold the latest copy of each:
//!
//! ```text
//! bucket    …  t-N   t-N+1   …   t-1  │ t
//! read         └────── all of them ─┘ │ written: the block wanted, and block t mod N
//! ```
//!
//! Buckets are on a ring of `N + W` places, bucket `t` at `t mod (N + W)`. A saved state survives
//! `W` accesses, so a client that crashed can roll back to it (ADR 5 of the repository). Number,
//! place and version of a bucket follow from `t`, the number of accesses so far. The client keeps
//! `t`, and which blocks have contents.

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

/// The trivial ORAM as a durable scheme.
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
        if let Some(setting) =
            requirements.tree_settings().iter().chain(&requirements.server_settings()).next()
        {
            return Err(impossible(format!(
                "the scheme `{NAME}` has no {setting}: leave it out or choose another scheme"
            )));
        }
        let params = ScanParams::new(requirements.blocks(), requirements.block_bytes);
        params.check()?;
        let client_bytes = params.cost()?.client_bytes();
        if client_bytes > requirements.client_bytes_max {
            return Err(impossible(format!(
                "the client needs {client_bytes} bytes of memory: allow more client memory"
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
        let spare =
            spare.map_err(|_| impossible("the parameters of `scan` have the wrong length"))?;
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
