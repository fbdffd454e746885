//! Compares a tree with metadata in its slots with a client that knows all positions.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::field::{Gf256, Mersenne61};
use crate::map_trees::{Levels, MapShape};
use crate::message::{Evict, Select, TreePoint};
use crate::server::Server;
use crate::sharing::{Share, recover};
use crate::tree::Preset;

const BLOCKS: usize = 40;
const PRESET: Preset = Preset { slots: 24, accesses: 6 };

/// The client under test, which reads metadata, and the reference client, which knows all
/// positions.
struct Both<F: Field> {
    asks: MappedTree<F>,
    knows: Client<F>,
    servers: Vec<Server<F>>,
    coins: StdRng,
    /// The number of blocks written to the root since the last eviction.
    written: usize,
    /// The numbers of slots whose metadata was stale: because the block was taken, and because the
    /// slot is not on the path to the block's leaf.
    passed_over: [usize; 2],
}

impl<F: Field> Both<F> {
    fn new() -> Self {
        let parties = Parties::new(3, 1).unwrap();
        let shape = MapShape { client_entries_max: BLOCKS as u64, ..MapShape::default() };
        let levels = Levels::new::<F>(BLOCKS as u64, 3, PRESET, shape).unwrap();
        let level = *levels.level(0);
        let server = |number| {
            let (slot, metadata) = (level.slot_elements(), level.metadata_elements);
            Server::with_metadata(number, parties, level.tree, slot, metadata).unwrap()
        };
        Self {
            asks: MappedTree::new(parties, level).unwrap(),
            knows: Client::new(parties, level.tree, BLOCKS, level.slot_elements()).unwrap(),
            servers: parties.numbers().map(server).collect(),
            coins: StdRng::seed_from_u64(1),
            written: 0,
            passed_over: [0; 2],
        }
    }

    /// Calls `answer` for every server, and collects the answers.
    fn answers(
        &mut self,
        answer: impl FnMut((usize, &mut Server<F>)) -> Vec<F::Element>,
    ) -> Answers<F::Element> {
        let shares: Vec<_> = self.servers.iter_mut().enumerate().map(answer).collect();
        Answers { numbers: (1..=shares.len() as u8).collect(), shares }
    }

    fn select(&mut self, queries: &[Select<F::Element>]) -> Answers<F::Element> {
        self.answers(|(i, server)| server.select(queries[i].clone()).unwrap())
    }

    fn recovered(&self, answers: &Answers<F::Element>) -> Vec<F::Element> {
        self.asks.client.recover(&answers.numbers, &answers.shares).unwrap().block
    }

    fn metadata(&mut self, leaf: Leaf) -> Answers<F::Element> {
        let answers = self.answers(|(_, server)| server.metadata(leaf).unwrap());
        let shares: Vec<_> = answers.shares.iter().map(|share| &share[..]).collect();
        let recovered = recover::<F>(&answers.numbers, &shares).unwrap();
        let buckets = recovered.chunks_exact(PRESET.slots as usize * self.asks.format.elements());
        for (bucket, recovered) in self.asks.level.tree.path(leaf).zip(buckets) {
            let recovered = recovered.chunks_exact(self.asks.format.elements());
            let recovered =
                recovered.filter_map(|recovered| self.asks.format.get(recovered).unwrap());
            for Metadata { occupant, is_taken } in recovered {
                self.passed_over[0] += usize::from(is_taken);
                self.passed_over[1] += usize::from(!bucket.is_on_path(occupant.leaf));
            }
        }
        answers
    }

    fn access(&mut self, address: usize) {
        let expected = self.knows.positions().get(address);
        let mapped = expected.map(|position| position.leaf);
        let [shown, to] = [(); 2].map(|()| self.knows.draw_leaf(&mut self.coins));
        let shown = mapped.unwrap_or(shown);
        let answers = self.metadata(shown);
        assert_eq!(self.asks.find(address, mapped, shown, &answers), Ok(expected));
        let queries = self.asks.client.queries_at(expected, shown, &mut self.coins);
        let answers = self.select(&queries);
        let occupant = mapped.map(|leaf| Occupant { label: address, leaf });
        let found = self.recovered(&answers);
        let block = self.asks.sealed(occupant, &found).unwrap();
        let written = Occupant { label: address, leaf: to };
        let slot = self.asks.slot(Some(written), block);
        let writes = self.asks.client.writes(self.written, &slot, &mut self.coins);
        for (server, write) in self.servers.iter_mut().zip(writes) {
            server.write(write).unwrap();
        }
        self.knows.record_write(Some(address), to);
        self.written += 1;
    }

