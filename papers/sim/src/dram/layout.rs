//! The layout of a tree's buckets in DRAM.
//!
//! [`LayoutOrder::Subtrees`] keeps a subtree together in a row of every channel, so a path opens
//! few rows (Ren et al., ISCA'13). [`LayoutOrder::Heap`], in order of level, is the baseline for
//! comparison. Levels without slots in DRAM are on chip; they must be the topmost levels.
//!
//! If the number of lines per bucket is a multiple of the number of channels, every path loads all
//! channels equally. With IR-Alloc, the number varies by level. If such buckets are packed without
//! gaps, some paths have many of their lines on one channel, and take as long as that channel. So
//! [`LayoutOrder::Balanced`] fixes the channels of each level: the first line of its buckets is on
//! the channel after the last line of the bucket above.
//!
//! The storage layout of `oblivio_core` gives each subtree its own row. If the levels do not divide
//! evenly, the lowest subtrees are small and leave most of their rows empty. So here the topmost
//! group of levels is the small one, and a subtree takes the smallest power-of-two part of a row
//! that holds it.

use std::ops::Range;

use crate::SimError;

/// The order of buckets in DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayoutOrder {
    /// In order of level, and from left to right.
    Heap,
    /// Subtrees of at most `row_span` lines, if a bucket is no larger: see
    /// [`Dram::row_span`](super::Dram::row_span).
    Subtrees {
        /// The number of lines that should hold a subtree: a power of two.
        row_span: u64,
    },
    /// Subtrees as in [`Self::Subtrees`], with the lines of each path spread evenly over the
    /// channels. Neighbouring lines must be on neighbouring channels, as in the usual order of
    /// address bits.
    Balanced {
        /// The number of lines that should hold a subtree: a power of two.
        row_span: u64,
        /// Number of channels: a power of two.
        channels: u64,
    },
}

impl LayoutOrder {
    /// The number of lines that should hold a subtree; `None` if the order has no subtrees.
    fn row_span(self) -> Option<u64> {
        match self {
            Self::Heap => None,
            Self::Subtrees { row_span } | Self::Balanced { row_span, .. } => Some(row_span),
        }
    }

    fn check(self) -> Result<(), SimError> {
        if let Some(row_span) = self.row_span()
            && !(row_span.is_power_of_two() && row_span < 1 << 40)
        {
            return Err(spec(format!("row_span = {row_span}: must be a power of two below 2^40")));
        }
        if let Self::Balanced { channels, row_span } = self
            && !(channels.is_power_of_two() && channels <= row_span)
        {
            return Err(spec(format!(
                "channels = {channels}: must be a power of two, at most row_span"
            )));
        }
        Ok(())
    }
}

/// The DRAM lines of every bucket.
#[derive(Clone, Debug)]
pub struct BucketLines {
    levels: Vec<Level>,
    lines: u64,
}

/// The buckets of a level. Subtrees are `subtree_stride` lines apart.
#[derive(Clone, Debug, Default)]
struct Level {
    base: u64,
    /// The level of the subtrees' roots.
    root_level: u32,
    subtree_stride: u64,
    /// The location in the subtree of each line of a bucket.
    places: Vec<LinePlace>,
}

/// The location of a line of the leftmost bucket of a level, and the distance to the same line of
/// the next bucket.
#[derive(Clone, Copy, Debug)]
struct LinePlace {
    first: u64,
    step: u64,
}

