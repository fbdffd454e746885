//! Memory for messages, which all connections share.
//!
//! A short message costs next to nothing and waits for nobody. A long one waits until there is room for it, and for what it is
//! taken apart to. So the server takes no more than it was given, however many clients say much at the same time.

use std::mem;
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
}
