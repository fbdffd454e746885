//! Compares servers that keep shares in files with servers in memory, on trees with metadata.
//!
//! Servers do not interpret metadata. So each tree has a single client, which knows all positions,
//! and whose blocks are as long as slots.

use std::sync::Arc;
use std::{io, thread};

use oblivio_core::{BucketId, Leaf};
use oblivio_shares::client::Client;
use oblivio_shares::field::Gf256;
use oblivio_shares::host::{Host, Mailbox, Peers};
use oblivio_shares::map_trees::{Level, Levels, MapShape};
use oblivio_shares::message::{Answer, Evict, HostEpoch, Request, Select, Setup, Slots, TreePoint};
use oblivio_shares::server::Server;
use oblivio_shares::sharing::{Parties, Share, recover};
use oblivio_shares::tree::Preset;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use oblivio_testkit::ShareDisk;

/// Links that deliver messages at once.
struct Others {
    from: u8,
    mailboxes: Vec<Arc<Mailbox>>,
}

impl Peers for Others {
    fn send(&self, to: u8, _lane: usize, dealt: &[u8]) -> io::Result<()> {
        let mailbox = &self.mailboxes[usize::from(to) - 1];
        mailbox.take(self.from, dealt).map_err(|_| io::Error::other("unwanted message"))
    }

    fn give_up(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.record_lost_link(self.from));
    }
}

/// One tree with its client and with the servers that keep it in memory.
struct InMemory {
    client: Client<Gf256>,
    servers: Vec<Server<Gf256>>,
}

/// Servers in files and in memory, which receive the same requests.
struct Both {
    parties: Parties,
    in_memory: Vec<InMemory>,
    hosts: Vec<Host>,
    disks: Vec<ShareDisk>,
    coins: StdRng,
    attempts: u64,
    /// The number of metadata answers that were compared.
    compared: usize,
}

fn levels() -> Levels {
    let preset = Preset { slots: 24, accesses: 6 };
    let shape = MapShape { block_bytes: 4, client_entries_max: 3 };
    Levels::new::<Gf256>(40, 50, preset, shape).unwrap()
}

impl Both {
    fn new(parties: Parties) -> Self {
        let mut coins = StdRng::seed_from_u64(1);
        let levels = levels();
        let in_memory = levels.iter().map(|level| {
            let (tree, slot, blocks) = (level.tree, level.slot_elements(), level.blocks as usize);
            let server = |number| {
                Server::with_metadata(number, parties, tree, slot, level.metadata_elements).unwrap()
            };
            InMemory {
                client: Client::new(parties, tree, blocks, slot).unwrap(),
                servers: parties.numbers().map(server).collect(),
            }
        });
        let in_memory = in_memory.collect();
        let disks: Vec<_> = parties.numbers().map(|_| ShareDisk::default()).collect();
        let hosts = disks.iter().map(|disk| open(disk, &mut coins)).collect();
        let mut both = Self { parties, in_memory, hosts, disks, coins, attempts: 0, compared: 0 };
        for (tree, level) in levels.iter().enumerate() {
            for number in parties.numbers() {
                let keys = parties.numbers().map(|number| [number; 32]).collect();
                let (block_bytes, metadata_bytes) =
                    (level.slot_elements(), level.metadata_elements);
                let setup =
                    Setup { number, parties, tree: level.tree, block_bytes, metadata_bytes, keys };
                let answer = both.ask(usize::from(number) - 1, tree, &Request::Setup(setup));
                assert_eq!(answer, Answer::Done);
            }
        }
        both
    }

    fn ask(&mut self, i: usize, tree: usize, request: &Request) -> Answer {
        let mailboxes = self.hosts.iter().map(Host::mailbox).collect();
        let others = Others { from: i as u8 + 1, mailboxes };
        let message = request.encode_in(tree as u8);
        Answer::decode(&self.hosts[i].answer(&message, &others, &|_| Ok(()))).unwrap()
    }

    fn at(&mut self, tree: usize) -> TreePoint {
        match self.ask(0, tree, &Request::Epoch) {
            Answer::Epoch(HostEpoch { at, .. }) => at,
            other => panic!("{other:?}"),
        }
    }