impl BucketLines {
    /// Lays out a tree with `slots[level]` lines of blocks in each bucket, and `header_lines` more.
    ///
    /// # Errors
    /// [`SimError::Spec`] if `order` has invalid numbers, a level below a level with slots has
    /// none, or the tree is too large.
    pub fn new(slots: &[u64], header_lines: u64, order: LayoutOrder) -> Result<Self, SimError> {
        order.check()?;
        let on_chip = slots.iter().take_while(|slots| **slots == 0).count();
        if let Some(level) = slots.iter().skip(on_chip).position(|slots| *slots == 0) {
            let level = on_chip + level;
            return Err(spec(format!("level {level} has no slots, but a level above it has")));
        }
        let sizes: Option<Vec<_>> = slots[on_chip..]
            .iter()
            .map(|slots| slots.checked_add(header_lines).filter(|lines| *lines < 1 << 20))
            .collect();
        let sizes = sizes.filter(|_| slots.len() <= 33).ok_or_else(|| {
            spec("a tree has at most 33 levels, and a bucket fewer than 2^20 lines".to_owned())
        })?;
        let mut layout = Self { levels: vec![Level::default(); on_chip], lines: 0 };
        let mut start = 0;
        for end in group_ends(&sizes, order) {
            layout.append(Subtree::new(&sizes, start..end, order), order);
            start = end;
        }
        Ok(layout)
    }

    /// The number of lines that the tree spans, gaps included.
    pub fn total(&self) -> u64 {
        self.lines
    }

    /// The lines of a bucket, headers first. All leaves below the bucket have the same lowest
    /// `level` bits in their labels: the `index`, as in `oblivio_core`. A level on chip has no
    /// lines.
    ///
    /// # Panics
    /// If the tree lacks this level.
    pub fn lines(&self, level: usize, index: u64) -> impl ExactSizeIterator<Item = u64> {
        let Level { base, root_level, subtree_stride, places } = &self.levels[level];
        // Subtrees are laid out from left to right, by the reversed low bits of the index.
        let subtree = (index & ((1 << root_level) - 1)).reverse_bits();
        let subtree = subtree.checked_shr(u64::BITS - root_level).unwrap_or_default();
        let start = base + subtree * subtree_stride;
        let within = index >> root_level;
        places.iter().map(move |place| start + place.first + within * place.step)
    }

    /// Appends the levels of a group.
    fn append(&mut self, subtree: Subtree, order: LayoutOrder) {
        let root_level = self.levels.len() as u32;
        let (stride, align) = match order.row_span() {
            None => (subtree.lines, 1),
            // This alignment keeps a subtree within one row, if it fits into one.
            Some(row_span) if subtree.lines <= row_span => {
                (subtree.lines.next_power_of_two(), row_span)
            }
            Some(row_span) => (subtree.lines.next_multiple_of(row_span), row_span),
        };
        let base = self.lines.next_multiple_of(align);
        self.lines = base + (stride << root_level);
        let level = |places| Level { base, root_level, subtree_stride: stride, places };
        self.levels.extend(subtree.levels.into_iter().map(level));
    }
}

/// The layout of the lines of a subtree.
struct Subtree {
    /// The lines of a bucket, for each level.
    levels: Vec<Vec<LinePlace>>,
    /// The number of lines that the subtree spans.
    lines: u64,
}

impl Subtree {
    /// The layout of the levels `group` of a tree with buckets of `sizes` lines.
    fn new(sizes: &[u64], group: Range<usize>, order: LayoutOrder) -> Self {
        let mut subtree = Self { levels: Vec::new(), lines: 0 };
        let above: u64 = sizes[..group.start].iter().sum();
        match order {
            LayoutOrder::Heap | LayoutOrder::Subtrees { .. } => {
                for (depth, &size) in sizes[group].iter().enumerate() {
                    let first = subtree.lines;
                    let place = |line| LinePlace { first: first + line, step: size };
                    subtree.levels.push((0..size).map(place).collect());
                    subtree.lines += size << depth;
                }
            }
            LayoutOrder::Balanced { channels, .. } => {
                subtree.balance(&sizes[group], above, channels)
            }
        }
        subtree
    }

