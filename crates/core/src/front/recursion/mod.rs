//! Front ends whose position map does not lie in client memory: Tiny ORAM, sections II-B and V-E.
//!
//! Freecursive ORAM (Fletcher et al., ASPLOS'15) calls them a *frontend* (step 1 of an access: which path, and
//! which one next), and the [scheme](crate::scheme) that does the other steps its *backend*.
//!
//! - [`RecursiveOram`]: plain recursion (Shi et al., Asiacrypt'11). The position map lies in a
//!   smaller ORAM, the position map of that one in a smaller one still. Literal and slow: what the
//!   other is held against.
//! - [`FreecursiveOram`]: all levels in one tree, counters in place of leaves, and a small cache of
//!   position-map blocks (PLB) that makes the recursion nearly free where requests are near each
//!   other.
//!
//! # What storage sees of Freecursive ORAM
//! A sequence of path accesses of one shape, to leaves that are uniform, independent and never used
//! before. It cannot tell which of them fetch data and which the position map. But it sees **how many
//! there are**, and that depends on the addresses: a scan needs about one a request, random requests
//! two or three. With [`HitPolicy::Serve`](crate::HitPolicy::Serve) it also depends on which blocks were
//! asked for lately: one that is in the stash or in a set-associative tree top needs none at all, and
//! no position-map block either; and the paths that are left are [no longer
//! independent](crate::HitPolicy::Serve) of the evictions before them. Whoever must hide the number of
//! accesses too makes them at a fixed rate, or uses [`RecursiveOram`] or
//! [`FlatOram`](crate::FlatOram).
//!
//! # What PMMAC protects
//! With [`Integrity::Pmmac`], storage may also lie. Each block is sealed under its address and its
//! count of accesses. The count comes from the block's parent, which was itself opened that way, and so
//! on up to counters on the client: that is where freshness has its root.
//!
//! - **Every answer is what was last written**, or there is none. The block of interest is checked, of
//!   data and of the position map: altered, replayed, moved, exchanged or missing, it is
//!   [`Corrupt`](crate::ErrorKind::Corrupt), and the handle is closed. Only a block that was never
//!   accessed may be absent; its count says so. That is why a block that is only read is stored too,
//!   and so is each block of a group that begins anew.
//! - **The paths stay those of honest storage** up to the end, because leaves follow from counts that
//!   are checked before they are used. The access that finds the damage is a whole one, and nothing is
//!   tried again.
//! - **Nothing else on the path is checked.** Damage to a block that nobody asks for stays unnoticed.
//!   A copy that storage brings back may lie in the stash beside the block itself: whichever is found
//!   is checked, so the worst is an error where the answer would have been there. What is not in the
//!   tree, because it is in the PLB, must not be found there. Copies take room: enough of them fill
//!   the stash, which ends in [`StashFull`](crate::ErrorKind::StashFull) or `Corrupt`.
//! - **When it is found out, storage learns when.** A block is caught when it is asked for, so the
//!   adversary who damaged one bucket learns which access first needed it. An entry of a header
//!   that is out of range is refused at once, and that tells a little about what was in that header.
//!   There is one such answer in the life of an ORAM. Whoever opens a fresh one on the same data and
//!   the same storage gives another.
//!
//! Storage can also refuse to answer, or forget everything: nothing protects from that.

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
