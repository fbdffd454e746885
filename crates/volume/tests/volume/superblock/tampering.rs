//! Changed bytes, with and without a corrected checksum.

use oblivio_volume::keys::{Secret, UnlockLimits};
use oblivio_volume::superblock::copies::read_copies;
use oblivio_volume::superblock::{LockedSuperblock, SUPERBLOCK_BYTES, SuperblockErrorKind as Kind};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::copies::holding;
use super::{Bytes, key_file, kind, passphrase, slot, superblock, volume_key, with_checksum};

const SLOT_0: usize = 256;
const SLOT_1: usize = 512;

#[test]
fn the_checksum_notices_every_flip() {
    let bytes = superblock().encode();
    for at in 0..SUPERBLOCK_BYTES {
        for mask in [0x01, 0x80, 0xFF] {
            let found = kind(LockedSuperblock::decode(&flipped(&bytes, at, mask)[..]));
            let expected = if at < 8 { Kind::NotAVolume } else { Kind::Damaged };
            assert_eq!(found, expected, "byte {at}");
        }
    }
}

/// The HMAC covers everything, including slot 0, which the key file of slot 1 does not open.
#[test]
fn the_hmac_notices_every_flip_under_a_new_checksum() {
    let bytes = superblock().encode();
    let key = key_file(1);
    for at in 0..SUPERBLOCK_BYTES - 32 {
        let changed = with_checksum(flipped(&bytes, at, 1 << (at % 8)));
        let outcome = LockedSuperblock::decode(&changed[..]).and_then(|it| it.unlock(&key));
        let found = kind(outcome);
        let expected: &[Kind] = match at {
            0..8 => &[Kind::NotAVolume],
            8..12 => &[Kind::UnknownVersion],
            // The volume's id is bound to each slot.
            24..40 => &[Kind::WrongKey],
            // The change may look like a scheme of a newer program.
            56..72 => &[Kind::UnknownVersion, Kind::Tampered],
            // The description of slot 1 is bound to the slot, and must be possible.
            SLOT_1..652 => &[Kind::WrongKey, Kind::Tampered],
            _ => &[Kind::Tampered],
        };
        assert!(expected.contains(&found), "byte {at}: {found:?}");
    }
}

/// A changed slot does not open under its own secret, even if the checksum was corrected.
#[test]
fn a_changed_slot_does_not_open() {
    let bytes = superblock().encode();
    for at in SLOT_0..SLOT_1 {
        let changed = with_checksum(flipped(&bytes, at, 1));
        let locked = LockedSuperblock::decode(&changed[..]);
        let found = kind(locked.and_then(|it| it.unlock(&passphrase("correct horse"))));
        let expected: &[Kind] = match at - SLOT_0 {
            // Salt, label, nonce and wrapped key are bound to each other. Bytes past the label must
            // be zeros.
            16..53 | 80..140 => &[Kind::WrongKey],
            _ => &[Kind::WrongKey, Kind::TooCostly, Kind::Tampered],
        };
        assert!(expected.contains(&found), "byte {at}: {found:?}");
    }
}

#[test]
fn a_slot_opens_in_its_own_place_alone() {
    let mut bytes = superblock().encode();
    let (one, two) = bytes[SLOT_0..].split_at_mut(SLOT_1 - SLOT_0);
    one.swap_with_slice(&mut two[..SLOT_1 - SLOT_0]);
    let locked = LockedSuperblock::decode(&with_checksum(bytes)[..]).unwrap();
    assert_eq!(kind(locked.unlock(&passphrase("correct horse"))), Kind::WrongKey);
    assert_eq!(kind(locked.unlock(&key_file(1))), Kind::WrongKey);
}

