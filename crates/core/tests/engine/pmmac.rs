//! Tests of PMMAC against a malicious store: every read returns what was last written or an error,
//! nothing panics, and damage to a live block is detected.

use std::ops::Range;

use oblivio_core::scheme::{self, Location, PathScheme, RawScheme};
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::Operation;
use oblivio_core::{
    BucketId, Error, ErrorKind, FreecursiveConfig, FreecursiveOram, Front, HitPolicy, Integrity,
    Key, LayoutKind, Leaf, MemoryStore, NoSecrecy, Sealer, StoreError, TreeConfig,
};
use oblivio_testkit::{Call, Faulty, Rule};
use proptest::prelude::*;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

// ───────────────────────────── setup ─────────────────────────────

/// Memory that drops writes on request.
type Untrusted = Faulty<MemoryStore, DropsWrites>;

/// A fault: the number of writes to drop from now on.
struct DropsWrites(u32);

impl Rule<MemoryStore> for DropsWrites {
    fn handle(&mut self, memory: &mut MemoryStore, call: &mut Call<'_>) -> Result<(), StoreError> {
        if call.operation != Operation::Write || self.0 == 0 {
            return call.forward(memory);
        }
        self.0 -= 1;
        let before = memory.contents().to_vec();
        call.forward(memory)?;
        memory.contents_mut().copy_from_slice(&before);
        Ok(())
    }
}

/// A front end over any scheme, whose store is under attack.
trait Victim: Front {
    fn store(&mut self) -> &mut Untrusted;
    fn tree(&self) -> TreeConfig;
    /// The buckets in storage that contain blocks.
    fn filled(&mut self) -> Vec<BucketId>;

    fn memory(&mut self) -> &mut MemoryStore {
        &mut self.store().store
    }
}

/// A scheme whose store can be attacked.
trait Exposed: scheme::Scheme {
    fn store(&mut self) -> &mut Untrusted;
}

impl Exposed for PathScheme<Untrusted> {
    fn store(&mut self) -> &mut Untrusted {
        self.store_mut()
    }
}

impl Exposed for RawScheme<Untrusted> {
    fn store(&mut self) -> &mut Untrusted {
        self.store_mut()
    }
}

impl<S: Exposed> Victim for FreecursiveOram<S, StdRng> {
    fn store(&mut self) -> &mut Untrusted {
        self.scheme_mut().store()
    }

    fn tree(&self) -> TreeConfig {
        self.config().clone()
    }

    fn filled(&mut self) -> Vec<BucketId> {
        let mut filled = Vec::new();
        let top = self.tree().tree_top_levels;
        let mut visit = |location, _, _| match location {
            Location::Bucket(bucket) if bucket.level() >= top => filled.push(bucket),
            _ => {}
        };
        self.scheme_mut().visit_blocks(&mut visit).unwrap();
        filled.dedup();
        filled
    }
}

#[derive(Clone, Copy, Debug)]
enum Scheme {
    Path,
    Raw,
}

/// Parameters of a front end with few blocks, whose groups are reset frequently.
#[derive(Clone, Copy, Debug)]
struct Setup {
    scheme: Scheme,
    block_bytes: usize,
    counter_bits: u32,
    client_entries_max: u64,
    plb_blocks: usize,
    tree_top_levels: u8,
    /// Whether the tree is sealed. Without a seal, an attacker can rename blocks.
    sealed: bool,
    seed: u64,
}

impl Setup {
    /// Number of blocks: a multiple of the group size on each level, so there are no padding blocks
    /// that are never requested.
    const CAPACITY: u64 = 48;

    fn config(&self) -> FreecursiveConfig {
        FreecursiveConfig::new(Self::CAPACITY, self.block_bytes)
            .unwrap()
            .with_fan_out(4)
            .with_counter_bits(self.counter_bits)
            .with_client_entries_max(self.client_entries_max)
            .with_plb_blocks(self.plb_blocks)
            .with_plb_ways(1)
            .with_hits(HitPolicy::Access)
            .with_integrity(Integrity::Pmmac)
    }

