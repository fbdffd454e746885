//! The leaks: each a small change of the product after which it still works, or nearly, and storage
//! learns something it must not.

mod delayed;
mod flat;
mod freecursive;
mod hits;
mod mapped_shares;
mod power_loss;
mod program;
mod range;
mod recovery;
mod recursive_shares;
mod remote;
mod rho;
mod rotating;
mod s3oram;
mod scan;
mod schedule;
mod sealing;
mod share_peers;
mod shares;
mod stripe;
mod volume;
mod watch;

use crate::targets::Finders;

/// One leak.
pub(crate) struct Leak {
    pub(crate) name: &'static str,
    /// What storage could tell, had it been shipped.
    pub(crate) shows: &'static str,
    pub(crate) edits: &'static [Edit],
    /// The tests that must fail, each.
    pub(crate) found_by: &'static [Finders],
}

/// A change of one file.
pub(crate) struct Edit {
    /// Below `crates/`.
    pub(crate) file: &'static str,
    /// Occurs exactly once.
    pub(crate) find: &'static str,
    pub(crate) replacement: &'static str,
}

/// By what they are leaks of. Those of one crate stand together, so that little is built again from
/// one to the next.
const GROUPS: [&[Leak]; 22] = [
    flat::LEAKS,
    rotating::LEAKS,
    freecursive::LEAKS,
    hits::LEAKS,
    delayed::LEAKS,
    rho::LEAKS,
    sealing::LEAKS,
    volume::LEAKS,
    recovery::LEAKS,
    scan::LEAKS,
    range::LEAKS,
    power_loss::LEAKS,
    schedule::LEAKS,
    remote::LEAKS,
    stripe::LEAKS,
    shares::LEAKS,
    recursive_shares::LEAKS,
    s3oram::LEAKS,
    mapped_shares::LEAKS,
    share_peers::LEAKS,
    watch::LEAKS,
    program::LEAKS,
];

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Leak> {
    GROUPS.into_iter().flatten()
}
