//! A volume on a bucket server, in the world: the client and the server that are delivered, on two machines with a line between
//! them.
//!
//! The machine of the server dies alone, or with that of the client; the line is cut at any byte. Client and server act in one order,
//! which follows from the seed.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use oblivio_core::StoreError;
use oblivio_core::store::{BucketStore, Fill, Frames, Piece, TreeId, TreeShape};
use oblivio_serve::buckets::{BucketLimits, LinkServer, Place, Shelving};
use oblivio_store::{
    Condition, Dial, OpenError, OpenedStore, RemoteMode, RemoteOptions, RemoteStore, StoreOptions,
};
use oblivio_testkit::crash::{CrashStore, CutAfter, LineEnd, World, line};
use oblivio_volume::device::{DiskError, DiskErrorKind};
use oblivio_wire::frame;
use oblivio_wire::link::{Link, LinkReader, LinkWriter};
use oblivio_wire::message::MESSAGE_BYTES_MAX;
use oblivio_wire::{Answer, Failure, FailureKind};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

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

#[derive(Default)]
struct OnDisk {
    shapes: Option<Vec<TreeShape>>,
    session: Option<u64>,
}

/// The program, from one death of its machine to the next.
struct Running {
    server: Arc<LinkServer>,
    store_run: u64,
    lines: Arc<Lines>,
}

/// Its ends of the lines to it.
#[derive(Default)]
struct Lines(Mutex<Vec<LineEnd>>);

impl Lines {
    fn all(&self) -> MutexGuard<'_, Vec<LineEnd>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut_all(&self) {
        self.all().drain(..).for_each(|end| end.cut());
    }
}

impl Remote {
    pub(crate) fn new(seed: u64) -> Self {
        let machine =
            Machine { coins: StdRng::seed_from_u64(seed), disk: Arc::default(), running: None };
        Self(Arc::new(Mutex::new(machine)))
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store of the world, through the server.
    pub(crate) fn reach(
        &self,
        store: &CrashStore,
        shapes: &[TreeShape],
    ) -> Result<RemoteStore, DiskError> {
        let dial = || Box::new(Dialling { remote: self.clone(), world: store.world().clone() });
        let options = RemoteOptions {
            retry_for: RETRY_FOR,
            unflushed_bytes_max: UNFLUSHED_BYTES_MAX,
            ..RemoteOptions::new(NAME)
        };
        let try_to = || {
            let (is_made, options) = (lock(&self.machine().disk).shapes.is_some(), options.clone());
            match is_made {
                true => {
                    RemoteStore::open(dial(), RemoteMode::Write, options).map(|(store, _)| store)
                }
                false => RemoteStore::create(dial(), shapes, options),
            }
        };
        // Whose line is cut before anything was opened tries again.
        let mut tries = (0..TRIES_MAX).map(|_| try_to());
        let opened = tries.find(|opened| opened.is_ok() || store.world().is_off());
        let opened = opened.unwrap_or_else(try_to);
        opened.map_err(|error| DiskError::new(DiskErrorKind::Failed, error.to_string()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Dialling {
    remote: Remote,
    world: World,
}

impl Dial for Dialling {
    fn dial(&mut self) -> io::Result<Link> {
        let mut machine = self.remote.machine();
        let cut = machine.draw_cut();
        let (near, far) = line(cut);
        if self.world.is_off() {
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

/// Where the volume lies on the machine of the server.
#[derive(Clone)]
struct OnePlace {
    world: World,
    disk: Arc<Mutex<OnDisk>>,
    lines: Arc<Lines>,
}

impl Shelving for OnePlace {
    fn place(&self, _: &str) -> Box<dyn Place> {
        Box::new(self.clone())
    }

    fn used(&self) -> io::Result<(usize, u64)> {
        Ok((usize::from(self.is_there()), 0))
    }
}

impl Place for OnePlace {
    fn is_there(&self) -> bool {
        lock(&self.disk).shapes.is_some()
    }

    fn make_ready(&self) -> io::Result<()> {
        Ok(())
    }

    /// The world has room for it from the beginning.
    fn create(&self, shapes: &[TreeShape]) -> Result<(), OpenError> {
        lock(&self.disk).shapes = Some(shapes.to_vec());
        Ok(())
    }

    fn open(&self, _: &StoreOptions) -> Result<OpenedStore, OpenError> {
        let store = Mortal { store: self.world.store(), lines: self.lines.clone() };
        Ok(OpenedStore { store: Box::new(store), condition: Condition::default() })
    }

    fn remove(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn clear_away(&self) {}

    fn session(&self) -> io::Result<Option<u64>> {
        Ok(lock(&self.disk).session)
    }

    fn keep_session(&self, session: u64) -> io::Result<()> {
        lock(&self.disk).session = Some(session);
        Ok(())
    }
}

/// The store of a server whose program dies with its machine: it answers nobody any more.
struct Mortal {
    store: CrashStore,
    lines: Arc<Lines>,
}

impl Mortal {
    /// What to do after an error.
    fn on_error(&self) -> impl Fn() + use<> {
        let (world, run, lines) =
            (self.store.world().clone(), self.store.run(), self.lines.clone());
        move || {
            if world.is_off() || world.store_run() != run {
                lines.cut_all();
            }
        }
    }
}

impl BucketStore for Mortal {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.store.shape(tree)
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        self.store.prefetch(pieces);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        let on_error = self.on_error();
        self.store.read(pieces).inspect_err(|_| on_error())
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        let on_error = self.on_error();
        self.store.write(pieces, fill).inspect_err(|_| on_error())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let on_error = self.on_error();
        self.store.flush().inspect_err(|_| on_error())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Calls,
    IsCalled,
}

fn link(end: LineEnd, role: Role) -> Link {
    let reader = Box::new(Reader { end: end.clone(), within: None });
    Link { reader, writer: Box::new(Writer { end, role }) }
}

struct Reader {
    end: LineEnd,
    within: Option<Duration>,
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.end.read(buffer, self.within)
    }
}

impl LinkReader for Reader {
    fn limit(&mut self, within: Option<Duration>) -> io::Result<()> {
        self.within = within;
        Ok(())
    }

    fn close(&mut self) {
        self.end.stop_reading();
    }
}

struct Writer {
    end: LineEnd,
    role: Role,
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.end.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.role == Role::Calls {
            self.end.settle();
        }
        Ok(())
    }
}

impl LinkWriter for Writer {
    fn close(&mut self) {
        self.end.cut();
    }
}
