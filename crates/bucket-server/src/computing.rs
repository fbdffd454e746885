//! With which servers this one computes.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use oblivio_shares::host::{Host, Watcher};
use oblivio_shares::message::{ServerKey, Setup};
use oblivio_wire::keys::{PeerServer, PublicKey, SecretKey};
use oblivio_wire::tls::Caller;

use super::lines::Whose;
use super::memory::Memory;
use super::{BucketLimits, BucketServerError};

/// A volume on whose shares is computed from now on, until nobody uses it.
pub struct Computed<'v> {
    /// Whose it is.
    pub client: PublicKey,
    /// What the client calls it.
    pub name: &'v str,
    /// What this server is in each of its trees, that of the data first.
    pub trees: Vec<&'v Setup>,
}

/// Says who is told of all that passes for a volume, if anybody is. It is asked once for each time that a volume is in use: whoever cannot watch from the beginning does not watch
/// later either, because what he sees would lack its beginning.
pub type WatchVolumes = dyn Fn(&Computed<'_>) -> Option<Arc<dyn Watcher>> + Send + Sync;

/// All of them, and what all volumes share of it.
pub(super) struct Computing {
    own: PublicKey,
    others: BTreeMap<PublicKey, Arc<Other>>,
    /// Threads that send to them.
    pub(super) threads: Arc<Threads>,
    /// If volumes are watched.
    pub(super) watch: OnceLock<Box<WatchVolumes>>,
}

/// One of them.
pub(super) struct Other {
    pub(super) address: String,
    pub(super) caller: Caller,
    /// What messages call it.
    pub(super) name: String,
    /// For what it sends: its part of what all of them have.
    pub(super) memory: Memory,
}

impl Computing {
    /// Of the server that has this key, which may be in the list.
    ///
    /// # Errors
    /// When two of them have one key, or the key is of no use.
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
            let caller = Caller::new(key, other).map_err(BucketServerError::Key)?;
            let name = label.unwrap_or_else(|| address.clone());
            let memory = Memory::new(memory_bytes_max);
            let entry = Arc::new(Other { address, caller, name, memory });
            if others.insert(other, entry).is_some() {
                return Err(BucketServerError::Peer(other));
            }
        }
        let (threads, watch) = (Arc::default(), OnceLock::new());
        Ok(Self { own, others, threads, watch })
    }

    /// Has what passes for a volume watched, if it is to be. Answers whether that was asked: of a server that is not set up, nobody is asked yet.
    pub(super) fn offer(&self, host: &mut Host, whose: &Whose) -> bool {
        if host.setup().is_none() {
            return false;
        }
        let Some(watch) = self.watch.get() else { return true };
        let trees = host.setups().collect();
        let computed = Computed { client: whose.client, name: &whose.name, trees };
        if let Some(watcher) = watch(&computed) {
            host.watch(watcher);
        }
        true
    }

    /// Who may call as one of them.
    pub(super) fn keys(&self) -> impl Iterator<Item = PublicKey> {
        self.others.keys().copied()
    }

    pub(super) fn other(&self, key: ServerKey) -> Option<&Arc<Other>> {
        self.others.get(&PublicKey::of_bytes(key))
    }

    /// Whether this server can be what it is to be set up as, with those with whom it computes.
    pub(super) fn check(&self, setup: &Setup) -> Result<(), String> {
        let place = usize::from(setup.number).checked_sub(1);
        let named = place.and_then(|place| setup.keys.get(place));
        if named != Some(&self.own.bytes()) {
            return Err(format!(
                "this server is to be number {}, and that has another key than it: its own is {}",
                setup.number, self.own
            ));
        }
        let others = setup.keys.iter().enumerate().filter(|(at, _)| Some(*at) != place);
        for (_, key) in others {
            if self.other(*key).is_none() {
                let key = PublicKey::of_bytes(*key);
                return Err(format!(
                    "this server computes with no server that has {key}: add it to its list of peers"
                ));
            }
        }
        Ok(())
    }
}

/// How many threads there are that end by themselves.
#[derive(Default)]
pub(super) struct Threads {
    count: Mutex<usize>,
    ended: Condvar,
}

/// One of them, until it is dropped.
pub(super) struct Counted(Arc<Threads>);

impl Threads {
    pub(super) fn one(self: &Arc<Self>) -> Counted {
        *self.count() += 1;
        Counted(self.clone())
    }

    /// Waits until all have ended, so long at most. Answers whether they have.
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
