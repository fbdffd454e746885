//! The factors, and their levels.

pub(crate) use oblivio_core::schemes::TreeScheme as Scheme;
use oblivio_core::{HitPolicy, Integrity};

/// Where the position map is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    Flat,
    /// Plain recursion: a tree for each level of it.
    Recursive,
    /// In the one tree, and every request fetches its whole chain.
    FreecursiveWithoutPlb,
    Freecursive,
    /// In the one tree, of rotating RAW ORAM.
    Nested,
}

/// Slots of the buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slots {
    Uniform,
    /// Of each level its own number (IR-Alloc).
    Profile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    None,
    Dedicated,
    /// IR-Stash.
    Sets,
}

/// What stands in front of the ORAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    None,
    CacheAtAccess,
    CacheDelayed,
    Rho,
    /// A cache in front of ρ, whose changed victims are written.
    CachedRho,
    /// A cache in front of ρ, as it is meant to be used: what the cache has is out of it.
    DelayedRho,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    Single,
    Batches,
}

/// Of the stash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// It cannot be exceeded.
    Loose,
    /// It is exceeded all the time, and background evictions make room.
    Tight,
}

/// One level of each factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Combination {
    pub(crate) scheme: Scheme,
    pub(crate) map: Map,
    pub(crate) slots: Slots,
    pub(crate) top: Top,
    pub(crate) integrity: Integrity,
    pub(crate) hits: HitPolicy,
    pub(crate) front: Front,
    pub(crate) requests: Requests,
    pub(crate) bound: Bound,
}

const MAPS: [Map; 5] =
    [Map::Flat, Map::Recursive, Map::FreecursiveWithoutPlb, Map::Freecursive, Map::Nested];
const SLOTS: [Slots; 2] = [Slots::Uniform, Slots::Profile];
const TOPS: [Top; 3] = [Top::None, Top::Dedicated, Top::Sets];
const INTEGRITIES: [Integrity; 2] = [Integrity::None, Integrity::Pmmac];
const HITS: [HitPolicy; 2] = [HitPolicy::Access, HitPolicy::Serve];
const FRONTS: [Front; 6] = [
    Front::None,
    Front::CacheAtAccess,
    Front::CacheDelayed,
    Front::Rho,
    Front::CachedRho,
    Front::DelayedRho,
];
const REQUESTS: [Requests; 2] = [Requests::Single, Requests::Batches];
const BOUNDS: [Bound; 2] = [Bound::Loose, Bound::Tight];

/// How many levels each factor has.
pub(crate) const LEVELS: [usize; 9] = [
    Scheme::ALL.len(),
    MAPS.len(),
    SLOTS.len(),
    TOPS.len(),
    INTEGRITIES.len(),
    HITS.len(),
    FRONTS.len(),
    REQUESTS.len(),
    BOUNDS.len(),
];

/// Which level of each factor.
pub(crate) type Choice = [usize; LEVELS.len()];

impl From<Choice> for Combination {
    fn from(choice: Choice) -> Self {
        let [scheme, map, slots, top, integrity, hits, front, requests, bound] = choice;
        Self {
            scheme: Scheme::ALL[scheme],
            map: MAPS[map],
            slots: SLOTS[slots],
            top: TOPS[top],
            integrity: INTEGRITIES[integrity],
            hits: HITS[hits],
            front: FRONTS[front],
            requests: REQUESTS[requests],
            bound: BOUNDS[bound],
        }
    }
}

impl Combination {
    /// Which levels it has.
    pub(crate) fn choice(&self) -> Choice {
        choices()
            .find(|choice| Self::from(*choice) == *self)
            .expect("a choice for each combination")
    }

    pub(crate) fn is_freecursive(&self) -> bool {
        matches!(self.map, Map::Freecursive | Map::FreecursiveWithoutPlb)
    }

    pub(crate) fn has_rho(&self) -> bool {
        matches!(self.front, Front::Rho | Front::CachedRho | Front::DelayedRho)
    }

    pub(crate) fn has_cache(&self) -> bool {
        !matches!(self.front, Front::None | Front::Rho)
    }
}

/// Every choice there is, whether it goes together or not.
pub(crate) fn choices() -> impl Iterator<Item = Choice> {
    (0..LEVELS.iter().product()).map(|mut number: usize| {
        LEVELS.map(|levels| {
            let level = number % levels;
            number /= levels;
            level
        })
    })
}
