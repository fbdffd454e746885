//! A line between two machines, which is cut at any byte.
//!
//! Whoever calls goes in step with whoever was called: [`LineEnd::settle`] returns when the other machine has done all that it was
//! asked, and its answers have been taken, or the line is cut. So two machines act in one order, and a seed says which.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

/// After how many bytes each way the line is cut. The rest of what was sent that way never comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutAfter {
    /// From the one who calls.
    pub there: usize,
    /// To the one who calls.
    pub back: usize,
}

impl CutAfter {
    /// It holds.
    pub const NEVER: Self = Self { there: usize::MAX, back: usize::MAX };
}

/// One end, to read and to write. Clones are the same end.
#[derive(Clone)]
pub struct LineEnd {
    line: Arc<Line>,
    /// Which of the ways comes here.
    comes: usize,
}

struct Line {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// There, and back.
    ways: [Way; 2],
    is_cut: bool,
}

struct Way {
    bytes: VecDeque<u8>,
    /// So many more come.
    left: usize,
    /// Somebody waits for bytes, and there are none.
    is_awaited: bool,
    /// Who has read last.
    read_by: Option<ThreadId>,
    /// Nobody reads any more.
    is_over: bool,
}

const THERE: usize = 0;
const BACK: usize = 1;

/// Both ends: of the one who calls, and of the one who is called.
pub fn line(cut: CutAfter) -> (LineEnd, LineEnd) {
    let way = |left| Way {
        bytes: VecDeque::new(),
        left,
        is_awaited: false,
        read_by: None,
        is_over: false,
    };
    let state = State { ways: [way(cut.there), way(cut.back)], is_cut: false };
    let line = Arc::new(Line { state: Mutex::new(state), changed: Condvar::new() });
    (LineEnd { line: line.clone(), comes: BACK }, LineEnd { line, comes: THERE })
}

impl LineEnd {
    fn state(&self) -> MutexGuard<'_, State> {
        self.line.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has come, as far as it has room; nothing at the end of the line. What came before the line was cut is read.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] if nothing comes within so long.
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

    /// Sends. As on a network, nobody is told that nothing arrives any more.
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

    /// Waits until the other side has done all that it was asked and waits for more. If another thread reads here, it has taken
    /// what was answered by then; or, where the line is cut, it knows so.
    ///
    /// # Panics
    /// When that takes a minute: the order of what happens would not follow from the seed any more.
    pub fn settle(&self) {
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
        assert!(!waited.timed_out(), "the machine that was called does nothing: the order is lost");
    }

    /// Ends the line. What is on its way still comes.
    pub fn cut(&self) {
        self.state().is_cut = true;
        self.line.changed.notify_all();
    }

    /// The same, and whoever reads at this end has read the last.
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
    fn what_was_sent_before_the_cut_comes_and_nothing_else() {
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
    fn whoever_calls_goes_in_step_with_whoever_is_called() {
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
                near.settle();
                assert_eq!(*done.lock().unwrap(), (0..=n).collect::<Vec<_>>());
            }
            near.cut();
            assert_eq!(answers.join().unwrap(), (0..20).collect::<Vec<_>>());
        });
    }
}
