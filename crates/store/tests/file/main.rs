//! The store that is a file.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod conformance;
mod damage;
mod file_systems;
mod location;
mod opening;
mod own_file_system;
