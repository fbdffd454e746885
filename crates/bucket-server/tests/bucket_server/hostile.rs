//! Protocol violations by unauthenticated and authenticated clients.

use std::cell::RefCell;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use oblivio_bucket_server::BucketLimits;
use oblivio_core::geometry::BucketId;
use oblivio_core::store::{LevelShape, Part, Piece, TreeId, TreeShape};
use oblivio_wire::keys::PeerServer;
use oblivio_wire::message::VERSION;
use oblivio_wire::{Answer, FailureKind, OpenMode, Request};
use proptest::prelude::*;

use super::party::{
    Party, READ, Server, create, leaf, look, open_request, quick_limits, shapes, write_of,
};
use oblivio_testkit::memory_disk::{PATIENCE, wait_until};

#[test]
fn messages_out_of_order_are_invalid_and_end_the_connection() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let invalid = [
        Request::Hello { version: VERSION },
        Request::Flush { number: 1 },
        Request::Read { number: 1, pieces: vec![] },
        write_of(1, 0, 1),
    ];
    for request in &invalid {
        assert_eq!(server.greet(&alice).last_failure(request), FailureKind::Invalid);
    }
    for request in [look("disk"), open_request("disk", create())] {
        let mut silent = server.try_connect(&alice).unwrap();
        assert_eq!(silent.last_failure(&request), FailureKind::Invalid, "before the hello");
    }
    drop(server.open(&alice, "disk", create()));
    let resume = Request::Resume { name: "disk".into(), session: 1 };
    let remove = Request::Remove { name: "disk".into() };
    let again = open_request("disk", OpenMode::Write);
    for request in [look("disk"), resume, remove, again, invalid[0].clone()] {
        let (mut client, _) = server.open(&alice, "disk", OpenMode::Write);
        assert_eq!(client.last_failure(&request), FailureKind::Invalid, "{request:?}");
    }
    let mut newer = server.try_connect(&alice).unwrap();
    let hello = Request::Hello { version: VERSION + 1 };
    assert_eq!(newer.last_failure(&hello), FailureKind::UnknownVersion);
    for garbage in [&b""[..], b"\0", b"GET / HTTP/1.1", &[255; 1000]] {
        let mut client = server.greet(&alice);
        client.try_send(garbage).unwrap();
        assert_eq!(client.hear_failure(), FailureKind::Invalid);
        client.expect_end();
    }
    let mut client = server.greet(&alice);
    client.send_bytes(&u32::MAX.to_le_bytes()).unwrap();
    assert_eq!(client.hear_failure(), FailureKind::Invalid);
    client.expect_end();
}

#[test]
fn shapes_that_no_store_can_hold_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let sound = shapes()[0].levels()[0];
    let cases = [
        vec![],
        vec![LevelShape { bucket_bytes: u64::MAX, ..sound }],
        vec![LevelShape { slot_bytes: u64::MAX, ..sound }],
        vec![LevelShape { slots_offset: 0, ..sound }],
        vec![LevelShape { buckets: u64::MAX, ..sound }],
        vec![LevelShape { buckets: 0, ..sound }; 100],
        vec![LevelShape { bucket_bytes: 0, ..sound }],
    ];
    for levels in cases {
        let create = OpenMode::Create(vec![TreeShape::new(levels.clone())]);
        let mut client = server.greet(&alice);
        client.say(&open_request("odd", create));
        // A tree without buckets is valid.
        if client.hear_opened_or_invalid() {
            drop(client);
            wait_until(|| server.metric("connections") == 0);
            let remove = Request::Remove { name: "odd".into() };
            server.greet(&alice).ask(&remove);
        }
        assert!(!folder.path().join("alice/odd").exists(), "{levels:?}");
    }
    assert_eq!(
        server.greet(&alice).last_failure(&open_request("odd", OpenMode::Create(vec![]))),
        FailureKind::Invalid
    );
}

#[test]
fn a_message_sent_byte_by_byte_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start_with(folder.path(), &[&alice], quick_limits());
    drop(server.open(&alice, "disk", create()));
    let message = write_of(1, 1, 2).encode();
    let frame = [&(message.len() as u32).to_le_bytes()[..], &message].concat();
    let (mut slow, _) = server.open(&alice, "disk", OpenMode::Write);
    // Silence between messages has no timeout.
    thread::sleep(Duration::from_millis(700));
    slow.write(1, 1);
    let (length, rest) = frame.split_at(4);
    slow.send_bytes(length).unwrap();
    let was_left = rest.iter().any(|byte| {
        thread::sleep(Duration::from_millis(5));
        slow.send_bytes(&[*byte]).is_err()
    });
    assert!(was_left);
    // A part of the length starts the timeout too.
    let (mut slow, _) = server.open(&alice, "disk", OpenMode::Write);
    assert_eq!(slow.read(1), 1);
    slow.send_bytes(&frame[..1]).unwrap();
    wait_until(|| server.metric("connections") == 0);
}

