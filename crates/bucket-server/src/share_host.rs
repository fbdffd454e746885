//! Computations on the shares of one volume, for its client and for other servers.
//!
//! # Rules
//! - One request at a time. A request checks its permission when its turn comes. So a late request
//!   of an older connection is refused, and a new one waits for the current one.
//! - Messages that other servers deal bypass this order, because the current request waits for
//!   them.
//! - The host is opened on demand, and stays open while it is used.

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::Duration;

use oblivio_shares::host::{Host, Mailbox};
use oblivio_shares::message::{Refusal as NotSetUp, Setup};
use oblivio_wire::FailureKind;
use oblivio_wire::keys::PublicKey;
use rand::TryRng;
use rand::rngs::SysRng;

use super::admission::ClosableStream;
use super::peer_links::{DealSession, PeerLinks, SharedVolumeId};
use super::refusal::Refusal;
use super::service::Service;
use super::volume::ConnectionId;
use super::volume_storage::VolumeStorage;
use super::working::Progress;

/// A function that checks whether this server may take the role that a setup gives it.
pub(super) type Check<'a> = dyn Fn(&Setup) -> Result<(), NotSetUp> + 'a;

/// The arguments of a computation request of a client.
pub(super) struct ComputeRequest<'a> {
    pub(super) service: &'a Service,
    pub(super) report_progress: &'a Progress<'a>,
    pub(super) message: &'a [u8],
}

/// The interval at which a waiting request checks whether the current one has ended.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The computations on one volume. Lock order: `work` before `inlet`.
#[derive(Default)]
pub(super) struct ShareHost {
    /// Locked during a request.
    work: Mutex<Option<Work>>,
    /// The state that other connections need during a request.
    inlet: Mutex<Option<Inlet>>,
}

struct Work {
    host: Host,
    /// The links to the other servers. `None` before the setup.
    links: Option<PeerLinks>,
    /// Whether the watcher was offered this volume.
    is_offered: bool,
}

struct Inlet {
    setup: Option<Setup>,
    mailbox: Arc<Mailbox>,
    /// The connections of other servers, by server number.
    connected: BTreeMap<u8, Connected>,
}

/// A connection of another server. Dropping it ends the link.
struct Connected {
    who: ConnectionId,
    link: Box<dyn ClosableStream>,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.link.end(Shutdown::Both);
    }
}

/// A guard that blocks all requests until it is dropped.
pub(super) struct Idle<'c> {
    work: MutexGuard<'c, Option<Work>>,
    share_host: &'c ShareHost,
}

impl ShareHost {
    /// Answers a message of the client. `may_ask` checks that the client is still permitted.
    pub(super) fn compute(
        &self,
        storage: &dyn VolumeStorage,
        may_ask: impl FnOnce() -> Result<(), Refusal>,
        volume_id: &SharedVolumeId,
        ComputeRequest { service, report_progress, message }: ComputeRequest<'_>,
        check: &Check<'_>,
    ) -> Result<Vec<u8>, Refusal> {
        let mut work = self.work_when_free(report_progress);
        may_ask()?;
        let Work { host, links, is_offered } = self.opened(&mut work, storage)?;
        let computing = service.computing()?;
        if links.is_none() && host.setup().is_some() {
            *links = Some(PeerLinks::new(host, volume_id, computing));
        }
        if !*is_offered {
            *is_offered = computing.offer(host, volume_id);
        }
        links.iter().for_each(PeerLinks::begin);
        let is_given_up = AtomicBool::new(false);
        let deal_session =
            DealSession { links: links.as_ref(), service, report_progress, is_given_up };
        let answer = host.answer(message, &deal_session, check);
        links.iter().for_each(PeerLinks::end);
        if deal_session.is_given_up.into_inner() {
            // Servers that wait for this one notice the end of their link. The next request uses
            // new links.
            *links = None;
        }
        if let Some(inlet) = &mut *self.inlet()
            && inlet.setup.is_none()
        {
            inlet.setup = host.setup().cloned();
        }
        Ok(answer)
    }

