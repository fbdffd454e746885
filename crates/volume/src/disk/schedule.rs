//! A fixed rate: what storage sees is a function of time alone.
//!
//! At each tick a disk makes the same number of accesses, whatever the requests. In order of
//! priority, they are:
//!
//! 1. reads of blocks that requests wait for, and write-backs that are due because a request waits
//!    until its blocks are durable, or because too many blocks are dirty. If a tick has too few
//!    accesses for both kinds, each kind gets half, so neither starves;
//! 2. early write-backs of the least recently used dirty blocks (IR-DWB of IR-ORAM), unless the
//!    schedule excludes them;
//! 3. dummies. A dummy looks like any other access.
//!
//! If the position map lies in the tree, the access of a block may have to wait for accesses that
//! fetch its position. The tick then makes those instead. They correspond to IR-DWB's *Stage*, the
//! number of accesses that the current write-back still takes. Its *Ptr* is the first dirty block
//! when the tick is divided. A block that is used again is no longer the first, so its write-back
//! is abandoned; the positions fetched for it stay on the client while there is room.
//!
//! Ticks are at multiples of the period. A tick that comes due during a batch is skipped, so that
//! small delays do not shift later ticks.

use std::time::Duration;

use oblivio_core::durable::RangePolicy;

use crate::error::{VolumeError, VolumeErrorKind};
use crate::volume::Volume;

/// Maximum number of accesses at a tick.
const ACCESSES_MAX: usize = 4096;

/// Maximum number of bytes in the ranges accessed at a tick.
const TICK_BYTES_MAX: usize = 256 << 20;

/// The shortest period that a timer can keep.
const PERIOD_MIN: Duration = Duration::from_micros(100);

/// The longest period that a schedule may have.
const PERIOD_MAX: Duration = Duration::from_secs(3600);

/// A fixed rate: the period of ticks, and the number of accesses at each tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schedule {
    /// The time from tick to tick.
    pub period: Duration,
    /// The number of accesses at each tick.
    pub accesses: usize,
    /// Whether spare accesses write back dirty blocks before they must be (IR-DWB of IR-ORAM). If
    /// not, they are dummies. Storage sees the same either way: the option serves to measure the
    /// gain.
    pub early_write_backs: bool,
}

impl Schedule {
    /// `accesses` accesses at each tick, with early write-backs.
    pub const fn new(period: Duration, accesses: usize) -> Self {
        Self { period, accesses, early_write_backs: true }
    }

    /// Sets [`early_write_backs`](Self::early_write_backs).
    #[must_use]
    pub const fn with_early_write_backs(self, early_write_backs: bool) -> Self {
        Self { early_write_backs, ..self }
    }

    /// Checks that a disk can follow the schedule.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidConfig`] if not.
    pub fn check(&self) -> Result<(), VolumeError> {
        check_accesses(self.accesses)?;
        if !(PERIOD_MIN..=PERIOD_MAX).contains(&self.period) {
            return Err(invalid(format!(
                "the period of a schedule must be between {PERIOD_MIN:?} and {PERIOD_MAX:?}, not \
                 {:?}: for a higher rate, make more accesses at a tick",
                self.period
            )));
        }
        Ok(())
    }
}

/// Checks that a tick can make this number of accesses.
pub(super) fn check_accesses(accesses: usize) -> Result<(), VolumeError> {
    if (1..=ACCESSES_MAX).contains(&accesses) {
        return Ok(());
    }
    Err(invalid(format!(
        "a tick makes between 1 and {ACCESSES_MAX} accesses, not {accesses}: choose another number"
    )))
}

/// If every access is to a range of a fixed class above 0, checks that the ranges of one tick take
/// at most [`TICK_BYTES_MAX`] bytes. One access per tick is always allowed.
pub(super) fn check_ranges(volume: &Volume, accesses: usize) -> Result<(), VolumeError> {
    let RangePolicy::Fixed(class @ 1..) = volume.range_policy() else { return Ok(()) };
    let range_bytes = volume.block_bytes() << class;
    let accesses_max = (TICK_BYTES_MAX / range_bytes).max(1);
    if accesses <= accesses_max {
        return Ok(());
    }
    Err(invalid(format!(
        "{accesses} accesses to ranges of {range_bytes} bytes at a tick take more than {} MiB of \
         memory: make {accesses_max} or fewer at a tick",
        TICK_BYTES_MAX >> 20
    )))
}

fn invalid(message: String) -> VolumeError {
    VolumeError::new(VolumeErrorKind::InvalidConfig, message)
}

/// How many accesses of a tick read, and how many write back. The remaining accesses fetch
/// positions or are dummies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TickSplit {
    pub(super) reads: usize,
    pub(super) write_backs: usize,
}

/// The work that waits for the accesses of a tick.
#[derive(Clone, Copy, Debug)]
pub(super) struct TickDemand {
    /// Number of missing blocks that requests wait for.
    pub(super) reads: usize,
    /// Number of blocks that must be written back.
    pub(super) due: usize,
    /// Number of dirty blocks, including those that must be written back.
    pub(super) dirty: usize,
    /// Whether dirty blocks that are not due may be written back, too.
    pub(super) early_write_backs: bool,
}

/// Divides the accesses of a tick. If reads and write-backs share an odd number, `reads_first`
/// gives reads the extra access.
pub(super) fn divide(accesses: usize, demand: TickDemand, reads_first: bool) -> TickSplit {
    let half = (accesses + usize::from(reads_first)) / 2;
    let reads = demand.reads.min(half.max(accesses.saturating_sub(demand.due)));
    // IR-ORAM, Section IV-D: write dirty blocks back early instead of making dummies.
    let may_be_written = if demand.early_write_backs { demand.dirty } else { demand.due };
    let write_backs = may_be_written.min(accesses - reads);
    TickSplit { reads, write_backs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tick_is_divided_completely_and_neither_side_starves(
            accesses in 1usize..70,
            reads in 0usize..100,
            due in 0usize..100,
            more in 0usize..100,
            early_write_backs: bool,
            reads_first: bool,
        ) {
            let demand = TickDemand { reads, due, dirty: due + more, early_write_backs };
            let may_be_written = if early_write_backs { due + more } else { due };
            let split = divide(accesses, demand, reads_first);
            prop_assert!(split.reads + split.write_backs <= accesses);
            prop_assert!(split.reads <= reads && split.write_backs <= may_be_written);
            prop_assert!(split.reads >= reads.min(accesses / 2));
            prop_assert!(split.write_backs >= due.min(accesses / 2));
            // No access is a dummy if it could be of use.
            let is_full = split.reads + split.write_backs == accesses;
            prop_assert!(is_full || (split.reads, split.write_backs) == (reads, may_be_written));
            if reads + due <= accesses {
                prop_assert!(split.reads == reads && split.write_backs >= due);
            }
            let next = divide(accesses, demand, !reads_first);
            prop_assert!(reads == 0 || split.reads + next.reads > 0);
            prop_assert!(due == 0 || split.write_backs + next.write_backs > 0);
        }
    }

    #[test]
    fn impossible_schedules_are_refused() {
        let schedule = |millis, accesses| {
            let period = Duration::from_millis(millis);
            Schedule { period, accesses, early_write_backs: true }
        };
        assert!(schedule(5, 16).check().is_ok());
        for wrong in [schedule(0, 1), schedule(5, 0), schedule(5, 5000), schedule(4_000_000, 1)] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }
}
