//! The speed of a volume in objects, from the latency of a request and the rates of a connection.

use super::VolumeOnObjects;
use crate::link::Link;

/// The number of requests that an engine has in flight at once.
pub const IN_FLIGHT_MAX: f64 = 128.0;

/// Maximum bytes of requested buckets that a store keeps until they are used. They bound the
/// requests in flight if buckets are large.
pub const PREFETCHED_BYTES_MAX: f64 = (32u64 << 20) as f64;

/// Rate of the network between a store and a machine in the same cloud, in Mbit/s: a choice.
pub const CLOUD_MEGABITS: f64 = 10_000.0;

/// Rate of a single connection to a store, in bytes per second.
const CONNECTION_BYTES_PER_SECOND: f64 = 60e6;

/// The connection between a client and a service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection {
    /// Seconds until a short request is answered.
    pub latency_seconds: f64,
    /// Maximum number of requests in flight.
    pub in_flight: f64,
    /// Rate from the service to the client, in bytes per second.
    pub down_bytes_per_second: f64,
    /// Rate from the client to the service, in bytes per second.
    pub up_bytes_per_second: f64,
}

impl Connection {
    /// A connection within a cloud, over which a request takes `latency_seconds` seconds.
    pub fn in_cloud(latency_seconds: f64) -> Self {
        Self::over(Link::new(CLOUD_MEGABITS, CLOUD_MEGABITS, 0.0), latency_seconds)
    }

    /// A connection over a link to a service that takes `latency_seconds` seconds for a request.
    pub fn over(link: Link, latency_seconds: f64) -> Self {
        Self {
            latency_seconds: latency_seconds + link.round_trip_seconds(),
            in_flight: IN_FLIGHT_MAX,
            down_bytes_per_second: link.down_bytes_per_second(),
            up_bytes_per_second: link.up_bytes_per_second(),
        }
    }

    /// Accesses per second, with enough of them announced at once. Infinite if an access makes no
    /// request.
    ///
    /// The bound is the latency with a full number of requests in flight, or the rate of a
    /// direction. Processor time is left out.
    pub fn accesses_per_second(&self, volume: &VolumeOnObjects) -> f64 {
        let access = volume.access();
        let get_bytes = if access.gets > 0.0 { access.down_bytes / access.gets } else { 0.0 };
        let in_flight = self.in_flight.min(PREFETCHED_BYTES_MAX / get_bytes).max(1.0);
        let get_seconds = self.latency_seconds + get_bytes / self.connection_bytes_per_second();
        let by_latency = in_flight / (access.gets * get_seconds);
        let by_down = self.down_bytes_per_second / access.down_bytes;
        let by_up = self.up_bytes_per_second / access.up_bytes;
        by_latency.min(by_down).min(by_up)
    }

    /// Seconds of a read of a block with nothing else in flight, if no eviction is due and all GETs
    /// of a path take equally long.
    pub fn read_seconds(&self, volume: &VolumeOnObjects) -> f64 {
        if volume.trips_per_read() == 0.0 {
            return 0.0;
        }
        let rate = volume.path_gets().max(1.0) * self.connection_bytes_per_second();
        let transfer = volume.path_bytes() / rate.min(self.down_bytes_per_second);
        volume.trips_per_read() * (self.latency_seconds + transfer)
    }

    fn connection_bytes_per_second(&self) -> f64 {
        self.down_bytes_per_second.min(CONNECTION_BYTES_PER_SECOND)
    }
}
