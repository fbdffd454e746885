//! Tampering with the store and the client's directory: the volume reports the tampering, never
//! returns wrong data, and works again once the bytes are restored.

use std::collections::BTreeSet;

use VolumeErrorKind::{
    NotAVolume, StateDamaged, StateRolledBack, StoreRolledBack, Tampered, UnknownVersion, WrongKey,
    WrongState,
};
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{BucketStore, Frames, Part, Piece, Span, TreeId};
use oblivio_core::{Access, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, EVICT_PERIOD, SmallVolume};
use oblivio_testkit::crash::{Snapshot, Survival, World};
use oblivio_volume::superblock::SUPERBLOCK_BYTES;
use oblivio_volume::volume::shapes;
use oblivio_volume::{Volume, VolumeError, VolumeErrorKind};
use rand::SeedableRng;
use rand::rngs::StdRng;
use ring::digest;

use crate::support::appended;

const ANCHORS: TreeId = TreeId(1);
/// The trees that hold the slots and the heads of buckets.
const HALVES: [TreeId; 2] = [TreeId(2), TreeId(4)];

/// The places of all copies of the superblock.
fn superblocks() -> [(TreeId, BucketId); 4] {
    [(0, 0), (0, 1), (3, 0), (3, 1)].map(|(tree, copy)| (TreeId(tree), BucketId::new(1, copy)))
}

/// Bytes before the records of a state file: magic, version, volume, generation, salt.
const STATE_HEADER_BYTES: usize = 8 + 4 + 16 + 8 + 32;

// ───────────────────────────── superblocks and anchors ─────────────────────────────

#[test]
fn one_sound_superblock_of_four_is_enough() {
    let bench = Bench::new();
    for (i, spared) in superblocks().iter().enumerate() {
        for byte in [0, 8, 60, 300, SUPERBLOCK_BYTES - 64, SUPERBLOCK_BYTES - 1] {
            bench.restore();
            for (tree, bucket) in superblocks().into_iter().filter(|copy| copy != spared) {
                bench.world.flip_bit(tree, bucket, byte, 3);
            }
            assert_eq!(bench.outcome(), Ok(()), "copy {i} is sound, byte {byte} of the others not");
        }
    }
    for byte in [8, 60, 300, SUPERBLOCK_BYTES - 64, SUPERBLOCK_BYTES - 1] {
        bench.restore();
        for (tree, bucket) in superblocks() {
            bench.world.flip_bit(tree, bucket, byte, 3);
        }
        assert_eq!(bench.outcome(), Err(Tampered), "byte {byte}");
    }
    bench.is_whole_again();
}

/// Changed superblocks with a corrected checksum, which anyone can make without a key, are refused
/// with the right kind of error.
#[test]
fn superblocks_with_a_right_checksum_are_refused_for_what_they_are() {
    let bench = Bench::new();
    for (byte, kind) in [
        (8, UnknownVersion),
        // Key slots are sealed for one volume.
        (32, WrongKey),
        (300, WrongKey),
        // The number of blocks, and the HMAC.
        (40, Tampered),
        (SUPERBLOCK_BYTES - 64, Tampered),
    ] {
        bench.restore();
        for (tree, bucket) in superblocks() {
            let mut superblock = bench.get(tree, bucket);
            superblock[byte] ^= 1 << 5;
            let (content, checksum) = superblock.split_at_mut(SUPERBLOCK_BYTES - 32);
            checksum.copy_from_slice(digest::digest(&digest::SHA256, content).as_ref());
            bench.put(tree, bucket, &superblock);
        }
        assert_eq!(bench.outcome(), Err(kind), "byte {byte}");
    }
    bench.is_whole_again();
}

#[test]
fn an_anchor_may_be_torn_and_two_may_not() {
    let bench = Bench::new();
    let flip = |place, byte| bench.world.flip_bit(ANCHORS, BucketId::new(1, place), byte, 0);
    for byte in [0, 8, 16, 63] {
        for place in 0..2 {
            bench.restore();
            flip(place, byte);
            // The damage is reported once, and repaired.
            for damaged in [1, 0] {
                let coins = StdRng::seed_from_u64(99);
                let opened = bench.setup.open(bench.world.store(), bench.world.dir(), coins);
                let (volume, recovery) = opened.unwrap();
                assert_eq!(recovery.anchors_damaged, damaged, "anchor {place}, byte {byte}");
                volume.close().unwrap();
            }
            assert_eq!(bench.outcome(), Ok(()), "anchor {place}, byte {byte}");
        }
        bench.restore();
        (0..2).for_each(|place| flip(place, byte));
        assert_eq!(bench.outcome(), Err(Tampered), "byte {byte}");
    }
    bench.is_whole_again();
}

