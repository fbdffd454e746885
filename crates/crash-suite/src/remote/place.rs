//! The server's storage of the volume, and crashes of the server program with its machine.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_bucket_server::{VolumeCatalog, VolumeStorage};
use oblivio_core::store::{BucketStore, TreeShape};
use oblivio_store::{Condition, OpenError, OpenedStore, StoreOptions};
use oblivio_testkit::crash::{CrashStore, LineEnd, World};
use oblivio_testkit::{Call, Faulty};

/// The machine's data about the volume that survive when the program dies.
#[derive(Default)]
pub(super) struct OnDisk {
    pub(super) shapes: Option<Vec<TreeShape>>,
    session: Option<u64>,
}

/// The server's ends of its connections to clients.
#[derive(Default)]
pub(super) struct LineEnds(Mutex<Vec<LineEnd>>);

impl LineEnds {
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

/// The storage of the server's only volume.
#[derive(Clone)]
pub(super) struct SingleVolumeStorage {
    pub(super) world: World,
    pub(super) disk: Arc<Mutex<OnDisk>>,
    pub(super) lines: Arc<LineEnds>,
}

impl VolumeCatalog for SingleVolumeStorage {
    fn storage(&self, _: &str) -> Box<dyn VolumeStorage> {
        Box::new(self.clone())
    }

    fn used(&self) -> io::Result<(usize, u64)> {
        Ok((usize::from(self.is_there()?), 0))
    }
}

impl VolumeStorage for SingleVolumeStorage {
    fn is_there(&self) -> io::Result<bool> {
        Ok(lock(&self.disk).shapes.is_some())
    }

    fn make_ready(&self) -> io::Result<()> {
        Ok(())
    }

    /// Stores only the shapes, because the world has already allocated the store of the volume.
    fn create(&self, shapes: &[TreeShape]) -> Result<(), OpenError> {
        lock(&self.disk).shapes = Some(shapes.to_vec());
        Ok(())
    }

    fn open(&self, _: &StoreOptions) -> Result<OpenedStore, OpenError> {
        let store = with_death_of_machine(self.world.store(), self.lines.clone());
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

/// Wraps the store of a server. Once the machine has died, a failed call of the store also cuts all
/// of the server's connections to clients.
fn with_death_of_machine(store: CrashStore, lines: Arc<LineEnds>) -> impl BucketStore + Send {
    Faulty::new(store, move |store: &mut CrashStore, call: &mut Call<'_>| {
        call.forward(store).inspect_err(|_| {
            if store.world().is_off() || store.world().store_run() != store.run() {
                lines.cut_all();
            }
        })
    })
}
