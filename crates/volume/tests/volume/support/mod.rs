//! What several kinds of tests need.

pub(crate) mod bench;
pub(crate) mod seen;
pub(crate) mod together;

/// What was appended to a state file: without the zeros ahead of it.
pub(crate) fn appended(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
    bytes
}
