//! What goes from this server to others, for one volume.
//!
//! Each of the others has a line: a few messages that wait, and a thread that sends them. So whoever deals goes on while the others are
//! sent to. A line calls its server when there is something to send, and once more if the link is lost; if that does not help, the next message is told so.
//!
//! What had been sent into a lost link may not have come, and the other server would wait for it. So while something is asked that is dealt for, the
//! line looks after its link, and over a new one it sends again what may be missing there.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use oblivio_shares::host::{Host, Peers, TILES_AT_ONCE};
use oblivio_shares::message::ServerKey;
use oblivio_wire::keys::PublicKey;
use oblivio_wire::link::{Link, Moment};
use oblivio_wire::message::{DEAL_HEAD, MESSAGE_BYTES_MAX, VERSION};
use oblivio_wire::tls::reach;
use oblivio_wire::{Answer, Failure, Request, frame};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::computing::{Computing, Other, Threads};
use super::service::Service;
use super::working::GoesOn;

/// Messages of a line that wait, at most.
const WAITING_MAX: usize = 4;

/// A server to which nothing could be sent for so long is taken to be gone.
const SENT_WITHIN: Duration = Duration::from_secs(10);

/// The same, while it is called.
const REACHED_WITHIN: Duration = Duration::from_secs(4);

/// While one thing is asked, what may be missing is sent again so often, at most: a server that ends its links is not to keep others busy.
const REPEATS_MAX: u32 = 16;

/// Whoever calls or sends when a line is over is stuck if it takes longer.
const DONE_WITHIN: Duration = Duration::from_millis(50);

/// How often whoever waits looks whether the server is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Which volume it is, to other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whose {
    pub(super) client: PublicKey,
    pub(super) name: String,
}

/// To all others with which a volume is shared, in the order of their numbers.
pub(super) struct Lines {
    lines: Vec<Option<Line>>,
}

impl Lines {
    /// There is none to this server itself, and to those that it does not know any more.
    pub(super) fn new(host: &Host, whose: &Whose, computing: &Computing) -> Self {
        let line = |(key, number): (&ServerKey, u8)| {
            let (other, mailbox) = (computing.other(*key)?, host.mailbox());
            // Who cannot be reached deals nothing either, most likely.
            let is_lost = Box::new(move || mailbox.is_lost(number));
            Some(Line::new(other.clone(), whose.clone(), is_lost, computing.threads.clone()))
        };
        let keys = host.setup().into_iter().flat_map(|setup| &setup.keys);
        Self { lines: keys.zip(1..).map(line).collect() }
    }

    /// Something else is asked now: what could not be sent before says nothing of it. What still waits may be waited for elsewhere.
    pub(super) fn begin(&self) {
        self.lines.iter().flatten().for_each(Line::begin);
    }

    /// It is answered.
    pub(super) fn end(&self) {
        self.lines.iter().flatten().for_each(Line::end);
    }
}

/// What is dealt while one thing is asked.
pub(super) struct Dealing<'a> {
    /// None before the shares are set up.
    pub(super) lines: Option<&'a Lines>,
    pub(super) service: &'a Service,
    pub(super) goes_on: &'a GoesOn<'a>,
    /// Set when an eviction fails here.
    pub(super) is_given_up: AtomicBool,
}

impl Peers for Dealing<'_> {
    fn send(&self, to: u8, lane: usize, dealt: &[u8]) -> io::Result<()> {
        let place = usize::from(to).checked_sub(1);
        let line = place.and_then(|place| self.lines?.lines.get(place)?.as_ref());
        let line = line.ok_or_else(|| {
            let message = format!("server {to} is not in the list of peers of this server");
            io::Error::new(ErrorKind::NotFound, message)
        })?;
        line.send(lane, dealt, &|| self.service.admission.is_stopped())
            .map_err(|error| io::Error::new(error.kind(), format!("server {to}: {error}")))?;
        self.service.metrics.dealt_out.one(dealt.len());
        Ok(())
    }

    fn goes_on(&self) {
        (self.goes_on)();
    }

    fn meet(&self) -> io::Result<()> {
        let lines = self.lines.map_or(&[][..], |lines| &lines.lines);
        // One of them is this server itself.
        if lines.iter().filter(|line| line.is_none()).count() > 1 {
            let message = "a server of the volume is not in the list of peers of this server";
            return Err(io::Error::new(ErrorKind::NotFound, message));
        }
        let lines = || (1..).zip(lines).filter_map(|(number, line)| Some((number, line.as_ref()?)));
        let is_stopped = || self.service.admission.is_stopped();
        let reached = |(number, reached): (u8, io::Result<()>)| {
            reached
                .map_err(|error| io::Error::new(error.kind(), format!("server {number}: {error}")))
        };
        // All are called before anybody is waited for.
        lines().map(|(number, line)| (number, line.call())).try_for_each(reached)?;
        lines().map(|(number, line)| (number, line.shared.wait(&is_stopped))).try_for_each(reached)
    }

    fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Relaxed);
    }
}