    /// Admits a connection of another server, which replaces the server's previous one. Returns the
    /// server's number.
    pub(super) fn connect(
        &self,
        storage: &dyn VolumeStorage,
        peer: PublicKey,
        who: ConnectionId,
        link: Box<dyn ClosableStream>,
    ) -> Result<u8, Refusal> {
        if self.inlet().as_ref().is_none_or(|inlet| inlet.setup.is_none()) {
            // The setup may be running right now.
            self.opened(&mut self.work(), storage)?;
        }
        let mut inlet = self.inlet();
        let not_set_up = || {
            let message =
                "this server has no shares of the volume yet; its client must set them up first";
            Refusal::new(FailureKind::Refused, message)
        };
        let inlet = inlet.as_mut().ok_or_else(not_set_up)?;
        let setup = inlet.setup.as_ref().ok_or_else(not_set_up)?;
        let number = number_of(setup, peer).ok_or_else(|| {
            let message = "the volume is shared with other servers, not with the connecting one";
            Refusal::new(FailureKind::Refused, message)
        })?;
        inlet.connected.insert(number, Connected { who, link });
        inlet.mailbox.record_new_link(number);
        Ok(number)
    }

    /// Accepts a message that server `number` deals.
    pub(super) fn take(
        &self,
        number: u8,
        who: ConnectionId,
        message: &[u8],
    ) -> Result<(), Refusal> {
        let inlet = self.inlet();
        let inlet_of = inlet.as_ref().filter(|inlet| inlet.has(number, who));
        let mailbox = inlet_of.map(|inlet| inlet.mailbox.clone());
        drop(inlet);
        let mailbox = mailbox.ok_or_else(|| {
            let message = "the connection was replaced, or the volume is not open; connect again";
            Refusal::new(FailureKind::Failed, message)
        })?;
        mailbox
            .take(number, message)
            .map_err(|_| Refusal::invalid("unexpected message of another server"))
    }

    /// Notes the end of a connection of server `number`. Returns whether it was the current one.
    pub(super) fn disconnect(&self, number: u8, who: ConnectionId) -> bool {
        let mut inlet = self.inlet();
        let Some(inlet) = inlet.as_mut().filter(|inlet| inlet.has(number, who)) else {
            return false;
        };
        inlet.connected.remove(&number);
        inlet.mailbox.record_lost_link(number);
        true
    }

    /// Aborts all waiting for other servers, because this server must stop.
    pub(super) fn give_up(&self) {
        if let Some(Inlet { setup: Some(setup), mailbox, .. }) = &*self.inlet() {
            setup.keys.iter().zip(1..).for_each(|(_, number)| mailbox.record_lost_link(number));
        }
    }

    /// Blocks further requests, without waiting. `None` if a request is running.
    pub(super) fn if_idle(&self) -> Option<Idle<'_>> {
        self.work_if_free().map(|work| Idle { work, share_host: self })
    }

    /// Whether the host is open.
    pub(super) fn is_open(&self) -> bool {
        self.inlet().is_some()
    }

    /// Locks the host for a request. After a panic, drops the host first, so that it is opened
    /// again.
    fn work(&self) -> MutexGuard<'_, Option<Work>> {
        self.work.lock().unwrap_or_else(|poisoned| {
            self.work.clear_poison();
            let mut work = poisoned.into_inner();
            *work = None;
            *self.inlet() = None;
            work
        })
    }

    fn work_if_free(&self) -> Option<MutexGuard<'_, Option<Work>>> {
        match self.work.try_lock() {
            Ok(work) => Some(work),
            Err(TryLockError::Poisoned(poisoned)) => {
                drop(poisoned);
                Some(self.work())
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Locks the host, after waiting for the request of an older connection. Calls
    /// `report_progress` while it waits.
    fn work_when_free(&self, report_progress: &Progress<'_>) -> MutexGuard<'_, Option<Work>> {
        loop {
            if let Some(work) = self.work_if_free() {
                return work;
            }
            thread::sleep(CHECK_INTERVAL);
            report_progress();
        }
    }

    fn inlet(&self) -> MutexGuard<'_, Option<Inlet>> {
        self.inlet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened<'w>(
        &self,
        work: &'w mut Option<Work>,
        storage: &dyn VolumeStorage,
    ) -> Result<&'w mut Work, Refusal> {
        if work.is_none() {
            let host = open_host(storage)?;
            let inlet = Inlet {
                setup: host.setup().cloned(),
                mailbox: host.mailbox(),
                connected: BTreeMap::new(),
            };
            *self.inlet() = Some(inlet);
            *work = Some(Work { host, links: None, is_offered: false });
        }
        work.as_mut().ok_or_else(Refusal::computes_nothing)
    }
}

