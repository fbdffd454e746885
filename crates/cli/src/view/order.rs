//! In which order the buckets of a level are written.

use oblivio_core::view::Operation;

/// The order of writes, as far as it was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// One bucket after the other, and from the last on to the first: evictions in their order that never changes.
    InTurn,
    /// Upwards, with gaps: what is swept.
    Fixed,
    /// Any: where accesses write the paths that they read.
    Any,
}

/// Watches the writes of a level.
#[derive(Clone, Copy, Default)]
pub(super) struct WriteOrder {
    last: Option<u64>,
    /// From one write to the next.
    steps: u64,
    /// Steps to the next bucket.
    to_the_next: u64,
    /// Steps to a bucket before.
    back: u64,
    index_max: u64,
}

impl WriteOrder {
    pub(super) fn record(&mut self, operation: Operation, index: u64) {
        self.index_max = self.index_max.max(index);
        if operation != Operation::Write {
            return;
        }
        // What an interrupted write repeats says nothing of the order.
        if let Some(last) = self.last.filter(|last| *last != index) {
            self.steps += 1;
            self.to_the_next += u64::from(index == last + 1);
            self.back += u64::from(index < last);
        }
        self.last = Some(index);
    }

    pub(super) fn order(&self) -> Order {
        let other = self.steps - self.to_the_next - self.back;
        // At random, a half of all steps goes back.
        let rises = self.back * 3 <= self.steps;
        if rises && other * 20 <= self.steps {
            Order::InTurn
        } else if rises {
            Order::Fixed
        } else {
            Order::Any
        }
    }

    /// The last bucket that was read or written.
    pub(super) fn index_max(&self) -> u64 {
        self.index_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(writes: impl IntoIterator<Item = u64>) -> Order {
        let mut order = WriteOrder::default();
        writes.into_iter().for_each(|index| order.record(Operation::Write, index));
        order.order()
    }

    #[test]
    fn evictions_sweeps_and_paths_are_told_apart() {
        assert_eq!(order((0..1000).map(|eviction| eviction % 36)), Order::InTurn);
        // Recovery writes again what was written last.
        assert_eq!(order([7, 8, 9, 8, 9, 10, 11, 12]), Order::InTurn);
        assert_eq!(order((0..1000).map(|page| page * 2 % 512)), Order::Fixed);
        let drawn = (0..1000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54);
        assert_eq!(order(drawn), Order::Any);
    }
}
