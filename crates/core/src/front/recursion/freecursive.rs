//! Freecursive ORAM (Fletcher et al., ASPLOS'15): the frontend of Tiny ORAM, section V-E.

mod front;
#[cfg(feature = "std")]
mod image;
mod rewrapped;

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use rand_core::CryptoRng;
use zeroize::Zeroizing;

use super::config::FreecursiveConfig;
use super::integrity::Guard;
use crate::bucket::corrupt;
use crate::error::{Error, ErrorKind, check_not_broken};
use crate::front::{Access, FrontTally, HitPolicy, Oram, check_requests};
use crate::geometry::Leaf;
use crate::posmap::address_space::AddressSpace;
use crate::posmap::client_map::ClientMap;
use crate::posmap::compressed::{Advance, Count, CounterFormat};
use crate::posmap::leaf_prf::{LeafPrf, Position};
use crate::posmap::plb::{LineId, Plb, PlbEntry};
use crate::scheme::{Op, Scheme, TreeConfig};

/// An ORAM with its position map in its own tree, so that the client stays small.
///
/// A request looks in the PLB, a cache on the client, for the position-map block of its data block,
/// then for the block above, and so on up to the table on the client. Starting below the first
/// block that is found, it fetches the missing blocks from the top down. Each fetch is an access to
/// the one tree. The [module](super) describes what storage learns: **the number of path
/// accesses**.
///
/// ```
/// use oblivio_core::scheme::PathScheme;
/// use oblivio_core::{FreecursiveConfig, FreecursiveOram, Key, MemoryStore, Oram, Sealer};
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
/// let mut config = FreecursiveConfig::new(10_000, 64)?;
/// config.client_entries_max = 16;
/// let tree = config.path_tree()?;
/// let store = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
/// // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
/// let sealer = Sealer::aes128(Key::draw(&mut coins), tree.tree);
/// let scheme = PathScheme::new(&tree, sealer, store)?;
/// let mut oram = FreecursiveOram::new(&config, scheme, coins)?;
///
/// for address in 0..1000 {
///     oram.write(address, &[42; 64])?;
/// }
/// let mut block = [0; 64];
/// oram.read(7, &mut block)?;
/// assert_eq!(block, [42; 64]);
/// assert!(oram.tally().accesses() < 1100, "a scan needs about one path per request");
/// # Ok::<(), oblivio_core::Error>(())
/// ```
pub struct FreecursiveOram<S, R> {
    scheme: S,
    /// The addresses of all levels. The *chain* of a data block is the block itself and, on each
    /// level above, the position-map block for it.
    space: AddressSpace,
    counters: CounterFormat,
    prf: LeafPrf,
    guard: Guard,
    /// The positions of the blocks on the position map's last level.
    table: ClientMap,
    plb: Plb,
    /// Whether the PLB keeps blocks across requests.
    keeps_plb: bool,
    /// A position-map block as it was before the current access, or on its way to the PLB. With
    /// PMMAC, its last bytes, and those of the blocks in the PLB, are an old tag.
    before: Zeroizing<Vec<u8>>,
    /// The contents of a block that is moved without being requested.
    moved: Zeroizing<Vec<u8>>,
    coins: R,
    capacity: u64,
    block_bytes: usize,
    hits: HitPolicy,
    tally: FrontTally,
    /// Whether a request started and then failed.
    broken: bool,
}

