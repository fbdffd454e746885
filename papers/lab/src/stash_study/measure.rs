//! One run: the engine serves requests on a tree of tags, whose blocks have addresses and leaves
//! but no data.

use oblivio_core::scheme::{PathScheme, RawScheme, Scheme as Engine, WINDOW_ACCESSES_MAX};
use oblivio_core::{Access, Error, ErrorKind, FlatOram, Front, Op, Oram, RawConfig};
use oblivio_models::workload::Addresses;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::plan::Task;
use super::{Scheme, Workload};

/// The maximum number of blocks in the stash. A larger stash has *run away*: it would keep growing,
/// since the tree is too full.
pub const STASH_BLOCKS_SEEN_MAX: usize = 1000;

/// Accesses before counting starts, as a multiple of the number of blocks. The first pass is a scan
/// that fills the tree. After the others, the initial state of the tree no longer matters.
pub(super) const WARM_UP_PASSES: u64 = 4;

/// The result of one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The seed of all random choices of the run.
    pub seed: u64,
    /// `histogram[n]`: the number of write-backs after which `n` blocks were left in the stash.
    pub histogram: Vec<u64>,
    /// Whether the run stopped because the stash grew past [`STASH_BLOCKS_SEEN_MAX`].
    pub ran_away: bool,
}

/// Makes the run `task`.
pub(super) fn measure(task: &Task, progress: &dyn Fn(u64)) -> Result<Run, Error> {
    let Task { setup, workload, accesses, seed } = task;
    let tree = setup.tree(STASH_BLOCKS_SEEN_MAX)?;
    match setup.scheme {
        Scheme::PathZ4 => {
            let scheme = PathScheme::of_tags(&tree)?;
            count(scheme, *workload, *accesses, *seed, progress)
        }
        Scheme::RawZ5A5 => measure_raw(&setup.raw(tree), *workload, *accesses, *seed, progress),
    }
}

/// Counts the blocks left in the stash of RAW ORAM after each eviction, over `accesses` accesses
/// after a warm-up. Blocks have 0 bytes.
pub(crate) fn measure_raw(
    config: &RawConfig,
    workload: Workload,
    accesses: u64,
    seed: u64,
    progress: &dyn Fn(u64),
) -> Result<Run, Error> {
    count(RawScheme::of_tags(config)?, workload, accesses, seed, progress)
}

fn count<S: Engine>(
    scheme: S,
    workload: Workload,
    accesses: u64,
    seed: u64,
    progress: &dyn Fn(u64),
) -> Result<Run, Error> {
    let capacity = scheme.config().capacity;
    let mut coins = StdRng::seed_from_u64(seed);
    let mut addresses = Addresses::new(workload, capacity, StdRng::from_rng(&mut coins));
    let mut oram = FlatOram::new(scheme, coins)?;
    // The fill pass is a scan for every workload, so that all blocks exist.
    let settling = capacity * (WARM_UP_PASSES - 1);
    let settled = access_all(&mut oram, &mut Addresses::scan(capacity), capacity, progress)
        .and_then(|()| access_all(&mut oram, &mut addresses, settling, progress));
    oram.record_stash_histogram();
    let counted = settled.and_then(|()| access_all(&mut oram, &mut addresses, accesses, progress));
    let ran_away = match counted {
        Ok(()) => false,
        Err(error) if error.kind() == ErrorKind::StashFull => true,
        Err(error) => return Err(error),
    };
    let histogram = oram.stash().occupancy().histogram().to_vec();
    Ok(Run { seed, histogram, ran_away })
}

/// Writes to the next `count` addresses. Once all blocks exist, reads would leave the same stash.
///
/// Requests come in batches, so that the engine prefetches the next path from memory while it works
/// on the current one.
fn access_all(
    oram: &mut impl Oram,
    addresses: &mut Addresses,
    count: u64,
    progress: &dyn Fn(u64),
) -> Result<(), Error> {
    const TOLD_AT_ONCE: u64 = 1 << 13;
    let mut left = count;
    while left > 0 {
        let now = left.min(TOLD_AT_ONCE);
        let mut rest = now;
        while rest > 0 {
            let mut batch =
                [(); WINDOW_ACCESSES_MAX].map(|()| Access { address: 0, op: Op::Write(&[]) });
            let batch = &mut batch[..rest.min(WINDOW_ACCESSES_MAX as u64) as usize];
            batch.iter_mut().for_each(|access| access.address = addresses.next_address());
            oram.access(batch)?;
            rest -= batch.len() as u64;
        }
        progress(now);
        left -= now;
    }
    Ok(())
}
