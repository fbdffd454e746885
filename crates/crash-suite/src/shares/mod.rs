//! A volume on share servers, in the simulated world. It runs the real servers, each on its own
//! machine, with a link between any two.
//!
//! The client and each server die independently. Any link may end at any message, and a server can
//! also die at any step of its disk. A dead server restarts when the client sends it a request. The
//! records of the volume are in the store of the world.
//!
//! Steps are counted per disk and per direction of a link, so the number of a step does not depend
//! on other threads. Until the first fault, everything follows from the seed. After it, the
//! progress of the remaining servers in an interrupted eviction depends on thread scheduling. So
//! does the number of times the eviction restarts.

mod folder;
mod links;
mod sharing_log;

use std::sync::{Arc, Mutex};
use std::thread;

use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_shares::host::Host;
use oblivio_shares::message::{Answer, Request};
use oblivio_shares::servers::{AnyServers, Patience, ServerAnswer, ShareServers};
use oblivio_shares::sharing::Seed;
use oblivio_testkit::ServersWithRecords;
use oblivio_testkit::crash::{CLIENT, CrashStore, Delivery, Loss, World};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::folder::OnDisk;
use self::links::{Links, WorldPeers, lock};
use self::sharing_log::{Dealer, SharingLog};

/// Maximum number of times that a client sends a request, if it retries.
const TRIES_MAX: usize = 10;

/// The reaction of a client to a missing answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingAnswerPolicy {
    /// The client gives up.
    GiveUp,
    /// The client repeats the request, and the volume does not notice.
    Retry,
}

/// All servers of a volume. Clones refer to the same servers.
#[derive(Clone)]
pub(crate) struct Servers(Arc<Mutex<Machines>>);

struct Machines {
    servers: Vec<Server>,
    missing_answer_policy: MissingAnswerPolicy,
    sharing_log: Arc<Mutex<SharingLog>>,
    /// The links between the servers. `None` until the first client connects.
    links: Option<Arc<Links>>,
    /// The number of batches of requests so far.
    asked: usize,
    /// Whether a server timed out while it waited for another.
    is_stuck: bool,
}

/// A server's machine.
struct Server {
    number: u8,
    /// Draws the seed for each start of the program.
    draw_seed: Box<dyn FnMut() -> Seed + Send>,
    running: Option<Running>,
    starts: u64,
}

/// The server's program. It runs until the machine dies.
struct Running {
    host: Host,
    run: u64,
}

/// The reason why a server does not answer.
enum NoAnswer {
    /// The server's machine has died.
    Died,
    /// The server's program fails without an injected fault.
    Broken(String),
}

impl Server {
    /// Starts the program if necessary, and returns the program's answer to `message`.
    fn answer(
        &mut self,
        world: &World,
        links: &Links,
        message: &[u8],
    ) -> Result<Vec<u8>, NoAnswer> {
        let disk = world.server_disk(self.number);
        let run = disk.run();
        let has_died = || world.server_run(self.number) != run;
        if self.running.as_ref().is_none_or(|running| running.run != run) {
            let seed = (self.draw_seed)();
            let host = Host::open(Box::new(OnDisk(disk)), move || Ok(seed));
            let host = host.map_err(|error| match has_died() {
                true => NoAnswer::Died,
                false => NoAnswer::Broken(error.to_string()),
            })?;
            links.start(self.number, run, host.mailbox());
            self.running = Some(Running { host, run });
            self.starts += 1;
        }
        let Some(Running { host, .. }) = &mut self.running else { return Err(NoAnswer::Died) };
        let dealer = Dealer { server: self.number, start: self.starts };
        let answer = host.answer(message, &WorldPeers { links, dealer, run }, &|_| Ok(()));
        if world.server_run(self.number) != run {
            return Err(NoAnswer::Died);
        }
        Ok(answer)
    }

    /// Returns the server's answer to an eviction request. On any other answer than `Done`, ends
    /// the server's links. If the server dies and the client retries, restarts the server and asks
    /// again.
    fn answer_in_eviction(
        &mut self,
        world: &World,
        links: &Links,
        message: &[u8],
        missing_answer_policy: MissingAnswerPolicy,
    ) -> Result<Vec<u8>, NoAnswer> {
        let done = Answer::Done.encode();
        for _ in 0..TRIES_MAX {
            let answer = self.answer(world, links, message);
            if !answer.as_ref().is_ok_and(|answer| *answer == done) {
                links.end(self.number);
            }
            match answer {
                Err(NoAnswer::Died) if missing_answer_policy == MissingAnswerPolicy::Retry => {}
                answer => return answer,
            }
        }
        Err(NoAnswer::Died)
    }
}

impl Servers {
    pub(crate) fn new(seed: u64, count: u8, missing_answer_policy: MissingAnswerPolicy) -> Self {
        let server = |number: u8| {
            let mut coins = StdRng::seed_from_u64(seed << 8 | u64::from(number));
            let draw_seed = Box::new(move || coins.random());
            Server { number, draw_seed, running: None, starts: 0 }
        };
        let servers = (1..=count).map(server).collect();
        let sharing_log = Arc::default();
        let (links, asked, is_stuck) = (None, 0, false);
        let machines =
            Machines { servers, missing_answer_policy, sharing_log, links, asked, is_stuck };
        Self(Arc::new(Mutex::new(machines)))
    }

