//! What the engine asked memory for: the path of each access, as the tree under it tells.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use oblivio_core::geometry::Leaf;
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::{Event, EventSink, Operation};

/// What a path access is for. On the bus all look the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A block that was asked for (`PT_d`).
    Data,
    /// A block of the position map, of the level counted from 1 (`PT_p`).
    PositionMap(u8),
    /// Room in the stash: background eviction, or RAW ORAM's scheduled one.
    Eviction,
    /// Nothing: a slot of a fixed rate that nobody needed (`PT_m`).
    Dummy,
}

/// What of a path is written back after it was read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writes {
    /// All of it.
    Buckets,
    /// The headers alone: an access-only access of RAW ORAM.
    Headers,
}

/// A path that is read and written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathAccess {
    /// Of which tree: ρ has two.
    pub tree: TreeId,
    /// Which path.
    pub leaf: Leaf,
    /// What is written back.
    pub writes: Writes,
    /// What for.
    pub purpose: Purpose,
}

/// The paths of one controller, in the order in which they are made. Copies share them.
#[derive(Clone)]
pub(crate) struct PathLog {
    shared: Rc<Shared>,
    /// The last piece of the write under way.
    last_written: Option<Piece>,
}

struct Shared {
    purpose: Cell<Purpose>,
    is_on: Cell<bool>,
    paths: RefCell<Vec<PathAccess>>,
}

impl PathLog {
    /// A log that is off.
    pub(crate) fn new() -> Self {
        Self {
            shared: Rc::new(Shared {
                purpose: Cell::new(Purpose::Dummy),
                is_on: Cell::new(false),
                paths: RefCell::default(),
            }),
            last_written: None,
        }
    }

    /// From now on every path is noted.
    pub(crate) fn turn_on(&self) {
        self.shared.is_on.set(true);
    }

    /// Does `work`, and notes none of its paths.
    pub(crate) fn unseen<T>(&self, work: impl FnOnce() -> T) -> T {
        let was_on = self.shared.is_on.replace(false);
        let done = work();
        self.shared.is_on.set(was_on);
        done
    }

    /// What the paths from now on are for.
    pub(crate) fn set_purpose(&self, purpose: Purpose) {
        self.shared.purpose.set(purpose);
    }

    /// Moves what was noted since the last time to the end of `paths`.
    pub(crate) fn move_to(&self, paths: &mut impl Extend<PathAccess>) {
        paths.extend(self.shared.paths.borrow_mut().drain(..));
    }

    /// A path of a Path ORAM was read and written back.
    pub(crate) fn note(&self, tree: TreeId, leaf: Leaf) {
        let purpose = self.shared.purpose.get();
        self.push(PathAccess { tree, leaf, writes: Writes::Buckets, purpose });
    }

    /// In RAW ORAM only evictions write paths as a whole.
    fn note_raw(&self, Piece { tree, bucket, part }: Piece) {
        let (writes, purpose) = match part {
            Part::Header => (Writes::Headers, self.shared.purpose.get()),
            _ => (Writes::Buckets, Purpose::Eviction),
        };
        self.push(PathAccess { tree, leaf: Leaf(bucket.index()), writes, purpose });
    }

    fn push(&self, path: PathAccess) {
        if self.shared.is_on.get() {
            self.shared.paths.borrow_mut().push(path);
        }
    }
}

/// As the sink of a RAW ORAM's store, it notes the paths that are written.
impl EventSink for PathLog {
    fn record(&mut self, event: &Event, _: &[u8]) {
        if event.operation == Operation::Write {
            self.last_written = event.piece;
        }
    }

    fn turn_to(&mut self, operation: Option<Operation>) {
        // A path ends with the trip that writes it back: one that was read.
        if operation.is_none()
            && let Some(last) = self.last_written.take()
        {
            self.note_raw(last);
        }
    }
}
