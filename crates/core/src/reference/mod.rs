//! Slow, literal versions of each scheme: the oracles of the fast ones.
//!
//! They keep plaintext in plain vectors, know nothing of stores, seals or bit tricks, and draw
//! their coins in the order in which the engine draws them, so that both can be compared access by
//! access: the same leaves, the same stash, the same answers.

mod eviction;
mod path;
mod range;
mod raw;
mod tree;

pub use eviction::{greedy_fills, push_to_leaf};
pub use path::ReferencePath;
pub use range::{RangeForm, RangesRead, ReadCopies, ReferenceRange, Run};
pub use raw::ReferenceRaw;
