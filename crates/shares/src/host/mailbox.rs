//! What other servers have dealt, until it is needed.
//!
//! A message can come before the client has told this server of the eviction, and the next one of the same part while this one is still
//! worked on. No server that keeps to the protocol is further ahead, so what is kept of each is bounded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use super::evict::{TILES_AT_ONCE, lane};
use super::watcher::Watcher;
use crate::message::Dealt;
use crate::sharing::{SERVERS_MAX, Seed, Share};

/// What a server has dealt for one part and one round.
type Portion = Vec<Share<u8>>;

/// Of one server, as many portions are kept: for each part that is under way that of a round, of the next, and those of parts that begin. All wait for all, so
/// no server is further ahead.
const PORTIONS_MAX: usize = 4 * TILES_AT_ONCE;

/// Portions of one server that are kept before this one begins the attempt: the first round of each
/// lane. For the second, that server needs what this one deals.
const EARLY_PORTIONS_MAX: usize = TILES_AT_ONCE;

/// A message that no server sends that keeps to the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unwanted;

/// Takes what other servers have dealt, from any thread.
#[derive(Default)]
pub struct Mailbox {
    boxes: Mutex<Boxes>,
    came: Condvar,
    /// Bytes of a portion, at most: none before there is a tree.
    portion_bytes_max: AtomicUsize,
    /// None if nobody watches the server, or it is closed.
    watcher: Mutex<Option<Weak<dyn Watcher>>>,
}

#[derive(Default)]
struct Boxes {
    /// The eviction that is under way or was last.
    begun: Attempt,
    of: [Dealer; SERVERS_MAX as usize + 1],
}

/// Of one server.
#[derive(Default)]
struct Dealer {
    attempt: Attempt,
    portions: HashMap<(u32, u8), Portion>,
    /// The latest part and round of each lane that were taken out.
    taken: [Option<(u32, u8)>; TILES_AT_ONCE],
    /// Whether it has a link to this server.
    is_there: bool,
}

/// Which eviction, and which attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Attempt {
    pub(super) attempt: u64,
    pub(super) number: u64,
}

/// Why something does not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The link has ended.
    Lost,
    /// Nothing has come in time.
    Late,
}

impl Mailbox {
    /// Takes what the server of this number has sent. Whether it still matters is found out here.
    ///
    /// # Errors
    /// When it is nothing that is dealt, or too much at once: its link is to be ended.
    pub fn take(&self, from: u8, message: &[u8]) -> Result<(), Unwanted> {
        let Dealt { number, attempt, tile, level, shares } =
            Dealt::decode(message).map_err(|_| Unwanted)?;
        let bytes = |share: &Share<u8>| match share {
            Share::Drawn(seed) => seed.len(),
            Share::Computed(bytes) => bytes.len(),
        };
        let kept: usize = shares.iter().map(bytes).sum();
        let is_a_portion = shares.len() <= 2
            && kept <= self.portion_bytes_max.load(Ordering::Relaxed).max(2 * size_of::<Seed>());
        if !is_a_portion {
            return Err(Unwanted);
        }
        let attempt = Attempt { attempt, number };
        let watcher = self.watcher();
        let mut boxes = self.boxes();
        let begun = boxes.begun;
        let own = boxes.of.get_mut(usize::from(from)).ok_or(Unwanted)?;
        own.is_there = true;
        // What is dealt for the attempt that is begun is taken whatever the server has sent before: with a number that is too great it would be silent for good.
        if attempt != begun && attempt < begun.max(own.attempt) {
            // It is of an attempt that was given up.
            return Ok(());
        }
        if attempt != own.attempt {
            own.go_on_to(attempt);
        }
        let was_taken = own.taken[lane(tile)].is_some_and(|taken| taken >= (tile, level));
        if was_taken || own.portions.contains_key(&(tile, level)) {
            // A link was lost, and nobody knew what had come over it.
            return Ok(());
        }
        let portions_max = if attempt == begun { PORTIONS_MAX } else { EARLY_PORTIONS_MAX };
        if own.portions.len() >= portions_max {
            return Err(Unwanted);
        }
        // Not before: what is thrown away is for nobody to keep either. It is told before it is used.
        if let Some(watcher) = &watcher {
            watcher.received(from, message);
        }
        own.portions.insert((tile, level), shares);
        drop(boxes);
        self.came.notify_all();
        Ok(())
    }

