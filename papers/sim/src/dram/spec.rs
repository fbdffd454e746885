//! The parameters of a DRAM, read from a file.
//!
//! Times are in clocks of the command bus, under the names of the data sheets. A data burst takes
//! `burst_clocks`: half of its beats, at two beats per clock. The built-in parts are files in
//! `specs/`, in the same format as the files of users.

use serde::{Deserialize, Serialize};

use super::timing::{BankGroups, Queues, Timing};
use crate::{LINE_BYTES, SimError, cut_lines};

/// The files of the built-in parts.
const BUILT_IN: [&str; 5] = [
    include_str!("../../specs/DDR3-1333.toml"),
    include_str!("../../specs/DDR3-1600.toml"),
    include_str!("../../specs/DDR3-1866.toml"),
    include_str!("../../specs/DDR3-2133.toml"),
    include_str!("../../specs/DDR4-2400.toml"),
];

/// A DRAM with its controller. All channels are identical.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramSpec {
    /// Name of the part.
    pub name: String,
    /// Clocks of the command bus per microsecond. Data moves twice per clock.
    pub clock_mhz: f64,
    /// Ranks per channel.
    pub ranks: u32,
    /// Banks per rank, over all bank groups.
    pub banks: u32,
    /// Rows per bank.
    pub rows: u32,
    /// Bytes of a row, over all chips of a rank.
    pub row_bytes: u64,
    /// Bytes of a burst: one line of the processor.
    pub line_bytes: u64,
    /// Clocks of a burst on the data bus.
    pub burst_clocks: u32,
    /// The parts of a location that the bits of a line's number select, most significant first:
    /// `row`, `rank`, `bank`, `column`, `channel`, and `group` for parts with bank groups. The
    /// names are separated by colons.
    pub address_order: String,
    /// Minimum distances between commands.
    pub timing: Timing,
    /// Bank groups, which exist from DDR4 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bank_groups: Option<BankGroups>,
    /// The parameters of the scheduler's queues.
    pub queues: Queues,
}

impl DramSpec {
    /// Parses a specification in TOML. `file` is the name used in messages.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the text is not a specification, or contradicts itself.
    pub fn parse(text: &str, file: &str) -> Result<Self, SimError> {
        let spec: Self =
            toml::from_str(text).map_err(|error| cut_lines(&error.to_string())).map_err(
                |error| SimError::Spec(format!("{file}: not a DRAM specification: {error}")),
            )?;
        spec.check().map_err(|error| SimError::Spec(format!("{file}: {error}")))?;
        Ok(spec)
    }

    /// The built-in part `name`, such as `DDR3-1600`.
    ///
    /// # Errors
    /// [`SimError::Spec`] if no built-in part has this name.
    pub fn built_in(name: &str) -> Result<Self, SimError> {
        let mut specs = Self::built_ins()?;
        let names: Vec<_> = specs.iter().map(|spec| spec.name.clone()).collect();
        let Some(place) = names.iter().position(|built_in| built_in == name) else {
            let names = names.join(", ");
            return Err(SimError::Spec(format!("unknown DRAM {name}; known are {names}")));
        };
        Ok(specs.swap_remove(place))
    }

    /// All built-in parts.
    ///
    /// # Errors
    /// Never in practice: a test parses all parts.
    pub fn built_ins() -> Result<Vec<Self>, SimError> {
        BUILT_IN.iter().map(|text| Self::parse(text, "a built-in spec")).collect()
    }

    /// Lines per row.
    pub fn row_lines(&self) -> u64 {
        self.row_bytes / self.line_bytes
    }

    /// Bank groups per rank; 1 for parts without groups.
    pub fn groups(&self) -> u32 {
        self.bank_groups.map_or(1, |groups| groups.groups)
    }

    /// Peak bandwidth of the data buses of `channels`, in GB/s (10⁹).
    pub fn peak_gb_per_second(&self, channels: u32) -> f64 {
        let bursts_a_microsecond = self.clock_mhz / f64::from(self.burst_clocks);
        f64::from(channels) * bursts_a_microsecond * self.line_bytes as f64 / 1000.0
    }

