//! Tests that the client's time and memory are bounded, whatever the server does.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use oblivio_core::store::{BucketStore, Frames, LevelShape, Part, Piece, Span, TreeId, TreeShape};
use oblivio_core::{BucketId, StoreError, StoreErrorKind};
use oblivio_store::{Connector, RemoteOptions, RemoteStore};
use oblivio_wire::link::{Link, MonotonicTime};
use oblivio_wire::message::VERSION;
use oblivio_wire::{Answer, Opened, Request, frame};

use crate::bench::{all_whole, create_with, fill, options, read, try_fill, try_read};
use crate::line::link;
use crate::server::{Server, ServerAction};

/// Runs `act`, and fails if it takes longer than `time`.
fn within<T>(time: Duration, act: impl FnOnce() -> T) -> T {
    let until = MonotonicTime::now().after(time);
    let done = act();
    assert!(until.left().is_some(), "it took longer than {time:?}");
    done
}

fn impatient() -> RemoteOptions {
    let answer_within = Duration::from_millis(150);
    options().with_retry_for(Duration::from_millis(300)).with_answer_within(answer_within)
}

#[test]
fn kept_bytes_are_bounded_and_flushes_depend_only_on_bytes() {
    let server = Server::new();
    let unflushed_bytes_max = 2000;
    let mut store = create_with(&server, options().with_unflushed_bytes_max(unflushed_bytes_max));
    for seed in 0..50 {
        fill(&mut store, &all_whole()[..2], seed);
    }
    let (mut unflushed, mut flushes) = (0, 0);
    for frame in &server.world().frames {
        match Request::decode(frame).unwrap() {
            Request::Flush { .. } => (unflushed, flushes) = (0, flushes + 1),
            _ => unflushed += frame.len(),
        }
        assert!(unflushed <= unflushed_bytes_max / 2);
    }
    assert!((6..40).contains(&flushes), "{flushes}");
}

#[test]
fn writes_wait_for_a_flush_only_when_as_much_is_new_again() {
    let server = Server::new();
    let unflushed_bytes_max = 4000;
    let mut store = create_with(&server, impatient().with_unflushed_bytes_max(unflushed_bytes_max));
    server.plan(|_, request| match request {
        Request::Flush { .. } => ServerAction::Stall,
        _ => ServerAction::Serve,
    });
    let pieces = &all_whole()[..2];
    let written = (0..50).take_while(|seed| try_fill(&mut store, pieces, *seed).is_ok()).count();
    let each = server.world().frames[0].len();
    let most = unflushed_bytes_max / 2 / each * 2;
    assert!(most >= 6 && (most - 2..=most).contains(&written), "{written} of {most}");
}

#[test]
fn a_server_that_stalls_is_given_up() {
    for is_read in [false, true] {
        let server = Server::new();
        let mut store = create_with(&server, impatient());
        server.plan(|_, request| match request {
            Request::Read { .. } | Request::Flush { .. } => ServerAction::Stall,
            _ => ServerAction::Serve,
        });
        fill(&mut store, &all_whole()[1..], 1);
        let error = within(Duration::from_secs(2), || {
            if is_read { try_read(&mut store, &all_whole()).map(drop) } else { store.flush() }
        });
        let error = error.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable);
        assert!(error.to_string().contains("no answer came within 150ms"), "{error}");
    }
}

/// The client does not give up a slow server, because each answer arrives within the time limit.
#[test]
fn a_slow_server_is_not_given_up() {
    let server = Server::new();
    let mut store = create_with(&server, options().with_answer_within(Duration::from_millis(350)));
    server.plan(|_, _| ServerAction::Wait(Duration::from_millis(20)));
    (0..20).for_each(|seed| fill(&mut store, &all_whole(), seed));
    store.flush().unwrap();
    assert_eq!(server.world().dials, 1);
}

#[test]
fn dropping_a_store_does_not_wait() {
    let server = Server::new();
    let patient = options().with_answer_within(Duration::from_secs(600));
    let idle = create_with(&server, patient.clone());
    within(Duration::from_secs(2), || drop(idle));
    let server = Server::new();
    let mut store = create_with(&server, patient);
    server.plan(|_, _| ServerAction::Stall);
    fill(&mut store, &all_whole(), 1);
    store.prefetch(&all_whole());
    within(Duration::from_secs(2), || drop(store));
}

/// The shape of a tree of three buckets of `bucket_bytes` bytes.
fn shape_of(bucket_bytes: u64) -> TreeShape {
    let level = LevelShape {
        buckets: 1,
        slots: 0,
        header_bytes: bucket_bytes,
        slots_offset: bucket_bytes,
        slot_bytes: 0,
        bucket_bytes,
    };
    TreeShape::new(vec![level; 3])
}

fn three_buckets() -> [Piece; 3] {
    let bucket = |level| BucketId::new(level, 0);
    [0, 1, 2].map(|level| Piece { tree: TreeId(0), bucket: bucket(level), part: Part::Whole })
}

fn write_zeros(store: &mut RemoteStore, bytes: usize) -> Result<(), StoreError> {
    let zeros = vec![0; 3 * bytes];
    let spans = [0, 1, 2].map(|i| Span { start: i * bytes, bytes });
    let frames = Frames::new(&zeros, &spans);
    store.write(&three_buckets(), &mut |blanks| blanks.relay(frames))
}

#[test]
fn long_trips_are_split_into_several_messages() {
    let server = Server::new();
    let mut store =
        RemoteStore::create(server.connector(), &[shape_of(12 << 20)], options()).unwrap();
    write_zeros(&mut store, 12 << 20).unwrap();
    store.flush().unwrap();
    store.prefetch(&three_buckets());
    assert_eq!(read(&mut store, &three_buckets()).len(), 36 << 20);
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

/// A server that opens a volume, and then reads no more from its links.
struct Deaf(Vec<UnixStream>);

impl Connector for Deaf {
    fn connect(&mut self, _: Duration) -> io::Result<Link> {
        let (near, mut far) = UnixStream::pair()?;
        let shapes = vec![shape_of(4 << 20)];
        let opened = Answer::Opened(Opened { shapes, ..Opened::default() });
        for answer in [Answer::Welcome { version: VERSION }, opened] {
            frame::send(&mut far, &answer.encode())?;
        }
        self.0.push(far);
        Ok(link(near))
    }
}

/// The client gives up a server that stops reading, even if the client has more to send than the
/// socket buffer holds.
#[test]
fn a_server_that_does_not_read_is_given_up() {
    let deaf = Box::new(Deaf(Vec::new()));
    let mut store = RemoteStore::create(deaf, &[shape_of(4 << 20)], impatient()).unwrap();
    let error = within(Duration::from_secs(3), || {
        write_zeros(&mut store, 4 << 20).and_then(|()| store.flush()).unwrap_err()
    });
    assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    within(Duration::from_secs(2), || drop(store));
}
