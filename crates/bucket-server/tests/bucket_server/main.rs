//! Tests of the bucket server with its owners and with attackers.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod bad_links;
mod going_on;
mod hostile;
mod life;
mod party;
mod rooms;
mod sessions;
mod shares;
mod strangers;
