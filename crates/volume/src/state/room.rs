//! How much room state files take.

use oblivio_core::geometry::{BucketId, Leaf};
use oblivio_core::scheme::{Home, Move, TakenSlot};
use oblivio_core::seal::{CHECKPOINT_ERAS_MAX, Era};

use super::file::{HEADER_BYTES, RECORD_OVERHEAD_BYTES};
use super::record::{self, CheckpointName, Head, NAME_BYTES, Record};
use crate::error::VolumeError;
use crate::ledger::{MAP_RECORD_ENTRIES, TAKEN_RECORD_SLOTS};
use crate::plan;
use crate::superblock::VolumeParams;
use crate::volume::config;
use crate::wiped::WipedBytes;

/// Each opening leaves an era in the state, until all its evictions have been made anew. So many openings
/// are counted, beside the eras of checkpoints.
const OPENINGS_MAX: u64 = 1024;

/// Bytes of a client's directory. A volume that serves hits without accesses takes more: what is written
/// in place does not lead to checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRoom {
    /// At most, once the volume is closed.
    pub closed_bytes_max: u64,
    /// At most, while it is in use: a new file is whole before the one before it goes.
    pub in_use_bytes_max: u64,
}

impl StateRoom {
    /// Of a volume whose state files take in so many bytes before they are replaced: see
    /// [`VolumeOptions::state_file_bytes_max`](crate::VolumeOptions::state_file_bytes_max).
    ///
    /// A checkpoint begins a new file if the one in use has twice its snapshot and so many bytes, or so
    /// many bytes of trims. Otherwise the state is added to it once more, and what comes until the next
    /// checkpoint.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidConfig`](crate::VolumeErrorKind::InvalidConfig) when there is no such
    /// volume.
    pub fn of(params: &VolumeParams, state_file_bytes_max: u64) -> Result<Self, VolumeError> {
        let snapshot = snapshot_bytes_max(params)?;
        let closed_bytes_max = 3 * snapshot + state_file_bytes_max;
        let trims = state_file_bytes_max + forget_bytes();
        let file = closed_bytes_max + between_checkpoints_bytes_max(params)? + trims;
        Ok(Self { closed_bytes_max, in_use_bytes_max: file + snapshot })
    }
}

/// A file that holds the whole state and nothing else.
fn snapshot_bytes_max(params: &VolumeParams) -> Result<u64, VolumeError> {
    let config = config(params)?;
    // Each has an eviction of its own that storage may still hold.
    let recognised = 2 * ((1 << params.leaf_level) + config.raw.spare_evictions());
    let at_checkpoints = CHECKPOINT_ERAS_MAX.min(recognised / config.raw.spare_evictions() + 1);
    let eras = (OPENINGS_MAX + at_checkpoints).min(recognised);
    let nowhere = CheckpointName { number: 0, name: [0; NAME_BYTES] };
    let head = Record::Head(Head {
        checkpoint: nowhere,
        previous: nowhere,
        evictions: 0,
        accesses_since_eviction: 0,
        eras: vec![Era { first_eviction: 0, salt: Default::default() }; eras as usize],
        is_clean: false,
        may_lose_moves: false,
    });
    let map = |entries| Record::Map { start: 0, mappings: vec![None; entries as usize] };
    let taken =
        |slots| Record::Taken(vec![TakenSlot { bucket: BucketId(0), slot: 0 }; slots as usize]);
    let block = vec![0; params.block_bytes as usize];
    let blocks = plan::blocks_on_client(params)?
        * record_bytes(|out| record::put_block(out, Home::Stash, 0, Leaf(0), &block));
    let taken_slots = match params.recursion {
        Some(_) => config.raw.marked_slots_max(),
        None => 0,
    };
    Ok(HEADER_BYTES as u64
        + record_bytes(|out| head.put(out))
        + in_records(config.client_entries()?, MAP_RECORD_ENTRIES, map)
        + blocks
        + in_records(taken_slots, TAKEN_RECORD_SLOTS as u64, taken)
        + record_bytes(|out| Record::End.put(out)))
}

/// What accesses and evictions bring, if each comes alone and writes.
fn between_checkpoints_bytes_max(params: &VolumeParams) -> Result<u64, VolumeError> {
    let evictions = config(params)?.raw.spare_evictions();
    let block = vec![0; params.block_bytes as usize];
    let write = (&Move { address: 0, from: Leaf(0), to: Leaf(0) }, Some(&block[..]));
    let access = record_bytes(|out| record::put_batch(out, [write].into_iter()));
    let eviction = record_bytes(|out| Record::Evict.put(out));
    Ok(evictions * (u64::from(params.evict_period) * access + eviction))
}

fn forget_bytes() -> u64 {
    record_bytes(|out| Record::Forget { start: 0, end: 0 }.put(out))
}

/// So many things, as many in each record as fit.
fn in_records(things: u64, in_each: u64, record: impl Fn(u64) -> Record) -> u64 {
    let bytes = |things| record_bytes(|out| record(things).put(out));
    let rest = things % in_each;
    let of_rest = if rest == 0 { 0 } else { bytes(rest) };
    things / in_each * bytes(in_each) + of_rest
}

/// A record as it stands in a file.
fn record_bytes(put: impl FnOnce(&mut WipedBytes)) -> u64 {
    let mut plain = WipedBytes::default();
    put(&mut plain);
    (plain.len() + RECORD_OVERHEAD_BYTES) as u64
}
