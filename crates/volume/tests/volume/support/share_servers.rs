//! A store of share servers with files in memory, and the records of a volume.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread;

use oblivio_core::{StoreError, StoreErrorKind};
use oblivio_shares::host::{Host, Mailbox, Peers};
use oblivio_shares::message::{Answer, Request};
use oblivio_shares::servers::{AnyServers, Patience, ServerAnswer, ShareServers};
use oblivio_testkit::crash::{CrashStore, World};
use oblivio_testkit::{Call, Faulty, ServersWithRecords, ShareDisk};

/// The links of one server to its peers, which deliver at once.
struct Others {
    from: u8,
    mailboxes: Vec<Arc<Mailbox>>,
}

impl Peers for Others {
    fn send(&self, to: u8, _lane: usize, dealt: &[u8]) -> io::Result<()> {
        let mailbox = &self.mailboxes[usize::from(to) - 1];
        mailbox.take(self.from, dealt).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn give_up(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.record_lost_link(self.from));
    }
}

/// The servers. Clones share them.
#[derive(Clone)]
pub(crate) struct Hosts {
    hosts: Arc<Mutex<Vec<Host>>>,
    folders: Vec<ShareDisk>,
    /// The value that each server adds to each byte of its selections.
    added: Arc<Mutex<Vec<u8>>>,
}

impl Hosts {
    pub(crate) fn new(count: u8) -> Self {
        let folders: Vec<_> = (0..count).map(|_| ShareDisk::default()).collect();
        let opened = (0..count).zip(&folders);
        let hosts =
            opened.map(|(i, it)| Host::open(Box::new(it.clone()), move || Ok([i; 32])).unwrap());
        let hosts = Arc::new(Mutex::new(hosts.collect()));
        Self { hosts, folders, added: Arc::new(Mutex::new(vec![0; count.into()])) }
    }

    /// Replaces server `i` with an empty one.
    pub(crate) fn lose(&self, i: usize) {
        let new = Host::open(Box::new(ShareDisk::default()), || Ok([9; 32])).unwrap();
        self.hosts.lock().unwrap()[i] = new;
    }

    /// Makes server `i` add this value to each byte of its selections from now on.
    pub(crate) fn adds(&self, i: usize, added: u8) {
        self.added.lock().unwrap()[i] = added;
    }

    /// XORs `added` into every byte of the leaves on all servers. The effect is that of an eviction
    /// in which one dealer adds a multiple of this value to its product.
    pub(crate) fn spoil_leaves(&self, added: u8) {
        for folder in &self.folders {
            let leaves: Vec<_> = folder.content("leaves").iter().map(|byte| byte ^ added).collect();
            folder.overwrite("leaves", 0, &leaves);
        }
    }
}

/// A server store that holds a volume's `records`. With `other`, a read that returns the values of
/// several servers also returns these bytes as a further value: before the honest value if the flag
/// is set, otherwise after it.
pub(crate) fn store(
    hosts: Hosts,
    records: CrashStore,
    other: Option<(Vec<u8>, bool)>,
) -> AnyServers {
    let servers = OnServers { world: records.world().clone(), hosts };
    let add_other = move |records: &mut CrashStore, call: &mut Call<'_>| {
        call.forward(records)?;
        let Some((other, is_first)) = other.as_ref().filter(|_| call.has_candidates()) else {
            return Ok(());
        };
        let honest = std::mem::take(call.answer);
        for (i, span) in honest.spans.iter().enumerate() {
            let value = &honest.bytes[span.range()];
            let mut values = vec![value];
            if value.len() == other.len() {
                values.insert(usize::from(!is_first), other);
            }
            values.iter().for_each(|value| call.answer.push(i, value));
        }
        Ok(())
    };
    Box::new(ServersWithRecords { records: Faulty::new(records, add_other), servers })
}

/// Servers that answer until the power of the [`World`] fails.
struct OnServers {
    world: World,
    hosts: Hosts,
}

/// The server's answer, with `added` if the answer is a selection.
fn with(added: u8, request: &Request, answer: Vec<u8>) -> Vec<u8> {
    match (request, Answer::decode(&answer)) {
        (Request::Select { .. }, Ok(Answer::Share(mut share))) => {
            share.iter_mut().for_each(|byte| *byte ^= added);
            Answer::Share(share).encode()
        }
        _ => answer,
    }
}

impl ShareServers for OnServers {
    fn count(&self) -> usize {
        self.hosts.hosts.lock().unwrap().len()
    }

    fn ask(
        &mut self,
        tree: u8,
        requests: Vec<Option<Request>>,
        _: Patience,
    ) -> Vec<Option<ServerAnswer>> {
        // Answers like a store that cannot reach its servers.
        if self.world.is_off() {
            let gone = || Err(StoreError::new(StoreErrorKind::Unreachable, "it is off"));
            return requests.into_iter().map(|request| request.map(|_| gone())).collect();
        }
        let mut hosts = self.hosts.hosts.lock().unwrap();
        let mailboxes: Vec<_> = hosts.iter().map(Host::mailbox).collect();
        let added = self.hosts.added.lock().unwrap().clone();
        thread::scope(|scope| {
            let addressed = (1..).zip(hosts.iter_mut()).zip(requests);
            let threads: Vec<_> = addressed
                .zip(added)
                .map(|(((from, host), request), added)| {
                    let others = Others { from, mailboxes: mailboxes.clone() };
                    scope.spawn(move || {
                        let request = request?;
                        let message = request.encode_in(tree);
                        let answer = host.answer(&message, &others, &|_| Ok(()));
                        Some(Ok(with(added, &request, answer)))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    fn begin_retries(&mut self) {}

    fn wait_for_missing(&mut self) {}

    fn wait_for_links(&mut self, _: u32) -> bool {
        false
    }

    fn key(&self, server: usize) -> [u8; 32] {
        [server as u8; 32]
    }

    fn name(&self, server: usize) -> String {
        format!("server {}", server + 1)
    }
}
