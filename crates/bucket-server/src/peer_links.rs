//! Messages from this server to the other servers of a volume.
//!
//! Each other server has a peer link: a short queue, and a thread that sends the queued messages,
//! so that the caller does not wait for slow servers. A peer link connects before the first
//! message. If the link is lost, it reconnects: with one attempt, or during a request with repeated
//! attempts for at most [`RECONNECT_WITHIN`]. If that fails, the next `send` returns the error.
//!
//! Messages sent into a lost link may be missing, and the other server would wait for them. So
//! during a request that deals shares, the peer link watches its link. If the link is lost, it
//! sends possibly missing messages again over a new one.

mod outgoing_link;
mod recent;

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use oblivio_shares::host::{Host, Peers};
use oblivio_shares::message::ServerKey;
use oblivio_wire::keys::PublicKey;
use oblivio_wire::link::MonotonicTime;
use oblivio_wire::message::VERSION;
use oblivio_wire::tls::connect;
use oblivio_wire::{Answer, Request};

use outgoing_link::OutgoingLink;
use recent::{DealtMessage, Recent};

use super::computing::{Computing, Other, Threads};
use super::service::Service;
use super::working::Progress;

/// The maximum length of the queue of a peer link.
const WAITING_MAX: usize = 4;

/// Time without progress after which a server counts as unreachable.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Timeout of an attempt to connect to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(4);

/// Time for reconnecting a server whose link was lost during a request. Messages that the server
/// may lack are stored this long after the request. Other servers wait a little longer for the
/// link.
const RECONNECT_WITHIN: Duration = Duration::from_millis(1500);

/// The pause between attempts to reconnect.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Time for which a thread may still connect or send after its peer link was dropped. A thread that
/// takes longer is interrupted.
const DONE_WITHIN: Duration = Duration::from_millis(50);

/// The interval at which a waiting thread checks whether the server must stop.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Identifies a volume to other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SharedVolumeId {
    pub(super) client: PublicKey,
    pub(super) name: String,
}

/// The peer links to all other servers of a volume, in the order of server numbers.
pub(super) struct PeerLinks {
    links: Vec<Option<PeerLink>>,
}

impl PeerLinks {
    /// Creates the peer links. A link is `None` for this server itself, and for servers that this
    /// one no longer knows.
    pub(super) fn new(host: &Host, volume_id: &SharedVolumeId, computing: &Computing) -> Self {
        let peer_link = |(key, number): (&ServerKey, u8)| {
            let (other, mailbox) = (computing.other(*key)?, host.mailbox());
            // A server that cannot be reached is probably not dealing either.
            let is_lost = Box::new(move || mailbox.record_lost_link(number));
            Some(PeerLink::new(
                other.clone(),
                volume_id.clone(),
                is_lost,
                computing.threads.clone(),
            ))
        };
        let keys = host.setup().into_iter().flat_map(|setup| &setup.keys);
        Self { links: keys.zip(1..).map(peer_link).collect() }
    }

    /// Begins a request: earlier errors are discarded. Queued messages stay, because other servers
    /// may wait for them.
    pub(super) fn begin(&self) {
        self.links.iter().flatten().for_each(PeerLink::begin);
    }

    /// Ends a request on this server. Other servers may still lack the latest messages.
    pub(super) fn end(&self) {
        self.links.iter().flatten().for_each(PeerLink::end);
    }
}

/// The messages that this server sends during one request.
pub(super) struct DealSession<'a> {
    /// The peer links of the volume. `None` before the shares are set up.
    pub(super) links: Option<&'a PeerLinks>,
    pub(super) service: &'a Service,
    pub(super) report_progress: &'a Progress<'a>,
    /// Set when an eviction fails on this server.
    pub(super) is_given_up: AtomicBool,
}

