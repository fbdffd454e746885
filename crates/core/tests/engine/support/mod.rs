//! What several kinds of tests need.

pub(crate) mod failing;
pub(crate) mod grid;
pub(crate) mod heads;
pub(crate) mod noting;
