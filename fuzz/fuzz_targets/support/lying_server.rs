//! A bucket server in this process, whose lies and broken links come from the fuzzer.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use oblivio_store::Connector;
use oblivio_wire::link::{Link, LinkReader, LinkWriter, MonotonicTime};
use oblivio_wire::message::{MESSAGE_BYTES_MAX, VERSION};
use oblivio_wire::{Answer, Failure, FailureKind, OpenMode, Opened, Request, frame};

use crate::buckets::Buckets;

const SESSION: u64 = 5;

/// A bucket server that lies. Clones are the same server.
#[derive(Clone)]
pub(crate) struct LyingServer(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    buckets: Buckets,
    durable: Buckets,
    incarnation: u64,
    lies: VecDeque<u8>,
    has_lied: bool,
    /// The number of the latest link. Earlier links are closed.
    link: usize,
    is_up: bool,
    /// Bytes received that are not a whole frame yet.
    received: Vec<u8>,
    /// Bytes for the client to read.
    outgoing: Vec<u8>,
}

impl LyingServer {
    /// Creates a server with `buckets`. Each answer takes the kind of its lie from `lies`, and then
    /// the arguments of the lie. If the kind is unknown, or `lies` has ended, the answer is honest.
    pub(crate) fn new(buckets: Buckets, lies: &[u8]) -> Self {
        let state = State {
            durable: buckets.clone(),
            buckets,
            incarnation: 1,
            lies: lies.to_vec().into(),
            has_lied: false,
            link: 0,
            is_up: false,
            received: Vec::new(),
            outgoing: Vec::new(),
        };
        Self(Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }))
    }

    /// Whether an answer was wrong. Broken links, restarts and missing answers are not lies.
    pub(crate) fn has_lied(&self) -> bool {
        self.state().has_lied
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    fn close(&self, link: usize) {
        let mut state = self.state();
        state.is_up &= state.link != link;
        self.0.changed.notify_all();
    }
}

impl Connector for LyingServer {
    fn connect(&mut self, _: Duration) -> io::Result<Link> {
        let mut state = self.state();
        state.link += 1;
        state.is_up = true;
        state.received.clear();
        state.outgoing.clear();
        let (server, link) = (self.clone(), state.link);
        let reader = Box::new(ServerReader { server, link, until: None });
        Ok(Link { reader, writer: Box::new(ServerWriter { server: self.clone(), link }) })
    }
}

/// The reading half of the client's end.
struct ServerReader {
    server: LyingServer,
    link: usize,
    until: Option<MonotonicTime>,
}

impl Read for ServerReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut state = self.server.state();
        while state.link == self.link && state.outgoing.is_empty() && state.is_up {
            let left = self.until.map_or(Some(Duration::MAX), MonotonicTime::left);
            let left = left.ok_or(ErrorKind::TimedOut)?;
            state = self.server.0.changed.wait_timeout(state, left).unwrap().0;
        }
        if state.link != self.link {
            return Ok(0);
        }
        let bytes = buffer.len().min(state.outgoing.len());
        buffer[..bytes].copy_from_slice(&state.outgoing[..bytes]);
        state.outgoing.drain(..bytes);
        Ok(bytes)
    }
}

impl LinkReader for ServerReader {
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()> {
        self.until = within.map(|within| MonotonicTime::now().after(within));
        Ok(())
    }

    fn close(&mut self) {
        self.server.close(self.link);
    }
}

/// The writing half of the client's end. Requests are answered at once.
struct ServerWriter {
    server: LyingServer,
    link: usize,
}

impl Write for ServerWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.server.state();
        if !state.is_up || state.link != self.link {
            return Err(ErrorKind::BrokenPipe.into());
        }
        state.received.extend(bytes);
        while state.is_up
            && let Some(message) = state.next_message()
        {
            state.hear(&message);
        }
        self.server.0.changed.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LinkWriter for ServerWriter {
    fn close(&mut self) {
        self.server.close(self.link);
    }
}

