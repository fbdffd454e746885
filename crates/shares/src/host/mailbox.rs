//! Stores messages of other servers until this server needs them.
//!
//! A message can arrive before the client's request for the eviction. The message for a part's next
//! round can arrive while this server still works on the current round. An honest server is at most
//! one round ahead, so the number of stored messages of each server is bounded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::evict::{TILES_AT_ONCE, lane};
use super::watcher::Watcher;
use crate::message::DealtShares;
use crate::sharing::{SERVERS_MAX, Seed, Share};

/// The shares from one server for one part and one round.
type Portion = Vec<Share<u8>>;

/// The maximum number of stored portions of one server: the current and the next round of each part
/// in progress, and the first rounds of the next parts. Servers wait for each other's shares, so an
/// honest server sends no shares of later rounds.
const PORTIONS_MAX: usize = 4 * TILES_AT_ONCE;

/// The maximum number of portions stored before this server begins the attempt: the first round of
/// each lane. To deal the second round, the other server needs shares from this server.
const EARLY_PORTIONS_MAX: usize = TILES_AT_ONCE;

/// A message that violates the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolViolation;

/// Receives messages of other servers, on any thread.
#[derive(Default)]
pub struct Mailbox {
    boxes: Mutex<MailboxState>,
    arrived: Condvar,
    /// The maximum length of a portion in bytes; 0 before a client sets a tree up. Two seeds are
    /// never too long.
    portion_bytes_max: AtomicUsize,
    /// The watcher that stored messages are reported to, if there is one.
    watcher: Mutex<Option<Weak<dyn Watcher>>>,
}

#[derive(Default)]
struct MailboxState {
    /// The numbers of the current attempt, or of the last one if no attempt is in progress.
    begun: Attempt,
    peers: [PeerBox; SERVERS_MAX as usize + 1],
}

/// The stored messages that one other server has sent.
#[derive(Default)]
struct PeerBox {
    attempt: Attempt,
    portions: HashMap<(u32, u8), Portion>,
    /// For each lane, the part and the round of the last portion that this server has used.
    taken: [Option<(u32, u8)>; TILES_AT_ONCE],
    /// Whether there is a link to the server that sends the messages.
    has_link: bool,
}

/// The number of an eviction, and the number of an attempt at this eviction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attempt {
    pub(super) attempt: u64,
    pub(super) number: u64,
}

/// Why a portion of another server has not arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitError {
    /// The link to the server was lost.
    Lost,
    /// The portion did not arrive in time.
    Late,
}

impl Mailbox {
    /// Receives a message of server `from`. Drops a message that is outdated, or was received
    /// before.
    ///
    /// # Errors
    /// If the message violates the protocol, or the server has sent too many messages. The caller
    /// should then end the link.
    pub fn take(&self, from: u8, message: &[u8]) -> Result<(), ProtocolViolation> {
        let DealtShares { number, attempt, tile, level, shares } =
            DealtShares::decode(message).map_err(|_| ProtocolViolation)?;
        let bytes = |share: &Share<u8>| match share {
            Share::Drawn(seed) => seed.len(),
            Share::Computed(bytes) => bytes.len(),
        };
        let total: usize = shares.iter().map(bytes).sum();
        let is_a_portion = shares.len() <= 2
            && total <= self.portion_bytes_max.load(Ordering::Relaxed).max(2 * size_of::<Seed>());
        if !is_a_portion {
            return Err(ProtocolViolation);
        }
        let attempt = Attempt { attempt, number };
        let watcher = self.watcher();
        let mut boxes = self.boxes();
        let begun = boxes.begun;
        let own = boxes.peers.get_mut(usize::from(from)).ok_or(ProtocolViolation)?;
        own.has_link = true;
        // Accept shares for the current attempt whatever attempt the server named before. Otherwise
        // one message with a huge attempt number would silence it for good.
        if attempt != begun && attempt < begun.max(own.attempt) {
            // The attempt was given up.
            return Ok(());
        }
        if attempt != own.attempt {
            own.switch_to(attempt);
        }
        let was_taken = own.taken[lane(tile)].is_some_and(|taken| taken >= (tile, level));
        if was_taken || own.portions.contains_key(&(tile, level)) {
            // The message was sent again after a link was lost.
            return Ok(());
        }
        let portions_max = if attempt == begun { PORTIONS_MAX } else { EARLY_PORTIONS_MAX };
        if own.portions.len() >= portions_max {
            return Err(ProtocolViolation);
        }
        // Report only messages that are stored, and before they are used.
        if let Some(watcher) = &watcher {
            watcher.received(from, message);
        }
        own.portions.insert((tile, level), shares);
        drop(boxes);
        self.arrived.notify_all();
        Ok(())
    }

