//! The memory budget for messages, shared by all connections.
//!
//! A short message needs no grant. A long message gets memory in steps, as its bytes arrive. So an
//! announced length alone takes almost no memory.
//!
//! A client may hold half as much as it leaves free (the dynamic threshold of Choudhury and Hahne):
//! a third of the memory if it is alone. `n` clients that take all they can get leave at least
//! `(2/3)^n` free, and the next client may hold a third of that.
//!
//! A message keeps its memory while it waits for more. To exclude a deadlock, a step is granted
//! only if all messages could then get the rest of their announced lengths, one after the other
//! (the banker's algorithm).

use std::io::{self, ErrorKind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use oblivio_wire::keys::PublicKey;
use oblivio_wire::link::MonotonicTime;

/// The size up to which a message needs no grant.
pub(super) const FREE_BYTES: u64 = 64 << 10;

/// The memory budget of one kind of connections.
pub(super) struct Memory {
    bytes_max: u64,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Clone)]
struct State {
    left: u64,
    /// The number of waiting threads. If it is 0, returned memory wakes no thread.
    waiting: usize,
    holders: Vec<Holder>,
    last_holder: u64,
}

/// One grant in the shared state.
#[derive(Clone, Copy)]
struct Holder {
    number: u64,
    client: Option<PublicKey>,
    held: u64,
    /// The bytes that the grant may still request before it returns its memory.
    rest: u64,
}

/// The memory that a connection holds. Returned when dropped.
pub(super) struct Grant<'m> {
    memory: &'m Memory,
    holder: u64,
}

impl Memory {
    pub(super) fn new(bytes_max: u64) -> Self {
        let state = State { left: bytes_max, waiting: 0, holders: Vec::new(), last_holder: 0 };
        Self { bytes_max, state: Mutex::new(state), returned: Condvar::new() }
    }

    /// Returns an empty grant for a connection of `client`.
    pub(super) fn grant(&self, client: Option<PublicKey>) -> Grant<'_> {
        let mut state = self.state();
        state.last_holder += 1;
        let number = state.last_holder;
        state.holders.push(Holder { number, client, held: 0, rest: 0 });
        Grant { memory: self, holder: number }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes of a message that count: none for a short one, and at most the maximum that a
    /// client can ever hold.
    fn counted(&self, bytes: u64) -> u64 {
        if bytes <= FREE_BYTES { 0 } else { bytes.min(self.bytes_max / 3) }
    }

    fn give_back(&self, state: &mut State, bytes: u64) {
        state.left += bytes;
        if bytes > 0 && state.waiting > 0 {
            self.returned.notify_all();
        }
    }
}

impl State {
    fn holder(&mut self, number: u64) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.number == number)
    }

    /// Whether the client may hold `more` bytes in addition.
    fn has_room(&self, client: Option<PublicKey>, more: u64) -> bool {
        let of_client = self.holders.iter().filter(|holder| holder.client == client);
        let held: u64 = of_client.map(|holder| holder.held).sum();
        more == 0 || 2 * held + 3 * more <= self.left
    }

    /// Grows a grant to `to` bytes, if all other messages can still finish afterwards.
    fn try_grow(&mut self, number: u64, to: u64) -> bool {
        let Some(holder) = self.holder(number) else { return false };
        let (client, more) = (holder.client, to.saturating_sub(holder.held));
        if more == 0 {
            return true;
        }
        if !self.has_room(client, more) {
            return false;
        }
        let mut after = self.clone();
        after.left -= more;
        if let Some(holder) = after.holder(number) {
            holder.held += more;
            holder.rest = holder.rest.saturating_sub(more);
        }
        let may_grow = after.is_safe();
        if may_grow {
            *self = after;
        }
        may_grow
    }

    /// Whether all holders can finish one after the other (the banker's algorithm). Each takes what
    /// it may still request from the free memory and from the memory that earlier ones return.
    fn is_safe(&self) -> bool {
        let mut state = self.clone();
        state.holders.retain(|holder| holder.held > 0);
        let can_finish =
            |state: &State| state.holders.iter().position(|it| state.has_room(it.client, it.rest));
        while let Some(index) = can_finish(&state) {
            state.left += state.holders.swap_remove(index).held;
        }
        state.holders.is_empty()
    }
}

