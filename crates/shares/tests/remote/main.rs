//! Tests the client of share servers against misbehaving servers in the same process.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

// The test servers of the store for a single server.
#[allow(dead_code, reason = "the store's own tests use the rest")]
#[path = "../../../store/tests/remote/bench.rs"]
mod bench;
#[allow(dead_code, reason = "the store's own tests use the rest")]
#[path = "../../../store/tests/remote/line.rs"]
mod line;
#[allow(dead_code, reason = "the store's own tests use the rest")]
#[path = "../../../store/tests/remote/server.rs"]
mod server;
mod shared;
