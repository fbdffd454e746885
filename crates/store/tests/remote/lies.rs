//! A server that says what is not so is found out: nothing panics, and nothing goes on for ever.

use std::time::Duration;

use oblivio_core::StoreErrorKind;
use oblivio_core::store::BucketStore;
use oblivio_store::RemoteOptions;
use oblivio_wire::link::Moment;
use oblivio_wire::{Answer, Failure, FailureKind, Opened, Request};

use crate::bench::{all_whole, create_with, fill, options, shapes, try_read};
use crate::server::{Deed, Disguise, Server, framed};

fn soon() -> RemoteOptions {
    let retry_for = Duration::from_millis(150);
    options().with_retry_for(retry_for).with_answer_within(Duration::from_millis(300))
}

fn say(answer: &Answer) -> Deed {
    Deed::Say(framed(&answer.encode()))
}

/// What a write of everything and a flush, or a read, come to if the server does this at first.
fn outcome(is_read: bool, deed: Deed) -> (StoreErrorKind, String) {
    let server = Server::new();
    let mut store = create_with(&server, soon());
    let begun = Moment::now();
    server.plan(move |n, _| if n == 0 { deed.clone() } else { Deed::Do });
    let outcome = if is_read {
        try_read(&mut store, &all_whole()).map(drop)
    } else {
        fill(&mut store, &all_whole(), 1);
        store.flush()
    };
    assert!(begun.after(Duration::from_secs(3)).left().is_some(), "it takes too long");
    let error = outcome.unwrap_err();
    // It is the last word.
    assert_eq!(store.flush().unwrap_err().kind(), error.kind());
    (error.kind(), error.to_string())
}

#[test]
fn answers_that_do_not_fit_are_the_last() {
    let bytes = vec![0; 10];
    let failed = |number| {
        let message = "\x1b[2J".into();
        Answer::Failed(Failure { number, kind: FailureKind::Failed, message })
    };
    for (is_read, deed, expected) in [
        (true, say(&Answer::Data { number: 7, bytes: bytes.clone().into() }), "nobody waits"),
        (true, say(&Answer::Data { number: 1, bytes: bytes.clone().into() }), "10 bytes"),
        (true, say(&Answer::Done { number: 1 }), "no bytes for a read"),
        (true, say(&Answer::Done { number: 0 }), "nobody waits"),
        (true, say(&Answer::Welcome { version: 1 }), "what was not asked"),
        (true, say(&Answer::Opened(Opened::default())), "what was not asked"),
        (true, say(&Answer::Looked { is_there: true }), "what was not asked"),
        (true, say(&failed(9)), "does not go on"),
        (true, Deed::Say(framed(b"")), "no message"),
        (true, Deed::Say(framed(b"garbage")), "no message"),
        (true, Deed::Say(framed(&[200; 1000])), "no message"),
        (false, say(&Answer::Data { number: 1, bytes: bytes.into() }), "what was no read"),
        (false, Deed::SayFirst(framed(&Answer::Done { number: 1 }.encode())), "nobody waits"),
        // That of the flush, and the write is not done.
        (false, say(&Answer::Done { number: 2 }), ""),
    ] {
        let (kind, message) = outcome(is_read, deed.clone());
        assert_eq!(kind, StoreErrorKind::Failed, "{deed:?}: {message}");
        assert!(message.contains(expected), "{deed:?}: {message}");
        assert!(!message.contains(char::is_control), "{message:?}");
    }
}

/// A line that breaks looks the same: it is tried again, and not for ever.
#[test]
fn frames_that_are_too_long_or_never_end_are_given_up() {
    for begins in [&[255; 4][..], &[0, 0, 0, 2, 134], &[9]] {
        let server = Server::new();
        let mut store = create_with(&server, soon());
        server.plan(move |_, request| match request {
            Request::Read { .. } => Deed::Say(begins.to_vec()),
            _ => Deed::Do,
        });
        let error = try_read(&mut store, &all_whole()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
    }
}

#[test]
fn a_server_that_starts_anew_again_and_again_is_given_up() {
    let server = Server::new();
    let mut store = create_with(&server, soon());
    fill(&mut store, &all_whole(), 1);
    fill(&mut store, &all_whole(), 2);
    // Each time it answers something first.
    server.plan(move |_, request| match request {
        Request::Write { number: 2, .. } | Request::Flush { .. } => Deed::Restart(0),
        _ => Deed::Do,
    });
    assert_eq!(store.flush().unwrap_err().kind(), StoreErrorKind::Unreachable);
}

#[test]
fn a_volume_that_is_another_after_the_line_broke_is_refused() {
    let disguises: [(Disguise, &str); 3] = [
        (|opened| Opened { shapes: vec![shapes()[1].clone()], ..opened }, "other trees"),
        (|opened| Opened { shapes: Vec::new(), ..opened }, "other trees"),
        (|opened| Opened { session: opened.session + 1, ..opened }, "another session"),
    ];
    for (disguise, expected) in disguises {
        let server = Server::new();
        let mut store = create_with(&server, soon());
        server.plan(|n, _| if n == 0 { Deed::Cut } else { Deed::Do });
        server.world().disguise = Some(disguise);
        let error = try_read(&mut store, &all_whole()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Failed);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(server.world().dials, 2);
    }
}