    fn build(&self) -> Box<dyn Victim> {
        let config = self.config();
        let mut coins = StdRng::seed_from_u64(self.seed);
        let top = |tree: TreeConfig| tree.with_tree_top_levels(self.tree_top_levels);
        let parts = |tree: &TreeConfig, coins: &mut StdRng| {
            let memory = MemoryStore::new(&[tree.shape().unwrap()], LayoutKind::Heap).unwrap();
            let sealer = match self.sealed {
                true => Sealer::aes128(Key::draw(coins), tree.tree),
                false => Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets()),
            };
            (sealer, Faulty::new(memory, DropsWrites(0)))
        };
        match self.scheme {
            Scheme::Path => {
                let tree = top(config.path_tree().unwrap());
                let (sealer, store) = parts(&tree, &mut coins);
                let scheme = PathScheme::new(&tree, sealer, store).unwrap();
                Box::new(FreecursiveOram::new(&config, scheme, coins).unwrap())
            }
            Scheme::Raw => {
                let mut raw = config.raw_tree().unwrap();
                raw.tree = top(raw.tree);
                let (sealer, store) = parts(&raw.tree, &mut coins);
                let scheme = RawScheme::new(&raw, sealer, store).unwrap();
                Box::new(FreecursiveOram::new(&config, scheme, coins).unwrap())
            }
        }
    }

    /// Returns 96 setups, which together use every value of each parameter.
    fn all() -> impl Iterator<Item = Self> {
        (0..96).map(|seed| Self {
            scheme: [Scheme::Path, Scheme::Raw][seed % 2],
            block_bytes: [16, 24, 64, 257][seed / 2 % 4],
            counter_bits: [1, 2, 5][seed / 8 % 3],
            client_entries_max: [3, 12, 100][seed % 3],
            plb_blocks: [0, 1, 4][seed / 24 % 3],
            tree_top_levels: [0, 0, 2][seed / 3 % 3],
            sealed: seed % 5 != 0,
            seed: seed as u64,
        })
    }
}

/// An ORAM under attack, and the contents that it should have.
struct Pair {
    oram: Box<dyn Victim>,
    shadow: Vec<Vec<u8>>,
    coins: StdRng,
}

impl Pair {
    fn new(setup: &Setup) -> Self {
        Self {
            oram: setup.build(),
            shadow: vec![vec![0; setup.block_bytes]; Setup::CAPACITY as usize],
            coins: StdRng::seed_from_u64(!setup.seed),
        }
    }

    /// Makes one random request and checks the answer.
    fn request(&mut self) -> Result<(), Error> {
        let few = if self.coins.random() { 3 } else { Setup::CAPACITY };
        let address = self.coins.random_range(0..few);
        if self.coins.random() {
            return self.read(address);
        }
        let mut block = vec![0; self.oram.block_bytes()];
        self.coins.fill(&mut block[..]);
        self.oram.write(address, &block)?;
        self.shadow[address as usize] = block;
        Ok(())
    }

    fn read(&mut self, address: u64) -> Result<(), Error> {
        const UNTOUCHED: u8 = 0xA5;
        let mut buffer = vec![UNTOUCHED; self.oram.block_bytes()];
        let answer = self.oram.read(address, &mut buffer);
        let is_right = buffer == self.shadow[address as usize];
        // The answer may be right and the eviction after the access find the damage.
        let is_untouched = buffer.iter().all(|byte| *byte == UNTOUCHED);
        assert!(is_right || answer.is_err() && is_untouched, "a wrong answer");
        answer
    }

    fn requests(&mut self, count: usize) -> Result<(), Error> {
        (0..count).try_for_each(|_| self.request())
    }

    fn sweep(&mut self) -> Result<(), Error> {
        (0..Setup::CAPACITY).try_for_each(|address| self.read(address))
    }

    fn write_all(&mut self) {
        for address in 0..Setup::CAPACITY {
            let block = vec![self.coins.random(); self.oram.block_bytes()];
            self.oram.write(address, &block).unwrap();
            self.shadow[address as usize] = block;
        }
    }

