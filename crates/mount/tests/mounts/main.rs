//! Tests of disks mounted as files and as file systems, with programs of other projects.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod filesystem;
mod raw_file;
