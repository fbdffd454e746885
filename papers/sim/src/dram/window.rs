//! A window of requests of one kind, from which the scheduler chooses. Requests are queued per
//! bank, oldest first.

use std::collections::VecDeque;

/// A request in a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedRequest {
    pub(super) id: u64,
    pub(super) line: u64,
    pub(super) row: u32,
    /// The number by which requests are ordered. Older requests have smaller numbers.
    pub(super) age: u64,
}

/// The requests for one bank.
#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: VecDeque<QueuedRequest>,
    /// The position of the oldest request for the open row.
    hit: Option<usize>,
    /// Writes held back behind a read of the same line. They take up space, but are not scheduled
    /// yet.
    held: Vec<QueuedRequest>,
}

/// The window of requests of one kind.
#[derive(Clone, Debug)]
pub(super) struct Window {
    queues: Vec<Queue>,
    /// Bit mask of the banks with requests.
    banks: u64,
    /// Bit mask of the banks with requests for their open row.
    hits: u64,
    /// The [age](Self::age) of each bank's next request; 0 for a bank without requests.
    ages: Vec<u64>,
    /// Bit mask of the banks with held requests.
    held_banks: u64,
    len: usize,
    held: usize,
    capacity: usize,
}

impl Window {
    pub(super) fn new(banks: usize, capacity: u32) -> Self {
        Self {
            queues: vec![Queue::default(); banks],
            banks: 0,
            hits: 0,
            ages: vec![0; banks],
            held_banks: 0,
            len: 0,
            held: 0,
            capacity: capacity as usize,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len + self.held == 0
    }

    /// The number of requests in the window that are not held back.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn has_room(&self) -> bool {
        self.len + self.held < self.capacity
    }

    /// Bit mask of the banks with requests.
    #[inline]
    pub(super) fn banks(&self) -> u64 {
        self.banks
    }

    /// Whether a request for `line` in `bank` is in the window.
    pub(super) fn holds(&self, bank: u32, line: u64) -> bool {
        if (self.banks | self.held_banks) >> bank & 1 == 0 {
            return false;
        }
        let queue = &self.queues[bank as usize];
        let is = |waiting: &QueuedRequest| waiting.line == line;
        queue.waiting.iter().any(is) || queue.held.iter().any(is)
    }

    /// Adds a request that is held back until [`Self::release`].
    pub(super) fn hold(&mut self, bank: u32, request: QueuedRequest) {
        self.queues[bank as usize].held.push(request);
        self.held_banks |= 1 << bank;
        self.held += 1;
    }

    /// Releases the held requests for `line`.
    pub(super) fn release(&mut self, bank: u32, line: u64, open_row: Option<u32>) {
        if self.held_banks >> bank & 1 == 0 {
            return;
        }
        let held = &mut self.queues[bank as usize].held;
        let released: Vec<_> = held.extract_if(.., |request| request.line == line).collect();
        if held.is_empty() {
            self.held_banks &= !(1 << bank);
        }
        self.held -= released.len();
        for request in released {
            self.push(bank, request, open_row);
        }
    }

    pub(super) fn push(&mut self, bank: u32, request: QueuedRequest, open_row: Option<u32>) {
        let queue = &mut self.queues[bank as usize];
        if open_row == Some(request.row) {
            queue.hit = queue.hit.or(Some(queue.waiting.len()));
        }
        queue.waiting.push_back(request);
        self.len += 1;
        self.note(bank);
    }

    /// Bit mask of the banks with requests for their open row.
    #[inline]
    pub(super) fn hits(&self) -> u64 {
        self.hits
    }

    /// The age of the oldest request for the open row of `bank`, or of its oldest request if none
    /// is for the open row.
    #[inline]
    pub(super) fn age(&self, bank: u32) -> u64 {
        self.ages[bank as usize]
    }

    /// The row of the oldest request for `bank`, which must have a request.
    pub(super) fn oldest_row(&self, bank: u32) -> u32 {
        self.queues[bank as usize].waiting[0].row
    }

    /// Removes and returns the oldest request for the open row of `bank`, if any.
    pub(super) fn take_hit(&mut self, bank: u32) -> Option<QueuedRequest> {
        let queue = &mut self.queues[bank as usize];
        let place = queue.hit?;
        let taken = queue.waiting.remove(place)?;
        queue.hit = queue.first_of(taken.row, place);
        self.len -= 1;
        self.note(bank);
        Some(taken)
    }

    /// Notes that `bank` now has another open row, or none.
    pub(super) fn row_changed(&mut self, bank: u32, open_row: Option<u32>) {
        if self.banks >> bank & 1 == 1 {
            let queue = &mut self.queues[bank as usize];
            queue.hit = open_row.and_then(|row| queue.first_of(row, 0));
            self.note(bank);
        }
    }

    /// Updates the masks and the age for `bank`.
    fn note(&mut self, bank: u32) {
        let queue = &self.queues[bank as usize];
        let next = queue.waiting.get(queue.hit.unwrap_or_default());
        self.ages[bank as usize] = next.map_or(0, |next| next.age);
        set(&mut self.banks, bank, next.is_some());
        set(&mut self.hits, bank, queue.hit.is_some());
    }
}

fn set(bits: &mut u64, place: u32, one: bool) {
    *bits = *bits & !(1 << place) | u64::from(one) << place;
}

impl Queue {
    fn first_of(&self, row: u32, from: usize) -> Option<usize> {
        let place = self.waiting.iter().skip(from).position(|waiting| waiting.row == row)?;
        Some(from + place)
    }
}
