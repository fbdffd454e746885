//! The trivial ORAM: every access reads everything, and writes go round.
//!
//! The oldest oblivious RAM there is: touch all blocks at each access, and nobody learns which was meant (Goldreich and
//! Ostrovsky, J. ACM 1996, section 1, the trivial solution). It costs O(N) an access, and nothing else: no stash, no
//! position map, nothing that happens seldom. So it is for arrays of a few MiB, and an oracle of privacy for all other
//! schemes: what storage sees is the same, to the piece, for all uses of the same length.
//!
//! Instead of writing everything back, access `t` writes one bucket of two blocks: the block it was for, and block
//! `t mod N`, which is carried on. So after `N` accesses every block has been written anew, and the latest copy of each
//! lies in the last `N` buckets:
//!
//! ```text
//! bucket    …  t-N   t-N+1   …   t-1  │ t
//! read         └────── all of them ─┘ │ written: the block wanted, and block t mod N
//! ```
//!
//! Buckets lie on a ring of `N + W` places, bucket `t` at `t mod (N + W)`: a state outlives `W` accesses, so that a
//! client that crashed can go back to it (`docs/adr/0005-commit-protocol.md`). Number, place and version of a bucket are
//! all `t`, the number of accesses so far. The client keeps that, and which blocks have contents.

use std::ops::Range;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::section::{ERA_BYTES, Fields, strange};
use super::{
    AnyStore, Bits, Cost, Durable, DurableConfig, DurableScheme, EraStart, Fact, FactValue, Fate,
    Plan, Restore, Room, Salvage, Save, SectionSize, StateSize, Want, Wish,
};
use crate::bucket::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};
use crate::error::{Error, ErrorKind, check_sound};
use crate::front::check_request;
use crate::geometry::BucketId;
use crate::pieces::{LevelShape, Part, Piece, TreeId, TreeShape};
use crate::scheme::{Op, Sighting, WINDOW_ACCESSES_MAX};
use crate::seal::{
    BucketKind, BucketName, BucketPieces, CHECKPOINT_ERAS_MAX, Era, EraSealer, MasterKey,
    SEAL_BYTES,
};
use crate::store::BucketStore;
use crate::wiped::WipedBytes;

/// The trivial ORAM.
pub struct DurableScan;

/// What shapes one. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScanParams {
    /// How many blocks it holds (N).
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// How many accesses a state outlives (W).
    pub spare: u64,
}

const NAME: &str = "scan";

/// Every access reads all of it twice over.
const BYTES_MAX: u64 = 16 << 20;

const SPARE_MIN: u64 = 64;
const SPARE_MAX: u64 = 1 << 20;

/// Each opening leaves an era in the state, until all its buckets have been written anew. So many openings are counted.
const OPENINGS_MAX: u64 = 1024;

/// Buckets that an access reads in one trip.
const TRIP_BUCKETS: u64 = 64;

/// The address of an entry without a block.
const NOTHING: u64 = u64::MAX;

// ───────────────────────────── the scheme and its parameters ─────────────────────────────

impl DurableScheme for DurableScan {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "the trivial ORAM, in which every access reads everything: for disks of a few MiB"
    }

    fn plan(&self, wish: &Wish) -> Result<Box<dyn DurableConfig>, Error> {
        if let Some(said) = wish.of_trees().first() {
            return Err(impossible(format!(
                "the scheme `{NAME}` has no {said}: leave it out, or choose another scheme"
            )));
        }
        let blocks = wish.blocks();
        let spare = blocks.clamp(SPARE_MIN, SPARE_MAX);
        let params = ScanParams { blocks, block_bytes: wish.block_bytes, spare };
        params.check()?;
        let client_bytes = params.cost()?.client_bytes();
        if client_bytes > wish.client_bytes_max {
            return Err(impossible(format!(
                "such a volume takes {client_bytes} bytes of client memory: allow as many"
            )));
        }
        Ok(Box::new(params))
    }

    fn decode(
        &self,
        blocks: u64,
        block_bytes: u32,
        params: &[u8],
    ) -> Result<Box<dyn DurableConfig>, Error> {
        let spare = params.try_into().map(u64::from_le_bytes);
        let spare = spare.map_err(|_| impossible("parameters of `scan` have another length"))?;
        let params = ScanParams { blocks, block_bytes, spare };
        params.check()?;
        Ok(Box::new(params))
    }
}

