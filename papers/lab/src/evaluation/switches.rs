//! Switches: parameters that all machines of an evaluation share, and their encoding in the names
//! of runs.

use oblivio_sim::controller::{Initial, Pace, WriteWatermarks};
use oblivio_sim::system::Layout;
use serde::Deserialize;

/// Parameters that the paper leaves open, or whose stated values are doubtful. All machines of an
/// evaluation share them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switches {
    /// The rule for when paths start.
    pub pace: Pace,
    /// Positions in a position-map block.
    pub fan_out: u64,
    /// Number of DRAM channels.
    pub channels: u32,
    /// Size of the LLC in bytes.
    pub llc_bytes: u64,
    /// Whether a write that misses the LLC first fetches its line. With delayed remapping, it
    /// always does.
    pub fetch_on_write_miss: bool,
    /// The layout of trees in DRAM.
    pub layout: Layout,
    /// The contents of the ORAM before the first request.
    pub initial: Initial,
    /// Instructions fetched per cycle (four in Table I). Also the number retired, if `retire_width`
    /// is `None`.
    pub width: u64,
    /// Instructions retired per cycle. Table I does not state it; USIMM's configuration for one
    /// channel has two.
    pub retire_width: Option<u64>,
    /// Maximum number of lines that the processor may have in flight.
    pub fetch_room: u64,
    /// Whether each path stops retirement until it is read.
    pub paths_stop_retirement: bool,
    /// Whether DRAM answers the reads of evictions and dummies from its write queue.
    pub write_queue_answers: bool,
    /// Numbers of waiting write-backs at which write-backs gain or lose priority over reads.
    pub write_marks: WriteWatermarks,
    /// The placement of the programs' pages.
    pub pages: Pages,
    /// Ways of the PLB (the cache of position-map blocks), per level of the position map.
    pub plb_ways: u16,
    /// Blocks in a set of the S-Stash (IR-Stash's tree top on the client), if the machine has one.
    pub tree_top_ways: u16,
    /// Stash bound, in blocks.
    pub stash_blocks: usize,
    /// Whether on-chip caches other than the LLC shrink with the tree. If not, they have the
    /// sizes of Table I.
    pub shrinks_chip: bool,
    /// The number of levels that the client keeps, minus the machine's default.
    pub tree_top: i8,
    /// The number of cycles after which the program is switched out. `None` if it never is.
    pub context_switch: Option<u64>,
    /// Lines per block, a power of two. With 2^*n* lines, the tree has *n* fewer levels.
    pub block_lines: u64,
    /// Whether all positions are on the chip, and no position map is in the tree.
    pub positions_on_chip: bool,
    /// Whether the records that fill the LLC also fill the small tree of Rho. If not, that tree
    /// starts empty.
    pub fills_small_tree: bool,
}

/// The placement of the programs' pages in the protected space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// Pages are at random places, as in a system that has run for long.
    Scattered,
    /// Pages are in the order of their first use, as in a fresh system.
    InOrder,
    /// Pages are at their own addresses, modulo the size of the space.
    AsIs,
}

impl Switches {
    /// Table I, with defaults for parameters that the table does not state.
    pub const PAPER: Self = Self {
        pace: Pace::DEFAULT,
        fan_out: 16,
        channels: 4,
        llc_bytes: 2 << 20,
        fetch_on_write_miss: false,
        layout: Layout::Balanced,
        initial: Initial::Placed,
        width: 4,
        retire_width: None,
        fetch_room: 16,
        paths_stop_retirement: false,
        write_queue_answers: false,
        write_marks: WriteWatermarks { high: 40, low: 20 },
        pages: Pages::Scattered,
        plb_ways: 1,
        tree_top_ways: 4,
        stash_blocks: 100,
        shrinks_chip: true,
        tree_top: 0,
        context_switch: None,
        block_lines: 1,
        positions_on_chip: false,
        fills_small_tree: false,
    };

    /// Switches whose every value differs from [`Self::PAPER`].
    pub(super) const UNLIKE_PAPER: Self = Self {
        pace: Pace::StartToStart(5000),
        fan_out: 32,
        channels: 1,
        llc_bytes: 1 << 20,
        fetch_on_write_miss: true,
        layout: Layout::Heap,
        initial: Initial::Empty,
        width: 2,
        retire_width: Some(1),
        fetch_room: 1,
        paths_stop_retirement: true,
        write_queue_answers: true,
        write_marks: WriteWatermarks { high: 1, low: 0 },
        pages: Pages::AsIs,
        plb_ways: 2,
        tree_top_ways: 8,
        stash_blocks: 200,
        shrinks_chip: false,
        tree_top: -1,
        context_switch: Some(1_000_000),
        block_lines: 2,
        positions_on_chip: true,
        fills_small_tree: true,
    };