#[test]
fn a_handshake_sent_byte_by_byte_times_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &[&Party::named("alice")], quick_limits());
    let mut stranger = TcpStream::connect(server.address).unwrap();
    // The beginning of a long TLS record.
    stranger.write_all(&[0x16, 3, 1, 0x3f, 0xff]).unwrap();
    let was_left = (0..400).any(|_| {
        thread::sleep(Duration::from_millis(5));
        stranger.write_all(&[1]).is_err()
    });
    assert!(was_left);
}

#[test]
fn a_client_that_takes_no_answers_is_dropped_and_others_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    // Memory for the answer of one greedy client.
    let limits = BucketLimits { memory_bytes_max: 32 << 20, ..quick_limits() };
    let server = Server::start_with(folder.path(), &[&alice], limits);
    drop(server.open(&alice, "disk", create()));
    wait_until(|| server.metric("connections") == 0);
    let greedy = [(); 4].map(|()| {
        let (mut greedy, _) = server.open(&alice, "disk", READ);
        greedy.say(&Request::Read { number: 1, pieces: vec![leaf(0); 30 << 10] });
        greedy
    });
    let (mut reader, _) = server.open(&alice, "disk", READ);
    assert_eq!(reader.read(0), 0);
    wait_until(|| server.metric("connections") == 1);
    drop(greedy);
    let pieces = vec![leaf(0); 1 << 10];
    let answer = reader.ask(&Request::Read { number: 1, pieces });
    assert!(matches!(answer, Answer::Data { bytes, .. } if bytes.len() == 1 << 20));
}

/// A long answer waits while another client's untaken answer leaves too little of the server's
/// memory budget. Short answers do not wait.
#[test]
fn an_answer_waits_while_untaken_answers_hold_the_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = (Party::named("alice"), Party::named("bob"));
    // Alice's answer leaves no memory for Bob's.
    let limits = BucketLimits { memory_bytes_max: 32 << 20, ..BucketLimits::default() };
    let server = Server::start_with(folder.path(), &[&alice, &bob], limits);
    let (mut greedy, _) = server.open(&alice, "disk", create());
    let (mut reader, _) = server.open(&bob, "disk", create());
    let much = |leaves: usize| Request::Read { number: 1, pieces: vec![leaf(0); leaves] };
    greedy.say(&much(30 << 10));
    // Once its beginning has arrived, the answer is complete on the server.
    greedy.link.reader.limit(Some(PATIENCE)).unwrap();
    greedy.link.reader.read_exact(&mut [0; 4]).unwrap();
    reader.say(&much(9 << 10));
    reader.link.reader.limit(Some(Duration::from_millis(300))).unwrap();
    let early = reader.link.reader.read(&mut [0; 4]).unwrap_err().kind();
    assert!([ErrorKind::TimedOut, ErrorKind::WouldBlock].contains(&early), "{early}");
    // Short answers need no grant.
    let (mut other, _) = server.open(&bob, "other", create());
    assert_eq!(other.read(0), 0);
    drop(greedy);
    assert!(matches!(reader.hear(), Answer::Data { bytes, .. } if bytes.len() == 9 << 20));
}

/// Announces long messages on several connections, without sending the messages.
fn announce(server: &Server, party: &Party) -> Vec<super::party::Client> {
    let announced = [32 << 20, 32 << 20, 22_369_621u32];
    let silent = announced.map(|bytes| {
        let mut client = server.greet(party);
        client.send_bytes(&bytes.to_le_bytes()).unwrap();
        client
    });
    silent.into()
}

/// Bytes that are announced but not sent take no memory. The silent connections stay open for 30 s,
/// and the server must answer other clients before that.
#[test]
fn announced_messages_that_never_come_delay_no_other_client() {
    let folder = tempfile::tempdir().unwrap();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(Party::named);
    let server = Server::start(folder.path(), &[&alice, &bob, &carol]);
    let (mut reader, _) = server.open(&carol, "disk", create());
    let silent = [announce(&server, &alice), announce(&server, &bob)];
    // By now the server has probably read the lengths. If announced bytes took memory, the answer
    // would take 30 s.
    thread::sleep(Duration::from_millis(100));
    reader.say(&Request::Read { number: 1, pieces: vec![leaf(0); 128] });
    reader.link.reader.limit(Some(Duration::from_secs(20))).unwrap();
    reader.link.reader.read_exact(&mut [0; 4]).unwrap();
    assert_eq!(server.metric("connections"), 7);
    drop(silent);
}

