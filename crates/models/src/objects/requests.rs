//! Numbers of requests to a service, with the bytes that they move.

use std::iter::Sum;
use std::ops::{Add, Mul};

/// Requests to a service and the bytes that they move: averages or sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Requests {
    /// Reads of a part of an object.
    pub gets: f64,
    /// Creations of an object.
    pub puts: f64,
    /// Listings.
    pub lists: f64,
    /// Bytes of objects from the service to the client.
    pub down_bytes: f64,
    /// Bytes of objects from the client to the service.
    pub up_bytes: f64,
}

impl Requests {
    /// The number of requests of all kinds.
    pub fn count(&self) -> f64 {
        self.gets + self.puts + self.lists
    }
}

impl Add for Requests {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            gets: self.gets + other.gets,
            puts: self.puts + other.puts,
            lists: self.lists + other.lists,
            down_bytes: self.down_bytes + other.down_bytes,
            up_bytes: self.up_bytes + other.up_bytes,
        }
    }
}

impl Mul<f64> for Requests {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self {
            gets: self.gets * factor,
            puts: self.puts * factor,
            lists: self.lists * factor,
            down_bytes: self.down_bytes * factor,
            up_bytes: self.up_bytes * factor,
        }
    }
}

impl Sum for Requests {
    fn sum<I: Iterator<Item = Self>>(requests: I) -> Self {
        requests.fold(Self::default(), Add::add)
    }
}
