//! The machines of Tiny ORAM (section V): an ORAM controller on an FPGA, with DRAM on its board.
//!
//! A cache has filtered the traces that the paper runs on the controller, so the processor here
//! only makes one request at a time and waits for it. The paper states the parameters that IR-ORAM
//! leaves open, so these machines ignore the switches for them.

use oblivio_sim::controller::{OramSpec, Pace, PositionMap, Scheme};
use oblivio_sim::processor::ProcessorSpec;
use oblivio_sim::system::{Layout, SystemSpec};
use oblivio_sim::{Cycle, LINE_BYTES};

use super::switches::Switches;
use crate::LabError;

/// One of the two designs in Table II, or the baseline of section V-E.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Design {
    /// Path ORAM with plain recursion.
    Recursive,
    /// Path ORAM with the frontend of Tiny ORAM.
    Path,
    /// RAW ORAM: Tiny ORAM itself.
    Raw,
}

/// The level of the leaves in the paper.
pub(super) const PAPER_LEAF_LEVEL: u8 = 20;

/// The minimum leaf level. A smaller tree does not fit the sample of the paper's program.
const LEAF_LEVEL_MIN: u8 = 16;

/// The clock of the FPGA, in MHz.
const CLOCK_MHZ: u32 = 200;

/// Rows of each bank, 2 GiB in all. The board has half of that. These trees fill more than half of
/// the board, and aligning subtrees to rows leaves gaps.
const ROWS: u32 = 1 << 15;

/// Lines of a bucket's IVs, leaves and addresses: one transfer of 512 bits.
const HEADER_LINES: u64 = 1;

/// Latency of the first line. The DRAM controller takes 30 cycles, of which ten are DRAM timing,
/// and the pipeline of the AES core takes 21.
const MEMORY_LATENCY: Cycle = 20 + 21;

/// Blocks per leaf. With this number, [`FAN_OUT`] and two levels of position map in the tree, the
/// positions on the chip take less than 8 KiB, as in the paper.
const BLOCKS_PER_LEAF: u64 = 2;

/// Positions kept on the chip.
const CLIENT_ENTRIES: u64 = 1 << 11;

/// Positions kept on the chip with plain recursion, whose two position maps have
/// [`RECURSIVE_FAN_OUT`] labels per block. At 12 bits each, the positions take 12 KiB, but the
/// paper states less than 8. If a block of 64 bytes held 25 labels of 20 bits, they would take 5
/// KiB.
const RECURSIVE_CLIENT_ENTRIES: u64 = 1 << 13;

/// Labels per position-map block of plain recursion, of four bytes each.
const RECURSIVE_FAN_OUT: u64 = 16;

/// Positions per position-map block, compressed as in Freecursive ORAM.
const FAN_OUT: u64 = 32;

/// Blocks of the PLB: 8 KiB, as in Freecursive ORAM.
const PLB_BLOCKS: usize = 128;

impl Design {
    /// Slots of a bucket.
    fn slots(self) -> u16 {
        match self {
            Self::Recursive | Self::Path => 4,
            Self::Raw => 5,
        }
    }

    fn scheme(self) -> Scheme {
        match self {
            Self::Recursive | Self::Path => Scheme::Path,
            Self::Raw => Scheme::Raw { evict_period: 5 },
        }
    }

    /// The stash bound: C of sections II-A and IV-B.
    fn stash_blocks(self) -> usize {
        match self {
            Self::Recursive | Self::Path => 78,
            Self::Raw => 64,
        }
    }

    /// Labels per position-map block, positions on the chip, and the location of the other
    /// positions.
    fn position_map(self) -> (u64, u64, PositionMap) {
        match self {
            Self::Recursive => (RECURSIVE_FAN_OUT, RECURSIVE_CLIENT_ENTRIES, PositionMap::OwnTrees),
            Self::Path | Self::Raw => (FAN_OUT, CLIENT_ENTRIES, PositionMap::InTree),
        }
    }

    /// The machine's switches. The method takes only the placement of pages, the write marks and
    /// the initial contents from `switches`.
    pub(super) fn switches(self, switches: &Switches) -> Switches {
        Switches {
            pace: Pace::Free,
            fan_out: self.position_map().0,
            channels: 1,
            llc_bytes: LINE_BYTES,
            fetch_on_write_miss: false,
            layout: Layout::Subtrees,
            initial: switches.initial,
            width: Switches::PAPER.width,
            retire_width: Switches::PAPER.retire_width,
            fetch_room: 16,
            paths_stop_retirement: false,
            write_queue_answers: false,
            write_marks: switches.write_marks,
            pages: switches.pages,
            plb_ways: Switches::PAPER.plb_ways,
            tree_top_ways: Switches::PAPER.tree_top_ways,
            stash_blocks: self.stash_blocks(),
            shrinks_chip: Switches::PAPER.shrinks_chip,
            tree_top: Switches::PAPER.tree_top,
            context_switch: Switches::PAPER.context_switch,
            block_lines: Switches::PAPER.block_lines,
            positions_on_chip: Switches::PAPER.positions_on_chip,
            fills_small_tree: false,
        }
    }

