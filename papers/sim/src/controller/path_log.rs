//! Logs the path of each access that the engine makes, as seen by the tree under it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use oblivio_core::geometry::Leaf;
use oblivio_core::store::{Part, Piece, TreeId};
use oblivio_core::view::{Event, EventSink, Operation};

/// The purpose of a path access. In Path ORAM, all purposes look the same on the bus, unless the
/// [write queue answers](super::ControllerSpec::write_queue_answers) some reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A requested block (`PT_d`).
    Data,
    /// A block of the position map on this level, counted from 1 (`PT_p`).
    PositionMap(u8),
    /// An eviction: background, or scheduled in RAW ORAM.
    Eviction,
    /// A dummy, in a slot that nothing else uses (`PT_m`).
    Dummy,
}

/// The part of a path that is written back after the whole path was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Writes {
    /// All buckets of the path.
    Buckets,
    /// The headers only: an access-only access of RAW ORAM.
    Headers,
}

/// A path that is read and written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathAccess {
    /// The tree of the path. ρ has two trees.
    pub tree: TreeId,
    /// The leaf of the path.
    pub leaf: Leaf,
    /// The part written back.
    pub writes: Writes,
    /// The purpose of the path.
    pub purpose: Purpose,
}

/// The paths of one controller, in the order in which they were made. Clones share one log.
#[derive(Clone)]
pub(crate) struct PathLog {
    shared: Rc<Shared>,
    /// The piece written last, since the last path was logged.
    last_written: Option<Piece>,
}

struct Shared {
    purpose: Cell<Purpose>,
    is_on: Cell<bool>,
    paths: RefCell<Vec<PathAccess>>,
}

impl PathLog {
    /// Creates a log that is turned off.
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

    /// Starts to log paths.
    pub(crate) fn turn_on(&self) {
        self.shared.is_on.set(true);
    }

    /// Runs `work` without logging its paths.
    pub(crate) fn without_logging<T>(&self, work: impl FnOnce() -> T) -> T {
        let was_on = self.shared.is_on.replace(false);
        let done = work();
        self.shared.is_on.set(was_on);
        done
    }

    /// Sets the purpose of the following paths.
    pub(crate) fn set_purpose(&self, purpose: Purpose) {
        self.shared.purpose.set(purpose);
    }

    /// Moves the logged paths to the end of `paths`.
    pub(crate) fn move_to(&self, paths: &mut impl Extend<PathAccess>) {
        paths.extend(self.shared.paths.borrow_mut().drain(..));
    }

    /// Logs a path of Path ORAM that was read and written back.
    pub(crate) fn log_path(&self, tree: TreeId, leaf: Leaf) {
        let purpose = self.shared.purpose.get();
        self.push(PathAccess { tree, leaf, writes: Writes::Buckets, purpose });
    }

    /// Logs a path of RAW ORAM. The argument is the last piece that was written to the path, which
    /// is in the bucket of the leaf. Only evictions write whole buckets.
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

/// As the event sink of a RAW ORAM's store, a path log logs the paths that are written.
impl EventSink for PathLog {
    fn record(&mut self, event: &Event, _: &[u8]) {
        if event.operation == Operation::Write {
            self.last_written = event.piece;
        }
    }

    fn switch_to(&mut self, operation: Option<Operation>) {
        // A path ends with the trip that writes it back.
        if operation.is_none()
            && let Some(last) = self.last_written.take()
        {
            self.note_raw(last);
        }
    }
}