impl ScanParams {
    fn check(&self) -> Result<(), Error> {
        let Self { blocks, block_bytes, spare } = *self;
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&(block_bytes as usize)) {
            return Err(impossible(format!(
                "a block has {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes"
            )));
        }
        if !(1..=BYTES_MAX / u64::from(block_bytes)).contains(&blocks) {
            return Err(impossible(format!(
                "the scheme `{NAME}` reads everything at each access, and so holds 1 to {BYTES_MAX} bytes in whole \
                 blocks: make it smaller, or choose another scheme"
            )));
        }
        if !(1..=SPARE_MAX).contains(&spare) {
            return Err(impossible("a state outlives 1 to 2^20 accesses"));
        }
        Ok(())
    }

    /// Places of buckets.
    fn ring(&self) -> u64 {
        self.blocks + self.spare
    }

    /// The first bucket that is ever written: it begins as if all places had been written once, with nothing.
    fn first(&self) -> u64 {
        self.ring()
    }

    /// Of so many of the latest buckets the keys are kept: those of two rounds, because an opening looks for what was in
    /// a place before.
    fn recognised(&self) -> u64 {
        2 * self.ring()
    }

    /// Bytes of a bucket in clear: two entries, each of an address and a block.
    fn table_bytes(&self) -> usize {
        2 * self.entry_bytes()
    }

    fn entry_bytes(&self) -> usize {
        8 + self.block_bytes as usize
    }

    fn bucket_bytes(&self) -> usize {
        SEAL_BYTES + self.table_bytes()
    }

    /// The level of the store's tree that has names for all places.
    fn level(&self) -> u8 {
        self.ring().next_power_of_two().trailing_zeros() as u8
    }

    fn piece(&self, tree: TreeId, number: u64) -> Piece {
        let bucket = BucketId::new(self.level(), number % self.ring());
        Piece { tree, bucket, part: Part::Whole }
    }
}

impl DurableConfig for ScanParams {
    fn scheme(&self) -> &'static str {
        NAME
    }

    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn encode(&self) -> Vec<u8> {
        self.spare.to_le_bytes().to_vec()
    }

    fn shapes(&self) -> Result<Vec<TreeShape>, Error> {
        let mut levels = vec![LevelShape::of_heads(0, 0); usize::from(self.level())];
        levels.push(LevelShape::of_heads(self.ring(), self.bucket_bytes()));
        Ok(vec![TreeShape::new(levels)])
    }

    fn cost(&self) -> Result<Cost, Error> {
        let bucket_bytes = self.bucket_bytes() as u64;
        Ok(Cost {
            tree_bytes: self.ring() * bucket_bytes,
            read_bytes_per_access: (self.blocks * bucket_bytes) as f64,
            written_bytes_per_access: bucket_bytes as f64,
            trips_per_access: self.blocks.div_ceil(TRIP_BUCKETS) as f64 + 1.0,
            position_map_depth: 0,
            position_map_bytes: self.blocks.div_ceil(8),
            blocks_on_client_bytes: bucket_bytes * TRIP_BUCKETS.min(self.blocks),
            accesses_per_checkpoint: self.spare,
        })
    }

    fn state_size(&self) -> Result<StateSize, Error> {
        // Each has a bucket of its own that storage may still hold.
        let recognised = self.recognised();
        let at_checkpoints = CHECKPOINT_ERAS_MAX.min(recognised / self.spare + 1);
        // One began before them, and one begins with the state.
        let eras = (OPENINGS_MAX + at_checkpoints).min(recognised + 2);
        let bytes = 8 + 4 + eras * ERA_BYTES as u64 + self.blocks.div_ceil(8);
        Ok(StateSize {
            whole: vec![SectionSize { sections: 1, bytes }],
            plan_bytes_per_access: 8,
            accesses_per_checkpoint: self.spare,
            evictions_per_checkpoint: 0,
        })
    }

    fn facts(&self) -> Vec<Fact> {
        vec![
            Fact::Line(
                "tree",
                "none: every access reads all blocks, and writes two of them".into(),
            ),
            Fact::Line("position map", "none".into()),
            Fact::Value("spare_accesses", FactValue::Number(self.spare)),
        ]
    }

    fn create(
        &self,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        coins: &mut dyn CryptoRng,
    ) -> Result<Box<dyn Durable>, Error> {
        let live = Bits::new(self.blocks);
        let eras = vec![Era::begin(0, &mut &mut *coins)];
        let head = Head { accesses: self.first(), eras, live };
        Ok(Box::new(ScanArray::new(self.clone(), key, trees, store, head)?))
    }

    fn restore(&self) -> Result<Box<dyn Restore>, Error> {
        Ok(Box::new(ScanRestore { params: self.clone(), head: None }))
    }
}

