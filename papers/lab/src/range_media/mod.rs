//! Compares the model of volumes on a medium with arrays. Both make the same reads. The arrays hold
//! data, and their store counts its requests; the model stores nothing and computes these costs.
//!
//! `oblivio plan --medium` and the figures of [`roram`](crate::roram) depend on this model.

mod metered;
mod study;

pub use metered::MediumSink;
pub use study::{Comparison, Costs, RangeMediaPlan, RangeMediaStudy};
