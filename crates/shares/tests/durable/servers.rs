//! Servers in memory that do what a client asks as those do that keep their shares in files, stop where they are told to, and lie.

use std::sync::{Arc, Mutex, MutexGuard};

use oblivio_core::pieces::{Frames, Piece, TreeId, TreeShape};
use oblivio_core::store::{Answered, BucketStore, Capabilities, Fill, ShareServers};
use oblivio_core::{BucketId, Leaf, StoreError, StoreErrorKind};
use oblivio_shares::field::Gf256;
use oblivio_shares::message::{Answer, Evict, HostEpoch, Point, Request, RootWrite, Select, Setup};
use oblivio_shares::server::{Server, Stage};
use oblivio_shares::sharing::Share;
use rand::SeedableRng;
use rand::rngs::StdRng;

/// One server. A write waits until something else makes sure that it stays: until then another can take its place.
struct One {
    setup: Option<Setup>,
    server: Option<Server<Gf256>>,
    waiting: Option<Share<u8>>,
    attempt: u64,
}

/// All servers, and what they are told to do besides.
pub(crate) struct World {
    servers: Vec<One>,
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
    /// Servers that say that they are there.
    pub(crate) claims: Vec<Option<Point>>,
    /// Evictions that fail on one server before one succeeds.
    pub(crate) failing_evictions: usize,
    /// What each server was asked, in order.
    pub(crate) seen: Vec<Vec<Request>>,
}

/// A store that is these servers. Copies are connections to the same.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Mutex<World>>);

