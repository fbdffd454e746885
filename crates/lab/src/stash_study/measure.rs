//! One run: the engine on a tree in memory, asked for one address after the other.

use oblivio_core::scheme;
use oblivio_core::{
    Access, Error, ErrorKind, FlatOram, Front, MemoryStore, NoSecrecy, Op, Oram, PathOram, RawOram,
    Sealer,
};
use oblivio_sim::workload::Addresses;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::Scheme;
use super::plan::Task;
use super::setup::BLOCK_BYTES;

/// A stash that grows past so many blocks has run away: the tree is too full.
pub const STASH_BLOCKS_SEEN_MAX: usize = 1000;

/// Passes over all addresses before counting starts: one that fills the tree, and some in which it
/// forgets how it was filled.
pub(super) const WARM_UP_PASSES: u64 = 4;

/// What one run saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// All of its randomness.
    pub seed: u64,
    /// `histogram[n]`: after how many write-backs of a path `n` blocks were left in the stash.
    pub histogram: Vec<u64>,
    /// The stash grew past [`STASH_BLOCKS_SEEN_MAX`] and the run stopped there.
    pub ran_away: bool,
}

/// Makes the run `task`.
pub(super) fn measure(task: &Task, progress: &dyn Fn(u64)) -> Result<Run, Error> {
    let setup = &task.setup;
    let tree = setup.tree(STASH_BLOCKS_SEEN_MAX)?;
    let store = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
    let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let mut coins = StdRng::seed_from_u64(task.seed);
    let addresses = Addresses::new(task.workload, setup.capacity, StdRng::from_rng(&mut coins));
    match setup.scheme {
        Scheme::PathZ4 => {
            count(PathOram::path(&tree, sealer, store, coins)?, addresses, task, progress)
        }
        Scheme::RawZ5A5 => {
            count(RawOram::raw(&setup.raw(tree), sealer, store, coins)?, addresses, task, progress)
        }
    }
}

fn count<B: scheme::Scheme>(
    mut oram: FlatOram<B, StdRng>,
    mut addresses: Addresses,
    task: &Task,
    progress: &dyn Fn(u64),
) -> Result<Run, Error> {
    let warm_up = task.setup.capacity * WARM_UP_PASSES;
    let fill = task.setup.capacity;
    // The fill pass is a scan for every workload, so that all blocks exist.
    let settled = access_all(&mut oram, &mut Addresses::scan(fill), fill, progress)
        .and_then(|()| access_all(&mut oram, &mut addresses, warm_up - fill, progress));
    oram.record_stash_histogram();
    let counted =
        settled.and_then(|()| access_all(&mut oram, &mut addresses, task.accesses, progress));
    let ran_away = match counted {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::StashFull => true,
        Err(error) => return Err(error),
    };
    let histogram = oram.stash().occupancy().histogram().to_vec();
    Ok(Run { seed: task.seed, histogram, ran_away })
}

/// Asks for `count` addresses. Reads and writes leave the same stash behind, once all blocks exist.
fn access_all(
    oram: &mut impl Oram,
    addresses: &mut Addresses,
    count: u64,
    progress: &dyn Fn(u64),
) -> Result<(), Error> {
    const TOLD_AT_ONCE: u64 = 1 << 13;
    let data = [0; BLOCK_BYTES];
    let mut left = count;
    while left > 0 {
        let now = left.min(TOLD_AT_ONCE);
        for _ in 0..now {
            oram.access(&mut [Access { address: addresses.next_address(), op: Op::Write(&data) }])?;
        }
        progress(now);
        left -= now;
    }
    Ok(())
}