    /// Returns a store that consists of the servers and of `records`: the store of the world, which
    /// holds the volume's records.
    pub(crate) fn connect(&self, records: CrashStore) -> AnyServers {
        let world = records.world().clone();
        let servers = OnServers { run: world.run(), world, servers: self.clone() };
        Box::new(ServersWithRecords { records, servers })
    }

    /// Checks that no randomness was reused in any life, and that no server timed out while it
    /// waited for another.
    pub(crate) fn check(&self) -> Result<(), Loss> {
        let machines = lock(&self.0);
        let loss = |message| Loss { bytes: 0, message };
        if machines.is_stuck {
            return Err(loss("a server timed out waiting for another in an eviction".into()));
        }
        let checked = lock(&machines.sharing_log).check();
        checked.map(drop).map_err(|reused| loss(reused.to_string()))
    }
}

/// The client in one run of the world.
struct Client<'w> {
    world: &'w World,
    run: u64,
    missing_answer_policy: MissingAnswerPolicy,
}

impl Client<'_> {
    fn is_off(&self) -> bool {
        self.world.is_off() || self.world.run() != self.run
    }

    fn can_retry(&self) -> bool {
        self.missing_answer_policy == MissingAnswerPolicy::Retry && !self.is_off()
    }

    /// Sends a request to a server. Returns how the request arrived, or `None` if it did not.
    fn send(&self, to: u8, links: &Links) -> Option<Delivery> {
        for _ in 0..TRIES_MAX {
            match self.world.message_of_client(self.run, CLIENT, to) {
                Delivery::Kills => links.end(to),
                Delivery::Lost => (),
                arrived => return Some(arrived),
            }
            if !self.can_retry() {
                break;
            }
        }
        None
    }

    /// Receives the answer of a server. Returns whether the answer arrived.
    fn take(&self, from: u8, links: &Links) -> bool {
        match self.world.message_of_client(self.run, from, CLIENT) {
            Delivery::Arrives | Delivery::ArrivesLast => true,
            Delivery::Lost => false,
            Delivery::Kills => {
                links.end(from);
                false
            }
        }
    }

    /// Notes a missing answer in the world, and returns the error for it.
    fn unanswered(&self) -> ServerAnswer {
        self.world.notice();
        Err(StoreError::new(StoreErrorKind::Unreachable, "the server does not answer"))
    }
}

impl Machines {
    fn links(&mut self, world: &World) -> Arc<Links> {
        let links = || Arc::new(Links::new(world.clone(), self.sharing_log.clone()));
        self.links.get_or_insert_with(links).clone()
    }

    fn ask(
        &mut self,
        world: &World,
        run: u64,
        tree: u8,
        requests: Vec<Option<Request>>,
    ) -> Vec<Option<ServerAnswer>> {
        let (missing_answer_policy, links) = (self.missing_answer_policy, self.links(world));
        let client = Client { world, run, missing_answer_policy };
        let encode = |request: &Option<Request>| Some(request.as_ref()?.encode_in(tree));
        let messages: Vec<_> = requests.iter().map(encode).collect();
        let in_tree = |request: Option<Request>| Some((tree, request?));
        let requests: Vec<_> = requests.into_iter().map(in_tree).collect();
        if !client.is_off() {
            lock(&self.sharing_log).record_requests(&requests);
        }
        // A client that dies in the middle of a batch has reached some servers only. Vary which
        // ones.
        self.asked += 1;
        let count = messages.len();
        let order = (0..count).map(|i| (i + self.asked) % count);
        let order: Vec<_> = order.filter(|i| messages[*i].is_some()).collect();
        let is_eviction = requests.iter().flatten().any(|it| matches!(it.1, Request::Evict { .. }));
        let mut answers = match is_eviction {
            true => self.evict(&client, &links, &messages, &order),
            false => messages.iter().map(|_| None).collect(),
        };
        for i in order {
            let is_left = answers[i].is_none() && (!is_eviction || client.can_retry());
            if is_left && let Some(message) = &messages[i] {
                answers[i] = Some(self.exchange(&client, &links, i, message));
            } else if answers[i].is_none() {
                answers[i] = Some(client.unanswered());
            }
        }
        answers
    }

    /// Sends a request to one server and waits for the answer.
    fn exchange(
        &mut self,
        client: &Client<'_>,
        links: &Links,
        i: usize,
        message: &[u8],
    ) -> ServerAnswer {
        let number = self.servers[i].number;
        for _ in 0..TRIES_MAX {
            let Some(arrived) = client.send(number, links) else { break };
            match self.servers[i].answer(client.world, links, message) {
                Ok(answer) if arrived == Delivery::Arrives && client.take(number, links) => {
                    return Ok(answer);
                }
                Ok(_) | Err(NoAnswer::Died) => (),
                Err(NoAnswer::Broken(why)) => {
                    return Err(StoreError::new(StoreErrorKind::Failed, why));
                }
            }
            if !client.can_retry() {
                break;
            }
        }
        client.unanswered()
    }

