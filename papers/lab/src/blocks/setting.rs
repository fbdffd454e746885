//! How requests come to the ORAM, and where its positions are.

use oblivio_sim::cache::CacheShape;
use oblivio_sim::controller::OramSpec;

/// How requests come to the ORAM, and where its positions are. The paper says neither of its Figs. 3 to 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The position map is in the tree, programs run behind an LLC that stores do not fetch into, and their pages
    /// are at random places.
    MapInTree,
    /// All positions are on the client, and each record of a program asks the ORAM. Here is counted
    /// where blocks go, too.
    AllOnClient,
}

impl Setting {
    /// What it adds to the name of a run.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::MapInTree => "",
            Self::AllOnClient => "/all-on-client",
        }
    }

    /// `oram` with its positions where they are here.
    pub(super) fn spec(self, oram: OramSpec) -> OramSpec {
        match self {
            Self::MapInTree => oram,
            Self::AllOnClient => OramSpec { client_entries_max: oram.data_blocks, ..oram },
        }
    }

    /// The cache that programs run behind.
    pub(super) fn llc(self, shape: CacheShape) -> Option<CacheShape> {
        match self {
            Self::MapInTree => Some(shape),
            Self::AllOnClient => None,
        }
    }

    /// Whether it is counted where blocks go.
    pub(super) fn watches_migration(self) -> bool {
        self == Self::AllOnClient
    }

    /// In words.
    pub(super) fn remark(self) -> &'static str {
        match self {
            Self::MapInTree => {
                "The position map is in the tree. Programs run behind the LLC; stores that miss do not fetch, and pages \
                 are at random places."
            }
            Self::AllOnClient => {
                "All positions are on the client, so no block of a position map is in the tree, and programs run \
                 without an LLC: each miss of their first-level caches asks the ORAM."
            }
        }
    }
}
