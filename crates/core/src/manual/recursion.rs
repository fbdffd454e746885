//! A position map that does not fit the client.
//!
//! A flat position map has an entry for each block: 4 MiB for `2^20` blocks, and no bound as data
//! grows. The map is an array, and an array can be kept in an ORAM. Each block of that ORAM holds
//! the entries of many data blocks, so it is smaller, and so is its own position map. Repeat until
//! what is left fits.
//!
//! # Plain recursion
//! [`RecursiveOram`](crate::RecursiveOram) does just that, with a tree for each level. An access to a
//! data block is an access to every level: first the smallest, for the leaf in the next, and so on.
//!
//! # Freecursive
//! [`FreecursiveOram`](crate::FreecursiveOram) makes the same nearly free where requests are near
//! each other:
//!
//! - **One tree.** Data and position map of all levels lie in one tree, and storage cannot tell them
//!   apart. Otherwise it would see from which level a request starts.
//! - **A PLB.** The client keeps a few position-map blocks. A request starts at the lowest of its
//!   chain that is there. The block it pushes out goes back to the stash, without a path access.
//! - **Counters.** In place of leaves a position-map block holds counters, and a block's leaf is a
//!   pseudorandom function of its address and its counter. So the entry of a block takes 14 bits in
//!   place of 32.
//!
//! ```
//! use oblivio_core::FreecursiveConfig;
//!
//! let mut config = FreecursiveConfig::new(1 << 20, 64)?;
//! assert_eq!((config.fan_out, config.counter_bits), (32, 14));
//! // 2^20 blocks, 2^15 above them, 2^10 above those: 4 KiB of leaves on the client.
//! assert_eq!(config.depth()?, 2);
//! config.client_entries_max = 32;
//! assert_eq!(config.depth()?, 3);
//! # Ok::<(), oblivio_core::Error>(())
//! ```
//!
//! A scan of such an ORAM makes `1 + 1/32 + 1/1024` path accesses a request. Requests that go anywhere
//! find nothing in the PLB on the level above the data, and make two or more.
//!
//! # What it shows
//! That last sentence is the price. Each path is as random as ever, but how many there are depends on
//! how near each other the requests are. Behind a flat map or plain recursion it does not. Whoever uses
//! Freecursive ORAM where that matters makes accesses at a fixed rate.
