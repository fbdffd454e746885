//! The ORAMs that are compared, and the traffic of their accesses.

use std::fmt;

use oblivio_core::durable::rotating::DurableRaw;
use oblivio_core::durable::{ArrayRequirements, DurableScheme};
use oblivio_shares::tree::{InvalidTree, Preset, Tree};
use serde::{Deserialize, Serialize};

use crate::LabError;
use oblivio_models::link::{REQUEST_BYTES, Traffic, VolumeOnLink};

/// An ORAM with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Path ORAM with four blocks per bucket and all levels on the server.
    PathZ4,
    /// Path ORAM with five blocks per bucket and all levels on the server.
    PathZ5,
    /// Path ORAM Z5 with the number of levels of the paper's tree, for any size of blocks.
    PathZ5Of19,
    /// RAW ORAM Z5 A5 as in this project's volumes, with all levels on the server and the whole
    /// position map on the client.
    Raw,
    /// The default volume: the client keeps the levels that fit in 48 MiB, or in 96 MiB for the
    /// largest blocks.
    Default,
    /// S³ORAM with three servers as the paper counts it: Z = A = 333, elements of eight bytes that
    /// carry eight bytes.
    SharesPaper,
    /// S³ORAM with this project's trees and shares: Z 333, A 176, elements of a byte, and one of
    /// three shares derived from a seed.
    Shares,
}

/// Levels of the tree of the paper's Path ORAM: 40 GB in blocks of 128 KiB.
const PAPER_LEVELS: u32 = 19;

/// Memory of a volume's client in bytes. The second value, twice the first, is for the largest
/// blocks, which do not fit in less.
const CLIENT_BYTES: [u64; 2] = [48 << 20, 96 << 20];

impl Form {
    /// All ORAMs, in the order of tables.
    pub const ALL: [Self; 7] = [
        Self::PathZ4,
        Self::PathZ5,
        Self::PathZ5Of19,
        Self::Raw,
        Self::Default,
        Self::SharesPaper,
        Self::Shares,
    ];

    /// The traffic of an access, for a disk of `disk_bytes` in blocks of `block_bytes`. `None` if
    /// such a volume is impossible.
    ///
    /// # Errors
    /// [`LabError::Plan`] if S³ORAM has no tree of this size, and [`LabError::Engine`] if the
    /// parameters of a volume are inconsistent.
    pub fn traffic(self, disk_bytes: u64, block_bytes: u32) -> Result<Option<Traffic>, LabError> {
        let requirements = ArrayRequirements {
            block_bytes,
            ..ArrayRequirements::new(disk_bytes, DurableRaw.name())
        };
        // The tree has one to two blocks per leaf.
        let levels = requirements.blocks().max(1).ilog2() + 1;
        match self {
            Self::PathZ4 => Ok(Some(path(levels, 4, block_bytes))),
            Self::PathZ5 => Ok(Some(path(levels, 5, block_bytes))),
            Self::PathZ5Of19 => Ok(Some(path(PAPER_LEVELS, 5, block_bytes))),
            Self::Raw => {
                let requirements = ArrayRequirements {
                    tree_top_bytes_max: Some(0),
                    client_bytes_max: u64::MAX,
                    ..requirements
                };
                volume(&requirements)
            }
            Self::Default => {
                for client_bytes_max in CLIENT_BYTES {
                    let traffic =
                        volume(&ArrayRequirements { client_bytes_max, ..requirements.clone() })?;
                    if traffic.is_some() {
                        return Ok(traffic);
                    }
                }
                Ok(None)
            }
            Self::SharesPaper => {
                // S³ORAM, section 3.1: blocks use half of the tree's capacity.
                let tree =
                    Tree::for_blocks(2 * requirements.blocks(), Preset::PAPER).map_err(no_tree)?;
                Ok(Some(shares(tree, block_bytes, ShareEncoding::PAPER)))
            }
            Self::Shares => {
                let tree =
                    Tree::for_blocks(requirements.blocks(), Preset::LARGE).map_err(no_tree)?;
                Ok(Some(shares(tree, block_bytes, ShareEncoding::OURS)))
            }
        }
    }
}

fn no_tree(error: InvalidTree) -> LabError {
    LabError::Plan(format!("S³ORAM has no tree of this size: {error}"))
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PathZ4 => "Path ORAM Z4",
            Self::PathZ5 => "Path ORAM Z5",
            Self::PathZ5Of19 => "Path ORAM Z5, 19 levels",
            Self::Raw => "RAW ORAM, all on the server",
            Self::Default => "default volume",
            Self::SharesPaper => "S³ORAM as published, 3 servers",
            Self::Shares => "S³ORAM, bytes and seeds, 3 servers",
        })
    }
}

