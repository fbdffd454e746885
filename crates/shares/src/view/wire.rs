//! Records the messages of one server: requests of its client, and messages between servers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use oblivio_core::view::{Direction, Event, Operation, PeerMessage, PeerMessageSink, ViewServers};

use super::touched::{PieceContents, Touched, header_of_root, touched};
use crate::host::Watcher;
use crate::message::{Answer, DealtShares, Request, Setup};
use crate::sharing::Share;

/// The servers of a view that is recorded at the server with this setup; `None` if the setup has
/// invalid numbers of servers.
pub fn servers_seen_by(setup: &Setup) -> Option<ViewServers> {
    let count = setup.parties.servers() as u8;
    ViewServers::new(count, setup.parties.colluding() as u8)?
        .watching(1 << setup.number.checked_sub(1)?)
}

/// Watches one server and reports its messages to a sink. Requests of the client are recorded as by
/// [`ShareRecorder`](super::ShareRecorder), and each message between servers as a [`PeerMessage`].
///
/// An eviction is recorded when its request arrives, before its messages between servers, and even
/// if it is refused. Other requests are recorded with their answer. If such a request is refused or
/// invalid, it is recorded as a read of the root's header.
pub struct WireRecorder<K> {
    party: u8,
    state: Mutex<State<K>>,
}

struct State<K> {
    sink: K,
    trips: u64,
    /// The number of levels below the root of each tree.
    heights: Vec<u8>,
    /// The number of the latest attempt to evict a path, and its tree.
    begun: Option<(u64, u8)>,
}

impl<K: PeerMessageSink> WireRecorder<K> {
    /// Starts recording at the server with these setups, one for each tree.
    pub fn new<'s>(sink: K, trees: impl IntoIterator<Item = &'s Setup>) -> Self {
        let mut party = 1;
        let heights = trees.into_iter().map(|setup| {
            party = setup.number;
            setup.tree.height()
        });
        let heights = heights.collect();
        Self { party, state: Mutex::new(State { sink, trips: 0, heights, begun: None }) }
    }

    /// Ends the recording, and returns the sink.
    pub fn into_sink(self) -> K {
        self.state.into_inner().unwrap_or_else(PoisonError::into_inner).sink
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record_message(&self, direction: Direction, partner: u8, dealt: &[u8]) {
        // An invalid message ends the link and moves no data.
        let Ok(DealtShares { number, attempt, tile, level, shares }) = DealtShares::decode(dealt)
        else {
            return;
        };
        let mut state = self.state();
        let tree = state.begun.filter(|(begun, _)| *begun == attempt).map(|(_, tree)| tree);
        let is_seed = |share: &&Share<u8>| matches!(share, Share::Drawn(_));
        let exchange = PeerMessage {
            trip: state.next_trip(),
            party: self.party,
            direction,
            partner,
            tree,
            eviction: number,
            attempt,
            round: level,
            part: tile,
            shares: shares.len() as u8,
            seeds: shares.iter().filter(is_seed).count() as u8,
            bytes: dealt.len() as u64,
        };
        state.sink.record_message(&exchange, dealt);
    }
}

impl<K: PeerMessageSink> State<K> {
    fn next_trip(&mut self) -> u64 {
        self.trips += 1;
        self.trips - 1
    }

    fn touched(&mut self, Touched { read, written }: &Touched<'_>) {
        self.call(Operation::Read, read);
        self.call(Operation::Write, written);
    }

    fn call(&mut self, operation: Operation, pieces: &PieceContents<'_>) {
        if pieces.is_empty() {
            return;
        }
        let trip = self.next_trip();
        for (piece, contents) in pieces {
            let bytes = contents.len() as u64;
            self.sink.record(&Event { trip, operation, piece: Some(*piece), bytes }, contents);
        }
    }

    fn height(&self, tree: u8) -> u8 {
        self.heights.get(usize::from(tree)).copied().unwrap_or_default()
    }
}

