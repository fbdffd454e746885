//! Settings: the caches between a program and the ORAM, and the location of the position map.

use oblivio_sim::cache::CacheShape;
use oblivio_sim::controller::OramSpec;

/// The caches between a program and the ORAM, and the location of the position map. The paper
/// states neither for Figs. 3 to 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSetting {
    /// The position map is in the tree. Programs run behind an LLC that does not allocate on write
    /// misses, and their pages are placed at random.
    MapInTree,
    /// All positions are on the client, and each record of a program is a request to the ORAM.
    /// Moves of blocks are counted, too.
    AllOnClient,
}

impl RequestSetting {
    /// The suffix that this setting adds to the name of a run.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::MapInTree => "",
            Self::AllOnClient => "/all-on-client",
        }
    }

    /// Returns `oram` with its position map as in this setting.
    pub(super) fn spec(self, oram: OramSpec) -> OramSpec {
        match self {
            Self::MapInTree => oram,
            Self::AllOnClient => OramSpec { client_entries_max: oram.data_blocks, ..oram },
        }
    }

    /// Returns the LLC in front of the ORAM, or `None` if the setting has no LLC.
    pub(super) fn llc(self, shape: CacheShape) -> Option<CacheShape> {
        match self {
            Self::MapInTree => Some(shape),
            Self::AllOnClient => None,
        }
    }

    /// Whether moves of blocks are counted.
    pub(super) fn watches_migration(self) -> bool {
        self == Self::AllOnClient
    }

    /// A description for the remarks of a figure.
    pub(super) fn remark(self) -> &'static str {
        match self {
            Self::MapInTree => {
                "The position map is in the tree. Programs run behind the LLC; stores that miss do \
                 not fetch, and pages are at random places."
            }
            Self::AllOnClient => {
                "All positions are on the client, so no block of a position map is in the tree, \
                 and programs run without an LLC: each miss of their first-level caches asks the \
                 ORAM."
            }
        }
    }
}
