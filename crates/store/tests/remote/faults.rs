//! Tests of calls during which a link breaks, or the server restarts or refuses.

use std::thread;
use std::time::Duration;

use oblivio_core::StoreErrorKind;
use oblivio_core::store::BucketStore;
use oblivio_store::{RemoteMode, RemoteStore};
use oblivio_wire::message::VERSION;
use oblivio_wire::{Answer, FailureKind, OpenMode, Opened, Request};

use crate::bench::{
    all_pieces, all_whole, create, create_with, fill, memory, options, read, shapes, steps, take,
    try_fill, try_read,
};
use crate::line::Cut;
use crate::server::{NAME, Server, ServerAction, framed};

/// The numbers of all received requests, including repetitions.
fn numbers(server: &Server) -> Vec<u64> {
    let world = server.world();
    world.frames.iter().map(|frame| Request::decode(frame).unwrap().number()).collect()
}

fn is_read(request: &Request) -> bool {
    matches!(request, Request::Read { .. })
}

#[test]
fn a_link_may_break_at_any_byte() {
    let calls = steps(14, 3);
    let welcome = framed(&Answer::Welcome { version: VERSION }.encode()).len();
    let open = Request::Open { name: NAME.into(), mode: OpenMode::Create(shapes()) };
    let opened = Opened {
        shapes: shapes(),
        damage: vec!["ab!".into()],
        mended: vec!["c".into()],
        ..Opened::default()
    };
    let before = Cut {
        to_server: framed(&Request::Hello { version: VERSION }.encode()).len()
            + framed(&open.encode()).len(),
        to_client: welcome + framed(&Answer::Opened(opened).encode()).len(),
    };
    let run = |cut| {
        let server = Server::new();
        server.world().cuts.push_back(cut);
        take(&calls, &mut create(&server), &mut memory());
        let world = server.world();
        (world.frames_once(), world.dials)
    };
    let (expected, _) = run(Cut::NEVER);
    let to_server = |bytes| Cut { to_server: before.to_server + bytes, ..Cut::NEVER };
    let to_client = |bytes| Cut { to_client: before.to_client + bytes, ..Cut::NEVER };
    let ways: [&dyn Fn(usize) -> Cut; 2] = [&to_server, &to_client];
    for cut_after in ways {
        let broken = (1..).step_by(7).map(cut_after).take_while(|cut| {
            let (frames, dials) = run(*cut);
            assert!(frames == expected && dials <= 2, "{cut:?}");
            dials == 2
        });
        let lines = broken.count();
        assert!(lines > 50, "{lines} lines broke");
    }
}

#[test]
fn unanswered_requests_are_sent_again_and_after_a_restart_all_unflushed_writes() {
    for (action, expected) in [
        (ServerAction::Cut, vec![1, 2, 3, 4, 5, 6, 6]),
        (ServerAction::CutAnswer, vec![1, 2, 3, 4, 5, 6, 6]),
        (ServerAction::Restart(0), vec![1, 2, 3, 4, 5, 6, 3, 4, 5, 6]),
        (ServerAction::Restart(2), vec![1, 2, 3, 4, 5, 6, 3, 4, 5, 6]),
    ] {
        let server = Server::new();
        let mut store = create(&server);
        let (whole, mut memory) = (all_whole(), memory());
        server.plan(move |n, _| if n == 5 { action.clone() } else { ServerAction::Serve });
        fill(&mut store, &whole[1..], 1);
        store.flush().unwrap();
        for seed in 2..5 {
            fill(&mut store, &whole[1..], seed);
            fill(&mut memory, &whole[1..], seed);
        }
        // The read comes after all writes, and needs the server.
        assert!(read(&mut store, &whole[..1]) == read(&mut memory, &whole[..1]));
        assert_eq!(numbers(&server), expected);
        store.flush().unwrap();
        server.world().restart(0);
        assert!(server.world().holds(&all_pieces()) == read(&mut memory, &all_pieces()));
    }
}

