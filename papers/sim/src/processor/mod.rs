//! An out-of-order processor with a last-level cache (LLC), modelled after USIMM, as used in
//! IR-ORAM's evaluation (section V, Table I).
//!
//! Its input is a trace of first-level cache misses, and it requests from memory the lines that
//! miss the LLC. The latency of memory determines the times of the next requests: a reorder buffer
//! (ROB) that is full behind a waiting read stalls fetch.
//!
//! # The model
//! In each cycle, up to `retire_width` instructions retire, and then up to `width` instructions are
//! fetched, both in program order.
//!
//! - An instruction is fetched when the ROB has room, and retires when it is complete.
//! - An instruction completes `depth` cycles after its fetch. A read takes `llc_latency` longer,
//!   and at least until its line has arrived.
//! - A record of the trace consists of `gap` instructions without memory access, and one with an
//!   access. The latter looks up the LLC when it is fetched. From a miss on, the line counts as
//!   cached and the LRU line as evicted. The eviction is another request. Requests reach memory
//!   `llc_latency` later, the fetch before the victim.
//! - A read of a line in flight waits for the same answer. If the line is evicted before it
//!   arrives, the next read of it requests it again.
//! - If paths of an ORAM [stop retirement](ProcessorSpec::paths_stop_retirement), nothing retires
//!   from the start of a path until it is read.
//! - Writes never wait for data. If a dirty line must be evicted and there is no room for a
//!   write-back, or for a necessary fetch, the instruction is fetched when there is room.
//!
//! The simulation does no work per cycle or per instruction. Its cost is proportional to the number
//! of records (see `pipeline.rs`).
//!
//! # How to drive it
//! The caller *pulls* requests with [`Processor::next`], and passes in the answers of memory with
//! their cycles. The result depends on these cycles, but not on the order of the calls: a request
//! is returned only when no answer can change it any more.
//!
//! ```
//! use oblivio_sim::Cycle;
//! use oblivio_sim::processor::{Processor, ProcessorEvent, ProcessorSpec, Request};
//! use oblivio_sim::trace::{AccessKind, Record};
//!
//! /// A memory that answers each fetch after `latency` cycles and takes write-backs at once.
//! fn fixed(latency: Cycle, mut processor: Processor<impl Iterator<Item = Record>>) -> Cycle {
//!     loop {
//!         match processor.next(Cycle::MAX) {
//!             ProcessorEvent::Request { at, request: Request::Fetch { id, .. } } => {
//!                 processor.answer(id, at + latency);
//!             }
//!             ProcessorEvent::Request { at, request: Request::WriteBack { .. } } => {
//!                 processor.written_back(at);
//!             }
//!             ProcessorEvent::Request { request: Request::Dropped { .. }, .. } => {}
//!             ProcessorEvent::Done { at } => return at,
//!             ProcessorEvent::Idle { .. } => unreachable!("nothing is beyond the last cycle"),
//!             ProcessorEvent::WarmupDone { .. } => unreachable!("no mark was set"),
//!             ProcessorEvent::Blocked => unreachable!("every request is answered at once"),
//!         }
//!     }
//! }
//!
//! let reads = (0..1000).map(|line| Record { gap: 31, kind: AccessKind::Read, line });
//! let processor = Processor::new(&ProcessorSpec::default(), reads)?;
//! assert_eq!(fixed(400, processor), 102_531);
//! # Ok::<(), oblivio_sim::SimError>(())
//! ```
//!
//! A controller with its own clock compares its next event with the processor's, and pulls requests
//! up to that cycle before it acts. [`Processor::llc`] is then the LLC at that cycle, as an early
//! write-back (IR-DWB) needs it.

mod fetches;
mod machine;
mod pipeline;
mod request;
mod slot_pool;
mod spec;
mod tally;

pub use machine::Processor;
pub use request::{FetchId, ProcessorEvent, Request};
pub use spec::{FETCH_ROOM_MAX, ProcessorSpec};
pub use tally::{Stalls, Tally};
