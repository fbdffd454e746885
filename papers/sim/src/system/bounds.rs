//! Bounds for the numbers that describe a machine. A file can contain any numbers, and no number
//! may cause excessive use of memory or time. Other code checks that the numbers are consistent.

use super::SystemSpec;
use crate::SimError;
use crate::controller::{Initial, Pace};

/// The maximum number of levels of a tree. A larger tree takes more memory than machines have.
const LEVELS_MAX: usize = 26;

/// The maximum number of data blocks, which exceeds the number of slots of the largest tree.
const BLOCKS_MAX: u64 = 1 << 32;

/// The maximum number of lines of a block: 64 KiB. Even a bucket with the maximum number of slots
/// then has fewer lines than a [layout](crate::dram::layout) allows.
const BLOCK_LINES_MAX: u64 = 1 << 10;

/// The maximum number of cycles of a delay or period. A path takes thousands of cycles.
const CYCLES_MAX: u64 = 1 << 24;

/// The maximum number of cycles between two context switches: minutes.
const SLICE_CYCLES_MAX: u64 = 1 << 40;

/// The maximum number of blocks of a cache on the chip.
const CACHE_BLOCKS_MAX: u64 = 1 << 20;

/// The maximum number of requests per thousand data blocks before a run: ten per block.
const AGING_MAX: u64 = 10_000;

/// Checks the upper and lower bounds, and that `plb_ways` divides `plb_blocks`.
pub(super) fn check(spec: &SystemSpec) -> Result<(), SimError> {
    let SystemSpec { dram, controller, oram, .. } = spec;
    let cycles = match controller.pace {
        Pace::Free => 0,
        Pace::StartToStart(cycles) | Pace::Gap(cycles) | Pace::WhenIdle(cycles) => cycles,
    };
    if controller.context_switch == Some(0) {
        let message = "context_switch = 0: must be at least 1, or the program would never run";
        return Err(SimError::Spec(message.to_owned()));
    }
    let mut bounded = vec![
        ("channels", spec.channels.into(), 64),
        ("header_lines", spec.header_lines, 64),
        ("memory_latency", spec.memory_latency, CYCLES_MAX),
        ("row_bytes", dram.row_bytes, 1 << 20),
        ("queues.read", dram.queues.read.into(), 4096),
        ("queues.write", dram.queues.write.into(), 4096),
        ("clock_mhz", dram.clock_mhz.ceil() as u64, 1 << 20),
        ("on_chip", controller.on_chip, CYCLES_MAX),
        ("cycles of a pace", cycles, CYCLES_MAX),
        ("context_switch", controller.context_switch.unwrap_or(0), SLICE_CYCLES_MAX),
    ];
    if let Some(oram) = oram {
        let least = [
            ("stash_blocks_max", oram.stash_blocks_max as u64, 1),
            ("tree_top_ways", oram.tree_top_ways.map_or(1, u64::from), 1),
            ("fan_out", oram.fan_out, 2),
            ("block_lines", oram.block_lines, 1),
        ];
        if let Some((name, number, least)) =
            least.into_iter().find(|(_, number, least)| number < least)
        {
            return Err(SimError::Spec(format!("{name} = {number}: must be at least {least}")));
        }
        let slots_most = oram.slots.iter().copied().max().unwrap_or(0);
        bounded.extend([
            ("levels of slots", oram.slots.len() as u64, LEVELS_MAX as u64),
            ("slots of a bucket", slots_most.into(), 64),
            ("data_blocks", oram.data_blocks, BLOCKS_MAX),
            ("block_lines", oram.block_lines, BLOCK_LINES_MAX),
            ("stash_blocks_max", oram.stash_blocks_max as u64, CACHE_BLOCKS_MAX),
            ("plb_blocks", oram.plb_blocks as u64, CACHE_BLOCKS_MAX),
            ("plb_ways", oram.plb_ways as u64, CACHE_BLOCKS_MAX),
            ("aged", aging(oram.initial), AGING_MAX),
        ]);
        bounded.extend(oram.rho.iter().flat_map(|rho| {
            let small_per_main = rho.small_per_main as u64;
            [("blocks of rho", rho.blocks, BLOCKS_MAX), ("small_per_main", small_per_main, 1024)]
        }));
    }
    let plb = oram.as_ref().map(|oram| (oram.plb_blocks, oram.plb_ways));
    if let Some((blocks, ways)) = plb.filter(|(blocks, ways)| *ways == 0 || blocks % ways != 0) {
        let message = format!("plb_ways = {ways}: must divide the {blocks} blocks of the PLB");
        return Err(SimError::Spec(message));
    }
    match bounded.into_iter().find(|(_, number, most)| number > most) {
        Some((name, number, most)) => {
            Err(SimError::Spec(format!("{name} = {number}: must be at most {most}")))
        }
        None => Ok(()),
    }
}

fn aging(initial: Initial) -> u64 {
    match initial {
        Initial::Aged(per_thousand_blocks) => per_thousand_blocks.into(),
        Initial::Empty | Initial::Placed | Initial::EachOnce => 0,
    }
}
