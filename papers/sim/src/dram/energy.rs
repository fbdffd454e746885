//! The energy of a DRAM: counts of commands, multiplied by the energy of each command according to
//! data sheet currents, plus standby and refreshes.
//!
//! A chip draws IDD3N while a row is open. A command adds the difference between its current and
//! IDD3N, for the time over which the data sheet measured the current. For an activate with its
//! precharge, IDD2N replaces IDD3N after tRAS. DRAM vendors recommend this calculation. Rows stay
//! open until another row is needed or the rank is refreshed, so all time counts as time with an
//! open row. The energy of pins and termination is not included.

use serde::Deserialize;

use super::{DramSpec, DramTally};
use crate::SimError;

/// The files of the built-in currents.
const BUILT_IN: [&str; 1] = [include_str!("../../specs/currents/DDR3-1600.toml")];

/// The currents of the chips of a DRAM.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Currents {
    /// The [DRAM](DramSpec::name) built from these chips.
    pub dram: String,
    /// The source of the numbers.
    pub source: String,
    /// Supply voltage in volts.
    pub volts: f64,
    /// Number of chips per rank.
    pub chips: u32,
    /// The currents of one chip.
    pub milliamperes: Milliamperes,
}

/// Currents of a chip, named as in data sheets.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Milliamperes {
    /// The current while one bank is activated every tRC, and precharged after tRAS.
    #[serde(rename = "IDD0")]
    pub idd0: f64,
    /// The current while all banks are precharged.
    #[serde(rename = "IDD2N")]
    pub idd2n: f64,
    /// The current while a bank is active.
    #[serde(rename = "IDD3N")]
    pub idd3n: f64,
    /// The current of back-to-back reads.
    #[serde(rename = "IDD4R")]
    pub idd4r: f64,
    /// The current of back-to-back writes.
    #[serde(rename = "IDD4W")]
    pub idd4w: f64,
    /// The current of back-to-back refreshes.
    #[serde(rename = "IDD5B")]
    pub idd5b: f64,
}

/// Energy of a DRAM, in nanojoules.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Energy {
    /// Energy of activates and precharges.
    pub rows: f64,
    /// Energy of reads.
    pub reads: f64,
    /// Energy of writes.
    pub writes: f64,
    /// Energy of refreshes.
    pub refreshes: f64,
    /// Energy of standby with open rows.
    pub standby: f64,
}

impl Energy {
    /// Energy of the commands that requests cause: activates, precharges, reads and writes.
    pub fn of_lines(&self) -> f64 {
        self.rows + self.reads + self.writes
    }

    /// Energy that depends on time only: refreshes and standby.
    pub fn of_time(&self) -> f64 {
        self.refreshes + self.standby
    }

    /// Total energy.
    pub fn total(&self) -> f64 {
        self.of_lines() + self.of_time()
    }
}

impl Currents {
    /// The built-in currents of the DRAM `name`.
    ///
    /// # Errors
    /// [`SimError::Spec`] if this DRAM has no built-in currents.
    pub fn built_in(name: &str) -> Result<Self, SimError> {
        let mut names = Vec::new();
        for text in BUILT_IN {
            let currents: Self = toml::from_str(text)
                .map_err(|error| SimError::Spec(format!("built-in currents: {error}")))?;
            if currents.dram == name {
                return Ok(currents);
            }
            names.push(currents.dram);
        }
        let names = names.join(", ");
        Err(SimError::Spec(format!("no currents known for {name}; known are {names}")))
    }

