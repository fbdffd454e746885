//! The parameter for each technique, and the techniques that can be combined.
//!
//! Each technique of the papers is a parameter or a type. They can be combined: any row of the
//! first table goes with any other, except for the combinations in the second table.
//!
//! | technique | source | parameter or type |
//! |---|---|---|
//! | Path ORAM | Stefanov et al. | [`PathScheme`], [`TreeConfig`] |
//! | RAW ORAM | Tiny ORAM, IV | [`RawScheme`], [`RawConfig`] |
//! | rotating RAW ORAM | this project | [`DurableRawOram`], [`RotatingConfig`] |
//! | levels of different sizes (IR-Alloc) | IR-ORAM, IV-B | [`Geometry::profile`] |
//! | tree top on the client | Tiny ORAM, V | [`TreeConfig::tree_top_levels`] |
//! | a tree top found by address (IR-Stash) | IR-ORAM, IV-C | [`TreeTopKind::SetAssociative`] |
//! | hits without an access (IR-Stash) | IR-ORAM, IV-C | [`HitPolicy::Serve`] |
//! | the same in rotating RAW ORAM | IR-ORAM, IV-C | [`serve_on_client`] |
//! | flat position map | | [`FlatOram`]; rotating: [`RotatingConfig::flat`] |
//! | plain recursion | Tiny ORAM, II-B | [`RecursiveOram`] |
//! | unified tree, PLB, counters | Freecursive ORAM | [`FreecursiveOram`]; no PLB: `plb_blocks` 0 |
//! | position map in the rotating tree | this project | [`Recursion`] |
//! | integrity (PMMAC) | Freecursive ORAM | [`Integrity::Pmmac`] |
//! | delayed remapping (LLC-D) | IR-ORAM, IV-D | [`CachedOram`], [`RemapPolicy::Delayed`] |
//! | ρ | Nagarajan et al. | [`RhoOram`]; behind a [`CachedOram`] of either [`RemapPolicy`] |
//! | batches | | [`Oram::access`] with more than one request |
//! | background eviction | Ren et al. | [`Front::evict`], after [`StashFull`] |
//! | dummy accesses | | [`Front::dummy`]: for a fixed rate |
//!
//! [`front::build`] makes most of these ORAMs from an [`OramConfig`]: either scheme, a flat
//! position map or Freecursive ORAM, ρ, a cache.
//!
//! # Impossible combinations
//! Most of these combinations do not compile (*types*). The constructor refuses the others with
//! [`InvalidConfig`] and names an alternative (*config*).
//!
//! | technique | not with | refused by | reason | alternative |
//! |---|---|---|---|---|
//! | PMMAC | `Serve` | config | 1 | [`HitPolicy::Access`] |
//! | PMMAC | delayed remapping, ρ | config | 2 | [`Integrity::None`] |
//! | PMMAC | any other position map | types | 3 | rotating RAW ORAM authenticates everything |
//! | ρ | trees of one name | config | 4 | another [`TreeConfig::tree`] |
//! | ρ | ρ | types | 5 | |
//! | plain recursion | `Serve`, delayed remapping, ρ | types | 6 | Freecursive ORAM without a PLB |
//! | rotating RAW ORAM | plain recursion, Freecursive ORAM | types | 7 | [`Recursion`] |
//! | rotating RAW ORAM | delayed remapping, ρ | types | 8 | |
//! | rotating RAW ORAM | `Serve` in batches or behind a cache | types | 9 | [`serve_on_client`] |
//! | [`Recursion`] | Path and RAW ORAM | types | 10 | Freecursive ORAM |
//!
//! 1. Each block is sealed under its count. A block served in place would be sealed twice under one
//!    count.
//! 2. A block taken out of the tree looks like a block that storage has deleted.
//! 3. The counters of PMMAC are in the position map of Freecursive ORAM.
//! 4. Both trees would be sealed under one key.
//! 5. ρ has two trees and takes one scheme for each.
//! 6. Plain recursion is a literal version to compare with. Freecursive ORAM without a PLB makes
//!    the same number of accesses.
//! 7. Rotating RAW ORAM logs its moves before it makes them, which needs a frontend of its own.
//! 8. A block outside of the tree would be lost with the client.
//! 9. The moves of a batch are drawn together, so there is no policy: the caller calls
//!    `serve_on_client` for each block.
//! 10. The entries of [`Recursion`] say which blocks are live. Path and RAW ORAM do not need this
//!     information.
//!
//! [`PathScheme`]: crate::scheme::PathScheme
//! [`TreeConfig`]: crate::TreeConfig
//! [`RawScheme`]: crate::scheme::RawScheme
//! [`RawConfig`]: crate::RawConfig
//! [`DurableRawOram`]: crate::DurableRawOram
//! [`RotatingConfig`]: crate::RotatingConfig
//! [`Geometry::profile`]: crate::Geometry::profile
//! [`TreeConfig::tree_top_levels`]: crate::TreeConfig::tree_top_levels
//! [`TreeTopKind::SetAssociative`]: crate::TreeTopKind
//! [`HitPolicy::Serve`]: crate::HitPolicy
//! [`HitPolicy::Access`]: crate::HitPolicy
//! [`serve_on_client`]: crate::DurableRawOram::serve_on_client
//! [`FlatOram`]: crate::FlatOram
//! [`RotatingConfig::flat`]: crate::RotatingConfig::flat
//! [`RecursiveOram`]: crate::RecursiveOram
//! [`FreecursiveOram`]: crate::FreecursiveOram
//! [`Recursion`]: crate::Recursion
//! [`Integrity::Pmmac`]: crate::Integrity
//! [`Integrity::None`]: crate::Integrity
//! [`CachedOram`]: crate::CachedOram
//! [`RemapPolicy`]: crate::RemapPolicy
//! [`RemapPolicy::Delayed`]: crate::RemapPolicy
//! [`RhoOram`]: crate::RhoOram
//! [`Oram::access`]: crate::Oram::access
//! [`Front::evict`]: crate::Front::evict
//! [`StashFull`]: crate::ErrorKind::StashFull
//! [`Front::dummy`]: crate::Front::dummy
//! [`TreeConfig::tree`]: crate::TreeConfig::tree
//! [`front::build`]: crate::front::build()
//! [`OramConfig`]: crate::front::OramConfig
//! [`InvalidConfig`]: crate::ErrorKind::InvalidConfig
//!
//! For example, a block cannot be taken out of rotating RAW ORAM:
//! ```compile_fail,E0277
//! use oblivio_core::{CacheConfig, CachedOram, MemoryStore, RemapPolicy, DurableRawOram};
//!
//! fn delayed<R: rand::CryptoRng>(oram: DurableRawOram<MemoryStore, R>) {
//!     let _ = CachedOram::new(CacheConfig { blocks: 8, ways: 2 }, RemapPolicy::Delayed, oram);
//! }
//! ```
//!
//! # What storage learns from a combination
//! Storage learns from a combination what it learns from each technique in it. The number of
//! accesses depends only on the number of requests if the position map is flat or plain recursion,
//! hits make accesses, and there is no cache or ρ in front. Otherwise the number depends on the
//! addresses. It also depends on which requests write if there is a cache that remaps at accesses,
//! or ρ without a cache of delayed remapping. The paths are uniform, independent and never used
//! before in every combination, except those that [serve hits](crate::HitPolicy::Serve).
//!
//! Two consequences are easy to miss:
//! - With delayed remapping, an access takes each block that misses the cache out of the ORAM, even
//!   if the block is in the stash. So `Serve` then saves only accesses to the position map.
//! - Background eviction moves blocks without remapping them. If the stash bound is too tight for
//!   the tree, evictions may free nothing. A set-associative tree top and `Serve` make this more
//!   likely. Choose a larger bound or larger buckets.
//!
//! # IR-ORAM
//! Freecursive ORAM with fewer slots on the middle levels, a tree top found by address, and hits
//! served on the client:
//! ```
//! use oblivio_core::scheme::PathScheme;
//! use oblivio_core::{
//!     FreecursiveConfig, FreecursiveOram, Front, Geometry, HitPolicy, Key, MemoryStore, Oram,
//!     Sealer, TreeTopKind,
//! };
//! use rand::{SeedableRng, rngs::StdRng};
//!
//! let mut coins = StdRng::seed_from_u64(1); // outside of examples: seed it from the system
//! let mut config = FreecursiveConfig::new(1000, 64)?;
//! config.client_entries_max = 4;
//! config.plb_blocks = 8;
//! config.hits = HitPolicy::Serve;
//! let uniform = config.path_tree()?;
//! assert_eq!(uniform.geometry.levels(), 12);
//! let tree = uniform
//!     .with_geometry(Geometry::profile(&[4, 4, 4, 4, 2, 2, 2, 3, 3, 4, 4, 4])?) // IR-Alloc
//!     .with_tree_top_levels(4)
//!     .with_tree_top(TreeTopKind::SetAssociative { ways: 4 }); // IR-Stash
//! let store = MemoryStore::new(&[tree.shape()?], MemoryStore::default_layout())?;
//! // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
//! let sealer = Sealer::aes128(Key::draw(&mut coins), tree.tree);
//! let scheme = PathScheme::new(&tree, sealer, store)?;
//! let mut oram = FreecursiveOram::new(&config, scheme, coins)?;
//!
//! for address in 0..1000 {
//!     oram.write(address, &[address as u8; 64])?;
//! }
//! let before = oram.tally();
//! let mut block = [0; 64];
//! for _ in 0..100 {
//!     oram.read(7, &mut block)?;
//! }
//! assert_eq!(block, [7; 64]);
//! let accesses = oram.tally().accesses() - before.accesses();
//! assert!(accesses < 20, "soon the block is near the root and stays there");
//! oram.check_invariants()?;
//! # Ok::<(), oblivio_core::Error>(())
//! ```
