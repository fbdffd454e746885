//! How many blocks are left on the client of an ORAM of ranges? The paths that a range lies on, and those that are evicted
//! together, follow each other: so their loads are not independent, and what is known of the stash of RAW ORAM need not hold.
//!
//! A model moves addresses alone. All that is left on the client is counted, after each batch of evictions of each tree. Where levels
//! are on the client, what waits for its path is among it. The tail is carried on as in the [stash study](crate::stash_study).

mod model;
mod setting;
mod study;

pub use setting::{Form, Setting};
pub use study::{Plan, RangeStashResult, RangeStashRun, RangeStashStudy};
