//! One thing that storage sees.

use alloc::vec::Vec;

use super::Exchange;
use crate::pieces::Piece;

/// Which method of [`BucketStore`](crate::store::BucketStore) was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// The client said what it will read.
    Prefetch,
    /// The client read.
    Read,
    /// The client wrote.
    Write,
    /// The client waited for its writes to be durable.
    Flush,
}

impl Operation {
    /// All of them, in the order of their numbers in a view file.
    pub const ALL: [Self; 4] = [Self::Prefetch, Self::Read, Self::Write, Self::Flush];

    /// Its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prefetch => "prefetch",
            Self::Read => "read",
            Self::Write => "write",
            Self::Flush => "flush",
        }
    }
}

/// One piece of one call, or a flush. Public by nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The running number of the call, from 0: pieces of one call are seen as together.
    pub trip: u64,
    /// What was called.
    pub operation: Operation,
    /// What it asked for. `None` for a flush, and only for a flush.
    pub piece: Option<Piece>,
    /// Bytes that moved between client and storage. 0 for a prefetch and a flush, which move none,
    /// and for a read or write that failed before bytes moved.
    pub bytes: u64,
}

/// What a view consists of. Public by nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observed {
    /// A piece of a call, or a flush.
    Event(Event),
    /// A message from one server to another.
    Exchange(Exchange),
}

impl Observed {
    /// Its running number.
    pub fn trip(&self) -> u64 {
        match self {
            Self::Event(event) => event.trip,
            Self::Exchange(exchange) => exchange.trip,
        }
    }
}

/// Where events go.
pub trait EventSink {
    /// Takes the next event, and the sealed bytes that storage got or handed out:
    /// [`Event::bytes`] of them.
    ///
    /// Called by [`Recorder`](super::Recorder) for each piece in the order asked, while the call is
    /// under way.
    fn record(&mut self, event: &Event, contents: &[u8]);

    /// Storage starts `operation`. `None`: control returns to the client, to seal a write or
    /// because the call ended. [`record`](Self::record) is called while the client works. The last
    /// call of all is one with `None`, after all pieces were recorded.
    fn turn_to(&mut self, operation: Option<Operation>) {
        let _ = operation;
    }
}

/// Keeps every event, and forgets contents.
impl EventSink for Vec<Event> {
    fn record(&mut self, event: &Event, _: &[u8]) {
        self.push(*event);
    }
}

impl<F: FnMut(&Event, &[u8])> EventSink for F {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self(event, contents);
    }
}
