//! The bucket server, met by its owners and by others.

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
