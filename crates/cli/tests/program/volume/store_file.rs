//! Positions in the file of a volume: see `docs/format.md`.

use super::test_dir::Bytes;

pub(crate) const HEADER_BYTES: u64 = 64 << 10;
pub(crate) const FRONT_AT: u64 = 2 * HEADER_BYTES;
pub(crate) const SUPERBLOCK_BYTES: u64 = 16 << 10;
pub(crate) const PAIR_BYTES: u64 = 2 * SUPERBLOCK_BYTES;
pub(crate) const BUCKETS_AT: u64 = FRONT_AT + PAIR_BYTES + (4 << 10);

/// Position of the back pair of superblocks: behind the slots of all buckets, before the buckets'
/// headers. Its first superblock must be intact.
pub(crate) fn back_at(store: &Bytes) -> u64 {
    let pages = (BUCKETS_AT..store.len()).step_by(4 << 10);
    pages.into_iter().find(|page| store.read(*page, 8) == b"oblivio\0").unwrap()
}

/// Positions of the four superblocks. The first superblock of the back pair must be intact.
pub(crate) fn superblocks(store: &Bytes) -> [u64; 4] {
    let back = back_at(store);
    [FRONT_AT, FRONT_AT + SUPERBLOCK_BYTES, back, back + SUPERBLOCK_BYTES]
}