    /// Sends each request to its server with files, all at the same time.
    fn ask_all(&mut self, tree: usize, requests: Vec<Request>) -> Vec<Vec<u8>> {
        let mailboxes: Vec<_> = self.hosts.iter().map(Host::mailbox).collect();
        let answers: Vec<_> = thread::scope(|scope| {
            let asked = (1..).zip(self.hosts.iter_mut()).zip(requests);
            let threads: Vec<_> = asked
                .map(|((from, host), request)| {
                    let others = Others { from, mailboxes: mailboxes.clone() };
                    let message = request.encode_in(tree as u8);
                    scope.spawn(move || host.answer(&message, &others, &|_| Ok(())))
                })
                .collect();
            threads.into_iter().map(|it| Answer::decode(&it.join().unwrap()).unwrap()).collect()
        });
        let shares = answers.into_iter().map(|answer| match answer {
            Answer::Share(share) => share,
            Answer::Done => Vec::new(),
            other => panic!("{other:?}"),
        });
        shares.collect()
    }

    fn recovered(&self, shares: &[Vec<u8>]) -> Vec<u8> {
        let shares: Vec<_> = shares.iter().map(|share| &share[..]).collect();
        let numbers: Vec<_> = self.parties.numbers().collect();
        recover::<Gf256>(&numbers, &shares).unwrap()
    }

    /// With a probability of one in ten, makes a server with files lose its power and restart.
    /// Called between two steps.
    fn may_lose_power(&mut self) {
        if self.coins.random_range(0..10) == 0 {
            let i = self.coins.random_range(0..self.hosts.len());
            self.disks[i].loses_power(&mut self.coins);
            self.hosts[i] = open(&self.disks[i], &mut self.coins);
        }
    }

    /// Checks that both kinds of servers return the same metadata of a path.
    fn compare_metadata(&mut self, tree: usize, leaf: Leaf) {
        let at = self.at(tree);
        let asked = vec![Request::Metadata { at, leaf }; self.hosts.len()];
        let on_files = self.ask_all(tree, asked);
        let in_memory = self.in_memory[tree].servers.iter().map(|it| it.metadata(leaf).unwrap());
        let in_memory: Vec<_> = in_memory.collect();
        assert_eq!(self.recovered(&on_files), self.recovered(&in_memory));
        self.compared += 1;
    }

    /// Reads a block of each tree, and writes it back or replaces it. Accesses the last tree first,
    /// as clients do.
    fn access(&mut self, addresses: [usize; 3], new: Option<u8>) {
        for tree in (0..3).rev() {
            let at = self.at(tree);
            let InMemory { client, servers } = &mut self.in_memory[tree];
            let (selected, queries) = client.select(addresses[tree], &mut self.coins).unwrap();
            let leaf = queries[0].leaf;
            let selects = queries.iter().cloned();
            let requests = selects.map(|select| Request::Select { at, select }).collect();
            let asked = servers.iter_mut().zip(queries);
            let answers: Vec<_> = asked.map(|(it, select)| it.select(select).unwrap()).collect();
            self.compare_metadata(tree, leaf);
            let on_files = self.ask_all(tree, requests);
            let found = self.recovered(&answers);
            assert_eq!(self.recovered(&on_files), found);
            self.compared += 1;
            let InMemory { client, servers } = &mut self.in_memory[tree];
            let block = new.map_or(found.clone(), |new| vec![new; found.len()]);
            let writes = client.write(&selected, &block, &mut self.coins).unwrap();
            let blocks = writes.iter().map(|write| write.block.clone());
            let requests = blocks.map(|block| Request::Write { at, block }).collect();
            let asked = servers.iter_mut().zip(writes);
            asked.for_each(|(it, write)| it.write(write).unwrap());
            self.ask_all(tree, requests);
            self.may_lose_power();
        }
        for tree in 0..3 {
            if self.in_memory[tree].client.must_evict() {
                self.evict(tree);
            }
        }
    }

    fn evict(&mut self, tree: usize) {
        let shape = levels().iter().nth(tree).unwrap().tree;
        let evicted = shape.evicted(self.at(tree).evictions);
        for leaf in [evicted, shape.sibling_leaf(evicted)] {
            self.compare_metadata(tree, leaf);
        }
        let InMemory { client, servers } = &mut self.in_memory[tree];
        let evictions = client.evict(&mut self.coins).unwrap();
        self.attempts += 1;
        let attempt = self.attempts;
        let evictions: Vec<_> = evictions.into_iter().map(|it| Evict { attempt, ..it }).collect();
        Server::evict_all(servers, evictions.clone(), &mut self.coins).unwrap();
        let dealers: Vec<_> = self.parties.numbers().take(self.parties.for_product()).collect();
        let requests = evictions
            .into_iter()
            .map(|evict| Request::Evict { evict, dealers: dealers.clone() })
            .collect();
        self.ask_all(tree, requests);
        self.may_lose_power();
    }
}