    /// Reads all blocks. Checks that the damage is reported as `Corrupt`, without a number in the
    /// message, and that later reads are refused.
    #[track_caller]
    fn assert_caught(mut self, what: &str) {
        let error = self.sweep().expect_err(what);
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{what}: {error}");
        let mentions_a_number = error.to_string().bytes().any(|byte| byte.is_ascii_digit());
        assert!(!mentions_a_number, "an address is secret: {error}");
        for _ in 0..3 {
            assert_eq!(self.read(0).unwrap_err().kind(), ErrorKind::MustReopen, "{what}");
        }
    }

    fn bucket(&mut self, bucket: BucketId, part: Part) -> Range<usize> {
        let span = self.oram.memory().span(&Piece { tree: TreeId(0), bucket, part }).unwrap();
        span.start..span.start + span.bytes
    }

    fn snapshot(&mut self) -> Vec<u8> {
        self.oram.memory().contents().to_vec()
    }

    fn replay(&mut self, snapshot: &[u8], span: Range<usize>) {
        let now = &mut self.oram.memory().contents_mut()[span.clone()];
        now.copy_from_slice(&snapshot[span]);
    }
}

// ───────────────────────────── honest storage ─────────────────────────────

#[test]
fn honest_runs_never_fail() {
    let mut remaps = 0;
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        for _ in 0..3 {
            pair.requests(150).unwrap_or_else(|error| panic!("{error}: {setup:?}"));
            pair.sweep().unwrap();
            pair.oram.check_invariants().unwrap();
        }
        remaps += pair.oram.counters().front.remap_accesses;
    }
    assert!(remaps > 10_000, "{remaps}");
}

// ───────────────────────────── attacks ─────────────────────────────

#[test]
fn a_flipped_bit_in_a_slot_is_detected() {
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        pair.write_all();
        let buckets = pair.oram.filled();
        assert!(!buckets.is_empty());
        let bucket = buckets[pair.coins.random_range(0..buckets.len())];
        // Flip one bit of every slot, because one of the slots holds a live block.
        let slots = pair.oram.tree().geometry.slots(usize::from(bucket.level()));
        for slot in 0..slots as u16 {
            let span = pair.bucket(bucket, Part::Slot(slot));
            let bit = pair.coins.random_range(0..8 * span.len());
            pair.oram.memory().contents_mut()[span.start + bit / 8] ^= 1 << (bit % 8);
        }
        pair.assert_caught(&format!("a flipped bit, {setup:?}"));
    }
}

#[test]
fn a_rolled_back_tree_is_detected() {
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        pair.write_all();
        let snapshot = pair.snapshot();
        pair.sweep().unwrap();
        assert!(!pair.oram.filled().is_empty());
        pair.oram.memory().contents_mut().copy_from_slice(&snapshot);
        pair.assert_caught(&format!("an old tree, {setup:?}"));
    }
}

#[test]
fn an_empty_tree_is_detected() {
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        pair.sweep().unwrap();
        pair.oram.memory().contents_mut().fill(0);
        // Even if only zeros were read: the absence of a block must be authenticated.
        pair.assert_caught(&format!("an empty tree, {setup:?}"));
    }
}

#[test]
fn a_rolled_back_bucket_that_hides_a_block_is_detected() {
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        let snapshot = pair.snapshot();
        pair.write_all();
        let buckets = pair.oram.filled();
        let bucket = buckets[pair.coins.random_range(0..buckets.len())];
        // The empty bucket from before the first write: its blocks are missing.
        let span = pair.bucket(bucket, Part::Whole);
        pair.replay(&snapshot, span);
        pair.assert_caught(&format!("an old bucket, {setup:?}"));
    }
}

