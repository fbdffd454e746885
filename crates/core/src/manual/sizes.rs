//! How tree, stash and storage follow from the number of blocks.
//!
//! # Levels
//! More leaves mean more room and a smaller stash, and longer paths. The defaults bound the load,
//! that is blocks for each leaf:
//!
//! | | load at most | levels for `2^20` blocks | slots used |
//! |---|---|---|---|
//! | [`TreeConfig::path`](crate::TreeConfig::path), Z4 | 1 | 21 | 1 in 8 |
//! | [`RawConfig::new`](crate::RawConfig::new), Z5A5 | A / 2 = 2.5 | 20 | 1 in 5 |
//!
//! ```
//! use oblivio_core::{RawConfig, TreeConfig};
//!
//! assert_eq!(TreeConfig::path(1 << 20, 64)?.geometry.levels(), 21);
//! assert_eq!(RawConfig::new(1 << 20, 64)?.tree.geometry.levels(), 20);
//! # Ok::<(), oblivio_core::Error>(())
//! ```
//!
//! Both are the loads for which the papers bound the stash: one block for each leaf in Path ORAM, and
//! `N ≤ A · 2^(L-1)` in Ring ORAM, on which RAW ORAM builds. `docs/stash-study.md` of the repository measures the stash
//! at these and at heavier loads. Any other tree is a [`Geometry`](crate::Geometry) away, with the
//! same slots on each level or a profile of them.
//!
//! # Storage
//! A bucket has 8 bytes of counter, a table of addresses and a table of leaves (both padded to 16
//! bytes), and Z blocks; a store may add padding of its own. [`TreeShape`](crate::store::TreeShape)
//! tells the bytes:
//!
//! ```
//! use oblivio_core::RawConfig;
//!
//! let shape = RawConfig::new(1 << 20, 64)?.tree.shape()?;
//! assert_eq!(shape.levels()[0].bucket_bytes, 8 + 16 + 16 + 5 * 64);
//! assert_eq!(shape.path_bytes(), 20 * 360);
//! assert_eq!(shape.tree_bytes(), ((1 << 20) - 1) * 360);
//! # Ok::<(), oblivio_core::Error>(())
//! ```
//!
//! Buckets that were never written need not exist. Which ones those are is no secret, so a new ORAM
//! is ready at once.
//!
//! # Client memory
//! - The position map: 4 bytes a block (8 from `2^32` leaves on).
//! - The stash: `C` blocks, a path in transit, and as much again for blocks that a path leaves
//!   behind.
//! - The tree top, if any: `2^k - 1` buckets for `k` levels. Each level kept on the client makes
//!   every trip one bucket shorter; storage never sees these levels.