    /// Records that the link to a server was lost. This server then waits only a short time for
    /// messages of that server, until that server reconnects or another message from it arrives.
    pub fn record_lost_link(&self, from: u8) {
        if let Some(own) = self.boxes().peers.get_mut(usize::from(from)) {
            own.has_link = false;
        }
        self.arrived.notify_all();
    }

    /// Records a new link to a server. This server then waits for messages of that server for the
    /// full time again.
    pub fn record_new_link(&self, from: u8) {
        if let Some(own) = self.boxes().peers.get_mut(usize::from(from)) {
            own.has_link = true;
        }
    }

    /// Reports each message to `watcher` when it is stored. The mailbox holds only a weak reference
    /// to the watcher.
    pub(super) fn watch(&self, watcher: &Arc<dyn Watcher>) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::downgrade(watcher));
    }

    fn watcher(&self) -> Option<Arc<dyn Watcher>> {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.as_ref().and_then(Weak::upgrade)
    }

    /// Sets the maximum length of a portion to accept, in bytes.
    pub(super) fn limit(&self, portion_bytes_max: usize) {
        self.portion_bytes_max.store(portion_bytes_max, Ordering::Relaxed);
    }

    /// Begins an attempt, and drops the messages of all other attempts.
    pub(super) fn begin(&self, attempt: Attempt) {
        let mut boxes = self.boxes();
        boxes.begun = attempt;
        for own in boxes.peers.iter_mut().filter(|own| own.attempt != attempt) {
            // Even if the server has dealt for a later attempt: messages for that will be accepted
            // again.
            own.switch_to(attempt);
        }
    }

    /// Drops all stored messages.
    pub(super) fn end(&self) {
        self.boxes().peers.iter_mut().for_each(|own| own.portions.clear());
    }

    /// Waits for the portion of server `from` for part `tile` and round `level`, for at most the
    /// time `within`. While waiting, calls `is_given_up` regularly to check whether to stop.
    ///
    /// # Errors
    /// `Late` if the time is over. `Lost` if there was no link to the server for a short time, the
    /// server has already sent a later portion of the lane, or the eviction is given up.
    pub(super) fn wait(
        &self,
        from: u8,
        (tile, level): (u32, u8),
        within: Duration,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Portion, WaitError> {
        let mut boxes = self.boxes();
        let (mut waited, mut lost) = (Duration::ZERO, Duration::ZERO);
        loop {
            let begun = boxes.begun;
            let own = boxes.peers.get_mut(usize::from(from)).ok_or(WaitError::Lost)?;
            if own.attempt == begun
                && let Some(portion) = own.portions.remove(&(tile, level))
            {
                own.taken[lane(tile)] = Some((tile, level));
                return Ok(portion);
            }
            // The rounds of a part arrive in order, and so do the parts of a lane. A portion that
            // came before a restart of this server does not come again.
            let is_past = own.has_reached(begun, (tile, level));
            if is_past || is_given_up() {
                return Err(WaitError::Lost);
            }
            let has_link = own.has_link;
            let left = within.saturating_sub(waited);
            let left = if has_link { left } else { left.min(BACK_WITHIN.saturating_sub(lost)) };
            if left.is_zero() {
                return Err(if has_link { WaitError::Late } else { WaitError::Lost });
            }
            let pause = left.min(CHECK_INTERVAL);
            // Other events must not prolong the wait.
            let is_missing = |boxes: &mut MailboxState| {
                !boxes.peers[usize::from(from)].has_reached(boxes.begun, (tile, level))
            };
            let paused = self.arrived.wait_timeout_while(boxes, pause, is_missing);
            let pauses;
            (boxes, pauses) = paused.unwrap_or_else(PoisonError::into_inner);
            if pauses.timed_out() {
                waited += pause;
                lost = if has_link { Duration::ZERO } else { lost + pause };
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.boxes().peers.iter().all(|own| own.portions.is_empty())
    }

    fn boxes(&self) -> MutexGuard<'_, MailboxState> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PeerBox {
    /// Whether a portion for part and round `at`, or a later portion of the same lane, is stored.
    fn has_reached(&self, begun: Attempt, at: (u32, u8)) -> bool {
        let is_at_or_past = |it: &(u32, u8)| lane(it.0) == lane(at.0) && *it >= at;
        self.attempt == begun && self.portions.keys().any(is_at_or_past)
    }

    /// Switches a server's stored messages to another attempt, and drops the portions of the old
    /// attempt.
    fn switch_to(&mut self, attempt: Attempt) {
        self.attempt = attempt;
        self.portions.clear();
        self.taken = Default::default();
    }
}

/// Time limit for waiting for a server without a link. A server that is about to connect needs only
/// some round trips. The limit is short, because the server may have dealt its shares to a previous
/// process of this server.
const BACK_WITHIN: Duration = Duration::from_secs(2);

/// Interval at which a waiting thread checks whether to give up.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    fn dealt(attempt: u64, tile: u32, level: u8) -> Vec<u8> {
        DealtShares { number: 0, attempt, tile, level, shares: vec![Share::Drawn([1; 32])] }
            .encode()
    }

    const FIRST: Attempt = Attempt { attempt: 1, number: 0 };
    const SOON: Duration = Duration::from_millis(1);

    fn wait(mailbox: &Mailbox, from: u8, tile: u32) -> Result<Portion, WaitError> {
        mailbox.wait(from, (tile, 1), SOON, &|| false)
    }

    #[test]
    fn early_messages_are_kept_and_late_ones_are_dropped() {
        let mailbox = Mailbox::default();
        mailbox.take(2, &dealt(1, 0, 1)).unwrap();
        mailbox.take(2, &dealt(1, 1, 1)).unwrap();
        mailbox.begin(FIRST);
        assert!(wait(&mailbox, 2, 0).is_ok());
        assert_eq!(wait(&mailbox, 2, 0), Err(WaitError::Late));
        mailbox.begin(Attempt { attempt: 2, number: 0 });
        assert!(mailbox.boxes().peers[2].portions.is_empty());
        assert_eq!(wait(&mailbox, 2, 1), Err(WaitError::Late));
        mailbox.take(2, &dealt(1, 1, 1)).unwrap();
        assert_eq!(wait(&mailbox, 2, 1), Err(WaitError::Late));
        mailbox.take(2, &dealt(2, 1, 1)).unwrap();
        assert!(wait(&mailbox, 2, 1).is_ok());
        // The server deals for a later attempt: its portions of this one are dropped.
        mailbox.take(2, &dealt(2, 2, 1)).unwrap();
        mailbox.take(2, &dealt(3, 2, 1)).unwrap();
        assert_eq!(wait(&mailbox, 2, 2), Err(WaitError::Late));
        mailbox.begin(Attempt { attempt: 3, number: 0 });
        assert!(wait(&mailbox, 2, 2).is_ok());
    }

    /// A message with the greatest possible attempt number does not exclude its server from later
    /// evictions.
    #[test]
    fn a_server_that_dealt_for_a_later_attempt_still_deals_for_the_current_one() {
        let mailbox = Mailbox::default();
        for attempt in [1, 3, 5] {
            let begin = |attempt| mailbox.begin(Attempt { attempt, number: 0 });
            begin(attempt);
            mailbox.take(2, &dealt(u64::MAX, 0, 2)).unwrap();
            // It has dealt nothing for this attempt, so it is not past any round.
            assert_eq!(wait(&mailbox, 2, 0), Err(WaitError::Late));
            mailbox.take(2, &dealt(attempt, 0, 1)).unwrap();
            mailbox.take(2, &dealt(attempt - 1, 1, 1)).unwrap();
            assert!(wait(&mailbox, 2, 0).is_ok());
            assert_eq!(wait(&mailbox, 2, 1), Err(WaitError::Late));
            mailbox.take(2, &dealt(u64::MAX, 0, 2)).unwrap();
            begin(attempt + 1);
            // Early messages for the next attempt are not outdated.
            mailbox.take(2, &dealt(attempt + 2, 0, 1)).unwrap();
            begin(attempt + 2);
            assert!(wait(&mailbox, 2, 0).is_ok());
            mailbox.take(2, &dealt(attempt + 2, 1, 1)).unwrap();
        }
        // Among later attempts, an older one was given up.
        mailbox.take(2, &dealt(9, 0, 1)).unwrap();
        mailbox.take(2, &dealt(8, 0, 1)).unwrap();
        mailbox.begin(Attempt { attempt: 9, number: 0 });
        assert!(wait(&mailbox, 2, 0).is_ok());
        mailbox.take(2, &dealt(9, 1, 1)).unwrap();
        mailbox.end();
        assert!(mailbox.is_empty());
    }

    /// This server does not wait for a round that the dealer has already passed. A server that
    /// restarts during an eviction lacks earlier messages, while the other servers continue with
    /// later rounds.
    #[test]
    fn no_wait_for_a_round_that_the_dealer_has_passed() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        mailbox.take(2, &dealt(1, 0, 2)).unwrap();
        mailbox.take(2, &dealt(1, 1, 1)).unwrap();
        let long = Duration::from_secs(30);
        let wait_long = |at| mailbox.wait(2, at, long, &|| false).map(drop);
        assert_eq!(wait_long((0, 1)), Err(WaitError::Lost));
        assert!(wait(&mailbox, 2, 1).is_ok());
        assert_eq!(wait_long((0, 2)), Ok(()));
        // The same holds for an earlier part of the same lane. Parts of other lanes are in progress
        // at the same time.
        mailbox.take(2, &dealt(1, 6, 1)).unwrap();
        mailbox.take(2, &dealt(1, 7, 0)).unwrap();
        assert_eq!([(2, 2), (3, 1)].map(wait_long), [Err(WaitError::Lost); 2]);
        assert_eq!(wait(&mailbox, 2, 5), Err(WaitError::Late));
        assert_eq!(wait(&mailbox, 2, 10), Err(WaitError::Late));
    }

    /// The wait for a server without a link is short, because that server may have sent its
    /// messages to an earlier process of this server.
    #[test]
    fn the_wait_for_a_server_without_a_link_is_short() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        let asked = AtomicUsize::new(0);
        let looks = || {
            asked.fetch_add(1, Ordering::Relaxed);
            false
        };
        assert_eq!(mailbox.wait(2, (0, 1), 2 * BACK_WITHIN, &looks), Err(WaitError::Lost));
        let times = |time: Duration| time.div_duration_f64(CHECK_INTERVAL) as usize;
        assert_eq!(asked.load(Ordering::Relaxed), times(BACK_WITHIN) + 1);
    }

    /// A wait is not prolonged when links to other servers are lost or restored, or when a lying
    /// server sends useless shares.
    #[test]
    fn other_events_do_not_prolong_a_wait() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for attempt in 2..2000 {
                    mailbox.record_lost_link(3);
                    mailbox.record_new_link(4);
                    mailbox.take(5, &dealt(attempt, 0, 1)).unwrap();
                    thread::sleep(Duration::from_millis(10));
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
                panic!("the wait is longer than for a server that may come back");
            });
            let wait = |from| mailbox.wait(from, (0, 1), BACK_WITHIN, &|| false);
            assert_eq!([2, 5].map(wait), [Err(WaitError::Lost), Err(WaitError::Late)]);
            is_over.store(true, Ordering::Relaxed);
        });
    }

    /// A restored link restores the full wait. After a server reconnects, its messages come over
    /// the new link, and that may take longer than the short wait for a missing link.
    #[test]
    fn a_restored_link_restores_the_full_wait() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        mailbox.record_new_link(2);
        mailbox.record_lost_link(2);
        thread::scope(|scope| {
            let waits = scope.spawn(|| mailbox.wait(2, (0, 1), Duration::from_secs(30), &|| false));
            thread::sleep(CHECK_INTERVAL);
            mailbox.record_new_link(2);
            thread::sleep(2 * BACK_WITHIN);
            mailbox.take(2, &dealt(1, 0, 1)).unwrap();
            assert!(waits.join().unwrap().is_ok());
        });
    }

    /// A watcher that counts received messages.
    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Watcher for Counting {
        fn asked(&self, _: &[u8]) {}
        fn answered(&self, _: &[u8], _: &[u8]) {}
        fn sent(&self, _: u8, _: &[u8]) {}
        fn received(&self, _: u8, _: &[u8]) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_watcher_sees_stored_messages_and_no_dropped_ones() {
        let mailbox = Mailbox::default();
        let counting = Arc::new(Counting::default());
        let watcher: Arc<dyn Watcher> = counting.clone();
        mailbox.watch(&watcher);
        mailbox.begin(Attempt { attempt: 5, number: 0 });
        mailbox.take(2, &dealt(5, 0, 1)).unwrap();
        // A message of a given-up attempt, a duplicate, a message of an unknown server, and an
        // invalid one.
        for _ in 0..3 {
            mailbox.take(2, &dealt(4, 0, 1)).unwrap();
            mailbox.take(2, &dealt(5, 0, 1)).unwrap();
            assert_eq!(mailbox.take(200, &dealt(5, 0, 1)), Err(ProtocolViolation));
            assert_eq!(mailbox.take(2, b"nothing"), Err(ProtocolViolation));
        }
        mailbox.limit(1000);
        let shares = vec![Share::Computed(vec![1; 1001])];
        let long = DealtShares { number: 0, attempt: 5, tile: 1, level: 1, shares }.encode();
        assert_eq!(mailbox.take(2, &long), Err(ProtocolViolation));
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        for tile in 1..=PORTIONS_MAX as u32 {
            let is_taken = mailbox.take(2, &dealt(5, tile, 1)).is_ok();
            assert_eq!(is_taken, tile < PORTIONS_MAX as u32);
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), PORTIONS_MAX);
    }

    /// Before an attempt begins, at most [`EARLY_PORTIONS_MAX`] of its portions are stored, because
    /// they take memory until the attempt begins. A further portion violates the protocol.
    #[test]
    fn one_round_is_kept_of_an_attempt_that_has_not_begun() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        let early = |tile| mailbox.take(2, &dealt(2, tile, 1));
        assert!((0..TILES_AT_ONCE as u32).all(|tile| early(tile).is_ok()));
        assert_eq!(early(TILES_AT_ONCE as u32), Err(ProtocolViolation));
        mailbox.begin(Attempt { attempt: 2, number: 0 });
        assert_eq!(early(TILES_AT_ONCE as u32), Ok(()));
    }

    #[test]
    fn stored_messages_are_bounded_and_no_wait_follows_a_lost_link() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        for tile in 0..PORTIONS_MAX as u32 {
            mailbox.take(3, &dealt(1, tile, 1)).unwrap();
        }
        assert_eq!(mailbox.take(3, &dealt(1, 1000, 1)), Err(ProtocolViolation));
        // A duplicate is stored once.
        assert_eq!(mailbox.take(3, &dealt(1, 1, 1)), Ok(()));
        assert!(wait(&mailbox, 3, 0).is_ok());
        let long = |bytes| {
            let shares = vec![Share::Computed(vec![1; bytes])];
            DealtShares { number: 0, attempt: 1, tile: 99, level: 1, shares }.encode()
        };
        mailbox.limit(1000);
        assert_eq!(mailbox.take(2, &long(1001)), Err(ProtocolViolation));
        assert_eq!(mailbox.take(2, &long(1000)), Ok(()));
        assert_eq!(mailbox.take(200, &dealt(1, 1, 1)), Err(ProtocolViolation));
        assert_eq!(mailbox.take(3, b"nothing"), Err(ProtocolViolation));
        // A used message is not stored again.
        assert_eq!(mailbox.take(3, &dealt(1, 0, 1)), Ok(()));
        assert_eq!(mailbox.boxes().peers[3].portions.len(), PORTIONS_MAX - 1);
        mailbox.record_lost_link(3);
        assert!(wait(&mailbox, 3, 1).is_ok());
        assert_eq!(wait(&mailbox, 3, 1000), Err(WaitError::Lost));
        // A restored link counts before any message comes over it.
        mailbox.record_new_link(3);
        assert_eq!(wait(&mailbox, 3, 1000), Err(WaitError::Late));
    }
}
