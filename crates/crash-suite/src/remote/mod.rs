//! A volume on a bucket server, in the world: the client and the server that are delivered, on two machines with a line between
//! them.
//!
//! The machine of the server dies alone, or with that of the client; the line is cut at any byte. Client and server act in one order,
//! which follows from the seed.

mod link;
mod place;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use oblivio_bucket_server::{BucketLimits, LinkServer};
use oblivio_core::store::TreeShape;
use oblivio_store::{Dial, OpenError, OpenErrorKind, RemoteMode, RemoteOptions, RemoteStore};
use oblivio_testkit::crash::{CrashStore, CutAfter, LineEnd, World, line};
use oblivio_volume::device::{DiskError, DiskErrorKind};
use oblivio_wire::frame;
use oblivio_wire::link::Link;
use oblivio_wire::message::MESSAGE_BYTES_MAX;
use oblivio_wire::{Answer, Failure, FailureKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use self::link::{Role, link};
use self::place::{Lines, OnDisk, OnePlace, lock};

const NAME: &str = "volume";

/// So many lines in a hundred are cut.
const CUT_LINES: u32 = 30;

/// After so many bytes at most, in either direction.
const CUT_BYTES_MAX: usize = 60_000;

/// Whoever opens a volume has no patience of a session.
const TRIES_MAX: usize = 50;

/// Longer than all attempts take if no line carries enough to win anything.
const RETRY_FOR: Duration = Duration::from_secs(60);

/// How little is kept before a flush comes unasked: with so small volumes, it would never come.
const UNFLUSHED_BYTES_MAX: usize = 40_000;

/// A server of one volume. Clones are the same server.
#[derive(Clone)]
pub(crate) struct Remote(Arc<Mutex<Machine>>);

struct Machine {
    /// Which lines are cut, and where.
    coins: StdRng,
    /// What it knows of its volume that outlives it.
    disk: Arc<Mutex<OnDisk>>,
    running: Option<Running>,
}

/// The program, from one death of its machine to the next.
struct Running {
    server: Arc<LinkServer>,
    store_run: u64,
    lines: Arc<Lines>,
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

    /// The store of the world, through the server.
    pub(crate) fn reach(
        &self,
        store: &CrashStore,
        shapes: &[TreeShape],
    ) -> Result<RemoteStore, DiskError> {
        let (world, run) = (store.world(), store.world().run());
        let dial = || Box::new(Dialling { remote: self.clone(), world: world.clone(), run });
        let mut options = RemoteOptions::new(NAME)
            .with_retry_for(RETRY_FOR)
            .with_unflushed_bytes_max(UNFLUSHED_BYTES_MAX);
        // Openings are tried again here: a world that is off ends every link.
        options.retry_opening_for = Duration::ZERO;
        let try_to = || {
            let (is_made, options) = (lock(&self.machine().disk).shapes.is_some(), options.clone());
            match is_made {
                true => {
                    RemoteStore::open(dial(), RemoteMode::Write, options).map(|(store, _)| store)
                }
                false => RemoteStore::create(dial(), shapes, options),
            }
        };
        // Whose line is cut before anything was opened tries again; but for that, nobody is turned away.
        let is_cut_off = |opened: &Result<_, OpenError>| {
            let error = opened.as_ref().err().map(OpenError::kind);
            error == Some(OpenErrorKind::Unreachable) && !world.is_off()
        };
        let mut tries = (0..TRIES_MAX).map(|_| try_to());
        let opened = tries.find(|opened| !is_cut_off(opened)).unwrap_or_else(try_to);
        opened.map_err(|error| DiskError::new(DiskErrorKind::Failed, error.to_string()))
    }
}

/// The client of one run of the world: once that is over, it is dead.
struct Dialling {
    remote: Remote,
    world: World,
    run: u64,
}

impl Dial for Dialling {
    fn dial(&mut self, _: Duration) -> io::Result<Link> {
        let mut machine = self.remote.machine();
        let cut = machine.draw_cut();
        let (near, far) = line(cut);
        if self.world.is_off() || self.world.run() != self.run {
            // There is nothing to wait for.
            serve_nobody(far)?;
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
        let lines = Arc::<Lines>::default();
        let places =
            OnePlace { world: world.clone(), disk: self.disk.clone(), lines: lines.clone() };
        let server = LinkServer::new(Box::new(places), BucketLimits::default());
        let server = Arc::new(server.map_err(io::Error::other)?);
        Ok(Running { server, store_run, lines })
    }
}

/// Tells whoever calls that there is nothing any more.
fn serve_nobody(end: LineEnd) -> io::Result<()> {
    let refuse = move || {
        let mut link = link(end.clone(), Role::IsCalled);
        // The client is dead as well.
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
