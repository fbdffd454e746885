//! A link between a client and storage: what it is, and what accesses to a volume take on it, by a model of bytes and trips.

mod profile;
mod traffic;
mod volume;

pub use profile::{LINKS, Link, NamedLink};
pub use traffic::{FRAME_BYTES, REQUEST_BYTES, Traffic};
pub use volume::VolumeOnLink;
