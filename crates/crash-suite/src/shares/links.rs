//! The links on which servers deal shares to each other. The world can cut them.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oblivio_shares::host::{Mailbox, Peers};
use oblivio_shares::message::Dealt;
use oblivio_shares::sharing::SERVERS_MAX;
use oblivio_testkit::crash::{Fate, World};

use super::heard::{Dealer, Heard};

/// The links between all servers.
pub(super) struct Links {
    world: World,
    heard: Arc<Mutex<Heard>>,
    /// Run and mailbox of each running program, by server number.
    mailboxes: Mutex<BTreeMap<u8, (u64, Arc<Mailbox>)>>,
}

impl Links {
    pub(super) fn new(world: World, heard: Arc<Mutex<Heard>>) -> Self {
        Self { world, heard, mailboxes: Mutex::default() }
    }

    fn mailboxes(&self) -> MutexGuard<'_, BTreeMap<u8, (u64, Arc<Mailbox>)>> {
        lock(&self.mailboxes)
    }

    /// Registers a program that has started in run `run` of its machine.
    pub(super) fn start(&self, server: u8, run: u64, mailbox: Arc<Mailbox>) {
        // A link is set up by the first message on it.
        (1..=SERVERS_MAX).for_each(|other| mailbox.is_lost(other));
        self.mailboxes().insert(server, (run, mailbox));
    }

    /// Ends the links from a server, and also those to it if it has died.
    pub(super) fn end(&self, server: u8) {
        let mailboxes = self.mailboxes();
        let is_dead = |run| self.world.server_run(server) != run;
        for (other, (run, mailbox)) in &*mailboxes {
            if *other != server {
                mailbox.is_lost(server);
            } else if is_dead(*run) {
                (1..=SERVERS_MAX).for_each(|other| mailbox.is_lost(other));
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

/// The peers of one server.
pub(super) struct Others<'l> {
    pub(super) links: &'l Links,
    pub(super) dealer: Dealer,
    /// The run of its machine.
    pub(super) run: u64,
}

impl Peers for Others<'_> {
    fn send(&self, to: u8, _lane: usize, dealt: &[u8]) -> io::Result<()> {
        let Self { links, dealer, run } = self;
        let from = dealer.server;
        if links.world.server_run(from) != *run {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let decoded = Dealt::decode(dealt).map_err(io::Error::other)?;
        lock(&links.heard).dealt(*dealer, to, &decoded);
        match links.world.message(from, to) {
            Fate::Arrives => return links.deliver(from, to, dealt),
            Fate::ArrivesLast => links.deliver(from, to, dealt)?,
            Fate::Lost => (),
            Fate::Kills => {
                links.end(to);
                return Ok(());
            }
        }
        if let Some((_, mailbox)) = links.mailboxes().get(&to) {
            mailbox.is_lost(from);
        }
        Ok(())
    }

    fn give_up(&self) {
        for (_, mailbox) in self.links.mailboxes().values() {
            mailbox.is_lost(self.dealer.server);
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
