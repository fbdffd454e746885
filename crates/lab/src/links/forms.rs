//! The ORAMs that are compared, and what their accesses move.

use std::fmt;

use oblivio_core::durable::rotating::DurableRaw;
use oblivio_core::durable::{DurableScheme, Wish};
use serde::{Deserialize, Serialize};

use crate::LabError;
use crate::link::{Traffic, VolumeOnLink};

/// An ORAM with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Path ORAM, four blocks a bucket, all levels on the server.
    PathZ4,
    /// Path ORAM, five blocks a bucket, all levels on the server.
    PathZ5,
    /// The same with as many levels as the paper's tree has, whatever the blocks.
    PathZ5Of19,
    /// RAW ORAM as this project's volumes have it, Z5 A5, all levels and nothing of the map on the server.
    Raw,
    /// A volume as it is by default: the client keeps what has room in 48 MiB.
    Default,
}

/// Levels of the tree of the paper's Path ORAM: 40 GB in blocks of 128 KiB.
const PAPER_LEVELS: u32 = 19;

/// Memory of the client of a volume; of one with the largest blocks twice as much, which has no room in less.
const CLIENT_BYTES: [u64; 2] = [48 << 20, 96 << 20];

impl Form {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::PathZ4, Self::PathZ5, Self::PathZ5Of19, Self::Raw, Self::Default];

    /// What an access moves, for a disk of so many bytes in blocks of so many. None if there is no such volume.
    ///
    /// # Errors
    /// [`LabError::Engine`] when the parameters contradict each other.
    pub fn traffic(self, disk_bytes: u64, block_bytes: u32) -> Result<Option<Traffic>, LabError> {
        let wish = Wish { block_bytes, ..Wish::new(disk_bytes, DurableRaw.name()) };
        // A leaf for a block, or for up to two.
        let levels = wish.blocks().max(1).ilog2() + 1;
        match self {
            Self::PathZ4 => Ok(Some(path(levels, 4, block_bytes))),
            Self::PathZ5 => Ok(Some(path(levels, 5, block_bytes))),
            Self::PathZ5Of19 => Ok(Some(path(PAPER_LEVELS, 5, block_bytes))),
            Self::Raw => {
                let wish = Wish { tree_top_bytes_max: Some(0), client_bytes_max: u64::MAX, ..wish };
                volume(&wish)
            }
            Self::Default => {
                for client_bytes_max in CLIENT_BYTES {
                    let traffic = volume(&Wish { client_bytes_max, ..wish.clone() })?;
                    if traffic.is_some() {
                        return Ok(traffic);
                    }
                }
                Ok(None)
            }
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PathZ4 => "Path ORAM Z4",
            Self::PathZ5 => "Path ORAM Z5",
            Self::PathZ5Of19 => "Path ORAM Z5, 19 levels",
            Self::Raw => "RAW ORAM, all on the server",
            Self::Default => "default volume",
        })
    }
}

/// A path is read, and written back. As in the paper, blocks alone are counted, and nothing that seals them.
pub(super) fn path(levels: u32, slots: u32, block_bytes: u32) -> Traffic {
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

fn volume(wish: &Wish) -> Result<Option<Traffic>, LabError> {
    match DurableRaw.plan(wish) {
        Ok(config) => Ok(Some(*VolumeOnLink::of(&*config)?.traffic())),
        Err(_) => Ok(None),
    }
}
