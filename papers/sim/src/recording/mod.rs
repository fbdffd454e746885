//! Traces of real programs.
//!
//! An emulator reports each load and store of a program. A [first-level cache](FirstLevel) turns them
//! into [records](crate::trace::Record), which travel through a [raw file](raw) to whoever writes the
//! trace; there the pages of the program become [compact](Pages). What such a trace asks of memory is
//! measured [past a last-level cache](LastLevel), as in Table II of IR-ORAM.

mod first_level;
mod last_level;
mod pages;
pub mod raw;

pub use first_level::{Access, FirstLevel, FirstLevelSpec, StoreMisses};
pub use last_level::{LastLevel, Traffic};
pub use pages::Pages;
