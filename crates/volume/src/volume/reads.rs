//! Reads that begin before earlier ones have finished: while storage reads the paths of some, the
//! moves of the next become durable.

use std::ops::Range;

use oblivio_core::durable::{AccessPlan, Headroom};
use oblivio_core::wiped::WipedBytes;
use oblivio_core::{HitPolicy, Op};

use super::{Extent, SyncMoves, Volume};
use crate::error::{VolumeError, VolumeErrorKind};

/// Reads whose moves are in the log and that are not carried out yet.
pub(super) struct BegunReads {
    plan: AccessPlan,
    /// Storage may see the reads once the first `records` records of the log are durable.
    records: u64,
    is_announced: bool,
    /// Ranges to forget after these reads.
    pub(super) forgets_after: Vec<Range<u64>>,
}

impl Volume {
    /// The number of blocks whose reads can be begun now. If it is 0, the caller must use
    /// [`Self::access`]. It is always 0 if the position map lies in the tree, or if the options let
    /// the client serve the blocks that it finds.
    ///
    /// The number is also 0 if the stash is found over its bound. Storage can see that, which ADR 4
    /// allows because an eviction ahead of schedule follows, whatever the stash holds by then.
    ///
    /// # Errors
    /// [`VolumeErrorKind::MustReopen`] if an earlier operation failed halfway.
    pub fn reads_to_begin_max(&mut self) -> Result<usize, VolumeError> {
        self.check_not_broken()?;
        let Headroom { accesses, must_evict, .. } = self.live.array.headroom()?;
        self.owes_eviction |= must_evict;
        let can_begin = !self.owes_eviction
            && self.options.hits == HitPolicy::Access
            && self.facts.position_levels == 0;
        let accesses = usize::try_from(accesses).unwrap_or(usize::MAX);
        let fitting = accesses.min(self.facts.window_accesses_max);
        let begun: usize = self.begun.iter().map(|reads| reads.plan.accesses()).sum();
        Ok(if can_begin { fitting.saturating_sub(begun) } else { 0 })
    }

    /// Begins to read blocks: draws the paths that storage will see, and begins to log them. Each
    /// of `windows` is read by one [`Self::finish_reads`], in this order, after the windows begun
    /// earlier. Until then the volume can only begin more reads, [forget](Self::forget) and
    /// [flush](Self::flush).
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] before anything is touched, for more blocks than
    /// [`Self::reads_to_begin_max`], for an empty window and for a block past the end; any other
    /// breaks the volume.
    pub fn begin_reads(&mut self, windows: &[&[u64]]) -> Result<(), VolumeError> {
        let windows = windows.iter().map(|window| window.iter().copied().map(Extent::of_block));
        self.begin_extents(&windows.map(Iterator::collect).collect::<Vec<_>>())
    }

    /// Like [`Self::begin_reads`] for ranges. For a window, [`Self::finish_reads`] reads the blocks
    /// of all its ranges, one after the other.
    ///
    /// # Errors
    /// As [`Self::begin_reads`], and for an invalid range.
    pub fn begin_extents(&mut self, windows: &[Vec<Extent>]) -> Result<(), VolumeError> {
        let all = windows.iter().flatten();
        let is_sound = windows.iter().all(|window| !window.is_empty())
            && all.clone().all(|extent| self.check_extent(*extent).is_ok())
            && all.map(|extent| extent.count()).sum::<usize>() <= self.reads_to_begin_max()?;
        if !is_sound {
            let message = "reads need at least one block, within the volume and the number that \
                           can be begun";
            return Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message));
        }
        let has_earlier_reads = !self.begun.is_empty();
        self.unless_broken(|volume| {
            for window in windows {
                let wanted: Vec<_> = window.iter().map(|extent| extent.want()).collect();
                let planned: Vec<_> = volume.begun.iter().map(|reads| &reads.plan).collect();
                let plan = volume.live.array.plan(&wanted, &planned, &mut volume.live.coins)?;
                volume.ledger.before_accesses(&mut volume.live)?;
                let nothing = (0..plan.accesses()).map(|_| None);
                volume.ledger.log_accesses(&plan, nothing)?;
                let records = volume.ledger.log.records();
                volume.begun.push_back(BegunReads {
                    plan,
                    records,
                    is_announced: false,
                    forgets_after: Vec::new(),
                });
            }
            if volume.options.sync_moves == SyncMoves::BeforeReads && has_earlier_reads {
                volume.ledger.log.keep_syncing()?;
            }
            Ok(())
        })
    }

    /// Reads the oldest begun window: one block into each of `data`, whose length must match.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] before anything is touched, if no window was begun, the
    /// oldest has another length, or a buffer is not one block long; any other breaks the volume.
    pub fn finish_reads(&mut self, data: &mut [WipedBytes]) -> Result<(), VolumeError> {
        self.check_not_broken()?;
        let accesses = self.begun.front().map(|reads| reads.plan.accesses());
        if accesses != Some(data.len())
            || data.iter().any(|block| block.len() != self.facts.block_bytes)
        {
            let message = "the oldest window has another number of reads, or a buffer is not of \
                           one block";
            return Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message));
        }
        self.unless_broken(|volume| {
            let Some(BegunReads { records, .. }) = volume.begun.front() else { return Ok(()) };
            if volume.options.sync_moves == SyncMoves::BeforeReads {
                volume.ledger.log.sync_up_to(*records)?;
                volume.ledger.log.keep_syncing()?;
            }
            volume.announce_visible_reads()?;
            let mut ops: Vec<_> = data.iter_mut().map(|block| Op::Read(block)).collect();
            let Some(reads) = volume.begun.pop_front() else { return Ok(()) };
            volume.live.array.carry_out(&reads.plan, &mut ops)?;
            volume.insight.read_blocks(ops.len());
            volume.insight.stash_is(volume.live.array.stash_fill());
            for range in reads.forgets_after {
                volume.live.array.forget(range)?;
            }
            Ok(())
        })
    }

    /// Announces to storage all begun reads that it may see, so that it can prefetch the paths of
    /// later windows.
    fn announce_visible_reads(&mut self) -> Result<(), VolumeError> {
        let synced = self.ledger.log.synced_records();
        for reads in &mut self.begun {
            let may_be_seen = match self.options.sync_moves {
                SyncMoves::BeforeReads => reads.records <= synced,
                SyncMoves::AtFlush => true,
            };
            if may_be_seen && !reads.is_announced {
                self.live.array.announce(&reads.plan)?;
                reads.is_announced = true;
            }
        }
        Ok(())
    }

    /// Refuses operations that would overtake reads that were begun.
    pub(super) fn check_nothing_begun(&self) -> Result<(), VolumeError> {
        if self.begun.is_empty() {
            return Ok(());
        }
        let message = "reads were begun and not finished: finish them first";
        Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message))
    }

    /// Finishes all begun reads, and drops their data.
    pub(super) fn finish_all_reads(&mut self) -> Result<(), VolumeError> {
        while let Some(reads) = self.begun.front() {
            let block = || WipedBytes::zeros(self.facts.block_bytes);
            let mut data: Vec<_> = (0..reads.plan.accesses()).map(|_| block()).collect();
            self.finish_reads(&mut data)?;
        }
        Ok(())
    }
}
