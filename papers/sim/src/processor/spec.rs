//! The parameters of a processor.

use serde::{Deserialize, Deserializer, Serialize};

use crate::cache::{Cache, CacheShape};
use crate::{Cycle, LINE_BYTES, SimError};

/// Upper bound of all fields; `llc_bytes` is bounded in lines. The bound keeps sums of cycles from
/// overflowing.
const MAX: u64 = 1 << 20;

/// The dimensions and latencies of a processor. Defaults are from Table I of IR-ORAM, or from USIMM
/// if the table has no value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProcessorSpec {
    /// Clock in MHz. It only relates cycles to memory clocks.
    pub clock_mhz: u32,
    /// Instructions fetched per cycle. Also the default of [`retire_width`](Self::retire_width).
    pub width: u64,
    /// Instructions retired per cycle, at most `width`. No paper gives a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retire_width: Option<u64>,
    /// Entries of the reorder buffer: instructions fetched but not yet retired.
    pub rob: u64,
    /// Cycles from fetch to completion of an instruction that waits for nothing.
    pub depth: Cycle,
    /// Bytes of the last-level cache (LLC).
    pub llc_bytes: u64,
    /// Associativity of the LLC.
    pub llc_ways: usize,
    /// Cycles of an LLC look-up, in addition to `depth`. No paper gives a number; 10 is usual for
    /// this size.
    pub llc_latency: Cycle,
    /// Whether a write that misses the LLC fetches its line first. This is unnecessary if the first
    /// level writes back whole lines.
    pub fetch_on_write_miss: bool,
    /// The maximum number of write-backs that may wait for memory.
    pub write_back_room: u64,
    /// The maximum number of fetches in flight: of reads, and of writes if they
    /// [fetch](Self::fetch_on_write_miss). No paper gives a number; 16 miss registers are usual.
    /// Saved runs from before this bound existed have `null` here.
    #[serde(deserialize_with = "fetch_room")]
    pub fetch_room: u64,
    /// Whether each path of an ORAM stops retirement until it is read, whatever its purpose. This
    /// models an in-order front end, as published ORAM simulators do. It requires `fetch_room` = 1.
    pub paths_stop_retirement: bool,
}

/// The value of `fetch_room` for an unlimited number of fetches.
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
    /// Checks that all parameters are in their ranges.
    ///
    /// # Errors
    /// [`SimError::Spec`]. The message names the field and its range.
    pub fn check(&self) -> Result<(), SimError> {
        check_range("clock_mhz", self.clock_mhz.into(), 1)?;
        check_range("width", self.width, 1)?;
        if !(1..=self.width).contains(&self.retired_at_once()) {
            return Err(SimError::Spec(format!(
                "retire_width must be 1 to {} (width), not {}: this processor retires no faster \
                 than it fetches",
                self.width,
                self.retired_at_once()
            )));
        }
        check_range("rob", self.rob, 1)?;
        check_range("depth", self.depth, 1)?;
        check_range("llc_latency", self.llc_latency, 0)?;
        check_range("write_back_room", self.write_back_room, 1)?;
        check_range("fetch_room", self.fetch_room, 1)?;
        if self.paths_stop_retirement && self.fetch_room != 1 {
            return Err(SimError::Spec(format!(
                "paths can stop retirement only with one fetch at a time, not {}: set fetch_room \
                 to 1, or let paths not stop retirement",
                self.fetch_room
            )));
        }
        self.llc().map(drop)
    }

    /// Instructions retired per cycle.
    pub(super) fn retired_at_once(&self) -> u64 {
        self.retire_width.unwrap_or(self.width)
    }

    /// Creates an empty LLC.
    pub(super) fn llc(&self) -> Result<Cache, SimError> {
        let lines = self.llc_bytes / LINE_BYTES;
        check_range("llc_bytes / 64", lines, 1)?;
        if !self.llc_bytes.is_multiple_of(LINE_BYTES) {
            return Err(SimError::Spec(format!(
                "llc_bytes must be a multiple of {LINE_BYTES}, not {}",
                self.llc_bytes
            )));
        }
        Cache::new(CacheShape { lines: lines as usize, ways: self.llc_ways })
    }
}

fn check_range(field: &str, value: u64, min: u64) -> Result<(), SimError> {
    if (min..=MAX).contains(&value) {
        return Ok(());
    }
    Err(SimError::Spec(format!("{field} must be {min} to {MAX}, not {value}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_table_1() {
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
