//! Golden vectors: the exact contents of storage after a fixed workload under a fixed key.
//!
//! They show readers the bytes of a bucket, serve as tests for implementations in other languages,
//! and guard against accidental changes of the format. The files are in `tests/golden/`; those in
//! `tests/golden/corrupt/` are named after their defect. After a deliberate change, write them
//! again and review the difference:
//!
//! ```text
//! OBLIVIO_WRITE_GOLDEN=1 cargo test -p oblivio-core --test engine golden::
//! ```

use std::convert::Infallible;
use std::path::Path;

use oblivio_core::reference::{ReferencePath, ReferenceRaw};
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::{
    BucketId, Error, ErrorKind, Front, Geometry, Key, LayoutKind, Leaf, MemoryStore, NoSecrecy,
    Oram, PathOram, RawConfig, RawOram, Sealer, TreeConfig,
};
use rand_core::{TryCryptoRng, TryRng};
use sha2::{Digest, Sha256};

// ───────────────────────────── vectors ─────────────────────────────

#[test]
fn path_oram() {
    for (name, seal) in [("path_in_clear", Seal::Null), ("path_sealed", Seal::Aes)] {
        let mut oram = small_path(seal);
        let mut reference = ReferencePath::new(small_geometry(), BLOCK_BYTES, Coins::new());
        for request in &WORKLOAD {
            request.serve(&mut oram).unwrap();
            reference.access(request.address, request.data().as_deref());
        }
        assert_golden(name, &vector(&mut oram, &reference.leaves));
    }
}

#[test]
fn raw_oram() {
    for (name, seal) in [("raw_in_clear", Seal::Null), ("raw_sealed", Seal::Aes)] {
        let mut oram = small_raw(seal);
        let period = u64::from(EVICT_PERIOD);
        let mut reference = ReferenceRaw::new(small_geometry(), BLOCK_BYTES, period, Coins::new());
        for request in &WORKLOAD {
            request.serve(&mut oram).unwrap();
            reference.access(request.address, request.data().as_deref());
        }
        assert_golden(name, &vector(&mut oram, &reference.leaves));
    }
}

/// Tests that storage under the default parameters has the golden digests, after every block was
/// written once.
#[test]
fn defaults() {
    let path = TreeConfig::path(1000, 64).unwrap();
    let raw = RawConfig::new(1000, 64).unwrap();
    let mut digests = String::from("SHA-256 of storage after each of 1000 blocks was written\n");
    for (name, layout) in [
        ("heap", LayoutKind::Heap),
        ("striped", LayoutKind::Striped),
        ("subtrees of 4 KiB", LayoutKind::Subtree { unit_bytes: 4096 }),
    ] {
        let path = PathOram::path(&path, Seal::Aes.sealer(), memory(&path, layout), Coins::new());
        let raw = RawOram::raw(&raw, Seal::Aes.sealer(), memory(&raw.tree, layout), Coins::new());
        let path = digest_of_full(&mut path.unwrap());
        let raw = digest_of_full(&mut raw.unwrap());
        digests += &format!("Path ORAM, {name}: {path}\nRAW ORAM, {name}: {raw}\n");
    }
    assert_golden("defaults", &digests);
}

fn digest_of_full(oram: &mut impl OnMemory) -> String {
    for address in 0..oram.capacity() {
        oram.write(address, &vec![address as u8; oram.block_bytes()]).unwrap();
    }
    hex(&Sha256::digest(oram.memory().contents()))
}

// ───────────────────────────── corrupt vectors ─────────────────────────────

/// Tests that each defect is detected, either when the affected block is read or when its path is
/// evicted. Both are needed: an access of RAW ORAM opens no leaves, and an eviction does not
/// compare addresses.
#[test]
fn defects_are_corrupt() {
    for defect in &DEFECTS {
        let (mut oram, victim) = with_defect(defect);
        assert_golden(&format!("corrupt/{}", defect.0), &Storage(oram.memory()).dump());
        let by_read = oram.read(victim, &mut [0; BLOCK_BYTES]);
        let (mut oram, _) = with_defect(defect);
        let by_eviction = (0..EVICTIONS_OF_ALL_PATHS).try_for_each(|_| oram.evict());
        let found: Vec<_> = [by_read, by_eviction].into_iter().filter_map(Result::err).collect();
        assert!(!found.is_empty(), "{} is not detected", defect.0);
        for error in found {
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{}: {error}", defect.0);
        }
    }
}

