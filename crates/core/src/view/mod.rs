//! The adversary's view: what storage sees, recorded.
//!
//! A [`Recorder`] wraps any store and tells an [`EventSink`] of every call: which pieces of which
//! buckets were asked for, in which order, what came together, and the sealed bytes that moved. It
//! stands where storage stands, below the seal, so it cannot see a secret by construction: no
//! address, no leaf of the position map, no plaintext passes [`BucketStore`]. Whatever can be told
//! from a recorded view, storage can tell too, and it can tell nothing else but the time.
//!
//! - [`Event`]: one piece of one call. A view is a sequence of them.
//! - [`Exchange`]: a message between servers that hold shares, as one of them saw it. [`Observed`] is either.
//! - [`Contents`], [`Tally`], a `Vec<Event>`, a closure: sinks.
//! - [`file`](mod@file): a view as a compact binary file.
//! - [`csv`]: a view for people and spreadsheets.
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
    Direction, Exchange, ExchangeSink, SERVERS_MAX, TREES_OF_SERVER_MAX, ViewServers,
    party_of_tree, tree_of_party,
};
pub use tally::{Tally, Total};
