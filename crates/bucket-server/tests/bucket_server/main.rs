//! Tests of the bucket server with its owners and with attackers.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "all of this is tests")]

mod bad_links;
mod hostile;
mod life;
mod party;
mod reconnecting;
mod sessions;
mod shares;
mod strangers;
mod volumes;
