//! The events of a view.

use alloc::vec::Vec;

use super::PeerMessage;
use crate::pieces::Piece;

/// The method of [`BucketStore`](crate::store::BucketStore) that was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// The client announced a read.
    Prefetch,
    /// The client read pieces.
    Read,
    /// The client wrote pieces.
    Write,
    /// The client asked storage to make its writes durable, and waited.
    Flush,
}

impl Operation {
    /// All operations, in the order of their numbers in a view file.
    pub const ALL: [Self; 4] = [Self::Prefetch, Self::Read, Self::Write, Self::Flush];

    /// The name of the operation, in lower case.
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
    /// The running number of the call, from 0. All pieces of one call have the same number.
    pub trip: u64,
    /// The operation of the call.
    pub operation: Operation,
    /// The requested piece. `None` if and only if the event is a flush.
    pub piece: Option<Piece>,
    /// Bytes moved between client and storage. 0 for a prefetch, for a flush, and for a read or
    /// write that failed before bytes moved.
    pub bytes: u64,
}

/// An item of a view. Public by nature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Observed {
    /// An event: a piece of a call, or a flush.
    Event(Event),
    /// A message from one server to another.
    PeerMessage(PeerMessage),
}

impl Observed {
    /// The running number of the call or message.
    pub fn trip(&self) -> u64 {
        match self {
            Self::Event(event) => event.trip,
            Self::PeerMessage(exchange) => exchange.trip,
        }
    }
}

/// A consumer of events.
pub trait EventSink {
    /// Records the next event, and the [`Event::bytes`] sealed bytes that storage received or
    /// returned.
    ///
    /// [`Recorder`](super::Recorder) calls this for each piece in the order requested, before the
    /// call returns.
    fn record(&mut self, event: &Event, contents: &[u8]);

    /// Records which side works on a call from now on. `Some`: storage works on this operation.
    /// `None`: the client works, because it seals a write or because the call has ended.
    /// [`record`](Self::record) is called while the client works. After the last piece of a call is
    /// recorded, [`Recorder`](super::Recorder) calls this method with `None`.
    fn switch_to(&mut self, operation: Option<Operation>) {
        let _ = operation;
    }
}

/// A sink that keeps every event, without contents.
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
