//! Tests of the remote store against a faulty server in the same process, over socket pairs.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

mod any_faults;
mod bench;
mod conformance;
mod faults;
mod lies;
mod limits;
mod line;
mod opening;
mod server;
mod tls;
