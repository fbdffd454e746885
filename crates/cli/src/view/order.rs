//! The order in which the buckets of a level are written.

use oblivio_core::view::Operation;

/// The observed order of the writes to a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOrder {
    /// Each bucket is followed by the next higher one, and the highest by the lowest: the fixed
    /// order of evictions.
    InTurn,
    /// Ascending order with gaps: a sweep.
    Fixed,
    /// No fixed order: accesses write the paths that they read.
    Any,
}

/// Observes the writes of a level.
#[derive(Clone, Copy, Default)]
pub(super) struct WriteOrderCounter {
    last: Option<u64>,
    /// Number of steps from one write to the next, except repetitions of the same bucket.
    steps: u64,
    /// Number of steps from a bucket to the next higher index.
    to_the_next: u64,
    /// Number of steps from a bucket to a lower index.
    back: u64,
    index_max: u64,
}

impl WriteOrderCounter {
    pub(super) fn record(&mut self, operation: Operation, index: u64) {
        self.index_max = self.index_max.max(index);
        if operation != Operation::Write {
            return;
        }
        // A repetition of an interrupted write says nothing about the order.
        if let Some(last) = self.last.filter(|last| *last != index) {
            self.steps += 1;
            self.to_the_next += u64::from(index == last + 1);
            self.back += u64::from(index < last);
        }
        self.last = Some(index);
    }

    pub(super) fn order(&self) -> WriteOrder {
        let other = self.steps - self.to_the_next - self.back;
        // In random order, half of all steps go back.
        let rises = self.back * 3 <= self.steps;
        if rises && other * 20 <= self.steps {
            WriteOrder::InTurn
        } else if rises {
            WriteOrder::Fixed
        } else {
            WriteOrder::Any
        }
    }

    /// The highest index of a bucket that was read or written.
    pub(super) fn index_max(&self) -> u64 {
        self.index_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(writes: impl IntoIterator<Item = u64>) -> WriteOrder {
        let mut order = WriteOrderCounter::default();
        writes.into_iter().for_each(|index| order.record(Operation::Write, index));
        order.order()
    }

    #[test]
    fn evictions_sweeps_and_paths_are_distinguished() {
        assert_eq!(order((0..1000).map(|eviction| eviction % 36)), WriteOrder::InTurn);
        // A recovery repeats the latest writes.
        assert_eq!(order([7, 8, 9, 8, 9, 10, 11, 12]), WriteOrder::InTurn);
        assert_eq!(order((0..1000).map(|page| page * 2 % 512)), WriteOrder::Fixed);
        let drawn = (0..1000u64).map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 54);
        assert_eq!(order(drawn), WriteOrder::Any);
    }
}
