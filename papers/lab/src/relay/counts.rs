//! The counters of a relay.

use serde::{Deserialize, Serialize};

/// The connections and bytes of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// The number of established connections.
    pub connections: u64,
    /// Refused connections: the server did not answer, or the limit was reached.
    pub refused: u64,
    /// Connections cut on purpose.
    pub cuts: u64,
    /// Traffic from the server to the client.
    pub down: DirectionCounts,
    /// Traffic from the client to the server.
    pub up: DirectionCounts,
}

/// Traffic in one direction, over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionCounts {
    /// Bytes that entered the link.
    pub bytes: u64,
    /// The number of times that a connection began to send in this direction: at first, or after
    /// bytes in the other direction. If each request waits for the previous answer, one turn up and
    /// one down are a round trip.
    pub turns: u64,
}

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Down,
    Up,
}

impl Counts {
    pub(super) fn in_direction(&mut self, direction: Direction) -> &mut DirectionCounts {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}
