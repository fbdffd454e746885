//! The messages to readers, as JSON. `page/watch.js` reads them.

use oblivio_core::view::Total;
use serde::{Serialize, Serializer};

use super::Shown;

/// The first message to each reader.
#[derive(Serialize)]
pub(super) struct Hello {
    trees: Vec<Tree>,
    levels_on_client: u64,
    disk_bytes: u64,
    block_bytes: u32,
    frame_millis: u64,
    /// Whether frames contain the owner's side.
    shows_secrets: bool,
}

#[derive(Serialize)]
struct Tree {
    number: u16,
    /// Number of buckets on each level.
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

/// The state at a point in time. Totals count from the start, so a reader that misses a frame
/// recovers them from the next frame.
#[derive(Serialize)]
pub(super) struct Frame {
    /// Milliseconds since the start.
    pub(super) millis: u64,
    pub(super) storage: StorageFrame,
    /// The owner's activity. Secret. `None` if the page does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<OwnerFrame>,
}

/// The view of storage in one frame. Public.
#[derive(Serialize)]
pub(super) struct StorageFrame {
    /// Totals of each operation, in the order of
    /// [`Operation::ALL`](oblivio_core::view::Operation::ALL).
    pub(super) operations: [Sum; 4],
    /// Numbers of pieces read and written on each level of each tree.
    pub(super) levels: Vec<Vec<[u64; 2]>>,
    /// The visits of buckets since the previous frame: the first ones, up to a limit.
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

/// A read or write of a bucket in a trip.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Visit {
    pub(super) trip: u64,
    /// Index of the tree in [`Hello::trees`].
    pub(super) tree: usize,
    pub(super) is_write: bool,
    pub(super) level: u8,
    pub(super) bucket: u64,
}

/// Serialized as an array to save space: `[trip, tree, 1 for a write, level, bucket]`.
impl Serialize for Visit {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { trip, tree, is_write, level, bucket } = self;
        (trip, tree, u8::from(*is_write), level, bucket).serialize(to)
    }
}

/// The owner's activity in one frame. Secret.
#[derive(Serialize)]
pub(super) struct OwnerFrame {
    /// Numbers of requests so far, by [`RequestKind`].
    pub(super) requests: [u64; RequestKind::COUNT],
    pub(super) bytes: [u64; RequestKind::COUNT],
    /// The requests since the previous frame: the first ones, up to a limit.
    pub(super) latest: Vec<Requested>,
    pub(super) left_out: u64,
    pub(super) inner: Inner,
}

/// The kind of a request to a disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestKind {
    Read,
    Write,
    Zero,
    Trim,
    Flush,
}

impl RequestKind {
    pub(super) const COUNT: usize = Self::Flush as usize + 1;
}

/// A request of the owner.
pub(super) struct Requested {
    pub(super) kind: RequestKind,
    pub(super) offset: u64,
    pub(super) bytes: u64,
}

/// Serialized as `[kind, offset, bytes]`.
impl Serialize for Requested {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.kind as u8, self.offset, self.bytes).serialize(to)
    }
}

/// Counters from inside the volume. Secret.
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
