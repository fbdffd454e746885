//! What requests move over a link, and what they take there.

use super::Link;

/// That a client sends for each piece of storage that it reads or writes: which it is.
pub const REQUEST_BYTES: f64 = 16.0;

/// Around each message: its kind, its length and what vouches for it.
pub const FRAME_BYTES: f64 = 32.0;

/// What an access to an ORAM moves, on average. Bytes are those of buckets, as they are in storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    /// Bytes that have to come before the block is there: a path.
    pub answer_bytes: f64,
    /// Pieces of these.
    pub answer_pieces: f64,
    /// Bytes that are read, those included, with the access's share of evictions.
    pub read_bytes: f64,
    /// Bytes that are written.
    pub written_bytes: f64,
    /// Pieces that are read or written.
    pub pieces: f64,
    /// Trips, if they are made one after the other.
    pub trips: f64,
    /// Accesses per request for a block: more than one if the position map lies in the tree.
    pub accesses: f64,
}

impl Traffic {
    /// Bytes from the server to the client, an access.
    pub fn down_bytes(&self) -> f64 {
        self.read_bytes + self.trips * FRAME_BYTES
    }

    /// Bytes from the client to the server, an access.
    pub fn up_bytes(&self) -> f64 {
        self.written_bytes + self.pieces * REQUEST_BYTES + self.trips * FRAME_BYTES
    }

    fn down_seconds(&self, link: Link) -> f64 {
        self.down_bytes() / link.down_bytes_per_second()
    }

    fn up_seconds(&self, link: Link) -> f64 {
        self.up_bytes() / link.up_bytes_per_second()
    }

    /// Latency of a block if nothing else is in flight and no eviction is due: one round trip per
    /// access.
    pub fn answer_seconds(&self, link: Link) -> f64 {
        let asked = self.answer_pieces * REQUEST_BYTES + FRAME_BYTES;
        let seconds = link.round_trip_seconds()
            + asked / link.up_bytes_per_second()
            + (self.answer_bytes + FRAME_BYTES) / link.down_bytes_per_second();
        self.accesses * seconds
    }

    /// What a request takes with its share of evictions, if nothing is done at the same time: all trips, all bytes down and all
    /// bytes up, one after the other.
    pub fn serial_seconds(&self, link: Link) -> f64 {
        let trips = self.trips * link.round_trip_seconds();
        self.accesses * (trips + self.down_seconds(link) + self.up_seconds(link))
    }

    /// Between two requests, if enough are under way that no trip is waited for and both directions are used at once: the slower
    /// one is the bound.
    pub fn pipelined_seconds(&self, link: Link) -> f64 {
        self.accesses * self.down_seconds(link).max(self.up_seconds(link))
    }

    /// Whether what is written takes longer than what is read.
    pub fn is_bound_by_up(&self, link: Link) -> bool {
        self.up_seconds(link) > self.down_seconds(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path of ten pieces of 1,000 bytes, written back.
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
    fn seconds_are_those_of_bytes_and_trips() {
        // A byte a microsecond down, and one in two up.
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
