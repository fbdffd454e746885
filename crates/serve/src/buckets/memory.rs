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
    state: Mutex<State>,
    returned: Condvar,
}

struct State {
    left: u64,
    /// So many wait for more. While nobody does, the system is not asked to wake anyone: each message gives back several grants.
    waiting: usize,
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
        let state = State { left: bytes_max, waiting: 0 };
        Self { bytes_max, state: Mutex::new(state), returned: Condvar::new() }
    }

    /// Waits for so much. Whoever wants more than there is gets all of it.
    pub(super) fn take(&self, bytes: u64) -> Grant<'_> {
        let mut grant = Grant { memory: self, bytes: 0 };
        grant.change(bytes);
        grant
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn give_back(&self, state: &mut State, bytes: u64) {
        state.left += bytes;
        if bytes > 0 && state.waiting > 0 {
            self.returned.notify_all();
        }
    }
}

impl Grant<'_> {
    /// Has so much instead. What it had is given back first: if everybody kept it and waited for more, nobody would get any.
    pub(super) fn change(&mut self, bytes: u64) {
        let wanted = if bytes <= FREE_BYTES { 0 } else { bytes.min(self.memory.bytes_max) };
        let mut state = self.memory.state();
        self.memory.give_back(&mut state, mem::take(&mut self.bytes));
        state.waiting += 1;
        let wait = self.memory.returned.wait_while(state, |state| state.left < wanted);
        let mut state = wait.unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state.left -= wanted;
        self.bytes = wanted;
    }
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        self.memory.give_back(&mut self.memory.state(), self.bytes);
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
        assert_eq!(memory.state().left, 0);
        assert_eq!(memory.take(FREE_BYTES).bytes, 0);
        thread::scope(|scope| {
            let second = scope.spawn(|| memory.take(u64::MAX).bytes);
            first.change(100 << 10);
            drop(first);
            assert_eq!(second.join().unwrap(), 1 << 20);
        });
        assert_eq!(memory.state().left, 1 << 20);
    }

    #[test]
    fn what_a_client_takes_is_taken_from_its_own_and_from_what_is_everybodys() {
        let (own, all) = (Memory::new(1 << 20), Memory::new(3 << 20));
        let left = || (own.state().left, all.state().left);
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
