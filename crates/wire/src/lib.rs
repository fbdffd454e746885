//! The protocol between bucket servers and their clients. `docs/protocol.md` in the repository
//! specifies the bytes.
//!
//! The crate holds what both sides share: the encoding of messages, the keys that identify both
//! sides, and the link between them. It does not access volumes and keeps no state.
//!
//! A peer may be malicious: parsers check every length before they allocate, and never panic.
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
//! The protocol does not hide access patterns. Blocks are sealed before they are put into messages.
//! The link is encrypted and authenticates both ends. An observer of the link sees the length and
//! time of each message. The crate has no Cargo features. The crates `oblivio-store` (a client) and
//! `oblivio-bucket-server` build on this one.
//!
//! # Modules
//! | module | contents |
//! |---|---|
//! | [`message`] | messages as values and as bytes |
//! | [`frame`] | messages on a stream, each with its length |
//! | [`keys`] | key files, and lists of allowed clients and peer servers |
//! | [`link`](mod@link) | a stream in two halves, for a reading and a writing thread |
//! | [`private`] | files and directories that only their owner may read |
//! | [`size`] | parses sizes such as `64M` |
//! | [`buffer_pool`] | a pool of message buffers |
//! | [`authority_tls`] | TLS links to servers with certificates, and links without TLS |
//! | [`tls`] | links over TLS 1.3 with pinned keys |

pub mod authority_tls;
pub mod buffer_pool;
mod fields;
pub mod frame;
pub mod keys;
pub mod link;
pub mod message;
pub mod private;
pub mod size;
pub mod tls;

pub use message::{Answer, Failure, FailureKind, Invalid, OpenMode, Opened, Request};
