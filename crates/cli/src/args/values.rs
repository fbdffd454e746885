//! Parsers of values with units: bytes, seconds, rates, percentages.

use std::net::SocketAddr;
use std::time::Duration;

use oblivio_core::durable::RangePolicy;
pub(super) use oblivio_wire::size::parse_size;

/// Parses the range policy of a disk: `classes`, `exact`, `fixed=1M`.
pub(super) fn parse_range_policy(text: &str) -> Result<RangePolicy<u64>, String> {
    match text.split_once('=') {
        None if text == "classes" => Ok(RangePolicy::Classes),
        None if text == "exact" => Ok(RangePolicy::Exact),
        Some(("fixed", size)) => parse_size(size).map(RangePolicy::Fixed),
        _ => Err("expected `classes`, `exact` or `fixed=SIZE`, such as fixed=1M".into()),
    }
}

/// Parses an address to listen on.
pub(super) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080; host names are \
         not resolved"
            .into()
    })
}

/// Parses a percentage with its sign, such as `1%` or `0.5%`, to a fraction.
pub(super) fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').ok_or("expected a percentage, such as 1%")?;
    match number.parse::<f64>() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("expected a percentage from 0% to 100%, such as 1%".into()),
    }
}

/// Parses a number of seconds above 0, up to a day.
pub(super) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if seconds > 0.0 && seconds <= 86_400.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("expected more than 0 and at most 86400 seconds (a day)".into())
    }
}

/// Parses accesses per second: `2000/s`.
pub(super) fn parse_rate(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").ok_or("expected accesses per second, such as 2000/s")?;
    match number.parse() {
        Ok(0) | Err(_) => Err("expected a whole number above 0, such as 2000/s".into()),
        Ok(rate) => Ok(rate),
    }
}

/// Parses bytes per second, with a unit: `20M/s`.
pub(super) fn parse_bytes_per_second(text: &str) -> Result<u64, String> {
    let size = text.strip_suffix("/s").ok_or("expected bytes per second, such as 20M/s")?;
    match parse_size(size)? {
        0 => Err("expected more than 0 bytes per second, such as 20M/s".into()),
        bytes => Ok(bytes),
    }
}

/// Parses a number of milliseconds above 0, up to an hour.
pub(super) fn parse_millis(text: &str) -> Result<Duration, String> {
    let millis: f64 = text.parse().map_err(|_| "expected a number of milliseconds".to_owned())?;
    if millis > 0.0 && millis <= 3_600_000.0 {
        Ok(Duration::from_secs_f64(millis / 1000.0))
    } else {
        Err("expected more than 0 and at most 3600000 milliseconds (an hour), such as 8".into())
    }
}
