//! A position map in smaller trees on the same servers, so that the client keeps as much however many blocks there are (section 3.3; `docs/adr/0017`).
//!
//! The trees are S³ORAMs each: tree 0 holds the data, and tree *i* + 1 tells of each block of tree *i* to which leaf it is mapped. Of the last the client keeps that itself. An access goes through all of them,
//! the smallest first, so what servers see follows from the number of accesses, but for leaves, which are drawn, and shares.
//!
//! ```text
//! for each tree, from the last to the first                            one trip
//!   metadata of the path to the leaf that the tree before has told ──►  with the write to the tree before
//!   find the slot whose block it is
//!   select it: the query is a share of its mark, too               ──►  one trip
//!   map block: take the leaf of the next tree's block, draw it another
//!   write it to the root, mapped to a leaf that was drawn before
//! the last write, and what evictions have to know                  ──►  one trip
//! every A accesses: the matrices of all trees                      ──►  one trip, and rounds between servers
//! ```
//!
//! Which slot holds a block, its slot says ([`metadata`](crate::server::Server::metadata)), in shares that evictions move with the block. So nothing but matrices goes up for an eviction, and no metadata is ever written back: a block that is taken leaves a mark, for which
//! servers use the query that they have.
//!
//! ```
//! use oblivio_shares::field::Gf256;
//! use oblivio_shares::recursive::{InProcess, Levels, MapShape, RecursiveClient};
//! use oblivio_shares::sharing::Parties;
//! use oblivio_shares::tree::Preset;
//! use rand::{SeedableRng, rngs::StdRng};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // In earnest, coins come from the system, and servers are machines of others.
//! let mut coins = StdRng::seed_from_u64(1);
//! let parties = Parties::new(3, 1)?;
//! let shape = MapShape { block_bytes: 64, client_entries_max: 16 };
//! let levels = Levels::new::<Gf256>(1000, 4096, Preset::SMALL, shape)?;
//! assert_eq!(levels.count(), 2);
//! let mut servers = InProcess::<Gf256>::new(parties, &levels, &mut coins)?;
//! let mut client = RecursiveClient::<Gf256>::new(parties, levels)?;
//! client.access(7, Some(&[1; 4096]), &mut servers, &mut coins)?;
//! assert_eq!(client.access(7, None, &mut servers, &mut coins)?[..], [1; 4096]);
//! # Ok(())
//! # }
//! ```
//!
//! This client is neither durable nor authenticated: servers do what they are told, and are in memory. That of volumes is in [`durable`](crate::durable), on the same trees, and seals what is in them.

mod in_process;
mod levels;
pub(crate) mod map_block;
pub(crate) mod mapped_tree;
pub(crate) mod metadata;
mod servers;

pub use in_process::{AccessError, InProcess};
pub(crate) use levels::Sealed;
pub use levels::{Level, Levels, MapShape};
pub use servers::{Answers, Ask, Asked, Servers};

use std::mem;

use oblivio_core::Leaf;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

use crate::client::{ClientError, Occupant};
use crate::field::Field;
use crate::sharing::Parties;
use map_block::Mapped;
use mapped_tree::MappedTree;

/// A client that keeps no more than [`MapShape`] says, however many blocks there are.
pub struct RecursiveClient<F> {
    levels: Levels,
    /// That of the data first.
    trees: Vec<MappedTree<F>>,
    /// Of each block of the last tree, one more than the leaf that it is mapped to, or zero. Secret.
    client_map: Zeroizing<Vec<u32>>,
    /// An access has begun, and has not come to its end.
    is_broken: bool,
}

/// What an access does in one tree.
struct Visit {
    tree: usize,
    address: usize,
    /// To which leaf the block is mapped.
    mapped: Option<Leaf>,
    /// To which it is mapped from then on.
    to: Leaf,
}

impl<F: Field> RecursiveClient<F> {
    /// Of blocks that are all zeros.
    ///
    /// # Errors
    /// [`ClientError::NoSuchBlock`] where a tree is too small for its blocks.
    pub fn new(parties: Parties, levels: Levels) -> Result<Self, ClientError> {
        let trees = levels.iter().map(|level| MappedTree::new(parties, *level));
        let trees = trees.collect::<Result<_, _>>()?;
        let client_map = Zeroizing::new(vec![0; levels.client_entries()]);
        Ok(Self { levels, trees, client_map, is_broken: false })
    }

    /// How many evictions there were in each tree. Public.
    pub fn evictions(&self) -> u64 {
        self.trees.first().map_or(0, MappedTree::evictions)
    }

    /// Reads a block, and puts another in its place if there is one (Protocol 2, in each of the trees). Answers what it was before.
    ///
    /// # Errors
    /// [`ClientError::NoSuchBlock`] and [`ClientError::BlockLength`], when nothing is changed. After any other, of the client or of the servers, each access fails with [`ClientError::Broken`].
    pub fn access<S: Servers<F::Element, Error: From<ClientError>>>(
        &mut self,
        address: usize,
        new: Option<&[F::Element]>,
        servers: &mut S,
        coins: &mut dyn CryptoRng,
    ) -> Result<Zeroizing<Vec<F::Element>>, S::Error> {
        let data = self.levels.level(0);
        if self.is_broken {
            return Err(ClientError::Broken.into());
        }
        if address as u64 >= data.blocks {
            return Err(ClientError::NoSuchBlock.into());
        }
        if new.is_some_and(|new| new.len() != data.block_elements) {
            return Err(ClientError::BlockLength.into());
        }
        self.is_broken = true;
        let block = self.visit_all(address, new, servers, coins)?;
        self.is_broken = false;
        Ok(block)
    }

