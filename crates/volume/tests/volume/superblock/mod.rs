//! Black-box tests of superblocks and key slots: bytes, keys, copies and crashes.

mod copies;
mod golden;
mod slots;
mod tampering;
mod unlocking;

use oblivio_core::durable::Slots;
use oblivio_core::durable::rotating::{MapRecursion, RawParams};
use oblivio_testkit::{example_params, example_raw_params};
use oblivio_volume::keys::{Cost, NewSlot, Secret, VolumeKey};
use oblivio_volume::superblock::{
    LockedSuperblock, SUPERBLOCK_BYTES, SchemeName, Superblock, SuperblockError,
    SuperblockErrorKind, VolumeParams,
};
use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use ring::digest;
use zeroize::Zeroizing;

type Bytes = [u8; SUPERBLOCK_BYTES];

// ───────────────────────────── round trips ─────────────────────────────

fn any_params() -> impl Strategy<Value = VolumeParams> {
    (1u8..=30, 1u16..=50, 16u32..=1 << 20, 1u32..=1 << 16, 1u32..=1 << 24).prop_flat_map(
        |(leaf_level, slots, block_bytes, evict_period, stash_blocks_max)| {
            (1u64..=1 << leaf_level, 0..=leaf_level.min(16)).prop_map(
                move |(blocks, tree_top_levels)| {
                    VolumeParams::of(&RawParams {
                        blocks,
                        block_bytes,
                        leaf_level,
                        slots: Slots::Same(slots),
                        evict_period,
                        stash_blocks_max,
                        tree_top_levels,
                        tree_top_ways: 0,
                        recursion: None,
                    })
                },
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_created_is_unlocked(
        params in any_params(),
        labels in prop::collection::vec("[a-zäß€🦀 ]{0,8}", 1..=8),
        seed: u64,
    ) {
        let mut coins = StdRng::seed_from_u64(seed);
        let key = VolumeKey::draw(&mut coins);
        let first = key_file(0);
        let first = slot(&labels[0], &first);
        let mut superblock = Superblock::create(params.clone(), &key, &first, &mut coins).unwrap();
        for (i, label) in (1..).zip(&labels[1..]) {
            let added = superblock.add_slot(&key, &slot(label, &key_file(i)), &mut coins);
            prop_assert_eq!(added.unwrap(), i);
        }
        let bytes = superblock.encode();
        let locked = LockedSuperblock::decode(&bytes[..]).unwrap();
        prop_assert_eq!(locked.encode(), bytes.clone());
        prop_assert_eq!(locked.unauthenticated_params(), &params);
        prop_assert_eq!(locked.unauthenticated_sequence(), labels.len() as u64);
        for i in 0..labels.len() as u8 {
            let unlocked = locked.unlock(&key_file(i)).unwrap();
            prop_assert_eq!(unlocked.slot, i);
            prop_assert_eq!(unlocked.superblock.params(), &params);
            prop_assert_eq!(unlocked.superblock.volume_id(), superblock.volume_id());
            prop_assert_eq!(unlocked.superblock.encode(), bytes.clone());
            prop_assert_eq!(unlocked.volume_key.derive("x"), key.derive("x"));
        }
        let found: Vec<_> = superblock.slots().into_iter().map(|slot| slot.label).collect();
        prop_assert_eq!(found, labels);
    }

    #[test]
    fn any_bytes_are_refused_without_a_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..2 * SUPERBLOCK_BYTES),
        with_magic: bool,
    ) {
        let mut bytes = bytes;
        if with_magic {
            bytes.splice(..8.min(bytes.len()), *b"oblivio\0");
        }
        prop_assert!(LockedSuperblock::decode(&bytes).is_err());
    }
}

#[test]
fn volumes_that_cannot_be_are_not_created() {
    let wrong: [fn(&mut RawParams); 18] = [
        |params| params.blocks = 0,
        |params| params.blocks = (1 << 40) + 1,
        |params| params.blocks = 1 << 30,
        |params| params.block_bytes = 15,
        |params| params.block_bytes = (1 << 20) + 1,
        |params| params.leaf_level = 41,
        |params| params.slots = Slots::Same(0),
        |params| params.slots = Slots::Same(256),
        |params| params.tree_top_ways = 257,
        |params| params.slots = Slots::PerLevel(vec![5; 10]),
        |params| params.slots = Slots::PerLevel(vec![4, 5, 5]),
        |params| params.slots = Slots::PerLevel(vec![4, 5, 5, 5, 5, 5, 5, 5, 5, 0]),
        |params| params.recursion = Some(MapRecursion { client_entries_max: 0, plb_blocks: 9 }),
        |params| params.recursion = Some(MapRecursion { client_entries_max: 1, plb_blocks: 1 }),
        |params| params.evict_period = 0,
        |params| params.evict_period = u32::MAX,
        |params| params.stash_blocks_max = 0,
        |params| params.tree_top_levels = params.leaf_level + 1,
    ];
    for (i, spoil) in wrong.iter().enumerate() {
        let mut params = example_raw_params();
        spoil(&mut params);
        assert_eq!(
            kind(create(VolumeParams::of(&params))),
            SuperblockErrorKind::InvalidRequest,
            "{i}"
        );
    }
    let wrong: [fn(&mut VolumeParams); 4] = [
        |params| params.scheme = SchemeName::new("nothing-like-it").unwrap(),
        |params| params.scheme = SchemeName::new("scan").unwrap(),
        |params| params.scheme_params.push(0),
        |params| params.scheme_params.clear(),
    ];
    for (i, spoil) in wrong.iter().enumerate() {
        let mut params = example_params();
        spoil(&mut params);
        assert_eq!(kind(create(params)), SuperblockErrorKind::InvalidRequest, "{i}");
    }
    assert_eq!(example_params().capacity_bytes(), 1000 * 4096);
}

fn create(params: VolumeParams) -> Result<Superblock, SuperblockError> {
    let coins = &mut StdRng::seed_from_u64(1);
    Superblock::create(params, &volume_key(), &slot("", &key_file(1)), coins)
}

// ───────────────────────────── what the tests share ─────────────────────────────

fn volume_key() -> VolumeKey {
    VolumeKey::from_bytes(&[42; 32])
}

fn passphrase(text: &str) -> Secret {
    Secret::Passphrase(Zeroizing::new(text.as_bytes().to_vec()))
}

fn key_file(byte: u8) -> Secret {
    Secret::KeyFile(Zeroizing::new(vec![byte; 32]))
}

fn slot<'a>(label: &'a str, secret: &'a Secret) -> NewSlot<'a> {
    NewSlot { secret, cost: Cost::weak_for_tests(), label }
}

/// A superblock with a passphrase in slot 0 and a key file in slot 1.
fn superblock() -> Superblock {
    let mut coins = StdRng::seed_from_u64(1);
    let first = passphrase("correct horse");
    let first = slot("owner", &first);
    let mut made = Superblock::create(example_params(), &volume_key(), &first, &mut coins).unwrap();
    made.add_slot(&volume_key(), &slot("backup", &key_file(1)), &mut coins).unwrap();
    made
}

/// The successor of `superblock`, with one more slot.
fn next(superblock: &Superblock) -> Superblock {
    let mut next = superblock.clone();
    let coins = &mut StdRng::seed_from_u64(2);
    next.add_slot(&volume_key(), &slot("third", &key_file(3)), coins).unwrap();
    next
}

/// Corrects the checksum, as an attacker does after a change.
fn with_checksum(mut bytes: Box<Bytes>) -> Box<Bytes> {
    let (content, checksum) = bytes.split_at_mut(SUPERBLOCK_BYTES - 32);
    checksum.copy_from_slice(digest::digest(&digest::SHA256, content).as_ref());
    bytes
}

#[track_caller]
fn kind<T>(outcome: Result<T, SuperblockError>) -> SuperblockErrorKind {
    match outcome {
        Ok(_) => panic!("that should have failed"),
        Err(error) => error.kind(),
    }
}
