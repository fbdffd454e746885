//! When each rank must be refreshed, and which are on their way to it.

use std::ops::Range;

use super::{Clock, DramSpec};

/// The refreshes of a channel. The ranks take turns within an interval.
#[derive(Clone, Debug)]
pub(super) struct Refreshes {
    /// The next due time of each rank, as long as it has not passed.
    due: Vec<Clock>,
    next_due: Clock,
    interval: Clock,
    /// Ranks that are due and not refreshed yet, a bit each.
    waiting: u64,
    /// Their banks.
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

    /// When the next rank is due.
    #[inline]
    pub(super) fn next_due(&self) -> Clock {
        self.next_due
    }

    /// The ranks that are due wait from now on.
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

    /// `rank` is refreshed.
    pub(super) fn refreshed(&mut self, rank: u32) {
        self.waiting &= !(1 << rank);
        self.banks &= !bits_of(self.banks_of(rank));
    }

    /// The ranks that wait, a bit each.
    #[inline]
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// The banks of ranks that wait, a bit each.
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
