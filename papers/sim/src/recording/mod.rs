//! Traces of real programs.
//!
//! An emulator reports each load and store of a program. A [first-level cache](FirstLevel) turns
//! them into [records](crate::trace::Record), which go through a [raw file](raw) to the program
//! that writes the trace. That program [renumbers](Pages) the pages compactly. The memory traffic
//! of a trace is measured [behind a last-level cache](LastLevel), as in Table II of IR-ORAM.

mod first_level;
mod last_level;
mod pages;
pub mod raw;

pub use first_level::{Access, FirstLevel, FirstLevelSpec, StoreMisses};
pub use last_level::{LastLevel, Traffic};
pub use pages::Pages;
