//! What storage may learn of a volume: each file tests one fact that storage must not learn.
//! `planted-leaks` of the test kit shows that each test here detects the leaks it is for.

mod apart;
mod fetches;
mod requests;
mod restored;
mod scheduled_crash;
mod uncached;