impl Idle<'_> {
    /// Whether another server is connected.
    pub(super) fn has_peers(&self) -> bool {
        self.share_host.inlet().as_ref().is_some_and(|inlet| !inlet.connected.is_empty())
    }

    /// Closes the host, and ends the connections of other servers.
    pub(super) fn close(&mut self) {
        *self.work = None;
        *self.share_host.inlet() = None;
    }
}

impl Inlet {
    fn has(&self, number: u8, who: ConnectionId) -> bool {
        self.connected.get(&number).is_some_and(|connected| connected.who == who)
    }
}

fn number_of(setup: &Setup, peer: PublicKey) -> Option<u8> {
    let index = setup.keys.iter().position(|key| *key == peer.bytes())?;
    u8::try_from(index + 1).ok().filter(|number| *number != setup.number)
}

fn open_host(storage: &dyn VolumeStorage) -> Result<Host, Refusal> {
    let folder = storage.shares().ok_or_else(Refusal::computes_nothing)?;
    let draw_seed = || {
        let mut seed = [0; 32];
        SysRng.try_fill_bytes(&mut seed).map_err(io::Error::other)?;
        Ok(seed)
    };
    Host::open(folder, draw_seed).map_err(|cause| {
        if cause.kind() == io::ErrorKind::Unsupported {
            return Refusal::new(FailureKind::UnknownVersion, cause.to_string());
        }
        let refusal = Refusal::io("open the shares of a volume", &cause);
        match refusal.kind {
            FailureKind::Damaged => {
                let message = format!(
                    "the server's shares of the volume are damaged ({cause}); restore its folder, \
                     or rebuild the shares with `oblivio shares repair`"
                );
                Refusal { message, ..refusal }
            }
            _ => refusal,
        }
    })
}

#[cfg(test)]
mod tests {
    use oblivio_shares::message::DealtShares;
    use oblivio_shares::sharing::Parties;
    use oblivio_shares::tree::{Preset, Tree};

    use super::*;
    use crate::volume_storage::{ClientFolder, VolumeCatalog};

    struct Nothing;

    impl ClosableStream for Nothing {
        fn end(&self, _: Shutdown) {}
    }

    #[test]
    fn a_server_is_known_by_its_key_and_deals_only_over_its_latest_connection() {
        let keys: Vec<_> = (1..=3).map(|number| [number; 32]).collect();
        let parties = Parties::new(3, 1).unwrap();
        let tree = Tree::new(1, Preset { slots: 4, accesses: 2 }).unwrap();
        let setup = Setup { number: 2, parties, tree, block_bytes: 16, metadata_bytes: 0, keys };
        let inlet =
            Inlet { setup: Some(setup), mailbox: Arc::default(), connected: BTreeMap::new() };
        let share_host = ShareHost { inlet: Mutex::new(Some(inlet)), ..ShareHost::default() };
        let storage = ClientFolder("nowhere".into()).storage("disk");
        let connect = |key: u8, who| {
            let key = PublicKey::from_bytes([key; 32]);
            share_host.connect(&*storage, key, who, Box::new(Nothing)).ok()
        };
        // This server itself, and a server that is not part of the volume.
        assert_eq!([2, 4].map(|key| connect(key, 1)), [None; 2]);
        assert_eq!(
            [(1, 2), (3, 3), (3, 4)].map(|(key, who)| connect(key, who)),
            [1, 3, 3].map(Some)
        );
        let dealt =
            DealtShares { number: 0, attempt: 1, tile: 0, level: 1, shares: Vec::new() }.encode();
        let takes = |number, who| share_host.take(number, who, &dealt).is_ok();
        assert!(takes(1, 2) && takes(3, 4));
        assert!(!takes(3, 3) && !takes(3, 2) && !takes(2, 1));
        // The end of an older connection does not end the newer one.
        share_host.disconnect(3, 3);
        assert!(takes(3, 4));
        share_host.disconnect(3, 4);
        assert!(!takes(3, 4));
    }
}
