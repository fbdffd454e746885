//! A disk in memory that answers out of order and models a crash.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use oblivio_volume::device::{BlockDevice, DiskError, DiskErrorKind, DiskOp, Request, WipedBytes};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub(crate) const BLOCK_BYTES: u32 = 4096;
pub(crate) const REQUEST_BYTES_MAX: u32 = 4 << 20;

pub(crate) struct MemoryDisk {
    bytes: u64,
    contents: Arc<Contents>,
    mode: AnswerMode,
    in_flight_max: usize,
    block_bytes: u32,
}

/// The thread that answers.
enum AnswerMode {
    /// A worker thread that picks pending requests at random.
    Thread(Mutex<Sender<Request>>),
    /// The caller's thread.
    AtOnce,
}

#[derive(Default)]
struct Contents {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    volatile: Vec<u8>,
    durable: Vec<u8>,
    flushes: usize,
    submitted: usize,
    taken: usize,
    answered: usize,
    held: bool,
    fault: Option<DiskErrorKind>,
    lost: Range<u64>,
}

impl MemoryDisk {
    /// Creates a disk of `bytes` bytes. `seed` determines the order and delay of answers.
    pub(crate) fn new(bytes: u64, seed: u64) -> Self {
        let (sender, receiver) = channel();
        let contents = Contents::zeros(bytes);
        let worker = Worker { contents: contents.clone(), coins: StdRng::seed_from_u64(seed) };
        thread::Builder::new().spawn(move || worker.run(&receiver)).unwrap();
        Self {
            bytes,
            contents,
            mode: AnswerMode::Thread(Mutex::new(sender)),
            in_flight_max: 1 << 20,
            block_bytes: BLOCK_BYTES,
        }
    }

    pub(crate) fn answering_at_once(bytes: u64) -> Self {
        Self {
            bytes,
            contents: Contents::zeros(bytes),
            mode: AnswerMode::AtOnce,
            in_flight_max: 1,
            block_bytes: BLOCK_BYTES,
        }
    }

    /// Makes the disk block callers while `in_flight_max` requests are in flight.
    pub(crate) fn with_room_for(self, in_flight_max: usize) -> Self {
        Self { in_flight_max, ..self }
    }

    pub(crate) fn with_blocks_of(self, block_bytes: u32) -> Self {
        Self { block_bytes, ..self }
    }

    /// The current contents of the disk.
    pub(crate) fn contents(&self) -> Vec<u8> {
        self.contents.state.lock().unwrap().volatile.clone()
    }

    pub(crate) fn fill(&self, contents: &[u8]) {
        self.contents.state.lock().unwrap().volatile.copy_from_slice(contents);
    }

    /// The contents that the disk would have after a crash now.
    pub(crate) fn after_crash(&self) -> Vec<u8> {
        self.contents.state.lock().unwrap().durable.clone()
    }

    /// The number of flushes and durable requests so far.
    pub(crate) fn flushes(&self) -> usize {
        self.contents.state.lock().unwrap().flushes
    }

    /// The number of requests that reached the disk, including those that wait for room.
    pub(crate) fn submitted(&self) -> usize {
        self.contents.state.lock().unwrap().submitted
    }

    /// The number of requests that the disk has accepted.
    pub(crate) fn taken(&self) -> usize {
        self.contents.state.lock().unwrap().taken
    }

    /// Delays all answers until [`Self::release`].
    pub(crate) fn hold(&self) {
        self.contents.state.lock().unwrap().held = true;
    }

    pub(crate) fn release(&self) {
        self.contents.state.lock().unwrap().held = false;
        self.contents.changed.notify_all();
    }

    /// Makes reads and writes that touch `bytes` fail from now on.
    pub(crate) fn lose(&self, bytes: Range<u64>) {
        self.contents.state.lock().unwrap().lost = bytes;
    }

    /// Makes all requests fail from now on.
    pub(crate) fn fail(&self, kind: DiskErrorKind) {
        self.contents.state.lock().unwrap().fault = Some(kind);
    }
}

