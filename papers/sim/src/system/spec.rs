//! The parameters of a machine.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::bounds;
use super::commented::commented;
use super::oram::DramBus;
use crate::controller::{self, ControllerSpec, OldCopyPolicy, OramSpec, Remap, RhoSpec};
use crate::dram::{Clock, DramSpec, DramTally};
use crate::processor::ProcessorSpec;
use crate::{Cycle, SimError, cut_lines};

/// The layout of a tree in DRAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Buckets in order of level.
    Heap,
    /// Subtrees that fill a row of every channel.
    Subtrees,
    /// Subtrees, with the lines of each path spread evenly over the channels.
    Balanced,
}

/// The parameters of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemSpec {
    /// The processor, with its LLC.
    pub processor: ProcessorSpec,
    /// The parameters of one channel of DRAM.
    pub dram: DramSpec,
    /// Number of DRAM channels.
    pub channels: u32,
    /// The layout of the trees in DRAM.
    pub layout: Layout,
    /// Lines of a bucket's header. IR-ORAM counts none; Tiny ORAM has one.
    pub header_lines: u64,
    /// Cycles from DRAM to the requester, in addition to DRAM's own: for the memory controller and
    /// decryption. With an ORAM, they count once per path, because the lines of a path arrive in a
    /// row. Without an ORAM, they count for each fetched line. No table of the papers gives a
    /// number.
    #[serde(default)]
    pub memory_latency: Cycle,
    /// The parameters of the controller.
    pub controller: ControllerSpec,
    /// The parameters of the ORAM; `None` if the LLC accesses DRAM directly.
    pub oram: Option<OramSpec>,
}

impl SystemSpec {
    /// The machine of IR-ORAM, Table I, with the ORAM of its Baseline. The paper has `leaf_level`
    /// 24.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the built-in DRAM is missing.
    pub fn paper(leaf_level: u8) -> Result<Self, SimError> {
        Ok(Self {
            processor: ProcessorSpec::default(),
            dram: DramSpec::built_in("DDR3-1600")?,
            channels: 4,
            layout: Layout::Balanced,
            header_lines: 0,
            memory_latency: 0,
            controller: ControllerSpec::default(),
            oram: Some(OramSpec::paper(leaf_level)),
        })
    }

    /// Parses a machine from a file in TOML or JSON. `file` is the name used in messages.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the text is not a machine. The message names the file.
    pub fn parse(text: &str, file: &str) -> Result<Self, SimError> {
        let wrong = |error: &dyn fmt::Display| {
            SimError::Spec(format!(
                "{file} does not describe a machine: {}",
                cut_lines(&error.to_string())
            ))
        };
        // A TOML document never begins with a brace.
        let spec: Self = if text.trim_start().starts_with('{') {
            serde_json::from_str(text).map_err(|error| wrong(&error))?
        } else {
            toml::from_str(text).map_err(|error| wrong(&error))?
        };
        spec.check().map_err(|error| wrong(&error))?;
        Ok(spec)
    }

    /// Writes the machine as a TOML file for [`Self::parse`]. Each key has a comment, and keys that
    /// are not set are commented out. If a name in the machine would break such a file, the file
    /// has no comments.
    ///
    /// # Errors
    /// [`SimError::Spec`] for a number that TOML cannot represent.
    pub fn to_toml(&self) -> Result<String, SimError> {
        let text =
            |spec: &Self| toml::to_string(spec).map_err(|error| SimError::Spec(error.to_string()));
        let plain = text(self)?;
        let file = commented(&plain, &text(&Self::with_every_key()?)?);
        // A name may be any text, including text that looks like keys.
        let is_read_again = toml::from_str(&file).is_ok_and(|read: Self| read == *self);
        Ok(if is_read_again { file } else { plain })
    }

    /// A machine whose file has every key.
    pub(super) fn with_every_key() -> Result<Self, SimError> {
        let mut spec = Self::paper(24)?;
        spec.dram = DramSpec::built_in("DDR4-2400")?;
        spec.processor.retire_width = Some(2);
        spec.controller.context_switch = Some(32_000_000);
        spec.oram = spec.oram.map(|oram| OramSpec {
            block_lines: 2,
            tree_top_ways: Some(4),
            rho: Some(RhoSpec {
                blocks: oram.data_blocks >> 8,
                small_per_main: 2,
                old_copy: OldCopyPolicy::TakenOut,
            }),
            ..oram
        });
        Ok(spec)
    }