// ───────────────────────────── buckets ─────────────────────────────

/// A spare place may hold anything. A changed bit in use is detected, wherever it is.
#[test]
fn a_flipped_bit_is_noticed_in_every_bucket_in_use() {
    let bench = Bench::new();
    let in_use: u64 = {
        let (volume, _) = bench.open().unwrap();
        volume.buckets_in_storage()
    };
    for tree in HALVES {
        let bytes = bench.bucket_bytes(tree);
        for byte in [0, bytes / 2, bytes - 1] {
            let mut noticed = 0;
            for bucket in bench.buckets() {
                bench.restore();
                bench.world.flip_bit(tree, bucket, byte as usize, 7);
                noticed += u64::from(bench.is_noticed());
            }
            assert_eq!(noticed, in_use, "byte {byte} of {tree:?}");
        }
    }
    bench.is_whole_again();
}

#[test]
fn buckets_that_are_swapped_or_replayed_are_noticed() {
    let bench = Bench::new();
    let buckets: Vec<_> = bench.buckets().collect();
    let mut swapped = 0;
    for pair in buckets.windows(2).filter(|pair| pair[0].level() == pair[1].level()) {
        bench.restore();
        for tree in HALVES {
            bench.world.swap_buckets((tree, pair[0]), (tree, pair[1]));
        }
        swapped += usize::from(bench.is_noticed());
    }
    let mut replayed = 0;
    for bucket in &buckets {
        bench.restore();
        let contents = || HALVES.map(|tree| bench.get(tree, *bucket));
        let before = contents();
        for tree in HALVES {
            bench.world.replace_bucket(bench.past.first().unwrap(), tree, *bucket);
        }
        let is_old = contents() != before;
        let is_noticed = bench.is_noticed();
        assert!(is_old || !is_noticed);
        replayed += usize::from(is_noticed);
    }
    // All buckets except some of the spare places.
    assert!(swapped > buckets.len() / 2 && replayed > buckets.len() / 2, "{swapped} {replayed}");
    bench.is_whole_again();
}

#[test]
fn a_store_that_was_emptied_or_cut_off_is_noticed() {
    let bench = Bench::new();
    let empty = bench.setup.world().snapshot();
    bench.world.restore_store(&empty);
    assert_eq!(bench.outcome(), Err(NotAVolume));

    bench.restore();
    bench.world.replace_bucket(&empty, ANCHORS, BucketId::new(1, 0));
    bench.world.replace_bucket(&empty, ANCHORS, BucketId::new(1, 1));
    assert_eq!(bench.outcome(), Err(Tampered));

    let buckets: Vec<_> = bench.buckets().collect();
    for left in [0, buckets.len() / 4, buckets.len() / 2] {
        bench.restore();
        for bucket in &buckets[left..] {
            HALVES.iter().for_each(|tree| bench.world.replace_bucket(&empty, *tree, *bucket));
        }
        bench.world.replace_bucket(&empty, TreeId(3), BucketId::new(1, 0));
        bench.world.replace_bucket(&empty, TreeId(3), BucketId::new(1, 1));
        assert_eq!(bench.outcome(), Err(Tampered), "{left} buckets are left");
    }
    bench.is_whole_again();
}

// ───────────────────────────── going back ─────────────────────────────

#[test]
fn an_older_store_is_noticed_however_little_older() {
    let bench = Bench::new();
    let mut kinds = BTreeSet::new();
    let data = || bench.buckets().map(|bucket| bench.get(HALVES[1], bucket)).collect::<Vec<_>>();
    let latest = data();
    for (i, past) in bench.past.iter().enumerate() {
        bench.restore();
        bench.world.restore_store(past);
        if data() == latest {
            // One checkpoint back, but with the same anchor as after a crash that lost the latest
            // anchor.
            assert_eq!(bench.outcome(), Ok(()));
            continue;
        }
        let kind = bench.outcome().expect_err("an older store");
        assert!([StoreRolledBack, Tampered].contains(&kind), "{i}: {kind:?}");
        kinds.insert(format!("{kind:?}"));
    }
    assert!(kinds.contains("StoreRolledBack"), "{kinds:?}");
    bench.is_whole_again();
}

#[test]
fn an_older_directory_is_noticed() {
    let bench = Bench::new();
    for (i, past) in bench.past.iter().enumerate() {
        bench.restore();
        bench.world.restore_dir(past);
        assert_eq!(bench.outcome(), Err(StateRolledBack), "{i}");
    }
    bench.is_whole_again();
}