#[test]
fn a_flush_whose_answer_is_lost_is_sent_again() {
    let server = Server::new();
    let mut store = create(&server);
    server.plan(|n, _| if n == 1 { ServerAction::CutAnswer } else { ServerAction::Serve });
    fill(&mut store, &all_whole(), 1);
    store.flush().unwrap();
    assert_eq!(numbers(&server), [1, 2, 2]);
    // Nothing was written since.
    store.flush().unwrap();
    assert_eq!(numbers(&server), [1, 2, 2]);
}

#[test]
fn a_fenced_client_makes_no_further_attempts() {
    for is_told in [false, true] {
        let server = Server::new();
        let mut store = create(&server);
        fill(&mut store, &all_whole(), 1);
        if is_told {
            server.plan(|_, _| ServerAction::Refuse(FailureKind::Fenced));
        } else {
            RemoteStore::open(server.connector(), RemoteMode::Write, options()).unwrap();
        }
        let error = store.flush().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Fenced);
        assert!(error.to_string().starts_with("another client has opened the volume: "), "{error}");
        assert!(!error.to_string().contains(char::is_control), "{error:?}");
        let dials = server.world().dials;
        assert_eq!(try_fill(&mut store, &[], 1).unwrap_err().kind(), StoreErrorKind::Fenced);
        assert_eq!(try_read(&mut store, &[]).unwrap_err().kind(), StoreErrorKind::Fenced);
        assert_eq!(store.flush().unwrap_err().kind(), StoreErrorKind::Fenced);
        store.prefetch(&all_whole());
        assert_eq!(server.world().dials, dials);
    }
}

#[test]
fn a_failed_write_or_flush_is_final() {
    for (failing, kind) in
        [(0, FailureKind::Full), (1, FailureKind::Failed), (1, FailureKind::Absent)]
    {
        let server = Server::new();
        let mut store = create(&server);
        server.plan(
            move |n, _| if n == failing { ServerAction::Refuse(kind) } else { ServerAction::Serve },
        );
        fill(&mut store, &all_whole(), 1);
        assert_eq!(store.flush().unwrap_err().kind(), kind.store_kind());
        let frames = server.world().frames.len();
        assert_eq!(store.flush().unwrap_err().kind(), kind.store_kind());
        assert_eq!(try_read(&mut store, &all_whole()).unwrap_err().kind(), kind.store_kind());
        let world = server.world();
        assert_eq!((world.frames.len(), world.dials), (frames, 1));
    }
}

#[test]
fn a_failed_read_affects_no_other_call() {
    for (kind, dials) in [(FailureKind::Absent, 1), (FailureKind::Damaged, 2)] {
        let server = Server::new();
        let mut store = create(&server);
        let (whole, mut memory) = (all_whole(), memory());
        fill(&mut store, &whole, 1);
        fill(&mut memory, &whole, 1);
        store.flush().unwrap();
        server.plan(
            move |n, _| if n == 1 { ServerAction::Refuse(kind) } else { ServerAction::Serve },
        );
        store.prefetch(&whole[..1]);
        let error = try_read(&mut store, &whole[1..2]).unwrap_err();
        assert_eq!(error.kind(), kind.store_kind());
        assert!(
            error.to_string().ends_with("the server says: it  [31mdoes not want to"),
            "{error}"
        );
        store.prefetch(&whole[3..4]);
        assert!(read(&mut store, &whole) == read(&mut memory, &whole));
        fill(&mut store, &whole, 2);
        store.flush().unwrap();
        assert_eq!(server.world().dials, dials);
    }
}

/// Pieces whose prefetch failed are requested again, because the failure may be due to another
/// piece of the request.
#[test]
fn pieces_whose_prefetch_failed_are_requested_again() {
    for kind in [FailureKind::Absent, FailureKind::Damaged] {
        let server = Server::new();
        let mut store = create(&server);
        let (whole, mut memory) = (all_whole(), memory());
        fill(&mut store, &whole, 1);
        fill(&mut memory, &whole, 1);
        store.flush().unwrap();
        server.plan(
            move |n, _| if n == 0 { ServerAction::Refuse(kind) } else { ServerAction::Serve },
        );
        store.prefetch(&whole[..3]);
        store.prefetch(&whole[3..5]);
        assert!(read(&mut store, &whole) == read(&mut memory, &whole));
    }
}

