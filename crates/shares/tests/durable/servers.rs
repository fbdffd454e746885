//! Servers whose files are in memory, which stop where they are told to, and lie.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::{io, mem};

use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_shares::host::{Host, Mailbox, Peers};
use oblivio_shares::message::{Answer, Point, Refusal, Request};
use oblivio_shares::servers::{Patience, ServerAnswer, ShareServers};
use oblivio_shares::sharing::Share;
use oblivio_shares::view::WireRecorder;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::wire::Wire;
use oblivio_testkit::ShareDisk;

/// All servers, and what they are told to do besides.
pub(crate) struct World {
    pub(crate) hosts: Vec<Host>,
    pub(crate) disks: Vec<ShareDisk>,
    coins: StdRng,
    /// How often they were asked.
    pub(crate) asked: usize,
    /// At which time the client is cut off, and which servers still do what they are asked then.
    pub(crate) stop: Option<(usize, Vec<bool>)>,
    is_cut_off: bool,
    /// Servers that cannot be reached.
    pub(crate) missing: Vec<bool>,
    /// Servers whose shares are wrong from now on.
    pub(crate) lying: Vec<bool>,
    /// The same, of what is selected alone.
    pub(crate) lying_of_blocks: Vec<bool>,
    /// Servers that say that they are there.
    pub(crate) claims: Vec<Option<Point>>,
    /// Servers that keep another share of a block than the one that they are sent.
    pub(crate) takes_wrong: Vec<bool>,
    /// A server that says that it is where another one is, of which it is told, and has nothing of that.
    pub(crate) mirrors: Option<(usize, usize)>,
    /// The slot of the root of the data that is damaged, and on which servers.
    pub(crate) spoilt: Option<(usize, Vec<usize>)>,
    /// Servers that say that they have seen so many attempts.
    pub(crate) attempts: Vec<Option<u64>>,
    /// Servers that say of the next block that they have kept it, and have not.
    pub(crate) forgets: Vec<bool>,
    /// What a server says instead of anything else.
    pub(crate) refuses: Vec<Option<Refusal>>,
    /// What a server answers to each write.
    pub(crate) refuses_writes: Vec<Option<Refusal>>,
    /// Attempts to evict a path that succeed before any fails.
    pub(crate) passing_evictions: usize,
    /// Attempts that fail on one server after those, before one succeeds.
    pub(crate) failing_evictions: usize,
    /// The server on which they fail.
    pub(crate) failing_server: usize,
    /// Why.
    pub(crate) failure: StoreErrorKind,
    /// Attempts in which servers lose all links. Their client asks the same again, as a store does
    /// that has lost its link.
    pub(crate) cut_evictions: usize,
    /// So often it is worth waiting for links.
    pub(crate) waits_for_links: u32,
    /// How often something began that is tried again.
    pub(crate) tried: usize,
    /// How often it was waited for servers that are missing.
    pub(crate) waited: usize,
    /// Servers that are missing are back when they are waited for.
    pub(crate) come_back: bool,
    /// What each server was asked, in order.
    pub(crate) seen: Vec<Vec<Request>>,
    /// For which of the trees.
    pub(crate) seen_in: Vec<Vec<u8>>,
    /// Servers whose programs are started again at these times, before they are asked.
    pub(crate) starts_again: Vec<(usize, usize)>,
    /// What the client has asked, and how long it would have waited for the answer.
    pub(crate) patience: Vec<(Request, Patience)>,
    /// A checksum over all messages of the client, each with its server.
    pub(crate) sent: crc32fast::Hasher,
}

/// Delivers at once, to machines that are alive.
struct Others {
    from: u8,
    is_cut_off: bool,
    mailboxes: Vec<Arc<Mailbox>>,
    disks: Vec<ShareDisk>,
}

impl Peers for Others {
    fn send(&self, to: u8, _lane: usize, dealt: &[u8]) -> io::Result<()> {
        let [from, at] = [self.from, to].map(|number| usize::from(number) - 1);
        if self.is_cut_off || self.disks[from].is_dead() || self.disks[at].is_dead() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        self.mailboxes[at].take(self.from, dealt).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn give_up(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.is_lost(self.from));
    }
}

/// A store that is these servers. Copies are connections to the same.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Mutex<World>>);

