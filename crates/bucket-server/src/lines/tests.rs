//! Tests of lines over sockets and TLS. The test plays the other server.

use std::net::TcpListener;
use std::sync::atomic::AtomicUsize;

use oblivio_wire::keys::{PeerServer, SecretKey};
use oblivio_wire::link::Link;
use oblivio_wire::message::MESSAGE_BYTES_MAX;
use oblivio_wire::{frame, tls};

use super::recent::REPEATS_MAX;
use super::*;
use crate::BucketLimits;

const SOON: Duration = Duration::from_secs(10);

/// The server to which the line connects.
struct There {
    listener: TcpListener,
    called: tls::Called,
}

impl There {
    /// Accepts a connection. Fails if none arrives soon.
    fn accept(&self) -> TcpStream {
        let until = MonotonicTime::now().after(SOON);
        self.listener.set_nonblocking(true).unwrap();
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).unwrap();
                    return stream;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
            assert!(until.left().is_some(), "no connection arrived");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Accepts a connection, and answers its hello and its join.
    fn take_call(&self, expected: &Whose) -> Link {
        let stream = self.accept();
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

/// A line, and the server that it connects to.
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
fn messages_arrive_in_order_and_lost_links_are_replaced() {
    let (line, there, whose, computing) = line();
    let send = |byte| line.send(0, &[byte], &|| false).unwrap();
    (0..4).for_each(send);
    let mut link = there.take_call(&whose);
    (0..4).for_each(|byte| assert_eq!(hear(&mut link), deal(byte)));
    link.writer.close();
    drop(link);
    // The line notices the end of the link before it sends again.
    thread::sleep(Duration::from_millis(100));
    send(4);
    let mut link = there.take_call(&whose);
    assert_eq!(hear(&mut link), deal(4));
    // The link ends cleanly.
    drop(line);
    assert_eq!(hear(&mut link), None);
    assert!(computing.threads.wait_for_the_end(SOON));
}

/// A line that has lost its link with nothing more to send does not know what has arrived, but the
/// other server waits for it.
#[test]
fn possibly_missing_messages_are_sent_again_during_a_request() {
    let (line, there, whose, _) = line();
    let send = |lane, byte| line.send(lane, &[byte], &|| false).unwrap();
    let cut = |mut link: Link| link.writer.close();
    // Before a request begins.
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
    // The other server may not have finished.
    line.end();
    cut(link);
    let mut link = there.take_call(&whose);
    assert_eq!([(); 4].map(|()| hear(&mut link)), [2, 3, 4, 5].map(deal));
    thread::sleep(MADE_AGAIN_WITHIN + 3 * LOOK_EVERY);
    cut(link);
    thread::sleep(3 * LOOK_EVERY);
    send(0, 6);
    let mut link = there.take_call(&whose);
    assert_eq!(hear(&mut link), deal(6));
    // A server that accepts each link and drops it is given up.
    line.begin();
    send(0, 7);
    assert_eq!(hear(&mut link), deal(7));
    cut(link);
    for _ in 0..REPEATS_MAX {
        cut(there.take_call(&whose));
    }
    let refused = error_of(&line).to_string();
    assert!(refused.contains("too often"), "{refused}");
}

/// The next error of the line.
fn error_of(line: &Line) -> io::Error {
    loop {
        if let Err(error) = line.shared.wait(&|| false) {
            return error;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// Reconnecting ends, and the loss is reported once. Repeated reports would wake all waiting
/// threads each time.
#[test]
fn a_lost_server_is_reported_once() {
    let (mut line, there, whose, _) = line();
    let times = Arc::new(AtomicUsize::new(0));
    let counted = times.clone();
    let shared = Arc::get_mut(&mut line.shared).unwrap();
    shared.is_lost = Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    line.begin();
    line.send(0, &[1], &|| false).unwrap();
    let mut link = there.take_call(&whose);
    assert_eq!(hear(&mut link), deal(1));
    drop(there);
    link.writer.close();
    let before = MonotonicTime::now().after(MADE_AGAIN_WITHIN / 2);
    let refused = error_of(&line).to_string();
    assert!(refused.contains("cannot be reached"), "{refused}");
    assert!(before.left().is_none(), "it was given up too early");
    thread::sleep(MADE_AGAIN_WITHIN + 5 * LOOK_EVERY);
    assert_eq!(times.load(Ordering::Relaxed), 1);
}

#[test]
fn waiting_for_a_link_includes_the_join() {
    let (line, there, whose, _) = line();
    line.call().unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| line.shared.wait(&|| false));
        thread::sleep(Duration::from_millis(200));
        assert!(!waits.is_finished(), "it did not wait for the join");
        let _link = there.take_call(&whose);
        waits.join().unwrap().unwrap();
    });
}

#[test]
fn an_unreachable_server_is_named_and_reconnected_later() {
    let (line, There { listener, called }, whose, _) = line();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut refused = Ok(());
    while refused.is_ok() {
        refused = line.send(0, &[1], &|| false);
        thread::sleep(Duration::from_millis(10));
    }
    let said = refused.unwrap_err().to_string();
    assert!(said.starts_with("Paris cannot be reached"), "{said}");
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
    // No thread waits if the server is to stop.
    let stopped = line.send(0, &[3], &|| true).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Interrupted);
}