// ───────────────────────────── accesses ─────────────────────────────

/// All that the client keeps.
struct Head {
    /// How many there were, those that it begins with included (t). Public.
    accesses: u64,
    eras: Vec<Era>,
    /// The blocks that have contents. Secret.
    live: Bits,
}

/// Is told the number of a bucket, and what is in it, or why nothing is.
type EachBucket<'a> = dyn FnMut(u64, Result<&[u8], Error>) -> Result<(), Error> + 'a;

struct ScanArray {
    params: ScanParams,
    tree: TreeId,
    store: AnyStore,
    sealer: EraSealer,
    accesses: u64,
    /// Of the state that the client could go back to.
    kept: u64,
    live: Bits,
    /// An access was begun and has not ended well.
    broken: bool,
}

impl ScanArray {
    fn new(
        params: ScanParams,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        Head { accesses, eras, live }: Head,
    ) -> Result<Self, Error> {
        let [tree] = *trees else {
            return Err(impossible("the scheme has one tree"));
        };
        let shapes = params.shapes()?;
        if store.shape(tree) != shapes.first() {
            return Err(Error::new(
                ErrorKind::StoreMismatch,
                "the store does not have the shape of this configuration: make the store with the shapes \
                 that the configuration gives",
            ));
        }
        let sealer = EraSealer::new(key, tree, eras);
        Ok(Self { params, tree, store, sealer, accesses, kept: accesses, live, broken: false })
    }

    /// Reads the last `N` buckets, the latest first, so many in each trip, and hands over what is in each, or why
    /// nothing is. Those that were never written are left out: that they were not is public.
    fn scan(&mut self, trip_buckets: u64, each: &mut EachBucket<'_>) -> Result<(), Error> {
        let Self { params, tree, store, sealer, accesses, .. } = self;
        let oldest = accesses.saturating_sub(params.blocks).max(params.first());
        let mut table = Zeroizing::new(Vec::with_capacity(params.table_bytes()));
        let mut end = *accesses;
        while end > oldest {
            let start = end.saturating_sub(trip_buckets).max(oldest);
            let trip: Vec<_> = (start..end).rev().collect();
            let pieces: Vec<_> = trip.iter().map(|number| params.piece(*tree, *number)).collect();
            let frames = match store.read(&pieces) {
                Ok(frames) if frames.len() == trip.len() => Ok(frames),
                Ok(_) => Err(changed(trip[0] % params.ring())),
                Err(error) => Err(error.into()),
            };
            match frames {
                Ok(frames) => {
                    for (i, number) in trip.iter().enumerate() {
                        let sealed = frames.get(i);
                        let fits = sealed.len() == params.bucket_bytes();
                        let bucket = fits.then(|| sealer.verify(name(*number), sealed, &[]));
                        match bucket.flatten() {
                            Some(bucket) => {
                                bucket.open_table(&mut table);
                                each(*number, Ok(&table))?;
                            }
                            None => each(*number, Err(changed(*number % params.ring())))?,
                        }
                    }
                }
                // Whoever reads them one by one goes on without it.
                Err(error) if trip.len() == 1 => each(trip[0], Err(error))?,
                Err(error) => return Err(error),
            }
            end = start;
        }
        Ok(())
    }