    /// Assigns the lines of a path to the channels in turn, from the root on. `above` lines of the
    /// path precede this subtree.
    fn balance(&mut self, sizes: &[u64], above: u64, channels: u64) {
        // Lines of the subtree on each channel so far.
        let mut columns = vec![0; channels as usize];
        let mut dealt = above;
        for (depth, &size) in sizes.iter().enumerate() {
            let of_bucket = |channel: u64| {
                let from_first = (channel + channels - dealt % channels) % channels;
                (size + channels - 1 - from_first) / channels
            };
            let place = |line: u64| {
                let channel = (dealt + line) % channels;
                let column = columns[channel as usize] + line / channels;
                LinePlace {
                    first: column * channels + channel,
                    step: of_bucket(channel) * channels,
                }
            };
            self.levels.push((0..size).map(place).collect());
            for (channel, column) in (0..).zip(&mut columns) {
                *column += of_bucket(channel) << depth;
            }
            dealt += size;
        }
        self.lines = columns.iter().max().unwrap_or(&0) * channels;
    }
}

/// The end of each group of levels, from the top. In [`LayoutOrder::Heap`], each level is a group.
/// Otherwise, a group has the maximum number of levels whose subtrees fit into `row_span` lines, at
/// least one. Groups are formed from the leaves upwards, so the topmost group is the small one.
fn group_ends(sizes: &[u64], order: LayoutOrder) -> Vec<usize> {
    let Some(row_span) = order.row_span() else { return (1..=sizes.len()).collect() };
    let mut ends = Vec::new();
    let mut end = sizes.len();
    while end > 0 {
        ends.push(end);
        let fits = |start: &usize| Subtree::new(sizes, *start..end, order).lines <= row_span;
        end = (0..end - 1).rev().take_while(fits).last().unwrap_or(end - 1);
    }
    ends.reverse();
    ends
}

