//! The guarantees of the seal, tested through its interface.

use super::*;
use crate::geometry::BucketId;
use crate::pieces::Span;
use proptest::prelude::*;

const TABLE_BYTES: usize = 16;
const BODY_OFFSET: usize = COUNTER_BYTES + TABLE_BYTES;

/// Seals a bucket with `plain` in its header table and body.
fn seal(sealer: &mut Sealer, room: &mut [u8], counter: u64, bucket: u64, plain: &[u8]) {
    let (table, body) = plain.split_at(TABLE_BYTES);
    let bucket = BucketId(bucket);
    let mut batch = sealer.batch();
    batch.add(MaskRun::new(Region::Header, counter, bucket, 0, TABLE_BYTES));
    batch.add(MaskRun::new(Region::Body, counter, bucket, 0, body.len()));
    let mut masks = batch.make();
    let spans = [Span { start: 0, bytes: room.len() }];
    let mut blanks = Blanks::new(room, &spans);
    blanks.header(0, counter, masks.take(0, TABLE_BYTES)).write(table);
    blanks.body(0, BODY_OFFSET, masks.take(0, body.len())).write(body);
    blanks.sealed();
}

/// Opens `bytes` of the body from `start` on.
fn open(sealer: &mut Sealer, room: &[u8], bucket: u64, start: usize, bytes: usize) -> Vec<u8> {
    let run = MaskRun::new(Region::Body, stored_counter(room), BucketId(bucket), start, bytes);
    let mask = sealer.mask(run).take(start, bytes);
    let mut plain = vec![0; bytes];
    Opened::new(&room[BODY_OFFSET + start..], mask).read(&mut plain);
    plain
}

proptest! {
    #[test]
    fn sealed_bytes_open_as_a_whole_and_in_parts(
        plain in prop::collection::vec(any::<u8>(), TABLE_BYTES + 1..500),
        counter in 1u64..,
        bucket in 0u64..(1 << 41) - 1,
        part in any::<(prop::sample::Index, prop::sample::Index)>(),
    ) {
        let mut sealer = Sealer::aes128(Key::from_bytes([3; 16]), TreeId(0));
        let mut room = vec![0xEE; COUNTER_BYTES + plain.len()];
        seal(&mut sealer, &mut room, counter, bucket, &plain);
        prop_assert_eq!(stored_counter(&room), counter);
        let body = &plain[TABLE_BYTES..];
        prop_assert_eq!(&open(&mut sealer, &room, bucket, 0, body.len()), body);
        let start = part.0.index(body.len());
        let bytes = part.1.index(body.len() - start) + 1;
        prop_assert_eq!(
            open(&mut sealer, &room, bucket, start, bytes),
            &body[start..start + bytes]
        );
    }
}

#[test]
fn the_same_plaintext_never_gives_the_same_ciphertext() {
    let plain = [0; TABLE_BYTES + 64];
    let names = [(TreeId(0), 1, 0), (TreeId(0), 2, 0), (TreeId(0), 1, 1), (TreeId(1), 1, 0)];
    let mut seen = std::collections::HashSet::new();
    for (tree, counter, bucket) in names {
        let mut sealer = Sealer::aes128(Key::from_bytes([5; 16]), tree);
        let mut room = vec![0; COUNTER_BYTES + plain.len()];
        seal(&mut sealer, &mut room, counter, bucket, &plain);
        for chunk in room[COUNTER_BYTES..].chunks(CHUNK_BYTES) {
            assert!(seen.insert(chunk.to_vec()), "{tree:?} {counter} {bucket}");
        }
    }
}

#[test]
fn a_sealer_of_a_tree_key_makes_the_masks_of_the_session_key() {
    let (session, tree) = ([9; 16], TreeId(3));
    let sealed_by = |mut sealer: Sealer| {
        let mut room = [0; COUNTER_BYTES + TABLE_BYTES + 64];
        seal(&mut sealer, &mut room, 7, 2, &[0; TABLE_BYTES + 64]);
        room
    };
    let by_session_key = sealed_by(Sealer::aes128(Key::from_bytes(session), tree));
    let tree_key = Key::from_bytes(session).for_tree(tree);
    assert_eq!(sealed_by(Sealer::aes128_of_tree_key(tree_key)), by_session_key);
    let underived = Sealer::aes128_of_tree_key(Key::from_bytes(session));
    assert_ne!(sealed_by(underived), by_session_key);
}

#[test]
fn bytes_not_written_become_sealed_zeros() {
    let mut sealer = Sealer::aes128(Key::from_bytes([5; 16]), TreeId(0));
    let mut rooms = [[0xAA; BODY_OFFSET + 32], [0x55; BODY_OFFSET + 32]];
    for room in &mut rooms {
        seal(&mut sealer, room, 1, 0, &[0; TABLE_BYTES + 32]);
    }
    let mut short = [0x77; BODY_OFFSET + 32];
    let mut batch = sealer.batch();
    for region in [Region::Header, Region::Body] {
        batch.add(MaskRun::new(region, 1, BucketId(0), 0, 32));
    }
    let mut masks = batch.make();
    let spans = [Span { start: 0, bytes: short.len() }];
    let mut blanks = Blanks::new(&mut short, &spans);
    blanks.header(0, 1, &masks.take(0, 32)[..TABLE_BYTES]);
    blanks.body(0, BODY_OFFSET, masks.take(0, 32)).write(&[0; 8]);
    blanks.sealed();
    assert_eq!(rooms[0], rooms[1], "the old contents of the blank must not show");
    assert_eq!(rooms[0], short);
}

#[test]
#[should_panic = "a write must seal every byte"]
fn unsealed_bytes_are_a_defect() {
    let mut room = [0; 100];
    Blanks::new(&mut room, &[Span { start: 0, bytes: 100 }]).sealed();
}

#[test]
fn the_null_seal_shows_everything() {
    let mut sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let plain = *b"0123456789abcdef and a body in clear";
    let mut room = vec![0; COUNTER_BYTES + plain.len()];
    seal(&mut sealer, &mut room, 1, 0, &plain);
    assert_eq!(&room[COUNTER_BYTES..], plain);
    assert_eq!(sealer.aes_blocks(), 0);
}
