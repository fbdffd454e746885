//! Which technique is which parameter, and what goes together.
//!
//! Each technique of the papers is a parameter or a type of its own, and they compose: whatever is in a
//! row of the first table goes with whatever is in another, but for what the second table says.
//!
//! | technique | source | what says it |
//! |---|---|---|
//! | Path ORAM | Stefanov et al. | [`PathScheme`](crate::scheme::PathScheme), [`TreeConfig`](crate::TreeConfig) |
//! | RAW ORAM | Tiny ORAM, IV | [`RawScheme`](crate::scheme::RawScheme), [`RawConfig`](crate::RawConfig) |
//! | rotating RAW ORAM | this project | [`RotatingOram`](crate::RotatingOram), [`RotatingConfig`](crate::RotatingConfig) |
//! | levels of different sizes (IR-Alloc) | IR-ORAM, IV-B | [`Geometry::profile`](crate::Geometry::profile) |
//! | tree top on the client | Tiny ORAM, V | [`TreeConfig::tree_top_levels`](crate::TreeConfig::tree_top_levels) |
//! | a tree top found by address (IR-Stash) | IR-ORAM, IV-C | [`TreeTopKind::SetAssociative`](crate::TreeTopKind) |
//! | hits without an access (IR-Stash) | IR-ORAM, IV-C | [`HitPolicy::Serve`](crate::HitPolicy); rotating: [`serve_on_client`](crate::RotatingOram::serve_on_client) |
//! | flat position map | | [`FlatOram`](crate::FlatOram); rotating: [`RotatingConfig::flat`](crate::RotatingConfig::flat) |
//! | plain recursion | Tiny ORAM, II-B | [`RecursiveOram`](crate::RecursiveOram) |
//! | unified tree, PLB, counters | Freecursive ORAM | [`FreecursiveOram`](crate::FreecursiveOram); no PLB: `plb_blocks` 0 |
//! | position map in the rotating tree | this project | [`Recursion`](crate::Recursion) |
//! | integrity (PMMAC) | Freecursive ORAM | [`Integrity::Pmmac`](crate::Integrity) |
//! | delayed remapping (LLC-D) | IR-ORAM, IV-D | [`CachedOram`](crate::CachedOram), [`RemapPolicy::Delayed`](crate::RemapPolicy) |
//! | ρ | Nagarajan et al. | [`RhoOram`](crate::RhoOram); behind a cache of either [policy](crate::RemapPolicy): [`CachedOram`](crate::CachedOram) |
//! | batches | | [`Oram::access`](crate::Oram::access) with more than one request |
//! | background eviction | Ren et al. | [`Front::evict`](crate::Front::evict), when a request is refused with [`StashFull`](crate::ErrorKind::StashFull) |
//! | accesses to nothing | | [`Front::dummy`](crate::Front::dummy): for a fixed rate |
//!
//! [`front::build`](crate::front::build()) makes what most of the rows say from an
//! [`OramConfig`](crate::front::OramConfig): either scheme, a flat position map or Freecursive ORAM, ρ, a cache.
//!
//! # What does not go together
//! Most of it cannot be written down: it does not compile (*types*). The rest is refused when it is
//! made, with [`InvalidConfig`](crate::ErrorKind::InvalidConfig) and what to use instead (*config*).
//!
//! | what | with what | refused by | why, and what instead |
//! |---|---|---|---|
//! | PMMAC | `Serve` | config | each block is sealed under its count, and a block that is served in place would be sealed twice under one: [`HitPolicy::Access`](crate::HitPolicy) |
//! | PMMAC | delayed remapping, ρ | config | a block that is out and one that storage has deleted look the same: [`Integrity::None`](crate::Integrity) |
//! | PMMAC | any other position map | types | its counters are those of Freecursive ORAM; rotating RAW ORAM authenticates everything anyway |
//! | ρ | trees of one name | config | they would be sealed under one key: another [`TreeConfig::tree`](crate::TreeConfig::tree) |
//! | ρ | ρ | types | it stands before one scheme, and has two trees itself |
//! | plain recursion | `Serve`, delayed remapping, ρ | types | it is there to be literal: Freecursive ORAM without a PLB makes as many accesses |
//! | rotating RAW ORAM | plain recursion, Freecursive ORAM | types | its moves are written down before they are made, by a frontend of its own: [`Recursion`](crate::Recursion) |
//! | rotating RAW ORAM | delayed remapping, ρ | types | a block that is out would be lost with the client |
//! | rotating RAW ORAM | `Serve` in batches or behind a cache | types | there is no policy: whoever uses it asks for each block, as the moves of a batch are drawn together |
//! | [`Recursion`](crate::Recursion) | Path and RAW ORAM | types | its entries say which blocks live, which those never ask: Freecursive ORAM |
//!
//! For example, no block can be taken out of rotating RAW ORAM:
//! ```compile_fail,E0277
//! use oblivio_core::{CacheConfig, CachedOram, MemoryStore, RemapPolicy, RotatingOram};
//!
//! fn delayed<R: rand::CryptoRng>(oram: RotatingOram<MemoryStore, R>) {
//!     let _ = CachedOram::new(CacheConfig { blocks: 8, ways: 2 }, RemapPolicy::Delayed, oram);
//! }
//! ```
//!
//! # What storage learns of a combination
//! What it learns of each part. The number of accesses depends on the number of requests alone where the
//! position map is flat or plain recursion, hits make accesses, and there is nothing in front.
//! Otherwise it depends on the addresses; and behind a cache that remaps at accesses, and with ρ unless it is behind a cache that remaps with
//! a delay, on which requests write. The paths are uniform, independent and never used before in every combination
//! but those that [serve hits](crate::HitPolicy::Serve).
//!
//! Two things to know:
//! - Delayed remapping takes every block that misses out by an access, also if it is in the stash: there,
//!   `Serve` saves accesses to the position map alone.
//! - Background eviction moves blocks and remaps none. A stash bound that is too tight for the
//!   tree, more so with sets and with `Serve`, may ask for evictions that free nothing: choose a larger
//!   bound or larger buckets.
//!
//! # IR-ORAM
//! Freecursive ORAM, whose middle levels have fewer slots, whose tree top is found by address, and
//! whose hits are served:
//! ```
//! use oblivio_core::scheme::PathScheme;
//! use oblivio_core::{
//!     FreecursiveConfig, FreecursiveOram, Front, Geometry, HitPolicy, Key, MemoryStore, Oram, Sealer,
//!     TreeTopKind,
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
//! // Neither durable nor authenticated: what that means is on the first page of this crate.
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
//! assert!(accesses < 20, "it soon is near the root, and stays there");
//! oram.check_invariants()?;
//! # Ok::<(), oblivio_core::Error>(())
//! ```
