//! Records the steps of a small durable volume on its client and in storage, in order.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, EVICT_PERIOD, SmallVolume};
use oblivio_testkit::crash::{DirStep, WatchedDir};
use oblivio_volume::volume::FIRST_TREE;
use rand::SeedableRng;
use rand::rngs::StdRng;

pub(super) const LEAF_LEVEL: u8 = 4;
/// Number of levels on the client. A saved state stays usable for 2^`TREE_TOP_LEVELS` evictions.
pub(super) const TREE_TOP_LEVELS: u8 = 2;
const BLOCKS: u64 = 36;
const SEED: u64 = 1;

/// Number of batches. At the end, every place has been written, the latest checkpoint is recent,
/// and some places are free again.
const BATCHES: u64 = 58;

/// A step of the volume. Successive appends are merged, and so are successive reads of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VolumeStep {
    /// Accesses or a client state were appended to the log, in `records` appends with `bytes` bytes
    /// in total.
    Append { records: usize, bytes: usize },
    /// The log was made durable.
    SyncLog,
    /// The client read the anchor from storage.
    ReadAnchor,
    /// The anchor was written.
    WriteAnchor,
    /// Storage was made durable.
    Flush,
    /// This number of paths was read in sequence.
    ReadPaths(usize),
    /// A path was written to these places, one per level. Places are numbered as in storage.
    WritePath(Vec<BucketSlot>),
}

/// A physical place of a bucket: a level of the tree, and the number of the place on the level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BucketSlot {
    pub(super) level: u8,
    pub(super) index: u64,
}

/// A step on the client or in storage.
enum SideStep {
    Client(DirStep),
    Storage(Event),
}

/// Records a volume that serves batches of three requests, one of which is a write.
pub(super) fn record() -> Result<Vec<VolumeStep>, Box<dyn Error>> {
    let setup = SmallVolume {
        leaf_level: LEAF_LEVEL,
        tree_top_levels: TREE_TOP_LEVELS,
        blocks: BLOCKS,
        // Keep the whole log in one file.
        state_file_bytes_max: 1 << 20,
        ..SmallVolume::default()
    };
    let world = setup.world();
    let side_steps: Arc<Mutex<Vec<SideStep>>> = Arc::default();
    let (by_storage, by_client) = (side_steps.clone(), side_steps.clone());
    let store = Recorder::new(world.store(), move |event: &Event, _: &[u8]| {
        lock(&by_storage).push(SideStep::Storage(*event));
    });
    let dir =
        WatchedDir::new(world.dir(), move |step| lock(&by_client).push(SideStep::Client(step)));
    let mut volume = setup.create(store, dir, StdRng::seed_from_u64(SEED))?;
    lock(&side_steps).clear();

    let written = [1; BLOCK_BYTES as usize];
    for batch in 0..BATCHES {
        let mut read = [[0; BLOCK_BYTES as usize]; EVICT_PERIOD as usize - 1];
        let reads = (1..).zip(&mut read).map(|(i, buffer)| Access {
            address: (batch * 7 + i * 11) % BLOCKS,
            op: Op::Read(buffer),
        });
        let write = Access { address: batch % BLOCKS, op: Op::Write(&written) };
        let mut batch: Vec<_> = [write].into_iter().chain(reads).collect();
        volume.access(&mut batch)?;
    }
    let steps = steps(&lock(&side_steps));
    Ok(steps)
}

fn lock(side_steps: &Mutex<Vec<SideStep>>) -> std::sync::MutexGuard<'_, Vec<SideStep>> {
    side_steps.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Converts the steps of both sides to steps of the volume. Drops prefetches, and client steps
/// other than appends and syncs. All reads of one trip count once.
fn steps(side_steps: &[SideStep]) -> Vec<VolumeStep> {
    let mut steps: Vec<VolumeStep> = Vec::new();
    let mut last_trip = None;
    for side_step in side_steps {
        match side_step {
            SideStep::Client(DirStep::Append { bytes: more, .. }) => match steps.last_mut() {
                Some(VolumeStep::Append { records, bytes }) => {
                    *records += 1;
                    *bytes += more;
                }
                _ => steps.push(VolumeStep::Append { records: 1, bytes: *more }),
            },
            SideStep::Client(DirStep::Sync) => steps.push(VolumeStep::SyncLog),
            SideStep::Client(_) => {}
            SideStep::Storage(event) => {
                let is_new = last_trip.replace(event.trip) != Some(event.trip);
                note_of_storage(&mut steps, event, is_new);
            }
        }
    }
    steps
}

fn note_of_storage(steps: &mut Vec<VolumeStep>, event: &Event, is_new_trip: bool) {
    let Some(piece) = event.piece else {
        steps.push(VolumeStep::Flush);
        return;
    };
    let is_of_tree = piece.tree == FIRST_TREE;
    match (event.operation, steps.last_mut()) {
        (Operation::Prefetch | Operation::Flush, _) => {}
        (Operation::Read, Some(VolumeStep::ReadPaths(paths))) if is_new_trip => *paths += 1,
        (Operation::Read, _) if is_new_trip => {
            steps.push(if is_of_tree { VolumeStep::ReadPaths(1) } else { VolumeStep::ReadAnchor });
        }
        (Operation::Read, _) => {}
        (Operation::Write, Some(VolumeStep::WritePath(places))) if !is_new_trip => {
            places.extend(is_of_tree.then(|| place(piece.bucket)));
        }
        (Operation::Write, _) => steps.push(match is_of_tree {
            true => VolumeStep::WritePath(vec![place(piece.bucket)]),
            false => VolumeStep::WriteAnchor,
        }),
    }
}

/// Converts a bucket of the store to a place. The store numbers the places of a level as buckets of
/// its next level, since there are more places than buckets.
fn place(bucket: oblivio_core::BucketId) -> BucketSlot {
    BucketSlot { level: bucket.level() - 1, index: bucket.index() }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "all of this is tests")]

    use super::*;

    #[test]
    fn no_path_is_read_before_its_move_is_durable() {
        let steps = record().unwrap();
        let mut is_durable = false;
        let mut paths = 0;
        for step in &steps {
            match step {
                VolumeStep::Append { .. } => is_durable = false,
                VolumeStep::SyncLog => is_durable = true,
                VolumeStep::ReadPaths(count) => {
                    assert!(is_durable);
                    paths += count;
                }
                _ => {}
            }
        }
        let accesses = BATCHES as usize * EVICT_PERIOD as usize;
        assert_eq!(paths, accesses + accesses / EVICT_PERIOD as usize, "including evictions");
    }
}
