//! The refresh schedule of a channel.

use std::ops::Range;

use super::{Clock, DramSpec};

/// The refreshes of a channel. Each rank becomes due once per interval. The due times of the ranks
/// are spread evenly over the interval.
#[derive(Clone, Debug)]
pub(super) struct Refreshes {
    /// The next due time of each rank.
    due: Vec<Clock>,
    next_due: Clock,
    interval: Clock,
    /// Bit mask of the ranks that are due and not refreshed yet.
    waiting: u64,
    /// Bit mask of the banks of the waiting ranks.
    banks: u64,
    rank_banks: u32,
}

impl Refreshes {
    pub(super) fn new(spec: &DramSpec) -> Self {
        let interval = Clock::from(spec.timing.refi);
        let ranks = Clock::from(spec.ranks);
        let mut new = Self {
            due: (1..=ranks).map(|rank| interval * rank / ranks).collect(),
            next_due: 0,
            interval,
            waiting: 0,
            banks: 0,
            rank_banks: spec.banks,
        };
        new.find_next_due();
        new
    }

    /// The time at which the next rank becomes due.
    #[inline]
    pub(super) fn next_due(&self) -> Clock {
        self.next_due
    }

    /// Adds the ranks that are due at `now` to the waiting ranks.
    pub(super) fn due_at(&mut self, now: Clock) {
        for rank in 0..self.due.len() {
            if self.due[rank] <= now {
                self.due[rank] += self.interval;
                self.waiting |= 1 << rank;
                self.banks |= bits_of(self.banks_of(rank as u32));
            }
        }
        self.find_next_due();
    }

    /// Notes that `rank` was refreshed.
    pub(super) fn refreshed(&mut self, rank: u32) {
        self.waiting &= !(1 << rank);
        self.banks &= !bits_of(self.banks_of(rank));
    }

    /// Bit mask of the waiting ranks.
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Bit mask of the banks of waiting ranks.
    #[inline]
    pub(super) fn waiting_banks(&self) -> u64 {
        self.banks
    }

    fn banks_of(&self, rank: u32) -> Range<u32> {
        rank * self.rank_banks..(rank + 1) * self.rank_banks
    }

    fn find_next_due(&mut self) {
        self.next_due = self.due.iter().copied().min().unwrap_or(Clock::MAX);
    }
}

fn bits_of(range: Range<u32>) -> u64 {
    range.fold(0, |bits, bank| bits | 1 << bank)
}
