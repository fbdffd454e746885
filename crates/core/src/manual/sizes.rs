//! How tree, stash and storage follow from the number of blocks.
//!
//! # Levels
//! More leaves mean more free slots, a smaller stash, and longer paths. The defaults bound the
//! load, the number of blocks per leaf:
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
//! These are the loads for which the papers bound the stash: one block per leaf in Path ORAM, and
//! `N ≤ A · 2^(L-1)` in Ring ORAM, on which RAW ORAM builds. `docs/stash-study.md` of the
//! repository measures the stash at these and at heavier loads. For any other tree, pass a
//! [`Geometry`](crate::Geometry), uniform or with a profile of slots.
//!
//! # Storage
//! A bucket has 8 bytes of counter, a table of addresses and a table of leaves (both padded to 16
//! bytes), and Z blocks. A store may add padding of its own. [`TreeShape`](crate::store::TreeShape)
//! gives the sizes:
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
//! Buckets that were never written need not exist. Which buckets these are is public, so a new ORAM
//! is ready at once.
//!
//! # Client memory
//! - The position map: 4 bytes a block (8 from `2^32` leaves on).
//! - The stash: `C` blocks, a path of blocks in the stash and one in transit, and the blocks that a
//!   burst of accesses can leave beyond the bound.
//! - The tree top, if any: `2^k - 1` buckets for `k` levels. Each level on the client makes every
//!   trip one bucket shorter. Storage never sees these levels.