    /// Encodes all switches in one word, for the names of runs.
    pub(super) fn key(&self) -> String {
        let Self { pace, fan_out, channels, llc_bytes, layout, initial, .. } = self;
        let pace = match pace {
            Pace::Free => "free".to_owned(),
            Pace::StartToStart(cycles) => format!("start-to-start-{cycles}"),
            Pace::Gap(cycles) => format!("gap-{cycles}"),
            Pace::WhenIdle(cycles) => format!("when-idle-{cycles}"),
        };
        let (layout, initial) =
            (format!("{layout:?}").to_lowercase(), format!("{initial:?}").to_lowercase());
        let unusual = self.unusual().concat();
        format!("{pace},x{fan_out},{channels}ch,{llc_bytes}b,{layout},{initial}{unusual}")
    }

    /// Encodes the rarely changed switches as suffixes, if they differ from [`Self::PAPER`].
    fn unusual(&self) -> [String; 17] {
        let Self { fetch_on_write_miss, fetch_room, pages, plb_ways, .. } = self;
        let Self { tree_top_ways, stash_blocks, .. } = self;
        let WriteWatermarks { high, low } = self.write_marks;
        let if_set = |is_set: bool, name: String| if is_set { name } else { String::new() };
        [
            if_set(*fetch_on_write_miss, ",fetch".to_owned()),
            if_set(self.width != Self::PAPER.width, format!(",width{}", self.width)),
            self.retire_width.map_or_else(String::new, |width| format!(",retires{width}")),
            if_set(*fetch_room != Self::PAPER.fetch_room, format!(",room{fetch_room}")),
            if_set(self.paths_stop_retirement, ",stops".to_owned()),
            if_set(self.write_queue_answers, ",queue".to_owned()),
            if_set(self.write_marks != Self::PAPER.write_marks, format!(",marks{high}-{low}")),
            match pages {
                Pages::Scattered => String::new(),
                Pages::InOrder => ",in-order".to_owned(),
                Pages::AsIs => ",as-is".to_owned(),
            },
            if_set(*plb_ways != Self::PAPER.plb_ways, format!(",plb{plb_ways}")),
            if_set(*tree_top_ways != Self::PAPER.tree_top_ways, format!(",{tree_top_ways}ways")),
            if_set(*stash_blocks != Self::PAPER.stash_blocks, format!(",stash{stash_blocks}")),
            if_set(!self.shrinks_chip, ",whole-chip".to_owned()),
            if_set(self.tree_top != 0, format!(",top{:+}", self.tree_top)),
            self.context_switch.map_or_else(String::new, |cycles| format!(",switched{cycles}")),
            if_set(self.block_lines != 1, format!(",{}lines", self.block_lines)),
            if_set(self.positions_on_chip, ",all-positions".to_owned()),
            if_set(self.fills_small_tree, ",small-tree".to_owned()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_of_a_run_contains_unusual_switches() {
        let usual = Switches::PAPER.key();
        assert_eq!(usual, "gap-250,x16,4ch,2097152b,balanced,placed");
        let unusual = Switches {
            fetch_on_write_miss: true,
            width: 2,
            retire_width: Some(1),
            fetch_room: 8,
            paths_stop_retirement: true,
            write_queue_answers: true,
            write_marks: WriteWatermarks { high: 1, low: 0 },
            pages: Pages::InOrder,
            plb_ways: 4,
            tree_top_ways: 16,
            stash_blocks: 300,
            shrinks_chip: false,
            tree_top: -2,
            context_switch: Some(7),
            block_lines: 4,
            positions_on_chip: true,
            fills_small_tree: true,
            ..Switches::PAPER
        };
        assert_eq!(
            unusual.key(),
            usual.clone()
                + ",fetch,width2,retires1,room8,stops,queue,marks1-0,in-order,plb4,16ways,\
                   stash300,whole-chip,top-2,switched7,4lines,all-positions,small-tree"
        );
        let as_is = Switches { pages: Pages::AsIs, ..Switches::PAPER };
        assert_eq!(as_is.key(), usual + ",as-is");
    }
}
