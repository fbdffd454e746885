//! Prices of an object store, from a file.

use serde::{Deserialize, Serialize};

use super::Requests;
use crate::error::Error;

/// The prices that apply if no others are given, as a price file.
pub const S3_PRICES: &str = include_str!("../../prices/s3.toml");

const BYTES_PER_GIB: f64 = (1u64 << 30) as f64;
const BYTES_PER_GB: f64 = 1e9;

/// Prices of an object store, in dollars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Whose prices these are, and of which date.
    pub about: String,
    /// Dollars per 1,000 creations of an object.
    pub put_per_1000: f64,
    /// Dollars per 1,000 reads of a part of an object.
    pub get_per_1000: f64,
    /// Dollars per 1,000 listings.
    pub list_per_1000: f64,
    /// Dollars per GiB (2^30 bytes) and month.
    pub storage_per_gib_month: f64,
    /// Dollars per GB (10^9 bytes) that leaves the network of the provider.
    pub egress_per_gb: f64,
}

impl Prices {
    /// Parses a price file.
    ///
    /// # Errors
    /// [`Error::Prices`] if the text is not TOML, a field is missing or unknown, or a price is not
    /// a finite number of 0 or more. The message names the field or the line.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        let prices: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| {
                let before = text.get(..span.start).unwrap_or_default();
                1 + before.matches('\n').count()
            });
            let is_about_line = !error.message().starts_with("missing field");
            let at = line.filter(|_| is_about_line).map(|line| format!("line {line}: "));
            Error::Prices(format!("{}{}", at.unwrap_or_default(), error.message().trim_end()))
        })?;
        for (name, price) in prices.by_name() {
            if !(price.is_finite() && price >= 0.0) {
                return Err(Error::Prices(format!(
                    "{name} is {price}, but a price is a number of dollars from 0 on"
                )));
            }
        }
        Ok(prices)
    }

    /// All prices, with the names of their fields.
    fn by_name(&self) -> [(&'static str, f64); 5] {
        let Self { about: _, put_per_1000, get_per_1000, list_per_1000, .. } = self;
        [
            ("put_per_1000", *put_per_1000),
            ("get_per_1000", *get_per_1000),
            ("list_per_1000", *list_per_1000),
            ("storage_per_gib_month", self.storage_per_gib_month),
            ("egress_per_gb", self.egress_per_gb),
        ]
    }

    /// Dollars for requests, without the bytes that they move.
    pub fn of_requests(&self, requests: &Requests) -> f64 {
        let Requests { gets, puts, lists, .. } = *requests;
        let per_1000 =
            gets * self.get_per_1000 + puts * self.put_per_1000 + lists * self.list_per_1000;
        per_1000 / 1e3
    }

    /// Dollars for the bytes down, if they leave the network of the provider.
    pub fn of_egress(&self, requests: &Requests) -> f64 {
        requests.down_bytes / BYTES_PER_GB * self.egress_per_gb
    }

    /// Dollars per month for `bytes` bytes of objects.
    pub fn of_storage_month(&self, bytes: u64) -> f64 {
        bytes as f64 / BYTES_PER_GIB * self.storage_per_gib_month
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_prices_are_those_that_the_documents_state() {
        let prices = Prices::from_toml(S3_PRICES).unwrap();
        assert!(prices.about.contains("28 November 2026"), "{}", prices.about);
        let numbers = prices.by_name().map(|(_, price)| price);
        assert_eq!(numbers, [0.005, 0.0004, 0.005, 0.023, 0.09]);
        let requests =
            Requests { gets: 5000.0, puts: 200.0, lists: 100.0, down_bytes: 2e9, up_bytes: 1e9 };
        assert!((prices.of_requests(&requests) - (0.002 + 0.001 + 0.0005)).abs() < 1e-12);
        assert!((prices.of_egress(&requests) - 0.18).abs() < 1e-12);
        assert!((prices.of_storage_month(10 << 30) - 0.23).abs() < 1e-12);
    }

    #[test]
    fn invalid_price_files_are_refused_with_the_field_or_the_line() {
        let refused = |text: &str, why: &str| {
            let error = Prices::from_toml(text).unwrap_err().to_string();
            assert!(error.contains(why), "{error:?} lacks {why:?}");
        };
        for line in S3_PRICES.lines().filter(|line| line.contains('=')) {
            let name = line.split(' ').next().unwrap();
            refused(&S3_PRICES.replace(line, ""), &format!("missing field `{name}`"));
        }
        let with_get = |price: &str| S3_PRICES.replace("0.0004", price);
        for price in ["-0.0004", "-inf", "nan", "inf"] {
            refused(&with_get(price), "get_per_1000 is");
        }
        refused(&with_get("\"free\""), "line 5: invalid type: string");
        refused(&with_get(""), "line 5: ");
        refused(&format!("{S3_PRICES}delete_per_1000 = 0.0\n"), "unknown field `delete_per_1000`");
        refused(&format!("{S3_PRICES}egress_per_gb = 0.0\n"), "line 10: duplicate key");
        refused("{}", "line 1: ");
        let free = with_get("0");
        assert_eq!(Prices::from_toml(&free).unwrap().get_per_1000, 0.0);
    }
}
