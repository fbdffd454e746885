//! Where the volume lies on the machine of the server, and what its program does when that dies.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_bucket_server::{Place, Shelving};
use oblivio_core::StoreError;
use oblivio_core::store::{BucketStore, Capabilities, Fill, Frames, Piece, TreeId, TreeShape};
use oblivio_store::{Condition, OpenError, OpenedStore, StoreOptions};
use oblivio_testkit::crash::{CrashStore, LineEnd, World};

/// What the machine knows of the volume that outlives the program.
#[derive(Default)]
pub(super) struct OnDisk {
    pub(super) shapes: Option<Vec<TreeShape>>,
    session: Option<u64>,
}

/// The ends of the program of the lines to it.
#[derive(Default)]
pub(super) struct Lines(Mutex<Vec<LineEnd>>);

impl Lines {
    pub(super) fn all(&self) -> MutexGuard<'_, Vec<LineEnd>> {
        lock(&self.0)
    }

    pub(super) fn cut_all(&self) {
        self.all().drain(..).for_each(|end| end.cut());
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The only one.
#[derive(Clone)]
pub(super) struct OnePlace {
    pub(super) world: World,
    pub(super) disk: Arc<Mutex<OnDisk>>,
    pub(super) lines: Arc<Lines>,
}

impl Shelving for OnePlace {
    fn place(&self, _: &str) -> Box<dyn Place> {
        Box::new(self.clone())
    }

    fn used(&self) -> io::Result<(usize, u64)> {
        Ok((usize::from(self.is_there()?), 0))
    }
}

impl Place for OnePlace {
    fn is_there(&self) -> io::Result<bool> {
        Ok(lock(&self.disk).shapes.is_some())
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

#[deny(clippy::missing_trait_methods)]
impl BucketStore for Mortal {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.store.shape(tree)
    }

    fn capabilities(&self) -> Capabilities {
        self.store.capabilities()
    }

    fn prefetch(&mut self, pieces: &[Piece]) {
        self.store.prefetch(pieces);
    }

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        let on_error = self.on_error();
        self.store.read(pieces).inspect_err(|_| on_error())
    }

    fn read_candidates(
        &mut self,
        pieces: &[Piece],
        each: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<(), StoreError> {
        let on_error = self.on_error();
        self.store.read_candidates(pieces, each).inspect_err(|_| on_error())
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