impl BlockDevice for MemoryDisk {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn block_bytes(&self) -> u32 {
        self.block_bytes
    }

    fn request_bytes_max(&self) -> u32 {
        REQUEST_BYTES_MAX
    }

    fn requests_in_flight_max(&self) -> usize {
        self.in_flight_max
    }

    fn submit(&self, request: Request) {
        match &self.mode {
            AnswerMode::Thread(sender) => {
                let full = |state: &mut State| state.taken - state.answered >= self.in_flight_max;
                let mut state = self.contents.state.lock().unwrap();
                state.submitted += 1;
                self.contents.changed.wait_while(state, full).unwrap().taken += 1;
                sender.lock().unwrap().send(request).unwrap();
            }
            AnswerMode::AtOnce => self.contents.serve(request),
        }
    }
}

struct Worker {
    contents: Arc<Contents>,
    coins: StdRng,
}

impl Worker {
    fn run(mut self, requests: &Receiver<Request>) {
        let mut waiting = Vec::new();
        while let Ok(first) = requests.recv() {
            waiting.push(first);
            while !waiting.is_empty() {
                if self.coins.random_ratio(1, 16) {
                    thread::sleep(Duration::from_micros(self.coins.random_range(1..200)));
                }
                self.contents.wait_for_release();
                waiting.extend(requests.try_iter());
                let request = waiting.swap_remove(self.coins.random_range(0..waiting.len()));
                self.contents.serve(request);
            }
        }
    }
}

impl Contents {
    fn zeros(bytes: u64) -> Arc<Self> {
        let zeros = vec![0; bytes as usize];
        let state = State { volatile: zeros.clone(), durable: zeros, ..State::default() };
        Arc::new(Self { state: Mutex::new(state), ..Self::default() })
    }

    fn wait_for_release(&self) {
        let state = self.state.lock().unwrap();
        drop(self.changed.wait_while(state, |state| state.held).unwrap());
    }

    fn serve(&self, Request { op, done }: Request) {
        let answer = self.state.lock().unwrap().carry_out(op);
        done(answer.map(WipedBytes::from));
        self.state.lock().unwrap().answered += 1;
        self.changed.notify_all();
    }
}

impl State {
    fn carry_out(&mut self, op: DiskOp) -> Result<Vec<u8>, DiskError> {
        if let Some(kind) = self.fault {
            return Err(DiskError::new(kind, "planted"));
        }
        let range = |offset: u64, bytes: u64| offset as usize..(offset + bytes) as usize;
        let moved = match &op {
            DiskOp::Read { offset, bytes } => *offset..*offset + u64::from(*bytes),
            DiskOp::Write { offset, data, .. } => *offset..*offset + data.len() as u64,
            DiskOp::Zero { .. } | DiskOp::Trim { .. } | DiskOp::Flush => 0..0,
        };
        if moved.start < self.lost.end && self.lost.start < moved.end {
            return Err(DiskError::new(DiskErrorKind::Lost, "lost"));
        }
        let durable = match op {
            DiskOp::Read { offset, bytes } => {
                return Ok(self.volatile[range(offset, bytes.into())].to_vec());
            }
            DiskOp::Write { offset, data, durable } => {
                self.volatile[range(offset, data.len() as u64)].copy_from_slice(&data);
                durable
            }
            DiskOp::Zero { offset, bytes, durable } => {
                self.volatile[range(offset, bytes)].fill(0);
                durable
            }
            DiskOp::Trim { offset, bytes, durable } => {
                let block = u64::from(BLOCK_BYTES);
                let (start, end) =
                    (offset.next_multiple_of(block), (offset + bytes) / block * block);
                if start < end {
                    self.volatile[range(start, end - start)].fill(0);
                }
                durable
            }
            DiskOp::Flush => true,
        };
        if durable {
            self.flushes += 1;
            self.durable.copy_from_slice(&self.volatile);
        }
        Ok(Vec::new())
    }
}
