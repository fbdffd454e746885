//! Helpers for several kinds of tests.

pub(crate) mod bench;
pub(crate) mod rescued;
pub(crate) mod seen;
pub(crate) mod share_servers;
pub(crate) mod together;

use oblivio_volume::state_dir::FILLER;

/// The appended part of a state file, without filler.
pub(crate) fn appended(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.iter().rposition(|byte| *byte != FILLER).map_or(0, |last| last + 1));
    bytes
}
