//! What a figure sets otherwise than the evaluation: what the paper does not say, or what it varies.

use oblivio_sim::LINE_BYTES;
use oblivio_sim::controller::{Initial, Pace, WriteMarks};
use oblivio_sim::system::Layout;
use serde::Deserialize;

use super::plan::Plan;
use super::variants::{Pages, Switches};

/// Some of the [`Switches`], the size of the tree, and the length of the warm-up. What is not said is as in the evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Setting {
    /// What a figure calls it. Nothing: by the size of the protected space.
    pub name: Option<String>,
    /// The level of the leaves, counted from that of the evaluation.
    pub levels: i8,
    /// How many times as many records fill the caches.
    pub warm_ups: Option<u32>,
    /// So many records fill the caches, whatever the evaluation says.
    pub warm_up_records: Option<u64>,
    /// When paths start.
    pub pace: Option<Pace>,
    /// Positions in a position-map block.
    pub fan_out: Option<u64>,
    /// Channels of DRAM.
    pub channels: Option<u32>,
    /// How often the LLC is halved.
    pub llc_halvings: u32,
    /// Whether a write that misses the LLC fetches its line first.
    pub fetch_on_write_miss: Option<bool>,
    /// How trees lie in DRAM.
    pub layout: Option<Layout>,
    /// What the ORAM holds before the first request.
    pub initial: Option<Initial>,
    /// How many lines the processor may fetch at once.
    pub fetch_room: Option<u64>,
    /// Whether each path stops retirement until it is read.
    pub paths_stop_retirement: Option<bool>,
    /// Whether DRAM answers the reads of evictions and dummies from the queue of their writes.
    pub write_queue_answers: Option<bool>,
    /// When write-backs come before reads.
    pub write_marks: Option<WriteMarks>,
    /// Where the pages of programs lie.
    pub pages: Option<Pages>,
    /// Places in the PLB for each block of the position map.
    pub plb_ways: Option<u16>,
    /// Blocks in a set of the S-Stash.
    pub tree_top_ways: Option<u16>,
    /// Blocks that may stay in the stash.
    pub stash_blocks: Option<usize>,
    /// Whether caches on the chip, but for the LLC, shrink with the tree.
    pub shrinks_chip: Option<bool>,
    /// Levels that the client keeps, counted from those that it has otherwise.
    pub tree_top: Option<i8>,
    /// For how many cycles the program runs until it is switched out.
    pub context_switch: Option<u64>,
    /// Lines of a block, a power of two. The tree is as much lower, its protected space as large as it was.
    pub block_lines: Option<u64>,
    /// Whether all positions are on the chip, and no position map is in the tree.
    pub positions_on_chip: Option<bool>,
}

impl Setting {
    /// Whether it says nothing but what a machine is.
    pub(super) fn is_of_machine(&self) -> bool {
        let of_machine =
            Self { name: None, levels: 0, warm_ups: None, warm_up_records: None, ..self.clone() };
        of_machine == *self
    }

    /// The switches of an evaluation, but for those that are said here.
    pub(super) fn of(&self, switches: &Switches) -> Switches {
        Switches {
            pace: self.pace.unwrap_or(switches.pace),
            fan_out: self.fan_out.unwrap_or(switches.fan_out),
            channels: self.channels.unwrap_or(switches.channels),
            llc_bytes: switches.llc_bytes.checked_shr(self.llc_halvings).unwrap_or(0),
            fetch_on_write_miss: self.fetch_on_write_miss.unwrap_or(switches.fetch_on_write_miss),
            layout: self.layout.unwrap_or(switches.layout),
            initial: self.initial.unwrap_or(switches.initial),
            fetch_room: self.fetch_room.unwrap_or(switches.fetch_room),
            paths_stop_retirement: self
                .paths_stop_retirement
                .unwrap_or(switches.paths_stop_retirement),
            write_queue_answers: self.write_queue_answers.unwrap_or(switches.write_queue_answers),
            write_marks: self.write_marks.unwrap_or(switches.write_marks),
            pages: self.pages.unwrap_or(switches.pages),
            plb_ways: self.plb_ways.unwrap_or(switches.plb_ways),
            tree_top_ways: self.tree_top_ways.unwrap_or(switches.tree_top_ways),
            stash_blocks: self.stash_blocks.unwrap_or(switches.stash_blocks),
            shrinks_chip: self.shrinks_chip.unwrap_or(switches.shrinks_chip),
            tree_top: self.tree_top.unwrap_or(switches.tree_top),
            context_switch: self.context_switch.or(switches.context_switch),
            block_lines: self.block_lines.unwrap_or(switches.block_lines),
            positions_on_chip: self.positions_on_chip.unwrap_or(switches.positions_on_chip),
        }
    }

    /// What stands under the bars of a tree with its leaves on `leaf_level`.
    pub(super) fn label(&self, leaf_level: u8) -> String {
        let size = || bytes(Plan::lines(leaf_level) * LINE_BYTES);
        self.name.clone().unwrap_or_else(size)
    }
}

fn bytes(bytes: u64) -> String {
    match bytes >> 30 {
        0 => format!("{} MiB", bytes >> 20),
        gib => format!("{gib} GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_as_in_the_evaluation() {
        assert_eq!(Setting::default().of(&Switches::PAPER), Switches::PAPER);
        let one = Setting {
            channels: Some(1),
            llc_halvings: 5,
            initial: Some(Initial::Empty),
            ..Setting::default()
        };
        let expected = Switches {
            channels: 1,
            llc_bytes: 64 << 10,
            initial: Initial::Empty,
            ..Switches::PAPER
        };
        assert_eq!(one.of(&Switches::PAPER), expected);
    }

    #[test]
    fn a_setting_without_a_name_is_called_by_the_size() {
        let named = Setting { name: Some("one channel".to_owned()), ..Setting::default() };
        assert_eq!(named.label(24), "one channel");
        assert_eq!([24, 17].map(|level| Setting::default().label(level)), ["4 GiB", "32 MiB"]);
    }
}
