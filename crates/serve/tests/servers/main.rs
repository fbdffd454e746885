//! Servers and mounts, met by foreign programs and by hostile ones.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod buckets;
mod filesystem;
mod nbd;
mod raw_file;
mod support;
mod watch;
