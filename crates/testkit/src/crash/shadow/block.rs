//! The model of one block: its last durable contents, and every request since.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashSet};
use std::hash::{Hash, Hasher};

/// Maximum number of requests to one block in a group, whose requests overlap in time.
const TOGETHER_MAX: usize = 64;

/// Maximum number of different contents that one block may have.
const CONTENTS_MAX: usize = 1 << 14;

/// The answer time of a request that has no answer yet.
const UNANSWERED: u64 = u64::MAX;

pub(super) struct Block {
    /// The contents that are possible if only the durable requests before those in `requests` are
    /// served.
    base: BTreeSet<Vec<u8>>,
    /// The requests after those in `base`, in the order of submission.
    requests: Vec<BlockRequest>,
    /// Hashes of past contents, to recognise stale data.
    past: HashSet<u64>,
}

/// The effect of one request on one block.
pub(super) struct BlockRequest {
    start: usize,
    patch: Vec<u8>,
    pub(super) submitted: u64,
    pub(super) answered: u64,
    failed: bool,
    pub(super) durable: bool,
}

impl BlockRequest {
    /// Creates a request in flight that writes `patch` at `start`.
    pub(super) fn new(start: usize, patch: Vec<u8>, submitted: u64) -> Self {
        Self { start, patch, submitted, answered: UNANSWERED, failed: false, durable: false }
    }
}

impl Block {
    pub(super) fn zeros(bytes: usize) -> Self {
        Self { base: [vec![0; bytes]].into(), requests: Vec::new(), past: HashSet::new() }
    }

    /// Whether the block has the contents `content` for certain, after any crash.
    pub(super) fn is_durably(&self, content: &[u8]) -> bool {
        self.requests.is_empty() && self.base.len() == 1 && self.base.contains(content)
    }

    pub(super) fn submit(&mut self, request: BlockRequest) {
        self.requests.push(request);
    }

    /// Records the answer to the request submitted at `submitted`.
    pub(super) fn complete(&mut self, submitted: u64, answered: u64, failed: bool) {
        let request = |request: &&mut BlockRequest| request.submitted == submitted;
        if let Some(request) = self.requests.iter_mut().rev().find(request) {
            (request.answered, request.failed) = (answered, failed);
        }
    }

    /// Sets the contents, durably.
    pub(super) fn keep(&mut self, content: Vec<u8>) {
        self.base = [content].into();
        self.requests.clear();
    }

    /// Sets the contents as if just written and not durable: another crash may bring back any
    /// contents that the latest crash could have left.
    pub(super) fn show(&mut self, content: Vec<u8>, submitted: u64, answered: u64) {
        self.base = self.contents(|request| request.durable);
        self.requests = vec![BlockRequest { answered, ..BlockRequest::new(0, content, submitted) }];
    }

    /// Marks the requests that `is_pinned` selects as durable, and folds leading groups of durable
    /// requests into the base.
    pub(super) fn pin(&mut self, is_pinned: impl Fn(&BlockRequest) -> bool) {
        for request in &mut self.requests {
            request.durable |= is_pinned(request);
        }
        let durable = |together: &&[BlockRequest]| together.iter().all(|request| request.durable);
        let (mut count, mut base) = (0, None);
        let mut passed = Vec::new();
        for together in groups(&self.requests).take_while(durable) {
            let served = served(together, base.as_ref().unwrap_or(&self.base));
            passed.extend(served.iter().map(|(_, content)| hash(content)));
            base = Some(complete(together, served));
            count += together.len();
        }
        if let Some(base) = base {
            self.past.extend(self.base.iter().map(|content| hash(content)));
            self.past.extend(passed);
            self.base = base;
            self.requests.drain(..count);
        }
    }

    /// Returns all contents that are possible if the requests that `must` selects were served.
    /// Failed requests may be missing.
    pub(super) fn contents(&self, must: impl Fn(&BlockRequest) -> bool) -> BTreeSet<Vec<u8>> {
        let mut before = self.base.clone();
        let mut found = self.base.clone();
        for together in groups(&self.requests) {
            let needed = mask(together, |request| must(request) && !request.failed);
            if needed != 0 {
                found.clear();
            }
            let served = served(together, &before);
            let enough = served.iter().filter(|(done, _)| done & needed == needed);
            found.extend(enough.map(|(_, content)| content.clone()));
            before = complete(together, served);
        }
        found
    }

    /// Adds all contents that are possible now to the past ones.
    pub(super) fn remember_all(&mut self) {
        let contents = self.contents(|_| false);
        self.past.extend(contents.iter().map(|content| hash(content)));
    }

    /// Whether the block may have held the bytes `found` from byte `start` on, before its allowed
    /// contents. For a part of a block, looks only at the last durable contents.
    pub(super) fn has_held(&self, start: usize, found: &[u8]) -> bool {
        let is_whole = start == 0 && self.base.iter().all(|content| content.len() == found.len());
        let parts = self.base.iter().map(|content| &content[start..start + found.len()]);
        (is_whole && self.past.contains(&hash(found))) || parts.into_iter().any(|old| old == found)
    }
}

/// Splits the requests into groups: each is fully answered before the next is submitted.
fn groups(requests: &[BlockRequest]) -> impl Iterator<Item = &[BlockRequest]> {
    let mut rest = requests;
    std::iter::from_fn(move || {
        let mut answered = rest.first()?.answered;
        let later = rest.iter().position(|request| {
            let is_later = request.submitted > answered;
            answered = answered.max(request.answered);
            is_later
        });
        let (together, after) = rest.split_at(later.unwrap_or(rest.len()));
        rest = after;
        Some(together)
    })
}

/// The possible outcomes of a group: the set of served requests, as one bit per request, and the
/// resulting contents.
type Served = BTreeSet<(u64, Vec<u8>)>;

/// Returns all outcomes of serving a subset of a group in any order that the times allow.
fn served(together: &[BlockRequest], before: &BTreeSet<Vec<u8>>) -> Served {
    assert!(together.len() <= TOGETHER_MAX, "too many requests to one block at once for the model");
    let mut seen: Served = before.iter().map(|content| (0, content.clone())).collect();
    let mut open: Vec<_> = seen.iter().cloned().collect();
    while let Some((done, content)) = open.pop() {
        for (i, next) in together.iter().enumerate() {
            let fits = (0..).zip(together).all(|(j, other): (u32, _)| match done >> j & 1 {
                0 => other.failed || other.answered > next.submitted,
                _ => other.submitted < next.answered,
            });
            if done >> i & 1 == 1 || !fits {
                continue;
            }
            let mut content = content.clone();
            content[next.start..next.start + next.patch.len()].copy_from_slice(&next.patch);
            let state = (done | 1 << i, content);
            if seen.insert(state.clone()) {
                open.push(state);
            }
        }
        assert!(seen.len() <= CONTENTS_MAX, "too many possible contents of a block for the model");
    }
    seen
}

/// Returns the contents after all requests that did not fail were served.
fn complete(together: &[BlockRequest], served: Served) -> BTreeSet<Vec<u8>> {
    let all = mask(together, |request| !request.failed);
    let whole = served.into_iter().filter(|(done, _)| done & all == all);
    whole.map(|(_, content)| content).collect()
}

fn mask(together: &[BlockRequest], is_in: impl Fn(&BlockRequest) -> bool) -> u64 {
    let bits = together.iter().enumerate().filter(|(_, request)| is_in(request));
    bits.fold(0, |mask, (i, _)| mask | 1 << i)
}

fn hash(content: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    hasher.finish()
}
