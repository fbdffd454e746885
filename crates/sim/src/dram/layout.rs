//! Where the buckets of a tree lie in DRAM.
//!
//! [`Order::Subtrees`] keeps subtrees of as many levels as fill a row of every channel together, so that a
//! path opens few rows (Ren et al., ISCA'13). [`Order::Heap`] is the ruler for it: level after level.
//! Levels without slots in DRAM are on chip; they are the topmost.
//!
//! The layout of storage (`oblivio_core`'s) gives a row to every subtree. Where the levels do not
//! come out even, that is a row for each leaf: here the topmost group of levels is the small one, and a
//! subtree takes the smallest power-of-two part of a row that holds it.

use std::ops::Range;

use crate::SimError;

/// What lies next to what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Level after level, each from left to right.
    Heap,
    /// Subtrees that fill `row_span` lines: see [`Dram::row_span`](super::Dram::row_span).
    Subtrees {
        /// Lines that should hold a subtree: a power of two.
        row_span: u64,
    },
}

/// The lines of every bucket.
#[derive(Clone, Debug)]
pub struct BucketLines {
    levels: Vec<Level>,
    lines: u64,
}

/// The buckets of a level: subtrees `subtree_stride` apart, in each a run of buckets.
#[derive(Clone, Copy, Debug)]
struct Level {
    base: u64,
    /// The level of the roots of its subtrees.
    root_level: u32,
    subtree_stride: u64,
    bucket_lines: u64,
}

impl BucketLines {
    /// Lays out a tree with `slots[level]` lines of blocks in each bucket, and `header_lines` more.
    ///
    /// # Errors
    /// [`SimError::Spec`] when a level below one with slots has none, or the tree has no end.
    pub fn new(slots: &[u64], header_lines: u64, order: Order) -> Result<Self, SimError> {
        let on_chip = slots.iter().take_while(|slots| **slots == 0).count();
        if let Some(level) = slots.iter().skip(on_chip).position(|slots| *slots == 0) {
            let level = on_chip + level;
            return Err(spec(format!("level {level} has no slots, but one above it has some")));
        }
        let sizes: Option<Vec<_>> = slots[on_chip..]
            .iter()
            .map(|slots| slots.checked_add(header_lines).filter(|lines| *lines < 1 << 20))
            .collect();
        let sizes = sizes.filter(|_| slots.len() <= 33).ok_or_else(|| {
            spec("a tree has 33 levels, and a bucket less than 2^20 lines".to_owned())
        })?;
        let groups = match order {
            Order::Heap => vec![1; sizes.len()],
            Order::Subtrees { row_span } if row_span.is_power_of_two() && row_span < 1 << 40 => {
                group_from_below(&sizes, row_span)
            }
            Order::Subtrees { row_span } => {
                return Err(spec(format!(
                    "row_span = {row_span}: must be a power of two below 2^40"
                )));
            }
        };
        let no_lines = Level { base: 0, root_level: 0, subtree_stride: 0, bucket_lines: 0 };
        let mut layout = Self { levels: vec![no_lines; on_chip], lines: 0 };
        let mut sizes = sizes.as_slice();
        for levels in groups {
            let (group, rest) = sizes.split_at(levels);
            layout.append(group, order);
            sizes = rest;
        }
        Ok(layout)
    }

    /// How many lines the tree spans, gaps included.
    pub fn total(&self) -> u64 {
        self.lines
    }

    /// The lines of the bucket with `index` on `level`: the lowest `level` bits of the labels of its
    /// leaves, as in `oblivio_core`. None, where the level is on chip.
    ///
    /// # Panics
    /// When there is no such level.
    pub fn lines(&self, level: usize, index: u64) -> Range<u64> {
        let Level { base, root_level, subtree_stride, bucket_lines } = self.levels[level];
        // From left to right: the bits of the index from the last.
        let subtree = (index & ((1 << root_level) - 1)).reverse_bits();
        let subtree = subtree.checked_shr(u64::BITS - root_level).unwrap_or_default();
        let start = base + subtree * subtree_stride + (index >> root_level) * bucket_lines;
        start..start + bucket_lines
    }

    /// Appends the levels of a group, of buckets of `sizes`.
    fn append(&mut self, sizes: &[u64], order: Order) {
        let root_level = self.levels.len() as u32;
        let subtree = subtree_lines(sizes);
        let (stride, align) = match order {
            Order::Heap => (subtree, 1),
            // So a subtree never lies across two rows, if it fits into one.
            Order::Subtrees { row_span } if subtree <= row_span => {
                (subtree.next_power_of_two(), row_span)
            }
            Order::Subtrees { row_span } => (subtree.next_multiple_of(row_span), row_span),
        };
        let mut base = self.lines.next_multiple_of(align);
        self.lines = base + (stride << root_level);
        for (depth, &bucket_lines) in sizes.iter().enumerate() {
            self.levels.push(Level { base, root_level, subtree_stride: stride, bucket_lines });
            base += bucket_lines << depth;
        }
    }
}

