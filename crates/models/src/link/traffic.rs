//! The traffic of requests on a link, and the time that it takes.

use super::Link;

/// Bytes that a client sends to name one piece of storage.
pub const REQUEST_BYTES: f64 = 16.0;

/// Bytes of framing per message: type, length and authentication.
pub const FRAME_BYTES: f64 = 32.0;

/// Average traffic of one ORAM access. Bytes are bytes of buckets as stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// Bytes that must arrive before the block is available: usually a path.
    pub answer_bytes: f64,
    /// Number of pieces of storage that hold `answer_bytes`.
    pub answer_pieces: f64,
    /// Bytes read per access, including `answer_bytes` and the access's share of evictions.
    pub read_bytes: f64,
    /// Bytes written per access.
    pub written_bytes: f64,
    /// Pieces read or written per access.
    pub pieces: f64,
    /// Sequential round trips per access.
    pub trips: f64,
    /// Accesses per request for a block. More than one if the position map is in the tree.
    pub accesses: f64,
}

impl Traffic {
    /// Bytes from the server to the client per access.
    pub fn down_bytes(&self) -> f64 {
        self.read_bytes + self.trips * FRAME_BYTES
    }

    /// Bytes from the client to the server per access.
    pub fn up_bytes(&self) -> f64 {
        self.written_bytes + self.pieces * REQUEST_BYTES + self.trips * FRAME_BYTES
    }

    fn down_seconds(&self, link: Link) -> f64 {
        self.down_bytes() / link.down_bytes_per_second()
    }

    fn up_seconds(&self, link: Link) -> f64 {
        self.up_bytes() / link.up_bytes_per_second()
    }

    /// Latency of a block in seconds if nothing else is in flight and no eviction is due: one round
    /// trip per access.
    pub fn answer_seconds(&self, link: Link) -> f64 {
        let request_bytes = self.answer_pieces * REQUEST_BYTES + FRAME_BYTES;
        let seconds = link.round_trip_seconds()
            + request_bytes / link.up_bytes_per_second()
            + (self.answer_bytes + FRAME_BYTES) / link.down_bytes_per_second();
        self.accesses * seconds
    }

    /// Seconds per request, including its share of evictions, if nothing overlaps: all trips, all
    /// bytes down and all bytes up, one after the other.
    pub fn serial_seconds(&self, link: Link) -> f64 {
        let trips = self.trips * link.round_trip_seconds();
        self.accesses * (trips + self.down_seconds(link) + self.up_seconds(link))
    }

    /// Seconds between two requests if enough are in flight to hide round trips and to use both
    /// directions at once. The slower direction is the bound.
    pub fn pipelined_seconds(&self, link: Link) -> f64 {
        self.accesses * self.down_seconds(link).max(self.up_seconds(link))
    }

    /// Whether the direction from the client to the server is the bottleneck.
    pub fn is_bound_by_up(&self, link: Link) -> bool {
        self.up_seconds(link) > self.down_seconds(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The traffic of a path of ten pieces of 1,000 bytes each, read and written back.
    const PATH: Traffic = Traffic {
        answer_bytes: 10_000.0,
        answer_pieces: 10.0,
        read_bytes: 10_000.0,
        written_bytes: 10_000.0,
        pieces: 20.0,
        trips: 2.0,
        accesses: 1.0,
    };

    #[test]
    fn seconds_follow_from_bytes_and_trips() {
        // One byte per microsecond down, and one byte per two microseconds up.
        let link = Link::new(8.0, 4.0, 10.0);
        let micros = |seconds: f64| (seconds * 1e6).round() as u64;
        assert_eq!(micros(PATH.answer_seconds(link)), 10_000 + 2 * (160 + 32) + 10_032);
        let (down, up) = (10_064, 2 * (10_000 + 320 + 64));
        assert_eq!(micros(PATH.serial_seconds(link)), 20_000 + down + up);
        assert_eq!(micros(PATH.pipelined_seconds(link)), up);
        assert!(PATH.is_bound_by_up(link));
        assert!(!PATH.is_bound_by_up(Link::new(1.0, 4.0, 10.0)));
        let nested = Traffic { accesses: 3.0, ..PATH };
        assert_eq!(micros(nested.pipelined_seconds(link)), 3 * up);
    }
}