    /// The link to that server has ended: nobody waits for it long, unless it sends something again.
    pub fn is_lost(&self, from: u8) {
        if let Some(own) = self.boxes().of.get_mut(usize::from(from)) {
            own.is_there = false;
        }
        self.came.notify_all();
    }

    /// There is a new link to that server: it is waited for again, however long what comes over it is on its way.
    pub fn is_back(&self, from: u8) {
        if let Some(own) = self.boxes().of.get_mut(usize::from(from)) {
            own.is_there = true;
        }
    }

    /// From now on, this one is told of all that is taken, as long as the server keeps it.
    pub(super) fn watch(&self, watcher: &Arc<dyn Watcher>) {
        *self.watcher.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Arc::downgrade(watcher));
    }

    fn watcher(&self) -> Option<Arc<dyn Watcher>> {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        watcher.as_ref().and_then(Weak::upgrade)
    }

    /// No portion has more bytes than this.
    pub(super) fn limit(&self, portion_bytes_max: usize) {
        self.portion_bytes_max.store(portion_bytes_max, Ordering::Relaxed);
    }

    /// From now on this one counts.
    pub(super) fn begin(&self, attempt: Attempt) {
        let mut boxes = self.boxes();
        boxes.begun = attempt;
        for own in boxes.of.iter_mut().filter(|own| own.attempt != attempt) {
            // Also if it has dealt for a later one: what comes early for the next is taken again.
            own.go_on_to(attempt);
        }
    }

    /// Whatever is here is of no use any more.
    pub(super) fn end(&self) {
        self.boxes().of.iter_mut().for_each(|own| own.portions.clear());
    }

    /// Waits for what that server deals for this part and round. `is_given_up` is asked now and then.
    pub(super) fn wait(
        &self,
        from: u8,
        (tile, level): (u32, u8),
        within: Duration,
        is_given_up: &dyn Fn() -> bool,
    ) -> Result<Portion, Missing> {
        let mut boxes = self.boxes();
        let (mut waited, mut lost) = (Duration::ZERO, Duration::ZERO);
        loop {
            let begun = boxes.begun;
            let own = boxes.of.get_mut(usize::from(from)).ok_or(Missing::Lost)?;
            if own.attempt == begun
                && let Some(portion) = own.portions.remove(&(tile, level))
            {
                own.taken[lane(tile)] = Some((tile, level));
                return Ok(portion);
            }
            // Rounds of a part come in their order, and so do parts of a lane: what came before this server was started again does not come once more.
            let is_past = own.has_come_to(begun, (tile, level));
            if is_past || is_given_up() {
                return Err(Missing::Lost);
            }
            let is_there = own.is_there;
            let left = within.saturating_sub(waited);
            let left = if is_there { left } else { left.min(BACK_WITHIN.saturating_sub(lost)) };
            if left.is_zero() {
                return Err(if is_there { Missing::Late } else { Missing::Lost });
            }
            let pause = left.min(LOOK_EVERY);
            // Whatever else happens meanwhile, however often, makes no wait longer.
            let is_missing = |boxes: &mut Boxes| {
                !boxes.of[usize::from(from)].has_come_to(boxes.begun, (tile, level))
            };
            let paused = self.came.wait_timeout_while(boxes, pause, is_missing);
            let pauses;
            (boxes, pauses) = paused.unwrap_or_else(PoisonError::into_inner);
            if pauses.timed_out() {
                waited += pause;
                lost = if is_there { Duration::ZERO } else { lost + pause };
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.boxes().of.iter().all(|own| own.portions.is_empty())
    }

    fn boxes(&self) -> MutexGuard<'_, Boxes> {
        self.boxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dealer {
    /// Whether there is something that it has dealt for this part and round, or for a later one of the lane.
    fn has_come_to(&self, begun: Attempt, at: (u32, u8)) -> bool {
        let is_there = |it: &(u32, u8)| lane(it.0) == lane(at.0) && *it >= at;
        self.attempt == begun && self.portions.keys().any(is_there)
    }

    /// What it has dealt for another attempt is of no use.
    fn go_on_to(&mut self, attempt: Attempt) {
        self.attempt = attempt;
        self.portions.clear();
        self.taken = Default::default();
    }
}

/// A server without a link may be about to make one, which takes some round trips: it is waited for so long. Not longer, since what it has dealt may have been for the program
/// that ran here before.
const BACK_WITHIN: Duration = Duration::from_secs(2);

/// How often whoever waits looks whether it still makes sense.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use super::*;

    fn dealt(attempt: u64, tile: u32, level: u8) -> Vec<u8> {
        Dealt { number: 0, attempt, tile, level, shares: vec![Share::Drawn([1; 32])] }.encode()
    }

    const FIRST: Attempt = Attempt { attempt: 1, number: 0 };
    const SOON: Duration = Duration::from_millis(1);

    fn wait(mailbox: &Mailbox, from: u8, tile: u32) -> Result<Portion, Missing> {
        mailbox.wait(from, (tile, 1), SOON, &|| false)
    }

    #[test]
    fn what_comes_early_is_kept_and_what_comes_late_is_not() {
        let mailbox = Mailbox::default();
        mailbox.take(2, &dealt(1, 0, 1)).unwrap();
        mailbox.take(2, &dealt(1, 1, 1)).unwrap();
        mailbox.begin(FIRST);
        assert!(wait(&mailbox, 2, 0).is_ok());
        assert_eq!(wait(&mailbox, 2, 0), Err(Missing::Late));
        mailbox.begin(Attempt { attempt: 2, number: 0 });
        assert!(mailbox.boxes().of[2].portions.is_empty());
        assert_eq!(wait(&mailbox, 2, 1), Err(Missing::Late));
        mailbox.take(2, &dealt(1, 1, 1)).unwrap();
        assert_eq!(wait(&mailbox, 2, 1), Err(Missing::Late));
        mailbox.take(2, &dealt(2, 1, 1)).unwrap();
        assert!(wait(&mailbox, 2, 1).is_ok());
        // It deals for an attempt that has not come here yet: what came for this one is of no use.
        mailbox.take(2, &dealt(2, 2, 1)).unwrap();
        mailbox.take(2, &dealt(3, 2, 1)).unwrap();
        assert_eq!(wait(&mailbox, 2, 2), Err(Missing::Late));
        mailbox.begin(Attempt { attempt: 3, number: 0 });
        assert!(wait(&mailbox, 2, 2).is_ok());
    }

    /// The greatest number that there is, dealt once, is not to keep a server from all evictions to come.
    #[test]
    fn whoever_has_dealt_for_a_later_attempt_still_deals_for_the_one_that_is_begun() {
        let mailbox = Mailbox::default();
        for attempt in [1, 3, 5] {
            let begin = |attempt| mailbox.begin(Attempt { attempt, number: 0 });
            begin(attempt);
            mailbox.take(2, &dealt(u64::MAX, 0, 2)).unwrap();
            // For this one it has dealt nothing so far, and so it is not past any round.
            assert_eq!(wait(&mailbox, 2, 0), Err(Missing::Late));
            mailbox.take(2, &dealt(attempt, 0, 1)).unwrap();
            mailbox.take(2, &dealt(attempt - 1, 1, 1)).unwrap();
            assert!(wait(&mailbox, 2, 0).is_ok());
            assert_eq!(wait(&mailbox, 2, 1), Err(Missing::Late));
            mailbox.take(2, &dealt(u64::MAX, 0, 2)).unwrap();
            begin(attempt + 1);
            // What comes early for the next one is not too late.
            mailbox.take(2, &dealt(attempt + 2, 0, 1)).unwrap();
            begin(attempt + 2);
            assert!(wait(&mailbox, 2, 0).is_ok());
            mailbox.take(2, &dealt(attempt + 2, 1, 1)).unwrap();
        }
        // Of those that are later, what is older than the rest is of an attempt that was given up.
        mailbox.take(2, &dealt(9, 0, 1)).unwrap();
        mailbox.take(2, &dealt(8, 0, 1)).unwrap();
        mailbox.begin(Attempt { attempt: 9, number: 0 });
        assert!(wait(&mailbox, 2, 0).is_ok());
        mailbox.take(2, &dealt(9, 1, 1)).unwrap();
        mailbox.end();
        assert!(mailbox.is_empty());
    }

    /// A server that was started again in an eviction lacks what was dealt before, and the others go on with what it deals now.
    #[test]
    fn nobody_waits_for_a_round_that_the_dealer_has_left_behind() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        mailbox.take(2, &dealt(1, 0, 2)).unwrap();
        mailbox.take(2, &dealt(1, 1, 1)).unwrap();
        let long = Duration::from_secs(30);
        let wait_long = |at| mailbox.wait(2, at, long, &|| false).map(drop);
        assert_eq!(wait_long((0, 1)), Err(Missing::Lost));
        assert!(wait(&mailbox, 2, 1).is_ok());
        assert_eq!(wait_long((0, 2)), Ok(()));
        // Nor for a part that comes before one that is there. Those between them are worked on beside it.
        mailbox.take(2, &dealt(1, 6, 1)).unwrap();
        mailbox.take(2, &dealt(1, 7, 0)).unwrap();
        assert_eq!([(2, 2), (3, 1)].map(wait_long), [Err(Missing::Lost); 2]);
        assert_eq!(wait(&mailbox, 2, 5), Err(Missing::Late));
        assert_eq!(wait(&mailbox, 2, 10), Err(Missing::Late));
    }

    /// What it has dealt may have been for the program that ran here before.
    #[test]
    fn a_server_that_has_made_no_link_is_waited_for_a_short_time_only() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        let asked = AtomicUsize::new(0);
        let looks = || {
            asked.fetch_add(1, Ordering::Relaxed);
            false
        };
        assert_eq!(mailbox.wait(2, (0, 1), 2 * BACK_WITHIN, &looks), Err(Missing::Lost));
        let times = |time: Duration| time.div_duration_f64(LOOK_EVERY) as usize;
        assert_eq!(asked.load(Ordering::Relaxed), times(BACK_WITHIN) + 1);
    }

    /// Others that are not reached say so again and again, and one that lies deals what nobody needs.
    #[test]
    fn no_wait_is_longer_for_what_else_happens() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for attempt in 2..2000 {
                    mailbox.is_lost(3);
                    mailbox.is_back(4);
                    mailbox.take(5, &dealt(attempt, 0, 1)).unwrap();
                    thread::sleep(Duration::from_millis(10));
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                }
                panic!("it is waited for longer than a server is that may be back");
            });
            let wait = |from| mailbox.wait(from, (0, 1), BACK_WITHIN, &|| false);
            assert_eq!([2, 5].map(wait), [Err(Missing::Lost), Err(Missing::Late)]);
            is_over.store(true, Ordering::Relaxed);
        });
    }

    /// What it deals comes over the new link, also if it takes longer than the link was waited for.
    #[test]
    fn a_server_whose_link_is_made_again_is_waited_for_as_before() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        mailbox.is_back(2);
        mailbox.is_lost(2);
        thread::scope(|scope| {
            let waits = scope.spawn(|| mailbox.wait(2, (0, 1), Duration::from_secs(30), &|| false));
            thread::sleep(LOOK_EVERY);
            mailbox.is_back(2);
            thread::sleep(2 * BACK_WITHIN);
            mailbox.take(2, &dealt(1, 0, 1)).unwrap();
            assert!(waits.join().unwrap().is_ok());
        });
    }

    /// Counts what has been received.
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
    fn a_watcher_is_told_of_what_is_taken_and_of_nothing_that_is_thrown_away() {
        let mailbox = Mailbox::default();
        let counting = Arc::new(Counting::default());
        let watcher: Arc<dyn Watcher> = counting.clone();
        mailbox.watch(&watcher);
        mailbox.begin(Attempt { attempt: 5, number: 0 });
        mailbox.take(2, &dealt(5, 0, 1)).unwrap();
        // Of an attempt that was given up, the same again, from nobody, and nothing that is dealt.
        for _ in 0..3 {
            mailbox.take(2, &dealt(4, 0, 1)).unwrap();
            mailbox.take(2, &dealt(5, 0, 1)).unwrap();
            assert_eq!(mailbox.take(200, &dealt(5, 0, 1)), Err(Unwanted));
            assert_eq!(mailbox.take(2, b"nothing"), Err(Unwanted));
        }
        mailbox.limit(1000);
        let shares = vec![Share::Computed(vec![1; 1001])];
        let long = Dealt { number: 0, attempt: 5, tile: 1, level: 1, shares }.encode();
        assert_eq!(mailbox.take(2, &long), Err(Unwanted));
        assert_eq!(counting.0.load(Ordering::Relaxed), 1);
        for tile in 1..=PORTIONS_MAX as u32 {
            let is_taken = mailbox.take(2, &dealt(5, tile, 1)).is_ok();
            assert_eq!(is_taken, tile < PORTIONS_MAX as u32);
        }
        assert_eq!(counting.0.load(Ordering::Relaxed), PORTIONS_MAX);
    }

    /// Early portions stay in memory until the next attempt.
    #[test]
    fn of_an_attempt_that_is_not_begun_one_round_is_kept() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        let early = |tile| mailbox.take(2, &dealt(2, tile, 1));
        assert!((0..TILES_AT_ONCE as u32).all(|tile| early(tile).is_ok()));
        assert_eq!(early(TILES_AT_ONCE as u32), Err(Unwanted));
        mailbox.begin(Attempt { attempt: 2, number: 0 });
        assert_eq!(early(TILES_AT_ONCE as u32), Ok(()));
    }

    #[test]
    fn no_server_fills_the_memory_of_another_and_nobody_waits_for_one_that_is_gone() {
        let mailbox = Mailbox::default();
        mailbox.begin(FIRST);
        for tile in 0..PORTIONS_MAX as u32 {
            mailbox.take(3, &dealt(1, tile, 1)).unwrap();
        }
        assert_eq!(mailbox.take(3, &dealt(1, 1000, 1)), Err(Unwanted));
        // What comes twice is there once.
        assert_eq!(mailbox.take(3, &dealt(1, 1, 1)), Ok(()));
        assert!(wait(&mailbox, 3, 0).is_ok());
        let long = |bytes| {
            let shares = vec![Share::Computed(vec![1; bytes])];
            Dealt { number: 0, attempt: 1, tile: 99, level: 1, shares }.encode()
        };
        mailbox.limit(1000);
        assert_eq!(mailbox.take(2, &long(1001)), Err(Unwanted));
        assert_eq!(mailbox.take(2, &long(1000)), Ok(()));
        assert_eq!(mailbox.take(200, &dealt(1, 1, 1)), Err(Unwanted));
        assert_eq!(mailbox.take(3, b"nothing"), Err(Unwanted));
        // Nor once more after it was taken out.
        assert_eq!(mailbox.take(3, &dealt(1, 0, 1)), Ok(()));
        assert_eq!(mailbox.boxes().of[3].portions.len(), PORTIONS_MAX - 1);
        mailbox.is_lost(3);
        assert!(wait(&mailbox, 3, 1).is_ok());
        assert_eq!(wait(&mailbox, 3, 1000), Err(Missing::Lost));
        // A link that was made again is there before anything has come over it.
        mailbox.is_back(3);
        assert_eq!(wait(&mailbox, 3, 1000), Err(Missing::Late));
    }
}
