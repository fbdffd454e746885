//! Checks the model of volumes on a medium: the same reads are made by the model, which stores
//! nothing, and by arrays with data, whose store counts its requests.
//!
//! `oblivio plan --medium` and the figures of [`roram`](crate::roram) depend on that model.

mod metered;
mod study;

pub use metered::MediumSink;
pub use study::{Comparison, Costs, RangeMediaPlan, RangeMediaStudy};
