//! Counts of a view: totals, levels, times. Memory is bounded, whatever the view contains.

use std::collections::BTreeMap;
use std::time::Duration;

use oblivio_core::store::Capabilities;
use oblivio_core::view::{Event, EventSink, Observed, Operation, Tally};

use super::exchanges::Exchanges;
use super::inputs::Inputs;
use super::leaves::LeafMap;
use super::order::{WriteOrder, WriteOrderCounter};
use super::parties::Parties;
use super::rates::Rates;
use crate::error::CliError;

/// Maximum number of trees, more than any volume has.
const TREES_MAX: usize = 256;

/// A summary of a view. Public.
pub(crate) struct ViewCounts {
    /// The capabilities of the store, if the file records them.
    pub(super) capabilities: Option<Capabilities>,
    pub(crate) tally: Tally,
    pub(super) trees: BTreeMap<u16, TreeCounts>,
    /// Number of pieces that belong to trees past [`TREES_MAX`].
    pub(super) pieces_left_out: u64,
    /// Rates of trips over time, if the file records times.
    pub(super) rates: Option<Rates>,
    /// The servers whose view is shown, if storage consists of several servers.
    pub(super) parties: Option<Parties>,
    /// Counts of messages between servers.
    pub(super) exchanges: Exchanges,
}

/// Counts for one tree.
#[derive(Default)]
pub(super) struct TreeCounts {
    /// Counts of each level, from the root on.
    levels: Vec<LevelCounts>,
    /// The order of writes to the deepest level.
    order: WriteOrderCounter,
}

/// Number of pieces of buckets of one level.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LevelCounts {
    pub(super) read: u64,
    pub(super) written: u64,
}

impl ViewCounts {
    /// Reads a whole view.
    pub(super) fn read(inputs: &mut Inputs) -> Result<Self, CliError> {
        let parties = inputs.parties().cloned();
        let shown = parties.as_ref().map_or(Vec::new(), |parties| parties.shown.clone());
        let mut counts = Self {
            capabilities: inputs.capabilities(),
            tally: Tally::new(),
            trees: BTreeMap::new(),
            pieces_left_out: 0,
            rates: None,
            parties,
            exchanges: Exchanges::default(),
        };
        inputs.each(&mut |observed, time| match observed {
            Observed::Event(event) => counts.record(&event, time),
            Observed::PeerMessage(exchange) => counts.exchanges.record(&exchange, &shown),
        })?;
        counts.exchanges.end();
        Ok(counts)
    }

    fn record(&mut self, event: &Event, time: Option<Duration>) {
        self.tally.record(event, &[]);
        if let Some(time) = time {
            let rates = self.rates.get_or_insert_default();
            rates.record(event.trip, event.operation, time);
        }
        let Some(piece) = event.piece else { return };
        if self.trees.len() == TREES_MAX && !self.trees.contains_key(&piece.tree.0) {
            self.pieces_left_out += 1;
            return;
        }
        let tree = self.trees.entry(piece.tree.0).or_default();
        tree.record(event.operation, piece.bucket.level(), piece.bucket.index());
    }
}

impl TreeCounts {
    fn record(&mut self, operation: Operation, level: u8, index: u64) {
        let level = usize::from(level);
        if level >= self.levels.len() {
            self.levels.resize(level + 1, LevelCounts::default());
            self.order = WriteOrderCounter::default();
        }
        match operation {
            Operation::Read => self.levels[level].read += 1,
            Operation::Write => self.levels[level].written += 1,
            Operation::Prefetch | Operation::Flush => return,
        }
        if level + 1 == self.levels.len() {
            self.order.record(operation, index);
        }
    }

    /// The levels that were used, from the root downwards.
    pub(super) fn levels(&self) -> impl Iterator<Item = (u8, LevelCounts)> {
        let used = |level: &(u8, LevelCounts)| level.1 != LevelCounts::default();
        (0..).zip(self.levels.iter().copied()).filter(used)
    }

    pub(super) fn reads(&self) -> u64 {
        self.levels.iter().map(|level| level.read).sum()
    }

    /// Number of buckets of the deepest level up to the last one that was used.
    pub(super) fn leaf_buckets(&self) -> u64 {
        self.order.index_max() + 1
    }

    /// Whether the counts of all levels equal those of `other`.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.levels == other.levels
    }

    /// The map from accessed buckets to leaves. `None` if the buckets show no leaf. A tree with a
    /// single level in storage may show leaves, too.
    pub(super) fn leaf_map(&self) -> Option<LeafMap> {
        let top = self.levels().next()?.0;
        let (deepest, counts) = self.levels().last()?;
        match self.order.order() {
            _ if top == deepest && is_read_as_a_whole(deepest, counts) => None,
            WriteOrder::Fixed => None,
            WriteOrder::Any => Some(LeafMap::of_paths(deepest)),
            WriteOrder::InTurn => Some(LeafMap::of_evictions(top, deepest, self.order.index_max())),
        }
    }
}

/// Whether accesses scan the whole level, as in the trivial ORAM: a large part of the level is read
/// for each bucket written. While a table fills, half of it is read on average. A tree that evicts
/// after every `A` accesses reads only `A + 1` buckets of a level for each bucket written. Also
/// true if the level has too few buckets to show leaves.
fn is_read_as_a_whole(level: u8, LevelCounts { read, written }: LevelCounts) -> bool {
    let part = 1_u64.checked_shl(u32::from(level.saturating_sub(4))).unwrap_or(u64::MAX);
    level < LEVEL_MIN || read >= written.saturating_mul(part.max(PATHS_MAX))
}

/// The first level with enough buckets to show leaves. Anchors and superblocks are stored on levels
/// with lower numbers.
const LEVEL_MIN: u8 = 3;

/// Maximum number of paths that any tree reads per path that it writes, with a margin.
const PATHS_MAX: u64 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_alone_shows_leaves_unless_it_is_read_as_a_whole() {
        let tree = |level: u8, accesses: u64, read: u64| {
            let mut tree = TreeCounts::default();
            for access in 0..accesses {
                for bucket in 0..read {
                    tree.record(Operation::Read, level, (access * 7 + bucket * 13) % (1 << level));
                }
                tree.record(Operation::Write, level, access % (1 << level));
            }
            tree.leaf_map()
        };
        // Paths of which only the leaves are in storage; a scanned table; a table being filled;
        // anchors.
        assert_eq!(tree(10, 200, 6), Some(LeafMap::of_evictions(10, 10, 0)));
        assert_eq!(tree(10, 20, 600), None);
        assert_eq!(tree(9, 256, 127), None);
        assert_eq!(tree(1, 200, 1), None);
    }
}
