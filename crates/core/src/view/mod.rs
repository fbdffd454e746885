//! The adversary's view: what storage sees, recorded.
//!
//! A [`Recorder`] wraps any store and reports every call to an [`EventSink`]: the pieces of buckets
//! requested, their order, the grouping into trips, and the sealed bytes that moved. It has the
//! position of storage, below the seal, so it cannot see a secret: no address, no leaf of the
//! position map and no plaintext passes [`BucketStore`]. The recorded events are exactly what
//! storage learns, except for times, which only a view file has.
//!
//! - [`Event`]: one piece of one call. A view is a sequence of events.
//! - [`PeerMessage`]: a message between share servers, as one of them saw it. [`Observed`] is
//!   either of the two.
//! - [`Contents`], [`Tally`], a `Vec<Event>`, a closure: sinks.
//! - [`file`](mod@file): a view as a compact binary file.
//! - [`csv`]: a view as CSV, for humans and spreadsheets.
//!
//! [`BucketStore`]: crate::store::BucketStore

mod contents;
#[cfg(feature = "std")]
pub mod csv;
mod event;
#[cfg(feature = "std")]
pub mod file;
mod recorder;
mod servers;
#[cfg(feature = "std")]
mod shared;
mod tally;

pub use contents::{Contents, WrittenPiece};
pub use event::{Event, EventSink, Observed, Operation};
#[cfg(feature = "std")]
pub use file::{FileSink, read_view};
pub use recorder::Recorder;
pub use servers::{
    Direction, PeerMessage, PeerMessageSink, SERVERS_MAX, TREES_OF_SERVER_MAX, ViewServers,
    server_of_view_tree, view_tree,
};
pub use tally::{Tally, Total};