/// The traffic of reading a path and writing it back. As in the paper, only blocks are counted,
/// without headers and seals.
pub(crate) fn path(levels: u32, slots: u32, block_bytes: u32) -> Traffic {
    let pieces = f64::from(levels);
    let path_bytes = pieces * f64::from(slots) * f64::from(block_bytes);
    Traffic {
        answer_bytes: path_bytes,
        answer_pieces: pieces,
        read_bytes: path_bytes,
        written_bytes: path_bytes,
        pieces: 2.0 * pieces,
        trips: 2.0,
        accesses: 1.0,
    }
}

/// The number of servers of an S³ORAM.
pub(crate) const SERVERS: f64 = 3.0;

/// The encoding of shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ShareEncoding {
    /// Bytes of an element, which carries the same number of bytes of a block.
    pub(crate) element_bytes: f64,
    /// The number of servers to which the client sends a share: all servers, or only the servers
    /// that do not derive their share from a seed.
    pub(crate) sent: f64,
}

impl ShareEncoding {
    /// The published encoding.
    pub(crate) const PAPER: Self = Self { element_bytes: 8.0, sent: 3.0 };
    /// This project's encoding.
    pub(crate) const OURS: Self = Self { element_bytes: 1.0, sent: 2.0 };

    /// Bytes of a query to all servers. A share of the query has an element per slot of a path.
    pub(crate) fn query_bytes(self, tree: Tree) -> f64 {
        self.sent * self.element_bytes * tree.path_slots() as f64
    }

    /// Bytes that the client sends to all servers for the matrices of an eviction.
    pub(crate) fn matrix_bytes(self, tree: Tree) -> f64 {
        self.sent * self.element_bytes * matrix_elements(tree)
    }
}

/// Elements of the matrices of an eviction, before they are shared: one matrix per level below the
/// root, and one for the sibling of the path's leaf.
pub(crate) fn matrix_elements(tree: Tree) -> f64 {
    let slots = tree.slots() as f64;
    (f64::from(tree.height()) + 1.0) * 2.0 * slots * slots
}

/// The traffic of an access to an S³ORAM. The client sends shares of a query and of a block, and
/// receives a share of a block from each server. Every *A* accesses, it also sends the matrices of
/// an eviction. Traffic between servers does not count.
pub(crate) fn shares(tree: Tree, block_bytes: u32, form: ShareEncoding) -> Traffic {
    let accesses = tree.accesses() as f64;
    let query_bytes = form.query_bytes(tree);
    let block_bytes = f64::from(block_bytes);
    Traffic {
        answer_bytes: SERVERS * block_bytes,
        answer_pieces: query_bytes / REQUEST_BYTES,
        read_bytes: SERVERS * block_bytes,
        written_bytes: form.sent * block_bytes + form.matrix_bytes(tree) / accesses,
        pieces: query_bytes / REQUEST_BYTES,
        trips: 2.0 + 1.0 / accesses,
        accesses: 1.0,
    }
}

fn volume(requirements: &ArrayRequirements) -> Result<Option<Traffic>, LabError> {
    match DurableRaw.plan(requirements) {
        Ok(config) => Ok(Some(*VolumeOnLink::from_config(&*config)?.traffic())),
        Err(_) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::{PAPER_BLOCK_BYTES, PAPER_DISK_BYTES};
    use oblivio_models::link::Link;

    /// Compares the model's bytes with values computed by hand, for a tree of 40 GiB in blocks of
    /// 128 KiB with H = 11, as published.
    #[test]
    fn an_access_to_share_servers_transfers_the_bytes_of_the_paper() {
        let home = Link::new(29.0, 5.0, 15.0);
        let of = |form: Form| form.traffic(PAPER_DISK_BYTES, PAPER_BLOCK_BYTES).unwrap().unwrap();
        let published = of(Form::SharesPaper);
        let blocks = 3.0 * 131_072.0;
        let (query, matrices) = (3.0 * 8.0 * 12.0 * 333.0, 3.0 * 8.0 * 12.0 * 2.0 * 333.0 * 333.0);
        let up = blocks + query + matrices / 333.0;
        let bytes = published.up_bytes() - (2.0 + 1.0 / 333.0) * 32.0;
        assert!((bytes - up).abs() < 1.0, "{published:?}");
        let seconds = published.serial_seconds(home);
        assert!(
            (seconds - (up * 8.0 / 5e6 + blocks * 8.0 / 29e6 + 0.03)).abs() < 0.01,
            "{seconds}"
        );
        // One of three shares is derived from a seed, and an element is a byte.
        let ours = of(Form::Shares);
        let seconds = ours.serial_seconds(home);
        assert!((0.60..0.64).contains(&seconds), "{seconds}");
    }
}
