//! Records what each share server sees of its client.
//!
//! A [`ShareRecorder`] is between the scheme and the link, like [`Recorder`]. It records the data
//! that a server can read in its messages. In the view, each server is a tree, with one more tree
//! for each tree of the position map. A message is recorded as accesses to that tree:
//!
//! - [`Select`](Request::Select): a read of each bucket of the path; the message is the contents of
//!   the root, and the answer the contents of the leaf
//! - [`Metadata`](Request::Metadata): a read of the header of each bucket of the path but the leaf;
//!   the answer is the contents of the last of these headers. A view thus counts an access once, by
//!   its query for the same path
//! - [`Write`](Request::Write): a write of a slot of the root
//! - [`Evict`](Request::Evict): a read and then a write of each bucket of the path; the message is
//!   the contents of the root that is read
//! - [`Fetch`](Request::Fetch), [`Put`](Request::Put): a read or a write of each slot
//! - all other messages: a read of the root's header
//!
//! Requests that are sent to several servers at once share a trip. A [`ShareRecorder`] does not see
//! messages between servers. A [`WireRecorder`] watches one server, and records its requests and
//! these messages.

mod touched;
mod wire;

use oblivio_core::StoreError;
use oblivio_core::durable::{Fact, FactValue, find_number};
use oblivio_core::store::{BucketStore, Capabilities, Fill, Frames, Piece, TreeId, TreeShape};
use oblivio_core::view::{EventSink, Operation, Recorder, ViewServers, view_tree};

pub use wire::{WireRecorder, servers_seen_by};

use crate::message::Request;
use crate::servers::{AnyServers, Patience, ServerAnswer, ShareServers};
use crate::tree::HEIGHT_MAX;
use touched::touched;

/// The tree in a view that stands for the data of server `server`, counted from 0.
pub fn tree_of_server(server: usize) -> TreeId {
    view_tree(party(server), 0)
}

/// The number of a server, which begins at 1, from its index `server`, which begins at 0.
fn party(server: usize) -> u8 {
    server as u8 + 1
}

/// The names of two facts about an array: the number of its servers, and the number of servers that
/// may collude.
pub(crate) const SERVERS: &str = "servers";
pub(crate) const COLLUDING: &str = "colluding";

/// The names of two facts about an array: the number of levels of its data tree, and the number of
/// levels of each map tree, if there are any.
pub(crate) const LEVELS: &str = "levels";
pub(crate) const MAP_LEVELS: &str = "map_levels";

/// The number of levels below the root of each tree of an array with these facts, the data tree
/// first; `None` if the facts lack the levels of the data tree.
pub fn heights(facts: &[Fact]) -> Option<Vec<u8>> {
    let of_map = facts.iter().find_map(|fact| match fact {
        Fact::Value(MAP_LEVELS, FactValue::Numbers(levels)) => Some(&levels[..]),
        _ => None,
    });
    let data = find_number(facts, LEVELS)?;
    let height = |levels: &u64| levels.saturating_sub(1).min(HEIGHT_MAX.into()) as u8;
    Some([data].iter().chain(of_map.unwrap_or_default()).map(height).collect())
}

/// The servers of an array with these facts, as their client sees them: without the messages
/// between servers. `None` if the facts do not contain the servers.
pub fn servers_of(facts: &[Fact]) -> Option<ViewServers> {
    let number = |name| u8::try_from(find_number(facts, name)?).ok();
    ViewServers::new(number(SERVERS)?, number(COLLUDING)?)
}

/// Wraps share servers, passes every call on unchanged, and reports it to a sink.
pub struct ShareRecorder<K> {
    recorder: Recorder<AnyServers, K>,
    /// For each tree, the number of its levels below the root.
    heights: Vec<u8>,
}

impl<K: EventSink> ShareRecorder<K> {
    /// Starts recording. `heights` is the number of levels below the root of each tree.
    pub fn new(servers: AnyServers, sink: K, heights: Vec<u8>) -> Self {
        Self { recorder: Recorder::new(servers, sink), heights }
    }
}

impl<K: EventSink> ShareServers for ShareRecorder<K> {
    fn count(&self) -> usize {
        self.recorder.store().count()
    }

    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        let encode = |request: &Option<Request>| Some(request.as_ref()?.encode_in(tree));
        let messages: Vec<_> = requests.iter().map(encode).collect();
        let answers = self.recorder.store_mut().ask(tree, requests.clone(), patience);
        let height = self.heights.get(usize::from(tree)).copied().unwrap_or_default();
        let [mut read, mut written] = [Vec::new(), Vec::new()];
        for (server, (request, message)) in requests.iter().zip(&messages).enumerate() {
            let (Some(request), Some(message)) = (request, message) else { continue };
            let answer = match answers.get(server) {
                Some(Some(Ok(answer))) => &answer[..],
                _ => &[],
            };
            let touched = touched(party(server), (tree, height), request, message, answer);
            read.extend(touched.read);
            written.extend(touched.written);
        }
        for (operation, pieces) in [(Operation::Read, read), (Operation::Write, written)] {
            if !pieces.is_empty() {
                self.recorder.record_external(operation, &pieces);
            }
        }
        answers
    }

    fn begin_retries(&mut self) {
        self.recorder.store_mut().begin_retries();
    }

    fn wait_for_missing(&mut self) {
        self.recorder.store_mut().wait_for_missing();
    }

    fn wait_for_links(&mut self, failed: u32) -> bool {
        self.recorder.store_mut().wait_for_links(failed)
    }

    fn key(&self, server: usize) -> [u8; 32] {
        self.recorder.store().key(server)
    }

    fn name(&self, server: usize) -> String {
        self.recorder.store().name(server)
    }
}

#[deny(clippy::missing_trait_methods)]
impl<K: EventSink> BucketStore for ShareRecorder<K> {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.recorder.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.recorder.capabilities()
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        self.recorder.prefetch(pieces);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.recorder.read(pieces)
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        self.recorder.read_candidates(pieces, each)
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.recorder.write(pieces, fill)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.recorder.flush()
    }
}
