//! Tests of the file store. These tests must not start a process: between fork and exec, the child
//! would hold the locks of all open files, so a test could not reopen a file that it has just
//! closed.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod conformance;
mod damage;
mod location;
mod stripe;
