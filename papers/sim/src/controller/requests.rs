//! The requests that wait for the controller.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::Cycle;

/// Numbers of waiting write-backs at which write-backs gain or lose priority over reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteWatermarks {
    /// The number of waiting write-backs at which write-backs start to go before reads. They do so
    /// until only [`Self::low`] remain.
    pub high: usize,
    /// The number of waiting write-backs at which reads go first again.
    pub low: usize,
}

/// A waiting request for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PendingRequest<T> {
    pub(super) what: T,
    pub(super) line: u64,
    /// The arrival time of the request.
    pub(super) since: Cycle,
}

/// Waiting reads and write-backs. Reads go first unless too many write-backs wait.
pub(super) struct Requests<T> {
    reads: VecDeque<PendingRequest<T>>,
    writes: VecDeque<PendingRequest<bool>>,
    marks: WriteWatermarks,
    drains: bool,
}

/// The request to serve next.
pub(super) enum NextRequest<T> {
    Read(PendingRequest<T>),
    /// A write-back, and whether the line is dirty.
    Write(PendingRequest<bool>),
}

impl<T: Copy> Requests<T> {
    pub(super) fn new(marks: WriteWatermarks) -> Self {
        Self { reads: VecDeque::new(), writes: VecDeque::new(), marks, drains: false }
    }

    pub(super) fn add_read(&mut self, what: T, line: u64, since: Cycle) {
        self.reads.push_back(PendingRequest { what, line, since });
    }

    pub(super) fn add_write(&mut self, line: u64, is_dirty: bool, since: Cycle) {
        self.writes.push_back(PendingRequest { what: is_dirty, line, since });
        self.drains |= self.writes.len() >= self.marks.high;
    }

    /// Removes the write-back of `line`. Returns whether the line is dirty, or `None` if it has no
    /// waiting write-back.
    pub(super) fn cancel_write(&mut self, line: u64) -> Option<bool> {
        let at = self.writes.iter().position(|waiting| waiting.line == line)?;
        self.writes.remove(at).map(|waiting| waiting.what)
    }

    /// Whether a write-back of `line` waits.
    pub(super) fn waits_to_be_written(&self, line: u64) -> bool {
        self.writes.iter().any(|waiting| waiting.line == line)
    }

    /// The arrival time of the oldest waiting request.
    pub(super) fn first(&self) -> Option<Cycle> {
        let read = self.reads.front().map(|waiting| waiting.since);
        let write = self.writes.front().map(|waiting| waiting.since);
        [read, write].into_iter().flatten().min()
    }

    /// Takes the waiting read of the line of the oldest write-back, if any, because it must precede
    /// the write-back. A line can leave the LLC before its read is served. With delayed remapping,
    /// the read must first take the block out of the ORAM, before the write-back puts it back.
    fn take_read_of_first_write(&mut self) -> Option<PendingRequest<T>> {
        let line = self.writes.front()?.line;
        let at = self.reads.iter().position(|waiting| waiting.line == line)?;
        self.reads.remove(at)
    }

    /// Takes the next request among those that arrived by `now`.
    pub(super) fn take(&mut self, now: Cycle) -> Option<NextRequest<T>> {
        let has_read = self.reads.front().is_some_and(|waiting| waiting.since <= now);
        let has_write = self.writes.front().is_some_and(|waiting| waiting.since <= now);
        if has_write && (self.drains || !has_read) {
            if let Some(read) = self.take_read_of_first_write() {
                return Some(NextRequest::Read(read));
            }
            let waiting = self.writes.pop_front();
            self.drains &= self.writes.len() > self.marks.low;
            return waiting.map(NextRequest::Write);
        }
        if has_read { self.reads.pop_front().map(NextRequest::Read) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(requests: &mut Requests<u8>, now: Cycle) -> Option<u64> {
        requests.take(now).map(|turn| match turn {
            NextRequest::Read(waiting) => waiting.line,
            NextRequest::Write(waiting) => waiting.line,
        })
    }

    #[test]
    fn what_has_not_come_yet_waits_on() {
        let mut requests = Requests::new(WriteWatermarks { high: 3, low: 1 });
        requests.add_read(1, 10, 100);
        requests.add_write(20, true, 200);
        assert_eq!(requests.first(), Some(100));
        assert_eq!(next(&mut requests, 99), None);
        assert_eq!(next(&mut requests, 100), Some(10));
        assert_eq!(next(&mut requests, 199), None);
        assert_eq!(next(&mut requests, 200), Some(20));
        assert_eq!(requests.first(), None);
    }

    #[test]
    fn reads_go_first_until_too_many_write_backs_wait() {
        let mut requests = Requests::new(WriteWatermarks { high: 3, low: 1 });
        (0..4).for_each(|line| requests.add_read(0, line, 0));
        [20, 21].into_iter().for_each(|line| requests.add_write(line, true, 0));
        assert_eq!(next(&mut requests, 9), Some(0));
        requests.add_write(22, true, 0);
        let order: Vec<_> = std::iter::from_fn(|| next(&mut requests, 9)).collect();
        assert_eq!(order, [20, 21, 1, 2, 3, 22]);
    }

    #[test]
    fn a_line_that_left_before_it_came_is_read_before_it_is_written() {
        let mut requests = Requests::new(WriteWatermarks { high: 1, low: 0 });
        (0..3).for_each(|line| requests.add_read(0, line, 0));
        requests.add_write(1, true, 0);
        let order: Vec<_> = std::iter::from_fn(|| next(&mut requests, 9)).collect();
        assert_eq!(order, [1, 1, 0, 2]);
    }

    #[test]
    fn a_write_back_can_be_taken_out() {
        let mut requests: Requests<u8> = Requests::new(WriteWatermarks { high: 3, low: 1 });
        requests.add_write(20, false, 0);
        requests.add_write(21, true, 0);
        assert!(requests.waits_to_be_written(21));
        assert_eq!([21, 21].map(|line| requests.cancel_write(line)), [Some(true), None]);
        assert_eq!(next(&mut requests, 9), Some(20));
    }
}