    /// The energy of `channels` channels of `spec` with the commands of `tally`, over
    /// `microseconds`. Each rank is refreshed once per tREFI.
    pub fn energy(
        &self,
        spec: &DramSpec,
        channels: u32,
        tally: &DramTally,
        microseconds: f64,
    ) -> Energy {
        let Milliamperes { idd0, idd2n, idd3n, idd4r, idd4w, idd5b } = self.milliamperes;
        // 1 mA · 1 V · 1 µs = 1 nJ.
        let of_rank = |milliamperes: f64, microseconds: f64| {
            milliamperes * microseconds * self.volts * f64::from(self.chips)
        };
        let time = |clocks: u32| f64::from(clocks) / spec.clock_mhz;
        let timing = &spec.timing;
        let open = of_rank(idd0, time(timing.rc))
            - of_rank(idd3n, time(timing.ras))
            - of_rank(idd2n, time(timing.rc.saturating_sub(timing.ras)));
        let burst = time(spec.burst_clocks);
        let ranks = f64::from(spec.ranks) * f64::from(channels);
        let refreshes = ranks * microseconds / time(timing.refi);
        Energy {
            rows: tally.activates as f64 * open,
            reads: tally.reads as f64 * of_rank(idd4r - idd3n, burst),
            writes: tally.writes as f64 * of_rank(idd4w - idd3n, burst),
            refreshes: refreshes * of_rank(idd5b - idd3n, time(timing.rfc)),
            standby: ranks * of_rank(idd3n, microseconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dram::{Command, CommandKind, Dram, Request};
    use crate::trace::AccessKind;

    fn ddr3() -> (DramSpec, Currents) {
        let spec = DramSpec::built_in("DDR3-1600").unwrap();
        let currents = Currents::built_in(&spec.name).unwrap();
        (spec, currents)
    }

    #[test]
    fn energies_by_hand() {
        let (spec, currents) = ddr3();
        let tally = DramTally { reads: 10, writes: 20, activates: 3 };
        let energy = currents.energy(&spec, 4, &tally, 7.8);
        let is_near = |ours: f64, by_hand: f64| assert!((ours / by_hand - 1.0).abs() < 1e-9);
        // 1.35 V and 8 chips; clocks of 1.25 ns.
        let volts = 1.35 * 8.0 * 1.25e-3;
        is_near(energy.rows, 3.0 * volts * (55.0 * 39.0 - 38.0 * 28.0 - 32.0 * 11.0));
        is_near(energy.reads, 10.0 * volts * 4.0 * 119.0);
        is_near(energy.writes, 20.0 * volts * 4.0 * 87.0);
        // Two ranks on four channels, each refreshed once per 7.8 µs.
        is_near(energy.refreshes, 8.0 * volts * 208.0 * 197.0);
        is_near(energy.standby, 8.0 * volts * 38.0 * 6240.0);
        is_near(energy.total(), energy.of_lines() + energy.of_time());
    }

    /// Checks that the number of refreshes computed from time differs from the number sent by at
    /// most one for each of the four ranks.
    #[test]
    fn each_rank_is_refreshed_once_in_its_interval() {
        let (spec, currents) = ddr3();
        let mut dram = Dram::observed(&spec, 2, Vec::new()).unwrap();
        let clocks = 100 * u64::from(spec.timing.refi);
        for id in 0..1000 {
            let arrival = id * clocks / 1000;
            dram.enqueue(Request { id, line: id * 77, kind: AccessKind::Read, arrival }).unwrap();
        }
        dram.run_until(clocks + u64::from(spec.timing.rfc), &mut Vec::new());
        let is_refresh = |command: &&Command| command.kind == CommandKind::Refresh;
        let sent = dram.observer().iter().filter(is_refresh).count() as f64;
        let one = 1.35 * 8.0 * 0.26 * 197.0;
        let microseconds = clocks as f64 / spec.clock_mhz;
        let reckoned = currents.energy(&spec, 2, &DramTally::default(), microseconds).refreshes;
        assert!((reckoned / one - sent).abs() <= 4.0, "{} and {sent}", reckoned / one);
    }

    #[test]
    fn chips_with_unknown_currents_have_no_energy() {
        let error = Currents::built_in("DDR9").unwrap_err().to_string();
        assert!(error.contains("known are DDR3-1600"), "{error}");
    }
}
