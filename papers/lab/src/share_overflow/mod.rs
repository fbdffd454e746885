//! Measures the load of the buckets of S³ORAM. Lemma 4.1 of its paper bounds the probability that
//! an eviction overflows a bucket. The lemma can be read for trees of *A* · 2^(*H* − 1) blocks or
//! of twice that number.
//!
//! A model moves blocks without contents through unbounded buckets, and counts them, so that one
//! run gives the result for every *Z*.

mod model;
mod study;

pub use study::{
    AccessOrder, OverflowResult, OverflowStudy, ShareOverflowPlan, ShareOverflowSetting,
};