/// Tests that Path ORAM reports a block that is stored twice. Ignored, because it does not: it
/// accepts all valid blocks of a path.
#[test]
#[ignore = "Path ORAM does not compare the addresses on a path with each other"]
fn path_oram_finds_a_block_twice() {
    let twice = [block_twice_in_a_bucket, block_twice_on_a_path];
    for plant in twice {
        let (mut oram, victim) = with_defect(&("", |seal| Box::new(small_path(seal)), 12, plant));
        let error = oram.read(victim, &mut [0; BLOCK_BYTES]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
}

/// A number of evictions large enough to cover all four paths, even if the paths are drawn at
/// random.
const EVICTIONS_OF_ALL_PATHS: usize = 32;

/// Makes an ORAM with a defect. Returns the ORAM and the address of the affected block.
fn with_defect((_, build, requests, plant): &Defect) -> (Box<dyn OnMemory>, u64) {
    let mut oram = build(Seal::Null);
    WORKLOAD[..*requests].iter().for_each(|request| request.serve(&mut *oram).unwrap());
    let victim = plant(&mut Storage(oram.memory()));
    (oram, victim)
}

/// A defect: its name, the scheme, the number of requests of [`WORKLOAD`] before it, and a function
/// that plants it and returns the address of the affected block.
type Defect = (&'static str, fn(Seal) -> Box<dyn OnMemory>, usize, fn(&mut Storage<'_>) -> u64);

const DEFECTS: [Defect; 10] = [
    ("path_address_past_the_end", |seal| Box::new(small_path(seal)), 12, address_past_the_end),
    ("path_leaf_off_the_path", |seal| Box::new(small_path(seal)), 12, leaf_off_the_path),
    ("path_leaf_past_the_end", |seal| Box::new(small_path(seal)), 12, leaf_past_the_end),
    ("raw_address_past_the_end", |seal| Box::new(small_raw(seal)), 12, address_past_the_end),
    ("raw_leaf_off_the_path", |seal| Box::new(small_raw(seal)), 12, leaf_off_the_path),
    ("raw_leaf_past_the_end", |seal| Box::new(small_raw(seal)), 12, leaf_past_the_end),
    ("raw_block_twice_in_a_bucket", |seal| Box::new(small_raw(seal)), 12, block_twice_in_a_bucket),
    ("raw_block_twice_on_a_path", |seal| Box::new(small_raw(seal)), 12, block_twice_on_a_path),
    ("raw_block_before_any_eviction", |seal| Box::new(small_raw(seal)), 1, block_out_of_nothing),
    ("raw_header_lost_after_eviction", |seal| Box::new(small_raw(seal)), 12, header_lost),
];

fn address_past_the_end(storage: &mut Storage<'_>) -> u64 {
    storage.addresses(BucketId::ROOT)[0] = CAPACITY as u8;
    0
}

fn leaf_off_the_path(storage: &mut Storage<'_>) -> u64 {
    let (bucket, slot, victim) = storage.block_below_the_root();
    storage.leaves(bucket)[slot] ^= 1;
    victim
}

fn leaf_past_the_end(storage: &mut Storage<'_>) -> u64 {
    let (bucket, slot, victim) = storage.block_below_the_root();
    storage.leaves(bucket)[slot] |= 1 << LEAF_LEVEL;
    victim
}

fn block_twice_in_a_bucket(storage: &mut Storage<'_>) -> u64 {
    let (bucket, slot, victim) = storage.block_below_the_root();
    storage.leaves(bucket)[1 - slot] = storage.leaves(bucket)[slot];
    storage.addresses(bucket)[1 - slot] = victim as u8;
    victim
}

fn block_twice_on_a_path(storage: &mut Storage<'_>) -> u64 {
    let (bucket, slot, victim) = storage.block_below_the_root();
    storage.leaves(BucketId::ROOT)[0] = storage.leaves(bucket)[slot];
    storage.addresses(BucketId::ROOT)[0] = victim as u8;
    victim
}

/// Puts a block into the root, to which nothing was evicted but whose header an access has written.
/// Returns the address of the block.
fn block_out_of_nothing(storage: &mut Storage<'_>) -> u64 {
    let victim = WORKLOAD[0].address;
    storage.addresses(BucketId::ROOT)[0] = victim as u8;
    victim
}

fn header_lost(storage: &mut Storage<'_>) -> u64 {
    storage.part(BucketId::ROOT, Part::Header).fill(0);
    0
}

// ───────────────────────────── the workload ─────────────────────────────

const CAPACITY: u64 = 7;
const BLOCK_BYTES: usize = 16;
const LEAF_LEVEL: u8 = 2;
const EVICT_PERIOD: u32 = 2;

/// A tree with seven buckets and fourteen slots, for seven blocks.
fn small_geometry() -> Geometry {
    Geometry::uniform(LEAF_LEVEL, 2).unwrap()
}

fn small_tree() -> TreeConfig {
    TreeConfig::new(CAPACITY, BLOCK_BYTES, small_geometry(), 20)
}

fn small_path(seal: Seal) -> PathOram<MemoryStore, Coins> {
    let config = small_tree();
    let store = memory(&config, LayoutKind::Heap);
    PathOram::path(&config, seal.sealer(), store, Coins::new()).unwrap()
}

fn small_raw(seal: Seal) -> RawOram<MemoryStore, Coins> {
    let config = RawConfig::of_tree(small_tree(), EVICT_PERIOD);
    let store = memory(&config.tree, LayoutKind::Heap);
    RawOram::raw(&config, seal.sealer(), store, Coins::new()).unwrap()
}

fn memory(config: &TreeConfig, layout: LayoutKind) -> MemoryStore {
    MemoryStore::new(&[config.shape().unwrap()], layout).unwrap()
}

#[derive(Clone, Copy)]
enum Seal {
    Aes,
    Null,
}

impl Seal {
    const KEY: [u8; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    fn sealer(self) -> Sealer {
        match self {
            Self::Aes => Sealer::aes128(Key::from_bytes(Self::KEY), TreeId(0)),
            Self::Null => Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets()),
        }
    }
}

struct Request {
    address: u64,
    /// The fill byte of a write; `None` is a read.
    fill: Option<u8>,
}

const fn write(address: u64, fill: u8) -> Request {
    Request { address, fill: Some(fill) }
}

const fn read(address: u64) -> Request {
    Request { address, fill: None }
}

/// The requests. In the fill byte of a write, the high hexadecimal digit is the address, and the
/// low digit is the number of the request.
const WORKLOAD: [Request; 12] = [
    write(3, 0x30),
    write(0, 0x01),
    write(6, 0x62),
    read(3),
    write(5, 0x54),
    write(3, 0x35),
    read(1),
    write(2, 0x27),
    write(4, 0x48),
    read(6),
    write(1, 0x1A),
    write(0, 0x0B),
];

impl Request {
    fn data(&self) -> Option<Vec<u8>> {
        self.fill.map(|fill| vec![fill; BLOCK_BYTES])
    }

    fn serve(&self, oram: &mut (impl Oram + ?Sized)) -> Result<(), Error> {
        match self.data() {
            Some(data) => oram.write(self.address, &data),
            None => oram.read(self.address, &mut [0; BLOCK_BYTES]),
        }
    }
}

/// `SplitMix64` with seed 0: coins that can be reproduced in any language. Not for secrets.
struct Coins(u64);

impl Coins {
    fn new() -> Self {
        Self(0)
    }
}

impl TryRng for Coins {
    type Error = Infallible;

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        Ok(z ^ z >> 31)
    }

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|word| word as u32)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.try_next_u64()?.to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Coins {}

