//! Comparison with the figures that other simulators gave for DDR3-1600.
//!
//! The part is `specs/DDR3-1600.toml`. The simulators are USIMM, `DRAMsim3` and Ramulator 1. They
//! differ from each other, so a [`Cell`] accepts their spread plus a tolerance: 2 % for streams, 5
//! % for random loads, 3 clocks for unloaded reads.
//!
//! A data sheet fixes neither the address order nor the scheduler's windows and marks (see
//! [`Queues`](super::Queues)), so the file chooses them. Rows come first, so a stream fills a row
//! of each bank in turn. Channels come last, so the stream uses all of them. The windows (64 each)
//! and the marks (40, 20) are USIMM's. Rows stay open after an access.

use serde::{Deserialize, Serialize};

use super::DramSpec;
use super::bandwidth::{Load, Unloaded};
use crate::SimError;

/// The name of the measured part.
pub const PART: &str = "DDR3-1600";
/// Requests per measurement of a bandwidth.
const REQUESTS: usize = 60_000;
/// Reads per measurement of an unloaded latency.
const READS: u32 = 10_000;

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Bandwidth under a load, in GB/s (10⁹).
    Bandwidth(Load),
    /// Latency in clocks per read.
    Latency(Unloaded),
}

/// A quantity, with the figures of the other simulators.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The number of channels of the part.
    pub channels: u32,
    /// The measured quantity.
    pub quantity: Quantity,
    /// The figure of USIMM.
    pub usimm: Option<f64>,
    /// The figure of `DRAMsim3`.
    pub dramsim3: Option<f64>,
    /// The figure of Ramulator 1.
    pub ramulator: Option<f64>,
}

/// A cell with our own measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The figures of the other simulators.
    pub cell: Cell,
    /// The figure that this simulator gives.
    pub ours: f64,
    /// The accepted range of our figure.
    pub band: (f64, f64),
}

impl Verdict {
    /// Whether our figure is in the accepted range.
    pub fn agrees(&self) -> bool {
        (self.band.0..=self.band.1).contains(&self.ours)
    }
}

impl Cell {
    /// The range of the other simulators' figures, plus the tolerance.
    pub fn band(&self) -> (f64, f64) {
        let others = [self.usimm, self.dramsim3, self.ramulator].into_iter().flatten();
        let least = others.clone().fold(f64::INFINITY, f64::min);
        let most = others.fold(0.0, f64::max);
        match self.quantity {
            Quantity::Latency(_) => (least - 3.0, most + 3.0),
            Quantity::Bandwidth(Load::StreamRead | Load::StreamReadWrite) => {
                (least * 0.98, most * 1.02)
            }
            Quantity::Bandwidth(_) => (least * 0.95, most * 1.05),
        }
    }

    /// Measures the quantity on `spec`.
    ///
    /// # Errors
    /// The errors of [`super::Dram::new`].
    pub fn measure(&self, spec: &DramSpec, seed: u64) -> Result<Verdict, SimError> {
        let ours = match self.quantity {
            Quantity::Bandwidth(load) => load.gb_per_second(spec, self.channels, REQUESTS, seed)?,
            Quantity::Latency(reads) => reads.clocks(spec, self.channels, READS, seed)?,
        };
        Ok(Verdict { cell: self.clone(), ours, band: self.band() })
    }
}

/// All published figures of other simulators.
pub fn published() -> Vec<Cell> {
    use Load::{PathLike, RandomRead, RandomReadWrite, StreamRead, StreamReadWrite};
    // Channels, load, USIMM, DRAMsim3, Ramulator 1.
    let bandwidths = [
        (1, StreamRead, Some(12.37), Some(12.36), Some(12.44)),
        (1, RandomRead, Some(10.49), Some(11.28), Some(10.99)),
        (1, StreamReadWrite, Some(10.40), Some(11.69), Some(9.51)),
        (1, RandomReadWrite, Some(9.50), Some(9.41), Some(9.63)),
        (1, PathLike, Some(11.78), None, None),
        (4, StreamRead, Some(49.80), Some(49.46), None),
        (4, RandomRead, Some(35.29), Some(44.74), None),
        (4, StreamReadWrite, Some(49.79), Some(49.36), None),
        (4, RandomReadWrite, Some(30.61), Some(36.50), None),
        (4, PathLike, Some(35.02), Some(35.74), None),
    ];
    // USIMM counts cycles of a processor with four cycles per clock, and does not vary the
    // channels.
    let latencies = [
        (1, Unloaded::RowHit, Some(79.0 / 4.0), Some(23.2), None),
        (1, Unloaded::Random, Some(167.0 / 4.0), Some(34.3), None),
        (4, Unloaded::RowHit, Some(79.0 / 4.0), Some(26.3), None),
        (4, Unloaded::Random, Some(167.0 / 4.0), Some(33.0), None),
    ];
    let bandwidths = bandwidths.map(|(channels, load, usimm, dramsim3, ramulator)| Cell {
        channels,
        quantity: Quantity::Bandwidth(load),
        usimm,
        dramsim3,
        ramulator,
    });
    let latencies = latencies.map(|(channels, reads, usimm, dramsim3, ramulator)| Cell {
        channels,
        quantity: Quantity::Latency(reads),
        usimm,
        dramsim3,
        ramulator,
    });
    bandwidths.into_iter().chain(latencies).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_agree_with_the_others_in_every_cell() {
        let spec = DramSpec::built_in(PART).unwrap();
        for seed in 1..=2 {
            for cell in published() {
                let verdict = cell.measure(&spec, seed).unwrap();
                assert!(verdict.agrees(), "{verdict:?}");
            }
        }
    }

    #[test]
    fn another_part_is_noticed() {
        let slow = DramSpec::built_in("DDR3-1333").unwrap();
        let stream = &published()[0];
        assert!(!stream.measure(&slow, 1).unwrap().agrees());
    }

    #[test]
    fn the_same_seed_gives_the_same_figures() {
        let spec = DramSpec::built_in(PART).unwrap();
        let cell = &published()[4];
        assert_eq!(cell.measure(&spec, 3).unwrap(), cell.measure(&spec, 3).unwrap());
        assert_ne!(cell.measure(&spec, 3).unwrap(), cell.measure(&spec, 4).unwrap());
    }
}
