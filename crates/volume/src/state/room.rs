//! The size of state files.

use oblivio_core::durable::{EncodedPlan, StateSize};
use oblivio_core::wiped::WipedBytes;

use super::file::{HEADER_BYTES, RECORD_OVERHEAD_BYTES};
use super::record::{self, CheckpointName, Head, NAME_BYTES, Record};
use crate::error::VolumeError;
use crate::state_dir::FILLER_BYTES;
use crate::superblock::VolumeParams;

/// The size of a client's directory, if every request makes an access
/// ([`HitPolicy::Access`](oblivio_core::HitPolicy::Access)). Writes that the client serves without
/// an access are logged too, and trigger no checkpoint, so the directory may then grow larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRoom {
    /// Maximum number of bytes once the volume is closed.
    pub closed_bytes_max: u64,
    /// Maximum number of bytes while the volume is in use: a new file is complete before the old
    /// one is removed.
    pub in_use_bytes_max: u64,
}

impl StateRoom {
    /// The size for a volume with
    /// [`VolumeOptions::state_file_bytes_max`](crate::VolumeOptions::state_file_bytes_max) set to
    /// `state_file_bytes_max`.
    ///
    /// A checkpoint begins a new file if the current one is longer than twice its snapshot plus
    /// `state_file_bytes_max`, or has more than `state_file_bytes_max` bytes of trims. Otherwise
    /// the checkpoint adds its state to the current file. With
    /// [`Lengths::Constant`](crate::Lengths::Constant) every checkpoint begins a new file, and the
    /// directory takes less.
    ///
    /// # Errors
    /// The errors of [`VolumeParams::config`].
    pub fn of(params: &VolumeParams, state_file_bytes_max: u64) -> Result<Self, VolumeError> {
        let size = params.config()?.state_size()?;
        let snapshot = snapshot_bytes_max(&size);
        let closed_bytes_max = 3 * snapshot + state_file_bytes_max + FILLER_BYTES;
        let trims = state_file_bytes_max + forget_bytes();
        let between = between_checkpoints_bytes_max(&size, u64::from(params.block_bytes));
        let file = closed_bytes_max + between + trims;
        Ok(Self { closed_bytes_max, in_use_bytes_max: file + snapshot + FILLER_BYTES })
    }
}

/// Maximum number of bytes of a file with the whole state and nothing else.
fn snapshot_bytes_max(size: &StateSize) -> u64 {
    let nowhere = CheckpointName { number: 0, name: [0; NAME_BYTES] };
    let head = Record::Head(Head {
        checkpoint: nowhere,
        previous: nowhere,
        is_clean: false,
        may_lose_moves: false,
    });
    let around = record_bytes(|out| record::put_section(out, &[]));
    let sections = size.whole.iter().map(|it| it.sections * (around + it.bytes));
    HEADER_BYTES as u64
        + record_bytes(|out| head.put(out))
        + sections.sum::<u64>()
        + record_bytes(|out| Record::End.put(out))
}

/// Maximum number of bytes that accesses and evictions add between two checkpoints: if each access
/// is logged alone, writes its block and has a padding record.
fn between_checkpoints_bytes_max(size: &StateSize, block_bytes: u64) -> u64 {
    let plan = EncodedPlan::new(1, WipedBytes::default());
    let around = record_bytes(|out| record::put_accesses(out, &plan, [Some(&[][..])].into_iter()));
    let padding = record_bytes(|out| record::put_padding(out, 0));
    let access = around + size.plan_bytes_per_access + block_bytes + padding;
    let eviction = record_bytes(|out| Record::Evict.put(out));
    size.accesses_per_checkpoint * access + size.evictions_per_checkpoint * eviction
}

/// Bytes that a trim adds to the state file.
fn forget_bytes() -> u64 {
    record_bytes(|out| Record::Forget { start: 0, end: 0 }.put(out))
}

/// Bytes of a record in a file.
fn record_bytes(put: impl FnOnce(&mut WipedBytes)) -> u64 {
    let mut plain = WipedBytes::default();
    put(&mut plain);
    (plain.len() + RECORD_OVERHEAD_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use oblivio_core::BLOCK_BYTES_MAX;
    use oblivio_core::durable::Slots;
    use oblivio_core::durable::rotating::{MapRecursion, RawParams};
    use oblivio_core::durable::scan::ScanParams;
    use oblivio_core::scheme::WINDOW_ACCESSES_MAX;

    use super::super::file::RECORD_BYTES_MAX;
    use super::*;

    fn raw(block_bytes: u32, leaf_level: u8, tree_top_levels: u8) -> VolumeParams {
        VolumeParams::of(&RawParams {
            blocks: 1 << leaf_level,
            block_bytes,
            leaf_level,
            slots: Slots::Same(5),
            evict_period: 5,
            stash_blocks_max: 64,
            tree_top_levels,
            tree_top_ways: 0,
            recursion: Some(MapRecursion { client_entries_max: 1 << 20, plb_blocks: 4096 }),
        })
    }

    fn scan(blocks: u64, block_bytes: u32, spare: u64) -> VolumeParams {
        VolumeParams::of(&ScanParams { blocks, block_bytes, spare })
    }

    #[test]
    fn every_section_and_every_batch_fits_in_a_record() {
        let block_bytes_max = BLOCK_BYTES_MAX as u32;
        for params in [
            raw(16, 30, 0),
            raw(4096, 36, 10),
            raw(block_bytes_max, 30, 1),
            scan(1 << 20, 16, 1),
            scan(1 << 20, 16, 1 << 20),
            scan(16, block_bytes_max, 1),
        ] {
            let size = params.config().unwrap().state_size().unwrap();
            for section in &size.whole {
                assert!(section.bytes < RECORD_BYTES_MAX as u64 - 100, "{section:?}, {params:?}");
            }
            let access = size.plan_bytes_per_access + 4 + u64::from(params.block_bytes);
            let batch = WINDOW_ACCESSES_MAX as u64 * access;
            assert!(batch < RECORD_BYTES_MAX as u64 - 100, "{batch}, {params:?}");
        }
    }
}
