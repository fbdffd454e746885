//! The four superblocks and the two anchors in a hostile store: any bytes, in too few or too many
//! frames, which are too short or too long.
//!
//! ```text
//! input = change of the number of frames, change of the bytes per frame, (place, offset 2, value)*
//! ```
//!
//! The store holds two superblocks, in two copies each, and two anchors. Changed superblocks get a
//! valid checksum. Only superblocks and anchors that were written with the key may be accepted. An
//! unlocked superblock can be written to all copies, once the store is honest again.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use oblivio_core::store::{Frames, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::view::Operation;
use oblivio_core::{BucketId, BucketStore, LayoutKind, MemoryStore, StoreError};
use oblivio_testkit::{Call, Faulty, Rule, example_params};
use oblivio_volume::anchor_fuzzing as anchor;
use oblivio_volume::keys::{Cost, NewSlot, Secret, UnlockLimits, VolumeKey};
use oblivio_volume::superblock::copies::{
    BACK, COPIES, FRONT, read_copies, repair, rewrite_copies, shape,
};
use oblivio_volume::superblock::{SUPERBLOCK_BYTES, Superblock};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sha2::{Digest, Sha256};

const CHECKSUM_AT: usize = SUPERBLOCK_BYTES - 32;
const ANCHORS: TreeId = TreeId(1);
const ANCHOR_NUMBERS: [u64; 2] = [6, 7];

/// The older and the newer superblock, both valid.
static AUTHENTIC: LazyLock<[Superblock; 2]> = LazyLock::new(authentic);

fuzz_target!(|input: &[u8]| {
    let Some(([frames, bytes], changes)) = input.split_first_chunk() else { return };
    let mut store = store();
    for change in changes.chunks_exact(4) {
        let offset = usize::from(u16::from_le_bytes([change[1], change[2]]));
        set_byte(&mut store.store, usize::from(change[0]), offset, change[3]);
    }
    store.rule.frames = isize::from(*frames as i8).clamp(-4, 4);
    store.rule.bytes = isize::from(*bytes as i8);

    let shown = anchor::read(&mut store).expect("reading works");
    assert!(shown.is_none_or(|number| ANCHOR_NUMBERS.contains(&number)));

    let copies = read_copies(&mut store);
    let _ = copies.newest();
    let Ok(unlocked) = copies.unlock(&secret(), UnlockLimits::default()) else { return };
    let superblock = unlocked.superblock;
    assert!(AUTHENTIC.iter().any(|authentic| authentic.encode() == superblock.encode()));
    store.rule = WrongSizes::default();
    if changes.len() % 2 == 0 {
        repair(&mut store, &superblock).expect("writing works");
    } else {
        rewrite_copies(&mut store, &superblock).expect("writing works");
    }
    let wanted = superblock.encode();
    let copies = read_copies(&mut store);
    let is_wanted =
        |copy: usize| copies.each()[copy].as_ref().is_ok_and(|it| it.encode() == wanted);
    assert!((0..COPIES).all(is_wanted));
});

/// A store whose answers have more or fewer frames than pieces, and more or fewer bytes in each.
type Hostile = Faulty<MemoryStore, WrongSizes>;

#[derive(Default)]
struct WrongSizes {
    frames: isize,
    bytes: isize,
}

impl Rule<MemoryStore> for WrongSizes {
    fn handle(&mut self, inner: &mut MemoryStore, call: &mut Call<'_>) -> Result<(), StoreError> {
        if call.operation != Operation::Read {
            return call.forward(inner);
        }
        let count = call.pieces.len().saturating_add_signed(self.frames);
        let spans = call.pieces.iter().cycle().take(count).map(|piece| {
            let span = inner.span(piece).expect("the piece exists");
            Span { bytes: span.bytes.saturating_add_signed(self.bytes), ..span }
        });
        call.answer.spans = spans.collect();
        call.answer.bytes = inner.contents().to_vec();
        Ok(())
    }
}

/// Sets a byte of an anchor or of a superblock. Then updates the superblock's checksum.
fn set_byte(store: &mut MemoryStore, place: usize, offset: usize, value: u8) {
    let pieces = places();
    let place = place % pieces.len();
    let span = store.span(&pieces[place]).expect("the piece exists");
    let bytes = &mut store.contents_mut()[span.start..][..span.bytes];
    if place < COPIES {
        bytes[offset % CHECKSUM_AT] = value;
        let checksum = Sha256::digest(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum);
    } else {
        bytes[offset % span.bytes] = value;
    }
}

/// Returns the pieces of the superblocks, then those of the anchors.
fn places() -> [Piece; COPIES + 2] {
    [(FRONT, 0), (FRONT, 1), (BACK, 0), (BACK, 1), (ANCHORS, 0), (ANCHORS, 1)]
        .map(|(tree, index)| Piece { tree, bucket: BucketId::new(1, index), part: Part::Whole })
}

fn store() -> Hostile {
    let shapes = [shape(), anchor::shape(), TreeShape::new(Vec::new()), shape()];
    let inner = MemoryStore::new(&shapes, LayoutKind::Striped).expect("the shapes are valid");
    let mut store = Faulty::new(inner, WrongSizes::default());
    for number in ANCHOR_NUMBERS {
        anchor::write(&mut store, number).expect("writing works");
    }
    for (copy, piece) in places().into_iter().take(COPIES).enumerate() {
        let bytes = AUTHENTIC[copy / 2].encode();
        let spans = [Span { start: 0, bytes: bytes.len() }];
        let written =
            store.write(&[piece], &mut |blanks| blanks.relay(Frames::new(&bytes[..], &spans)));
        written.expect("writing works");
    }
    store
}

fn secret() -> Secret {
    Secret::KeyFile(vec![1; 32].into())
}

fn authentic() -> [Superblock; 2] {
    let mut coins = StdRng::seed_from_u64(1);
    let key = VolumeKey::draw(&mut coins);
    let slot = |secret, label| NewSlot { secret, cost: Cost::weak_for_tests(), label };
    let owner = secret();
    let older = Superblock::create(example_params(), &key, &slot(&owner, "owner"), &mut coins);
    let older = older.expect("the parameters are valid");
    let mut newer = older.clone();
    let backup = Secret::KeyFile(vec![2; 32].into());
    newer.add_slot(&key, &slot(&backup, "backup"), &mut coins).expect("there is a free slot");
    [older, newer]
}