    fn evict(&mut self) {
        let [path, beside] = self.asks.eviction_leaves().map(|leaf| self.metadata(leaf));
        let next = self.asks.next_eviction([&path, &beside]).unwrap();
        let attempt = self.knows.next_attempt();
        let evictions = self.asks.client.eviction_shares(&next, attempt, &mut self.coins);
        let expected = self.knows.next_eviction().unwrap();
        let elements = 2 * PRESET.slots as usize * PRESET.slots as usize;
        for (i, expected) in expected.matrices().iter().enumerate() {
            let expand = |evict: &Evict<F::Element>| {
                evict.matrices[i].clone().into_elements::<F>(elements).unwrap()
            };
            let shares = [expand(&evictions[0]), expand(&evictions[2])];
            let matrix = recover::<F>(&[1, 3], &[&shares[0], &shares[1]]).unwrap();
            assert!(matrix == **expected, "matrix {i} of eviction {}", self.knows.evictions());
        }
        self.knows.record_eviction(expected);
        Server::evict_all(&mut self.servers, evictions, &mut self.coins).unwrap();
        self.written = 0;
        self.asks.client.set_progress(TreePoint { evictions: self.knows.evictions(), written: 0 });
    }
}

/// A client that reads metadata finds every block, and its evictions are the same as those of a
/// client that knows all positions.
fn metadata_agrees_with_known_positions<F: Field>() {
    let mut both = Both::<F>::new();
    let mut choices = StdRng::seed_from_u64(2);
    for n in 0..600 {
        // Access some blocks again before the next eviction, and some never.
        both.access(if n % 2 == 0 { n % 6 } else { choices.random_range(0..BLOCKS - 2) });
        if both.knows.must_evict() {
            both.evict();
        }
    }
    assert!(both.passed_over.iter().all(|count| *count > 1000), "{:?}", both.passed_over);
}

#[test]
fn metadata_agrees_with_known_positions_over_both_fields() {
    metadata_agrees_with_known_positions::<Gf256>();
    metadata_agrees_with_known_positions::<Mersenne61>();
}

/// The client does not accept the contents of another slot, which a wrong query would recover.
#[test]
fn contents_of_another_slot_are_not_accepted() {
    let mut both = Both::<Gf256>::new();
    for address in 0..2 {
        both.access(address);
    }
    let position = both.knows.positions().get(0).unwrap();
    let queries = both.asks.client.queries_at(Some(position), position.leaf, &mut both.coins);
    assert!(queries.iter().any(|select| matches!(select.query, Share::Drawn(_))));
    let answers = both.select(&queries);
    let found = both.recovered(&answers);
    let occupant = |label| Some(Occupant { label, leaf: position.leaf });
    assert!(both.asks.sealed(occupant(0), &found).is_ok());
    for other in [occupant(1), None] {
        assert_eq!(both.asks.sealed(other, &found), Err(ClientError::Metadata));
    }
}

/// Creates metadata answers of two servers with equal shares. The shares recover to `occupants` in
/// the first slots of the path, and to empty slots after them.
fn metadata_answers(tree: &MappedTree<Gf256>, occupants: &[Occupant]) -> Answers<u8> {
    let elements = tree.format.elements();
    let mut share = vec![0; tree.level.tree.path_slots() * elements];
    for (occupant, slot) in occupants.iter().zip(share.chunks_exact_mut(elements)) {
        tree.format.put(*occupant, slot);
    }
    Answers { numbers: vec![1, 2], shares: vec![share.clone(), share] }
}

#[test]
fn a_block_must_be_exactly_once_on_the_path_to_its_leaf() {
    let tree = Both::<Gf256>::new().asks;
    let at = |label, leaf| Occupant { label, leaf: Leaf(leaf) };
    let find = |mapped: Option<u64>, occupants: &[Occupant]| {
        tree.find(7, mapped.map(Leaf), Leaf(2), &metadata_answers(&tree, occupants))
    };
    let second = Position { leaf: Leaf(2), level: 0, slot: 1 };
    assert_eq!(find(Some(2), &[at(6, 2), at(7, 2)]), Ok(Some(second)));
    assert_eq!(find(None, &[at(6, 2), at(8, 1)]), Ok(None));
    for (mapped, occupants) in [
        (Some(2), &[at(6, 2)][..]),
        (Some(2), &[at(7, 2), at(7, 2)]),
        (Some(2), &[at(7, 2), at(7, 3)]),
        (Some(2), &[at(7, 3)]),
        (None, &[at(7, 2)]),
    ] {
        assert_eq!(
            find(mapped, occupants),
            Err(ClientError::Metadata),
            "{mapped:?}, {occupants:?}"
        );
    }
}

/// Invalid metadata from servers is refused without a panic, for any answers.
#[test]
fn invalid_metadata_is_refused_without_a_panic() {
    let tree = Both::<Gf256>::new().asks;
    let mut coins = StdRng::seed_from_u64(3);
    for n in 0..300 {
        let mut answers = metadata_answers(&tree, &[]);
        for share in &mut answers.shares {
            // Change a few elements, or all.
            let places = if n % 2 == 0 { 1..4 } else { 0..share.len() };
            share[places].fill_with(|| coins.random());
        }
        let _ = tree.find(7, (n % 3 == 0).then_some(Leaf(2)), Leaf(2), &answers);
        let refused = tree.next_eviction([&answers, &answers]).map(drop);
        if n % 2 == 1 {
            assert_eq!(refused, Err(ClientError::Metadata));
        }
    }
}
