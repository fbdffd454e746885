//! A server that violates the protocol is detected. It causes neither a panic nor an endless loop.

use std::time::Duration;

use oblivio_core::StoreErrorKind;
use oblivio_core::store::BucketStore;
use oblivio_store::RemoteOptions;
use oblivio_wire::link::MonotonicTime;
use oblivio_wire::{Answer, Failure, FailureKind, Opened, Request};

use crate::bench::{all_whole, create_with, fill, options, shapes, try_read};
use crate::server::{Disguise, Server, ServerAction, framed};

fn soon() -> RemoteOptions {
    let retry_for = Duration::from_millis(150);
    options().with_retry_for(retry_for).with_answer_within(Duration::from_millis(300))
}

fn say(answer: &Answer) -> ServerAction {
    ServerAction::Say(framed(&answer.encode()))
}

/// The error that the client reports if the server performs `action` on the first request. The
/// client reads all whole buckets if `is_read`; otherwise it writes and flushes them.
fn outcome(is_read: bool, action: ServerAction) -> (StoreErrorKind, String) {
    let server = Server::new();
    let mut store = create_with(&server, soon());
    let begun = MonotonicTime::now();
    server.plan(move |n, _| if n == 0 { action.clone() } else { ServerAction::Serve });
    let outcome = if is_read {
        try_read(&mut store, &all_whole()).map(drop)
    } else {
        fill(&mut store, &all_whole(), 1);
        store.flush()
    };
    assert!(begun.after(Duration::from_secs(3)).left().is_some(), "it took too long");
    let error = outcome.unwrap_err();
    // The failure is final.
    assert_eq!(store.flush().unwrap_err().kind(), error.kind());
    (error.kind(), error.to_string())
}

#[test]
fn wrong_answers_are_fatal() {
    let bytes = vec![0; 10];
    let failed = |number| {
        let message = "\x1b[2J".into();
        Answer::Failed(Failure { number, kind: FailureKind::Failed, message })
    };
    for (is_read, action, expected) in [
        (true, say(&Answer::Data { number: 7, bytes: bytes.clone().into() }), "without a request"),
        (true, say(&Answer::Data { number: 1, bytes: bytes.clone().into() }), "10 bytes"),
        (true, say(&Answer::Done { number: 1 }), "no bytes for a read"),
        (true, say(&Answer::Done { number: 0 }), "without a request"),
        (true, say(&Answer::Welcome { version: 1 }), "answer without a request"),
        (true, say(&Answer::Opened(Opened::default())), "answer without a request"),
        (true, say(&Answer::Looked { is_there: true }), "answer without a request"),
        (true, say(&failed(9)), "reports a failure"),
        (true, ServerAction::Say(framed(b"")), "not a message"),
        (true, ServerAction::Say(framed(b"garbage")), "not a message"),
        (true, ServerAction::Say(framed(&[200; 1000])), "not a message"),
        (false, say(&Answer::Data { number: 1, bytes: bytes.into() }), "not a read"),
        (
            false,
            ServerAction::SayFirst(framed(&Answer::Done { number: 1 }.encode())),
            "without a request",
        ),
        // The server answers the flush, but has not answered the write.
        (false, say(&Answer::Done { number: 2 }), ""),
    ] {
        let (kind, message) = outcome(is_read, action.clone());
        assert_eq!(kind, StoreErrorKind::Failed, "{action:?}: {message}");
        assert!(message.contains(expected), "{action:?}: {message}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}

/// The client treats frames that are too long or never end like a broken link: it retries, but not
/// forever.
#[test]
fn frames_that_are_too_long_or_never_end_are_given_up() {
    for begins in [&[255; 4][..], &[0, 0, 0, 2, 134], &[9]] {
        let server = Server::new();
        let mut store = create_with(&server, soon());
        server.plan(move |_, request| match request {
            Request::Read { .. } => ServerAction::Say(begins.to_vec()),
            _ => ServerAction::Serve,
        });
        let error = try_read(&mut store, &all_whole()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    }
}

#[test]
fn a_server_that_restarts_repeatedly_is_given_up() {
    let server = Server::new();
    let mut store = create_with(&server, soon());
    fill(&mut store, &all_whole(), 1);
    fill(&mut store, &all_whole(), 2);
    // Before each restart, the server answers at least one request.
    server.plan(move |_, request| match request {
        Request::Write { number: 2, .. } | Request::Flush { .. } => ServerAction::Restart(0),
        _ => ServerAction::Serve,
    });
    assert_eq!(store.flush().unwrap_err().kind(), StoreErrorKind::Unreachable);
}

#[test]
fn a_different_volume_after_a_lost_link_is_refused() {
    let disguises: [(Disguise, &str); 3] = [
        (|opened| Opened { shapes: vec![shapes()[1].clone()], ..opened }, "other trees"),
        (|opened| Opened { shapes: Vec::new(), ..opened }, "other trees"),
        (|opened| Opened { session: opened.session + 1, ..opened }, "another session"),
    ];
    for (disguise, expected) in disguises {
        let server = Server::new();
        let mut store = create_with(&server, soon());
        server.plan(|n, _| if n == 0 { ServerAction::Cut } else { ServerAction::Serve });
        server.world().disguise = Some(disguise);
        let error = try_read(&mut store, &all_whole()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Failed);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(server.world().dials, 2);
    }
}