impl Servers {
    pub(crate) fn new(count: usize) -> Self {
        let one = || One { setup: None, server: None, waiting: None, attempt: 0 };
        Self(Arc::new(Mutex::new(World {
            servers: (0..count).map(|_| one()).collect(),
            coins: StdRng::seed_from_u64(77),
            asked: 0,
            stop: None,
            is_cut_off: false,
            missing: vec![false; count],
            lying: vec![false; count],
            claims: vec![None; count],
            failing_evictions: 0,
            seen: vec![Vec::new(); count],
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

impl World {
    fn ask(&mut self, messages: Vec<Option<Vec<u8>>>) -> Vec<Option<Answered>> {
        assert_eq!(messages.len(), self.servers.len());
        let count = messages.len();
        self.asked += 1;
        let does = match &self.stop {
            _ if self.is_cut_off => vec![false; count],
            Some((at, does)) if *at == self.asked => {
                self.is_cut_off = true;
                does.clone()
            }
            _ => vec![true; count],
        };
        let is_asked: Vec<_> = messages.iter().map(Option::is_some).collect();
        let reached: Vec<_> =
            (0..count).map(|i| is_asked[i] && does[i] && !self.missing[i]).collect();
        let requests: Vec<Option<Request>> = messages
            .into_iter()
            .map(|message| message.map(|message| Request::decode(&message).unwrap()))
            .collect();
        for (seen, request) in self.seen.iter_mut().zip(&requests) {
            if !self.is_cut_off || does.contains(&true) {
                seen.extend(request.clone());
            }
        }
        let answers = if requests.iter().flatten().any(|it| matches!(it, Request::Evict { .. })) {
            self.evict(requests, &reached)
        } else {
            requests
                .into_iter()
                .enumerate()
                .map(|(i, request)| Some(self.answer(i, request.filter(|_| reached[i])?)))
                .collect()
        };
        let sent = answers.into_iter().enumerate().map(|(i, answer)| {
            is_asked[i].then(|| match answer {
                Some(answer) if !self.is_cut_off && reached[i] => Ok(answer.encode()),
                _ => Err(StoreError::new(StoreErrorKind::Unreachable, "it does not answer")),
            })
        });
        sent.collect()
    }

    fn answer(&mut self, i: usize, request: Request) -> Answer {
        let claim = self.claims[i];
        let mut answer = self.servers[i].answer(request);
        match &mut answer {
            Answer::Share(share) if self.lying[i] => share[3] ^= 1,
            Answer::Epoch(epoch) => epoch.at = claim.unwrap_or(epoch.at),
            _ => (),
        }
        answer
    }

    /// All servers are asked at the same time. Those that do not do it to the end, as others do, are not reached.
    fn evict(&mut self, requests: Vec<Option<Request>>, reached: &[bool]) -> Vec<Option<Answer>> {
        let refused = |reason: &str| Some(Answer::Refused(reason.into()));
        let mut asked: Vec<(Evict<u8>, Vec<u8>)> = Vec::new();
        for request in requests {
            let Some(Request::Evict { evict, dealers }) = request else {
                return vec![refused("another server has no part in it"); self.servers.len()];
            };
            asked.push((evict, dealers));
        }
        if !reached.contains(&true) {
            return vec![None; self.servers.len()];
        }
        for (one, (evict, _)) in self.servers.iter_mut().zip(&asked) {
            if evict.attempt <= one.attempt {
                return vec![refused("there was a later attempt"); self.servers.len()];
            }
            one.attempt = evict.attempt;
        }
        let dealers = asked[0].1.clone();
        for (one, (evict, _)) in self.servers.iter_mut().zip(asked) {
            let at = one.at();
            assert_eq!(at.evictions, evict.number, "all are where it begins");
            one.settle();
            one.server.as_mut().unwrap().begin_eviction(evict).unwrap();
        }
        loop {
            let dealt: Vec<_> = dealers
                .iter()
                .map(|dealer| {
                    let dealer = &self.servers[usize::from(*dealer) - 1];
                    dealer.server.as_ref().unwrap().deal(&mut self.coins).unwrap()
                })
                .collect();
            let mut is_over = false;
            for (i, one) in self.servers.iter_mut().enumerate() {
                let got = dealt.iter().map(|dealt| dealt[i].clone()).collect();
                is_over = one.server.as_mut().unwrap().reduce(&dealers, got).unwrap();
            }
            if is_over {
                break;
            }
        }
        let fails = self.failing_evictions > 0;
        self.failing_evictions = self.failing_evictions.saturating_sub(1);
        let through = |i: usize| reached[i] && !(fails && i == 1);
        let mut answers = Vec::new();
        for (i, one) in self.servers.iter_mut().enumerate() {
            if through(i) {
                answers.push(Some(Answer::Done));
            } else {
                one.server.as_mut().unwrap().go_back();
                answers.push(refused("another server has not dealt"));
            }
        }
        answers
    }

    /// How far each is.
    pub(crate) fn points(&self) -> Vec<Point> {
        self.servers.iter().map(One::at).collect()
    }
}

impl One {
    fn at(&self) -> Point {
        let Some(server) = &self.server else { return Point::default() };
        let epoch = server.epoch();
        let written = epoch.written + usize::from(self.waiting.is_some());
        Point { evictions: epoch.evictions, written }
    }

    /// What was written last stays.
    fn settle(&mut self) {
        if let (Some(server), Some(block)) = (&mut self.server, self.waiting.take()) {
            let slot = server.epoch().written;
            server.write(RootWrite { slot, block }).unwrap();
        }
    }

    /// All are through with the last eviction, because the client has gone on.
    fn agree(&mut self) {
        let Some(server) = &mut self.server else { return };
        if server.epoch().stage == Stage::Over {
            server.agree(server.epoch().evictions).unwrap();
        }
    }

    fn answer(&mut self, request: Request) -> Answer {
        let refused = |reason: &str| Answer::Refused(reason.into());
        let here = self.at();
        let is_one_ahead =
            |at: Point| at.evictions == here.evictions && at.written + 1 == here.written;
        match request {
            Request::Setup(setup) => {
                if self.setup.as_ref().is_some_and(|it| *it != setup) {
                    return refused("it is a server of another tree");
                }
                let Setup { number, parties, tree, block_bytes, .. } = setup;
                if self.setup.is_none() {
                    self.server = Some(Server::new(number, parties, tree, block_bytes).unwrap());
                    self.setup = Some(setup);
                }
                Answer::Done
            }
            Request::Epoch => Answer::Epoch(HostEpoch {
                at: here,
                attempt: self.attempt,
                is_set_up: self.setup.is_some(),
            }),
            Request::Select { at, select } if at == here || is_one_ahead(at) => {
                self.agree();
                if at == here {
                    self.settle();
                } else if self.waiting.is_none() {
                    return refused("it has gone on from there");
                }
                self.server
                    .as_ref()
                    .unwrap()
                    .select(select)
                    .map_or_else(|it| refused(&it.to_string()), Answer::Share)
            }
            Request::Write { at, block } if at == here || is_one_ahead(at) => {
                self.agree();
                if at == here {
                    self.settle();
                } else if self.waiting.is_none() {
                    return refused("it has gone on from there");
                }
                if at.written == self.setup.as_ref().unwrap().tree.accesses() {
                    return refused("the root is full");
                }
                self.waiting = Some(block);
                Answer::Done
            }
            Request::GoBack { evictions }
                if here == Point { evictions: evictions + 1, written: 0 } =>
            {
                self.server.as_mut().unwrap().go_back();
                assert_eq!(self.at().evictions, evictions);
                Answer::Done
            }
            Request::GoBack { evictions } if here.evictions == evictions => Answer::Done,
            Request::Fetch { at, slot } if at == here => {
                self.agree();
                self.settle();
                Answer::Share(self.fetch(slot.bucket, slot.slot))
            }
            _ => refused("it is not where that is asked"),
        }
    }

    /// The share of a slot, through a query that names it.
    fn fetch(&self, bucket: BucketId, slot: usize) -> Vec<u8> {
        let tree = self.setup.as_ref().unwrap().tree;
        let mut query = vec![0; tree.path_slots()];
        query[usize::from(bucket.level()) * tree.slots() + slot] = 1;
        let select = Select { leaf: Leaf(bucket.index()), query: Share::Computed(query) };
        self.server.as_ref().unwrap().select(select).unwrap()
    }
}

impl ShareServers for Servers {
    fn count(&self) -> usize {
        self.world().servers.len()
    }

    fn ask(&mut self, messages: Vec<Option<Vec<u8>>>) -> Vec<Option<Answered>> {
        self.world().ask(messages)
    }

    fn key(&self, server: usize) -> [u8; 32] {
        [server as u8; 32]
    }

    fn name(&self, server: usize) -> String {
        format!("server {}", server + 1)
    }
}

impl BucketStore for Servers {
    fn shape(&self, _: TreeId) -> Option<&TreeShape> {
        None
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::NONE
    }

    fn prefetch(&mut self, _: &[Piece]) {}

    fn read(&mut self, _: &[Piece]) -> Result<Frames<'_>, StoreError> {
        Err(StoreError::new(StoreErrorKind::Refused, "there are no trees"))
    }

    fn write(&mut self, _: &[Piece], _: &mut Fill<'_>) -> Result<(), StoreError> {
        Err(StoreError::new(StoreErrorKind::Refused, "there are no trees"))
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn servers(&mut self) -> Option<&mut dyn ShareServers> {
        Some(self)
    }
}
