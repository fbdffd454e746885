//! Checks the model of volumes on a medium. The model, which stores nothing, makes the same reads
//! as arrays with data, whose store counts its requests.
//!
//! `oblivio plan --medium` and the figures of [`roram`](crate::roram) depend on this model.

mod metered;
mod study;

pub use metered::MediumSink;
pub use study::{Comparison, Costs, RangeMediaPlan, RangeMediaStudy};
