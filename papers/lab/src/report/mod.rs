//! Reports that compare results with the numbers of papers.
//!
//! A [`Figure`] is data. From figures and some facts [`About`] them, [`html`] makes a page that
//! loads nothing and has no scripts, and [`markdown`] makes the same tables for a repository.
//! Figures come from files: [`read`] rejects invalid files. Texts of figures are always escaped.

mod about;
mod chart;
mod escape;
mod figure;
mod markdown;
mod number;
mod page;
mod placing;
mod policy;
mod prose;
mod read;
mod stated;
mod table;
mod verdict_table;
mod verdicts;

pub use about::About;
pub use figure::{Bars, Curves, Figure, Plot, Series};
pub use markdown::{markdown, section};
pub use page::html;
pub use read::{BYTES_MAX, NotFigures, read};
pub use stated::{MarkPlace, Reading, Stated, Verdict};
pub use verdicts::summary;

#[cfg(test)]
mod tests;
