//! RAW ORAM: Path ORAM with a third of the encryption.
//!
//! After Tiny ORAM, section IV.
//!
//! Path ORAM decrypts and encrypts a whole path, twice `(L + 1) · Z` blocks, to access one block.
//! RAW ORAM splits the work into two kinds of access:
//!
//! - **Access-only (AO).** Read the whole path, otherwise storage would see at which level the
//!   search ended. But decrypt only the headers, find the block, and decrypt that one. Take it out
//!   of the tree by writing ⊥ in its header, and write all headers of the path back, encrypted
//!   again.
//! - **Eviction-only (EO).** After every `A` AO accesses, read a path, decrypt everything into the
//!   stash, put back as many blocks as possible, encrypt, and write: step 5 of Path ORAM, without a
//!   block of interest.
//!
//! # The order of evictions
//! EO accesses do not need random paths. They use the *reverse-lexicographic order*, in which each
//! path shares as little as possible with the ones before. With leaf labels read from the right,
//! the order is simply counting, `g mod 2^L`:
//!
//! ```
//! use oblivio_core::geometry::reverse_lexicographic;
//!
//! let order: Vec<_> = (0..5).map(|g| reverse_lexicographic(g, 2).0).collect();
//! assert_eq!(order, [0, 1, 2, 3, 0]);
//! ```
//!
//! # Path eviction predictability
//! The order is fixed, so the number of evictions of every bucket is public. The client needs no
//! stored counter to decrypt the blocks of a bucket: `g` evictions have written the bucket at level
//! `j` of the path to `l` once for each `t < g` with `t ≡ l (mod 2^j)`:
//!
//! ```
//! use oblivio_core::Leaf;
//! use oblivio_core::geometry::evictions_of_bucket;
//!
//! assert_eq!(evictions_of_bucket(5, Leaf(0), 0), 5, "the root, by all five");
//! assert_eq!(evictions_of_bucket(5, Leaf(0), 2), 2, "leaf 0, by evictions 0 and 4");
//! assert_eq!(evictions_of_bucket(5, Leaf(3), 2), 1, "leaf 3, by eviction 3");
//! ```
//!
//! That count is `IV1`, under which labels and blocks are sealed. Headers change with each AO
//! access, so they have a counter of their own, `IV2`, stored unencrypted before them.
//!
//! # What it saves
//! Let a data block have `B` AES blocks, the header one and the labels one. On average, an access
//! then costs, for each level of the tree:
//!
//! | | decrypted and encrypted |
//! |---|---|
//! | Path ORAM | `2 · (2 + Z·B)` |
//! | RAW ORAM | `2` for the AO header, `2 · (2 + Z·B) / A` for the EO share |
//!
//! RAW ORAM also decrypts the requested block: `B` more AES blocks per access. For `2^20` blocks of
//! 64 bytes, an access costs 756 AES blocks in Path ORAM and 220 in RAW ORAM, 3.4 times fewer.
//!
//! # Why storage still learns nothing
//! AO accesses read uniformly random paths, and each leaf is used once, as in Path ORAM. All
//! headers are written under fresh counters, which hides the changed one. EO accesses come after a
//! fixed number of AO accesses and follow a public order.
//!
//! # Try it
//! ```
//! use oblivio_core::{Front, Key, MemoryStore, Oram, RawConfig, RawOram, Sealer};
//! use rand::{SeedableRng, rngs::StdRng};
//!
//! let mut coins = StdRng::seed_from_u64(1);
//! let config = RawConfig::new(1000, 64)?;
//! assert_eq!((config.evict_period, config.tree.geometry.slots(0)), (5, 5), "Z5A5");
//! let store = MemoryStore::new(&[config.tree.shape()?], MemoryStore::default_layout())?;
//! // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
//! let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree.tree);
//! let mut oram = RawOram::raw(&config, sealer, store, coins)?;
//! for address in 0..1000 {
//!     oram.write(address, &[address as u8; 64])?;
//! }
//! oram.check_invariants()?;
//! # Ok::<(), oblivio_core::Error>(())
//! ```