    /// The specification of the machine, with leaves on `leaf_level`, which is 20 in the paper.
    /// On-chip caches shrink with the tree.
    pub(super) fn spec(self, leaf_level: u8, switches: &Switches) -> Result<SystemSpec, LabError> {
        let switches = self.switches(switches);
        let mut system = SystemSpec::paper(leaf_level)?;
        system.processor = ProcessorSpec {
            clock_mhz: CLOCK_MHZ,
            width: 1,
            rob: 1,
            depth: 1,
            llc_bytes: switches.llc_bytes,
            llc_ways: 1,
            llc_latency: 0,
            ..system.processor
        };
        system.dram.ranks = 1;
        system.dram.rows = ROWS;
        system.channels = switches.channels;
        system.layout = switches.layout;
        system.header_lines = HEADER_LINES;
        system.memory_latency = MEMORY_LATENCY;
        system.controller.pace = switches.pace;
        system.controller.write_marks = switches.write_marks;
        system.oram = Some(self.oram(leaf_level, &switches));
        Ok(system)
    }

    fn oram(self, leaf_level: u8, switches: &Switches) -> OramSpec {
        let smaller = PAPER_LEAF_LEVEL.saturating_sub(leaf_level);
        let (_, client_entries, position_map) = self.position_map();
        OramSpec {
            data_blocks: BLOCKS_PER_LEAF << leaf_level,
            slots: vec![self.slots(); usize::from(leaf_level) + 1],
            scheme: self.scheme(),
            tree_top_levels: 0,
            stash_blocks_max: switches.stash_blocks,
            plb_blocks: (PLB_BLOCKS >> smaller).max(16),
            fan_out: switches.fan_out,
            client_entries_max: client_entries >> smaller,
            position_map,
            initial: switches.initial,
            ..OramSpec::paper(leaf_level)
        }
    }
}

/// The level of the leaves of these machines, if IR-ORAM's trees have leaves on `leaf_level`: that
/// level, but at least [`LEAF_LEVEL_MIN`] and at most [`PAPER_LEAF_LEVEL`].
pub(super) fn leaf_level(leaf_level: u8) -> u8 {
    leaf_level.clamp(LEAF_LEVEL_MIN, PAPER_LEAF_LEVEL)
}

#[cfg(test)]
mod tests {
    use oblivio_sim::controller::Initial;

    use super::*;
    use crate::evaluation::{Pages, Variant};

    #[test]
    fn the_machines_are_those_of_section_5() {
        for (name, slots, stash_blocks) in [("tiny-path", 4, 78), ("tiny-raw", 5, 64)] {
            let system = Variant::named(name).unwrap().spec(24, &Switches::PAPER).unwrap();
            system.check().unwrap();
            assert_eq!((system.processor.clock_mhz, system.channels), (200, 1));
            let oram = system.oram.unwrap();
            assert_eq!(oram.slots, vec![slots; 21]);
            assert_eq!((oram.stash_blocks_max, oram.tree_top_levels), (stash_blocks, 0));
            // Two levels of position map, and 20 bits for each remaining position: less than 8 KiB.
            let left = oram.data_blocks / oram.fan_out / oram.fan_out;
            assert_eq!(left, oram.client_entries_max);
            assert!(left * 20 / 8 < 8 << 10);
        }
        let oram = Design::Recursive.oram(20, &Design::Recursive.switches(&Switches::PAPER));
        assert_eq!((oram.slots, oram.stash_blocks_max), (vec![4; 21], 78));
        assert_eq!(oram.data_blocks / oram.fan_out / oram.fan_out, oram.client_entries_max);
        assert_eq!(Design::Raw.scheme(), Scheme::Raw { evict_period: 5 });
    }

    #[test]
    fn a_tree_is_never_larger_than_the_papers_and_holds_the_sample() {
        assert_eq!([12, 16, 18, 20, 24].map(leaf_level), [16, 16, 18, 20, 20]);
        for level in LEAF_LEVEL_MIN..=PAPER_LEAF_LEVEL {
            for design in [Design::Recursive, Design::Path, Design::Raw] {
                design.spec(level, &Switches::PAPER).unwrap().check().unwrap();
            }
        }
    }

    #[test]
    fn only_pages_and_initial_contents_are_open() {
        let named = Variant::named("tiny-raw").unwrap();
        let others = Switches {
            pace: Pace::Gap(7),
            fan_out: 8,
            channels: 2,
            llc_bytes: 1 << 20,
            fetch_on_write_miss: true,
            layout: Layout::Heap,
            fetch_room: 1,
            tree_top_ways: 8,
            stash_blocks: 7,
            ..Switches::PAPER
        };
        assert_eq!(named.switches(&others), named.switches(&Switches::PAPER));
        assert_eq!(named.spec(20, &others).unwrap(), named.spec(20, &Switches::PAPER).unwrap());
        let open = Switches { initial: Initial::Empty, pages: Pages::InOrder, ..Switches::PAPER };
        assert_eq!(named.switches(&open).pages, Pages::InOrder);
        assert_eq!(named.spec(20, &open).unwrap().oram.unwrap().initial, Initial::Empty);
    }
}
