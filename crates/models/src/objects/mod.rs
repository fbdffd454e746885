//! A model of volumes in objects that are written once: requests, money and speed.
//!
//! The store that it models is `PackedStore` of the crate `oblivio-store` (ADR 21 of the
//! repository): consecutive buckets of a level lie in chunks, a bucket is read with one ranged GET,
//! and ten consecutive evictions are read with one GET per level and chunk.

mod level;
mod prices;
mod requests;
mod service;
mod speed;
mod volume;

pub use prices::{Prices, S3_PRICES};
pub use requests::Requests;
pub use service::ServiceKind;
pub use speed::{CLOUD_MEGABITS, Connection, IN_FLIGHT_MAX, PREFETCHED_BYTES_MAX};
pub use volume::VolumeOnObjects;
