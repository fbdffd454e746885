//! Slow, literal versions of schemes. Tests compare the engine's fast versions with them.
//!
//! The references keep plaintext in vectors and use no stores, seals or bit tricks. They draw
//! random numbers in the same order as the engine. So a test can compare each access: the same
//! leaves, the same stash, the same answers.

mod eviction;
mod path;
mod range;
mod raw;
mod tree;

pub use eviction::{greedy_fills, push_to_leaf};
pub use path::ReferencePath;
pub use range::{RangeForm, RangesRead, ReadCopies, ReferenceRange, Run};
pub use raw::ReferenceRaw;
