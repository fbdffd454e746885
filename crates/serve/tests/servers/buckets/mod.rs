//! The bucket server, met by its owners and by others.

mod bad_links;
mod going_on;
mod hostile;
mod life;
mod party;
mod rooms;
mod sessions;
mod shares;
mod strangers;
