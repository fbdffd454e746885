//! Models of a volume's cost before it is created.
//!
//! `oblivio plan` and the experiments of the lab share these models. They need only the parameters
//! of a volume, and no storage.

pub mod alloc_search;
mod error;
pub mod link;
pub mod medium;
pub mod objects;
pub mod paper;
pub mod workers;
pub mod workload;

pub use error::Error;