#[test]
fn a_rolled_back_path_is_detected() {
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        pair.write_all();
        let snapshot = pair.snapshot();
        pair.write_all();
        let buckets = pair.oram.filled();
        let deepest = *buckets.last().unwrap();
        for level in setup.tree_top_levels..=deepest.level() {
            let ancestor = BucketId::on_path(Leaf(deepest.index()), level);
            let span = pair.bucket(ancestor, Part::Whole);
            pair.replay(&snapshot, span);
        }
        pair.assert_caught(&format!("an old path, {setup:?}"));
    }
}

#[test]
fn exchanged_buckets_are_detected() {
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        pair.write_all();
        let buckets = pair.oram.filled();
        let mut pairs = buckets.iter().zip(&buckets[1..]).filter(|(a, b)| a.level() == b.level());
        let (one, other) = pairs.next_back().expect("a level has two buckets with blocks");
        let spans = [one, other].map(|bucket| pair.bucket(*bucket, Part::Whole));
        let snapshot = pair.snapshot();
        let memory = pair.oram.memory().contents_mut();
        memory[spans[0].clone()].copy_from_slice(&snapshot[spans[1].clone()]);
        memory[spans[1].clone()].copy_from_slice(&snapshot[spans[0].clone()]);
        pair.assert_caught(&format!("two buckets in each other's place, {setup:?}"));
    }
}

/// Tests that an exchange of two blocks with equal counts is detected. The tree has no seal, so an
/// attacker can put each block under the other's address.
#[test]
fn exchanged_blocks_are_detected() {
    for setup in Setup::all() {
        let setup = Setup { sealed: false, client_entries_max: 100, tree_top_levels: 0, ..setup };
        let mut pair = Pair::new(&setup);
        pair.write_all();
        for bucket in pair.oram.filled() {
            let slots = pair.oram.tree().geometry.slots(usize::from(bucket.level())) as u16;
            for slot in (1..slots).step_by(2) {
                let [one, other] =
                    [slot - 1, slot].map(|slot| pair.bucket(bucket, Part::Slot(slot)));
                let now = pair.snapshot();
                pair.oram.memory().contents_mut()[one.clone()].copy_from_slice(&now[other.clone()]);
                pair.oram.memory().contents_mut()[other].copy_from_slice(&now[one]);
            }
        }
        pair.assert_caught(&format!("blocks under other names, {setup:?}"));
    }
}

/// Tests that reading a block that was never accessed fails if an attacker has stored other data
/// under its address in a tree without a seal.
#[test]
fn a_forged_block_is_detected() {
    const PLANTED: u64 = 7;
    for setup in Setup::all() {
        let setup = Setup { sealed: false, client_entries_max: 100, tree_top_levels: 0, ..setup };
        let mut pair = Pair::new(&setup);
        (0..30).for_each(|_| pair.read(0).unwrap());
        let slots = pair.oram.tree().geometry.slots(0) as u16;
        let root = pair.bucket(BucketId::ROOT, Part::Header);
        let slot = pair.bucket(BucketId::ROOT, Part::Slot(slots - 1));
        let memory = pair.oram.memory().contents_mut();
        // The addresses follow the counter, one byte each.
        memory[root][8 + usize::from(slots) - 1] = PLANTED as u8;
        memory[slot].fill(0x55);
        let error = pair.read(PLANTED).expect_err("the block was never written");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{setup:?}");
    }
}

#[test]
fn dropped_writes_are_detected() {
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        pair.write_all();
        pair.oram.store().rule.0 = u32::MAX;
        let error = (0..5).find_map(|_| pair.sweep().err());
        assert_eq!(error.expect("the writes were needed").kind(), ErrorKind::Corrupt, "{setup:?}");
    }
}

/// Replays an old copy of the first bucket in storage between requests, so that stale copies of
/// blocks come to the stash next to the current ones. Each access must return the right answer or
/// an error.
#[test]
fn a_stale_copy_beside_the_block_never_answers() {
    let mut refused = 0;
    for setup in Setup::all() {
        let mut pair = Pair::new(&setup);
        pair.write_all();
        let snapshot = pair.snapshot();
        for _ in 0..20 {
            if pair.requests(3).is_err() {
                refused += 1;
                break;
            }
            let root = pair.bucket(BucketId::on_path(Leaf(0), setup.tree_top_levels), Part::Whole);
            pair.replay(&snapshot, root);
        }
    }
    assert!(refused > 50, "{refused}");
}