    /// One access, for a block or for none.
    fn access(&mut self, wanted: Option<u64>, op: &mut Op<'_>) -> Result<(), Error> {
        let (number, block_bytes) = (self.accesses, self.params.block_bytes as usize);
        let carried = number % self.params.blocks;
        let is_carried = self.live.contains(carried);
        let was_live = wanted.is_some_and(|address| self.live.contains(address));
        let mut block = Zeroizing::new(vec![0; block_bytes]);
        let mut other = Zeroizing::new(vec![0; block_bytes]);
        let (mut found, mut found_other) = (false, false);
        self.scan(TRIP_BUCKETS, &mut |_, table| {
            for (address, bytes) in entries(table?, block_bytes) {
                // The latest comes first.
                if was_live && !found && Some(address) == wanted {
                    block.copy_from_slice(bytes);
                    found = true;
                }
                if is_carried && !found_other && address == carried {
                    other.copy_from_slice(bytes);
                    found_other = true;
                }
            }
            Ok(())
        })?;
        if found != was_live || found_other != is_carried {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "a block is nowhere: the client's state does not belong to this store",
            ));
        }
        let mut is_live = was_live;
        if let Some(address) = wanted {
            op.apply(&mut block);
            if !matches!(op, Op::Read(_)) {
                is_live = true;
                self.live.insert(address);
            }
            if address == carried {
                other.copy_from_slice(&block);
            }
        }
        let mut table = Zeroizing::new(Vec::with_capacity(self.params.table_bytes()));
        for (address, bytes) in [
            (wanted.filter(|_| is_live), &block),
            (Some(carried).filter(|carried| self.live.contains(*carried)), &other),
        ] {
            table.extend_from_slice(&address.unwrap_or(NOTHING).to_le_bytes());
            table.extend_from_slice(bytes);
        }
        let Self { params, tree, store, sealer, .. } = self;
        store.write(&[params.piece(*tree, number)], &mut |mut blanks| {
            let pieces = BucketPieces { head: 0, slots: None };
            sealer.seal(name(number), &table, std::iter::empty(), &mut blanks, pieces);
            blanks.sealed()
        })?;
        self.accesses += 1;
        Ok(())
    }

    fn accesses_left(&self) -> u64 {
        self.params.spare - (self.accesses - self.kept)
    }

    fn check_range(&self, range: &Range<u64>) -> Result<(), Error> {
        if range.start <= range.end && range.end <= self.params.blocks {
            Ok(())
        } else {
            Err(invalid("the range goes past the end"))
        }
    }
}

/// How a bucket is called under the seal.
fn name(number: u64) -> BucketName {
    BucketName { eviction: number, level: 0, kind: BucketKind::Blocks }
}

/// The blocks of an opened bucket.
fn entries(table: &[u8], block_bytes: usize) -> impl Iterator<Item = (u64, &[u8])> {
    table.chunks(8 + block_bytes).filter_map(|entry| {
        let (address, block) = entry.split_first_chunk()?;
        Some((u64::from_le_bytes(*address), block))
    })
}

impl Durable for ScanArray {
    fn blocks(&self) -> u64 {
        self.params.blocks
    }

    fn block_bytes(&self) -> usize {
        self.params.block_bytes as usize
    }

    fn position_map_bytes(&self) -> usize {
        self.params.blocks.div_ceil(8) as usize
    }

    fn buckets_in_storage(&self) -> u64 {
        self.params.blocks
    }

    fn store_mut(&mut self) -> &mut (dyn BucketStore + Send) {
        &mut *self.store
    }

    fn into_store(self: Box<Self>) -> AnyStore {
        self.store
    }

    fn room(&self) -> Result<Room, Error> {
        check_sound(self.broken)?;
        let accesses = self.accesses_left();
        Ok(Room { accesses, evictions: accesses, must_evict: false })
    }

    fn window_accesses_max(&self) -> usize {
        WINDOW_ACCESSES_MAX
    }

    fn needs(&self, addresses: &[u64]) -> Result<Vec<u64>, Error> {
        if addresses.iter().all(|address| *address < self.params.blocks) {
            Ok(Vec::new())
        } else {
            Err(invalid("the address is past the end"))
        }
    }

    fn needs_to_forget(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        self.check_range(&range).map(|()| Vec::new())
    }

    fn plan(&mut self, wanted: &[Want], _: &mut dyn CryptoRng) -> Result<Plan, Error> {
        let mut section = Zeroizing::new(Vec::with_capacity(8 * wanted.len()));
        for want in wanted {
            let address = match *want {
                Want::Block(address) if address < self.params.blocks => address,
                Want::Nothing => NOTHING,
                Want::Block(_) | Want::Position(_) => {
                    return Err(invalid("the address is past the end"));
                }
            };
            section.extend_from_slice(&address.to_le_bytes());
        }
        Ok(Plan::new(wanted.len(), section))
    }

    fn blocks_of(&self, plan: &Plan) -> Result<Vec<Option<u64>>, Error> {
        self.params.blocks_of(plan)
    }

