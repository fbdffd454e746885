//! Tests of the rules of this repository.

#![allow(clippy::unwrap_used, reason = "this crate contains only tests")]

mod arrows;
mod claims;
mod doors;
mod language;
mod licences;
mod links;
mod private_files;
mod published;
mod purity;
mod rooms;
mod schemes;
mod tree;
mod workspace;
mod wrappers;
