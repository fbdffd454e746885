//! What does not go together, and why: what the engine refuses, said once more.

use oblivio_core::{HitPolicy, Integrity};

use super::factors::{Combination, Front, Map, Requests, Scheme};

/// Why there is no such combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It cannot be written down: no type or no field says it.
    ByTypes(&'static str),
    /// It can, and whoever makes it gets [`InvalidConfig`](oblivio_core::ErrorKind::InvalidConfig)
    /// with these words.
    InvalidConfig(&'static str),
}

pub(crate) fn refusal(combination: &Combination) -> Option<Refusal> {
    by_types(combination)
        .map(Refusal::ByTypes)
        .or_else(|| by_config(combination).map(Refusal::InvalidConfig))
}

fn by_types(combination: &Combination) -> Option<&'static str> {
    let Combination { scheme, map, hits, front, requests, integrity, .. } = *combination;
    let is_rotating = scheme == Scheme::Rotating;
    let serves = hits == HitPolicy::Serve;
    let reasons = [
        (
            is_rotating && !matches!(map, Map::Flat | Map::Nested),
            "a rotating scheme has moves written down before they are made: it has its own frontend",
        ),
        (
            !is_rotating && map == Map::Nested,
            "nested position maps know which blocks live, which only rotating RAW ORAM asks",
        ),
        (
            is_rotating && !matches!(front, Front::None | Front::CacheAtAccess),
            "blocks cannot be taken out of rotating RAW ORAM: a client that crashed would miss them",
        ),
        (
            is_rotating && serves && (front, requests) != (Front::None, Requests::Single),
            "rotating RAW ORAM is asked for hits one by one, by serve_on_client",
        ),
        (
            map == Map::Recursive && !matches!(front, Front::None | Front::CacheAtAccess),
            "blocks cannot be taken out of plain recursion: it is there to be literal",
        ),
        (map == Map::Recursive && serves, "plain recursion has no hits: it is there to be literal"),
        (
            integrity == Integrity::Pmmac && !combination.is_freecursive(),
            "PMMAC takes the counters of Freecursive ORAM",
        ),
    ];
    reasons.into_iter().find_map(|(refused, reason)| refused.then_some(reason))
}

fn by_config(combination: &Combination) -> Option<&'static str> {
    if combination.integrity == Integrity::None {
        return None;
    }
    if combination.hits == HitPolicy::Serve {
        return Some("Use HitPolicy::Access or Integrity::None");
    }
    let takes = combination.front == Front::CacheDelayed || combination.has_rho();
    takes.then_some("Use Integrity::None")
}