/// To one of them.
struct Line {
    shared: Arc<Shared>,
    /// Started when something is sent for the first time.
    thread: OnceLock<io::Result<()>>,
    threads: Arc<Threads>,
}

/// What a line and its thread share.
struct Shared {
    other: Arc<Other>,
    whose: Whose,
    /// Called when the server cannot be reached.
    is_lost: Box<dyn Fn() + Send + Sync>,
    queue: Mutex<Queue>,
    changed: Condvar,
}

struct Queue {
    /// Where there is none, only a link is wanted.
    messages: VecDeque<Option<Dealt>>,
    /// While something is asked: what has been sent, and may be missing if the link is lost.
    recent: Option<Recent>,
    /// One of them is on its way.
    is_carried: bool,
    /// When the latest one was sent, or was the first to wait.
    moved: Moment,
    /// Why the latest one was not.
    failure: Option<io::Error>,
    /// Of the link that there is, to cut it.
    stream: Option<TcpStream>,
    is_over: bool,
}

impl Queue {
    /// Whether the other server lacks something if the link is lost.
    fn may_lack_something(&self) -> bool {
        self.recent.as_ref().is_some_and(|recent| !recent.messages.is_empty())
    }
}

/// A message, and its lane.
#[derive(Clone)]
struct Dealt {
    lane: usize,
    message: Arc<[u8]>,
}

/// The latest messages of each lane.
#[derive(Default)]
struct Recent {
    /// In the order in which they were sent.
    messages: VecDeque<Dealt>,
    /// How often they were sent once more.
    repeats: u32,
}

impl Recent {
    /// Of a lane, as many messages can be missing at the other server (see [`Peers::send`]).
    const OF_LANE_MAX: usize = 2;

    fn add(&mut self, dealt: Dealt) {
        let is_of_it = |other: &Dealt| other.lane == dealt.lane;
        let of_it = || self.messages.iter().filter(|other| is_of_it(other));
        if of_it().count() == Self::OF_LANE_MAX
            && let Some(oldest) = self.messages.iter().position(is_of_it)
        {
            self.messages.remove(oldest);
        }
        self.messages.push_back(dealt);
        let most = Self::OF_LANE_MAX * TILES_AT_ONCE;
        debug_assert!(self.messages.len() <= most, "there are no more lanes");
    }

    /// All of them, for a new link.
    fn repeat(&mut self) -> io::Result<Vec<Dealt>> {
        if !self.messages.is_empty() {
            self.repeats += 1;
        }
        if self.repeats > REPEATS_MAX {
            return Err(io::Error::other("its links are lost again and again"));
        }
        Ok(self.messages.iter().cloned().collect())
    }
}

impl Line {
    fn new(
        other: Arc<Other>,
        whose: Whose,
        is_lost: Box<dyn Fn() + Send + Sync>,
        threads: Arc<Threads>,
    ) -> Self {
        let queue = Queue {
            messages: VecDeque::new(),
            recent: None,
            is_carried: false,
            moved: Moment::now(),
            failure: None,
            stream: None,
            is_over: false,
        };
        let (queue, changed) = (Mutex::new(queue), Condvar::new());
        let shared = Shared { other, whose, is_lost, queue, changed };
        Self { shared: Arc::new(shared), thread: OnceLock::new(), threads }
    }

    fn begin(&self) {
        let mut queue = self.shared.queue();
        queue.failure = None;
        queue.recent = Some(Recent::default());
    }

    fn end(&self) {
        self.shared.queue().recent = None;
    }

    /// Returns when it waits to be sent.
    fn send(&self, lane: usize, message: &[u8], is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
        self.start()?;
        self.shared.put(Some(Dealt { lane, message: message.into() }), is_stopped)
    }