/// Path or RAW ORAM in inspectable memory.
trait OnMemory: Front {
    fn memory(&mut self) -> &mut MemoryStore;
}

impl OnMemory for PathOram<MemoryStore, Coins> {
    fn memory(&mut self) -> &mut MemoryStore {
        self.store_mut()
    }
}

impl OnMemory for RawOram<MemoryStore, Coins> {
    fn memory(&mut self) -> &mut MemoryStore {
        self.store_mut()
    }
}

// ───────────────────────────── the files ─────────────────────────────

/// The text of a golden vector: the leaves of the paths read, the blocks in the stash, and the
/// contents of storage.
fn vector(oram: &mut impl OnMemory, leaves: &[Leaf]) -> String {
    let leaves: Vec<_> = leaves.iter().map(|leaf| leaf.0).collect();
    let stash: Vec<_> = oram.stash().addresses().collect();
    format!(
        "leaves of the paths read {leaves:?}\nblocks left in the stash {stash:?}\n{}",
        Storage(oram.memory()).dump()
    )
}

fn assert_golden(name: &str, actual: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/{name}.txt"));
    if std::env::var_os("OBLIVIO_WRITE_GOLDEN").is_some() {
        std::fs::write(&file, actual).unwrap();
    }
    let golden = std::fs::read_to_string(&file)
        .unwrap_or_else(|error| panic!("{name}: {error}; set OBLIVIO_WRITE_GOLDEN=1 to write it"));
    assert!(
        golden == actual,
        "the format of {name} has changed. If it was meant to, write its document, its version, \
         and then the vectors with OBLIVIO_WRITE_GOLDEN=1.\nexpected:\n{golden}\nfound:\n{actual}"
    );
}

