//! What kind of processor it is.

use serde::{Deserialize, Deserializer, Serialize};

use crate::cache::{Cache, CacheShape};
use crate::{Cycle, LINE_BYTES, SimError};

/// More than any processor has. It keeps sums of cycles within their type.
const MAX: u64 = 1 << 20;

/// The sizes and latencies of a processor. What is not said is as in Table I of IR-ORAM, and where
/// that is silent, as in USIMM.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessorSpec {
    /// Its clock, in MHz. Nothing here depends on it: it relates cycles to those of memory.
    pub clock_mhz: u32,
    /// How many instructions it fetches in a cycle, and how many it retires where
    /// [`retire_width`](Self::retire_width) does not say.
    pub width: u64,
    /// How many instructions it retires in a cycle: as many as it fetches, or fewer. No paper says how many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retire_width: Option<u64>,
    /// How many instructions may be fetched and not yet retired: the entries of the reorder buffer.
    pub rob: u64,
    /// Cycles from fetch to completion of an instruction that waits for nothing.
    pub depth: Cycle,
    /// Bytes of the last-level cache (LLC).
    pub llc_bytes: u64,
    /// Places of each line in the LLC.
    pub llc_ways: usize,
    /// Cycles that looking into the LLC takes on top of `depth`. No paper says how many: 10 is usual
    /// for this size.
    pub llc_latency: Cycle,
    /// Whether a write that misses the LLC fetches its line first. It need not where the first level
    /// gives back whole lines.
    pub fetch_on_write_miss: bool,
    /// How many write-backs may wait until memory takes them.
    pub write_back_room: u64,
    /// How many fetches may be under way: those of reads, and of writes where they
    /// [fetch](Self::fetch_on_write_miss). No paper says how many; 16 miss registers are usual. Records of runs
    /// from before there was a bound have `null`.
    #[serde(deserialize_with = "fetch_room")]
    pub fetch_room: u64,
    /// Whether each path of an ORAM stops retirement until it is read, whatever it is for: a front end in order,
    /// as published simulators of ORAM have it. It goes with one fetch at a time only.
    pub paths_stop_retirement: bool,
}

/// No bound at all.
pub const FETCH_ROOM_MAX: u64 = MAX;

fn fetch_room<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(FETCH_ROOM_MAX))
}

impl Default for ProcessorSpec {
    fn default() -> Self {
        Self {
            clock_mhz: 3200,
            width: 4,
            retire_width: None,
            rob: 128,
            depth: 10,
            llc_bytes: 2 << 20,
            llc_ways: 8,
            llc_latency: 10,
            fetch_on_write_miss: false,
            write_back_room: 64,
            fetch_room: 16,
            paths_stop_retirement: false,
        }
    }
}

impl ProcessorSpec {
    /// Refuses a processor that cannot work.
    ///
    /// # Errors
    /// [`SimError::Spec`], which names the field and what it may be.
    pub fn check(&self) -> Result<(), SimError> {
        within("clock_mhz", self.clock_mhz.into(), 1)?;
        within("width", self.width, 1)?;
        if !(1..=self.width).contains(&self.retired_at_once()) {
            return Err(SimError::Spec(format!(
                "retire_width must be 1 to the width, {}, and not {}: this processor retires no faster than it fetches",
                self.width,
                self.retired_at_once()
            )));
        }
        within("rob", self.rob, 1)?;
        within("depth", self.depth, 1)?;
        within("llc_latency", self.llc_latency, 0)?;
        within("write_back_room", self.write_back_room, 1)?;
        within("fetch_room", self.fetch_room, 1)?;
        if self.paths_stop_retirement && self.fetch_room != 1 {
            return Err(SimError::Spec(format!(
                "a front end in which paths stop retirement has one fetch under way, and not {}: set fetch_room \
                 to 1, or let paths stop nothing",
                self.fetch_room
            )));
        }
        self.llc().map(drop)
    }

    /// How many instructions it retires in a cycle.
    pub(super) fn retired_at_once(&self) -> u64 {
        self.retire_width.unwrap_or(self.width)
    }

    /// The LLC, empty.
    pub(super) fn llc(&self) -> Result<Cache, SimError> {
        let lines = self.llc_bytes / LINE_BYTES;
        within("llc_bytes / 64", lines, 1)?;
        if !self.llc_bytes.is_multiple_of(LINE_BYTES) {
            return Err(SimError::Spec(format!(
                "llc_bytes must be a multiple of {LINE_BYTES}, not {}",
                self.llc_bytes
            )));
        }
        Cache::new(CacheShape { lines: lines as usize, ways: self.llc_ways })
    }
}

fn within(field: &str, value: u64, min: u64) -> Result<(), SimError> {
    if (min..=MAX).contains(&value) {
        return Ok(());
    }
    Err(SimError::Spec(format!("{field} must be {min} to {MAX}, not {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_said_is_table_1() {
        let spec: ProcessorSpec = serde_json::from_str(r#"{"rob": 256}"#).unwrap();
        assert_eq!(spec, ProcessorSpec { rob: 256, ..ProcessorSpec::default() });
        spec.check().unwrap();
        assert_eq!(spec.llc().unwrap().sets(), 4096);
        assert!(serde_json::from_str::<ProcessorSpec>(r#"{"robb": 256}"#).is_err());
        let of_before: ProcessorSpec = serde_json::from_str(r#"{"fetch_room": null}"#).unwrap();
        assert_eq!(of_before.fetch_room, FETCH_ROOM_MAX);
    }

    #[test]
    fn a_processor_that_cannot_work_is_refused() {
        type Spoil = fn(&mut ProcessorSpec);
        let wrong: [(&str, Spoil); 12] = [
            ("clock_mhz", |spec| spec.clock_mhz = 0),
            ("width", |spec| spec.width = 0),
            ("retire_width", |spec| spec.retire_width = Some(0)),
            ("retire_width", |spec| spec.retire_width = Some(5)),
            ("rob", |spec| spec.rob = 0),
            ("depth", |spec| spec.depth = 0),
            ("llc_latency", |spec| spec.llc_latency = u64::MAX),
            ("write_back_room", |spec| spec.write_back_room = 0),
            ("fetch_room", |spec| spec.fetch_room = 0),
            ("one fetch", |spec| spec.paths_stop_retirement = true),
            ("llc_bytes", |spec| spec.llc_bytes += 1),
            ("ways", |spec| spec.llc_ways = 7),
        ];
        for (field, spoil) in wrong {
            let mut spec = ProcessorSpec::default();
            spoil(&mut spec);
            let error = spec.check().unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
    }
}