fn open(disk: &ShareDisk, coins: &mut StdRng) -> Host {
    let mut seed = [0; 32];
    coins.fill_bytes(&mut seed);
    Host::open(Box::new(disk.clone()), move || Ok(seed)).unwrap()
}

/// For each tree, the block that an access to data block `address` fetches.
fn on_the_way(address: usize) -> [usize; 3] {
    let mut addresses = [address; 3];
    for tree in 1..3 {
        let blocks = levels().iter().nth(tree).unwrap().blocks as usize;
        addresses[tree] = addresses[tree - 1] % blocks;
    }
    addresses
}

#[test]
fn metadata_in_files_agrees_with_metadata_in_memory() {
    let mut both = Both::new(Parties::new(3, 1).unwrap());
    let mut choices = StdRng::seed_from_u64(2);
    for i in 0..150 {
        let new = choices.random_bool(0.5).then_some(i as u8);
        both.access(on_the_way(choices.random_range(0..40)), new);
    }
    // Three trees with two comparisons each, and two for each tree before an eviction.
    assert_eq!(both.compared, 150 * 3 * 2 + 150 / 6 * 3 * 2);
}

/// Creates servers on which all leaves are in use. Returns the servers, and their point in the data
/// tree.
fn used() -> (Both, TreePoint) {
    used_until(|at| at.written > 0)
}

/// Creates servers as [`used`] does, at a point that satisfies `is_wanted`.
fn used_until(is_wanted: fn(TreePoint) -> bool) -> (Both, TreePoint) {
    let mut both = Both::new(Parties::new(3, 1).unwrap());
    for i in 0.. {
        both.access(on_the_way(i % 40), (i < 40).then_some(i as u8 + 1));
        let at = both.at(0);
        if i >= 55 && is_wanted(at) {
            return (both, at);
        }
    }
    unreachable!("evictions are frequent")
}

fn data() -> Level {
    *levels().iter().next().unwrap()
}

impl Both {
    /// The metadata of all paths of the data tree, on the first server.
    fn all_metadata(&mut self, at: TreePoint) -> Vec<Answer> {
        let leaves = (0..data().tree.leaves()).map(Leaf);
        leaves.map(|leaf| self.ask(0, 0, &Request::Metadata { at, leaf })).collect()
    }

    /// Sends the first server a select and a write at point `at`, in which all elements of the
    /// query and of the block are `query`. Returns whether the server has done both.
    fn writes(&mut self, at: TreePoint, leaf: u64, query: u8) -> bool {
        let Level { tree, .. } = data();
        let select =
            Select { leaf: Leaf(leaf), query: Share::Computed(vec![query; tree.path_slots()]) };
        let selected = self.ask(0, 0, &Request::Select { at, select });
        let block = Share::Computed(vec![query; data().slot_elements()]);
        let written = self.ask(0, 0, &Request::Write { at, block });
        matches!(selected, Answer::Share(_)) && written == Answer::Done
    }

    fn loses_power(&mut self) {
        self.disks[0].loses_power(&mut self.coins);
        self.hosts[0] = open(&self.disks[0], &mut self.coins);
    }
}

/// A different write at the same point removes the marks of the first write. A client can make a
/// different write after its directory was rolled back.
#[test]
fn a_different_write_at_the_same_point_removes_earlier_marks() {
    let (mut both, at) = used();
    let before = both.all_metadata(at);
    assert!(both.writes(at, 1, 7));
    assert!(both.writes(at, 1, 7));
    let after = TreePoint { written: at.written + 1, ..at };
    let one = both.all_metadata(after);
    assert_ne!(one, before);
    // The state before is still available.
    assert_eq!(both.all_metadata(at), before);
    assert!(both.writes(at, 0, 0));
    assert_eq!(both.all_metadata(after), before);
    assert!(both.writes(at, 1, 7));
    assert_eq!(both.all_metadata(after), one);
    // The marks survive a loss of power.
    both.loses_power();
    assert_eq!(both.all_metadata(after), one);
}

/// A write does not mark a block that was selected at another point. Only a client that breaks the
/// protocol selects at one point and writes at another.
#[test]
fn a_write_marks_nothing_that_was_selected_at_another_point() {
    let (mut both, at) = used();
    let Level { tree, .. } = data();
    let before_all = both.all_metadata(at);
    let query = Share::Computed(vec![7; tree.path_slots()]);
    let select = Select { leaf: Leaf(1), query };
    let before = TreePoint { written: at.written - 1, ..at };
    let selected = both.ask(0, 0, &Request::Select { at: before, select });
    assert!(matches!(selected, Answer::Share(_)), "{selected:?}");
    let block = Share::Computed(vec![7; data().slot_elements()]);
    match both.ask(0, 0, &Request::Write { at, block }) {
        Answer::Refused(it) => assert!(it.why.contains("select the block again"), "{}", it.why),
        other => panic!("{other:?}"),
    }
    assert_eq!((both.at(0), both.all_metadata(at)), (at, before_all));
}