#[test]
fn announced_pieces_are_requested_once_and_the_rest_in_one_request() {
    let server = Server::new();
    let mut store = create(&server);
    let whole = all_whole();
    fill(&mut store, &whole, 1);
    store.flush().unwrap();
    server.world().frames.clear();
    store.prefetch(&whole[..3]);
    store.prefetch(&whole[2..4]);
    let expected = read(&mut store, &whole);
    assert!(read(&mut store, &whole[2..3]) == expected[two_and_its_bytes()]);
    let asked: Vec<_> = {
        let world = server.world();
        world.frames.iter().map(|frame| Request::decode(frame).unwrap()).collect()
    };
    let pieces = |request: &Request| match request {
        Request::Read { pieces, .. } => pieces.clone(),
        other => panic!("{other:?}"),
    };
    assert!(asked.iter().all(is_read));
    let asked: Vec<_> = asked.iter().map(pieces).collect();
    assert_eq!(asked, [&whole[..3], &whole[3..4], &whole[4..]]);
    // Buckets written as a whole are kept until they are durable.
    fill(&mut store, &whole, 2);
    store.prefetch(&all_pieces());
    let mut memory = memory();
    fill(&mut memory, &whole, 2);
    assert!(read(&mut store, &all_pieces()) == read(&mut memory, &all_pieces()));
    assert!(!server.world().frames[3..].iter().any(|it| is_read(&Request::decode(it).unwrap())));
}

/// The byte range of the third whole bucket in the contents of all whole buckets.
fn two_and_its_bytes() -> std::ops::Range<usize> {
    let bytes: Vec<_> =
        all_whole().iter().map(|piece| memory().span(piece).unwrap().bytes).collect();
    let start = bytes[0] + bytes[1];
    start..start + bytes[2]
}

#[test]
fn a_server_that_returns_in_time_is_reconnected() {
    let server = Server::new();
    let mut store = create(&server);
    let mut memory = memory();
    fill(&mut memory, &all_whole(), 1);
    fill(&mut store, &all_whole(), 1);
    server.plan(|n, _| if n == 0 { ServerAction::Cut } else { ServerAction::Serve });
    server.world().is_unreachable = true;
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(120));
            let mut world = server.world();
            world.is_unreachable = false;
            world.restart(0);
        });
        store.flush().unwrap();
    });
    assert!(server.world().holds(&all_pieces()) == read(&mut memory, &all_pieces()));
    let dials = server.world().dials;
    assert!((3..8).contains(&dials), "pauses must grow: {dials}");
}

#[test]
fn the_store_fails_if_the_server_stays_unreachable() {
    let server = Server::new();
    let retry_for = Duration::from_millis(150);
    let mut store = create_with(&server, options().with_retry_for(retry_for));
    fill(&mut store, &all_whole(), 1);
    server.plan(|_, _| ServerAction::Cut);
    server.world().is_unreachable = true;
    let error = store.flush().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    assert!(error.to_string().contains("could not be reached for 150ms"), "{error}");
    // The store stays failed.
    server.plan(|_, _| ServerAction::Serve);
    server.world().is_unreachable = false;
    let dials = server.world().dials;
    assert_eq!(store.flush().unwrap_err().kind(), StoreErrorKind::Unreachable);
    assert_eq!(server.world().dials, dials);
    // Opening it again finds the durable state.
    let opened = RemoteStore::open(server.connector(), RemoteMode::Write, options()).unwrap().0;
    assert_eq!(opened.shapes(), shapes());
}

/// A client gives up, in time, a server that answers a message on each link but never the awaited
/// request. Until then, the client retries at a bounded rate.
#[test]
fn a_server_without_progress_is_given_up_in_time_and_not_flooded() {
    let server = Server::new();
    let retry_for = Duration::from_millis(600);
    let mut store = create_with(&server, options().with_retry_for(retry_for));
    fill(&mut store, &all_whole()[..1], 1);
    // Writes are answered, but lost with each restart.
    server.plan(|_, request| match request {
        Request::Flush { .. } => ServerAction::Restart(0),
        _ => ServerAction::Serve,
    });
    let dials = server.world().dials;
    let error = store.flush().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unreachable);
    let dials = server.world().dials - dials;
    // One attempt every 50 ms; with growing pauses there would be four.
    assert!((6..=13).contains(&dials), "{dials}");
}