    /// Checks that the parameters are possible and can be combined. This is fast, and a machine
    /// that passes can run.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the parameters are invalid; the message says how. [`SimError::Engine`]
    /// for an impossible tree.
    pub fn check(&self) -> Result<(), SimError> {
        self.processor.check()?;
        self.dram.check()?;
        bounds::check(self)?;
        if let Some(oram) = &self.oram {
            DramBus::new(self, oram, DramTally::default())?;
            controller::check(oram, &self.controller)?;
        }
        if self.processor.paths_stop_retirement && !self.controller.pace.is_fixed() {
            let message = "paths can stop retirement only at a fixed pace, where the next start is \
                           known in advance: set a pace of gap or start-to-start";
            return Err(SimError::Spec(message.to_owned()));
        }
        let delayed = self.oram.as_ref().is_some_and(|oram| oram.remap == Remap::Delayed);
        if delayed && !self.processor.fetch_on_write_miss {
            let message = "with delayed remapping a write that misses must fetch its line, since a \
                           cached line is not in the ORAM: set fetch_on_write_miss";
            return Err(SimError::Spec(message.to_owned()));
        }
        Ok(())
    }

    /// Resets the parameters that a machine without an ORAM does not use to [`Self::paper`]: the
    /// controller, the layout and headers of trees, and the stop of retirement by paths. A machine
    /// with an ORAM stays unchanged.
    #[must_use]
    pub fn without_unused(self) -> Self {
        if self.oram.is_some() {
            return self;
        }
        Self {
            processor: ProcessorSpec { paths_stop_retirement: false, ..self.processor },
            layout: Layout::Balanced,
            header_lines: 0,
            controller: ControllerSpec::default(),
            ..self
        }
    }

    pub(super) fn clocks(&self) -> Clocks {
        let khz = |mhz: f64| (mhz * 1000.0).round().max(1.0) as u128;
        Clocks { processor: khz(self.processor.clock_mhz.into()), dram: khz(self.dram.clock_mhz) }
    }
}

/// Converts between processor cycles and DRAM clocks, both counted from the same moment. The fields
/// are the frequencies in kHz.
#[derive(Clone, Copy)]
pub(super) struct Clocks {
    processor: u128,
    dram: u128,
}

impl Clocks {
    /// The first DRAM clock at or after a processor cycle.
    pub(super) fn clock(self, cycle: Cycle) -> Clock {
        (u128::from(cycle) * self.dram).div_ceil(self.processor) as Clock
    }

    /// The last DRAM clock at or before a processor cycle.
    pub(super) fn clock_by(self, cycle: Cycle) -> Clock {
        (u128::from(cycle) * self.dram / self.processor) as Clock
    }

