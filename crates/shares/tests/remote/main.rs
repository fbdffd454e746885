//! Servers at the end of links: against servers in this process, which do their worst.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

// The servers with which the store of one server is tested.
#[allow(dead_code, reason = "the store's own tests use all of it")]
#[path = "../../../store/tests/remote/bench.rs"]
mod bench;
#[allow(dead_code, reason = "the store's own tests use all of it")]
#[path = "../../../store/tests/remote/line.rs"]
mod line;
#[allow(dead_code, reason = "the store's own tests use all of it")]
#[path = "../../../store/tests/remote/server.rs"]
mod server;
mod shared;