fn spec(message: String) -> SimError {
    SimError::Spec(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dram::{Command, CommandKind, Dram, DramSpec, Request};
    use crate::trace::AccessKind;

    /// Slots of the tree of IR-ORAM, Table I: 25 levels, 10 of them on chip.
    fn slots() -> Vec<u64> {
        [vec![0; 10], vec![4; 15]].concat()
    }

    /// The average number of rows that the commands for a path open.
    fn rows_of_a_path(channels: u32, order: LayoutOrder) -> f64 {
        const PATHS: u64 = 100;
        // With the gaps between its subtrees, the tree exceeds the capacity of one channel.
        let spec = DramSpec { rows: 1 << 17, ..DramSpec::built_in("DDR3-1600").unwrap() };
        let layout = BucketLines::new(&slots(), 0, order).unwrap();
        let mut dram = Dram::observed(&spec, channels, Vec::new()).unwrap();
        for path in 0..PATHS {
            let leaf = path.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            for level in 10..25 {
                for line in layout.lines(level, leaf & ((1 << level) - 1)) {
                    // Spaced out in time, so that reordering across paths cannot affect the result.
                    let arrival = path * 1000;
                    dram.enqueue(Request { id: 0, line, kind: AccessKind::Read, arrival }).unwrap();
                }
            }
        }
        dram.run_until_idle(&mut Vec::new());
        let opens = |command: &&Command| command.kind == CommandKind::Activate;
        dram.observer().iter().filter(opens).count() as f64 / PATHS as f64
    }

    #[test]
    fn a_path_opens_a_row_for_each_subtree_on_each_channel() {
        // 15 levels are 3 subtrees of 5 levels on one channel, and subtrees of 1, 7 and 7 levels on
        // four.
        for (channels, row_span, rows) in [(1, 128, 3.0), (4, 512, 3.0 * 4.0)] {
            let subtrees = rows_of_a_path(channels, LayoutOrder::Subtrees { row_span });
            assert!((subtrees - rows).abs() < 0.1 * rows, "{subtrees} rows on {channels} channels");
            let heap = rows_of_a_path(channels, LayoutOrder::Heap);
            assert!(heap > 3.5 * subtrees, "{heap} rows of a heap against {subtrees}");
        }
    }

    #[test]
    fn subtrees_fill_the_row_of_every_channel() {
        let ends = |sizes: &[u64], row_span| group_ends(sizes, LayoutOrder::Subtrees { row_span });
        assert_eq!(ends(&[4; 15], 128), [5, 10, 15]);
        assert_eq!(ends(&[4; 15], 512), [1, 8, 15]);
        // Two lines per bucket above, four below: 8 · 2 - 2 + 8 · 4 + 16 · 4 = 110 lines.
        assert_eq!(ends(&[2, 2, 2, 2, 2, 4, 4], 128), [2, 7]);
        let layout = |order| BucketLines::new(&slots(), 0, order).unwrap();
        let lines = |layout: BucketLines| layout.total() * 64;
        // 8 GiB minus the levels on chip. The gaps are less than one percent.
        assert_eq!(lines(layout(LayoutOrder::Heap)), (1 << 33) - (1 << 18));
        assert!(lines(layout(LayoutOrder::Subtrees { row_span: 512 })) < (1 << 33) / 100 * 101);
    }

    #[test]
    fn a_balanced_path_loads_every_channel_alike() {
        // IR-Alloc 4: a path has 36 lines.
        let slots = [vec![0; 10], vec![1; 6], vec![2; 3], vec![4; 6]].concat();
        let loads = |order, leaf: u64| {
            let layout = BucketLines::new(&slots, 0, order).unwrap();
            let mut loads = [0; 4];
            for level in 10..25 {
                for line in layout.lines(level, leaf & ((1 << level) - 1)) {
                    loads[line as usize % 4] += 1;
                }
            }
            loads
        };
        let mut most = 0;
        for path in 1..100u64 {
            let leaf = path.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            assert_eq!(loads(LayoutOrder::Balanced { row_span: 512, channels: 4 }, leaf), [9; 4]);
            most = most
                .max(*loads(LayoutOrder::Subtrees { row_span: 512 }, leaf).iter().max().unwrap());
        }
        assert!(most > 12, "packed, the busiest channel has {most} lines");
    }

    #[test]
    fn impossible_trees_are_refused() {
        for (slots, row_span) in
            [(vec![0, 4, 0], 8), (vec![1 << 20], 8), (vec![1; 34], 8), (vec![4; 3], 6)]
        {
            assert!(BucketLines::new(&slots, 0, LayoutOrder::Subtrees { row_span }).is_err());
        }
        for channels in [0, 3, 16] {
            let order = LayoutOrder::Balanced { row_span: 8, channels };
            assert!(BucketLines::new(&[4; 3], 0, order).is_err());
        }
    }

    proptest! {
        #[test]
        fn buckets_never_overlap(
            slots in prop::collection::vec(1u64..7, 1..9),
            on_chip in 0usize..3,
            header_lines in 0u64..3,
            order in prop_oneof![
                Just(LayoutOrder::Heap),
                (0u32..10).prop_map(|log| LayoutOrder::Subtrees { row_span: 1 << log }),
                (3u32..10, 0u32..4).prop_map(|(log, channels)| LayoutOrder::Balanced {
                    row_span: 1 << log,
                    channels: 1 << channels,
                }),
            ],
        ) {
            let slots = [vec![0; on_chip], slots].concat();
            let layout = BucketLines::new(&slots, header_lines, order).unwrap();
            let mut all = Vec::new();
            for (level, &slots) in slots.iter().enumerate() {
                for index in 0..1 << level {
                    let lines = layout.lines(level, index);
                    let expected = if slots == 0 { 0 } else { slots + header_lines };
                    prop_assert_eq!(lines.len() as u64, expected);
                    all.extend(lines);
                }
            }
            all.sort_unstable();
            prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "two buckets share a line");
            prop_assert!(*all.last().unwrap() < layout.total());
        }
    }
}
