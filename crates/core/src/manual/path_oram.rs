//! Path ORAM: a tree, a stash and a position map.
//!
//! After Tiny ORAM, section II-A; the scheme is from Stefanov et al., CCS'13.
//!
//! # The tree
//! Storage holds a binary tree of buckets with `Z = 4` slots each. Every block is mapped to a
//! uniformly random leaf, and one invariant holds at all times:
//!
//! > A block mapped to leaf `l` is in some bucket on the path to `l`, or in the stash.
//!
//! ```text
//!             ┌──┐ level 0, the root: on every path
//!           ┌─┴──┴─┐
//!          ┌┴┐    ┌┴┐ level 1
//!         ┌┴┐┌┴┐ ┌┴┐┌┴┐ level 2 = L, the leaves
//!  leaf    0  2   1  3
//! ```
//!
//! A leaf label is read from its least significant bit, which says whether to go left or right at
//! the root. So the path to leaf `l` has at level `j` the bucket with index `l mod 2^j`:
//!
//! ```
//! use oblivio_core::{BucketId, Geometry, Leaf};
//!
//! let tree = Geometry::uniform(2, 4)?;
//! let path: Vec<_> = tree.path(Leaf(1)).map(|bucket| (bucket.level(), bucket.index())).collect();
//! assert_eq!(path, [(0, 0), (1, 1), (2, 1)]);
//! assert!(BucketId::ROOT.is_on_path(Leaf(3)));
//! # Ok::<(), oblivio_core::Error>(())
//! ```
//!
//! # An access
//! 1. Look up the leaf `l` of the block in the position map, and replace it with a fresh one, `l'`.
//! 2. Read and decrypt the path to `l`. All its blocks go to the stash. By the invariant the block
//!    is there now.
//! 3. Note the new leaf `l'` with the block.
//! 4. Read or replace its contents.
//! 5. Put as many blocks of the stash as possible on the path to `l`, each as near to the leaf as
//!    its own path allows. Fill up with dummies, encrypt everything again, and write.
//!
//! [`PathScheme`](crate::scheme::PathScheme) implements these five steps.
//!
//! # Why storage learns nothing
//! Every access reads and writes one whole path. Its leaf was drawn at the last access to the
//! block, has not been revealed since, and is used once. So the sequence of paths is a sequence of
//! independent coin tosses, whatever the addresses were. Everything is encrypted under counters
//! that never repeat, so the bytes reveal nothing either. A write differs from a read only in step
//! 4, which storage cannot see.
//!
//! # PushToLeaf
//! For each block of the stash, step 5 computes how deep it may go on the path to `l`: to the
//! deepest level that the paths to `l` and to its own leaf `l'` share, as long as that bucket has a
//! free slot. Labels are read from the right, so the number of shared levels follows from the
//! trailing zeros of `l ⊕ l'`. The deepest free level is a count of leading zeros after a mask
//! (Tiny ORAM, Algorithm 1). There is no sorting, only a few instructions for each block.
//!
//! # The stash
//! Blocks that do not fit into the path stay in the stash. That these are few is the one property
//! of Path ORAM that is hard to prove: the probability that more than `R` stay falls exponentially
//! in `R`. For `Z = 4`, Tiny ORAM gives the bound `C = 78`, exceeded with probability `2^-80`.
//! `docs/stash-study.md` of the repository compares this bound with our own measurement. The bound
//! is [`TreeConfig::stash_blocks_max`](crate::TreeConfig). If the stash holds more blocks, an
//! access is refused before it touches anything, so no block is lost.
//!
//! # Try it
//! ```
//! use oblivio_core::{Front, Key, MemoryStore, Oram, PathOram, Sealer, TreeConfig};
//! use rand::{SeedableRng, rngs::StdRng};
//!
//! let mut coins = StdRng::seed_from_u64(1);
//! let config = TreeConfig::path(1000, 64)?;
//! let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
//! // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
//! let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree);
//! let mut oram = PathOram::path(&config, sealer, store, coins)?;
//! for address in 0..1000 {
//!     oram.write(address, &[address as u8; 64])?;
//! }
//! oram.check_invariants()?;
//! assert!(oram.stash().blocks() < 20);
//! # Ok::<(), oblivio_core::Error>(())
//! ```
