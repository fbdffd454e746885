//! The store that is a file. These tests start no process: it would have the locks of all files, too, from its fork
//! until its exec, and a file that was just closed could not be opened.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod conformance;
mod damage;
mod location;
mod stripe;
