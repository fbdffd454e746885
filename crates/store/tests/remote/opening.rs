//! Tests of creating, opening, finding and removing volumes.

use std::io;
use std::time::Duration;

use oblivio_core::StoreErrorKind;
use oblivio_core::store::{BucketStore, TreeShape};
use oblivio_store::{Connector, OpenErrorKind, RemoteMode, RemoteStore};
use oblivio_wire::link::Link;
use oblivio_wire::{Answer, FailureKind, Opened};

use crate::bench::{all_pieces, all_whole, create, fill, memory, options, read, shapes, try_fill};
use crate::line::Cut;
use crate::server::{Disguise, NAME, Server, ServerAction, framed};

const TO_READ: RemoteMode = RemoteMode::Read { allow_incomplete: false };

#[test]
fn flushed_writes_are_visible_in_all_modes() {
    let server = Server::new();
    assert!(!RemoteStore::look(server.connector(), NAME).unwrap());
    let mut store = create(&server);
    let mut memory = memory();
    fill(&mut store, &all_pieces(), 1);
    fill(&mut memory, &all_pieces(), 1);
    store.flush().unwrap();
    drop(store);
    assert!(RemoteStore::look(server.connector(), NAME).unwrap());
    for mode in [RemoteMode::Write, TO_READ, RemoteMode::Read { allow_incomplete: true }] {
        let (mut store, condition) =
            RemoteStore::open(server.connector(), mode, options()).unwrap();
        assert_eq!(store.shapes(), shapes());
        assert!(read(&mut store, &all_pieces()) == read(&mut memory, &all_pieces()));
        assert_eq!((condition.allocated_bytes, condition.is_cut_off), (7, true));
        assert_eq!((condition.damage, condition.mended), (vec!["a b".into()], vec!["c".into()]));
    }
    RemoteStore::remove(server.connector(), NAME).unwrap();
    assert!(!RemoteStore::look(server.connector(), NAME).unwrap());
    let error = RemoteStore::remove(server.connector(), NAME).unwrap_err();
    assert_eq!(error.kind(), OpenErrorKind::Missing);
}

#[test]
fn a_reader_refuses_to_write() {
    let server = Server::new();
    drop(create(&server));
    let (mut store, _) = RemoteStore::open(server.connector(), TO_READ, options()).unwrap();
    let error = try_fill(&mut store, &all_whole(), 1).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused);
    store.flush().unwrap();
    read(&mut store, &all_whole());
    assert_eq!(server.world().frames.len(), 1);
}

fn open_error(server: &Server) -> OpenErrorKind {
    let options = options().with_retry_for(Duration::ZERO);
    let error = RemoteStore::open(server.connector(), RemoteMode::Write, options).err().unwrap();
    assert!(!error.to_string().contains(char::is_control), "{error:?}");
    error.kind()
}

#[test]
fn refusals_map_to_error_kinds() {
    let server = Server::new();
    assert_eq!(open_error(&server), OpenErrorKind::Missing);
    drop(create(&server));
    let error = RemoteStore::create(server.connector(), &shapes(), options()).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::Exists);
    for (kind, expected) in [
        (FailureKind::InUse, OpenErrorKind::Locked),
        (FailureKind::Full, OpenErrorKind::NoSpace),
        (FailureKind::Damaged, OpenErrorKind::Damaged),
        (FailureKind::Failed, OpenErrorKind::Io),
    ] {
        // Each request after the greeting, because a volume in use may become free a moment later.
        server.plan(
            move |n, _| if n % 2 == 1 { ServerAction::Refuse(kind) } else { ServerAction::Serve },
        );
        assert_eq!(open_error(&server), expected);
    }
    server.plan(|_, _| ServerAction::Serve);
    server.world().version = 2;
    assert_eq!(open_error(&server), OpenErrorKind::UnknownVersion);
}

#[test]
fn other_servers_are_recognized() {
    let server = Server::new();
    drop(create(&server));
    for (n, answer) in [
        (0, Answer::Looked { is_there: true }),
        (1, Answer::Done { number: 0 }),
        (1, Answer::Welcome { version: 1 }),
    ] {
        let says = framed(&answer.encode());
        server.plan(
            move |i, _| if i == n { ServerAction::Say(says.clone()) } else { ServerAction::Serve },
        );
        assert_eq!(open_error(&server), OpenErrorKind::NotAStore);
    }
    server.plan(
        |n, _| if n == 0 { ServerAction::Say(framed(b"HTTP/1.1")) } else { ServerAction::Serve },
    );
    assert_eq!(open_error(&server), OpenErrorKind::NotAStore);
    server.plan(|_, _| ServerAction::Serve);
    for (to_server, to_client) in [(10, usize::MAX), (usize::MAX, 10), (usize::MAX, 60)] {
        server.world().cuts.push_back(Cut { to_server, to_client });
        assert_eq!(open_error(&server), OpenErrorKind::Unreachable);
    }
}

