//! A client and its servers, with files in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use std::{io, mem};

use oblivio_shares::client::Client;
use oblivio_shares::field::Gf256;
use oblivio_shares::host::{Host, Mailbox, Peers};
use oblivio_shares::message::{
    Answer, DealtShares, Evict, HostEpoch, Request, RootWrite, Setup, Slots, TreePoint,
};
use oblivio_shares::sharing::{Parties, Share};
use oblivio_shares::tree::Tree;
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use oblivio_testkit::ShareDisk;

pub(crate) struct World {
    pub(crate) parties: Parties,
    pub(crate) tree: Tree,
    pub(crate) block_bytes: usize,
    pub(crate) client: Client<Gf256>,
    pub(crate) hosts: Vec<Host>,
    pub(crate) disks: Vec<ShareDisk>,
    pub(crate) coins: StdRng,
    /// The expected contents of every block.
    pub(crate) model: Vec<Vec<u8>>,
    attempts: u64,
    /// The answers of servers in attempts that failed.
    pub(crate) failed: Vec<Answer>,
    /// A server that receives each request to all servers later than the other servers, and the
    /// delay.
    pub(crate) late: Option<(usize, Duration)>,
    /// A server that restarts in the next eviction, before it receives the request. Messages to it
    /// are lost.
    pub(crate) started_again: Option<usize>,
    /// A server that changes the messages it sends in the next eviction, and how it changes them.
    pub(crate) tampers: Option<(u8, Tampers)>,
    /// The seeds that servers have dealt, and the number of times each was dealt.
    pub(crate) dealt_seeds: Arc<Mutex<HashMap<[u8; 32], usize>>>,
}

/// A function that changes a message between servers.
pub(crate) type Tampers = fn(&mut DealtShares<u8>);

/// A restart of a server during an eviction.
#[derive(Default)]
struct Start {
    /// The number of the server; 0 if none restarts, or once it has restarted.
    of: AtomicU8,
    /// Whether a message to the server was lost, because it arrived before the restart.
    has_lost: AtomicBool,
}

/// Links that deliver messages at once, if both servers are alive.
struct Others {
    from: u8,
    start: Arc<Start>,
    tampers: Option<Tampers>,
    mailboxes: Vec<Arc<Mailbox>>,
    disks: Vec<ShareDisk>,
    dealt_seeds: Arc<Mutex<HashMap<[u8; 32], usize>>>,
}

impl Peers for Others {
    fn send(&self, to: u8, _lane: usize, dealt: &[u8]) -> io::Result<()> {
        let (mailbox, disk) =
            (&self.mailboxes[usize::from(to) - 1], &self.disks[usize::from(to) - 1]);
        if disk.is_dead() || self.disks[usize::from(self.from) - 1].is_dead() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let mut dealt = DealtShares::decode(dealt).unwrap();
        for share in &dealt.shares {
            if let Share::Drawn(seed) = share {
                *self.dealt_seeds.lock().unwrap().entry(*seed).or_default() += 1;
            }
        }
        if self.start.of.load(Ordering::SeqCst) == to {
            self.start.has_lost.store(true, Ordering::SeqCst);
            return Ok(());
        }
        self.tampers.iter().for_each(|tamper| tamper(&mut dealt));
        mailbox.take(self.from, &dealt.encode()).map_err(|_| io::Error::other("unwanted message"))
    }

    fn give_up(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.record_lost_link(self.from));
    }
}

impl World {
    pub(crate) fn new(parties: Parties, tree: Tree, blocks: usize, block_bytes: usize) -> Self {
        let client = Client::new(parties, tree, blocks, block_bytes).unwrap();
        let disks: Vec<_> = parties.numbers().map(|_| ShareDisk::default()).collect();
        let mut world = Self {
            parties,
            tree,
            block_bytes,
            client,
            hosts: Vec::new(),
            disks,
            coins: StdRng::seed_from_u64(1),
            model: vec![vec![0; block_bytes]; blocks],
            attempts: 0,
            failed: Vec::new(),
            late: None,
            started_again: None,
            tampers: None,
            dealt_seeds: Arc::default(),
        };
        for i in 0..parties.servers() {
            let host = world.opened(i);
            world.hosts.push(host);
        }
        for i in 0..parties.servers() {
            assert_eq!(world.ask(i, &Request::Setup(world.setup(i))), Answer::Done);
        }
        world
    }