    /// Its server is called, if there is no link to it.
    fn call(&self) -> io::Result<()> {
        self.start()?;
        self.shared.put(None, &|| false)
    }

    fn start(&self) -> io::Result<()> {
        let started = self.thread.get_or_init(|| {
            let (shared, counted) = (self.shared.clone(), self.threads.one());
            let carry = move || {
                shared.carry();
                drop(counted);
            };
            thread::Builder::new().name("deals".into()).spawn(carry).map(drop)
        });
        started.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string())).copied()
    }
}

impl Drop for Line {
    /// Its thread ends soon, and nobody waits for it here. It is only cut off if it is stuck: else it says that this is the end.
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

    fn put(&self, message: Option<Dealt>, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
        let mut queue = self.queue();
        loop {
            if let Some(error) = queue.failure.take() {
                return Err(self.unreached(&error));
            }
            if is_stopped() {
                return Err(ErrorKind::Interrupted.into());
            }
            if queue.messages.is_empty() {
                queue.moved = Moment::now();
            }
            if queue.messages.len() < WAITING_MAX {
                queue.messages.push_back(message);
                self.changed.notify_all();
                return Ok(());
            }
            if queue.moved.after(SENT_WITHIN).left().is_none() {
                return Err(self.unreached(&ErrorKind::TimedOut.into()));
            }
            let wait = self.changed.wait_timeout(queue, LOOK_EVERY);
            queue = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns when nothing waits any more.
    fn wait(&self, is_stopped: &dyn Fn() -> bool) -> io::Result<()> {
        let mut queue = self.queue();
        while queue.failure.is_none() && (queue.is_carried || !queue.messages.is_empty()) {
            if is_stopped() {
                return Err(ErrorKind::Interrupted.into());
            }
            let wait = self.changed.wait_timeout(queue, LOOK_EVERY);
            queue = wait.unwrap_or_else(PoisonError::into_inner).0;
        }
        queue.failure.take().map_or(Ok(()), |error| Err(self.unreached(&error)))
    }

    fn unreached(&self, cause: &io::Error) -> io::Error {
        let message = format!("{} takes nothing from this server: {cause}", self.other.name);
        io::Error::new(cause.kind(), message)
    }

    /// Sends what is put here, until the line is over. The other server is told then that this is the end.
    fn carry(&self) {
        let mut link: Option<Called> = None;
        while let Some(message) = self.next(link.as_ref()) {
            let sent = self.carry_one(&mut link, message);
            if sent.is_err() {
                (self.is_lost)();
            }
            let mut queue = self.queue();
            queue.is_carried = false;
            match sent {
                Ok(()) => queue.moved = Moment::now(),
                Err(error) if !queue.is_over => {
                    tracing::warn!(peer = self.other.name, %error, "another server cannot be reached");
                    queue.failure = Some(error);
                    queue.messages.clear();
                }
                Err(_) => (),
            }
            self.changed.notify_all();
        }
        if let Some(mut called) = link {
            called.link.writer.close();
        }
    }

    /// What is to be sent next, when there is something: also nothing, if the link is lost over which something was sent.
    fn next(&self, link: Option<&Called>) -> Option<Option<Dealt>> {
        let mut queue = self.queue();
        let message = loop {
            if queue.is_over {
                break None;
            }
            if let Some(message) = queue.messages.pop_front() {
                break Some(message);
            }
            let Some(link) = link.filter(|_| queue.may_lack_something()) else {
                queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let wait = self.changed.wait_timeout(queue, LOOK_EVERY);
            let waited;
            (queue, waited) = wait.unwrap_or_else(PoisonError::into_inner);
            if waited.timed_out() && queue.may_lack_something() && !link.is_there() {
                break Some(None);
            }
        };
        queue.is_carried = message.is_some();
        self.changed.notify_all();
        message
    }

    /// Over the link that there is, or over a new one.
    fn carry_one(&self, link: &mut Option<Called>, dealt: Option<Dealt>) -> io::Result<()> {
        if let (Some(recent), Some(dealt)) = (&mut self.queue().recent, &dealt) {
            recent.add(dealt.clone());
        }
        if let Some(called) = link.take_if(|called| called.is_there())
            && let Ok(called) = called.send(&dealt)
        {
            *link = Some(called);
            return Ok(());
        }
        let called = self.call()?;
        *link = Some(called.send(&self.to_be_sent_anew(dealt)?)?);
        Ok(())
    }

    /// Over a new link, for this message.
    fn to_be_sent_anew(&self, dealt: Option<Dealt>) -> io::Result<Vec<Dealt>> {
        match &mut self.queue().recent {
            Some(recent) => recent.repeat(),
            None => Ok(dealt.into_iter().collect()),
        }
    }

    fn call(&self) -> io::Result<Called> {
        let Other { address, caller, .. } = &*self.other;
        let call = |stream: TcpStream, left| {
            let cut = stream.try_clone()?;
            let mut queue = self.queue();
            if queue.is_over {
                return Err(ErrorKind::Interrupted.into());
            }
            queue.stream = Some(stream.try_clone()?);
            drop(queue);
            let link = caller.call(stream, left)?;
            cut.set_write_timeout(Some(SENT_WITHIN))?;
            Ok(Called { link, stream: cut })
        };
        let mut called = reach(&**address, REACHED_WITHIN, call)?;
        called.ask(&Request::Hello { version: VERSION }, &Answer::Welcome { version: VERSION })?;
        let Whose { client, name } = self.whose.clone();
        called.ask(&Request::Peer { client, name }, &Answer::Done { number: 0 })?;
        Ok(called)
    }
}

/// A link to another server.
struct Called {
    link: Link,
    stream: TcpStream,
}

impl Called {
    fn ask(&mut self, request: &Request, expected: &Answer) -> io::Result<()> {
        let Link { reader, writer } = &mut self.link;
        frame::send(writer, &request.encode())?;
        writer.flush()?;
        reader.limit(Some(REACHED_WITHIN))?;
        let answer = frame::receive(reader, MESSAGE_BYTES_MAX)?.ok_or(ErrorKind::UnexpectedEof)?;
        match Answer::decode(&answer.into()) {
            Ok(answer) if answer == *expected => Ok(()),
            Ok(Answer::Failed(Failure { message, .. })) => {
                Err(io::Error::new(ErrorKind::PermissionDenied, format!("it says: {message:?}")))
            }
            _ => Err(io::Error::new(ErrorKind::InvalidData, "it answers something else")),
        }
    }

    /// Whether it still is, as far as one can tell: a server says nothing more here unless it leaves.
    fn is_there(&self) -> bool {
        let mut said = [PollFd::new(&self.stream, PollFlags::IN)];
        poll(&mut said, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|said| said == 0)
    }

    /// A link on which that has failed is of no use.
    fn send<'d>(mut self, dealt: impl IntoIterator<Item = &'d Dealt>) -> io::Result<Self> {
        for Dealt { message, .. } in dealt {
            frame::send_parts(&mut self.link.writer, &[&DEAL_HEAD, message])?;
            self.link.writer.flush()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use oblivio_wire::keys::{PeerServer, SecretKey};
    use oblivio_wire::tls;

    use super::*;
    use crate::buckets::BucketLimits;

    const SOON: Duration = Duration::from_secs(10);

    /// A server that another one calls.
    struct There {
        listener: TcpListener,
        called: tls::Called,
    }

    impl There {
        /// Takes the next call, and says that it may deal.
        fn take_call(&self, expected: &Whose) -> Link {
            let (stream, _) = self.listener.accept().unwrap();
            let (mut link, _) = self.called.answer(stream, SOON).unwrap();
            let Whose { client, name } = expected.clone();
            for (request, answer) in [
                (Request::Hello { version: VERSION }, Answer::Welcome { version: VERSION }),
                (Request::Peer { client, name }, Answer::Done { number: 0 }),
            ] {
                assert_eq!(hear(&mut link), Some(request));
                frame::send(&mut link.writer, &answer.encode()).unwrap();
                link.writer.flush().unwrap();
            }
            link
        }
    }

    fn hear(link: &mut Link) -> Option<Request> {
        link.reader.limit(Some(SOON)).unwrap();
        let message = frame::receive(&mut link.reader, MESSAGE_BYTES_MAX).unwrap()?;
        Some(Request::decode(&message).unwrap())
    }

    fn deal(byte: u8) -> Option<Request> {
        Some(Request::Deal { message: vec![byte] })
    }

    /// A line to a server, and that server.
    fn line() -> (Line, There, Whose, Computing) {
        let [own, other, client] = [(); 3].map(|()| SecretKey::generate().unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let peers = vec![PeerServer { key: other.public(), address, label: Some("Paris".into()) }];
        let computing = Computing::new(&own, peers, &BucketLimits::default()).unwrap();
        let whose = Whose { client: client.public(), name: "disk".into() };
        let there = computing.other(other.public().bytes()).unwrap().clone();
        let line = Line::new(there, whose.clone(), Box::new(|| ()), computing.threads.clone());
        let called = tls::Called::new(&other, [own.public()]).unwrap();
        (line, There { listener, called }, whose, computing)
    }

    #[test]
    fn what_is_dealt_comes_in_its_order_and_a_lost_link_is_made_again() {
        let (line, there, whose, computing) = line();
        let send = |byte| line.send(0, &[byte], &|| false).unwrap();
        (0..4).for_each(send);
        let mut link = there.take_call(&whose);
        (0..4).for_each(|byte| assert_eq!(hear(&mut link), deal(byte)));
        link.writer.close();
        drop(link);
        // It is seen before anything is sent into it.
        thread::sleep(Duration::from_millis(100));
        send(4);
        let mut link = there.take_call(&whose);
        assert_eq!(hear(&mut link), deal(4));
        // In good order.
        drop(line);
        assert_eq!(hear(&mut link), None);
        assert!(computing.threads.wait_for_the_end(SOON));
    }

    /// Whoever has lost the link, and has nothing more to send, does not know what came over it, and the other server waits for it.
    #[test]
    fn what_may_be_missing_is_sent_again_over_a_new_link_while_it_is_asked_for() {
        let (line, there, whose, _) = line();
        let send = |lane, byte| line.send(lane, &[byte], &|| false).unwrap();
        let cut = |mut link: Link| link.writer.close();
        // Before anything is asked.
        send(0, 100);
        let mut link = there.take_call(&whose);
        assert_eq!(hear(&mut link), deal(100));
        line.begin();
        for (lane, byte) in [(0, 1), (1, 2), (0, 3), (0, 4), (1, 5)] {
            send(lane, byte);
            assert_eq!(hear(&mut link), deal(byte));
        }
        cut(link);
        for _ in 0..2 {
            let mut link = there.take_call(&whose);
            assert_eq!([(); 4].map(|()| hear(&mut link)), [2, 3, 4, 5].map(deal));
            cut(link);
        }
        let mut link = there.take_call(&whose);
        assert_eq!([(); 4].map(|()| hear(&mut link)), [2, 3, 4, 5].map(deal));
        line.end();
        cut(link);
        thread::sleep(3 * LOOK_EVERY);
        send(0, 6);
        let mut link = there.take_call(&whose);
        assert_eq!(hear(&mut link), deal(6));
        // A server that lets it in, and ends the link each time, is given up.
        line.begin();
        send(0, 7);
        assert_eq!(hear(&mut link), deal(7));
        cut(link);
        for _ in 0..REPEATS_MAX {
            cut(there.take_call(&whose));
        }
        let last = there.take_call(&whose);
        let refused = line.shared.wait(&|| false).unwrap_err().to_string();
        assert!(refused.contains("again and again"), "{refused}");
        drop(last);
    }

    #[test]
    fn a_link_is_waited_for_until_the_other_server_has_let_this_one_in() {
        let (line, there, whose, _) = line();
        line.call().unwrap();
        thread::scope(|scope| {
            let waits = scope.spawn(|| line.shared.wait(&|| false));
            thread::sleep(Duration::from_millis(200));
            assert!(!waits.is_finished(), "it has not been let in");
            let _link = there.take_call(&whose);
            waits.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_server_that_is_not_there_is_named_and_one_that_is_back_is_sent_to() {
        let (line, There { listener, called }, whose, _) = line();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let mut refused = Ok(());
        while refused.is_ok() {
            refused = line.send(0, &[1], &|| false);
            thread::sleep(Duration::from_millis(10));
        }
        let said = refused.unwrap_err().to_string();
        assert!(said.starts_with("Paris takes nothing"), "{said}");
        line.begin();
        line.call().unwrap();
        assert!(line.shared.wait(&|| false).is_err());
        let there = There { listener: TcpListener::bind(address).unwrap(), called };
        line.begin();
        line.call().unwrap();
        let mut link = there.take_call(&whose);
        line.shared.wait(&|| false).unwrap();
        line.send(0, &[2], &|| false).unwrap();
        assert_eq!(hear(&mut link), deal(2));
        // Nobody waits when the server is to stop.
        let stopped = line.send(0, &[3], &|| true).unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Interrupted);
    }
}
