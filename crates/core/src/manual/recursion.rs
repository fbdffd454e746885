//! A position map that does not fit the client.
//!
//! A flat position map has an entry for each block: 4 MiB for `2^20` blocks, and it grows with the
//! data. The map is an array, and an array can be kept in an ORAM. Each block of that ORAM holds
//! the entries of many data blocks, so it has fewer blocks and a smaller position map. Repeat until
//! the last map fits on the client.
//!
//! # Plain recursion
//! [`RecursiveOram`](crate::RecursiveOram) does this with a tree for each level. An access to a
//! data block is an access to every level. It starts with the smallest level. Each level holds the
//! leaf of the block to access in the next larger level.
//!
//! # Freecursive
//! [`FreecursiveOram`](crate::FreecursiveOram) makes this nearly free for requests with locality:
//!
//! - **One tree.** One tree holds the data and all levels of the position map, and storage cannot
//!   distinguish their blocks. Otherwise it would see from which level a request starts.
//! - **A PLB.** The client caches a few position-map blocks. A request starts at the lowest block
//!   of its chain that is in the cache. A victim of the PLB returns to the stash, without a path
//!   access.
//! - **Counters.** A position-map block holds counters instead of leaves. A block's leaf is a
//!   pseudorandom function of its address and its counter. So an entry takes 14 bits instead of 32.
//!
//! ```
//! use oblivio_core::FreecursiveConfig;
//!
//! let mut config = FreecursiveConfig::new(1 << 20, 64)?;
//! assert_eq!((config.fan_out, config.counter_bits), (32, 14));
//! // 2^20 blocks of data, then 2^15 and 2^10 of the map: 4 KiB of leaves on the client.
//! assert_eq!(config.depth()?, 2);
//! config.client_entries_max = 32;
//! assert_eq!(config.depth()?, 3);
//! # Ok::<(), oblivio_core::Error>(())
//! ```
//!
//! With two levels of the map, a scan makes `1 + 1/32 + 1/1024` path accesses per request. Requests
//! without locality miss the PLB on the level above the data, and make two accesses or more.
//!
//! # What it reveals
//! This locality is visible to storage. Each path is as random as in every other ORAM here, but the
//! number of paths depends on the locality of the requests. With a flat map or plain recursion, the
//! number of paths depends only on the number of requests. To hide the locality, make accesses at a
//! fixed rate.