impl Servers {
    pub(crate) fn new(count: usize) -> Self {
        let disks: Vec<_> = (0..count).map(|_| ShareDisk::default()).collect();
        let mut coins = StdRng::seed_from_u64(77);
        let hosts = disks.iter().map(|disk| opened(disk, &mut coins)).collect();
        Self(Arc::new(Mutex::new(World {
            hosts,
            disks,
            coins,
            asked: 0,
            stop: None,
            is_cut_off: false,
            missing: vec![false; count],
            lying: vec![false; count],
            lying_of_blocks: vec![false; count],
            claims: vec![None; count],
            takes_wrong: vec![false; count],
            mirrors: None,
            spoilt: None,
            attempts: vec![None; count],
            forgets: vec![false; count],
            refuses: vec![None; count],
            refuses_writes: vec![None; count],
            passing_evictions: 0,
            failing_evictions: 0,
            failing_server: 1,
            failure: StoreErrorKind::Refused,
            cut_evictions: 0,
            waits_for_links: 0,
            tried: 0,
            waited: 0,
            come_back: false,
            seen: vec![Vec::new(); count],
            seen_in: vec![Vec::new(); count],
            starts_again: Vec::new(),
            patience: Vec::new(),
            sent: crc32fast::Hasher::new(),
        })))
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    /// The client is there again.
    pub(crate) fn connect(&self) {
        let mut world = self.world();
        (world.stop, world.is_cut_off) = (None, false);
    }
}

fn opened(disk: &ShareDisk, coins: &mut StdRng) -> Host {
    let mut seed = [0; 32];
    coins.fill_bytes(&mut seed);
    Host::open(Box::new(disk.clone()), move || Ok(seed)).unwrap()
}

impl World {
    fn ask(&mut self, tree: u8, requests: Vec<Option<Request>>) -> Vec<Option<ServerAnswer>> {
        assert_eq!(requests.len(), self.hosts.len());
        let count = requests.len();
        self.asked += 1;
        for (server, request) in requests.iter().enumerate() {
            if let Some(request) = request {
                self.sent.update(&[server as u8]);
                self.sent.update(&request.encode_in(tree));
            }
        }
        let does = match &self.stop {
            _ if self.is_cut_off => vec![false; count],
            Some((at, does)) if *at == self.asked => {
                self.is_cut_off = true;
                does.clone()
            }
            _ => vec![true; count],
        };
        let is_asked: Vec<_> = requests.iter().map(Option::is_some).collect();
        let reached: Vec<_> =
            (0..count).map(|i| is_asked[i] && does[i] && !self.missing[i]).collect();
        let in_tree = |request: Option<Request>| Some((tree, request?));
        let requests: Vec<_> = requests.into_iter().map(in_tree).collect();
        for ((seen, seen_in), request) in self.seen.iter_mut().zip(&mut self.seen_in).zip(&requests)
        {
            if !self.is_cut_off || does.contains(&true) {
                seen.extend(request.iter().map(|(_, request)| request.clone()));
                seen_in.extend(request.iter().map(|(tree, _)| *tree));
            }
        }
        let asked = self.asked;
        let starting = self.starts_again.extract_if(.., |(at, _)| *at == asked);
        let starting: Vec<_> = starting.map(|(_, server)| server).collect();
        starting.into_iter().for_each(|server| self.restart(server));
        let answers = if requests.iter().flatten().any(|it| matches!(it.1, Request::Evict { .. })) {
            self.evict(requests, &reached)
        } else {
            let reached = requests.into_iter().zip(&reached);
            let reached = reached.map(|(request, reached)| request.filter(|_| *reached));
            let answer = |(i, request): (usize, Option<(u8, Request)>)| {
                let (tree, request) = request?;
                Some(self.answer_in(i, tree, &request))
            };
            reached.enumerate().map(answer).collect()
        };
        let sent = answers.into_iter().enumerate().map(|(i, answer)| {
            is_asked[i].then(|| match answer {
                Some(answer) if !self.is_cut_off && !self.missing[i] => Ok(answer.encode()),
                _ => Err(StoreError::new(StoreErrorKind::Unreachable, "it does not answer")),
            })
        });
        sent.collect()
    }

    fn others_of(&self, i: usize) -> Others {
        let mailboxes = self.hosts.iter().map(Host::mailbox).collect();
        Others { from: i as u8 + 1, is_cut_off: false, mailboxes, disks: self.disks.clone() }
    }

    pub(crate) fn answer_in(&mut self, i: usize, tree: u8, request: &Request) -> Answer {
        if matches!(request, Request::Write { .. }) && mem::take(&mut self.forgets[i]) {
            return Answer::Done;
        }
        if let Some(why) = &self.refuses[i] {
            return Answer::Refused(why.clone());
        }
        if let (Request::Write { .. }, Some(why)) = (request, &self.refuses_writes[i]) {
            return Answer::Refused(why.clone());
        }
        let mirrored = self.mirrors.filter(|(liar, _)| *liar == i).map(|(_, of)| of);
        let asked = mirrored.unwrap_or(i);
        let others = self.others_of(asked);
        let mut taken = request.clone();
        if let (true, Request::Write { block, .. }) = (self.takes_wrong[i], &mut taken)
            && let Share::Computed(share) = block
        {
            share[8] ^= 1;
        }
        let message = taken.encode_in(tree);
        let answer = self.hosts[asked].answer(&message, &others, &|_| Ok(()));
        let mut answer = Answer::decode(&answer).unwrap();
        if let (Some((slot, on)), 0) = (&self.spoilt, tree)
            && on.contains(&i)
            && let (Request::Fetch { slots, .. }, Answer::Share(share)) = (request, &mut answer)
            && slots.bucket == oblivio_core::BucketId::ROOT
            && (slots.first..slots.first + slots.count).contains(slot)
        {
            let bytes = share.len() / slots.count;
            share[(slot - slots.first) * bytes + bytes / 2] ^= 1 + i as u8;
        }
        match &mut answer {
            Answer::Share(share) if mirrored.is_some() => {
                share.iter_mut().for_each(|byte| *byte ^= 0x5a);
            }
            Answer::Share(share)
                if self.lying[i]
                    || self.lying_of_blocks[i] && matches!(request, Request::Select { .. }) =>
            {
                // Behind what a slot says of its block.
                share[8] ^= 1;
            }
            Answer::Epoch(epoch) => {
                epoch.at = self.claims[i].unwrap_or(epoch.at);
                epoch.attempt = self.attempts[i].unwrap_or(epoch.attempt);
            }
            _ => (),
        }
        answer
    }