impl State {
    fn next_message(&mut self) -> Option<Vec<u8>> {
        let mut rest = &self.received[..];
        let message = frame::receive(&mut rest, MESSAGE_BYTES_MAX).ok()??;
        self.received = rest.to_vec();
        Some(message)
    }

    fn hear(&mut self, message: &[u8]) {
        let request = Request::decode(message).expect("the client sends valid requests");
        let number = request.number();
        let answer = framed(&self.answer(request).encode());
        let lie = self.byte() % 16;
        match lie {
            // The link breaks before or within the answer.
            1 => {
                let end = self.byte() % answer.len();
                self.outgoing.extend(&answer[..end]);
                self.is_up = false;
            }
            // The server restarts.
            2 => {
                self.buckets = self.durable.clone();
                self.incarnation += 1;
                self.is_up = false;
            }
            // The server does not answer.
            3 => (),
            _ => {
                let sent = self.distort(lie, number, &answer);
                self.has_lied |= sent != answer;
                self.outgoing.extend(sent);
            }
        }
    }

    fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Hello { .. } => Answer::Welcome { version: VERSION },
            Request::Open { mode: OpenMode::Read { .. } | OpenMode::Look, .. } => self.opened(0),
            Request::Open { .. } | Request::Resume { .. } => self.opened(SESSION),
            Request::Look { .. } => Answer::Looked { is_there: true },
            Request::Remove { .. } => Answer::Done { number: 0 },
            Request::Read { number, pieces } => {
                Answer::Data { number, bytes: self.buckets.read(&pieces).into() }
            }
            Request::Write { number, pieces, bytes } => {
                self.buckets.write(&pieces, &bytes);
                Answer::Done { number }
            }
            Request::Flush { number } => {
                self.durable = self.buckets.clone();
                Answer::Done { number }
            }
            // The client of a bucket server never sends these.
            Request::Compute { .. } | Request::Peer { .. } | Request::Deal { .. } => {
                Answer::Looked { is_there: false }
            }
        }
    }

    fn opened(&self, session: u64) -> Answer {
        Answer::Opened(Opened {
            session,
            incarnation: self.incarnation,
            shapes: self.buckets.shapes.clone(),
            ..Opened::default()
        })
    }

    /// Returns `answer` with the lie applied.
    fn distort(&mut self, lie: usize, number: u64, answer: &[u8]) -> Vec<u8> {
        let mut sent = answer.to_vec();
        match lie {
            // A changed byte.
            4 | 5 => {
                let place = (self.byte() << 8 | self.byte()) % sent.len();
                sent[place] ^= self.byte() as u8;
            }
            // Another valid answer.
            6 => {
                let number = number.wrapping_add_signed(i64::from(self.byte() as i8));
                sent = framed(&self.any_answer(number).encode());
            }
            // Any bytes.
            7 => {
                let bytes = self.byte();
                sent = (0..bytes).map_while(|_| self.lies.pop_front()).collect();
            }
            // The answer twice.
            8 => sent.extend(answer),
            _ => (),
        }
        sent
    }

    fn any_answer(&mut self, number: u64) -> Answer {
        match self.byte() % 6 {
            0 => Answer::Done { number },
            1 => Answer::Data { number, bytes: vec![7; self.byte()].into() },
            2 => Answer::Welcome { version: self.byte() as u32 },
            3 => {
                let session = self.byte() as u64 % 8;
                self.opened(session)
            }
            4 => Answer::Looked { is_there: self.byte() & 1 == 1 },
            _ => {
                let kinds = [
                    FailureKind::Fenced,
                    FailureKind::InUse,
                    FailureKind::Absent,
                    FailureKind::Full,
                    FailureKind::NoVolume,
                ];
                let kind = kinds[self.byte() % kinds.len()];
                Answer::Failed(Failure { number, kind, message: "\u{1b}[2J no".into() })
            }
        }
    }

    /// Returns the next byte of `lies`, or 0 if none is left.
    fn byte(&mut self) -> usize {
        usize::from(self.lies.pop_front().unwrap_or(0))
    }
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u32).to_le_bytes()[..], message].concat()
}