/// Clients do not take their answers, and hold as much memory as they can. The next client still
/// gets its answer.
#[test]
fn clients_that_take_no_answers_leave_memory_for_others() {
    let folder = tempfile::tempdir().unwrap();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(Party::named);
    let limits = BucketLimits { memory_bytes_max: 32 << 20, ..BucketLimits::default() };
    let server = Server::start_with(folder.path(), &[&alice, &bob, &carol], limits);
    let (mut reader, _) = server.open(&carol, "disk", create());
    let much = |leaves: usize| Request::Read { number: 1, pieces: vec![leaf(0); leaves] };
    let mut greedy = Vec::new();
    for (party, name) in [(&alice, "a"), (&alice, "b"), (&bob, "a"), (&bob, "b")] {
        let (mut client, _) = server.open(party, name, create());
        client.say(&much(15 << 10));
        greedy.push(client);
        // By now the client was answered, or waits for memory.
        thread::sleep(Duration::from_millis(50));
    }
    reader.say(&much(4 << 10));
    reader.link.reader.limit(Some(Duration::from_secs(20))).unwrap();
    reader.link.reader.read_exact(&mut [0; 4]).unwrap();
    assert_eq!(server.metric("connections"), 5);
    drop(greedy);
}

fn peers(of: &[&Party]) -> Option<Vec<PeerServer>> {
    let peer = |(i, party): (usize, &&Party)| PeerServer {
        key: party.key.public(),
        address: format!("127.0.0.1:{}", 9 + i),
        label: None,
    };
    Some(of.iter().enumerate().map(peer).collect())
}

#[test]
fn one_peer_server_cannot_use_seats_or_memory_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let [alice, own, liar, honest] = ["alice", "own", "liar", "honest"].map(Party::named);
    let others = peers(&[&liar, &honest]);
    let address = "127.0.0.1:0".parse().unwrap();
    let limits = BucketLimits {
        peer_connections_max: 16,
        makes_room_after: Duration::from_millis(1500),
        ..BucketLimits::default()
    };
    let server = Server::start_as(folder.path(), &[&alice], limits, (own.key, address), others);
    let mut seats: Vec<_> = (0..8).map(|_| server.greet(&liar)).collect();
    assert!(server.try_greet(&liar).is_none());
    seats.truncate(5);
    wait_until(|| server.metric("peers") == 5);
    seats.extend(announce(&server, &liar));
    thread::sleep(Duration::from_millis(100));
    let mut client = server.greet(&honest);
    client.say(&Request::Deal { message: vec![1; 1 << 20] });
    client.link.reader.limit(Some(Duration::from_secs(20))).unwrap();
    client.link.reader.read_exact(&mut [0; 4]).unwrap();
    // A server never deals more than a portion: a longer message is refused at once.
    let mut client = server.greet(&honest);
    client.send_bytes(&(5u32 << 20).to_le_bytes()).unwrap();
    assert_eq!(client.hear_failure(), FailureKind::Invalid);
    // Connections that joined no volume may be replaced after a while.
    thread::sleep(Duration::from_millis(1600));
    (0..8).for_each(|_| drop(server.greet(&honest)));
    drop(seats);
}

#[test]
fn arbitrary_unauthenticated_bytes_get_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(30));
    let says = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..300));
    let outcome = runner.run(&says, |(as_tls, mut says)| {
        if as_tls && says.len() > 5 {
            let length = (says.len() - 5) as u16;
            says[..3].copy_from_slice(&[0x16, 3, 1]);
            says[3..5].copy_from_slice(&length.to_be_bytes());
        }
        let mut stranger = TcpStream::connect(server.address).unwrap();
        stranger.set_read_timeout(Some(PATIENCE)).unwrap();
        // The server may close the connection first.
        let _ = stranger.write_all(&says);
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer);
        prop_assert!(answer.len() < 100, "more than a TLS alert was sent");
        Ok(())
    });
    outcome.unwrap();
    drop(server.open(&alice, "disk", create()));
}

