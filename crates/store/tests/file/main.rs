//! Tests of the file store. They start no process: between fork and exec, a child would hold the
//! locks of all files. Then a file that was just closed could not be opened.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod conformance;
mod damage;
mod location;
mod stripe;
