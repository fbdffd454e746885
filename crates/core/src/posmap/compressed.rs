//! Compressed position maps: counters instead of leaves (Freecursive ORAM).
//!
//! ```text
//! ┌───────────────────┬──────┬──────┬───┬────────┐
//! │ group counter GC  │ IC 0 │ IC 1 │ … │ IC X-1 │
//! │ 64 bits           │ counter_bits each        │
//! └───────────────────┴──────┴──────┴───┴────────┘
//! ```
//!
//! A block's leaf is a pseudorandom function of its address and two counters: the group counter
//! (GC) and its individual counter (IC). Each access adds 1 to the block's IC. If the IC overflows,
//! the group (all blocks with counters in this position-map block) is reset: GC increases by 1, and
//! every IC becomes 0. All blocks of the group then have new leaves and must be moved. Bits are
//! numbered from the lowest bit of the first byte.

use crate::error::{Error, ErrorKind};

/// Maximum width of an individual counter, in bits.
pub(crate) const COUNTER_BITS_MAX: u32 = 24;

/// Bytes of the group counter.
pub(crate) const GROUP_BYTES: usize = 8;

/// The version of a block's position: a group counter and an individual counter. It grows with
/// every move of the block, so a block has each value at most once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Count {
    pub(crate) group: u64,
    pub(crate) individual: u32,
}

impl Count {
    /// The count of a block that was never moved.
    pub(crate) const NEVER_MOVED: Self = Self { group: 0, individual: 0 };

    /// The count of a block after `moves` moves, if the block has its own counter and belongs to no
    /// group.
    pub(crate) fn of_moves(moves: u64) -> Self {
        let individual = (moves & ((1 << COUNTER_BITS_MAX) - 1)) as u32;
        Self { group: moves >> COUNTER_BITS_MAX, individual }
    }
}

/// The result of [`CounterFormat::advance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Advance {
    /// The block's own counter was increased.
    Block { from: Count, to: Count },
    /// The group was reset: every block of the group now has the count `to`.
    Group { to: Count },
}

/// The encoding of a position-map block. All zeros is a block whose children were never moved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterFormat {
    pub(crate) counter_bits: u32,
}

impl CounterFormat {
    /// The maximum number of individual counters that fit into a block of `block_bytes` bytes.
    pub(crate) fn fitting(self, block_bytes: usize) -> u64 {
        let bits = block_bytes.saturating_sub(GROUP_BYTES) as u64 * 8;
        bits / u64::from(self.counter_bits)
    }

    /// The count of child `child`.
    pub(crate) fn count(self, block: &[u8], child: usize) -> Count {
        let (group, counters) = split(block);
        let (bytes, shift) = self.span(child);
        let window =
            counters[bytes].iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        let individual = (window >> shift) as u32 & self.individual_max();
        Count { group, individual }
    }

    /// Advances child `child` to its next count.
    ///
    /// # Errors
    /// [`ErrorKind::CounterExhausted`] if there is no next count; nothing is changed.
    pub(crate) fn advance(self, block: &mut [u8], child: usize) -> Result<Advance, Error> {
        let from = self.count(block, child);
        if from.individual < self.individual_max() {
            let to = Count { individual: from.individual + 1, ..from };
            self.set_individual(block, child, to.individual);
            return Ok(Advance::Block { from, to });
        }
        let group = from.group.checked_add(1).ok_or_else(exhausted)?;
        block.fill(0);
        block[..GROUP_BYTES].copy_from_slice(&group.to_le_bytes());
        Ok(Advance::Group { to: Count { group, individual: 0 } })
    }

    fn set_individual(self, block: &mut [u8], child: usize, value: u32) {
        let (bytes, shift) = self.span(child);
        let counters = &mut block[GROUP_BYTES..][bytes];
        let mut keep = !(u64::from(self.individual_max()) << shift);
        let mut put = u64::from(value) << shift;
        for byte in counters {
            *byte = *byte & keep as u8 | put as u8;
            keep >>= 8;
            put >>= 8;
        }
    }

    fn individual_max(self) -> u32 {
        (1 << self.counter_bits) - 1
    }

    /// The bytes that contain the counter of `child`, as a range after the group counter, and the
    /// counter's first bit in that range.
    fn span(self, child: usize) -> (core::ops::Range<usize>, usize) {
        let bits = self.counter_bits as usize;
        let (start, end) = (child * bits, (child + 1) * bits);
        (start / 8..end.div_ceil(8), start % 8)
    }
}

fn split(block: &[u8]) -> (u64, &[u8]) {
    let (group, counters) =
        block.split_first_chunk().expect("a position-map block is longer than its group counter");
    (u64::from_le_bytes(*group), counters)
}

pub(crate) fn exhausted() -> Error {
    Error::new(
        ErrorKind::CounterExhausted,
        "the counters of a block or its group are exhausted: move the data to a new ORAM",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_of_the_paper_holds_32_children() {
        assert_eq!(CounterFormat { counter_bits: 14 }.fitting(64), 32);
    }

    #[test]
    fn counters_of_every_width_are_independent_and_start_at_zero() {
        for counter_bits in 1..=COUNTER_BITS_MAX {
            let format = CounterFormat { counter_bits };
            for block_bytes in [16, 17, 64, 100] {
                let children = format.fitting(block_bytes) as usize;
                let mut block = vec![0; block_bytes];
                let mut expected = vec![0; children];
                for round in 1..=3u32 {
                    for child in (0..children).rev() {
                        let value = (child as u32 * 2_654_435 + round) & format.individual_max();
                        format.set_individual(&mut block, child, value);
                        expected[child] = value;
                        let held: Vec<_> =
                            (0..children).map(|c| format.count(&block, c).individual).collect();
                        assert_eq!(held, expected, "{counter_bits} bits of {block_bytes} bytes");
                        assert_eq!(format.count(&block, child).group, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn a_counter_overflow_resets_the_whole_group() {
        let format = CounterFormat { counter_bits: 2 };
        let mut block = [0; 16];
        for individual in 0..3 {
            let [from, to] =
                [individual, individual + 1].map(|i| Count { group: 0, individual: i });
            assert_eq!(format.advance(&mut block, 5).unwrap(), Advance::Block { from, to });
        }
        format.advance(&mut block, 31).unwrap();
        let to = Count { group: 1, individual: 0 };
        assert_eq!(format.advance(&mut block, 5).unwrap(), Advance::Group { to });
        assert!((0..32).all(|child| format.count(&block, child) == to));
    }

    #[test]
    fn the_last_overflow_is_an_error_and_changes_nothing() {
        let format = CounterFormat { counter_bits: 1 };
        let mut block = [u8::MAX; 16];
        let error = format.advance(&mut block, 0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CounterExhausted);
        assert_eq!(block, [u8::MAX; 16]);
    }
}