    fn carry_out(&mut self, plan: &Plan, ops: &mut [Op<'_>]) -> Result<(), Error> {
        check_sound(self.broken)?;
        let blocks = self.params.blocks_of(plan)?;
        if blocks.len() != ops.len() || blocks.len() as u64 > self.accesses_left() {
            return Err(invalid("there are more or fewer accesses than operations, or than room"));
        }
        for (address, op) in blocks.iter().zip(&*ops) {
            if let Some(address) = address {
                check_request(*address, op, self.params.blocks, self.block_bytes())?;
            }
        }
        self.broken = true;
        for (address, op) in blocks.iter().zip(ops) {
            self.access(*address, op)?;
        }
        self.broken = false;
        Ok(())
    }

    fn evict(&mut self) -> Result<(), Error> {
        Err(invalid("this scheme has no stash, and nothing to evict"))
    }

    fn forget(&mut self, range: Range<u64>) -> Result<(), Error> {
        check_sound(self.broken)?;
        self.check_range(&range)?;
        self.live.remove_all(range);
        Ok(())
    }

    fn may_hold_contents(&self) -> bool {
        (0..self.params.blocks).any(|address| self.live.contains(address))
    }

    fn flush(&mut self) -> Result<(), Error> {
        check_sound(self.broken)?;
        self.broken = true;
        self.store.flush()?;
        self.broken = false;
        Ok(())
    }

    fn begin_era(&mut self, start: EraStart, coins: &mut dyn CryptoRng) {
        let age_min = match start {
            EraStart::Opening => 0,
            EraStart::Checkpoint => self.params.recognised() / CHECKPOINT_ERAS_MAX,
        };
        if self.accesses - self.sealer.latest().first_eviction >= age_min {
            self.sealer.begin_era(self.accesses, &mut &mut *coins);
        }
    }

    fn save(&self, _: Save, out: &mut dyn FnMut(&[u8])) {
        let mut section = WipedBytes::default();
        section.extend_from_slice(&self.accesses.to_le_bytes());
        let eras: Vec<_> = self.sealer.eras().collect();
        section.extend_from_slice(&(eras.len() as u32).to_le_bytes());
        for era in eras {
            section.extend_from_slice(&era.first_eviction.to_le_bytes());
            section.extend_from_slice(&era.salt);
        }
        for start in (0..self.params.blocks).step_by(8) {
            let bits = (0..8).map(|i| u8::from(self.live.contains(start + i)) << i);
            section.push(bits.sum());
        }
        out(&section);
    }

    fn bring_back(&mut self, _: &[u8]) -> Result<(), Error> {
        Ok(())
    }

    fn settle(&mut self) {
        self.kept = self.accesses;
        let oldest = self.accesses.saturating_sub(self.params.recognised());
        self.sealer.forget_before(oldest);
    }

    fn sight(&mut self, accesses: u64, _: u64) -> Result<Sighting, Error> {
        check_sound(self.broken)?;
        let Self { params, tree, store, sealer, .. } = self;
        let number = self.accesses + accesses;
        let frames = store.read(&[params.piece(*tree, number)])?;
        let sealed = if frames.len() == 1 { frames.get(0) } else { &[] };
        let fits = sealed.len() == params.bucket_bytes();
        let is_of = |number| fits && sealer.verify(name(number), sealed, &[]).is_some();
        let before = number.checked_sub(params.ring()).filter(|it| *it >= params.first());
        let holds_what_was_before = || match before {
            Some(before) => is_of(before),
            None => fits && sealed.iter().all(|byte| *byte == 0),
        };
        if is_of(number) {
            Ok(Sighting::Seen)
        } else if holds_what_was_before() {
            Ok(Sighting::NotYet)
        } else {
            Ok(Sighting::Unclear)
        }
    }

    fn check(&mut self, progress: &mut dyn FnMut(u64)) -> Result<u64, Error> {
        check_sound(self.broken)?;
        let (blocks, block_bytes) = (self.params.blocks, self.block_bytes());
        let (mut found, mut read) = (Bits::new(blocks), 0);
        self.scan(1, &mut |_, table| {
            for (address, _) in entries(table?, block_bytes).filter(|it| it.0 < blocks) {
                found.insert(address);
            }
            read += 1;
            progress(read);
            Ok(())
        })?;
        progress(blocks);
        let live = (0..blocks).filter(|address| self.live.contains(*address));
        let lost = live.clone().filter(|address| !found.contains(*address)).count();
        match lost {
            0 => Ok(live.count() as u64),
            _ => Err(Error::new(ErrorKind::Corrupt, format!("{lost} blocks are lost"))),
        }
    }

    fn salvage(
        &mut self,
        each: &mut dyn FnMut(u64, &[u8]),
        damaged: &mut dyn FnMut(&Error),
        progress: &mut dyn FnMut(u64),
    ) -> Result<Salvage, Error> {
        check_sound(self.broken)?;
        let (blocks, block_bytes) = (self.params.blocks, self.block_bytes());
        let [mut found, mut doubtful, mut live] = [(); 3].map(|()| Bits::new(blocks));
        (0..blocks).filter(|address| self.live.contains(*address)).for_each(|it| live.insert(it));
        let (mut read, mut is_any_damaged) = (0, false);
        self.scan(1, &mut |_, table| {
            match table {
                Ok(table) => {
                    for (address, bytes) in entries(table, block_bytes) {
                        if live.contains(address) && !found.contains(address) {
                            found.insert(address);
                            each(address, bytes);
                            // What is damaged is later, and could hold another copy.
                            if is_any_damaged {
                                doubtful.insert(address);
                            }
                        }
                    }
                }
                Err(error) => {
                    is_any_damaged = true;
                    damaged(&error);
                }
            }
            read += 1;
            progress(read);
            Ok(())
        })?;
        progress(blocks);
        Ok(Salvage::new(blocks, found, doubtful, live))
    }

    fn fate(&self, salvage: &Salvage, address: u64) -> Fate {
        let known = |bits: &Bits| bits.contains(address);
        match salvage.since(address) {
            Some(fate) => fate,
            None if !known(&salvage.live) => Fate::Empty,
            None if !known(&salvage.found) => Fate::Lost,
            None if known(&salvage.doubtful) => Fate::Doubtful,
            None => Fate::Found,
        }
    }
}

impl ScanParams {
    /// The block of each access of a plan.
    fn blocks_of(&self, plan: &Plan) -> Result<Vec<Option<u64>>, Error> {
        let mut fields = Fields(plan.section());
        let mut blocks = Vec::new();
        for _ in 0..plan.accesses() {
            match fields.u64()? {
                NOTHING => blocks.push(None),
                address if address < self.blocks => blocks.push(Some(address)),
                _ => return Err(strange()),
            }
        }
        fields.end()?;
        Ok(blocks)
    }
}

// ───────────────────────────── a state that comes back ─────────────────────────────

struct ScanRestore {
    params: ScanParams,
    head: Option<Head>,
}

impl Restore for ScanRestore {
    fn begin_state(&mut self) -> Result<(), Error> {
        self.head = None;
        Ok(())
    }

