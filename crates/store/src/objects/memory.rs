//! Objects in memory, with faults drawn from a seed. For tests.
//!
//! A [`MemoryService`] plays the service, and each of its [clients](MemoryService::client) is an
//! engine. Requests run as late as possible and in random order: a request runs when its answer is
//! waited for, together with a random choice of those started before. All randomness comes from
//! the seed, so a run can be repeated.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use oblivio_core::{StoreError, StoreErrorKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Answer, Listed, ObjectName, Objects, Prefix, Synced, Ticket};

/// The number of objects in a page of a listing.
const PAGE_OBJECTS: usize = 100;

/// How often a service fails, in percent of the requests concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Faults {
    /// Creations whose answer is lost. Half of them take effect.
    pub lost_answers: u32,
    /// Creations of which only a part of the body arrives: zero bytes, half, or all but one byte.
    /// The part becomes an object, and the answer is lost.
    pub torn_bodies: u32,
    /// Creations that take effect after their answer was lost, at a later request.
    pub late_creations: u32,
    /// Creations that are answered with [`Answer::Exists`], although there is no object.
    pub conflicts: u32,
    /// Requests at which the service loses some objects that are not synced. The next
    /// [`sync`](Objects::sync) reports it.
    pub losses: u32,
    /// Creations that overwrite an object and are answered with [`Answer::Created`], as on a
    /// service that checks and writes in two steps.
    pub overwrites: u32,
}

/// A request that a service received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A get of a range of bytes.
    Get(ObjectName, Range<u64>),
    /// A creation with this number of bytes.
    Create(ObjectName, u64),
    /// A request for a page of a listing.
    List(Prefix, Option<ObjectName>),
    /// A deletion.
    Delete(Vec<ObjectName>),
    /// A sync.
    Sync,
}

/// A service of objects in memory. Clones are the same service.
#[derive(Clone, Debug)]
pub struct MemoryService(Arc<Mutex<Service>>);

#[derive(Debug)]
struct Service {
    objects: BTreeMap<ObjectName, Bytes>,
    coins: StdRng,
    faults: Faults,
    /// Objects created since the last sync.
    unsynced: Vec<ObjectName>,
    /// Whether objects were lost since the last sync.
    has_lost: bool,
    /// Creations that will take effect at a later request.
    late: Vec<(ObjectName, Bytes)>,
    log: Vec<Request>,
    requests: u64,
}

/// A client of a [`MemoryService`].
#[derive(Debug)]
pub struct MemoryObjects {
    service: MemoryService,
    waiting: Vec<(Ticket, Waiting)>,
    answers: BTreeMap<Ticket, Answer>,
    next_ticket: u64,
    /// The number of requests that the client can still start before it dies.
    requests_left: Option<u64>,
}

/// A request that has not run.
#[derive(Debug)]
enum Waiting {
    Get(ObjectName, Range<u64>),
    Create(ObjectName, Bytes),
}

impl MemoryService {
    /// A service without objects and faults.
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Service {
            objects: BTreeMap::new(),
            coins: StdRng::seed_from_u64(seed),
            faults: Faults::default(),
            unsynced: Vec::new(),
            has_lost: false,
            late: Vec::new(),
            log: Vec::new(),
            requests: 0,
        })))
    }

    /// Sets the faults of later requests.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// A new client.
    pub fn client(&self) -> MemoryObjects {
        MemoryObjects {
            service: self.clone(),
            waiting: Vec::new(),
            answers: BTreeMap::new(),
            next_ticket: 0,
            requests_left: None,
        }
    }

    /// A new client that dies after `requests` requests: all later ones fail, and those in flight
    /// take effect, take effect in part, or do not.
    pub fn mortal_client(&self, requests: u64) -> MemoryObjects {
        MemoryObjects { requests_left: Some(requests), ..self.client() }
    }

    /// The requests since the last call, in the order in which clients started them.
    pub fn take_log(&self) -> Vec<Request> {
        std::mem::take(&mut self.lock().log)
    }

    /// The number of requests so far.
    pub fn requests(&self) -> u64 {
        self.lock().requests
    }

    /// The objects and their contents.
    pub fn objects(&self) -> BTreeMap<ObjectName, Bytes> {
        self.lock().objects.clone()
    }

    /// Changes the objects, as an attacker could.
    pub fn tamper(&self, change: impl FnOnce(&mut BTreeMap<ObjectName, Bytes>)) {
        change(&mut self.lock().objects);
    }

    fn lock(&self) -> MutexGuard<'_, Service> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Service {
    fn chance(&mut self, percent: u32) -> bool {
        percent > 0 && self.coins.random_range(0..100) < percent
    }

    fn log(&mut self, request: Request) {
        self.requests += 1;
        self.log.push(request);
    }

    /// Lets time pass: late creations arrive, and objects that are not synced get lost.
    fn pass_time(&mut self) {
        for (name, body) in std::mem::take(&mut self.late) {
            if self.coins.random() {
                self.create(name, body);
            } else {
                self.late.push((name, body));
            }
        }
        if self.chance(self.faults.losses) && !self.unsynced.is_empty() {
            self.has_lost = true;
            for name in std::mem::take(&mut self.unsynced) {
                if self.coins.random() {
                    self.objects.remove(&name);
                } else {
                    self.unsynced.push(name);
                }
            }
        }
    }

    fn create(&mut self, name: ObjectName, body: Bytes) -> Answer {
        if self.objects.contains_key(&name) && !self.chance(self.faults.overwrites) {
            return Answer::Exists;
        }
        self.objects.insert(name, body);
        self.unsynced.push(name);
        Answer::Created
    }

    fn create_with_faults(&mut self, name: ObjectName, body: Bytes) -> Answer {
        if self.chance(self.faults.conflicts) {
            return Answer::Exists;
        }
        if self.chance(self.faults.torn_bodies) {
            self.create_in_part(name, &body);
            return Answer::Unknown;
        }
        if self.chance(self.faults.late_creations) {
            self.late.push((name, body));
            return Answer::Unknown;
        }
        if self.chance(self.faults.lost_answers) {
            if self.coins.random() {
                self.create(name, body);
            }
            return Answer::Unknown;
        }
        self.create(name, body)
    }

    fn create_in_part(&mut self, name: ObjectName, body: &Bytes) {
        let bytes = match self.coins.random_range(0..3) {
            0 => 0,
            1 => body.len() / 2,
            _ => body.len().saturating_sub(1),
        };
        self.create(name, body.slice(..bytes));
    }

    fn get(&self, name: ObjectName, range: Range<u64>) -> Answer {
        let Some(body) = self.objects.get(&name) else { return Answer::Absent };
        let end = (body.len() as u64).min(range.end) as usize;
        let start = (range.start as usize).min(end);
        Answer::Bytes(body.slice(start..end))
    }
}

