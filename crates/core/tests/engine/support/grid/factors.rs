//! The factors of the grid and their levels.

pub(crate) use oblivio_core::schemes::TreeScheme as Scheme;
use oblivio_core::{HitPolicy, Integrity};

/// The kind and location of the position map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    Flat,
    /// Plain recursion, with a tree for each level.
    Recursive,
    /// A position map in the same tree, without a PLB: every request fetches its whole chain.
    FreecursiveWithoutPlb,
    Freecursive,
    /// A position map in the tree of rotating RAW ORAM.
    Nested,
}

/// The numbers of slots of the buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slots {
    Uniform,
    /// A separate number of slots for each level (IR-Alloc).
    Profile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    None,
    Dedicated,
    /// A set-associative tree top, as in IR-Stash.
    Sets,
}

/// The components in front of the ORAM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    None,
    CacheAtAccess,
    CacheDelayed,
    Rho,
    /// A cache that remaps at accesses, in front of ρ: the cache writes its dirty victims to ρ.
    CachedRho,
    /// A cache with delayed remapping in front of ρ, as in the paper on ρ: cached blocks are
    /// outside of the ORAM.
    DelayedRho,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requests {
    Single,
    Batches,
}

/// The stash bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The stash cannot exceed the bound.
    Loose,
    /// The stash often exceeds the bound, and background evictions make room.
    Tight,
}

/// A choice of one level of each factor.
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

/// The number of levels (choices) of each factor, in the order of the factors.
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

/// A combination as numbers: for each factor, the number of the chosen level.
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
    /// The choice (one level number for each factor) that gives this combination.
    pub(crate) fn choice(&self) -> Choice {
        choices()
            .find(|choice| Self::from(*choice) == *self)
            .expect("every combination has a choice")
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

/// All choices, including those that the engine refuses.
pub(crate) fn choices() -> impl Iterator<Item = Choice> {
    (0..LEVELS.iter().product()).map(|mut number: usize| {
        LEVELS.map(|levels| {
            let level = number % levels;
            number /= levels;
            level
        })
    })
}
