//! Records all shares that are sent during the lives of a volume, and checks that no randomness was
//! reused.
//!
//! Some servers receive a seed instead of a share, and the randomness drawn from it hides the
//! secret from the others. So a seed belongs to one sharing. It may be sent again with the same
//! shares, but never with different ones.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use oblivio_core::Leaf;
use oblivio_shares::message::{DealtShares, Request, TreePoint};
use oblivio_shares::sharing::{Seed, Share};

/// All shares and queries that servers received. Several threads may add to the log.
#[derive(Default)]
pub(super) struct SharingLog {
    sharings: Vec<Sharing>,
    /// The index in `sharings` of each bucket that a dealer has dealt. A dealer sends the shares of
    /// a bucket to one server after the other, so the log gets them one by one.
    dealt: HashMap<Deal, usize>,
    /// The queries that servers received, in order, by tree number.
    queries: BTreeMap<u8, Vec<(TreePoint, Leaf)>>,
}

/// The shares of one secret.
struct Sharing {
    of: SharedSecret,
    /// The shares by server number.
    shares: BTreeMap<u8, ShareFingerprint>,
}

/// The secret that was shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SharedSecret {
    Query { tree: u8, at: TreePoint },
    Block { tree: u8, at: TreePoint },
    Matrix { tree: u8, eviction: u64, attempt: u64, level: usize },
    Deal(Deal),
}

/// The shares that one server deals for one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Deal {
    dealer: Dealer,
    eviction: u64,
    attempt: u64,
    tile: u32,
    level: u8,
    child: usize,
}

/// One run of a server's program, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Dealer {
    pub(super) server: u8,
    pub(super) start: u64,
}

/// The identity of a share: its seed, or a hash of its elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShareFingerprint {
    Seed(Seed),
    Hash(u64),
}

impl ShareFingerprint {
    fn from_share(share: &Share<u8>) -> Self {
        match share {
            Share::Drawn(seed) => Self::Seed(*seed),
            Share::Computed(elements) => {
                let mut hasher = DefaultHasher::new();
                elements.hash(&mut hasher);
                Self::Hash(hasher.finish())
            }
        }
    }
}

/// The error of [`SharingLog::check`]: randomness was reused, or an access was repeated wrongly.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReusedRandomness(String);

impl fmt::Display for ReusedRandomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl SharingLog {
    /// Records the requests that the client sends to servers 1, 2 and so on at the same time.
    /// `None` if a server gets no request.
    pub(super) fn record_requests(&mut self, requests: &[Option<(u8, Request)>]) {
        let first = requests.iter().flatten().next();
        if let Some((tree, Request::Select { at, select })) = first {
            self.queries.entry(*tree).or_default().push((*at, select.leaf));
        }
        // One sharing for each share in a message; all messages hold the same number.
        let mut sharings: Vec<Sharing> = Vec::new();
        for (server, request) in (1..).zip(requests) {
            for (i, (of, share)) in request.iter().flat_map(shares).enumerate() {
                if i == sharings.len() {
                    sharings.push(Sharing { of, shares: BTreeMap::new() });
                }
                sharings[i].shares.insert(server, ShareFingerprint::from_share(share));
            }
        }
        self.sharings.append(&mut sharings);
    }

    /// Records shares that a server dealt to another.
    pub(super) fn record_dealt(&mut self, dealer: Dealer, to: u8, dealt: &DealtShares<u8>) {
        let DealtShares { number: eviction, attempt, tile, level, shares } = dealt;
        let (eviction, attempt, tile, level) = (*eviction, *attempt, *tile, *level);
        for (child, share) in shares.iter().enumerate() {
            let deal = Deal { dealer, eviction, attempt, tile, level, child };
            let at = *self.dealt.entry(deal).or_insert_with(|| {
                self.sharings
                    .push(Sharing { of: SharedSecret::Deal(deal), shares: BTreeMap::new() });
                self.sharings.len() - 1
            });
            self.sharings[at].shares.insert(to, ShareFingerprint::from_share(share));
        }
    }