fn any_piece() -> impl Strategy<Value = Piece> {
    let part = prop_oneof![
        Just(Part::Whole),
        Just(Part::Header),
        (0..6u16).prop_map(Part::Slot),
        any::<u16>().prop_map(Part::Slot)
    ];
    // Most pieces exist, and many overlap.
    let tree = prop_oneof![9 => Just(0), 1 => any::<u16>()];
    (tree, 0..8u8, any::<u64>(), part).prop_map(|(tree, level, index, part)| Piece {
        tree: TreeId(tree),
        bucket: BucketId::new(level, index & ((1 << level) - 1)),
        part,
    })
}

fn any_request() -> impl Strategy<Value = Request> {
    let name = || prop_oneof![Just("disk".to_owned()), "[a-c]"];
    let pieces = || prop::collection::vec(any_piece(), 0..6);
    let mode = prop_oneof![
        Just(create()),
        Just(OpenMode::Write),
        any::<bool>().prop_map(|allow_incomplete| OpenMode::Read { allow_incomplete }),
    ];
    prop_oneof![
        1 => (name(), mode).prop_map(|(name, mode)| Request::Open { name, mode }),
        1 => (name(), any::<u64>()).prop_map(|(name, session)| Request::Resume { name, session }),
        1 => name().prop_map(|name| Request::Look { name }),
        1 => name().prop_map(|name| Request::Remove { name }),
        8 => (any::<u64>(), pieces()).prop_map(|(number, pieces)| Request::Read { number, pieces }),
        8 => (any::<u64>(), pieces(), any::<u8>(), any::<bool>()).prop_map(
            |(number, pieces, byte, is_short)| {
                let bytes = pieces.iter().map(|piece| match piece.part {
                    Part::Whole => 1024,
                    Part::Header => 16,
                    Part::Slot(_) => 100,
                });
                let bytes = bytes.sum::<usize>().saturating_sub(usize::from(is_short));
                Request::Write { number, pieces, bytes: vec![byte; bytes] }
            }
        ),
        2 => any::<u64>().prop_map(|number| Request::Flush { number }),
    ]
}

#[derive(Clone, Debug)]
enum RawMessage {
    Request(Request),
    Changed(Request, prop::sample::Index, u8),
    Garbage(Vec<u8>),
    /// Bytes that are not a frame.
    Raw(Vec<u8>),
}

fn any_raw_message() -> impl Strategy<Value = RawMessage> {
    prop_oneof![
        6 => any_request().prop_map(RawMessage::Request),
        2 => (any_request(), any::<prop::sample::Index>(), any::<u8>())
            .prop_map(|(request, at, byte)| RawMessage::Changed(request, at, byte)),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(RawMessage::Garbage),
        1 => prop::collection::vec(any::<u8>(), 0..100).prop_map(RawMessage::Raw),
    ]
}

/// The server answers or disconnects, never panics, and serves the next client.
#[test]
fn arbitrary_messages_of_clients_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = (Party::named("alice"), Party::named("bob"));
    let server = Server::start(folder.path(), &[&alice, &bob]);
    let (mut owner, _) = server.open(&bob, "disk", create());
    owner.write(1, 0x0b);
    let owner = RefCell::new(owner);
    drop(server.open(&alice, "disk", create()));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(120));
    let all = (any::<bool>(), prop::collection::vec(any_raw_message(), 1..12));
    let outcome = runner.run(&all, |(opens, all)| {
        let mut client = server.greet(&alice);
        if opens {
            client.say(&open_request("disk", OpenMode::Write));
        }
        for raw in all {
            let message = match raw {
                RawMessage::Raw(bytes) => {
                    let _ = client.send_bytes(&bytes);
                    continue;
                }
                RawMessage::Request(request) => request.encode(),
                RawMessage::Changed(request, at, byte) => {
                    let mut message = request.encode();
                    let place = at.index(message.len());
                    message[place] = byte;
                    message
                }
                RawMessage::Garbage(bytes) => bytes,
            };
            // The server may have disconnected.
            let _ = client.try_send(&message);
        }
        client.cut.shutdown(std::net::Shutdown::Write).unwrap();
        while client.try_hear().is_some() {}
        prop_assert_eq!(owner.borrow_mut().read(1), 0x0b);
        Ok(())
    });
    outcome.unwrap();
    server.stop();
}

impl super::party::Client {
    fn hear_opened_or_invalid(&mut self) -> bool {
        match self.hear() {
            Answer::Opened(_) => true,
            Answer::Failed(failure) => {
                assert_eq!(failure.kind, FailureKind::Invalid);
                false
            }
            other => panic!("neither opened nor refused: {other:?}"),
        }
    }
}