impl<K: PeerMessageSink + Send> Watcher for WireRecorder<K> {
    fn asked(&self, message: &[u8]) {
        let Ok((tree, request @ Request::Evict { .. })) = Request::decode_in(message) else {
            return;
        };
        let mut state = self.state();
        if let Request::Evict { evict, .. } = &request {
            state.begun = Some((evict.attempt, tree));
        }
        let of = (tree, state.height(tree));
        state.touched(&touched(self.party, of, &request, message, &[]));
    }

    fn answered(&self, message: &[u8], answer: &[u8]) {
        let mut state = self.state();
        let (tree, request) = match Request::decode_in(message) {
            Ok((_, Request::Evict { .. })) => return,
            Ok(decoded) => decoded,
            Err(_) => {
                state.touched(&header_of_root(self.party, 0, message));
                return;
            }
        };
        // A client that breaks the protocol may ask for anything, and is refused.
        if matches!(Answer::decode(answer), Ok(Answer::Refused(_)) | Err(_)) {
            state.touched(&header_of_root(self.party, tree, message));
            return;
        }
        if let Request::Setup(setup) = &request
            && usize::from(tree) == state.heights.len()
        {
            state.heights.push(setup.tree.height());
        }
        let of = (tree, state.height(tree));
        state.touched(&touched(self.party, of, &request, message, answer));
    }

    fn sent(&self, to: u8, dealt: &[u8]) {
        self.record_message(Direction::Sent, to, dealt);
    }

    fn received(&self, from: u8, dealt: &[u8]) {
        self.record_message(Direction::Received, from, dealt);
    }
}

#[cfg(test)]
mod tests {
    use oblivio_core::store::Part;
    use oblivio_core::view::EventSink;

    use super::*;
    use crate::message::{Evict, Refusal};
    use crate::sharing::Parties;
    use crate::tree::{Preset, Tree};

    /// A sink that stores the trees of messages between servers, and the operations and parts of
    /// calls.
    #[derive(Default)]
    struct FakeSink {
        trees: Vec<Option<u8>>,
        parts: Vec<(Operation, Part)>,
    }

    impl EventSink for FakeSink {
        fn record(&mut self, event: &Event, _: &[u8]) {
            self.parts.extend(event.piece.map(|piece| (event.operation, piece.part)));
        }
    }

    impl PeerMessageSink for FakeSink {
        fn record_message(&mut self, exchange: &PeerMessage, _: &[u8]) {
            self.trees.push(exchange.tree);
        }
    }

    #[test]
    fn a_refused_eviction_is_recorded_and_its_messages_have_its_tree() {
        let setup = Setup {
            number: 1,
            parties: Parties::new(3, 1).unwrap(),
            tree: Tree::new(1, Preset { slots: 4, accesses: 2 }).unwrap(),
            block_bytes: 16,
            metadata_bytes: 0,
            keys: vec![[1; 32]; 3],
        };
        let recorder = WireRecorder::new(FakeSink::default(), [&setup, &setup]);
        let eviction = |tree, attempt| {
            let evict = Evict { number: 0, attempt, matrices: Vec::new() };
            Request::Evict { evict, dealers: vec![1, 2, 3] }.encode_in(tree)
        };
        let dealt = |attempt| {
            DealtShares { number: 0, attempt, tile: 0, level: 1, shares: Vec::new() }.encode()
        };
        let refused = Answer::Refused(Refusal::from("another server is missing")).encode();
        recorder.received(2, &dealt(5));
        recorder.asked(&eviction(1, 5));
        recorder.sent(2, &dealt(5));
        recorder.answered(&eviction(1, 5), &refused);
        // This message was already in flight.
        recorder.received(3, &dealt(5));
        recorder.asked(&eviction(0, 6));
        recorder.received(2, &dealt(5));
        recorder.received(2, &dealt(6));
        recorder.answered(&eviction(0, 6), &Answer::Done.encode());
        let FakeSink { trees, parts } = recorder.into_sink();
        assert_eq!(trees, [None, Some(1), Some(1), None, Some(0)]);
        let path = |operation| [(operation, Part::Whole); 2];
        let of_one = [path(Operation::Read), path(Operation::Write)].concat();
        assert_eq!(parts, [&of_one[..], &of_one].concat());
    }
}
