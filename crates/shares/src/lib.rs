//! S³ORAM: Oblivious RAM over three or more servers that each hold a share of every block, and
//! compute.
//!
//! The client sends a query of one element for each slot of a path and gets one block back,
//! whatever the height of the tree: O(1) bandwidth, and no stash. Evictions are products with
//! matrices that the servers hold as shares: between themselves they multiply and bring the degree
//! of what comes out back. Hoang, Ozkaptan, Yavuz, Guajardo and Nguyen, *S³ORAM: A
//! Computation-Efficient and Constant Client Bandwidth Blowup ORAM with Shamir Secret Sharing*, CCS
//! 2017: "the paper" in this crate.
//!
//! ```
//! use oblivio_shares::sharing::Parties;
//!
//! // Three servers, of which no two tell each other what they see.
//! let parties = Parties::new(3, 1).unwrap();
//! assert_eq!(parties.servers(), 3);
//! // With two there is no product of shares.
//! assert!(Parties::new(2, 1).is_err());
//! ```
//!
//! In use it is the scheme `s3oram` of a volume ([`durable`]), which is durable and authenticated.
//! What is in [`client`] by itself is neither: the position map is in memory alone, and servers
//! that lie are noticed only if they contradict each other. There are no features; `docs/s3oram.md`
//! of the repository says how it is used and how fast it is.
//!
//! | module | what it holds | in the paper |
//! |---|---|---|
//! | [`field`] | what shares are made of | 2, notation |
//! | [`sharing`] | Shamir's secret sharing | Algorithm 1, Lemma 2.1 |
//! | [`multiplication`] | shares of a product, of the degree of its factors | Protocol 1 |
//! | [`tree`] | the tree of buckets, and which take part in an eviction | 3.1, Figure 2 |
//! | [`message`] | what is sent | |
//! | [`client`] | where each block is, and what is asked of servers | Protocol 2, Subroutines 1 and 3 |
//! | [`answers`] | answers that contradict each other | |
//! | [`map_trees`] | the trees of a position map on the servers | 3.3 |
//! | [`server`] | what one server does with its shares, in memory | Subroutines 1 and 3 |
//! | [`host`] | the same over files, part by part of every block | Subroutines 1 and 3 |
//! | [`servers`] | the servers, as a client reaches them | |
//! | [`remote`] | the client of share servers: links, retries, records | |
//! | [`durable`] | the scheme of volumes: what a client keeps, and how it comes back | |
//! | [`view`] | what each server sees, recorded | |
//!
//! Only [`remote`], behind the feature `remote`, opens sockets, waits, and reads a file: the key of
//! a client. No code here draws randomness from the system. Callers supply files, and carry
//! messages between servers.
//!
//! # What it does not do yet
//! Servers that do not do what they are told are noticed by answers that contradict each other, or
//! are not what was written ([`durable`]). How evictions count on all servers or on none is in ADR
//! 16. The client wipes queries, matrices and its position map; blocks are their owner's to wipe.
//! Nobody outside the project has audited it.

pub mod answers;
pub mod client;
pub mod durable;
pub mod field;
pub mod host;
pub mod map_trees;
pub mod message;
pub mod multiplication;
#[cfg(feature = "remote")]
pub mod remote;
pub mod server;
pub mod servers;
pub mod sharing;
pub mod tree;
pub mod view;
