//! A volume on a bucket server, in the simulated world. It runs the real client and server, on two
//! machines connected by a line.
//!
//! The server's machine dies alone or together with the client's, and some lines are cut after a
//! random number of bytes. Client and server act in a fixed order, which depends only on the seed.

mod link;
mod place;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use oblivio_bucket_server::{BucketLimits, LinkServer};
use oblivio_core::store::TreeShape;
use oblivio_store::{Connector, OpenError, OpenErrorKind, RemoteMode, RemoteOptions, RemoteStore};
use oblivio_testkit::crash::{CrashStore, CutAfter, LineEnd, World, line};
use oblivio_volume::device::{DiskError, DiskErrorKind};
use oblivio_wire::frame;
use oblivio_wire::link::Link;
use oblivio_wire::message::MESSAGE_BYTES_MAX;
use oblivio_wire::{Answer, Failure, FailureKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::link::{Role, link};
use self::place::{LineEnds, OnDisk, SingleVolumeStorage, lock};

const NAME: &str = "volume";

/// Percentage of connections (lines) that are cut.
const CUT_LINES: u32 = 30;

/// Upper bound (exclusive) on the number of bytes, in either direction, after which a line is cut.
const CUT_BYTES_MAX: usize = 60_000;

/// Number of attempts to open a volume before a final attempt, whose result counts. During an
/// opening, no session exists that would retry.
const TRIES_MAX: usize = 50;

/// Time limit for the retries of a session: longer than all attempts take, even if every line is
/// cut before any progress.
const RETRY_FOR: Duration = Duration::from_secs(60);

/// Bytes of unflushed writes that trigger a flush. These volumes are so small that the default
/// would never be reached.
const UNFLUSHED_BYTES_MAX: usize = 40_000;

/// The server of one volume. Clones refer to the same server.
#[derive(Clone)]
pub(crate) struct Remote(Arc<Mutex<Machine>>);

struct Machine {
    /// Random choices of the lines to cut, and of the bytes after which to cut them.
    coins: StdRng,
    /// The data that survive a crash of the machine.
    disk: Arc<Mutex<OnDisk>>,
    running: Option<Running>,
}

/// The server program. It runs until its machine dies.
struct Running {
    server: Arc<LinkServer>,
    store_run: u64,
    lines: Arc<LineEnds>,
}

impl Remote {
    pub(crate) fn new(seed: u64) -> Self {
        let machine =
            Machine { coins: StdRng::seed_from_u64(seed), disk: Arc::default(), running: None };
        Self(Arc::new(Mutex::new(machine)))
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        lock(&self.0)
    }

    /// Connects to the store of the world through the server.
    pub(crate) fn connect(
        &self,
        store: &CrashStore,
        shapes: &[TreeShape],
    ) -> Result<RemoteStore, DiskError> {
        let (world, run) = (store.world(), store.world().run());
        let connector =
            || Box::new(WorldConnector { remote: self.clone(), world: world.clone(), run });
        let mut options = RemoteOptions::new(NAME)
            .with_retry_for(RETRY_FOR)
            .with_unflushed_bytes_max(UNFLUSHED_BYTES_MAX);
        // Openings are retried below instead, because a world that is off ends every link.
        options.retry_opening_for = Duration::ZERO;
        let try_to = || {
            let (is_made, options) = (lock(&self.machine().disk).shapes.is_some(), options.clone());
            match is_made {
                true => RemoteStore::open(connector(), RemoteMode::Write, options)
                    .map(|(store, _)| store),
                false => RemoteStore::create(connector(), shapes, options),
            }
        };
        // Retry only if the line was cut before the volume was open. Any other error is a result.
        let is_cut_off = |opened: &Result<_, OpenError>| {
            let error = opened.as_ref().err().map(OpenError::kind);
            error == Some(OpenErrorKind::Unreachable) && !world.is_off()
        };
        let mut tries = (0..TRIES_MAX).map(|_| try_to());
        let opened = tries.find(|opened| !is_cut_off(opened)).unwrap_or_else(try_to);
        opened.map_err(|error| DiskError::new(DiskErrorKind::Failed, error.to_string()))
    }
}

/// The connector of one client. It is valid for one run of the world. After that run, the client
/// counts as dead.
struct WorldConnector {
    remote: Remote,
    world: World,
    run: u64,
}

impl Connector for WorldConnector {
    fn connect(&mut self, _: Duration) -> io::Result<Link> {
        let mut machine = self.remote.machine();
        let cut = machine.draw_cut();
        let (near, far) = line(cut);
        if self.world.is_off() || self.world.run() != self.run {
            // The world is off or the client is dead: refuse at once.
            refuse_request(far)?;
        } else {
            machine.serve(&self.world, far)?;
        }
        Ok(link(near, Role::Calls))
    }
}

impl Machine {
    fn draw_cut(&mut self) -> CutAfter {
        let mut bytes = || self.coins.random_range(1..CUT_BYTES_MAX);
        let (there, back) = (bytes(), bytes());
        match self.coins.random_range(0..100) {
            0..CUT_LINES => CutAfter { there, back },
            _ => CutAfter::NEVER,
        }
    }

    fn serve(&mut self, world: &World, end: LineEnd) -> io::Result<()> {
        let store_run = world.store_run();
        let running = match self.running.take() {
            Some(running) if running.store_run == store_run => running,
            died => {
                died.iter().for_each(|died| died.lines.cut_all());
                self.start(world, store_run)?
            }
        };
        running.lines.all().push(end.clone());
        let server = running.server.clone();
        self.running = Some(running);
        thread::Builder::new()
            .spawn(move || {
                server.serve(link(end.clone(), Role::IsCalled));
                end.stop_reading();
            })
            .map(drop)
    }

    fn start(&self, world: &World, store_run: u64) -> io::Result<Running> {
        let lines = Arc::<LineEnds>::default();
        let catalog = SingleVolumeStorage {
            world: world.clone(),
            disk: self.disk.clone(),
            lines: lines.clone(),
        };
        let server = LinkServer::new(Box::new(catalog), BucketLimits::default());
        let server = Arc::new(server.map_err(io::Error::other)?);
        Ok(Running { server, store_run, lines })
    }
}

/// Answers the first request with a failure, and closes the connection.
fn refuse_request(end: LineEnd) -> io::Result<()> {
    let refuse = move || {
        let mut link = link(end.clone(), Role::IsCalled);
        // Errors do not matter here, since the client is dead as well.
        let _ = frame::receive(&mut link.reader, MESSAGE_BYTES_MAX);
        let message = "the machine is off".into();
        let failure = Failure { number: 0, kind: FailureKind::Failed, message };
        let _ = frame::send(&mut link.writer, &Answer::Failed(failure).encode());
        end.stop_reading();
    };
    thread::Builder::new().spawn(refuse).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_lines_are_cut_and_others_hold() {
        let remote = Remote::new(1);
        let mut machine = remote.machine();
        let cut = (0..1000).filter(|_| machine.draw_cut() != CutAfter::NEVER).count();
        assert!((200..400).contains(&cut), "{cut}");
    }
}
