//! Memory for messages, which all connections share.
//!
//! A short message costs next to nothing and waits for nobody. A long one waits until there is room for it, and for what it is
//! taken apart to. So the server takes no more than it was given, however many clients say much at the same time.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a connection may always take.
pub(super) const FREE_BYTES: u64 = 64 << 10;

/// What is left.
pub(super) struct Memory {
    bytes_max: u64,
    left: Mutex<u64>,
    returned: Condvar,
}

/// Some of it, until it is dropped.
pub(super) struct Grant<'m> {
    memory: &'m Memory,
    bytes: u64,
}

/// Some of what a client may take, and of what there is for all.
pub(super) struct ClientGrant<'m> {
    of_client: Grant<'m>,
    of_all: Grant<'m>,
}

impl<'m> ClientGrant<'m> {
    /// Nothing yet.
    pub(super) fn new(of_client: &'m Memory, of_all: &'m Memory) -> Self {
        Self { of_client: of_client.take(0), of_all: of_all.take(0) }
    }

    /// Has so much instead. Nobody who waits for what is the client's keeps others from what is everybody's.
    pub(super) fn change(&mut self, bytes: u64) {
        self.of_all.change(0);
        self.of_client.change(bytes);
        self.of_all.change(bytes);
    }
}

impl Memory {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, left: Mutex::new(bytes_max), returned: Condvar::new() }
    }

    /// Waits for so much. Whoever wants more than there is gets all of it.
    pub(super) fn take(&self, bytes: u64) -> Grant<'_> {
        let mut grant = Grant { memory: self, bytes: 0 };
        grant.change(bytes);
        grant
    }

    fn left(&self) -> MutexGuard<'_, u64> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Grant<'_> {
    /// Has so much instead. What it had is given back first: if everybody kept it and waited for more, nobody would get any.
    pub(super) fn change(&mut self, bytes: u64) {
        let wanted = if bytes <= FREE_BYTES { 0 } else { bytes.min(self.memory.bytes_max) };
        let mut left = self.memory.left();
        *left += mem::take(&mut self.bytes);
        self.memory.returned.notify_all();
        let wait = self.memory.returned.wait_while(left, |left| *left < wanted);
        *wait.unwrap_or_else(PoisonError::into_inner) -= wanted;
        self.bytes = wanted;
    }
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        *self.memory.left() += self.bytes;
        self.memory.returned.notify_all();
    }
}

/// Buffers of messages that are over, for those to come. For each message of a hundred KiB, the system would be asked for pages, and
/// they would be given back: that takes longer than to encrypt it.
#[derive(Default)]
pub(super) struct Spare(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    buffers: Vec<Vec<u8>>,
    /// Of these, and of those that came from here and are in use: whoever has one has perhaps no grant for so much.
    bytes: usize,
}

/// What they take together, besides the memory of messages, at most.
const SPARE_BYTES_MAX: usize = 8 << 20;

/// A longer one is not worth keeping: what it takes is next to nothing beside the time that so long a message takes.
const SPARE_BUFFER_BYTES_MAX: usize = 1 << 20;

impl Spare {
    /// An empty one, until it is dropped.
    pub(super) fn take(&self) -> Buffer<'_> {
        let bytes = self.kept().buffers.pop().unwrap_or_default();
        Buffer { had: bytes.capacity(), bytes, spare: self }
    }

    /// Bytes of those that came from here and are in use.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> usize {
        let kept = self.kept();
        kept.bytes - kept.buffers.iter().map(Vec::capacity).sum::<usize>()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them.
pub(super) struct Buffer<'s> {
    bytes: Vec<u8>,
    /// What it took when it was taken.
    had: usize,
    spare: &'s Spare,
}

impl Deref for Buffer<'_> {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer<'_> {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let mut bytes = mem::take(&mut self.bytes);
        bytes.clear();
        let mut kept = self.spare.kept();
        kept.bytes -= self.had;
        let is_worth_it = (1..=SPARE_BUFFER_BYTES_MAX).contains(&bytes.capacity());
        if is_worth_it && kept.bytes + bytes.capacity() <= SPARE_BYTES_MAX {
            kept.bytes += bytes.capacity();
            kept.buffers.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn who_wants_much_waits_until_there_is_room_and_gets_it() {
        let memory = Memory::new(1 << 20);
        let mut first = memory.take(1 << 20);
        assert_eq!(*memory.left(), 0);
        assert_eq!(memory.take(FREE_BYTES).bytes, 0);
        thread::scope(|scope| {
            let second = scope.spawn(|| memory.take(u64::MAX).bytes);
            first.change(100 << 10);
            drop(first);
            assert_eq!(second.join().unwrap(), 1 << 20);
        });
        assert_eq!(*memory.left(), 1 << 20);
    }

    #[test]
    fn what_a_client_takes_is_taken_from_its_own_and_from_what_is_everybodys() {
        let (own, all) = (Memory::new(1 << 20), Memory::new(3 << 20));
        let left = || (*own.left(), *all.left());
        let mut grant = ClientGrant::new(&own, &all);
        for (bytes, expected) in [
            (FREE_BYTES, (1 << 20, 3 << 20)),
            (100 << 10, (924 << 10, 2972 << 10)),
            // It grows, and it may be more than there is for this client.
            (1 << 20, (0, 2 << 20)),
            (2 << 20, (0, 1 << 20)),
            (200 << 10, (824 << 10, 2872 << 10)),
        ] {
            grant.change(bytes);
            assert_eq!(left(), expected, "{bytes}");
        }
        drop(grant);
        assert_eq!(left(), (1 << 20, 3 << 20));
    }

    #[test]
    fn buffers_are_used_again_empty_and_few_are_kept() {
        let spare = Spare::default();
        let kept = || spare.kept().buffers.iter().map(Vec::capacity).sum::<usize>();
        drop(spare.take());
        spare.take().extend([7; 1000]);
        assert!(kept() >= 1000);
        let again = spare.take();
        assert!(again.is_empty() && again.capacity() >= 1000 && kept() == 0);
        drop(again);
        spare.take().resize(SPARE_BUFFER_BYTES_MAX + 1, 0);
        assert_eq!(kept(), 0);
        let mut many: Vec<_> = (0..20).map(|_| spare.take()).collect();
        many.iter_mut().for_each(|buffer| buffer.resize(SPARE_BUFFER_BYTES_MAX, 0));
        drop(many);
        assert_eq!(kept(), SPARE_BYTES_MAX);
    }

    #[test]
    fn those_in_use_count_so_that_short_messages_hold_no_more_than_is_kept() {
        let spare = Spare::default();
        let held: Vec<_> = (0..64)
            .map(|_| {
                spare.take().resize(SPARE_BUFFER_BYTES_MAX, 0);
                spare.take()
            })
            .collect();
        assert_eq!(held.iter().map(|it| it.capacity()).sum::<usize>(), SPARE_BYTES_MAX);
        drop(held);
        let kept = spare.kept();
        assert_eq!((kept.bytes, kept.buffers.len()), (SPARE_BYTES_MAX, 8));
    }

    #[test]
    fn a_panic_leaves_nothing_in_a_buffer() {
        let spare = Spare::default();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            spare.take().extend([7; 1000]);
            let mut buffer = spare.take();
            buffer.extend([7; 1000]);
            panic!("in the middle of an answer");
        }));
        assert!(panicked.is_err());
        let again = spare.take();
        assert!(again.is_empty() && again.capacity() >= 1000);
    }
}