    pub(crate) fn setup(&self, i: usize) -> Setup {
        let Self { parties, tree, block_bytes, .. } = *self;
        let keys = parties.numbers().map(|number| [number; 32]).collect();
        Setup { number: i as u8 + 1, parties, tree, block_bytes, metadata_bytes: 0, keys }
    }

    fn opened(&mut self, i: usize) -> Host {
        let mut seed = [0; 32];
        self.coins.fill_bytes(&mut seed);
        Host::open(Box::new(self.disks[i].clone()), move || Ok(seed)).unwrap()
    }

    /// Makes server `i` lose its power, and restarts the server.
    pub(crate) fn restart(&mut self, i: usize) {
        self.disks[i].loses_power(&mut self.coins);
        self.hosts[i] = self.opened(i);
    }

    fn others_of(&self, from: u8) -> Others {
        let mailboxes = self.hosts.iter().map(Host::mailbox).collect();
        let dealt_seeds = self.dealt_seeds.clone();
        let tampers =
            self.tampers.filter(|(tamperer, _)| *tamperer == from).map(|(_, tampers)| tampers);
        let start = Arc::default();
        Others { from, start, tampers, mailboxes, disks: self.disks.clone(), dealt_seeds }
    }

    pub(crate) fn ask(&mut self, i: usize, request: &Request) -> Answer {
        let others = self.others_of(i as u8 + 1);
        let answer = self.hosts[i].answer(&request.encode(), &others, &|_| Ok(()));
        Answer::decode(&answer).unwrap()
    }