/// A directory from before a recovery is detected, although storage never saw an anchor of the
/// checkpoint that the directory names: the next checkpoint must not be taken for it.
#[test]
fn a_directory_from_before_a_recovery_is_noticed() {
    for seed in 0..20 {
        let bench = Bench::new();
        let (volume, _) = bench.open().unwrap();
        bench.world.crash(&mut StdRng::seed_from_u64(seed), Survival::None);
        drop(volume);
        let backup = bench.world.snapshot();
        let (volume, _) = bench.open().unwrap();
        bench.world.crash(&mut StdRng::seed_from_u64(seed), Survival::All);
        drop(volume);
        bench.world.restore_dir(&backup);
        assert_eq!(bench.outcome(), Err(StateRolledBack), "{seed}");
    }
}

/// A backup of the client's directory from after the latest checkpoint is detected once it is
/// restored: storage has seen an eviction that the backup does not know.
#[test]
fn a_directory_from_within_a_checkpoint_is_noticed_after_an_eviction() {
    for accesses_before in 0..u64::from(EVICT_PERIOD) {
        let bench = Bench::new();
        let (mut volume, _) = bench.open().unwrap();
        let mut access = |address| {
            let data = contents(address);
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        };
        (0..accesses_before).for_each(&mut access);
        let backup = bench.world.snapshot();
        (0..u64::from(EVICT_PERIOD)).for_each(&mut access);
        bench.world.crash(&mut StdRng::seed_from_u64(1), Survival::All);
        drop(volume);
        let latest = bench.world.snapshot();
        bench.world.restore_dir(&backup);
        assert_eq!(bench.outcome(), Err(StateRolledBack), "{accesses_before}");
        bench.world.restore_dir(&latest);
        assert_eq!(bench.outcome(), Ok(()), "{accesses_before}");
    }
}

// ───────────────────────────── state files ─────────────────────────────

#[test]
fn a_changed_state_file_is_refused() {
    let bench = Bench::new();
    let (name, bytes) = bench.state_file();
    for byte in 0..bytes.len() {
        // All of the header and of the first records, and a sample of the rest.
        if byte > 400 && byte % 97 != 0 && byte + 40 < bytes.len() {
            continue;
        }
        bench.restore();
        let mut changed = bytes.clone();
        changed[byte] ^= 1 << (byte % 8);
        bench.world.replace_file(&name, &changed);
        let kind = bench.outcome().expect_err("a changed file");
        let allowed: &[_] = match byte {
            0..8 => &[StateDamaged],
            8..12 => &[UnknownVersion],
            12..28 => &[WrongState],
            28..STATE_HEADER_BYTES => &[StateDamaged],
            // A file that is cut off there is the file before the latest checkpoint.
            _ => &[StateDamaged, StateRolledBack],
        };
        assert!(allowed.contains(&kind), "byte {byte}: {kind:?}");
    }
    bench.is_whole_again();
}

#[test]
fn a_state_file_that_was_cut_off_is_refused() {
    let bench = Bench::new();
    let (name, bytes) = bench.state_file();
    for length in (0..bytes.len()).step_by(61).chain([bytes.len() - 1]) {
        bench.restore();
        bench.world.replace_file(&name, &bytes[..length]);
        let kind = bench.outcome().expect_err("a file cut off");
        assert!([StateDamaged, StateRolledBack].contains(&kind), "{length} bytes: {kind:?}");
    }
    bench.is_whole_again();
}

#[test]
fn a_directory_of_another_volume_or_of_none_is_refused() {
    let bench = Bench::new();
    let other = Bench::with_seed(2);
    bench.world.restore_dir(&other.good);
    assert_eq!(bench.outcome(), Err(WrongState));
    bench.world.restore_dir(&bench.setup.world().snapshot());
    assert_eq!(bench.outcome(), Err(StateDamaged));

    // A file of the right volume under a later name.
    bench.restore();
    let (name, bytes) = bench.state_file();
    let generation: u64 = name.strip_prefix("state-").unwrap().parse().unwrap();
    bench.world.replace_file(&format!("state-{}", generation + 1), &bytes);
    assert_eq!(bench.outcome(), Err(StateDamaged));

    bench.restore();
    bench.world.restore_store(&other.good);
    assert_eq!(bench.outcome(), Err(WrongState), "the store of another volume");
    bench.is_whole_again();
}

// ───────────────────────────── a volume with contents ─────────────────────────────

struct Bench {
    setup: SmallVolume,
    world: World,
    /// The world after each of many accesses, oldest first.
    past: Vec<Snapshot>,
    /// The volume closed, with [`contents`].
    good: Snapshot,
}

