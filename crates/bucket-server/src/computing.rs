//! The other share servers with which this one computes.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use oblivio_shares::host::{Host, Watcher};
use oblivio_shares::message::{ServerKey, Setup};
use oblivio_wire::keys::{PeerServer, PublicKey, SecretKey};
use oblivio_wire::tls::ClientTls;

use super::memory::Memory;
use super::peer_links::SharedVolumeId;
use super::{BucketLimits, BucketServerError};

/// A period in which a volume with shares is in use. It ends when no connection uses the volume.
pub struct Computed<'v> {
    /// The client that owns the volume.
    pub client: PublicKey,
    /// The client's name for the volume.
    pub name: &'v str,
    /// This server's setup of each tree of the volume, the data tree first.
    pub trees: Vec<&'v Setup>,
}

/// Chooses the watcher of a volume, if any. Called once for each period of use: a watcher that
/// misses the beginning could not record a complete view later.
pub type WatchVolumes = dyn Fn(&Computed<'_>) -> Option<Arc<dyn Watcher>> + Send + Sync;

/// All other share servers, and the state that all volumes share.
pub(super) struct Computing {
    own: PublicKey,
    others: BTreeMap<PublicKey, Arc<Other>>,
    /// The threads that send messages to the other servers.
    pub(super) threads: Arc<Threads>,
    /// Chooses watchers of volumes. Unset if no volume is watched.
    pub(super) watch: OnceLock<Box<WatchVolumes>>,
}

/// One other share server.
pub(super) struct Other {
    pub(super) address: String,
    pub(super) tls: ClientTls,
    /// The server's name in error messages.
    pub(super) name: String,
    /// The memory budget for messages from this server: an equal part of the total.
    pub(super) memory: Memory,
}

impl Computing {
    /// Creates the state of the server with `key`. `peers` may contain this server.
    ///
    /// # Errors
    /// If two servers have the same key, or a key is unusable.
    pub(super) fn new(
        key: &SecretKey,
        peers: Vec<PeerServer>,
        limits: &BucketLimits,
    ) -> Result<Self, BucketServerError> {
        let own = key.public();
        let peers: Vec<_> = peers.into_iter().filter(|peer| peer.key != own).collect();
        let memory_bytes_max = limits.peer_memory_bytes_max / peers.len().max(1) as u64;
        let mut others = BTreeMap::new();
        for PeerServer { key: other, address, label } in peers {
            let tls = ClientTls::new(key, other).map_err(BucketServerError::Key)?;
            let name = label.unwrap_or_else(|| address.clone());
            let memory = Memory::new(memory_bytes_max);
            let entry = Arc::new(Other { address, tls, name, memory });
            if others.insert(other, entry).is_some() {
                return Err(BucketServerError::Peer(other));
            }
        }
        let (threads, watch) = (Arc::default(), OnceLock::new());
        Ok(Self { own, others, threads, watch })
    }

    /// Offers a volume to the watcher. Returns false before the setup, when there is nothing to
    /// watch yet.
    pub(super) fn offer(&self, host: &mut Host, volume_id: &SharedVolumeId) -> bool {
        if host.setup().is_none() {
            return false;
        }
        let Some(watch) = self.watch.get() else { return true };
        let trees = host.setups().collect();
        let computed = Computed { client: volume_id.client, name: &volume_id.name, trees };
        if let Some(watcher) = watch(&computed) {
            host.watch(watcher);
        }
        true
    }

    /// The keys of the other share servers.
    pub(super) fn keys(&self) -> impl Iterator<Item = PublicKey> {
        self.others.keys().copied()
    }

    pub(super) fn other(&self, key: ServerKey) -> Option<&Arc<Other>> {
        self.others.get(&PublicKey::from_bytes(key))
    }

    /// Checks that the setup has this server's key under the number that it gives this server, and
    /// that this server knows all other servers of the volume.
    pub(super) fn check(&self, setup: &Setup) -> Result<(), String> {
        let index = usize::from(setup.number).checked_sub(1);
        let named = index.and_then(|index| setup.keys.get(index));
        if named != Some(&self.own.bytes()) {
            return Err(format!(
                "this server would be number {}, but its key is {}, and the setup names another",
                setup.number, self.own
            ));
        }
        let others = setup.keys.iter().enumerate().filter(|(at, _)| Some(*at) != index);
        for (_, key) in others {
            if self.other(*key).is_none() {
                let key = PublicKey::from_bytes(*key);
                return Err(format!(
                    "this server knows no other server with the key {key}; add it to its peers file"
                ));
            }
        }
        Ok(())
    }
}

/// Counts running threads, which end by themselves.
#[derive(Default)]
pub(super) struct Threads {
    count: Mutex<usize>,
    ended: Condvar,
}

/// A counted thread. No longer counted when dropped.
pub(super) struct Counted(Arc<Threads>);

impl Threads {
    pub(super) fn register(self: &Arc<Self>) -> Counted {
        *self.count() += 1;
        Counted(self.clone())
    }

    /// Waits, for at most `within`, until all threads have ended. Returns whether they have.
    pub(super) fn wait_for_the_end(&self, within: Duration) -> bool {
        let wait = self.ended.wait_timeout_while(self.count(), within, |count| *count > 0);
        !wait.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        *self.0.count() -= 1;
        self.0.ended.notify_all();
    }
}