impl Peers for DealSession<'_> {
    fn send(&self, to: u8, lane: usize, dealt: &[u8]) -> io::Result<()> {
        let index = usize::from(to).checked_sub(1);
        let peer_link = index.and_then(|index| self.links?.links.get(index)?.as_ref());
        let peer_link = peer_link.ok_or_else(|| {
            let message = format!("server {to} is not in this server's peers file");
            io::Error::new(ErrorKind::NotFound, message)
        })?;
        peer_link
            .send(lane, dealt, &|| self.service.admission.is_stopped())
            .map_err(|error| io::Error::new(error.kind(), format!("server {to}: {error}")))?;
        self.service.metrics.dealt_out.record(dealt.len());
        Ok(())
    }

    fn report_progress(&self) {
        (self.report_progress)();
    }

    fn connect(&self) -> io::Result<()> {
        let links = self.links.map_or(&[][..], |links| &links.links);
        // One of them is this server itself.
        if links.iter().filter(|peer_link| peer_link.is_none()).count() > 1 {
            let message = "a server of the volume is not in this server's peers file";
            return Err(io::Error::new(ErrorKind::NotFound, message));
        }
        let links = || {
            (1..).zip(links).filter_map(|(number, peer_link)| Some((number, peer_link.as_ref()?)))
        };
        let is_stopped = || self.service.admission.is_stopped();
        let named = |(number, named): (u8, io::Result<()>)| {
            named.map_err(|error| io::Error::new(error.kind(), format!("server {number}: {error}")))
        };
        // Start all connections before waiting for any.
        links().map(|(number, peer_link)| (number, peer_link.connect())).try_for_each(named)?;
        links()
            .map(|(number, peer_link)| (number, peer_link.shared.wait(&is_stopped)))
            .try_for_each(named)
    }

    fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }
}

/// The peer link to one other server.
struct PeerLink {
    shared: Arc<Shared>,
    /// The thread that sends messages. Started with the first message or request for a link.
    thread: OnceLock<io::Result<()>>,
    threads: Arc<Threads>,
}

/// The state that a peer link and its thread share.
struct Shared {
    other: Arc<Other>,
    volume_id: SharedVolumeId,
    /// A function that is called if the server cannot be reached.
    is_lost: Box<dyn Fn() + Send + Sync>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    /// Messages that are not sent yet. `None` only requests a link.
    messages: VecDeque<Option<DealtMessage>>,
    /// Whether a message is being sent.
    is_carried: bool,
    /// The time at which the latest message was sent, or at which a message was put into the empty
    /// queue, whichever is later.
    moved: MonotonicTime,
    /// Sent messages that may be missing if the link is lost. Stored during a request and for
    /// [`RECONNECT_WITHIN`] after it.
    recent: Option<Recent>,
    /// The time until which `recent` is stored. Set after the request.
    recent_until: Option<MonotonicTime>,
    /// The reason why the latest message was not sent.
    failure: Option<io::Error>,
    /// Whether a failure of the current request has been logged.
    is_logged: bool,
    /// The stream of the current link, to interrupt the thread.
    stream: Option<TcpStream>,
    is_over: bool,
}

impl Queue {
    /// Whether the other server may lack messages if the link is lost.
    fn may_lack_something(&self) -> bool {
        self.recent.as_ref().is_some_and(|recent| !recent.is_empty())
    }
}

impl PeerLink {
    fn new(
        other: Arc<Other>,
        volume_id: SharedVolumeId,
        is_lost: Box<dyn Fn() + Send + Sync>,
        threads: Arc<Threads>,
    ) -> Self {
        let queue = Queue {
            messages: VecDeque::new(),
            is_carried: false,
            moved: MonotonicTime::now(),
            recent: None,
            recent_until: None,
            failure: None,
            is_logged: false,
            stream: None,
            is_over: false,
        };
        let (queue, changed) = (Mutex::new(queue), Condvar::new());
        let shared = Shared { other, volume_id, is_lost, queue, changed };
        Self { shared: Arc::new(shared), thread: OnceLock::new(), threads }
    }

    fn begin(&self) {
        let mut queue = self.shared.queue();
        queue.failure = None;
        queue.is_logged = false;
        (queue.recent, queue.recent_until) = (Some(Recent::default()), None);
    }

