//! RAW ORAM: the same with a third of the encryption.
//!
//! After Tiny ORAM, section IV.
//!
//! Path ORAM decrypts and encrypts a whole path, twice `(L + 1) · Z` blocks, to get at one. RAW ORAM
//! splits the work in two kinds of access:
//!
//! - **Access-only (AO).** Read the whole path, or storage would see at which level the search
//!   ended; but decrypt only the headers, find the block, and decrypt that one. Take it out of the
//!   tree by writing ⊥ in its header, and write all headers of the path back, encrypted anew.
//! - **Eviction-only (EO).** After every `A` AO accesses, read a path, decrypt all of it into the
//!   stash, put back as much as possible, encrypt, write: step 5 of Path ORAM, without a block of
//!   interest.
//!
//! # The order of evictions
//! EO accesses do not need random paths. They take the *reverse-lexicographic order*: each time the
//! path that shares least with the ones before. With leaf labels read from the right it is simply
//! counting, `g mod 2^L`:
//!
//! ```
//! use oblivio_core::geometry::reverse_lexicographic;
//!
//! let order: Vec<_> = (0..5).map(|g| reverse_lexicographic(g, 2).0).collect();
//! assert_eq!(order, [0, 1, 2, 3, 0]);
//! ```
//!
//! # Path eviction predictability
//! Since the order is fixed, everybody knows how often any bucket has been evicted to. The client
//! needs no stored counter to decrypt the blocks of a bucket: `g` evictions have written the bucket
//! at level `j` of the path to `l` exactly as often as `t < g` with `t ≡ l (mod 2^j)`:
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
//! That count is `IV1`, under which labels and blocks are sealed. Headers change more often, with each
//! AO access, so they have a counter of their own, `IV2`, stored in clear in front of them.
//!
//! # What it saves
//! For `B` AES blocks in a block of data, one in the header and one in the labels, an access costs
//! on average, a level of the tree:
//!
//! | | decrypted and encrypted |
//! |---|---|
//! | Path ORAM | `2 · (2 + Z·B)` |
//! | RAW ORAM | `2` for the AO header, `2 · (2 + Z·B) / A` for the EO share |
//!
//! and RAW ORAM `B` more, once. At `2^20` blocks of 64 bytes that is 756 against 220 AES blocks:
//! 3.4 times fewer.
//!
//! # Why storage still learns nothing
//! AO accesses read uniformly random paths, each leaf used once, as in Path ORAM. Which headers
//! changed is hidden by writing all of them under fresh counters. EO accesses come when they must
//! and go where everybody knows.
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
//! // Neither durable nor authenticated: what that means is on the first page of this crate.
//! let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree.tree);
//! let mut oram = RawOram::raw(&config, sealer, store, coins)?;
//! for address in 0..1000 {
//!     oram.write(address, &[address as u8; 64])?;
//! }
//! oram.check_invariants()?;
//! # Ok::<(), oblivio_core::Error>(())
//! ```
