//! Front ends whose position map is not in client memory: Tiny ORAM, sections II-B and V-E.
//!
//! Freecursive ORAM (Fletcher et al., ASPLOS'15) calls the part that does step 1 of an access the
//! *frontend*, and the [scheme](crate::scheme), which does the other steps, the *backend*.
//!
//! - [`RecursiveOram`]: plain recursion (Shi et al., Asiacrypt'11). The position map is in a
//!   smaller ORAM, whose position map is in a smaller one, and so on. Simple and slow: the
//!   reference for [`FreecursiveOram`].
//! - [`FreecursiveOram`]: all levels in one tree, counters instead of leaves, and a small cache of
//!   position-map blocks (PLB), which makes the recursion nearly free for requests with locality.
//!
//! # What storage sees of Freecursive ORAM
//! Storage sees a sequence of path accesses of one shape, to leaves that are uniform, independent
//! and never used before. It cannot tell which accesses fetch data and which fetch the position
//! map. But it sees **the number of accesses**, which depends on the addresses: a scan needs about
//! one per request, random requests two or three.
//!
//! With [`HitPolicy::Serve`](crate::HitPolicy::Serve) the number also depends on which blocks were
//! requested recently. A block in the stash or in a set-associative tree top needs no access, and
//! no position-map block either. The remaining paths are [no longer
//! independent](crate::HitPolicy::Serve) of the evictions before them. To hide the number of
//! accesses too, make accesses at a fixed rate, or use [`RecursiveOram`] or
//! [`FlatOram`](crate::FlatOram).
//!
//! # What PMMAC protects
//! With [`Integrity::Pmmac`], storage may be malicious. Each block is sealed under its address and
//! its count of accesses. The count comes from the block's parent, the position-map block that has
//! its counter. The parent was itself opened under its count, and so on up to counters on the
//! client, the root of freshness.
//!
//! - **Every answer is what was last written**, or an error. The requested blocks of data and of
//!   the position map are checked: if one was altered, replayed, moved, exchanged or deleted, the
//!   result is [`Corrupt`](crate::ErrorKind::Corrupt), and the ORAM refuses further work. A block
//!   may be absent only if its count shows that it was never accessed. So a block that is only read
//!   is stored too, and so is each block that a group reset moves.
//! - **The paths are the same as with honest storage** up to the end, because leaves follow from
//!   counts that are checked before they are used. The access that detects the damage is complete,
//!   and nothing is retried.
//! - **Nothing else on the path is checked.** Damage to a block that is never requested stays
//!   undetected. A copy that storage replays can be in the stash together with the current one. The
//!   copy that a request finds is checked, so the worst case is an error instead of an answer. If a
//!   group reset finds a block of the PLB in the tree too, the result is `Corrupt`. Copies take
//!   space: enough of them fill the stash, which ends in
//!   [`StashFull`](crate::ErrorKind::StashFull) or `Corrupt`.
//! - **Storage learns when damage is detected.** Damage is detected when the block is requested. So
//!   an adversary who damaged one bucket learns which access first needed it. If damage turns an
//!   address or a leaf in a bucket into one that does not exist, the bucket is refused at once.
//!   This reveals a little about the bucket's contents. Each ORAM can reveal such information only
//!   once, because it then refuses further work. A new ORAM on the same data and storage can reveal
//!   more.
//!
//! Storage can also refuse to answer or delete everything. There is no protection against that.

mod config;
mod freecursive;
mod integrity;
#[cfg_attr(not(feature = "pmmac"), path = "without_pmmac.rs")]
mod pmmac;
mod recursive;

pub use config::FreecursiveConfig;
pub use freecursive::FreecursiveOram;
pub use integrity::Integrity;
#[cfg(feature = "pmmac")]
pub use pmmac::PMMAC_BYTES;
pub use recursive::{RecursiveConfig, RecursiveOram};