#[test]
fn an_opening_is_tried_again_while_links_break_or_the_server_is_full() {
    let server = Server::new();
    for _ in 0..3 {
        server.world().cuts.push_back(Cut { to_server: usize::MAX, to_client: 10 });
    }
    drop(RemoteStore::create(server.connector(), &shapes(), options()).unwrap());
    server.plan(
        |n, _| if n < 3 { ServerAction::Refuse(FailureKind::Full) } else { ServerAction::Serve },
    );
    drop(RemoteStore::open(server.connector(), RemoteMode::Write, options()).unwrap());
    server.plan(
        |n, _| if n < 3 { ServerAction::Refuse(FailureKind::Full) } else { ServerAction::Serve },
    );
    assert!(RemoteStore::look(server.connector(), NAME).unwrap());
    // After the retry time, it fails with the server's message.
    server.plan(|_, _| ServerAction::Refuse(FailureKind::Full));
    let options = options().with_retry_for(Duration::from_millis(200));
    let before = server.world().dials;
    let error = RemoteStore::open(server.connector(), RemoteMode::Write, options).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::Unreachable);
    let message = error.to_string();
    assert!(message.contains("no connection left") && message.contains("not want"), "{message}");
    // Pauses of 50 ms, 100 ms, and the rest of 200 ms.
    assert!((2..=4).contains(&(server.world().dials - before)));
}

/// A connector to a server that refuses some connections.
struct Refusing {
    server: Server,
    /// Which connections are refused, numbered from 1.
    refused: &'static [usize],
    dials: usize,
}

impl Connector for Refusing {
    fn connect(&mut self, within: Duration) -> io::Result<Link> {
        self.dials += 1;
        match self.refused.contains(&self.dials) {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => self.server.connector().connect(within),
        }
    }
}

#[test]
fn an_opening_is_tried_again_while_a_server_that_was_there_restarts() {
    let server = Server::new();
    drop(create(&server));
    let open = |refused| {
        let connector = Box::new(Refusing { server: server.clone(), refused, dials: 0 });
        RemoteStore::open(connector, RemoteMode::Write, options()).map(drop)
    };
    server.world().cuts.push_back(Cut { to_server: usize::MAX, to_client: 10 });
    open(&[2, 3]).unwrap();
    // A server that refuses the first connection is tried once.
    assert_eq!(open(&[1]).unwrap_err().kind(), OpenErrorKind::Unreachable);
}

/// An open session reconnects when the server has a free connection again, just as it reconnects
/// after a lost link.
#[test]
fn a_lost_link_is_replaced_once_the_server_has_room_again() {
    let server = Server::new();
    let mut store = create(&server);
    fill(&mut store, &all_whole(), 1);
    server.plan(|n, _| match n {
        0 => ServerAction::Cut,
        1..4 => ServerAction::Refuse(FailureKind::Full),
        _ => ServerAction::Serve,
    });
    store.flush().unwrap();
}

#[test]
fn impossible_trees_are_refused() {
    let disguises: [Disguise; 3] = [
        |opened| Opened { shapes: Vec::new(), ..opened },
        |opened| Opened { shapes: vec![with_bucket_bytes(1 << 26)], ..opened },
        |opened| Opened { shapes: vec![with_bucket_bytes(1)], ..opened },
    ];
    for disguise in disguises {
        let server = Server::new();
        drop(create(&server));
        server.world().disguise = Some(disguise);
        assert_eq!(open_error(&server), OpenErrorKind::Damaged);
    }
    let server = Server::new();
    server.world().disguise = Some(|opened| Opened { shapes: Vec::new(), ..opened });
    let error = RemoteStore::create(server.connector(), &shapes(), options()).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::NotAStore);
    let too_large = [with_bucket_bytes(1 << 26)];
    let error = RemoteStore::create(server.connector(), &too_large, options()).err().unwrap();
    assert_eq!(error.kind(), OpenErrorKind::InvalidShapes);
}

/// The shape of a tree with buckets of `bucket_bytes` bytes. The parts of a bucket need not fit
/// into that size.
fn with_bucket_bytes(bucket_bytes: u64) -> TreeShape {
    let mut levels = shapes()[0].levels().to_vec();
    levels[1].bucket_bytes = bucket_bytes;
    TreeShape::new(levels)
}

struct Nowhere(io::ErrorKind);

impl Connector for Nowhere {
    fn connect(&mut self, _: Duration) -> io::Result<Link> {
        Err(self.0.into())
    }
}

#[test]
fn unreachable_servers_and_invalid_names_are_errors() {
    for (kind, expected, message) in [
        (io::ErrorKind::ConnectionRefused, OpenErrorKind::Unreachable, "reach"),
        (io::ErrorKind::PermissionDenied, OpenErrorKind::NotAdmitted, "keys"),
    ] {
        let error = RemoteStore::look(Box::new(Nowhere(kind)), NAME).unwrap_err();
        assert_eq!(error.kind(), expected);
        assert!(error.to_string().contains(message), "{error}");
    }
    for name in ["", "../x", "a b"] {
        let nowhere = || Box::new(Nowhere(io::ErrorKind::ConnectionRefused));
        let error = RemoteStore::remove(nowhere(), name).unwrap_err();
        assert_eq!(error.kind(), OpenErrorKind::Missing, "{error}");
        let options = options().with_name(name);
        assert!(RemoteStore::create(nowhere(), &shapes(), options).is_err());
    }
}
