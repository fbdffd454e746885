//! Is the model of volumes on a medium right? The same reads, by the model, which stores nothing, and by arrays with data, whose
//! store counts what it is asked for.
//!
//! `oblivio plan --medium` and the figures of [`roram`](crate::roram) rest on that model.

mod metered;
mod study;

pub use metered::MediumSink;
pub use study::{Comparison, Costs, Plan, RangeMediaStudy};
