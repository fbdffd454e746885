//! A link between a client and storage, and a model of the time that accesses take on it.

mod profile;
mod traffic;
mod volume;

pub use profile::{LINKS, Link, NamedLink};
pub use traffic::{FRAME_BYTES, REQUEST_BYTES, Traffic};
pub use volume::VolumeOnLink;