    /// Checks that no seed was used for two different sharings. Also checks that accesses come in
    /// order, and that only the latest is repeated, on its path. Returns the number of distinct
    /// seeds.
    pub(super) fn check(&self) -> Result<usize, ReusedRandomness> {
        let pairs = self.queries.values().flat_map(|queries| queries.windows(2));
        for (before, after) in pairs.map(|pair| (pair[0], pair[1])) {
            if after.0 < before.0 || after.0 == before.0 && after.1 != before.1 {
                return Err(ReusedRandomness(format!(
                    "servers saw access {after:?} after {before:?}: out of order, or repeated \
                     on another path"
                )));
            }
        }
        let mut by_seed: HashMap<Seed, &Sharing> = HashMap::new();
        for sharing in &self.sharings {
            for fingerprint in sharing.shares.values() {
                let ShareFingerprint::Seed(seed) = fingerprint else { continue };
                let first = *by_seed.entry(*seed).or_insert(sharing);
                let differ = |(server, fingerprint): (&u8, &ShareFingerprint)| {
                    first.shares.get(server).is_some_and(|other| other != fingerprint)
                };
                if sharing.shares.iter().any(differ) {
                    let Sharing { of, .. } = sharing;
                    return Err(ReusedRandomness(format!(
                        "one seed was used both for {:?} and for a different {of:?}",
                        first.of
                    )));
                }
            }
        }
        Ok(by_seed.len())
    }
}

/// Returns the shares in a request.
fn shares((tree, request): &(u8, Request)) -> Vec<(SharedSecret, &Share<u8>)> {
    let tree = *tree;
    match request {
        Request::Select { at, select } => {
            vec![(SharedSecret::Query { tree, at: *at }, &select.query)]
        }
        Request::Write { at, block } => vec![(SharedSecret::Block { tree, at: *at }, block)],
        Request::Evict { evict, .. } => {
            let (eviction, attempt) = (evict.number, evict.attempt);
            let of = |level| SharedSecret::Matrix { tree, eviction, attempt, level };
            let matrices = evict.matrices.iter().enumerate();
            matrices.map(|(level, share)| (of(level), share)).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use oblivio_shares::message::Select;

    use super::*;

    fn query(evictions: u64, leaf: u64, shares: [Share<u8>; 3]) -> Vec<Option<(u8, Request)>> {
        let at = TreePoint { evictions, written: 0 };
        let select = |query| Select { leaf: Leaf(leaf), query };
        shares.map(|query| Some((0, Request::Select { at, select: select(query) }))).into()
    }

    fn shared(seed: u8, fill: u8) -> [Share<u8>; 3] {
        let computed = |fill| Share::Computed(vec![fill; 4]);
        [Share::Drawn([seed; 32]), computed(fill), computed(fill + 1)]
    }

    fn check(asked: &[Vec<Option<(u8, Request)>>]) -> Result<usize, ReusedRandomness> {
        let mut sharing_log = SharingLog::default();
        asked.iter().for_each(|requests| sharing_log.record_requests(requests));
        sharing_log.check()
    }

    #[test]
    fn a_seed_may_come_again_with_what_it_came_before_and_with_nothing_else() {
        let first = query(0, 1, shared(1, 5));
        assert_eq!(check(&[first.clone(), query(1, 1, shared(2, 5))]), Ok(2));
        assert_eq!(check(&[first.clone(), first.clone()]), Ok(1));
        assert!(check(&[first.clone(), query(1, 1, shared(1, 6))]).is_err());
        let [drawn, computed, other] = shared(1, 5);
        assert!(check(&[first, query(1, 1, [computed, drawn, other])]).is_err());
    }

    #[test]
    fn an_access_may_be_shown_again_until_the_next_one_and_on_its_path() {
        let first = query(0, 1, shared(1, 5));
        assert_eq!(check(&[first.clone(), query(0, 1, shared(2, 6))]), Ok(2));
        assert!(check(&[first.clone(), query(0, 2, shared(2, 6))]).is_err());
        let next = query(1, 3, shared(2, 6));
        assert!(check(&[first.clone(), next, first]).is_err());
    }

    #[test]
    fn what_is_dealt_to_one_server_after_the_other_is_one_sharing() {
        let dealt =
            |share| DealtShares { number: 0, attempt: 1, tile: 0, level: 1, shares: vec![share] };
        let [seed, computed, _] = shared(1, 5);
        let mut sharing_log = SharingLog::default();
        let dealer = Dealer { server: 1, start: 0 };
        sharing_log.record_dealt(dealer, 2, &dealt(seed.clone()));
        sharing_log.record_dealt(dealer, 3, &dealt(computed));
        assert_eq!(sharing_log.check(), Ok(1));
        let again = Dealer { server: 1, start: 1 };
        sharing_log.record_dealt(again, 2, &dealt(seed));
        assert_eq!(sharing_log.check(), Ok(1));
        sharing_log.record_dealt(again, 3, &dealt(Share::Computed(vec![9; 4])));
        assert!(sharing_log.check().is_err());
    }
}
