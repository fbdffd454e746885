//! Time and memory have bounds.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use oblivio_core::BucketId;
use oblivio_core::StoreErrorKind;
use oblivio_core::store::{BucketStore, LevelShape, Part, Piece, TreeId, TreeShape};
use oblivio_store::{Dial, RemoteOptions, RemoteStore};
use oblivio_wire::Request;
use oblivio_wire::link::{Link, Moment};

use crate::bench::{all_whole, create_with, fill, options, read, try_read};
use crate::line::link;
use crate::server::{Deed, Server};

/// Fails if it takes longer.
fn within<T>(time: Duration, act: impl FnOnce() -> T) -> T {
    let until = Moment::now().after(time);
    let done = act();
    assert!(until.left().is_some(), "it takes longer than {time:?}");
    done
}

fn impatient() -> RemoteOptions {
    let answer_within = Duration::from_millis(60);
    RemoteOptions { retry_for: Duration::from_millis(200), answer_within, ..options() }
}

#[test]
fn what_is_kept_is_bounded_and_flushes_follow_from_bytes_alone() {
    let server = Server::new();
    let unflushed_bytes_max = 2000;
    let mut store = create_with(&server, RemoteOptions { unflushed_bytes_max, ..options() });
    for seed in 0..50 {
        fill(&mut store, &all_whole()[..2], seed);
    }
    let (mut kept, mut flushes) = (0, 0);
    for frame in &server.world().frames {
        match Request::decode(frame).unwrap() {
            Request::Flush { .. } => (kept, flushes) = (0, flushes + 1),
            _ => kept += frame.len(),
        }
        assert!(kept <= unflushed_bytes_max);
    }
    assert!((3..20).contains(&flushes), "{flushes}");
}

#[test]
fn a_server_that_stalls_is_given_up() {
    for is_read in [false, true] {
        let server = Server::new();
        let mut store = create_with(&server, impatient());
        server.plan(|_, request| match request {
            Request::Read { .. } | Request::Flush { .. } => Deed::Stall,
            _ => Deed::Do,
        });
        fill(&mut store, &all_whole()[1..], 1);
        let error = within(Duration::from_secs(2), || {
            if is_read { try_read(&mut store, &all_whole()).map(drop) } else { store.flush() }
        });
        let error = error.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable);
        assert!(error.to_string().contains("no answer came within 60ms"), "{error}");
    }
}

/// Slow is not stalled: each answer is in time.
#[test]
fn a_slow_server_is_waited_for() {
    let server = Server::new();
    let mut store = create_with(
        &server,
        RemoteOptions { answer_within: Duration::from_millis(150), ..options() },
    );
    server.plan(|_, _| Deed::Wait(Duration::from_millis(20)));
    (0..10).for_each(|seed| fill(&mut store, &all_whole(), seed));
    store.flush().unwrap();
    assert_eq!(server.world().dials, 1);
}

#[test]
fn a_store_that_is_dropped_waits_for_nobody() {
    let server = Server::new();
    let patient = RemoteOptions { answer_within: Duration::from_secs(600), ..options() };
    let idle = create_with(&server, patient.clone());
    within(Duration::from_secs(2), || drop(idle));
    let server = Server::new();
    let mut store = create_with(&server, patient);
    server.plan(|_, _| Deed::Stall);
    fill(&mut store, &all_whole(), 1);
    store.prefetch(&all_whole());
    within(Duration::from_secs(2), || drop(store));
}

/// A server of which the first line is sound until something long is sent, and later ones lead nowhere.
struct Deaf {
    server: Server,
    others: Vec<UnixStream>,
    is_first: bool,
}

impl Dial for Deaf {
    fn dial(&mut self) -> io::Result<Link> {
        if std::mem::take(&mut self.is_first) {
            return self.server.dial().dial();
        }
        let (near, far) = UnixStream::pair()?;
        self.others.push(far);
        Ok(link(near))
    }
}

fn large_shape() -> TreeShape {
    let bucket_bytes = 12 << 20;
    TreeShape::new(vec![
        LevelShape {
            buckets: 1,
            slots: 0,
            header_bytes: bucket_bytes,
            slots_offset: bucket_bytes,
            slot_bytes: 0,
            bucket_bytes,
        };
        3
    ])
}

fn large_pieces() -> Vec<Piece> {
    let bucket = |level| BucketId::new(level, 0);
    (0..3)
        .map(|level| Piece { tree: TreeId(0), bucket: bucket(level), part: Part::Whole })
        .collect()
}

fn write_zeros(store: &mut RemoteStore) -> Result<(), oblivio_core::StoreError> {
    let zeros = vec![0; 36 << 20];
    let spans =
        [0, 12 << 20, 24 << 20].map(|start| oblivio_core::store::Span { start, bytes: 12 << 20 });
    let frames = oblivio_core::store::Frames::new(&zeros, &spans);
    store.write(&large_pieces(), &mut |blanks| blanks.relay(frames))
}

#[test]
fn trips_that_are_too_long_for_a_message_go_in_several() {
    let server = Server::new();
    let mut store = RemoteStore::create(server.dial(), &[large_shape()], options()).unwrap();
    write_zeros(&mut store).unwrap();
    store.flush().unwrap();
    store.prefetch(&large_pieces());
    assert_eq!(read(&mut store, &large_pieces()).len(), 36 << 20);
    let world = server.world();
    let requests = world.frames.iter().map(|it| match Request::decode(it).unwrap() {
        Request::Read { number, pieces } | Request::Write { number, pieces, .. } => {
            (number, pieces.len())
        }
        Request::Flush { number } => (number, 0),
        other => panic!("{other:?}"),
    });
    assert_eq!(requests.collect::<Vec<_>>(), [(1, 2), (2, 1), (3, 0), (4, 2), (5, 1)]);
}

/// More is sent than the system takes for somebody who does not read.
#[test]
fn a_server_that_does_not_read_is_given_up() {
    let server = Server::new();
    let deaf = Deaf { server: server.clone(), others: Vec::new(), is_first: true };
    let options = impatient();
    let mut store = RemoteStore::create(Box::new(deaf), &[large_shape()], options).unwrap();
    server.plan(|_, _| Deed::Cut);
    let error = within(Duration::from_secs(3), || {
        write_zeros(&mut store).and_then(|()| store.flush()).unwrap_err()
    });
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    within(Duration::from_secs(2), || drop(store));
}