    /// All servers are asked at the same time. Those that are not reached are as if they had stopped just before it was durable.
    fn evict(
        &mut self,
        requests: Vec<Option<(u8, Request)>>,
        reached: &[bool],
    ) -> Vec<Option<Answer>> {
        let requests: Vec<_> = requests.into_iter().map(Option::unwrap).collect();
        if !reached.contains(&true) {
            return vec![None; reached.len()];
        }
        if self.cut_evictions > 0 {
            self.cut_evictions -= 1;
            // Each has begun the attempt when its links are lost.
            for (i, (tree, request)) in requests.iter().enumerate() {
                let others = Others { is_cut_off: true, ..self.others_of(i) };
                let message = request.encode_in(*tree);
                self.hosts[i].answer(&message, &others, &|_| Ok(()));
            }
        }
        let others: Vec<_> = (0..reached.len()).map(|i| self.others_of(i)).collect();
        let asked = self.hosts.iter_mut().zip(&requests).zip(&others);
        let mut answers: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = asked
                .map(|((host, (tree, request)), others)| {
                    scope.spawn(move || {
                        let message = request.encode_in(*tree);
                        let answer = host.answer(&message, others, &|_| Ok(()));
                        let answer = Answer::decode(&answer).unwrap();
                        if answer != Answer::Done {
                            // Its links end.
                            let mailboxes = others.mailboxes.iter();
                            mailboxes.for_each(|mailbox| mailbox.is_lost(others.from));
                        }
                        answer
                    })
                })
                .collect();
            threads.into_iter().map(|thread| Some(thread.join().unwrap())).collect()
        });
        let fails = self.passing_evictions == 0 && self.failing_evictions > 0;
        self.failing_evictions -= usize::from(fails);
        self.passing_evictions = self.passing_evictions.saturating_sub(1);
        for (i, (answer, request)) in answers.iter_mut().zip(&requests).enumerate() {
            let (tree, Request::Evict { evict, .. }) = request else { continue };
            if !reached[i] || fails && i == self.failing_server {
                self.answer_in(i, *tree, &Request::GoBack { evictions: evict.number });
                let why = "another server has not dealt".into();
                *answer = Some(Answer::Refused(Refusal { kind: self.failure, why }));
            }
        }
        answers
    }

    /// Servers that have died come back.
    pub(crate) fn restart(&mut self, i: usize) {
        self.disks[i].loses_power(&mut self.coins);
        self.hosts[i] = opened(&self.disks[i], &mut self.coins);
    }

    /// From now on, all that passes each server is kept, as long as it is not started again.
    pub(crate) fn watch(&mut self) -> Vec<Arc<Mutex<Wire>>> {
        let watch = |host: &mut Host| {
            let wire = Arc::new(Mutex::new(Wire::of(host)));
            host.watch(Arc::new(WireRecorder::new(wire.clone(), host.setups())));
            wire
        };
        self.hosts.iter_mut().map(watch).collect()
    }

    /// How far each is.
    pub(crate) fn points(&mut self) -> Vec<Point> {
        self.points_in(0)
    }

    /// The same of one of the trees.
    pub(crate) fn points_in(&mut self, tree: u8) -> Vec<Point> {
        let at = |answer| match answer {
            Answer::Epoch(epoch) => epoch.at,
            other => panic!("{other:?}"),
        };
        (0..self.hosts.len()).map(|i| at(self.answer_in(i, tree, &Request::Epoch))).collect()
    }
}

impl ShareServers for Servers {
    fn count(&self) -> usize {
        self.world().hosts.len()
    }

    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        patience: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        let asked = requests.iter().flatten().map(|request| (request.clone(), patience));
        self.world().patience.extend(asked);
        self.world().ask(tree, requests)
    }

    fn begin_retries(&mut self) {
        self.world().tried += 1;
    }

    fn wait_for_missing(&mut self) {
        let mut world = self.world();
        world.waited += 1;
        if world.come_back {
            world.missing.fill(false);
        }
    }

    fn wait_for_links(&mut self, failed: u32) -> bool {
        failed <= self.world().waits_for_links
    }

    fn key(&self, server: usize) -> [u8; 32] {
        [server as u8; 32]
    }

    fn name(&self, server: usize) -> String {
        format!("server {}", server + 1)
    }
}
