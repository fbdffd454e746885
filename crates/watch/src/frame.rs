//! What readers are sent, as JSON: `page/watch.js` reads it.

use oblivio_core::view::Total;
use serde::{Serialize, Serializer};

use super::Shown;

/// Said first to each reader.
#[derive(Serialize)]
pub(super) struct Hello {
    trees: Vec<Tree>,
    levels_on_client: u64,
    disk_bytes: u64,
    block_bytes: u32,
    frame_millis: u64,
    /// Whether frames have an owner's side.
    shows_secrets: bool,
}

#[derive(Serialize)]
struct Tree {
    number: u16,
    /// Of each level.
    buckets: Vec<u64>,
}

impl Hello {
    pub(super) fn of(shown: &Shown, frame_millis: u64) -> Self {
        let trees = shown.storage.trees().into_iter();
        Self {
            trees: trees
                .map(|drawn| Tree { number: drawn.tree.0, buckets: drawn.buckets })
                .collect(),
            levels_on_client: shown.levels_on_client,
            disk_bytes: shown.disk_bytes,
            block_bytes: shown.block_bytes,
            frame_millis,
            shows_secrets: shown.owner.is_some(),
        }
    }
}

/// What has happened by a moment. Sums are those since the beginning: whoever misses a frame has them from the next.
#[derive(Serialize)]
pub(super) struct Frame {
    /// Since the beginning.
    pub(super) millis: u64,
    pub(super) storage: StorageFrame,
    /// Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<OwnerFrame>,
}

/// Public.
#[derive(Serialize)]
pub(super) struct StorageFrame {
    /// In the order of [`Operation::ALL`](oblivio_core::view::Operation::ALL).
    pub(super) operations: [Sum; 4],
    /// Pieces that were read and written, of each level of each tree.
    pub(super) levels: Vec<Vec<[u64; 2]>>,
    /// Since the frame before.
    pub(super) visits: Vec<Visit>,
    pub(super) visits_left_out: u64,
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct Sum {
    pub(super) trips: u64,
    pub(super) bytes: u64,
}

impl From<Total> for Sum {
    fn from(Total { trips, bytes, .. }: Total) -> Self {
        Self { trips, bytes }
    }
}

/// A bucket that was read or written in a trip.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) trip: u64,
    /// Which of those that are drawn.
    pub(super) tree: usize,
    pub(super) is_write: bool,
    pub(super) level: u8,
    pub(super) bucket: u64,
}

/// `[trip, tree, 1 for a write, level, bucket]`: there are many of them.
impl Serialize for Visit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { trip, tree, is_write, level, bucket } = self;
        (trip, tree, u8::from(*is_write), level, bucket).serialize(to)
    }
}

/// Secret.
#[derive(Serialize)]
pub(super) struct OwnerFrame {
    /// Of each [`Kind`].
    pub(super) requests: [u64; Kind::COUNT],
    pub(super) bytes: [u64; Kind::COUNT],
    /// Since the frame before.
    pub(super) latest: Vec<Requested>,
    pub(super) left_out: u64,
    pub(super) inner: Inner,
}

/// What is asked of a disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Zero,
    Trim,
    Flush,
}

impl Kind {
    pub(super) const COUNT: usize = Self::Flush as usize + 1;
}

/// A request of the owner.
pub(super) struct Requested {
    pub(super) kind: Kind,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// `[kind, offset, bytes]`.
impl Serialize for Requested {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.kind as u8, self.offset, self.bytes).serialize(to)
    }
}

/// What goes on inside of the volume.
#[derive(Serialize)]
pub(super) struct Inner {
    pub(super) to_blocks: u64,
    pub(super) to_positions: u64,
    pub(super) to_nothing: u64,
    pub(super) stash: Option<Stash>,
}

#[derive(Serialize)]
pub(super) struct Stash {
    pub(super) blocks: u64,
    pub(super) blocks_max: u64,
}
