//! How full do the buckets of S³ORAM get? Lemma 4.1 of its paper bounds the probability that an eviction overflows one, and can be read for trees of *A* · 2^(*H* − 1)
//! blocks or for twice as many.
//!
//! A model moves blocks without contents through buckets that hold any number of them, and counts: so one run tells for every *Z*.

mod model;
mod study;

pub use study::{Order, OverflowResult, OverflowStudy, Plan, Setting};