    /// Sends each request to its server, all at the same time.
    pub(crate) fn ask_all(&mut self, requests: Vec<Request>) -> Vec<Answer> {
        let of = AtomicU8::new(self.started_again.take().map_or(0, |i| i as u8 + 1));
        let start = Arc::new(Start { of, ..Start::default() });
        let others = self.parties.numbers();
        let others = others.map(|from| Others { start: start.clone(), ..self.others_of(from) });
        let others: Vec<_> = others.collect();
        let asked = self.hosts.iter_mut().zip(&requests).zip(&others);
        thread::scope(|scope| {
            let threads: Vec<_> = asked
                .map(|((host, request), others)| {
                    let late = self.late.filter(|(late, _)| late + 1 == usize::from(others.from));
                    scope.spawn(move || {
                        if let Some((_, by)) = late {
                            thread::sleep(by);
                        }
                        if others.start.of.load(Ordering::SeqCst) == others.from {
                            while !others.start.has_lost.load(Ordering::SeqCst) {
                                thread::yield_now();
                            }
                            others.start.of.store(0, Ordering::SeqCst);
                        }
                        let answer = host.answer(&request.encode(), others, &|_| Ok(()));
                        let answer = Answer::decode(&answer).unwrap();
                        if matches!(answer, Answer::Refused(_)) {
                            // End the links of the server, as it does when it gives up.
                            others
                                .mailboxes
                                .iter()
                                .for_each(|mailbox| mailbox.record_lost_link(others.from));
                        }
                        answer
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    pub(crate) fn epochs(&mut self) -> Vec<HostEpoch> {
        let epoch = |answer| match answer {
            Answer::Epoch(epoch) => epoch,
            other => panic!("{other:?}"),
        };
        (0..self.hosts.len()).map(|i| epoch(self.ask(i, &Request::Epoch))).collect()
    }

    /// Reads a block, and writes it back or replaces it.
    pub(crate) fn access(&mut self, address: usize, new: Option<Vec<u8>>) -> Vec<u8> {
        if self.client.must_evict() {
            self.evict();
        }
        let before = self.epochs()[0].at;
        let (selected, queries) = self.client.select(address, &mut self.coins).unwrap();
        let requests: Vec<_> =
            queries.into_iter().map(|select| Request::Select { at: before, select }).collect();
        let answers = self.ask_all(requests).into_iter().map(|answer| match answer {
            Answer::Share(share) => share,
            other => panic!("{other:?}"),
        });
        let answers: Vec<_> = answers.collect();
        let numbers: Vec<_> = self.parties.numbers().collect();
        let block = self.client.recover(&numbers, &answers).unwrap().block;
        assert_eq!(block, self.model[address], "block {address}");
        let new = new.unwrap_or_else(|| block.clone());
        let writes = self.client.write(&selected, &new, &mut self.coins).unwrap();
        let requests = writes.into_iter().map(|RootWrite { slot, block }| Request::Write {
            at: TreePoint { written: slot, ..before },
            block,
        });
        self.until_done(requests.collect());
        self.model[address] = new;
        block
    }

    pub(crate) fn access_any(&mut self) {
        let address = self.coins.random_range(0..self.model.len());
        let new = self.coins.random_bool(0.5).then(|| {
            let mut block = vec![0; self.block_bytes];
            self.coins.fill_bytes(&mut block);
            block
        });
        self.access(address, new);
    }

    /// Repeats requests until all servers have handled them. Restarts servers that die.
    fn until_done(&mut self, requests: Vec<Request>) {
        loop {
            let answers = self.ask_all(requests.clone());
            if answers.iter().all(|answer| *answer == Answer::Done) {
                return;
            }
            self.restart_the_dead(&answers);
        }
    }

    fn restart_the_dead(&mut self, answers: &[Answer]) {
        let dead: Vec<_> = (0..self.disks.len()).filter(|i| self.disks[*i].is_dead()).collect();
        assert!(!dead.is_empty(), "{answers:?}");
        dead.into_iter().for_each(|i| self.restart(i));
    }

    /// The requests for another attempt at a planned eviction.
    pub(crate) fn attempt(&mut self, evictions: &[Evict<u8>]) -> Vec<Request> {
        self.attempts += 1;
        let dealers: Vec<_> = self.parties.numbers().take(self.parties.for_product()).collect();
        let requests = evictions.iter().map(|evict| {
            let evict = Evict { attempt: self.attempts, ..evict.clone() };
            Request::Evict { evict, dealers: dealers.clone() }
        });
        requests.collect()
    }

    pub(crate) fn evict(&mut self) {
        let number = self.client.evictions();
        let evictions = self.client.evict(&mut self.coins).unwrap();
        let mut is_expected = self.started_again.is_some() || self.tampers.is_some();
        loop {
            let requests = self.attempt(&evictions);
            let answers = self.ask_all(requests);
            if answers.iter().all(|answer| *answer == Answer::Done) {
                return;
            }
            let waited =
                |it: &Answer| matches!(it, Answer::Refused(it) if it.why.contains("has not dealt"));
            assert!(!answers.iter().any(waited), "{answers:?}");
            if !mem::take(&mut is_expected) {
                self.restart_the_dead(&answers);
            }
            self.tampers = None;
            self.failed.extend(answers);
            for i in 0..self.hosts.len() {
                assert_eq!(self.ask(i, &Request::RollBack { evictions: number }), Answer::Done);
                assert_eq!(self.epochs()[i].at.evictions, number);
            }
        }
    }

    pub(crate) fn fetch(&mut self, i: usize, at: TreePoint, slots: Slots) -> Vec<u8> {
        match self.ask(i, &Request::Fetch { at, slots }) {
            Answer::Share(share) => share,
            other => panic!("{other:?}"),
        }
    }
}