/// An action of the attacker between requests.
#[derive(Clone, Debug)]
enum Attack {
    None,
    Flip(usize),
    Noise(usize),
    ReplayTree,
    ReplayBucket(usize),
    ReplayPath(usize),
    Swap(usize, usize),
    DropWrites(u32),
    Snapshot,
}

fn attack() -> impl Strategy<Value = Attack> {
    let any = any::<usize>;
    prop_oneof![
        4 => Just(Attack::None),
        2 => any().prop_map(Attack::Flip),
        1 => any().prop_map(Attack::Noise),
        1 => Just(Attack::ReplayTree),
        3 => any().prop_map(Attack::ReplayBucket),
        3 => any().prop_map(Attack::ReplayPath),
        1 => (any(), any()).prop_map(|(one, other)| Attack::Swap(one, other)),
        2 => (1u32..4).prop_map(Attack::DropWrites),
        2 => Just(Attack::Snapshot),
    ]
}

impl Pair {
    fn suffer(&mut self, attack: &Attack, snapshot: &mut Vec<u8>) {
        let (geometry, top) = (self.oram.tree().geometry, self.oram.tree().tree_top_levels);
        let leaf_of = |n: usize| Leaf(n as u64 % geometry.leaves());
        let bucket_of = |n: usize| BucketId(n as u64 % geometry.buckets());
        match *attack {
            Attack::None => {}
            Attack::Flip(bit) => {
                let memory = self.oram.memory().contents_mut();
                let byte = bit / 8 % memory.len();
                memory[byte] ^= 1 << (bit % 8);
            }
            Attack::Noise(bucket) => {
                let span = self.bucket(bucket_of(bucket), Part::Whole);
                self.coins.fill(&mut self.oram.memory().contents_mut()[span]);
            }
            Attack::ReplayTree => self.oram.memory().contents_mut().copy_from_slice(snapshot),
            Attack::ReplayBucket(bucket) => {
                let span = self.bucket(bucket_of(bucket), Part::Whole);
                self.replay(snapshot, span);
            }
            Attack::ReplayPath(leaf) => {
                for level in top..=geometry.leaf_level() {
                    let span = self.bucket(BucketId::on_path(leaf_of(leaf), level), Part::Whole);
                    self.replay(snapshot, span);
                }
            }
            Attack::Swap(one, other) => {
                let spans = [one, other].map(|n| self.bucket(bucket_of(n), Part::Whole));
                let now = self.snapshot();
                let bytes = spans[0].len().min(spans[1].len());
                let memory = self.oram.memory().contents_mut();
                memory[spans[0].clone()][..bytes].copy_from_slice(&now[spans[1].clone()][..bytes]);
                memory[spans[1].clone()][..bytes].copy_from_slice(&now[spans[0].clone()][..bytes]);
            }
            Attack::DropWrites(writes) => self.oram.store().rule.0 = writes,
            Attack::Snapshot => *snapshot = self.snapshot(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(300)
    })]

    /// Tests that no sequence of attacks causes a panic or a wrong answer (`request` checks the
    /// answers), and that the handle refuses work once it has reported `Corrupt`.
    #[test]
    fn no_attack_causes_a_wrong_answer(
        setup in 0usize..96,
        attacks in prop::collection::vec((attack(), 1usize..12), 1..40),
    ) {
        let setup = Setup::all().nth(setup).unwrap();
        let mut pair = Pair::new(&setup);
        pair.write_all();
        let mut snapshot = pair.snapshot();
        for (attack, requests) in attacks {
            pair.suffer(&attack, &mut snapshot);
            if let Err(error) = pair.requests(requests) {
                prop_assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::StashFull));
                if error.kind() == ErrorKind::Corrupt {
                    prop_assert_eq!(pair.read(0).unwrap_err().kind(), ErrorKind::MustReopen);
                }
                break;
            }
        }
    }
}
