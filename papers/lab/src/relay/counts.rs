//! The counters of a relay.

use serde::{Deserialize, Serialize};

/// The connections and bytes of a relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Connections that were made.
    pub connections: u64,
    /// Refused connections: the server did not answer, or there were too many.
    pub refused: u64,
    /// Connections cut on purpose.
    pub cuts: u64,
    /// From the server to the client.
    pub down: WayCounts,
    /// From the client to the server.
    pub up: WayCounts,
}

/// One direction, over all connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WayCounts {
    /// Bytes that entered the link.
    pub bytes: u64,
    /// The number of times that a connection began to send in this direction: at first, or after
    /// bytes in the other direction. If each request waits for the previous answer, one turn up and
    /// one down are a round trip.
    pub turns: u64,
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Down,
    Up,
}

impl Counts {
    pub(super) fn of(&mut self, way: Way) -> &mut WayCounts {
        match way {
            Way::Down => &mut self.down,
            Way::Up => &mut self.up,
        }
    }
}
