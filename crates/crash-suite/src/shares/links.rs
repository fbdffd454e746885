//! The links on which servers deal shares to each other. The world can cut them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_shares::host::{Mailbox, Peers};
use oblivio_shares::message::DealtShares;
use oblivio_shares::sharing::SERVERS_MAX;
use oblivio_testkit::crash::{Delivery, World};

use super::sharing_log::{Dealer, SharingLog};

/// The links between all servers.
pub(super) struct Links {
    world: World,
    sharing_log: Arc<Mutex<SharingLog>>,
    /// The mailbox of each running program, and the run of its machine, by server number.
    mailboxes: Mutex<BTreeMap<u8, (u64, Arc<Mailbox>)>>,
}

impl Links {
    pub(super) fn new(world: World, sharing_log: Arc<Mutex<SharingLog>>) -> Self {
        Self { world, sharing_log, mailboxes: Mutex::default() }
    }

    fn mailboxes(&self) -> MutexGuard<'_, BTreeMap<u8, (u64, Arc<Mailbox>)>> {
        lock(&self.mailboxes)
    }

    /// Registers a program that has started in run number `run` of its machine.
    pub(super) fn start(&self, server: u8, run: u64, mailbox: Arc<Mailbox>) {
        // A link is set up by the first message on it.
        (1..=SERVERS_MAX).for_each(|other| mailbox.record_lost_link(other));
        self.mailboxes().insert(server, (run, mailbox));
    }

    /// Ends all links that start at a server. If the server has died, also ends the links that lead
    /// to it.
    pub(super) fn end(&self, server: u8) {
        let mailboxes = self.mailboxes();
        let is_dead = |run| self.world.server_run(server) != run;
        for (other, (run, mailbox)) in &*mailboxes {
            if *other != server {
                mailbox.record_lost_link(server);
            } else if is_dead(*run) {
                (1..=SERVERS_MAX).for_each(|other| mailbox.record_lost_link(other));
            }
        }
    }

    fn deliver(&self, from: u8, to: u8, dealt: &[u8]) -> io::Result<()> {
        let mailbox = self.mailboxes().get(&to).cloned();
        let mailbox = mailbox.filter(|(run, _)| *run == self.world.server_run(to));
        let (_, mailbox) = mailbox.ok_or(io::ErrorKind::ConnectionRefused)?;
        mailbox
            .take(from, dealt)
            .map_err(|_| io::Error::other("the mailbox refused the dealt shares"))
    }
}

/// The connections of one server to its peers.
pub(super) struct WorldPeers<'l> {
    pub(super) links: &'l Links,
    pub(super) dealer: Dealer,
    /// The number of the run of the server's machine.
    pub(super) run: u64,
}

impl Peers for WorldPeers<'_> {
    fn send(&self, to: u8, _lane: usize, dealt: &[u8]) -> io::Result<()> {
        let Self { links, dealer, run } = self;
        let from = dealer.server;
        if links.world.server_run(from) != *run {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let decoded = DealtShares::decode(dealt).map_err(io::Error::other)?;
        lock(&links.sharing_log).record_dealt(*dealer, to, &decoded);
        match links.world.message(from, to) {
            Delivery::Arrives => return links.deliver(from, to, dealt),
            Delivery::ArrivesLast => links.deliver(from, to, dealt)?,
            Delivery::Lost => (),
            Delivery::Kills => {
                links.end(to);
                return Ok(());
            }
        }
        if let Some((_, mailbox)) = links.mailboxes().get(&to) {
            mailbox.record_lost_link(from);
        }
        Ok(())
    }

    fn give_up(&self) {
        for (_, mailbox) in self.links.mailboxes().values() {
            mailbox.record_lost_link(self.dealer.server);
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
