//! Measures the number of blocks that stay on the client of an ORAM of ranges. The paths of a range
//! are adjacent, and so are the paths evicted together. Their loads are therefore not independent,
//! and results on the stash of RAW ORAM might not apply.
//!
//! A model simulates addresses without contents. It counts all blocks on the client after each
//! batch of evictions of each tree. If the client keeps levels, the count includes blocks that wait
//! for their path. The tail is extrapolated as in the [stash study](crate::stash_study).

mod model;
mod setting;
mod study;

pub use setting::{Form, RangeStashSetting};
pub use study::{RangeStashPlan, RangeStashResult, RangeStashRun, RangeStashStudy};
