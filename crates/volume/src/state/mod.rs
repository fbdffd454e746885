//! The client's saved state: a snapshot, and a log of everything since.
//!
//! ```text
//! state-7:  header │ snapshot │ batch │ batch │ forget │ … │ checkpoint │ batch │ …
//! ```
//!
//! - [`file`](mod@file): a file of sealed records, read up to the point where a crash tore it.
//! - `frame`: the authenticated header of each record.
//! - [`record`]: the records.
//! - [`history`]: from records to the last state and the records to replay.
//! - [`room`]: the size of the files.
//!
//! `docs/format.md` of the repository specifies every byte; ADR 5 of the repository gives the
//! reasons.

pub(crate) mod file;
mod frame;
#[cfg(fuzzing)]
pub mod fuzzing;
pub(crate) mod history;
pub(crate) mod record;
pub(crate) mod room;