impl Bench {
    fn new() -> Self {
        Self::with_seed(1)
    }

    fn with_seed(seed: u64) -> Self {
        let setup = SmallVolume {
            seed,
            state_file_bytes_max: 1 << 20,
            // Tests restore what they changed, and continue.
            after_tampering: true,
            ..SmallVolume::default()
        };
        let world = setup.world();
        let coins = StdRng::seed_from_u64(seed);
        let mut volume = setup.create(world.store(), world.dir(), coins).unwrap();
        let mut past = Vec::new();
        let mut write = |fill: &dyn Fn(u64) -> [u8; BLOCK_BYTES as usize]| {
            for address in 0..BLOCKS {
                let data = fill(address);
                volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
                past.push(world.snapshot());
            }
        };
        write(&|address| [address as u8; BLOCK_BYTES as usize]);
        write(&contents);
        volume.close().unwrap();
        let good = world.snapshot();
        Self { setup, world, past, good }
    }

    fn restore(&self) {
        self.world.restore_store(&self.good);
        self.world.restore_dir(&self.good);
    }

    fn is_whole_again(&self) {
        self.restore();
        assert_eq!(self.outcome(), Ok(()));
    }

    fn open(&self) -> Result<(Volume, u64), VolumeError> {
        let coins = StdRng::seed_from_u64(99);
        let (volume, recovery) = self.setup.open(self.world.store(), self.world.dir(), coins)?;
        Ok((volume, recovery.accesses))
    }

    /// Opens the volume, reads all of its blocks and then all of storage. Returns the first error.
    ///
    /// # Panics
    /// When a block is not what was written.
    fn outcome(&self) -> Result<(), VolumeErrorKind> {
        let scanned = self.open().and_then(|(mut volume, _)| volume.check(&mut |_| ()));
        let (mut volume, _) = self.open().map_err(|error| error.kind())?;
        for address in 0..BLOCKS {
            let mut block = [0; BLOCK_BYTES as usize];
            match volume.access(&mut [Access { address, op: Op::Read(&mut block) }]) {
                Ok(()) => assert!(block == contents(address), "block {address} is another"),
                Err(error) => {
                    let again = volume.flush().unwrap_err().kind();
                    assert_eq!(again, VolumeErrorKind::MustReopen);
                    assert!(scanned.is_err(), "a scan finds each change that a read finds");
                    return Err(error.kind());
                }
            }
        }
        scanned.map(|blocks| assert_eq!(blocks, BLOCKS)).map_err(|error| error.kind())
    }

    fn is_noticed(&self) -> bool {
        match self.outcome() {
            Ok(()) => false,
            Err(kind) => {
                assert_eq!(kind, Tampered);
                true
            }
        }
    }

    /// The places of all buckets in storage.
    fn buckets(&self) -> impl Iterator<Item = BucketId> {
        let shapes = shapes(&self.setup.params()).unwrap();
        let data = &shapes[2];
        let levels: Vec<_> = data.levels().iter().map(|level| level.buckets).collect();
        (0..)
            .zip(levels)
            .flat_map(|(level, buckets)| (0..buckets).map(move |index| BucketId::new(level, index)))
    }

    fn bucket_bytes(&self, tree: TreeId) -> u64 {
        let data = shapes(&self.setup.params()).unwrap().swap_remove(usize::from(tree.0));
        data.levels().last().unwrap().bucket_bytes
    }

    fn get(&self, tree: TreeId, bucket: BucketId) -> Vec<u8> {
        let piece = Piece { tree, bucket, part: Part::Whole };
        self.world.store().read(&[piece]).unwrap().get(0).to_vec()
    }

    fn put(&self, tree: TreeId, bucket: BucketId, bytes: &[u8]) {
        let piece = Piece { tree, bucket, part: Part::Whole };
        let spans = [Span { start: 0, bytes: bytes.len() }];
        let mut store = self.world.store();
        store.write(&[piece], &mut |blanks| blanks.relay(Frames::new(bytes, &spans))).unwrap();
        store.flush().unwrap();
    }

    /// The name and the contents of the only state file.
    fn state_file(&self) -> (String, Vec<u8>) {
        let mut files = self.good.files().iter().filter(|(name, _)| name.starts_with("state-"));
        let (name, bytes) = files.next().unwrap();
        assert!(files.next().is_none());
        (name.clone(), appended(bytes.clone()))
    }
}

fn contents(address: u64) -> [u8; BLOCK_BYTES as usize] {
    std::array::from_fn(|i| (address as usize * 7 + i + 1) as u8)
}
