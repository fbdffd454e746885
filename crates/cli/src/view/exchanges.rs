//! Counts messages between servers, and compares evictions, which should all look alike. Memory is
//! bounded, whatever the view contains.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use oblivio_core::view::{Direction, PeerMessage, view_tree};

/// Messages from one server to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageCount {
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

/// The messages that the shown servers sent and received. Public.
#[derive(Default)]
pub(super) struct Exchanges {
    /// Counts of messages by sender and receiver.
    pub(super) sent: BTreeMap<(u8, u8), MessageCount>,
    /// Eviction attempts of which more messages may follow, by the server that saw them and by the
    /// number of the attempt.
    under_way: BTreeMap<(u8, u64), EvictionAttempt>,
    /// Shapes of evictions, by the server that saw them and by tree.
    trees: BTreeMap<(u8, u8), TreeEvictions>,
    /// Number of attempts that the client did not announce to the server that saw them.
    pub(super) unannounced: u64,
}

/// Number of evictions of a tree by shape.
#[derive(Default)]
struct TreeEvictions {
    shapes: BTreeMap<EvictionShape, u64>,
    /// Number of evictions with other shapes than the [`SHAPES_MAX`] in `shapes`.
    others: u64,
}

/// An attempt to evict a path, as one server saw it.
#[derive(Clone, Copy, Default)]
struct EvictionAttempt {
    tree: Option<u8>,
    shape: EvictionShape,
}

/// The properties of an attempt that a server sees, except the order of its messages, which is
/// random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct EvictionShape {
    messages: u64,
    bytes: u64,
    /// The sum of the digests of all messages.
    digest: u64,
}

/// Maximum number of attempts that one server saw and of which more messages may follow. An attempt
/// begins when the previous one is over or was given up.
const UNDER_WAY_MAX: usize = 8;

/// Maximum number of shapes that are counted separately for one tree and server.
const SHAPES_MAX: usize = 1000;

/// The evictions of a tree as a server saw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Evictions {
    pub(super) party: u8,
    /// The tree's number in the view.
    pub(super) tree: u16,
    pub(super) attempts: u64,
    /// Number of attempts in the largest group of attempts with the same shape.
    pub(super) alike: u64,
    /// Number of messages of each attempt in that group.
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Exchanges {
    /// Records the next message. Counts a received message by sender and receiver only if the
    /// sender is not shown; otherwise the message was counted when it was sent.
    pub(super) fn record(&mut self, exchange: &PeerMessage, shown: &[u8]) {
        let (from, to) = exchange.from_to();
        if exchange.direction == Direction::Sent || !shown.contains(&from) {
            let sent = self.sent.entry((from, to)).or_default();
            sent.messages += 1;
            sent.bytes = sent.bytes.saturating_add(exchange.bytes);
        }
        let attempt = self.under_way.entry((exchange.party, exchange.attempt)).or_default();
        attempt.tree = attempt.tree.or(exchange.tree);
        attempt.shape.add(exchange);
        self.end_attempts_of(exchange.party, UNDER_WAY_MAX);
    }

    /// Ends all attempts, because the view has ended.
    pub(super) fn end(&mut self) {
        (1..=u8::MAX).for_each(|party| self.end_attempts_of(party, 0));
    }

    /// Ends the attempts with the lowest numbers that a server saw, until at most `left` are in
    /// progress.
    fn end_attempts_of(&mut self, party: u8, left: usize) {
        let of_party = (party, 0)..=(party, u64::MAX);
        while self.under_way.range(of_party.clone()).count() > left {
            let Some((oldest, _)) = self.under_way.range(of_party.clone()).next() else { return };
            let oldest = *oldest;
            let Some(EvictionAttempt { tree, shape }) = self.under_way.remove(&oldest) else {
                return;
            };
            let Some(tree) = tree else {
                self.unannounced += 1;
                continue;
            };
            let TreeEvictions { shapes, others } = self.trees.entry((party, tree)).or_default();
            if shapes.len() < SHAPES_MAX || shapes.contains_key(&shape) {
                *shapes.entry(shape).or_default() += 1;
            } else {
                *others += 1;
            }
        }
    }

    /// The evictions of each tree as each server saw them.
    pub(super) fn evictions(&self) -> impl Iterator<Item = Evictions> {
        self.trees.iter().filter_map(|((party, tree), TreeEvictions { shapes, others })| {
            let (shape, alike) = shapes.iter().max_by_key(|(_, count)| **count)?;
            Some(Evictions {
                party: *party,
                tree: view_tree(*party, *tree).0,
                attempts: shapes.values().sum::<u64>() + others,
                alike: *alike,
                messages: shape.messages,
                bytes: shape.bytes,
            })
        })
    }
}