    /// The first processor cycle at or after a DRAM clock.
    pub(super) fn cycle(self, clock: Clock) -> Cycle {
        (u128::from(clock) * self.processor).div_ceil(self.dram) as Cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::{Pace, Scheme};
    use crate::system::{WarmUp, run};
    use crate::trace::{AccessKind, Record};

    fn small() -> SystemSpec {
        SystemSpec::paper(8).unwrap()
    }

    #[test]
    fn a_machine_survives_a_file() {
        let mut raw = small();
        raw.controller.pace = Pace::Free;
        raw.layout = Layout::Heap;
        let oram = raw.oram.as_mut().unwrap();
        oram.scheme = Scheme::Raw { evict_period: 5 };
        oram.tree_top_ways = Some(4);
        oram.rho =
            Some(RhoSpec { blocks: 64, small_per_main: 2, old_copy: OldCopyPolicy::TakenOut });
        let plain = SystemSpec { oram: None, ..small() };
        for spec in [small(), raw, plain] {
            let (toml, json) = (spec.to_toml().unwrap(), serde_json::to_string(&spec).unwrap());
            for text in [toml, json] {
                assert_eq!(SystemSpec::parse(&text, "my machine").unwrap(), spec, "{text}");
            }
        }
    }

    #[test]
    fn an_invalid_file_is_named() {
        let good = toml::to_string(&small()).unwrap();
        for (part, wrong, says) in [
            ("channels", "chanels", "chanels"),
            ("llc_ways", "llc_way", "llc_way"),
            ("rob = 128", "rob = 0", "rob"),
            ("tREFI = 6240", "tREFI = 1", "tREFI"),
            ("header_lines = 0", "header_lines = 65", "header_lines"),
            ("memory_latency = 0", "memory_latency = 16777217", "memory_latency"),
            ("slots = [4", "slots = [65", "slots of a bucket = 65"),
            ("slots = [4", &format!("slots = [{}4", "4, ".repeat(18)), "levels of slots = 27"),
            ("scheme = \"path\"", "scheme = \"square\"", "square"),
        ] {
            assert!(good.contains(part), "{part} in {good}");
            let error = SystemSpec::parse(&good.replacen(part, wrong, 1), "a.toml").unwrap_err();
            let error = error.to_string();
            assert!(
                error.starts_with("a.toml does not describe a machine: ") && error.contains(says),
                "{error}"
            );
        }
        for text in ["", "{", "{}", "[]", "\u{0}"] {
            assert!(SystemSpec::parse(text, "a.toml").is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_program_that_never_runs_is_refused() {
        let mut spec = small();
        spec.controller.context_switch = Some(1);
        spec.check().unwrap();
        spec.controller.context_switch = Some(0);
        let error = spec.check().unwrap_err().to_string();
        assert!(error.starts_with("context_switch = 0: "), "{error}");
    }

    #[test]
    fn unused_parameters_of_a_machine_without_oram_change_nothing() {
        let plain = SystemSpec { oram: None, ..small() };
        let mut other = plain.clone();
        other.controller.pace = Pace::StartToStart(5);
        other.controller.write_queue_answers = true;
        other.layout = Layout::Heap;
        other.header_lines = 2;
        other.processor.paths_stop_retirement = true;
        other.processor.fetch_room = 1;
        let used = other.clone().without_unused();
        assert_eq!(
            used,
            SystemSpec { processor: ProcessorSpec { fetch_room: 1, ..plain.processor }, ..plain }
        );
        let records =
            || (0..500).map(|line| Record { gap: 3, kind: AccessKind::Write, line: 64 * line });
        let [here, there] =
            [other, used].map(|spec| run(&spec, records(), WarmUp::default(), 1, &()).unwrap());
        assert_eq!(here, there);
        let oram = SystemSpec { layout: Layout::Heap, ..small() };
        assert_eq!(oram.clone().without_unused(), oram);
    }

    #[test]
    fn a_tree_that_does_not_fit_the_memory_is_refused_before_it_is_made() {
        let mut spec = SystemSpec::paper(12).unwrap();
        spec.check().unwrap();
        spec.dram.rows = 1;
        let error = spec.check().unwrap_err().to_string();
        assert!(error.starts_with("the trees have"), "{error}");
    }

    /// JSON pointers to the numbers of a machine's file, and to the tables with numbers.
    const PARTS: [&str; 11] = [
        "/channels",
        "/header_lines",
        "/memory_latency",
        "/processor",
        "/controller",
        "/controller/pace",
        "/controller/write_marks",
        "/oram",
        "/dram",
        "/dram/queues",
        "/dram/timing",
    ];

    /// Replaces each number of a machine's file in turn, by small and huge values. Each machine
    /// must be refused, or run or fail without a panic.
    #[test]
    fn no_number_of_a_file_is_taken_on_trust() {
        let good = serde_json::to_value(small()).unwrap();
        let records = || (0..50).map(|line| Record { gap: 3, kind: AccessKind::Read, line });
        for part in PARTS {
            let part_of = good.pointer(part).unwrap();
            let names: Vec<_> =
                part_of.as_object().into_iter().flatten().map(|(name, _)| name).collect();
            let places = names.iter().map(|name| format!("{part}/{name}"));
            for place in [part.to_owned()].into_iter().chain(places) {
                if !good.pointer(&place).unwrap().is_number() {
                    continue;
                }
                for number in [0u64, 1, 3, 255, 65_535, 1 << 20, u64::from(u32::MAX), u64::MAX] {
                    let mut spoiled = good.clone();
                    *spoiled.pointer_mut(&place).unwrap() = number.into();
                    if let Ok(spec) = SystemSpec::parse(&spoiled.to_string(), "a.json") {
                        let _ = run(&spec, records(), WarmUp::default(), 1, &());
                    }
                }
            }
        }
    }
}
