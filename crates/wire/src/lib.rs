//! What bucket servers and their clients say to each other. `docs/protocol.md` of the repository lists the bytes.
//!
//! Both sides are here as far as they are alike: messages as bytes, the keys by which they know each other, and the link that
//! carries them. Nothing here knows of files or volumes, or remembers anything.
//!
//! Every message comes from somebody who may lie: what is parsed is bounded before it is believed, and nothing that is parsed
//! panics.
//!
//! ```
//! use oblivio_wire::frame;
//! use oblivio_wire::message::Request;
//!
//! let flush = Request::Flush { number: 7 };
//! let mut stream = Vec::new();
//! frame::send(&mut stream, &flush.encode())?;
//! assert_eq!(stream, [9, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0]); // length, kind, number
//!
//! let message = frame::receive(&mut &stream[..], 1 << 20)?.unwrap();
//! assert_eq!(Request::decode(&message), Ok(flush));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! It keeps nothing and hides nothing: what is in a message was sealed before. The link is sealed and says who is at the other end, and whoever
//! watches it sees how long messages are and when they come. There are no features. The crates `oblivio-store` (a client) and
//! `oblivio-bucket-server` stand on it.
//!
//! # The rooms
//! | module | what it holds |
//! |---|---|
//! | [`message`] | what is said, as values and as bytes |
//! | [`frame`] | messages one after the other on a stream |
//! | [`keys`] | who somebody is: key files, and lists of who may come |
//! | [`link`](mod@link) | a stream in two halves, which two threads use |
//! | [`private`] | files and directories that only their owner may read |
//! | [`size`] | numbers of bytes as people write them |
//! | [`spare`] | buffers of messages that are over, for those to come |
//! | [`tls`] | such a stream between two who know each other's keys |

mod fields;
pub mod frame;
pub mod keys;
pub mod link;
pub mod message;
pub mod private;
pub mod size;
pub mod spare;
pub mod tls;

pub use message::{Answer, Failure, FailureKind, Invalid, OpenMode, Opened, Request};