    fn section(&mut self, section: &[u8]) -> Result<(), Error> {
        let mut fields = Fields(section);
        let accesses = fields.count()?;
        let eras = fields.eras(accesses)?;
        let blocks = self.params.blocks;
        let bits = fields.bytes(blocks.div_ceil(8) as usize)?;
        fields.end()?;
        if self.head.is_some() || accesses < self.params.first() {
            return Err(strange());
        }
        let mut live = Bits::new(blocks);
        let is_set = |address: &u64| bits[(address / 8) as usize] >> (address % 8) & 1 == 1;
        (0..blocks).filter(is_set).for_each(|address| live.insert(address));
        self.head = Some(Head { accesses, eras, live });
        Ok(())
    }

    fn carried_out(&mut self, plan: &Plan, _: &[bool]) -> Result<(), Error> {
        self.params.blocks_of(plan).map(drop)
    }

    fn forgotten(&mut self, range: Range<u64>) -> Result<(), Error> {
        if range.start <= range.end && range.end <= self.params.blocks {
            Ok(())
        } else {
            Err(strange())
        }
    }

    fn finish(
        self: Box<Self>,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, Error> {
        let head = self.head.ok_or_else(|| invalid("the state has no head"))?;
        Ok(Box::new(ScanArray::new(self.params, key, trees, store, head)?))
    }
}

fn changed(place: u64) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "bucket {place} of the store holds changed bytes, or an older version. The storage is \
             damaged or was tampered with: nothing of it was used"
        ),
    )
}

fn impossible(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, problem)
}

fn invalid(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, problem)
}
