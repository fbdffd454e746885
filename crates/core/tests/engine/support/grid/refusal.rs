//! The combinations that the engine must refuse, with the reasons.

use oblivio_core::{HitPolicy, Integrity};

use super::factors::{Combination, Front, Map, Requests, Scheme};

/// The way in which the engine refuses a combination, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The combination does not compile: no type or field expresses it.
    ByTypes(&'static str),
    /// The constructor returns [`InvalidConfig`](oblivio_core::ErrorKind::InvalidConfig) with a
    /// message that contains these words.
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
            "a rotating scheme logs moves before it makes them, which needs its own front end",
        ),
        (
            !is_rotating && map == Map::Nested,
            "nested position maps record which blocks are live, which only rotating RAW ORAM needs",
        ),
        (
            is_rotating && !matches!(front, Front::None | Front::CacheAtAccess),
            "blocks cannot be taken out of rotating RAW ORAM: a crashed client would lose them",
        ),
        (
            is_rotating && serves && (front, requests) != (Front::None, Requests::Single),
            "rotating RAW ORAM serves hits one by one, with serve_on_client",
        ),
        (
            map == Map::Recursive && !matches!(front, Front::None | Front::CacheAtAccess),
            "blocks cannot be taken out of plain recursion: it is a literal version",
        ),
        (map == Map::Recursive && serves, "plain recursion has no hits: it is a literal version"),
        (
            integrity == Integrity::Pmmac && !combination.is_freecursive(),
            "PMMAC needs the counters of Freecursive ORAM",
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