/// The buckets of a small tree, as bytes.
struct Storage<'a>(&'a mut MemoryStore);

impl Storage<'_> {
    const COUNTER_BYTES: usize = 8;
    const TABLE_BYTES: usize = 16;

    fn part(&mut self, bucket: BucketId, part: Part) -> &mut [u8] {
        let piece = Piece { tree: TreeId(0), bucket, part };
        let span = self.0.span(&piece).expect("the tree has this bucket");
        &mut self.0.contents_mut()[span.start..][..span.bytes]
    }

    /// The addresses in a bucket, one byte per slot; 0xFF is a dummy.
    fn addresses(&mut self, bucket: BucketId) -> &mut [u8] {
        &mut self.part(bucket, Part::Header)[Self::COUNTER_BYTES..]
    }

    /// The leaves in a bucket, one byte per slot.
    fn leaves(&mut self, bucket: BucketId) -> &mut [u8] {
        let tables = &mut self.part(bucket, Part::Whole)[Self::COUNTER_BYTES..];
        &mut tables[Self::TABLE_BYTES..][..Self::TABLE_BYTES]
    }

    /// Finds a block in a bucket below the root. Returns its bucket, its slot and its address.
    fn block_below_the_root(&mut self) -> (BucketId, usize, u64) {
        let slots = Self::buckets().skip(1).flat_map(|bucket| [(bucket, 0), (bucket, 1)]);
        slots
            .map(|(bucket, slot)| (bucket, slot, u64::from(self.addresses(bucket)[slot])))
            .find(|(_, _, address)| *address < CAPACITY)
            .expect("the workload leaves blocks below the root")
    }

    fn buckets() -> impl Iterator<Item = BucketId> {
        (0..small_geometry().buckets()).map(BucketId)
    }

    fn dump(&mut self) -> String {
        Self::buckets().map(|bucket| self.dump_bucket(bucket)).collect()
    }

    fn dump_bucket(&mut self, bucket: BucketId) -> String {
        let (level, index) = (bucket.level(), bucket.index());
        let counter = hex(&self.part(bucket, Part::Header)[..Self::COUNTER_BYTES]);
        let addresses = hex(self.addresses(bucket));
        let leaves = hex(self.leaves(bucket));
        let [slot_0, slot_1] = [0, 1].map(|slot| hex(self.part(bucket, Part::Slot(slot))));
        format!(
            "\nlevel {level}, bucket {index}\n  counter    {counter}\n  addresses  {addresses}\n  \
             leaves     {leaves}\n  block 0    {slot_0}\n  block 1    {slot_1}\n"
        )
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
