//! Measures the number of blocks that stay on the client of an ORAM of ranges. The paths of a range
//! are adjacent, and so are the paths evicted together. Their loads are therefore not independent,
//! and results on the stash of RAW ORAM might not apply.
//!
//! A model simulates addresses without contents. When an access makes evictions due, it counts for
//! each tree the blocks that these evictions leave on the client. If the client keeps levels, the
//! count includes blocks that wait for their path. The tail is extrapolated as in the [stash
//! study](crate::stash_study).

mod model;
mod setting;
mod study;

pub use setting::{Form, RangeStashSetting};
pub use study::{RangeStashPlan, RangeStashResult, RangeStashRun, RangeStashStudy};
