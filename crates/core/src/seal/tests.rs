//! What the seal promises, seen from outside.

use super::*;
use crate::store::Span;
use proptest::prelude::*;

const HEADER_BYTES: usize = 16;

fn seal_into(sealer: &mut Sealer, room: &mut [u8], counter: u64, bucket: u64, plain: &[u8]) {
    let spans = [Span {
        start: 0,
        bytes: room.len(),
    }];
    let runs = [
        SealedRun::header(0, BucketId(bucket), counter, HEADER_BYTES),
        SealedRun::body(
            0,
            BucketId(bucket),
            counter,
            COUNTER_BYTES + HEADER_BYTES,
            0,
            plain.len() - HEADER_BYTES,
        ),
    ];
    sealer.seal(Blanks::new(room, &spans), &runs, |i, sealing| match i {
        0 => sealing.write(&plain[..HEADER_BYTES]),
        _ => sealing.write(&plain[HEADER_BYTES..]),
    });
}

proptest! {
    #[test]
    fn what_is_sealed_opens(
        plain in prop::collection::vec(any::<u8>(), HEADER_BYTES + 1..500),
        counter in 1u64..,
        bucket in 0u64..(1 << 41) - 1,
    ) {
        let key = Key::from_bytes([3; 16]);
        let mut sealer = Sealer::aes128(&key, TreeId(0));
        let mut room = vec![0xEE; COUNTER_BYTES + plain.len()];
        seal_into(&mut sealer, &mut room, counter, bucket, &plain);
        prop_assert_eq!(stored_counter(&room), counter);

        let spans = [Span { start: 0, bytes: room.len() }];
        let body = SealedRun::body(
            0, BucketId(bucket), counter, COUNTER_BYTES + HEADER_BYTES, 0, plain.len() - HEADER_BYTES,
        );
        let mut opened = vec![0; plain.len() - HEADER_BYTES];
        sealer.open(Frames::new(&room, &spans), &[body], |_, mut run| run.read(&mut opened));
        prop_assert_eq!(&opened, &plain[HEADER_BYTES..]);
    }

    #[test]
    fn a_part_of_a_body_opens_alone(start in 0usize..200, bytes in 1usize..100) {
        let plain: Vec<u8> = (0..HEADER_BYTES + 300).map(|i| i as u8).collect();
        let mut sealer = Sealer::aes128(&Key::from_bytes([3; 16]), TreeId(0));
        let mut room = vec![0; COUNTER_BYTES + plain.len()];
        seal_into(&mut sealer, &mut room, 9, 4, &plain);
        let spans = [Span { start: 0, bytes: room.len() }];
        let run = SealedRun::body(0, BucketId(4), 9, COUNTER_BYTES + HEADER_BYTES, start, bytes);
        let mut opened = vec![0; bytes];
        sealer.open(Frames::new(&room, &spans), &[run], |_, mut run| run.read(&mut opened));
        prop_assert_eq!(&opened, &plain[HEADER_BYTES + start..][..bytes]);
    }
}

#[test]
fn the_same_plaintext_never_gives_the_same_ciphertext() {
    let plain = [0; HEADER_BYTES + 64];
    let rooms: Vec<Vec<u8>> = [
        (TreeId(0), 1, 0),
        (TreeId(0), 2, 0),
        (TreeId(0), 1, 1),
        (TreeId(1), 1, 0),
    ]
    .into_iter()
    .map(|(tree, counter, bucket)| {
        let mut sealer = Sealer::aes128(&Key::from_bytes([5; 16]), tree);
        let mut room = vec![0; COUNTER_BYTES + plain.len()];
        seal_into(&mut sealer, &mut room, counter, bucket, &plain);
        room.split_off(COUNTER_BYTES)
    })
    .collect();
    for (i, room) in rooms.iter().enumerate() {
        assert!(rooms[..i].iter().all(|other| other != room));
    }
}

#[test]
fn bytes_not_written_become_sealed_zeros() {
    let mut sealer = Sealer::aes128(&Key::from_bytes([5; 16]), TreeId(0));
    let spans = [Span {
        start: 0,
        bytes: 40,
    }];
    let run = SealedRun::header(0, BucketId(0), 1, 32);
    let mut rooms = [[0xAA; 40], [0x55; 40]];
    for room in &mut rooms {
        sealer.seal(Blanks::new(room, &spans), &[run], |_, sealing| {
            sealing.write(&[1; 8])
        });
    }
    assert_eq!(rooms[0], rooms[1], "what the blank held before shows");
    let mut plain = [9; 32];
    sealer.open(Frames::new(&rooms[0], &spans), &[run], |_, mut run| {
        run.read(&mut plain)
    });
    assert_eq!((&plain[..8], &plain[8..]), (&[1; 8][..], &[0; 24][..]));
}

#[test]
fn the_null_seal_shows_everything() {
    let mut sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let plain = *b"0123456789abcdef and a body in clear";
    let mut room = vec![0; COUNTER_BYTES + plain.len()];
    seal_into(&mut sealer, &mut room, 1, 0, &plain);
    assert_eq!(&room[COUNTER_BYTES..], plain);
    assert_eq!(sealer.aes_blocks(), 0);
}
