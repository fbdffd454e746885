//! The store on file systems without room or without direct requests, and what it says and does there.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod own_file_system;
mod store;