impl EvictionShape {
    fn add(&mut self, exchange: &PeerMessage) {
        let PeerMessage { direction, partner, round, part, shares, seeds, bytes, .. } = *exchange;
        let mut hasher = DefaultHasher::new();
        (direction, partner, round, part, shares, seeds, bytes).hash(&mut hasher);
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.digest = self.digest.wrapping_add(hasher.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(attempt: u64, round: u8, bytes: u64) -> PeerMessage {
        PeerMessage {
            trip: 0,
            party: 1,
            direction: Direction::Received,
            partner: 2,
            tree: Some(0),
            eviction: attempt,
            attempt,
            round,
            part: 0,
            shares: 1,
            seeds: 0,
            bytes,
        }
    }

    fn seen(messages: impl IntoIterator<Item = PeerMessage>, shown: &[u8]) -> Exchanges {
        let mut exchanges = Exchanges::default();
        messages.into_iter().for_each(|message| exchanges.record(&message, shown));
        exchanges.end();
        exchanges
    }

    #[test]
    fn evictions_are_alike_in_whatever_order_their_messages_come() {
        let rounds = |attempt: u64| {
            let mut rounds = vec![1, 2, 3];
            rounds.rotate_left(attempt as usize % 3);
            rounds.into_iter().map(move |round| message(attempt, round, 100))
        };
        let evictions: Vec<_> = seen((1..=50).flat_map(rounds), &[1]).evictions().collect();
        let expected =
            Evictions { party: 1, tree: 100, attempts: 50, alike: 50, messages: 3, bytes: 300 };
        assert_eq!(evictions, [expected]);
    }

    #[test]
    fn an_eviction_that_looks_different_is_reported() {
        for odd in [
            message(7, 3, 99),
            message(7, 4, 100),
            PeerMessage { seeds: 1, ..message(7, 3, 100) },
            PeerMessage { part: 1, ..message(7, 3, 100) },
            PeerMessage { direction: Direction::Sent, ..message(7, 3, 100) },
            PeerMessage { partner: 3, ..message(7, 3, 100) },
        ] {
            let usual =
                (1..=20).flat_map(|attempt| (1..=2).map(move |it| message(attempt, it, 100)));
            let last = (1..=20).map(|attempt| match attempt {
                7 => odd,
                _ => message(attempt, 3, 100),
            });
            let of_all = seen(usual.chain(last), &[1]).evictions().next().unwrap();
            // A message that comes after `UNDER_WAY_MAX` later attempts have begun counts as an
            // attempt of its own.
            assert!(of_all.alike < of_all.attempts, "{odd:?}");
            let in_order = (1..=20).flat_map(|attempt| {
                let last = if attempt == 7 { odd } else { message(attempt, 3, 100) };
                [message(attempt, 1, 100), message(attempt, 2, 100), last]
            });
            let of_all = seen(in_order, &[1]).evictions().next().unwrap();
            assert_eq!((of_all.alike, of_all.attempts), (19, 20), "{odd:?}");
        }
    }

    #[test]
    fn messages_seen_by_both_ends_are_counted_once() {
        let received = message(1, 1, 100);
        let sent = PeerMessage { party: 2, direction: Direction::Sent, partner: 1, ..received };
        for (shown, messages) in [(&[1, 2][..], vec![received, sent]), (&[1], vec![received])] {
            let exchanges = seen(messages, shown);
            let expected = MessageCount { messages: 1, bytes: 100 };
            assert_eq!(exchanges.sent, BTreeMap::from([((2, 1), expected)]));
        }
    }

    #[test]
    fn memory_is_bounded_whatever_attempts_there_are() {
        let strange = (0..50_000u64).map(|n| message(n.wrapping_mul(0x9E37_79B9_7F4A_7C15), 1, n));
        let mut exchanges = Exchanges::default();
        for message in strange {
            exchanges.record(&message, &[1]);
            assert!(exchanges.under_way.len() <= UNDER_WAY_MAX);
        }
        exchanges.end();
        assert!(exchanges.trees[&(1, 0)].shapes.len() <= SHAPES_MAX);
        let of_all = exchanges.evictions().next().unwrap();
        assert_eq!((of_all.alike, of_all.attempts), (1, 50_000));
    }
}
