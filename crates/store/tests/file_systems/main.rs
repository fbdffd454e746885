//! The store on file systems that are full or lack direct I/O.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod own_file_system;
mod store;
