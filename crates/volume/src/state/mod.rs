//! What a client keeps: a snapshot of its state, and a log of everything that came in since.
//!
//! ```text
//! state-7:  header │ snapshot │ batch │ batch │ forget │ … │ checkpoint │ batch │ …
//! ```
//!
//! - [`file`](mod@file): a file of sealed records, read up to where a crash tore it.
//! - `frame`: what stands before each of them, and vouches for those before it.
//! - [`record`]: the records.
//! - [`history`]: from records to a state, and what has to be done again.
//! - [`room`]: how much room the files take.
//!
//! `docs/format.md` of the repository has every byte; ADR 5 of the repository says why.

pub(crate) mod file;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
pub(crate) mod history;
pub(crate) mod record;
pub(crate) mod room;
