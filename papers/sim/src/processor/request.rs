//! The requests of a processor to memory.

use crate::Cycle;

/// The number of a fetch. Fetches are numbered from 0 in the order of their requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub(super) u64);

/// A request or notice to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// The LLC needs a line. Answer with [`Processor::answer`](super::Processor::answer).
    Fetch {
        /// The number of the fetch.
        id: FetchId,
        /// The number of the line.
        line: u64,
    },
    /// A dirty line leaves the LLC. It counts as a waiting write-back until
    /// [`Processor::written_back`](super::Processor::written_back).
    WriteBack {
        /// The number of the line.
        line: u64,
    },
    /// A clean line leaves the LLC. This matters only to ORAMs that remap blocks at this time
    /// (LLC-D of IR-ORAM, section IV-D).
    Dropped {
        /// The number of the line.
        line: u64,
    },
}

/// The next event of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessorEvent {
    /// A request, in order of time.
    Request {
        /// The cycle at which the request reaches memory.
        at: Cycle,
        /// The request to memory.
        request: Request,
    },
    /// No further instruction up to the horizon uses the LLC.
    Idle {
        /// The earliest cycle at which the next instruction that uses the LLC is fetched.
        at: Cycle,
    },
    /// The next event depends on a fetch without an answer, or a write-back that was not accepted
    /// yet.
    Blocked,
    /// All records up to the [mark](super::Processor::mark_after) have run. This event is returned
    /// at most once.
    WarmupDone {
        /// The cycle at which the next instruction that uses the LLC is fetched, unless it must
        /// wait for room.
        at: Cycle,
    },
    /// The end of the trace.
    Done {
        /// The cycle at which the last instruction retires; 0 without instructions.
        at: Cycle,
    },
}