/// How many levels each group has, from the top: as many as `row_span` lines hold, chosen from the
/// leaves upwards, so that what is left over is small.
fn group_from_below(sizes: &[u64], row_span: u64) -> Vec<usize> {
    let mut groups = Vec::new();
    let mut end = sizes.len();
    while end > 0 {
        let fits = |start: &usize| subtree_lines(&sizes[*start..end]) <= row_span;
        let start = (0..end - 1).rev().take_while(fits).last().unwrap_or(end - 1);
        groups.push(end - start);
        end = start;
    }
    groups.reverse();
    groups
}

/// Lines of a subtree with buckets of `sizes`, from its root on.
fn subtree_lines(sizes: &[u64]) -> u64 {
    sizes.iter().enumerate().map(|(depth, lines)| lines << depth).sum()
}

fn spec(message: String) -> SimError {
    SimError::Spec(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dram::{Command, CommandKind, Dram, DramSpec, Request};
    use crate::trace::Kind;

    /// Of the tree of IR-ORAM, Table I: 25 levels, 10 of them on chip.
    fn slots() -> Vec<u64> {
        [vec![0; 10], vec![4; 15]].concat()
    }

    /// How many rows the commands for a path open, on average.
    fn rows_of_a_path(channels: u32, order: Order) -> f64 {
        const PATHS: u64 = 100;
        // The gaps of the subtrees are more than one channel has to spare.
        let spec = DramSpec { rows: 1 << 17, ..DramSpec::built_in("DDR3-1600").unwrap() };
        let layout = BucketLines::new(&slots(), 0, order).unwrap();
        let mut dram = Dram::observed(&spec, channels, Vec::new()).unwrap();
        for path in 0..PATHS {
            let leaf = path.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            for level in 10..25 {
                for line in layout.lines(level, leaf & ((1 << level) - 1)) {
                    // Apart in time: which rows are near each other is not a matter of luck then.
                    let arrival = path * 1000;
                    dram.enqueue(Request { id: 0, line, kind: Kind::Read, arrival }).unwrap();
                }
            }
        }
        dram.run_until_idle(&mut Vec::new());
        let opens = |command: &&Command| command.kind == CommandKind::Activate;
        dram.observer().iter().filter(opens).count() as f64 / PATHS as f64
    }

    #[test]
    fn a_path_opens_a_row_for_each_subtree_on_each_channel() {
        // 15 levels are 3 subtrees of 5 levels on one channel, and of 1, 7 and 7 levels on four.
        for (channels, row_span, rows) in [(1, 128, 3.0), (4, 512, 3.0 * 4.0)] {
            let subtrees = rows_of_a_path(channels, Order::Subtrees { row_span });
            assert!((subtrees - rows).abs() < 0.1 * rows, "{subtrees} rows on {channels} channels");
            let heap = rows_of_a_path(channels, Order::Heap);
            assert!(heap > 3.5 * subtrees, "{heap} rows of a heap against {subtrees}");
        }
    }

    #[test]
    fn subtrees_fill_the_row_of_every_channel() {
        assert_eq!(group_from_below(&[4; 15], 128), [5, 5, 5]);
        assert_eq!(group_from_below(&[4; 15], 512), [1, 7, 7]);
        // Two lines a bucket above, four below: 8 · 2 - 2 + 8 · 4 + 16 · 4 = 110 lines.
        assert_eq!(group_from_below(&[2, 2, 2, 2, 2, 4, 4], 128), [2, 5]);
        let layout = |order| BucketLines::new(&slots(), 0, order).unwrap();
        let lines = |layout: BucketLines| layout.total() * 64;
        // 8 GiB but for the levels on chip; the gaps are less than a hundredth.
        assert_eq!(lines(layout(Order::Heap)), (1 << 33) - (1 << 18));
        assert!(lines(layout(Order::Subtrees { row_span: 512 })) < (1 << 33) / 100 * 101);
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        for (slots, row_span) in
            [(vec![0, 4, 0], 8), (vec![1 << 20], 8), (vec![1; 34], 8), (vec![4; 3], 6)]
        {
            assert!(BucketLines::new(&slots, 0, Order::Subtrees { row_span }).is_err());
        }
    }

    proptest! {
        #[test]
        fn buckets_never_overlap(
            slots in prop::collection::vec(1u64..7, 1..9),
            on_chip in 0usize..3,
            header_lines in 0u64..3,
            order in prop_oneof![
                Just(Order::Heap),
                (0u32..10).prop_map(|log| Order::Subtrees { row_span: 1 << log }),
            ],
        ) {
            let slots = [vec![0; on_chip], slots].concat();
            let layout = BucketLines::new(&slots, header_lines, order).unwrap();
            let mut ranges = Vec::new();
            for (level, &slots) in slots.iter().enumerate() {
                for index in 0..1 << level {
                    let lines = layout.lines(level, index);
                    let expected = if slots == 0 { 0 } else { slots + header_lines };
                    prop_assert_eq!(lines.end - lines.start, expected);
                    ranges.extend((expected > 0).then_some((lines.start, lines.end)));
                }
            }
            ranges.sort_unstable();
            for pair in ranges.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].0, "{:?} overlaps {:?}", pair[0], pair[1]);
            }
            prop_assert!(ranges.last().unwrap().1 <= layout.total());
        }
    }
}