/// No mark of a different write remains if a server loses its power, whatever part of both writes
/// is durable. This also holds if both writes went to the same path, or no page names the path of
/// the first write.
#[test]
fn no_mark_of_another_write_is_left_wherever_a_server_dies() {
    let writes = [(0, 7), (1, 9), (1, 3), (data().tree.leaves() - 1, 5)];
    let alone = writes.map(|(leaf, query)| {
        let (mut both, at) = used();
        assert!(both.writes(at, leaf, query));
        both.all_metadata(TreePoint { written: at.written + 1, ..at })
    });
    let (mut both, at) = used();
    let (after, before) = (TreePoint { written: at.written + 1, ..at }, both.all_metadata(at));
    let mut choices = StdRng::seed_from_u64(4);
    let (mut died, mut was_there) = (0, 0);
    for _ in 0..2000 {
        for _ in 0..choices.random_range(1..4) {
            both.disks[0].dies_after(choices.random_range(1..18));
            let (leaf, query) = writes[choices.random_range(0..writes.len())];
            died += usize::from(!both.writes(at, leaf, query));
            both.loses_power();
            // One of the writes is there, or none.
            if both.at(0) == after {
                was_there += 1;
                assert!(alone.contains(&both.all_metadata(after)));
            }
            assert_eq!(both.all_metadata(at), before);
        }
        let last = choices.random_range(0..writes.len());
        assert!(both.writes(at, writes[last].0, writes[last].1));
        assert_eq!(both.all_metadata(after), alone[last]);
        assert_eq!(both.all_metadata(at), before);
    }
    assert!(died > 200 && was_there > 200, "{died} {was_there}");
}

/// A server returns complete marks of the state before an eviction, or refuses. The next write
/// overwrites the marks, even if the write itself is lost. The server then refuses to return them,
/// and refuses to roll back.
#[test]
fn marks_before_an_eviction_are_complete_or_refused() {
    let tree = data().tree;
    let slots = |bucket| {
        let count = if bucket == BucketId::ROOT { tree.accesses() } else { tree.slots() };
        Slots { bucket, first: 0, count }
    };
    let (mut reported, mut refused) = (0, 0);
    for seed in 0..40 {
        let (mut both, at) = used_until(|at| at.written == 0);
        both.coins = StdRng::seed_from_u64(seed);
        let before = TreePoint { evictions: at.evictions - 1, written: tree.accesses() };
        let all = |both: &mut Both| -> Vec<Answer> {
            let buckets = (0..2 * tree.leaves() - 1).map(BucketId);
            buckets
                .map(|bucket| both.ask(0, 0, &Request::Fetch { at: before, slots: slots(bucket) }))
                .collect()
        };
        let expected = all(&mut both);
        assert!(expected.iter().all(|it| matches!(it, Answer::Share(_))));
        both.disks[0].dies_after(1 + seed % 5);
        // Write to all paths, including paths of which the eviction wrote only the root.
        both.writes(at, seed / 5 % tree.leaves(), 7);
        both.loses_power();
        if both.at(0) != at {
            continue;
        }
        let again = all(&mut both);
        let back = both.ask(0, 0, &Request::RollBack { evictions: before.evictions });
        if again == expected {
            reported += 1;
            assert_eq!(back, Answer::Done);
        } else {
            refused += 1;
            assert!(again.iter().chain([&back]).all(|it| matches!(it, Answer::Refused(_))));
        }
    }
    assert!(reported > 5 && refused > 5, "{reported} {refused}");
}

