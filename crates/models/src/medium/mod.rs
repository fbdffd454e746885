//! Models of storage media: the time that a request takes, and the requests that a volume makes.

mod volume;

pub use volume::VolumeModel;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A request for consecutive bytes of a medium, which serves one request at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Level of the tree. Paths are requested from the root down.
    pub level: u8,
}

/// A storage medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Medium {
    /// A hard disk of 2 TB at 7,200 rpm: 8.5 ms average seek, less over short distances, half a
    /// turn of rotational delay, 150 MB/s.
    Disk,
    /// The disk of [`Medium::Disk`], but every seek takes the average time.
    MeanDisk,
    /// An SSD: 100 µs per request, 500 MB/s.
    Ssd,
    /// A link: 1 ms round trip, 1 Gbit/s.
    Link,
    /// A link with other parameters.
    OtherLink {
        /// Round-trip time in microseconds.
        micros: u32,
        /// Rate in Mbit/s.
        megabits: u32,
    },
}

/// Capacity of the disk, over which seeks range.
const DISK_SPAN_BYTES: f64 = 2e12;

/// Seek time to the next track, in seconds.
const SEEK_SECONDS_MIN: f64 = 0.8e-3;
/// Average seek time over random pairs of positions, in seconds.
const SEEK_SECONDS_MEAN: f64 = 8.5e-3;

/// Average rotational delay in seconds: half a turn.
const ROTATION_SECONDS: f64 = 60.0 / 7200.0 / 2.0;

impl Medium {
    /// The media that the experiments on rORAM compare.
    pub const ALL: [Self; 4] = [Self::Disk, Self::MeanDisk, Self::Ssd, Self::Link];

    /// The medium's identifier in files.
    pub fn id(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::MeanDisk => "mean-disk",
            Self::Ssd => "ssd",
            Self::Link => "link",
            Self::OtherLink { .. } => "other-link",
        }
    }

    fn bytes_per_second(self) -> f64 {
        match self {
            Self::Disk | Self::MeanDisk => 150e6,
            Self::Ssd => 500e6,
            Self::Link => 125e6,
            Self::OtherLink { megabits, .. } => f64::from(megabits) * 1e6 / 8.0,
        }
    }

    /// Seconds before a request moves its first byte, if the request starts `distance` bytes from
    /// the end of the previous one.
    fn seconds_before(self, distance: u64) -> f64 {
        match (self, distance) {
            (Self::Disk | Self::MeanDisk, 0) => 0.0,
            (Self::MeanDisk, _) => SEEK_SECONDS_MEAN + ROTATION_SECONDS,
            (Self::Disk, distance) => {
                // For two uniformly random positions, the square root of their relative distance is
                // 8/15 on average.
                let part = (distance as f64 / DISK_SPAN_BYTES).min(1.0).sqrt() * 15.0 / 8.0;
                SEEK_SECONDS_MIN + (SEEK_SECONDS_MEAN - SEEK_SECONDS_MIN) * part + ROTATION_SECONDS
            }
            (Self::Ssd, _) => 100e-6,
            (Self::Link, _) => 1e-3,
            (Self::OtherLink { micros, .. }, _) => f64::from(micros) * 1e-6,
        }
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherLink { micros, megabits } => {
                return write!(f, "a link ({} ms, {megabits} Mbit/s)", f64::from(*micros) / 1e3);
            }
            Self::Disk => "a hard disk (150 MB/s, seek time by distance)",
            Self::MeanDisk => "a hard disk (150 MB/s, 12.7 ms for any seek)",
            Self::Ssd => "an SSD (100 µs, 500 MB/s)",
            Self::Link => "a link (1 ms, 1 Gbit/s)",
        })
    }
}

