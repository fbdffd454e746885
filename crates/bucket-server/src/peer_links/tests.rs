//! Tests of peer links over sockets and TLS. The test plays the other server.

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

/// The test's server, to which the peer link connects.
struct TestServer {
    listener: TcpListener,
    server_tls: tls::ServerTls,
}

impl TestServer {
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

    /// Accepts a connection, and answers the hello and the join on it.
    fn accept_link(&self, expected: &SharedVolumeId) -> Link {
        let stream = self.accept();
        let (mut link, _) = self.server_tls.answer(stream, SOON).unwrap();
        let SharedVolumeId { client, name } = expected.clone();
        for (request, answer) in [
            (Request::Hello { version: VERSION }, Answer::Welcome { version: VERSION }),
            (Request::Peer { client, name }, Answer::Done { number: 0 }),
        ] {
            assert_eq!(receive(&mut link), Some(request));
            frame::send(&mut link.writer, &answer.encode()).unwrap();
            link.writer.flush().unwrap();
        }
        link
    }
}

fn receive(link: &mut Link) -> Option<Request> {
    link.reader.limit(Some(SOON)).unwrap();
    let message = frame::receive(&mut link.reader, MESSAGE_BYTES_MAX).unwrap()?;
    Some(Request::decode(&message).unwrap())
}

fn deal(byte: u8) -> Option<Request> {
    Some(Request::Deal { message: vec![byte] })
}

