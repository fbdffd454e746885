//! Tests of the file store on file systems that are full, or that do not support direct I/O.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod own_file_system;
mod store;