impl<S: Scheme, R: CryptoRng> FreecursiveOram<S, R> {
    /// Puts the front end in front of an empty `scheme`. The scheme must have been made with
    /// [`FreecursiveConfig::path_tree`], [`FreecursiveConfig::raw_tree`] or a tree of another
    /// geometry that is at least as large. `coins` must be unpredictable to storage.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] if the parameters are inconsistent, the scheme is too small for
    /// them, or there is no memory for the client.
    pub fn new(config: &FreecursiveConfig, scheme: S, mut coins: R) -> Result<Self, Error> {
        let space = config.space()?;
        let tree = scheme.config();
        let burst_accesses_max = config.burst_accesses_max()?;
        if tree.capacity < space.blocks()
            || tree.block_bytes != config.tree_block_bytes()
            || tree.burst_accesses_max < burst_accesses_max
        {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "the tree must have room for {} blocks of {} bytes and bursts of \
                     {burst_accesses_max} accesses: make it with path_tree() or raw_tree()",
                    space.blocks(),
                    config.tree_block_bytes()
                ),
            ));
        }
        let leaf_level = tree.geometry.leaf_level();
        let keeps_plb = config.plb_blocks > 0;
        let (plb_blocks, plb_ways) =
            if keeps_plb { (config.plb_blocks, config.plb_ways) } else { (1, 1) };
        Ok(Self {
            counters: config.counters(),
            prf: LeafPrf::draw(leaf_level, &mut coins),
            guard: Guard::new(config.integrity, &mut coins),
            table: match config.integrity.counts() {
                false => ClientMap::of_leaves(space.client_entries(), leaf_level)?,
                true => ClientMap::of_counters(space.client_entries())?,
            },
            plb: Plb::new(plb_blocks, plb_ways, config.tree_block_bytes())?,
            keeps_plb,
            before: Zeroizing::new(vec![0; config.tree_block_bytes()]),
            moved: Zeroizing::new(vec![0; config.tree_block_bytes()]),
            coins,
            capacity: config.capacity,
            block_bytes: config.block_bytes,
            hits: config.hits,
            tally: FrontTally::default(),
            broken: false,
            space,
            scheme,
        })
    }

    /// The parameters of the tree. Public.
    pub fn config(&self) -> &TreeConfig {
        self.scheme.config()
    }

    /// The scheme, which makes the accesses.
    pub fn scheme(&self) -> &S {
        &self.scheme
    }

    /// The scheme, for callers that wrap it.
    pub fn scheme_mut(&mut self) -> &mut S {
        &mut self.scheme
    }

    /// Drops the front end and returns its scheme.
    pub fn into_scheme(self) -> S {
        self.scheme
    }

    /// Levels of the position map in the tree. Public.
    pub fn depth(&self) -> usize {
        self.space.depth()
    }

    /// Bytes of client memory for the position map: the table and the PLB, without the stash.
    /// Public.
    pub fn client_bytes(&self) -> usize {
        self.table.bytes() + self.plb.bytes()
    }

    /// Counters since the front end was made. Secret.
    pub fn tally(&self) -> FrontTally {
        self.tally
    }

    /// The current leaf of the block of `level` on the chain of `data`; `None` if the block is in
    /// the PLB or the leaf is unknown. `contents` returns a position-map block that the scheme
    /// holds in memory.
    ///
    /// For simulations only, which use it to prefetch memory for later requests. On a store, such
    /// lookahead would reveal the requests.
    #[doc(hidden)]
    pub fn foresee<'b>(
        &'b self,
        level: usize,
        data: u64,
        contents: impl FnOnce(&'b S, u64) -> Option<&'b [u8]>,
    ) -> Option<Leaf> {
        let address = self.space.address(level, data);
        if level > 0 && self.plb.find(address).is_some() {
            return None;
        }
        match self.space.parent(address) {
            Err(entry) => self.table.get(entry, address, &self.prf).map(|position| position.leaf),
            Ok((parent, child)) => {
                let parent = match self.plb.find(parent) {
                    Some(line) => self.plb.block(line),
                    None => contents(&self.scheme, parent)?,
                };
                Some(self.prf.position(address, self.counters.count(parent, child)).leaf)
            }
        }
    }

    /// Serves a request. The caller has checked that the scheme is ready for all accesses that the
    /// request can make.
    fn serve(&mut self, data: u64, op: &mut Op<'_>) -> Result<(), Error> {
        let address = self.space.address(0, data);
        // IR-ORAM, Section IV-C: a hit in the F-Stash or S-Stash needs no path and no new leaf.
        if self.hits == HitPolicy::Serve && self.scheme.serve_on_client(address, op)? {
            self.tally.stash_hits += 1;
            return Ok(());
        }
        // Tiny ORAM, Section II-B: the front end makes step 1 of the access.
        self.fetch_chain(data)?;
        let positions = self.look_up_and_remap(0, data)?;
        self.tally.data_accesses += 1;
        // Tiny ORAM, Section II-B: the back end makes steps 2 to 5.
        self.guard.access(&mut self.scheme, address, positions, op)?;
        if !self.keeps_plb {
            self.flush()?;
        }
        Ok(())
    }

    /// Fetches position-map blocks of the chain of `data`, from the top down, until the block of
    /// level 1, which holds the position of `data`, is on the client.
    fn fetch_chain(&mut self, data: u64) -> Result<(), Error> {
        (1..self.lowest_held(data)?).rev().try_for_each(|level| self.fetch(level, data))
    }

    /// Finds the lowest level, from 1, whose block on the chain of `data` is in the PLB. With
    /// [`HitPolicy::Serve`], also finds a block elsewhere on the client, and moves it into the PLB.
    /// Returns `depth + 1` if only the table has an entry for the chain.
    fn lowest_held(&mut self, data: u64) -> Result<usize, Error> {
        for level in 1..=self.space.depth() {
            let address = self.space.address(level, data);
            if self.plb.find_for_use(address).is_some() {
                self.tally.plb_hits += 1;
                return Ok(level);
            }
            if self.hits == HitPolicy::Serve && self.find_on_client(address)? {
                self.tally.position_map_stash_hits += 1;
                return Ok(level);
            }
        }
        Ok(self.space.depth() + 1)
    }

    /// Moves a position-map block into the PLB without an access, if it is on the client. The block
    /// keeps its leaf, so the blocks above it are not needed.
    fn find_on_client(&mut self, address: u64) -> Result<bool, Error> {
        let Some(leaf) = self.scheme.take_on_client(address, &mut self.before)? else {
            return Ok(false);
        };
        let line = self.plb.line_for(address);
        self.release(line)?;
        self.plb.block_mut(line).copy_from_slice(&self.before);
        // The block's count is unknown. Only PMMAC needs the count, and PMMAC excludes `Serve`.
        let position = Position { leaf, count: Count::NEVER_MOVED };
        self.plb.fill(line, PlbEntry { address, position });
        Ok(true)
    }

    /// Moves the position-map block of `level` on the chain of `data` into the PLB. The parent of
    /// that block must be on the client.
    fn fetch(&mut self, level: usize, data: u64) -> Result<(), Error> {
        let (from, to) = self.look_up_and_remap(level, data)?;
        let address = self.space.address(level, data);
        let line = self.plb.line_for(address);
        self.release(line)?;
        self.tally.position_map_accesses += 1;
        let block = self.plb.block_mut(line);
        self.scheme.take(address, from.leaf, block)?;
        self.guard.open(address, from, block)?;
        self.plb.fill(line, PlbEntry { address, position: to });
        Ok(())
    }

    /// Moves the block of a cache line, if the line holds one, back into the stash. This needs no
    /// path access, because storage has never seen the block's leaf.
    fn release(&mut self, line: LineId) -> Result<(), Error> {
        if let Some(PlbEntry { address, position }) = self.plb.tag(line) {
            let block = self.plb.block_mut(line);
            self.guard.seal(address, position, block)?;
            self.scheme.append(address, position.leaf, block)?;
            self.plb.release(line);
        }
        Ok(())
    }

    /// Moves all blocks of the PLB back into the stash.
    fn flush(&mut self) -> Result<(), Error> {
        let lines: Vec<_> = self.plb.blocks().map(|(line, _)| line).collect();
        lines.into_iter().try_for_each(|line| self.release(line))
    }

    /// Step 1 of an access to the block of `level` on the chain of `data`: returns its current and
    /// its new position. If its counter overflows, moves all other blocks of its group.
    fn look_up_and_remap(
        &mut self,
        level: usize,
        data: u64,
    ) -> Result<(Position, Position), Error> {
        let Self { space, plb, prf, counters, before, table, coins, .. } = self;
        let address = space.address(level, data);
        if level == space.depth() {
            return table.look_up_and_remap(space.number(level, data), address, prf, coins);
        }
        let child = space.child(level, data);
        let parent = plb.find(space.address(level + 1, data));
        let parent = plb.block_mut(parent.expect("the parent was fetched before"));
        before.copy_from_slice(parent);
        match counters.advance(parent, child)? {
            Advance::Block { from, to } => {
                Ok((prf.position(address, from), prf.position(address, to)))
            }
            Advance::Group { to } => {
                let mut own = None;
                for (sibling, address) in space.group(level, data).enumerate() {
                    let from = self.counters.count(&self.before, sibling);
                    let (from, to) =
                        (self.prf.position(address, from), self.prf.position(address, to));
                    if sibling == child {
                        own = Some((from, to));
                    } else {
                        self.move_sibling(address, from, to)?;
                    }
                }
                Ok(own.expect("every block belongs to its own group"))
            }
        }
    }

    /// Moves a block to its new leaf because the counters of its group were reset. If the block is
    /// in the PLB, makes the same access, which finds nothing, so that the number of accesses does
    /// not reveal which blocks are there.
    fn move_sibling(&mut self, address: u64, from: Position, to: Position) -> Result<(), Error> {
        self.tally.remap_accesses += 1;
        if let Some(line) = self.plb.find(address) {
            if self.scheme.take(address, from.leaf, &mut self.moved)? {
                return Err(corrupt("a block that is on the client"));
            }
            self.plb.remap(line, to);
            return Ok(());
        }
        let data = &mut self.moved[..self.block_bytes];
        self.guard.access(&mut self.scheme, address, (from, to), &mut Op::Read(data))
    }
}

impl<S: Scheme, R: CryptoRng> Oram for FreecursiveOram<S, R> {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// Serves requests one by one, without lookahead. Storage sees a path access for each block
    /// that is fetched from the position map, moved by a group reset, or requested.
    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        check_requests(self, batch)?;
        for Access { address, op } in batch {
            check_not_broken(self.broken)?;
            self.scheme.check_ready()?;
            self.broken = true;
            self.serve(*address, op)?;
            self.broken = false;
        }
        Ok(())
    }
}