    fn visit_all<S: Servers<F::Element, Error: From<ClientError>>>(
        &mut self,
        address: usize,
        new: Option<&[F::Element]>,
        servers: &mut S,
        coins: &mut dyn CryptoRng,
    ) -> Result<Zeroizing<Vec<F::Element>>, S::Error> {
        let addresses = self.addresses(address);
        let mut visit = self.first_visit(&addresses, coins);
        // What goes along with the next question.
        let mut asked = Vec::new();
        loop {
            let mut block = self.fetch(&visit, &mut asked, servers, coins)?;
            let Visit { tree, address, to, .. } = visit;
            let next = match tree.checked_sub(1) {
                None => None,
                Some(below) => {
                    let (map, address) = (self.levels.level(below).map, addresses[below]);
                    let to = self.trees[below].draw_leaf(coins);
                    let mapped = Mapped { leaf: to, write: 0 };
                    let before = map.replace::<F>(&mut block, address % map.entries(), mapped)?;
                    let mapped = before.map(|before| before.leaf);
                    Some(Visit { tree: below, address, mapped, to })
                }
            };
            let written = if next.is_none() { new.unwrap_or(&block) } else { &block };
            let slot = self.trees[tree].slot(Some(Occupant { label: address, leaf: to }), written);
            let writes = self.trees[tree].writes(&slot, coins);
            asked.push(Asked { tree, ask: Ask::Write(writes) });
            match next {
                Some(next) => visit = next,
                None => {
                    self.finish(asked, servers, coins)?;
                    return Ok(block);
                }
            }
        }
    }

    /// Of each tree, the block that the access is for.
    fn addresses(&self, address: usize) -> Zeroizing<Vec<usize>> {
        let mut addresses = Zeroizing::new(vec![address; self.levels.count()]);
        for (below, level) in self.levels.iter().take(addresses.len() - 1).enumerate() {
            addresses[below + 1] = addresses[below] / level.map.entries();
        }
        addresses
    }

    /// That of the last tree, of which the client knows what is mapped where.
    fn first_visit(&mut self, addresses: &[usize], coins: &mut dyn CryptoRng) -> Visit {
        let tree = addresses.len() - 1;
        let (address, to) = (addresses[tree], self.trees[tree].draw_leaf(coins));
        // A tree has 2^30 leaves at most.
        let before = mem::replace(&mut self.client_map[address], to.0 as u32 + 1);
        let mapped = before.checked_sub(1).map(|leaf| Leaf(leaf.into()));
        Visit { tree, address, mapped, to }
    }

    /// The block, in two trips. With the first goes what is still to be asked.
    fn fetch<S: Servers<F::Element, Error: From<ClientError>>>(
        &mut self,
        visit: &Visit,
        asked: &mut Vec<Asked<F::Element>>,
        servers: &mut S,
        coins: &mut dyn CryptoRng,
    ) -> Result<Zeroizing<Vec<F::Element>>, S::Error> {
        let Visit { tree, address, mapped, .. } = *visit;
        let at = &mut self.trees[tree];
        // It is drawn for both.
        let drawn = at.draw_leaf(coins);
        let shown = mapped.unwrap_or(drawn);
        asked.push(Asked { tree, ask: Ask::Metadata(shown) });
        let answers = servers.trip(mem::take(asked))?.pop().unwrap_or_default();
        let position = at.find(address, mapped, shown, &answers)?;
        let ask = Ask::Select(at.queries(position, shown, coins));
        let answers = servers.trip(vec![Asked { tree, ask }])?.pop().unwrap_or_default();
        let occupant = mapped.map(|leaf| Occupant { label: address, leaf });
        Ok(at.block(occupant, &answers)?)
    }

    /// The last write, and an eviction of each tree if it is time.
    fn finish<S: Servers<F::Element, Error: From<ClientError>>>(
        &mut self,
        mut asked: Vec<Asked<F::Element>>,
        servers: &mut S,
        coins: &mut dyn CryptoRng,
    ) -> Result<(), S::Error> {
        let full: Vec<_> = self.trees.iter().map(MappedTree::must_evict).collect();
        let full: Vec<usize> = (0..full.len()).filter(|tree| full[*tree]).collect();
        for tree in &full {
            let paths = self.trees[*tree].evicted();
            asked.extend(paths.map(|leaf| Asked { tree: *tree, ask: Ask::Metadata(leaf) }));
        }
        let before = asked.len() - 2 * full.len();
        let answers = servers.trip(asked)?;
        let mut evictions = Vec::new();
        for (i, tree) in full.into_iter().enumerate() {
            let nothing = Answers::default();
            let of = |path: usize| answers.get(before + 2 * i + path).unwrap_or(&nothing);
            let evict = self.trees[tree].evict([of(0), of(1)], coins)?;
            evictions.push(Asked { tree, ask: Ask::Evict(evict) });
        }
        if !evictions.is_empty() {
            servers.trip(evictions)?;
        }
        Ok(())
    }
}