impl Grant<'_> {
    /// Gives the grant's memory back, and announces the size up to which the grant will
    /// [grow](Self::grow).
    pub(super) fn announce(&mut self, bytes: u64) {
        let rest = self.memory.counted(bytes);
        let mut state = self.memory.state();
        let Some(holder) = state.holder(self.holder) else { return };
        let held = std::mem::take(&mut holder.held);
        holder.rest = rest;
        self.memory.give_back(&mut state, held);
    }

    /// Waits until the grant holds `bytes` bytes in total.
    ///
    /// # Errors
    /// [`ErrorKind::TimedOut`] if the memory is not free by `until`.
    pub(super) fn grow(&mut self, bytes: u64, until: MonotonicTime) -> io::Result<()> {
        let wanted = self.memory.counted(bytes);
        let mut state = self.memory.state();
        while !state.try_grow(self.holder, wanted) {
            let Some(left) = until.left() else {
                let message = "no memory for a message was free in time";
                return Err(io::Error::new(ErrorKind::TimedOut, message));
            };
            state.waiting += 1;
            let wait = self.memory.returned.wait_timeout(state, left);
            (state, _) = wait.unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
        Ok(())
    }

    /// Gives the grant's memory back, and waits until the grant holds `bytes` bytes.
    ///
    /// # Errors
    /// See [`Self::grow`].
    pub(super) fn change(&mut self, bytes: u64, until: MonotonicTime) -> io::Result<()> {
        self.announce(bytes);
        self.grow(bytes, until)
    }
}

impl Drop for Grant<'_> {
    fn drop(&mut self) {
        let mut state = self.memory.state();
        let Some(index) = state.holders.iter().position(|it| it.number == self.holder) else {
            return;
        };
        let held = state.holders.swap_remove(index).held;
        self.memory.give_back(&mut state, held);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use oblivio_wire::keys::SecretKey;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn later() -> MonotonicTime {
        MonotonicTime::now().after(Duration::from_secs(60))
    }

    fn soon() -> MonotonicTime {
        MonotonicTime::now().after(Duration::from_millis(50))
    }

    fn clients<const N: usize>() -> [Option<PublicKey>; N] {
        [(); N].map(|()| Some(SecretKey::generate().unwrap().public()))
    }

    #[test]
    fn a_long_message_waits_for_memory_or_times_out() {
        let memory = Memory::new(3 * MIB);
        let [alice, bob] = clients();
        let mut first = memory.grant(alice);
        first.change(u64::MAX, later()).unwrap();
        assert_eq!(memory.state().left, 2 * MIB);
        let mut second = memory.grant(bob);
        second.change(FREE_BYTES, soon()).unwrap();
        assert_eq!(memory.state().left, 2 * MIB);
        let late = second.change(MIB, soon()).unwrap_err();
        assert_eq!(late.kind(), ErrorKind::TimedOut);
        thread::scope(|scope| {
            let waits = scope.spawn(|| second.change(MIB, later()));
            first.change(100 << 10, later()).unwrap();
            drop(first);
            waits.join().unwrap().unwrap();
        });
        drop(second);
        let state = memory.state();
        assert_eq!((state.left, state.holders.len()), (3 * MIB, 0));
    }

    #[test]
    fn greedy_clients_leave_memory_for_the_next() {
        let memory = Memory::new(60 * MIB);
        let all = clients::<5>();
        let mut grants = Vec::new();
        let take_all = |client, grants: &mut Vec<_>| loop {
            let mut grant = memory.grant(client);
            if grant.change(MIB, MonotonicTime::now()).is_err() {
                break;
            }
            grants.push(grant);
        };
        take_all(all[0], &mut grants);
        assert_eq!(grants.len(), 20);
        for n in [1, 2, 3, 4, 5, 5, 5, 5, 5, 5] {
            take_all(all[n - 1], &mut grants);
            take_all(all[0], &mut grants);
            let left = memory.state().left as f64;
            assert!(left >= (60 * MIB) as f64 * (2.0 / 3.0f64).powi(n as i32), "{n}: {left}");
        }
        let left = memory.state().left;
        let mut late = memory.grant(clients::<1>()[0]);
        late.change(left / 3, MonotonicTime::now()).unwrap();
    }

    #[test]
    fn announced_bytes_take_no_memory_and_growing_messages_do_not_deadlock() {
        let memory = Memory::new(16 * MIB);
        let [alice] = clients();
        let silent: Vec<_> = (0..100)
            .map(|_| {
                let mut silent = memory.grant(None);
                silent.announce(u64::MAX);
                silent
            })
            .collect();
        assert_eq!(memory.state().left, 16 * MIB);
        // Each needs the whole share of its client, and takes it in steps.
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let mut grant = memory.grant(alice);
                    grant.announce(5 * MIB);
                    for step in 1..=5 {
                        grant.grow(step * MIB, later()).unwrap();
                        thread::yield_now();
                    }
                });
            }
        });
        assert_eq!(memory.state().left, 16 * MIB);
        drop(silent);
    }
}
