//! The parameters of a link: a rate in each direction, and a round-trip time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A full-duplex link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Rate from the server to the client, in Mbit/s (10^6 bits).
    pub down_megabits: f64,
    /// Rate from the client to the server, in Mbit/s.
    pub up_megabits: f64,
    /// Round-trip time of a message without data, in milliseconds.
    pub round_trip_millis: f64,
}

/// A predefined link.
pub struct NamedLink {
    /// Name of the link on the command line.
    pub name: &'static str,
    /// Rates and round-trip time of the link.
    pub link: Link,
    /// One-line description of the link.
    pub about: &'static str,
}

/// The predefined links. The home, LTE and cloud rates are from section 5.1 of S³ORAM.
pub const LINKS: [NamedLink; 4] = [
    NamedLink {
        name: "home",
        link: Link::new(29.0, 5.0, 15.0),
        about: "the laptop of S³ORAM: Wi-Fi and a home connection",
    },
    NamedLink { name: "lte", link: Link::new(27.0, 9.0, 25.0), about: "the phone of S³ORAM" },
    NamedLink { name: "lan", link: Link::new(1000.0, 1000.0, 1.0), about: "a local network" },
    NamedLink {
        name: "cloud",
        link: Link::new(250.0, 250.0, 10.0),
        about: "servers in a data centre: the rate is from S³ORAM, the delay is a choice",
    },
];

/// Allowed rates, in Mbit/s.
const RATES: std::ops::RangeInclusive<f64> = 0.01..=100_000.0;

/// Allowed round-trip times, in milliseconds.
const DELAYS: std::ops::RangeInclusive<f64> = 0.0..=10_000.0;

impl Link {
    /// Creates a link from the rates down and up in Mbit/s, and the round-trip time in
    /// milliseconds.
    pub const fn new(down_megabits: f64, up_megabits: f64, round_trip_millis: f64) -> Self {
        Self { down_megabits, up_megabits, round_trip_millis }
    }

    /// Rate from the server to the client, in bytes per second.
    pub fn down_bytes_per_second(self) -> f64 {
        self.down_megabits * 1e6 / 8.0
    }

    /// Rate from the client to the server, in bytes per second.
    pub fn up_bytes_per_second(self) -> f64 {
        self.up_megabits * 1e6 / 8.0
    }

    /// Round-trip time, in seconds.
    pub fn round_trip_seconds(self) -> f64 {
        self.round_trip_millis / 1e3
    }

    /// The one-way delay: half of the round-trip time.
    pub fn one_way(self) -> Duration {
        Duration::from_secs_f64(self.round_trip_seconds() / 2.0)
    }

    /// The name of a predefined link. `None` for any other link.
    pub fn name(self) -> Option<&'static str> {
        LINKS.iter().find(|named| named.link == self).map(|named| named.name)
    }
}

/// Formats the name, if the link has one, and the numbers.
impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { down_megabits, up_megabits, round_trip_millis } = self;
        let name = self.name().map(|name| format!("{name}, ")).unwrap_or_default();
        write!(
            f,
            "{name}{down_megabits}/{up_megabits} Mbit/s down/up, {round_trip_millis} ms round trip"
        )
    }
}

/// Parses a name from [`LINKS`], or `DOWN/UP/DELAY`.
impl FromStr for Link {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(named) = LINKS.iter().find(|named| named.name == text) {
            return Ok(named.link);
        }
        let numbers: Option<Vec<f64>> = text.split('/').map(|number| number.parse().ok()).collect();
        let Some([down, up, delay]) = numbers.as_deref() else {
            let names: Vec<_> = LINKS.iter().map(|named| named.name).collect();
            return Err(format!(
                "expected {}, or DOWN/UP/DELAY (Mbit/s, Mbit/s, round trip in ms), such as 29/5/15",
                names.join(", ")
            ));
        };
        let is_possible = RATES.contains(down) && RATES.contains(up) && DELAYS.contains(delay);
        if !is_possible {
            return Err(format!(
                "a link must have {} to {} Mbit/s each way and a round trip of {} to {} ms",
                RATES.start(),
                RATES.end(),
                DELAYS.start(),
                DELAYS.end()
            ));
        }
        Ok(Self::new(*down, *up, *delay))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_has_a_name_or_three_numbers() {
        let home: Link = "home".parse().unwrap();
        assert_eq!(home, "29/5/15".parse().unwrap());
        assert_eq!(home.to_string(), "home, 29/5 Mbit/s down/up, 15 ms round trip");
        let other: Link = "27.5/6/0".parse().unwrap();
        assert_eq!(other.to_string(), "27.5/6 Mbit/s down/up, 0 ms round trip");
        assert!((other.down_bytes_per_second() - 3_437_500.0).abs() < 1e-6);
        assert!((other.up_bytes_per_second() - 750_000.0).abs() < 1e-6);
        assert_eq!(home.one_way(), Duration::from_micros(7500));
        for named in LINKS {
            assert_eq!(named.name.parse(), Ok(named.link));
        }
    }

    #[test]
    fn other_links_are_refused_with_what_would_work() {
        for wrong in ["", "dsl", "29", "29/5", "29/5/15/1", "29/5/x", "29 / 5 / 15"] {
            assert!(wrong.parse::<Link>().unwrap_err().contains("such as 29/5/15"), "{wrong}");
        }
        for wrong in
            ["0/5/15", "29/-5/15", "29/5/-1", "29/5/10001", "1e9/5/1", "NaN/5/1", "inf/1/1"]
        {
            assert!(wrong.parse::<Link>().unwrap_err().contains("0.01 to 100000"), "{wrong}");
        }
    }
}