    fn end(&self) {
        self.shared.queue().recent_until = Some(MonotonicTime::now().after(RECONNECT_WITHIN));
    }

    /// Queues a message. Waits while the queue is full. Returns an earlier failure, if there is
    /// one, and an error if the queue makes no progress for [`SEND_TIMEOUT`] or the server must
    /// stop.
    fn send(&self, lane: usize, message: &[u8], is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
        self.start()?;
        self.shared.put(Some(DealtMessage { lane, message: message.into() }), is_stopped)
    }

    /// Requests a link to the server, if there is none. Does not wait for it.
    fn connect(&self) -> io::Result<()> {
        self.start()?;
        self.shared.put(None, &|| false)
    }

    fn start(&self) -> io::Result<()> {
        let started = self.thread.get_or_init(|| {
            let (shared, counted) = (self.shared.clone(), self.threads.register());
            let carry = move || {
                shared.carry();
                drop(counted);
            };
            thread::Builder::new().name("deals".into()).spawn(carry).map(drop)
        });
        started.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string())).copied()
    }
}

impl Drop for PeerLink {
    /// Ends the thread without waiting for it. Interrupts the link only if the thread is blocked;
    /// otherwise the thread closes the link cleanly.
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_over = true;
        self.shared.changed.notify_all();
        let is_busy = |queue: &mut Queue| queue.is_carried;
        let wait = self.shared.changed.wait_timeout_while(queue, DONE_WITHIN, is_busy);
        let queue = wait.unwrap_or_else(PoisonError::into_inner).0;
        if let Some(stream) = queue.stream.as_ref().filter(|_| queue.is_carried) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, message: Option<DealtMessage>, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
        let mut queue = self.queue();
        loop {
            if let Some(error) = queue.failure.take() {
                return Err(self.unreached(&error));
            }
            if is_stopped() {
                return Err(ErrorKind::Interrupted.into());
            }
            if queue.messages.is_empty() {
                queue.moved = MonotonicTime::now();
            }
            if queue.messages.len() < WAITING_MAX {
                queue.messages.push_back(message);
                self.changed.notify_all();
                return Ok(());
            }
            if queue.moved.after(SEND_TIMEOUT).left().is_none() {
                return Err(self.unreached(&ErrorKind::TimedOut.into()));
            }
            let wait = self.changed.wait_timeout(queue, CHECK_INTERVAL);
            queue = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until all queued messages are sent and requested links exist. Returns a failure of the
    /// thread, or an error if the server must stop.
    fn wait(&self, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
        let mut queue = self.queue();
        while queue.failure.is_none() && (queue.is_carried || !queue.messages.is_empty()) {
            if is_stopped() {
                return Err(ErrorKind::Interrupted.into());
            }
            let wait = self.changed.wait_timeout(queue, CHECK_INTERVAL);
            queue = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.failure.take().map_or(Ok(()), |error| Err(self.unreached(&error)))
    }

    fn unreached(&self, cause: &io::Error) -> io::Error {
        let name = &self.other.name;
        let message = match cause.kind() {
            // The kind of a socket timeout depends on the system.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                format!("{name} does not respond to this server in time")
            }
            _ => format!("{name} cannot be reached by this server: {cause}"),
        };
        io::Error::new(cause.kind(), message)
    }

    /// Sends queued messages until the peer link ends, and then closes the link cleanly.
    fn carry(&self) {
        let mut link: Option<OutgoingLink> = None;
        while let Some(message) = self.next(link.as_ref()) {
            let sent = self.carry_one(&mut link, message);
            if sent.is_err() {
                (self.is_lost)();
            }
            let mut queue = self.queue();
            queue.is_carried = false;
            match sent {
                Ok(()) => queue.moved = MonotonicTime::now(),
                Err(error) if !queue.is_over => {
                    if !std::mem::replace(&mut queue.is_logged, true) {
                        tracing::warn!(peer = self.other.name, %error, "cannot reach a server");
                    }
                    queue.failure = Some(error);
                    queue.messages.clear();
                }
                Err(_) => (),
            }
            self.changed.notify_all();
        }
        if let Some(mut outgoing) = link {
            outgoing.link.writer.close();
        }
    }

    /// Waits for the next message. Returns `Some(None)` if only a link is needed, because one was
    /// requested or a lost one must be replaced. Returns `None` at the end.
    fn next(&self, link: Option<&OutgoingLink>) -> Option<Option<DealtMessage>> {
        let mut queue = self.queue();
        let message = loop {
            if queue.is_over {
                break None;
            }
            if queue.recent_until.take_if(|until| until.left().is_none()).is_some() {
                queue.recent = None;
            }
            if let Some(message) = queue.messages.pop_front() {
                break Some(message);
            }
            if !queue.may_lack_something() {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let wait = self.changed.wait_timeout(queue, CHECK_INTERVAL);
            let waited;
            (queue, waited) = wait.unwrap_or_else(PoisonError::into_inner);
            let is_lost = || link.is_some_and(|link| !link.is_usable());
            if waited.timed_out() && queue.may_lack_something() && is_lost() {
                break Some(None);
            }
        };
        queue.is_carried = message.is_some();
        self.changed.notify_all();
        message
    }

    /// Sends a message over the current link, or over a new one if that link is lost. `None` only
    /// requests a link.
    fn carry_one(
        &self,
        link: &mut Option<OutgoingLink>,
        dealt: Option<DealtMessage>,
    ) -> io::Result<()> {
        if let (Some(recent), Some(dealt)) = (&mut self.queue().recent, &dealt) {
            recent.add(dealt.clone());
        }
        // A lost link is dropped, even if reconnecting fails.
        if let Some(outgoing) = link.take().filter(OutgoingLink::is_usable)
            && let Ok(outgoing) = outgoing.send(&dealt)
        {
            *link = Some(outgoing);
            return Ok(());
        }
        let until = MonotonicTime::now().after(RECONNECT_WITHIN);
        loop {
            match self.resend(&dealt) {
                Ok(outgoing) => {
                    *link = Some(outgoing);
                    return Ok(());
                }
                Err(error) if until.left().is_none() || !self.may_reconnect() => {
                    return Err(error);
                }
                Err(_) => thread::sleep(RETRY_INTERVAL),
            }
        }
    }

    /// Connects again, and sends all messages that may be missing at the other server. If none are
    /// stored, sends `dealt`.
    fn resend(&self, dealt: &Option<DealtMessage>) -> io::Result<OutgoingLink> {
        self.queue().recent.as_ref().map_or(Ok(()), Recent::check_may_be_repeated)?;
        let outgoing = self.connect()?;
        let messages = match &mut self.queue().recent {
            Some(recent) => recent.repeat(),
            None => dealt.iter().cloned().collect(),
        };
        outgoing.send(&messages)
    }

    /// Whether to try another link after one has failed: a request is in progress, and the other
    /// server may lack messages.
    fn may_reconnect(&self) -> bool {
        let queue = self.queue();
        !queue.is_over && queue.recent_until.is_none() && queue.may_lack_something()
    }

    fn connect(&self) -> io::Result<OutgoingLink> {
        let Other { address, tls, .. } = &*self.other;
        let handshake = |stream: TcpStream, left| {
            let cut = stream.try_clone()?;
            let mut queue = self.queue();
            if queue.is_over {
                return Err(ErrorKind::Interrupted.into());
            }
            queue.stream = Some(stream.try_clone()?);
            drop(queue);
            let link = tls.handshake(stream, left)?;
            cut.set_write_timeout(Some(SEND_TIMEOUT))?;
            Ok(OutgoingLink { link, stream: cut })
        };
        let mut outgoing = connect(&**address, CONNECT_TIMEOUT, handshake)?;
        outgoing
            .ask(&Request::Hello { version: VERSION }, &Answer::Welcome { version: VERSION })?;
        let SharedVolumeId { client, name } = self.volume_id.clone();
        outgoing.ask(&Request::Peer { client, name }, &Answer::Done { number: 0 })?;
        Ok(outgoing)
    }
}

#[cfg(test)]
mod tests;
