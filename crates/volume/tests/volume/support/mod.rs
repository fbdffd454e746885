//! What several kinds of tests need.

pub(crate) mod bench;
pub(crate) mod seen;
pub(crate) mod together;
