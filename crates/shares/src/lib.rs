//! S³ORAM: Oblivious RAM over three or more servers. Each server holds a share of every block, and
//! computes on its shares.
//!
//! The client sends a query with one element for each slot of a path. It receives one block, for
//! any height of the tree: O(1) bandwidth, and no stash. In an eviction, the servers multiply
//! buckets by matrices that they also hold as shares. To reduce the degree of the products, they
//! exchange messages with each other. The scheme is from Hoang, Ozkaptan, Yavuz, Guajardo and
//! Nguyen, *S³ORAM: A Computation-Efficient and Constant Client Bandwidth Blowup ORAM with Shamir
//! Secret Sharing*, CCS 2017: "the paper" in this crate.
//!
//! ```
//! use oblivio_shares::sharing::Parties;
//!
//! // Three servers. No two of them collude.
//! let parties = Parties::new(3, 1).unwrap();
//! assert_eq!(parties.servers(), 3);
//! // Two servers cannot multiply shares.
//! assert!(Parties::new(2, 1).is_err());
//! ```
//!
//! Volumes use S³ORAM as the scheme `s3oram` ([`durable`]), which is durable and authenticated. The
//! [`client`] module alone is neither durable nor authenticated. Its position map is only in
//! memory, and it detects a lying server only if answers contradict each other. `docs/s3oram.md` in
//! the repository describes its use and its speed.
//!
//! | module | contents | in the paper |
//! |---|---|---|
//! | [`field`] | the finite fields of shares | 2, notation |
//! | [`sharing`] | Shamir's secret sharing | Algorithm 1, Lemma 2.1 |
//! | [`multiplication`] | multiplication of shares, with degree reduction | Protocol 1 |
//! | [`tree`] | the tree of buckets, and the buckets of an eviction | 3.1, Figure 2 |
//! | [`message`] | messages between client and servers | |
//! | [`client`] | the position map, and requests to servers | Protocol 2, Subroutines 1 and 3 |
//! | [`answers`] | detection and correction of wrong answers | |
//! | [`map_trees`] | a position map in trees on the servers | 3.3 |
//! | [`server`] | one server, with its shares in memory | Subroutines 1 and 3 |
//! | [`host`] | one server, with its shares in files | Subroutines 1 and 3 |
//! | [`servers`] | the client's interface to the servers | |
//! | [`remote`] | the client of share servers: links, retries, records | |
//! | [`durable`] | the scheme of volumes, with durable client state | |
//! | [`view`] | a recorder of each server's view | |
//!
//! Only [`remote`], behind the feature `remote`, opens sockets, waits, and reads a file (the
//! client's key). No code here draws randomness from the system. Callers supply files, and carry
//! messages between servers.
//!
//! # Limits
//! A dishonest server is detected only if its answer contradicts others or is not what the client
//! wrote ([`durable`]). ADR 16 describes how an eviction counts on all servers or on none. The
//! client wipes queries, matrices and its position map; the caller wipes blocks. The code has had
//! no audit outside the project.

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
