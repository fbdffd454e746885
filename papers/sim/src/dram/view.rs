//! The scheduler's view of a channel: a window of reads, a window of writes, and which of the two
//! is served now.
//!
//! Reads are served before writes until the writes in view reach the high mark. Then writes are
//! served until they reach the low mark. Writes are also served if no reads wait. A write to a line
//! with a waiting read is held back until the read has been served.

use super::DramSpec;
use super::window::{QueuedRequest, Window};
use crate::trace::AccessKind;

/// The requests that the scheduler sees.
#[derive(Clone, Debug)]
pub(super) struct View {
    reads: Window,
    writes: Window,
    /// Whether writes are being drained: they are served although reads wait.
    draining: bool,
    drain_high: usize,
    drain_low: usize,
}

impl View {
    pub(super) fn new(spec: &DramSpec) -> Self {
        let banks = (spec.ranks * spec.banks) as usize;
        Self {
            reads: Window::new(banks, spec.queues.read),
            writes: Window::new(banks, spec.queues.write),
            draining: false,
            drain_high: spec.queues.drain_high as usize,
            drain_low: spec.queues.drain_low as usize,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    pub(super) fn has_reads(&self) -> bool {
        !self.reads.is_empty()
    }

    pub(super) fn has_room(&self, kind: AccessKind) -> bool {
        match kind {
            AccessKind::Read => self.reads.has_room(),
            AccessKind::Write => self.writes.has_room(),
        }
    }

    /// Whether a write to `line` in `bank` waits.
    pub(super) fn will_write(&self, bank: u32, line: u64) -> bool {
        self.writes.holds(bank, line)
    }

    pub(super) fn enter(
        &mut self,
        kind: AccessKind,
        bank: u32,
        request: QueuedRequest,
        open_row: Option<u32>,
    ) {
        match kind {
            AccessKind::Read => self.reads.push(bank, request, open_row),
            AccessKind::Write if self.reads.holds(bank, request.line) => {
                self.writes.hold(bank, request)
            }
            AccessKind::Write => self.writes.push(bank, request, open_row),
        }
        self.drain_from_the_high_mark();
    }

    /// Whether reads or writes are served now.
    pub(super) fn direction(&self) -> AccessKind {
        if self.draining || self.reads.is_empty() { AccessKind::Write } else { AccessKind::Read }
    }

    /// The window whose requests are served now.
    pub(super) fn window(&self) -> &Window {
        match self.direction() {
            AccessKind::Read => &self.reads,
            AccessKind::Write => &self.writes,
        }
    }

    /// Removes and returns the request that is served next for the open row of `bank`, if any.
    /// After the last read of a line, this releases the writes held back behind it.
    pub(super) fn take_hit(&mut self, bank: u32) -> Option<QueuedRequest> {
        match self.direction() {
            AccessKind::Read => {
                let taken = self.reads.take_hit(bank)?;
                if !self.reads.holds(bank, taken.line) {
                    self.writes.release(bank, taken.line, Some(taken.row));
                    self.drain_from_the_high_mark();
                }
                Some(taken)
            }
            AccessKind::Write => {
                let taken = self.writes.take_hit(bank)?;
                self.draining &= self.writes.len() > self.drain_low;
                Some(taken)
            }
        }
    }

    /// Notes that `bank` now has another open row, or none.
    pub(super) fn row_changed(&mut self, bank: u32, open_row: Option<u32>) {
        self.reads.row_changed(bank, open_row);
        self.writes.row_changed(bank, open_row);
    }

    fn drain_from_the_high_mark(&mut self) {
        self.draining |= self.writes.len() >= self.drain_high;
    }
}