/// Marks that were put onto a new server stay when it restarts, although they are later than its
/// point. Only a server that is in use removes later marks when it restarts.
#[test]
fn marks_that_were_put_onto_a_new_server_are_left_when_it_starts_again() {
    let (mut both, at) = used();
    let expected = both.all_metadata(at);
    let tree = data().tree;
    let setup = both.hosts[0].setup().unwrap().clone();
    let mut held = Vec::new();
    for bucket in (0..2 * tree.leaves() - 1).map(BucketId) {
        let count = if bucket == BucketId::ROOT { at.written } else { tree.slots() };
        let slots = Slots { bucket, first: 0, count };
        match both.ask(0, 0, &Request::Fetch { at, slots }) {
            Answer::Share(share) if share.iter().any(|byte| *byte != 0) => {
                held.push((slots, share))
            }
            Answer::Share(_) => (),
            other => panic!("{other:?}"),
        }
    }
    both.disks[0] = ShareDisk::default();
    both.loses_power();
    assert_eq!(both.ask(0, 0, &Request::Setup(setup)), Answer::Done);
    for (slots, share) in held {
        let share = Share::Computed(share);
        assert_eq!(both.ask(0, 0, &Request::Put { at, slots, share }), Answer::Done);
        both.loses_power();
    }
    assert_eq!(both.ask(0, 0, &Request::SetPoint { at }), Answer::Done);
    assert!(both.all_metadata(at) == expected);
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_has_changed() {
    let parties = Parties::new(3, 1).unwrap();
    let mut both = Both::new(parties);
    let at = TreePoint::default();
    let level = *levels().iter().next().unwrap();
    let block = || Share::Computed(vec![1; level.slot_elements()]);
    let path = |leaf| Request::Metadata { at, leaf: Leaf(leaf) };
    let setup = Setup {
        number: 1,
        parties,
        tree: level.tree,
        block_bytes: 100,
        metadata_bytes: 3,
        keys: vec![[1; 32]; 3],
    };
    let slots = Slots { bucket: BucketId::ROOT, first: 0, count: 1 };
    for (tree, request, expected) in [
        (0, Request::Write { at, block: block() }, "has no query for this write"),
        (0, path(level.tree.leaves()), "no such path"),
        (
            0,
            Request::Metadata { at: TreePoint { evictions: 1, written: 0 }, leaf: Leaf(0) },
            "is at",
        ),
        (3, path(0), "not set up for this tree"),
        (4, Request::Setup(setup), "set up in order"),
        (0, Request::Put { at: TreePoint { written: 1, ..at }, slots, share: block() }, "length"),
    ] {
        let before = both.at(0);
        let answer = both.ask(0, tree, &request);
        let Answer::Refused(refusal) = answer else { panic!("{answer:?} to {request:?}") };
        assert!(refusal.why.contains(expected), "{}", refusal.why);
        assert_eq!(both.at(0), before);
    }
}

/// A server refuses to return old marks that it does not know. It can lack the marks before its
/// last write if it was rebuilt, or if a rolled-back eviction has overwritten them.
#[test]
fn a_server_refuses_old_marks_that_it_does_not_know() {
    let tree = data().tree;
    let slots = |bucket, at: TreePoint| {
        let count = if bucket == BucketId::ROOT { at.written } else { tree.slots() };
        Slots { bucket, first: 0, count }
    };
    let all = |both: &mut Both, at: TreePoint| -> Vec<Answer> {
        let buckets = (0..2 * tree.leaves() - 1).map(BucketId);
        let held = buckets.map(|bucket| slots(bucket, at)).filter(|slots| slots.count > 0);
        held.map(|slots| both.ask(0, 0, &Request::Fetch { at, slots })).collect()
    };
    let is_refused = |answer: &Answer| matches!(answer, Answer::Refused(_));
    let (mut both, at) = used_until(|at| at.written == 3 && at.evictions > 3);
    let before = TreePoint { written: at.written - 1, ..at };
    let [then, then_before] = [at, before].map(|at| all(&mut both, at));
    assert!(!then.iter().chain(&then_before).any(is_refused));
    let setup = both.hosts[0].setup().unwrap().clone();
    both.disks[0] = ShareDisk::default();
    both.loses_power();
    assert_eq!(both.ask(0, 0, &Request::Setup(setup)), Answer::Done);
    let buckets = (0..2 * tree.leaves() - 1).map(BucketId);
    let held = buckets.map(|bucket| slots(bucket, at)).filter(|slots| slots.count > 0);
    for (slots, share) in held.zip(then.clone()) {
        let Answer::Share(share) = share else { panic!("{slots:?}") };
        let share = Share::Computed(share);
        // Slots known to be zeros are not put.
        both.ask(0, 0, &Request::Put { at, slots, share });
    }
    assert_eq!(both.ask(0, 0, &Request::SetPoint { at }), Answer::Done);
    assert_eq!(all(&mut both, at), then);
    let now_before = all(&mut both, before);
    let compared = now_before.iter().zip(&then_before);
    let wrong = compared.filter(|(now, then)| now != then && !is_refused(now)).count();
    assert_eq!(wrong, 0, "the server returned marks that it cannot know");
    assert!(now_before.iter().any(is_refused));
}
