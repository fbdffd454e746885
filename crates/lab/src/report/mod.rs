//! What came out, beside what the papers state.

mod figure;

pub use figure::{Bars, Curves, Figure, Plot, Series, Stated, Verdict};
