//! Support code shared by several groups of tests.

pub(crate) mod failing;
pub(crate) mod grid;
pub(crate) mod heads;
pub(crate) mod noting;
