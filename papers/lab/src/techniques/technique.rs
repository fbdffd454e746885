//! The rows of the table: which parts each is made of.

use oblivio_core::{HitPolicy, Integrity, RemapPolicy, TreeTopKind};

/// A row: one technique, or some together.
#[derive(Clone, Copy, Debug)]
pub struct Technique {
    /// What it is called.
    pub name: &'static str,
    /// The row that its gain is over: the same without the technique.
    pub against: &'static str,
    /// What it is made of.
    pub(super) setup: Setup,
}

/// What an ORAM of the table is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) scheme: Scheme,
    pub(super) map: Map,
    pub(super) top: Top,
    pub(super) tree_top: TreeTopKind,
    pub(super) hits: HitPolicy,
    pub(super) front: Front,
}

/// What makes path accesses.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scheme {
    /// Path ORAM with Z = 4.
    Path,
    /// Path ORAM with the buckets of IR-Alloc 1 to 4.
    PathAlloc(u8),
    /// RAW ORAM with Z = 5, A = 5.
    Raw,
}

/// Where the position map lies.
#[derive(Clone, Copy, Debug)]
pub(super) enum Map {
    /// In client memory.
    Flat,
    /// In the tree (Freecursive), two levels of it.
    Recursive { has_plb: bool, integrity: Integrity },
}

/// How many levels the client keeps. What IR-Alloc gains depends on how far storage begins from the
/// leaves, and what IR-Stash gains on how many blocks the client holds. In the paper's tree of 25
/// levels ten are both; in a smaller tree they are two different things, and each technique is
/// measured where it has what it needs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Top {
    /// So many that as many levels are in storage as in the paper: 15, or 60 slots a path.
    LikePaths,
    /// As many as in the paper: ten.
    LikeClient,
}

/// What lies in front of the ORAM.
#[derive(Clone, Copy, Debug)]
pub(super) enum Front {
    Nothing,
    /// A last-level cache (LLC).
    Cache(RemapPolicy),
    /// The same, and between it and the ORAM the small tree of ρ.
    CacheAndRho,
}

const BASELINE: Setup = Setup {
    scheme: Scheme::Path,
    map: Map::Recursive { has_plb: true, integrity: Integrity::None },
    top: Top::LikePaths,
    tree_top: TreeTopKind::Dedicated,
    hits: HitPolicy::Access,
    front: Front::Nothing,
};

const FLAT: Setup = Setup { map: Map::Flat, ..BASELINE };
const RAW: Setup = Setup { scheme: Scheme::Raw, ..BASELINE };

const CLIENT: Setup = Setup { top: Top::LikeClient, ..BASELINE };
const IR_STASH: Setup =
    Setup { tree_top: TreeTopKind::SetAssociative { ways: 4 }, hits: HitPolicy::Serve, ..CLIENT };

const UNDER_LLC: Setup = Setup { front: Front::Cache(RemapPolicy::AtAccess), ..CLIENT };
const LLC_D: Setup = Setup { front: Front::Cache(RemapPolicy::Delayed), ..CLIENT };

pub(super) const NAME_BASELINE: &str = "Baseline";
pub(super) const NAME_FLAT: &str = "flat map";
pub(super) const NAME_RAW: &str = "RAW Z5A5";
pub(super) const NAME_RAW_FLAT: &str = "RAW Z5A5, flat map";
pub(super) const NAME_CLIENT: &str = "Baseline, large top";
pub(super) const NAME_SERVED: &str = "stash hits served";
pub(super) const NAME_IR_STASH: &str = "IR-Stash";
pub(super) const NAME_IR_ORAM: &str = "IR-Stash + IR-Alloc 1";
pub(super) const NAME_LLC: &str = "Baseline, LLC";
pub(super) const NAME_LLC_D: &str = "LLC-D";
pub(super) const NAME_LLC_D_IR: &str = "LLC-D + IR-Stash + IR-Alloc 1";
pub(super) const NAME_RHO: &str = "Rho";

/// Every row, in three groups: one for each Baseline.
pub const TECHNIQUES: &[Technique] = &[
    Technique { name: NAME_BASELINE, against: NAME_BASELINE, setup: BASELINE },
    Technique { name: NAME_FLAT, against: NAME_BASELINE, setup: FLAT },
    Technique {
        name: "no PLB",
        against: NAME_BASELINE,
        setup: Setup {
            map: Map::Recursive { has_plb: false, integrity: Integrity::None },
            ..BASELINE
        },
    },
    Technique {
        name: "PMMAC",
        against: NAME_BASELINE,
        setup: Setup {
            map: Map::Recursive { has_plb: true, integrity: Integrity::Pmmac },
            ..BASELINE
        },
    },
    ir_alloc("IR-Alloc 1", 1),
    ir_alloc("IR-Alloc 2", 2),
    ir_alloc("IR-Alloc 3", 3),
    ir_alloc("IR-Alloc 4", 4),
    Technique { name: NAME_RAW, against: NAME_BASELINE, setup: RAW },
    Technique {
        name: NAME_RAW_FLAT,
        against: NAME_FLAT,
        setup: Setup { scheme: Scheme::Raw, ..FLAT },
    },
    Technique { name: NAME_CLIENT, against: NAME_CLIENT, setup: CLIENT },
    Technique {
        name: NAME_SERVED,
        against: NAME_CLIENT,
        setup: Setup { hits: HitPolicy::Serve, ..CLIENT },
    },
    Technique { name: NAME_IR_STASH, against: NAME_CLIENT, setup: IR_STASH },
    Technique {
        name: NAME_IR_ORAM,
        against: NAME_CLIENT,
        setup: Setup { scheme: Scheme::PathAlloc(1), ..IR_STASH },
    },
    Technique {
        name: "RAW Z5A5, large top",
        against: NAME_CLIENT,
        setup: Setup { scheme: Scheme::Raw, ..CLIENT },
    },
    Technique {
        name: "RAW Z5A5 + IR-Stash",
        against: NAME_CLIENT,
        setup: Setup { scheme: Scheme::Raw, ..IR_STASH },
    },
    Technique { name: NAME_LLC, against: NAME_LLC, setup: UNDER_LLC },
    Technique { name: NAME_LLC_D, against: NAME_LLC, setup: LLC_D },
    Technique {
        name: NAME_LLC_D_IR,
        against: NAME_LLC,
        setup: Setup {
            scheme: Scheme::PathAlloc(1),
            tree_top: IR_STASH.tree_top,
            hits: IR_STASH.hits,
            ..LLC_D
        },
    },
    Technique {
        name: NAME_RHO,
        against: NAME_LLC,
        setup: Setup { front: Front::CacheAndRho, ..CLIENT },
    },
];

const fn ir_alloc(name: &'static str, number: u8) -> Technique {
    let setup = Setup { scheme: Scheme::PathAlloc(number), ..BASELINE };
    Technique { name, against: NAME_BASELINE, setup }
}