    /// Sends an eviction request to all servers, which then work at the same time. Returns the
    /// answers that arrived.
    fn evict(
        &mut self,
        client: &Client<'_>,
        links: &Links,
        messages: &[Option<Vec<u8>>],
        order: &[usize],
    ) -> Vec<Option<ServerAnswer>> {
        let mut arrived: Vec<Option<Delivery>> = vec![None; messages.len()];
        for i in order {
            arrived[*i] = client.send(self.servers[*i].number, links);
        }
        // A server that the request did not reach deals nothing. End its links, so that the others
        // do not wait for it.
        let unreached = self.servers.iter().zip(&arrived).filter(|(_, arrived)| arrived.is_none());
        unreached.for_each(|(server, _)| links.end(server.number));
        let (world, missing_answer_policy) = (client.world, client.missing_answer_policy);
        let work = self.servers.iter_mut().zip(messages).zip(&arrived);
        let mut done: Vec<Option<Result<Vec<u8>, NoAnswer>>> = thread::scope(|scope| {
            let threads: Vec<_> = work
                .map(|((server, message), arrived)| {
                    let message = message.as_ref().filter(|_| arrived.is_some())?;
                    let work = move || {
                        server.answer_in_eviction(world, links, message, missing_answer_policy)
                    };
                    Some(scope.spawn(work))
                })
                .collect();
            let silent = || NoAnswer::Broken("its program has panicked".into());
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().unwrap_or_else(|_| Err(silent()))
            };
            threads.into_iter().map(|thread| thread.map(join)).collect()
        });
        self.is_stuck |= done.iter().flatten().flatten().any(|answer| has_waited(answer));
        let mut answers: Vec<_> = messages.iter().map(|_| None).collect();
        for i in order {
            answers[*i] = match done[*i].take() {
                Some(Ok(answer)) if arrived[*i] == Some(Delivery::Arrives) => {
                    client.take(self.servers[*i].number, links).then_some(Ok(answer))
                }
                Some(Err(NoAnswer::Broken(why))) => {
                    Some(Err(StoreError::new(StoreErrorKind::Failed, why)))
                }
                _ => None,
            };
        }
        answers
    }
}

/// Whether a server timed out while it waited for another. No link is slow here, so a timeout is a
/// defect.
fn has_waited(answer: &[u8]) -> bool {
    let answer = Answer::decode(answer);
    answer.is_ok_and(
        |it| matches!(it, Answer::Refused(it) if it.why.contains("has not dealt its shares")),
    )
}

/// The share servers as seen by one run of the client.
struct OnServers {
    world: World,
    run: u64,
    servers: Servers,
}

impl ShareServers for OnServers {
    fn count(&self) -> usize {
        lock(&self.servers.0).servers.len()
    }

    /// Ignores the time limit, because a server never answers `Working` here.
    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        _: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        lock(&self.servers.0).ask(&self.world, self.run, tree, requests)
    }

    /// Does nothing. The client knows at once which servers are dead, so it never waits.
    fn begin_retries(&mut self) {}

    fn wait_for_missing(&mut self) {}

    fn wait_for_links(&mut self, _: u32) -> bool {
        false
    }

    fn key(&self, server: usize) -> [u8; 32] {
        [server as u8; 32]
    }

    fn name(&self, server: usize) -> String {
        format!("server {}", server + 1)
    }
}

#[cfg(test)]
mod tests {
    use oblivio_testkit::crash::small_volume::{SmallScheme, SmallVolume};
    use oblivio_testkit::crash::{InjectedFault, Life, Station, StationFailure, Survival};

    use super::*;

    /// Runs a volume while a server crashes and restarts. If `are_same`, each server draws the same
    /// seed at every start.
    fn check(are_same: bool) -> Result<(), Loss> {
        let scheme = SmallScheme::Shares { servers: 3, has_map_in_trees: false };
        let volume = SmallVolume { scheme, steps: 20, blocks: 24, ..SmallVolume::default() };
        let servers = Servers::new(1, 3, MissingAnswerPolicy::GiveUp);
        for server in lock(&servers.0).servers.iter_mut().filter(|_| are_same) {
            let seed = [server.number; 32];
            server.draw_seed = Box::new(move || seed);
        }
        let (station, dies) = (Station::Disk { server: 2 }, StationFailure::Dies(Survival::None));
        let life = Life::new(&[InjectedFault::StationAt(station, 300, dies)], Survival::All);
        let ran = volume.run_over(&[life], |store| Ok(servers.connect(store)));
        assert_eq!(ran?.struck(), 1);
        servers.check()
    }

    #[test]
    fn a_server_whose_system_draws_the_same_again_shares_nothing_twice() {
        check(false).unwrap();
        check(true).unwrap();
    }
}
