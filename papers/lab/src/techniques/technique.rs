//! The rows of the table, and their ORAMs.

use oblivio_core::{HitPolicy, Integrity, RemapPolicy, TreeTopKind};

/// A row of the table: one technique, or several together.
#[derive(Clone, Copy, Debug)]
pub struct Technique {
    /// The name of the row.
    pub name: &'static str,
    /// The row without the technique, with which this row is compared.
    pub against: &'static str,
    /// The ORAM of the row.
    pub(super) setup: Setup,
}

/// The parts of an ORAM in the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setup {
    pub(super) scheme: Scheme,
    pub(super) map: Map,
    pub(super) top: Top,
    pub(super) tree_top: TreeTopKind,
    pub(super) hits: HitPolicy,
    pub(super) front: Front,
}

/// The scheme of an ORAM in the table.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scheme {
    /// Path ORAM with Z = 4.
    Path,
    /// Path ORAM with the buckets of IR-Alloc 1 to 4.
    PathAlloc(u8),
    /// RAW ORAM with Z = 5, A = 5.
    Raw,
}

/// The location of the position map.
#[derive(Clone, Copy, Debug)]
pub(super) enum Map {
    /// The map is in client memory.
    Flat,
    /// Two levels of the map are in the tree (Freecursive).
    Recursive { has_plb: bool, integrity: Integrity },
}

/// The rule for the number of levels that the client keeps. IR-Alloc's gain depends on the number
/// of levels in storage, and IR-Stash's gain on the number of levels on the client. The paper's
/// tree of 25 levels has 15 in storage and ten on the client. A smaller tree can match only one of
/// the two, so each technique is measured with the one that its gain depends on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Top {
    /// The number of levels that leaves as many levels in storage as in the paper: 15, or 60 slots
    /// per path.
    LikePaths,
    /// The number of levels in the paper: ten, or fewer in a small tree.
    LikeClient,
}

/// The cache in front of the ORAM.
#[derive(Clone, Copy, Debug)]
pub(super) enum Front {
    Nothing,
    /// A last-level cache (LLC).
    Cache(RemapPolicy),
    /// An LLC, and the small tree of ρ between it and the ORAM.
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

/// All rows, in three groups with a Baseline each.
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