/// An opening must not allocate the 1 TiB that a slot claims: the test would not survive it.
#[test]
fn a_slot_above_the_ceiling_is_refused_and_the_others_are_tried() {
    for cost in [[1u32 << 30, 1, 1], [8, 65, 1], [1 << 10, 1, 17]] {
        let coins = &mut StdRng::seed_from_u64(6);
        let mut superblock = superblock();
        let other = passphrase("battery staple");
        superblock.add_slot(&volume_key(), &slot("", &other), coins).unwrap();
        let mut bytes = superblock.encode();
        let fields = bytes[SLOT_0 + 4..].chunks_mut(4).zip(cost);
        fields.for_each(|(field, value)| field.copy_from_slice(&value.to_le_bytes()));
        let locked = LockedSuperblock::decode(&with_checksum(bytes)[..]).unwrap();
        let error = locked.unlock(&passphrase("correct horse")).unwrap_err();
        assert_eq!(error.kind(), Kind::TooCostly, "{error}");
        for other in [other, key_file(1)] {
            assert_eq!(
                kind(locked.unlock(&other)),
                Kind::Tampered,
                "it opens, and detects the change"
            );
        }
    }
}

/// Storage can change the costs of slots, but an opening spends no more than its owner allows.
#[test]
fn an_opening_spends_no_more_than_it_may() {
    let coins = &mut StdRng::seed_from_u64(6);
    let mut superblock = superblock();
    let last = passphrase("battery staple");
    for secret in [&passphrase("another"), &last] {
        superblock.add_slot(&volume_key(), &slot("", secret), coins).unwrap();
    }
    // Two slots that fill 8 KiB 33 times each.
    let mut bytes = superblock.encode();
    for slot in [SLOT_0, SLOT_0 + 2 * (SLOT_1 - SLOT_0)] {
        bytes[slot + 8..slot + 12].copy_from_slice(&33u32.to_le_bytes());
    }
    let try_it = |bytes: &Bytes, secret: &Secret, limits: UnlockLimits| {
        let unlocked = read_copies(&mut holding(bytes)).unlock(secret, limits);
        unlocked.map(|unlocked| unlocked.slot).map_err(|error| error.kind())
    };
    let bytes = with_checksum(bytes);
    let all = |memory_kib_max| UnlockLimits { slot: None, memory_kib_max };
    let one = |slot| UnlockLimits { slot: Some(slot), memory_kib_max: 8 };
    // Less than each slot needs, the same amount, and more. The slot that opens shows that the
    // superblock was changed.
    assert_eq!(try_it(&bytes, &last, all(7)), Err(Kind::TooCostly));
    assert_eq!(try_it(&bytes, &last, all(8)), Err(Kind::Tampered));
    let unused = passphrase("unused");
    assert_eq!(try_it(&bytes, &unused, all(8)), Err(Kind::TooCostly), "66 fills are 2 too many");
    assert_eq!(try_it(&bytes, &unused, all(9)), Err(Kind::WrongKey));
    assert_eq!(try_it(&bytes, &unused, one(0)), Err(Kind::WrongKey));

    let good = superblock.encode();
    assert_eq!(try_it(&good, &last, UnlockLimits::default()), Ok(3));
    assert_eq!(try_it(&good, &last, one(3)), Ok(3));
    assert_eq!(try_it(&good, &last, one(2)), Err(Kind::WrongKey));
    assert_eq!(try_it(&good, &key_file(1), one(1)), Ok(1));
    assert_eq!(try_it(&good, &last, one(7)), Err(Kind::InvalidRequest));
}

#[test]
fn parts_and_more_than_all_are_damaged() {
    let bytes = superblock().encode();
    for length in [0, 7] {
        assert_eq!(kind(LockedSuperblock::decode(&bytes[..length])), Kind::NotAVolume);
    }
    for length in [8, 12, 4096, SUPERBLOCK_BYTES - 1] {
        assert_eq!(kind(LockedSuperblock::decode(&bytes[..length])), Kind::Damaged);
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(kind(LockedSuperblock::decode(&longer)), Kind::Damaged);
}

fn flipped(bytes: &Bytes, at: usize, mask: u8) -> Box<Bytes> {
    let mut bytes = Box::new(*bytes);
    bytes[at] ^= mask;
    bytes
}
