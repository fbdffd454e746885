//! An out-of-order processor in the manner of USIMM, with a last-level cache (LLC), as IR-ORAM is
//! measured on (section V, Table I).
//!
//! It is driven by the misses of a first-level cache, and asks memory for what the LLC has not. How
//! long memory takes decides when the next requests come: a reorder buffer (ROB) full of instructions
//! behind a read that waits stands still.
//!
//! # The model
//! In each cycle, first up to `retire_width` instructions retire, and then up to `width` are fetched, both in
//! program order.
//!
//! - An instruction is fetched when there is room in the ROB. It retires when it is complete.
//! - It completes `depth` cycles after its fetch, a read `llc_latency` later, and not before its line
//!   has come.
//! - A record of the trace is `gap` instructions that use no memory, and then one that does. That one
//!   looks into the LLC when it is fetched: a line is in it from the read or write that missed it on,
//!   and the line used longest ago has left, which is a request too. Requests reach memory `llc_latency`
//!   after that, the fetch before the victim.
//! - A read of a line under way waits for the same answer. A line that left before it came is asked for
//!   again.
//! - Where a path of an ORAM [stops retirement](ProcessorSpec::paths_stop_retirement), nothing retires from the
//!   cycle in which it starts until it is read.
//! - Nobody waits for a write. Where a changed line must leave and there is no room for a write-back, or
//!   for a fetch that is needed, the instruction is fetched when there is.
//!
//! Nothing is done for each cycle, nor for each instruction: the cost is that of the records (see
//! `pipeline.rs`).
//!
//! # How to drive it
//! The caller *pulls* requests with [`Processor::next`], and says when memory is done with them. What
//! comes out depends on what was answered with which cycle, not on when the caller says so: a request
//! is handed out only when no answer can change it.
//!
//! ```
//! use oblivio_sim::Cycle;
//! use oblivio_sim::processor::{Next, Processor, ProcessorSpec, Request};
//! use oblivio_sim::trace::{Kind, Record};
//!
//! /// A memory that answers each fetch after `latency` cycles and takes write-backs at once.
//! fn fixed(latency: Cycle, mut processor: Processor<impl Iterator<Item = Record>>) -> Cycle {
//!     loop {
//!         match processor.next(Cycle::MAX) {
//!             Next::Ask { at, request: Request::Fetch { id, .. } } => {
//!                 processor.answer(id, at + latency);
//!             }
//!             Next::Ask { at, request: Request::WriteBack { .. } } => processor.written_back(at),
//!             Next::Ask { request: Request::Dropped { .. }, .. } => {}
//!             Next::Done { at } => return at,
//!             Next::Later { .. } => unreachable!("nothing is beyond the last cycle"),
//!             Next::Marked { .. } => unreachable!("nobody has asked for it"),
//!             Next::Waits => unreachable!("all is answered at once"),
//!         }
//!     }
//! }
//!
//! let reads = (0..1000).map(|line| Record { gap: 31, kind: Kind::Read, line });
//! let processor = Processor::new(&ProcessorSpec::default(), reads)?;
//! assert_eq!(fixed(400, processor), 102_531);
//! # Ok::<(), oblivio_sim::SimError>(())
//! ```
//!
//! A controller with a clock of its own takes the least of its next event and that of the processor,
//! and pulls up to that cycle before it acts. Then [`Processor::llc`] is what it is at that cycle, as an
//! early write-back (IR-DWB) needs it.

mod fetches;
mod machine;
mod pipeline;
mod request;
mod room;
mod spec;
mod tally;

pub use machine::Processor;
pub use request::{FetchId, Next, Request};
pub use spec::{FETCH_ROOM_MAX, ProcessorSpec};
pub use tally::{Stalls, Tally};
