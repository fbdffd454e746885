//! A connection between two machines that can be cut at any byte.
//!
//! The calling machine runs in step with the called one: [`LineEnd::wait_until_idle`] returns after
//! the other machine has handled all requests and its answers were read, or the line is cut. So the
//! order of events on both machines depends only on the seed.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// The number of bytes in each direction after which a line is cut. Bytes after that never arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutAfter {
    /// Bytes from the calling machine.
    pub there: usize,
    /// Bytes to the calling machine.
    pub back: usize,
}

impl CutAfter {
    /// Limits with which the line is never cut.
    pub const NEVER: Self = Self { there: usize::MAX, back: usize::MAX };
}

/// One end of a line, for reading and writing. Clones are the same end.
#[derive(Clone)]
pub struct LineEnd {
    line: Arc<SharedLine>,
    /// Index in [`State::ways`] of the direction from which this end receives.
    comes: usize,
}

struct SharedLine {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The two directions, indexed by [`THERE`] and [`BACK`].
    ways: [LineDirection; 2],
    is_cut: bool,
}

struct LineDirection {
    bytes: VecDeque<u8>,
    /// Number of bytes that still pass in this direction before the cut.
    left: usize,
    /// Whether a reader waits, because no bytes have arrived.
    is_awaited: bool,
    /// The thread of the latest read.
    read_by: Option<ThreadId>,
    /// Whether the receiver will read no more.
    is_over: bool,
}

const THERE: usize = 0;
const BACK: usize = 1;

/// Creates a line. Returns the ends of the calling machine and of the called one.
pub fn line(cut: CutAfter) -> (LineEnd, LineEnd) {
    let way = |left| LineDirection {
        bytes: VecDeque::new(),
        left,
        is_awaited: false,
        read_by: None,
        is_over: false,
    };
    let state = State { ways: [way(cut.there), way(cut.back)], is_cut: false };
    let line = Arc::new(SharedLine { state: Mutex::new(state), changed: Condvar::new() });
    (LineEnd { line: line.clone(), comes: BACK }, LineEnd { line, comes: THERE })
}

impl LineEnd {
    fn state(&self) -> MutexGuard<'_, State> {
        self.line.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until bytes are available, and reads them into `buffer`. Returns their number, or 0 if
    /// the line is cut and all bytes that arrived before the cut have been read.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] if no byte arrives within `within`.
    pub fn read(&self, buffer: &mut [u8], within: Option<Duration>) -> io::Result<usize> {
        let mut state = self.state();
        state.ways[self.comes].read_by = Some(thread::current().id());
        state.ways[self.comes].is_awaited = state.ways[self.comes].bytes.is_empty();
        self.line.changed.notify_all();
        let has_nothing =
            |state: &mut State| state.ways[self.comes].bytes.is_empty() && !state.is_cut;
        let within = within.unwrap_or(Duration::MAX);
        let waited = self.line.changed.wait_timeout_while(state, within, has_nothing);
        let (mut state, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        let way = &mut state.ways[self.comes];
        way.is_awaited = false;
        if waited.timed_out() {
            return Err(ErrorKind::TimedOut.into());
        }
        let count = way.bytes.len().min(buffer.len());
        way.bytes.drain(..count).zip(buffer).for_each(|(byte, room)| *room = byte);
        self.line.changed.notify_all();
        Ok(count)
    }

    /// Sends `bytes`. As on a network, the sender does not learn of a cut.
    pub fn write(&self, bytes: &[u8]) {
        let mut state = self.state();
        if state.is_cut {
            return;
        }
        let way = &mut state.ways[1 - self.comes];
        let count = way.left.min(bytes.len());
        way.bytes.extend(&bytes[..count]);
        way.left -= count;
        way.is_awaited = false;
        state.is_cut = way.left == 0;
        self.line.changed.notify_all();
    }

    /// Waits until the other side has handled all requests and waits for more, or until the line is
    /// cut. If another thread reads at this end, also waits until that thread has read all answers
    /// or, after a cut, has [finished](Self::stop_reading).
    ///
    /// # Panics
    /// After a minute, because the order of events would no longer depend only on the seed.
    pub fn wait_until_idle(&self) {
        const LONG: Duration = Duration::from_secs(60);
        let me = thread::current().id();
        let is_under_way = |state: &mut State| {
            let [there, back] = [&state.ways[1 - self.comes], &state.ways[self.comes]];
            let others_read = back.read_by.is_some_and(|reader| reader != me);
            match state.is_cut {
                true => others_read && !back.is_over,
                false => !there.is_awaited || others_read && !back.bytes.is_empty(),
            }
        };
        let settled = self.line.changed.wait_timeout_while(self.state(), LONG, is_under_way);
        let (state, waited) = settled.unwrap_or_else(PoisonError::into_inner);
        drop(state);
        assert!(!waited.timed_out(), "the called machine did not answer within a minute");
    }

    /// Cuts the line. Bytes already sent still arrive.
    pub fn cut(&self) {
        self.state().is_cut = true;
        self.line.changed.notify_all();
    }

    /// Cuts the line, and declares that the reader at this end has finished.
    pub fn stop_reading(&self) {
        let mut state = self.state();
        state.is_cut = true;
        state.ways[self.comes].is_over = true;
        drop(state);
        self.line.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(end: &LineEnd) -> Vec<u8> {
        let (mut all, mut some) = (Vec::new(), [0; 3]);
        loop {
            match end.read(&mut some, None).unwrap() {
                0 => return all,
                count => all.extend(&some[..count]),
            }
        }
    }

    #[test]
    fn only_bytes_sent_before_the_cut_arrive() {
        for there in 1..8 {
            let (near, far) = line(CutAfter { there, back: usize::MAX });
            near.write(b"abc");
            near.write(b"defg");
            near.cut();
            near.write(b"late");
            assert_eq!(read_all(&far), b"abcdefg"[..there]);
            assert_eq!(read_all(&near), b"");
        }
        let (near, _far) = line(CutAfter::NEVER);
        let soon = Some(Duration::from_millis(5));
        assert_eq!(near.read(&mut [0], soon).unwrap_err().kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn the_calling_machine_runs_in_step_with_the_called_one() {
        let (near, far) = line(CutAfter::NEVER);
        let done = Mutex::new(Vec::new());
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut asked = [0];
                while far.read(&mut asked, None).unwrap() > 0 {
                    thread::sleep(Duration::from_millis(1));
                    done.lock().unwrap().push(asked[0]);
                    far.write(&asked);
                }
            });
            let answers = scope.spawn(|| read_all(&near));
            for n in 0..20 {
                near.write(&[n]);
                near.wait_until_idle();
                assert_eq!(*done.lock().unwrap(), (0..=n).collect::<Vec<_>>());
            }
            near.cut();
            assert_eq!(answers.join().unwrap(), (0..20).collect::<Vec<_>>());
        });
    }
}