/// Parses `hdd`, `ssd`, `link` (the paper's link), or `link=MILLISECONDS,MEGABITS`.
impl FromStr for Medium {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown_medium = || {
            "expected hdd, ssd, link (1 ms, 1000 Mbit/s), or link=MILLISECONDS,MEGABITS, such as \
             link=20,100"
                .to_owned()
        };
        match text {
            "hdd" => return Ok(Self::Disk),
            "ssd" => return Ok(Self::Ssd),
            "link" => return Ok(Self::Link),
            _ => (),
        }
        let of_link = text.strip_prefix("link=").and_then(|of_link| of_link.split_once(','));
        let (millis, megabits) = of_link.ok_or_else(unknown_medium)?;
        let millis: f64 = millis.parse().map_err(|_| unknown_medium())?;
        let megabits: u32 = megabits.parse().map_err(|_| unknown_medium())?;
        if !(0.0..=60_000.0).contains(&millis) || !(1..=1_000_000).contains(&megabits) {
            return Err("a link must have 0 to 60000 ms and 1 to 1000000 Mbit/s".to_owned());
        }
        Ok(Self::OtherLink { micros: (millis * 1e3) as u32, megabits })
    }
}

/// The total cost of requests on a medium.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The medium that serves the requests.
    pub medium: Medium,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that did not start where the previous one ended.
    pub seeks: u64,
    /// Number of bytes transferred.
    pub bytes: u64,
    /// Total time in seconds.
    pub seconds: f64,
    /// The offset at which the previous request ended.
    head: u64,
}

impl Tally {
    /// Creates an empty tally, with the head at byte 0.
    pub fn new(medium: Medium) -> Self {
        Self { medium, requests: 0, seeks: 0, bytes: 0, seconds: 0.0, head: 0 }
    }

    /// Adds the cost of one request.
    pub fn add(&mut self, request: &Request) {
        let distance = self.head.abs_diff(request.offset);
        self.requests += 1;
        self.seeks += u64::from(distance > 0);
        self.bytes += request.bytes;
        let transfer = request.bytes as f64 / self.medium.bytes_per_second();
        self.seconds += self.medium.seconds_before(distance) + transfer;
        self.head = request.offset + request.bytes;
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    use super::*;

    #[test]
    fn a_seek_takes_12_7_ms_on_average_and_what_follows_takes_none() {
        let mut coins = StdRng::seed_from_u64(1);
        let mut tally = Tally::new(Medium::Disk);
        for _ in 0..100_000 {
            let offset = coins.random_range(0..DISK_SPAN_BYTES as u64);
            tally.add(&Request { offset, bytes: 0, level: 0 });
        }
        let mean = tally.seconds / 1e5;
        assert!((mean - 12.67e-3).abs() < 0.1e-3, "{mean}");
        let before = tally.clone();
        tally.add(&Request { offset: before.head, bytes: 150_000_000, level: 0 });
        tally.add(&Request { offset: before.head + 150_000_000, bytes: 75_000_000, level: 0 });
        assert_eq!((tally.seeks, tally.requests), (before.seeks, before.requests + 2));
        assert!((tally.seconds - before.seconds - 1.5).abs() < 1e-6);
    }

    #[test]
    fn a_medium_has_a_name_and_others_are_refused_with_what_would_work() {
        assert_eq!("hdd".parse(), Ok(Medium::Disk));
        let link: Medium = "link=20.5,100".parse().unwrap();
        assert_eq!(link, Medium::OtherLink { micros: 20_500, megabits: 100 });
        let mut tally = Tally::new(link);
        tally.add(&Request { offset: 9, bytes: 12_500_000, level: 0 });
        assert!((tally.seconds - 1.0205).abs() < 1e-9);
        for wrong in
            ["", "tape", "link=", "link=1", "link=1,0", "link=-1,5", "link=NaN,5", "link=1,5,5"]
        {
            assert!(wrong.parse::<Medium>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_ssd_and_a_link_take_as_long_wherever_a_request_is() {
        for (medium, seconds) in [(Medium::Ssd, 2.0001), (Medium::Link, 8.001)] {
            for offset in [0, 1 << 40] {
                let mut tally = Tally::new(medium);
                tally.add(&Request { offset, bytes: 1_000_000_000, level: 0 });
                assert!((tally.seconds - seconds).abs() < 1e-9);
            }
        }
    }
}