    /// Checks that the numbers are consistent. The code that uses the address order checks it.
    ///
    /// # Errors
    /// [`SimError::Spec`]. The message says what to change.
    pub fn check(&self) -> Result<(), SimError> {
        let Self { ranks, banks, row_bytes, line_bytes, queues, .. } = *self;
        let powers = [
            ("ranks", u64::from(ranks)),
            ("banks", u64::from(banks)),
            ("rows", u64::from(self.rows)),
            ("row_bytes", row_bytes),
            ("groups", u64::from(self.groups())),
        ];
        let crooked = powers.iter().find(|(_, count)| !count.is_power_of_two());
        let wrong = if let Some((name, count)) = crooked {
            format!("{name} = {count}: must be a power of two")
        } else if line_bytes != LINE_BYTES {
            format!("line_bytes = {line_bytes}: must be {LINE_BYTES}")
        } else if row_bytes < line_bytes {
            format!("row_bytes = {row_bytes}: a row must hold at least one line")
        } else if u64::from(ranks) * u64::from(banks) > 64 {
            format!("{ranks} ranks of {banks} banks: a channel has at most 64 banks")
        } else if self.groups() > banks {
            format!("groups = {}: there are only {banks} banks", self.groups())
        } else if !(self.clock_mhz.is_finite() && self.clock_mhz > 0.0) {
            format!("clock_mhz = {}: must be more than 0", self.clock_mhz)
        } else if self.burst_clocks == 0 || queues.read == 0 {
            "burst_clocks and queues.read: must be at least 1".into()
        } else if queues.drain_low >= queues.drain_high || queues.drain_high > queues.write {
            "queues: drain_low must be below drain_high, and drain_high at most write".into()
        } else if u64::from(self.timing.refi) <= self.clocks_of_a_refresh() {
            let least = self.clocks_of_a_refresh();
            let refi = self.timing.refi;
            format!("tREFI = {refi}: must exceed the sum of all other times, {least}")
        } else {
            return Ok(());
        };
        Err(SimError::Spec(wrong))
    }

    /// The sum of all times but tREFI, plus the clocks of a burst and one clock per bank. The sum
    /// is an upper bound on the clocks from the due time of a refresh to its end. It also bounds
    /// every distance between two commands.
    fn clocks_of_a_refresh(&self) -> u64 {
        let Timing { cas, rcd, rp, ras, rc, rrd, faw, wr, wtr, rtp, ccd, cwd, rtrs, rfc, .. } =
            self.timing;
        let long = self.bank_groups.map_or([0; 3], |long| [long.ccd, long.rrd, long.wtr]);
        let times = [cas, rcd, rp, ras, rc, rrd, faw, wr, wtr, rtp, ccd, cwd, rtrs, rfc];
        let rest = [self.burst_clocks, self.banks];
        times.iter().chain(&long).chain(&rest).map(|clocks| u64::from(*clocks)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_a_spec_and_survives_a_file() {
        let specs = DramSpec::built_ins().unwrap();
        assert_eq!(specs.len(), BUILT_IN.len());
        for spec in specs {
            assert_eq!(DramSpec::built_in(&spec.name).unwrap(), spec);
            let json = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<DramSpec>(&json).unwrap(), spec);
        }
        assert!(
            (DramSpec::built_in("DDR3-1600").unwrap().peak_gb_per_second(4) - 51.2).abs() < 1e-9
        );
        let error = DramSpec::built_in("DDR9").unwrap_err().to_string();
        assert!(error.contains("DDR3-1600"), "{error}");
    }

    #[test]
    fn a_broken_file_says_what_to_change() {
        let good = BUILT_IN[1];
        for (from, to, says) in [
            ("tCAS = 11", "tCAS = -11", "tCAS"),
            ("tCAS = 11", "tCSA = 11", "tCSA"),
            ("tCAS = 11\n", "", "tCAS"),
            ("banks = 8", "banks = 6", "banks = 6"),
            ("banks = 8", "banks = 64", "at most 64 banks"),
            ("ranks = 2", "ranks = 0", "ranks = 0"),
            ("row_bytes = 8192", "row_bytes = 32", "row_bytes"),
            ("line_bytes = 64", "line_bytes = 32", "line_bytes"),
            ("clock_mhz = 800.0", "clock_mhz = nan", "clock_mhz"),
            ("burst_clocks = 4", "burst_clocks = 0", "burst_clocks"),
            ("drain_high = 40", "drain_high = 65", "drain_high"),
            ("drain_low = 20", "drain_low = 40", "drain_low"),
            ("tREFI = 6240", "tREFI = 300", "tREFI = 300"),
            ("tRTRS = 2", "tRTRS = 4294967295", "tREFI"),
            (
                "[queues]",
                "[bank_groups]\ngroups=16\ntCCD_L=4\ntRRD_L=4\ntWTR_L=4\n[queues]",
                "groups",
            ),
        ] {
            assert!(good.contains(from), "{from}");
            let error =
                DramSpec::parse(&good.replace(from, to), "my.toml").unwrap_err().to_string();
            assert!(error.starts_with("my.toml: ") && error.contains(says), "{error}");
        }
    }
}