impl MemoryObjects {
    fn start(&mut self, waiting: Waiting) -> Ticket {
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.service.lock().log(match &waiting {
            Waiting::Get(name, range) => Request::Get(*name, range.clone()),
            Waiting::Create(name, body) => Request::Create(*name, body.len() as u64),
        });
        self.spend();
        self.waiting.push((ticket, waiting));
        ticket
    }

    /// Counts a request. If it was the last one, the client dies.
    fn spend(&mut self) {
        let Some(left) = &mut self.requests_left else { return };
        *left = left.saturating_sub(1);
        if *left == 0 {
            self.die();
        }
    }

    /// Lets the client die: creations in flight take effect, take effect in part, or do not.
    pub fn die(&mut self) {
        let mut service = self.service.lock();
        for (_, waiting) in self.waiting.drain(..) {
            let Waiting::Create(name, body) = waiting else { continue };
            match service.coins.random_range(0..4) {
                0 => service.create_in_part(name, &body),
                1 | 2 => drop(service.create(name, body)),
                _ => {}
            }
        }
    }

    fn check_alive(&self) -> Result<(), StoreError> {
        if self.requests_left == Some(0) {
            return Err(StoreError::new(StoreErrorKind::Unreachable, "the client has died"));
        }
        Ok(())
    }

    /// Runs a request that was started, chosen at random.
    fn run_one(&mut self) {
        let mut service = self.service.lock();
        let at = service.coins.random_range(0..self.waiting.len());
        let (ticket, waiting) = self.waiting.swap_remove(at);
        service.pass_time();
        let answer = match waiting {
            Waiting::Get(name, range) => service.get(name, range),
            Waiting::Create(name, body) => service.create_with_faults(name, body),
        };
        drop(service);
        self.answers.insert(ticket, answer);
    }
}

impl Objects for MemoryObjects {
    fn begin_get(&mut self, name: ObjectName, range: Range<u64>) -> Ticket {
        self.start(Waiting::Get(name, range))
    }

    fn begin_create(&mut self, name: ObjectName, parts: Vec<Bytes>) -> Ticket {
        self.start(Waiting::Create(name, parts.concat().into()))
    }

    fn wait(&mut self, ticket: Ticket) -> Result<Answer, StoreError> {
        loop {
            if let Some(answer) = self.answers.remove(&ticket) {
                return Ok(answer);
            }
            self.check_alive()?;
            if self.waiting.is_empty() {
                let message = "a request was waited for twice";
                return Err(StoreError::new(StoreErrorKind::Failed, message));
            }
            self.run_one();
        }
    }

    fn forget(&mut self, ticket: Ticket) {
        self.answers.remove(&ticket);
        // A creation still takes effect.
        self.waiting
            .retain(|(other, waiting)| *other != ticket || matches!(waiting, Waiting::Create(..)));
    }

    fn list(
        &mut self,
        prefix: Prefix,
        after: Option<ObjectName>,
    ) -> Result<Vec<Listed>, StoreError> {
        self.check_alive()?;
        let mut service = self.service.lock();
        service.log(Request::List(prefix, after));
        service.pass_time();
        let objects = service.objects.iter().filter(|(name, _)| {
            prefix.contains(**name) && after.is_none_or(|after| **name > after)
        });
        let page = objects.map(|(name, body)| Listed { name: *name, bytes: body.len() as u64 });
        let page = page.take(PAGE_OBJECTS).collect();
        drop(service);
        self.spend();
        Ok(page)
    }

    fn delete(&mut self, names: &[ObjectName]) -> Result<(), StoreError> {
        self.check_alive()?;
        let mut service = self.service.lock();
        service.log(Request::Delete(names.to_vec()));
        let dies = self.requests_left == Some(1);
        let count = if dies { service.coins.random_range(0..=names.len()) } else { names.len() };
        for name in &names[..count] {
            service.objects.remove(name);
        }
        drop(service);
        self.spend();
        self.check_alive()
    }

    fn sync(&mut self) -> Result<Synced, StoreError> {
        self.check_alive()?;
        let mut service = self.service.lock();
        service.log(Request::Sync);
        service.pass_time();
        let synced = match std::mem::take(&mut service.has_lost) {
            true => Synced::MayHaveLost,
            false => {
                service.unsynced.clear();
                Synced::Durable
            }
        };
        drop(service);
        self.spend();
        self.check_alive()?;
        Ok(synced)
    }
}
