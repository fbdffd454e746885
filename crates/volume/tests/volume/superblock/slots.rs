//! Secrets that open, secrets that do not, and adding and removing slots.

use oblivio_volume::keys::{Cost, NewSlot, Secret, SecretKind, VolumeKey};
use oblivio_volume::superblock::{LockedSuperblock, Superblock, SuperblockErrorKind as Kind};
use rand::SeedableRng;
use rand::rngs::StdRng;
use zeroize::Zeroizing;

use super::{example_params, key_file, kind, passphrase, slot, superblock, volume_key};

fn locked(superblock: &Superblock) -> LockedSuperblock {
    LockedSuperblock::decode(&superblock.encode()[..]).unwrap()
}

#[test]
fn each_secret_opens_its_slot_and_no_other_secret_opens_any() {
    let locked = locked(&superblock());
    assert_eq!(locked.unlock(&passphrase("correct horse")).unwrap().slot, 0);
    assert_eq!(locked.unlock(&key_file(1)).unwrap().slot, 1);
    let wrong = [
        passphrase("correct hors"),
        passphrase("correct horse\n"),
        key_file(2),
        // The right bytes as the wrong kind of secret.
        Secret::KeyFile(Zeroizing::new(b"correct horse".repeat(3))),
        Secret::Passphrase(Zeroizing::new(vec![1; 32])),
    ];
    let messages = wrong.iter().map(|secret| {
        let error = locked.unlock(secret).unwrap_err();
        assert_eq!(error.kind(), Kind::WrongKey);
        error.to_string()
    });
    let messages: std::collections::HashSet<_> = messages.collect();
    assert_eq!(messages.len(), 1, "the message reveals which slot was close: {messages:?}");
}

#[test]
fn secrets_have_bounds() {
    let of_length = |bytes| (vec![7; bytes], vec![7; bytes]);
    let mut superblock = superblock();
    let locked = locked(&superblock);
    for (bytes, passphrase_is_right, key_file_is_right) in [
        (0, false, false),
        (1, true, false),
        (31, true, false),
        (32, true, true),
        (4 << 10, true, true),
        ((4 << 10) + 1, false, true),
        (8 << 20, false, true),
        ((8 << 20) + 1, false, false),
    ] {
        let (one, other) = of_length(bytes);
        for (secret, is_right) in [
            (Secret::Passphrase(Zeroizing::new(one)), passphrase_is_right),
            (Secret::KeyFile(Zeroizing::new(other)), key_file_is_right),
        ] {
            let expected = if is_right { Kind::WrongKey } else { Kind::InvalidRequest };
            assert_eq!(kind(locked.unlock(&secret)), expected, "{bytes} bytes");
            let coins = &mut StdRng::seed_from_u64(1);
            let added = superblock.clone().add_slot(&volume_key(), &slot("", &secret), coins);
            assert_eq!(added.is_ok(), is_right, "{bytes} bytes");
        }
    }
    let coins = &mut StdRng::seed_from_u64(1);
    for label in ["a label that is longer than thirty-two", "bell \u{7}", "\u{1b}[2J"] {
        let refused = superblock.add_slot(&volume_key(), &slot(label, &key_file(3)), coins);
        assert_eq!(kind(refused), Kind::InvalidRequest);
    }
}

#[test]
fn a_removed_slot_no_longer_opens() {
    let mut superblock = superblock();
    let before = locked(&superblock);
    superblock.remove_slot(&volume_key(), 0).unwrap();
    assert_eq!(superblock.sequence(), 3);
    let after = locked(&superblock);
    assert_eq!(kind(after.unlock(&passphrase("correct horse"))), Kind::WrongKey);
    assert_eq!(after.unlock(&key_file(1)).unwrap().slot, 1);
    // The documented limit: an old copy of the superblock still opens.
    assert!(before.unlock(&passphrase("correct horse")).is_ok());
    // No byte of the slot is left.
    let bytes = superblock.encode();
    assert!(bytes[256..512].iter().all(|byte| *byte == 0));

    assert_eq!(kind(superblock.remove_slot(&volume_key(), 0)), Kind::InvalidRequest);
    assert_eq!(kind(superblock.remove_slot(&volume_key(), 8)), Kind::InvalidRequest);
    assert_eq!(kind(superblock.remove_slot(&volume_key(), 1)), Kind::LastSlot);
    assert_eq!(superblock.encode(), bytes, "a refused change changed something");
    let coins = &mut StdRng::seed_from_u64(3);
    let added = superblock.add_slot(&volume_key(), &slot("new", &passphrase("battery")), coins);
    assert_eq!(added.unwrap(), 0);
    assert!(locked(&superblock).unlock(&passphrase("battery")).is_ok());
}

#[test]
fn there_are_eight_slots() {
    let mut superblock = superblock();
    let coins = &mut StdRng::seed_from_u64(3);
    for number in 2..8 {
        let added = superblock.add_slot(&volume_key(), &slot("", &key_file(number)), coins);
        assert_eq!(added.unwrap(), number);
    }
    let ninth = superblock.add_slot(&volume_key(), &slot("", &key_file(9)), coins);
    assert_eq!(kind(ninth), Kind::NoFreeSlot);
    assert_eq!(superblock.slots().len(), 8);
    assert_eq!(locked(&superblock).unlock(&key_file(7)).unwrap().slot, 7);
}

#[test]
fn slots_are_listed() {
    let slots = locked(&superblock()).unauthenticated_slots();
    let found: Vec<_> = slots.iter().map(|s| (s.number, s.kind, s.label.as_str())).collect();
    let expected = [(0, SecretKind::Passphrase, "owner"), (1, SecretKind::KeyFile, "backup")];
    assert_eq!(found, expected);
    assert_eq!(slots[0].cost, Some(Cost::weak_for_tests()));
    assert_eq!(slots[1].cost, None);
}

/// A change of slots with the key of another volume is refused: it would make a superblock that no
/// secret unlocks.
#[test]
fn only_the_key_of_the_volume_changes_its_slots() {
    let mut superblock = superblock();
    let (other, coins) = (VolumeKey::from_bytes(&[43; 32]), &mut StdRng::seed_from_u64(3));
    let before = superblock.encode();
    let added = superblock.add_slot(&other, &slot("", &key_file(3)), coins);
    assert_eq!(kind(added), Kind::WrongKey);
    assert_eq!(kind(superblock.remove_slot(&other, 0)), Kind::WrongKey);
    assert_eq!(superblock.encode(), before);
}

/// The same secret on two volumes, or twice on one, leaves no visible similarity.
#[test]
fn equal_secrets_look_different() {
    let mut coins = StdRng::seed_from_u64(4);
    let secret = key_file(1);
    let make = |coins: &mut StdRng| {
        Superblock::create(example_params(), &volume_key(), &slot("", &secret), coins)
            .unwrap()
            .encode()
    };
    let (one, two) = (make(&mut coins), make(&mut coins));
    for range in [24..40, 272..304, 336..348, 348..396] {
        assert_ne!(one[range.clone()], two[range]);
    }
}

#[test]
fn a_slot_of_the_lowest_real_cost_opens() {
    let secret = passphrase("correct horse");
    let new = NewSlot { secret: &secret, cost: Cost::FLOOR, label: "" };
    let coins = &mut StdRng::seed_from_u64(5);
    let superblock = Superblock::create(example_params(), &volume_key(), &new, coins).unwrap();
    assert!(locked(&superblock).unlock(&secret).is_ok());
}
