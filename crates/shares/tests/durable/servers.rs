//! Test servers with files in memory. They can stop at any request, and can lie.

use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::{io, mem};

use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_shares::host::{Host, Mailbox, Peers};
use oblivio_shares::message::{Answer, Refusal, Request, TreePoint};
use oblivio_shares::servers::{Patience, ServerAnswer, ShareServers};
use oblivio_shares::sharing::Share;
use oblivio_shares::view::WireRecorder;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::wire::Wire;
use oblivio_testkit::ShareDisk;

/// All servers, and their faults.
pub(crate) struct World {
    pub(crate) hosts: Vec<Host>,
    pub(crate) disks: Vec<ShareDisk>,
    coins: StdRng,
    /// The number of requests so far. A request that is sent to all servers counts once.
    pub(crate) asked: usize,
    /// The number of the request at which the client is cut off, and which servers still handle
    /// that request.
    pub(crate) stop: Option<(usize, Vec<bool>)>,
    is_cut_off: bool,
    /// Servers that cannot be reached.
    pub(crate) missing: Vec<bool>,
    /// Servers whose shares are wrong from now on.
    pub(crate) lying: Vec<bool>,
    /// Servers whose answers to selects are wrong, while their other answers are right.
    pub(crate) lying_of_blocks: Vec<bool>,
    /// False points that servers claim.
    pub(crate) claims: Vec<Option<TreePoint>>,
    /// Servers that store a wrong share of a written block.
    pub(crate) takes_wrong: Vec<bool>,
    /// A pair of servers: the first claims the point of the second, but does not have its data.
    pub(crate) mirrors: Option<(usize, usize)>,
    /// A damaged slot in the root of the data tree, and the servers on which it is damaged.
    pub(crate) spoilt: Option<(usize, Vec<usize>)>,
    /// False attempt numbers that servers claim.
    pub(crate) attempts: Vec<Option<u64>>,
    /// Servers that acknowledge the next write without storing it.
    pub(crate) forgets: Vec<bool>,
    /// Servers that refuse every request, with the refusal.
    pub(crate) refuses: Vec<Option<Refusal>>,
    /// Servers that refuse every write, with the refusal.
    pub(crate) refuses_writes: Vec<Option<Refusal>>,
    /// The number of further attempts at an eviction that succeed, before attempts begin to fail.
    pub(crate) passing_evictions: usize,
    /// The number of attempts that then fail on `failing_server`, before attempts succeed again.
    pub(crate) failing_evictions: usize,
    /// The server on which attempts fail.
    pub(crate) failing_server: usize,
    /// The kind of error with which attempts fail.
    pub(crate) failure: StoreErrorKind,
    /// The number of attempts in which all servers lose their links to the client. The client then
    /// repeats the request, as a store does after a lost link.
    pub(crate) cut_evictions: usize,
    /// The number of waits for links before the retry limit is reached.
    pub(crate) waits_for_links: u32,
    /// The number of times that the client has begun an operation with retries.
    pub(crate) tried: usize,
    /// The number of times that the client waited for missing servers.
    pub(crate) waited: usize,
    /// Whether missing servers return when the client waits for them.
    pub(crate) come_back: bool,
    /// The requests to each server, in order.
    pub(crate) seen: Vec<Vec<Request>>,
    /// The tree of each request in `seen`.
    pub(crate) seen_in: Vec<Vec<u8>>,
    /// Servers that restart just before a request: the number of the request, and the server.
    pub(crate) starts_again: Vec<(usize, usize)>,
    /// The client's requests, each with the time limit for its answer.
    pub(crate) patience: Vec<(Request, Patience)>,
    /// A checksum over all messages of the client, each with its server.
    pub(crate) sent: crc32fast::Hasher,
}

/// Links that deliver messages at once, if both servers are alive.
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
        self.mailboxes.iter().for_each(|mailbox| mailbox.record_lost_link(self.from));
    }
}

/// A store over all servers of a [`World`]. Clones are connections to the same servers.
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

    /// Reconnects the client.
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
        let has_request: Vec<_> = requests.iter().map(Option::is_some).collect();
        let reached: Vec<_> =
            (0..count).map(|i| has_request[i] && does[i] && !self.missing[i]).collect();
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
            has_request[i].then(|| match answer {
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
                // Change a byte after the metadata.
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

    /// Sends the requests for an eviction to all servers at the same time. A server that cannot be
    /// reached acts as if it had stopped just before the eviction was durable.
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
            // Each server has begun the attempt when its links are lost.
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
                            // End the links of the server, as it does when it gives up.
                            let mailboxes = others.mailboxes.iter();
                            mailboxes.for_each(|mailbox| mailbox.record_lost_link(others.from));
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
                self.answer_in(i, *tree, &Request::RollBack { evictions: evict.number });
                let why = "another server has not dealt".into();
                *answer = Some(Answer::Refused(Refusal { kind: self.failure, why }));
            }
        }
        answers
    }

    /// Makes server `i` lose its power, and restarts the server.
    pub(crate) fn restart(&mut self, i: usize) {
        self.disks[i].loses_power(&mut self.coins);
        self.hosts[i] = opened(&self.disks[i], &mut self.coins);
    }

    /// Records the messages of each server from now on, until that server restarts.
    pub(crate) fn watch(&mut self) -> Vec<Arc<Mutex<Wire>>> {
        let watch = |host: &mut Host| {
            let wire = Arc::new(Mutex::new(Wire::of(host)));
            host.watch(Arc::new(WireRecorder::new(wire.clone(), host.setups())));
            wire
        };
        self.hosts.iter_mut().map(watch).collect()
    }

    /// The points of all servers in the data tree.
    pub(crate) fn points(&mut self) -> Vec<TreePoint> {
        self.points_in(0)
    }

    /// The points of all servers in tree `tree`.
    pub(crate) fn points_in(&mut self, tree: u8) -> Vec<TreePoint> {
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
