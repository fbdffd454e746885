//! What storage may learn of a volume, law by law: each file is about one thing that must not show.
//! `planted-leaks` of the test kit shows that each test here notices the leaks it is for.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod apart;
#[path = "../support/bench.rs"]
mod bench;
mod fetches;
mod requests;
mod restored;
mod scheduled_crash;
#[path = "../support/seen.rs"]
mod seen;
#[path = "../support/together.rs"]
mod together;
mod uncached;