/// Returns a peer link, and the server that it connects to.
fn peer_link() -> (PeerLink, TestServer, SharedVolumeId, Computing) {
    let [own, other, client] = [(); 3].map(|()| SecretKey::generate().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let peers = vec![PeerServer { key: other.public(), address, label: Some("Paris".into()) }];
    let computing = Computing::new(&own, peers, &BucketLimits::default()).unwrap();
    let volume_id = SharedVolumeId { client: client.public(), name: "disk".into() };
    let test_server = computing.other(other.public().bytes()).unwrap().clone();
    let peer_link =
        PeerLink::new(test_server, volume_id.clone(), Box::new(|| ()), computing.threads.clone());
    let server_tls = tls::ServerTls::new(&other, [own.public()]).unwrap();
    (peer_link, TestServer { listener, server_tls }, volume_id, computing)
}

#[test]
fn messages_arrive_in_order_and_lost_links_are_replaced() {
    let (peer_link, test_server, volume_id, computing) = peer_link();
    let send = |byte| peer_link.send(0, &[byte], &|| false).unwrap();
    (0..4).for_each(send);
    let mut link = test_server.accept_link(&volume_id);
    (0..4).for_each(|byte| assert_eq!(receive(&mut link), deal(byte)));
    link.writer.close();
    drop(link);
    // The peer link notices the end of the link before it sends again.
    thread::sleep(Duration::from_millis(100));
    send(4);
    let mut link = test_server.accept_link(&volume_id);
    assert_eq!(receive(&mut link), deal(4));
    // The link ends cleanly.
    drop(peer_link);
    assert_eq!(receive(&mut link), None);
    assert!(computing.threads.wait_for_the_end(SOON));
}

/// During a request, a peer link that has lost its link sends messages again although its queue is
/// empty: it cannot know which messages have arrived, and the other server may wait for one.
#[test]
fn possibly_missing_messages_are_sent_again_during_a_request() {
    let (peer_link, test_server, volume_id, _) = peer_link();
    let send = |lane, byte| peer_link.send(lane, &[byte], &|| false).unwrap();
    let cut = |mut link: Link| link.writer.close();
    // Before a request begins.
    send(0, 100);
    let mut link = test_server.accept_link(&volume_id);
    assert_eq!(receive(&mut link), deal(100));
    peer_link.begin();
    for (lane, byte) in [(0, 1), (1, 2), (0, 3), (0, 4), (1, 5)] {
        send(lane, byte);
        assert_eq!(receive(&mut link), deal(byte));
    }
    cut(link);
    for _ in 0..2 {
        let mut link = test_server.accept_link(&volume_id);
        assert_eq!([(); 4].map(|()| receive(&mut link)), [2, 3, 4, 5].map(deal));
        cut(link);
    }
    let mut link = test_server.accept_link(&volume_id);
    assert_eq!([(); 4].map(|()| receive(&mut link)), [2, 3, 4, 5].map(deal));
    // The other server may not have finished.
    peer_link.end();
    cut(link);
    let mut link = test_server.accept_link(&volume_id);
    assert_eq!([(); 4].map(|()| receive(&mut link)), [2, 3, 4, 5].map(deal));
    thread::sleep(RECONNECT_WITHIN + 3 * CHECK_INTERVAL);
    cut(link);
    thread::sleep(3 * CHECK_INTERVAL);
    send(0, 6);
    let mut link = test_server.accept_link(&volume_id);
    assert_eq!(receive(&mut link), deal(6));
    // A server that accepts each link and drops it is given up.
    peer_link.begin();
    send(0, 7);
    assert_eq!(receive(&mut link), deal(7));
    cut(link);
    for _ in 0..REPEATS_MAX {
        cut(test_server.accept_link(&volume_id));
    }
    let refused = error_of(&peer_link).to_string();
    assert!(refused.contains("too often"), "{refused}");
}

/// Returns the next error of the peer link.
fn error_of(peer_link: &PeerLink) -> io::Error {
    loop {
        if let Err(error) = peer_link.shared.wait(&|| false) {
            return error;
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// The peer link stops reconnecting after a while and reports the loss once. Each further report
/// would wake all waiting threads.
#[test]
fn a_lost_server_is_reported_once() {
    let (mut peer_link, test_server, volume_id, _) = peer_link();
    let times = Arc::new(AtomicUsize::new(0));
    let counted = times.clone();
    let shared = Arc::get_mut(&mut peer_link.shared).unwrap();
    shared.is_lost = Box::new(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    peer_link.begin();
    peer_link.send(0, &[1], &|| false).unwrap();
    let mut link = test_server.accept_link(&volume_id);
    assert_eq!(receive(&mut link), deal(1));
    drop(test_server);
    link.writer.close();
    let before = MonotonicTime::now().after(RECONNECT_WITHIN / 2);
    let refused = error_of(&peer_link).to_string();
    assert!(refused.contains("cannot be reached"), "{refused}");
    assert!(before.left().is_none(), "it was given up too early");
    thread::sleep(RECONNECT_WITHIN + 5 * CHECK_INTERVAL);
    assert_eq!(times.load(Ordering::Relaxed), 1);
}

#[test]
fn waiting_for_a_link_includes_the_join() {
    let (peer_link, test_server, volume_id, _) = peer_link();
    peer_link.connect().unwrap();
    thread::scope(|scope| {
        let waits = scope.spawn(|| peer_link.shared.wait(&|| false));
        thread::sleep(Duration::from_millis(200));
        assert!(!waits.is_finished(), "it did not wait for the join");
        let _link = test_server.accept_link(&volume_id);
        waits.join().unwrap().unwrap();
    });
}

#[test]
fn an_unreachable_server_is_named_and_reconnected_later() {
    let (peer_link, TestServer { listener, server_tls }, volume_id, _) = peer_link();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut refused = Ok(());
    while refused.is_ok() {
        refused = peer_link.send(0, &[1], &|| false);
        thread::sleep(Duration::from_millis(10));
    }
    let error = refused.unwrap_err().to_string();
    assert!(error.starts_with("Paris cannot be reached"), "{error}");
    peer_link.begin();
    peer_link.connect().unwrap();
    assert!(peer_link.shared.wait(&|| false).is_err());
    let test_server = TestServer { listener: TcpListener::bind(address).unwrap(), server_tls };
    peer_link.begin();
    peer_link.connect().unwrap();
    let mut link = test_server.accept_link(&volume_id);
    peer_link.shared.wait(&|| false).unwrap();
    peer_link.send(0, &[2], &|| false).unwrap();
    assert_eq!(receive(&mut link), deal(2));
    // No thread waits if the server is to stop.
    let stopped = peer_link.send(0, &[3], &|| true).unwrap_err();
    assert_eq!(stopped.kind(), ErrorKind::Interrupted);
}
