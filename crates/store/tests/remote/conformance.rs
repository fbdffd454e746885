//! Checks that the remote store keeps the contract of every store, with and without faults.

use std::cell::RefCell;
use std::time::Duration;

use oblivio_conformance::{check_durable_store, check_store};
use oblivio_store::{RemoteMode, RemoteOptions, RemoteStore};
use oblivio_wire::Request;

use crate::bench::options;
use crate::server::{Server, ServerAction};

fn check(options: &RemoteOptions, plan: fn(usize, &Request) -> ServerAction) {
    check_store(|shapes| {
        let server = Server::new();
        let store = RemoteStore::create(server.connector(), shapes, options.clone()).unwrap();
        server.plan(plan);
        store
    });
}

#[test]
fn conforms_with_any_limit_of_unflushed_bytes() {
    for unflushed_bytes_max in [0, 1000, 64 << 20] {
        check(&options().with_unflushed_bytes_max(unflushed_bytes_max), |_, _| ServerAction::Serve);
    }
}

/// Flushed writes survive if client and server stop at the same time. Unflushed writes are lost.
#[test]
fn flushed_writes_survive_client_and_server() {
    for unflushed_bytes_max in [0, 1000, 64 << 20] {
        let options = options().with_unflushed_bytes_max(unflushed_bytes_max);
        let server = RefCell::new(Server::new());
        check_durable_store(
            |shapes| {
                server.replace(Server::new());
                RemoteStore::create(server.borrow().connector(), shapes, options.clone()).unwrap()
            },
            |store| {
                drop(store);
                server.borrow().world().restart(0);
                let connector = server.borrow().connector();
                RemoteStore::open(connector, RemoteMode::Write, options.clone()).unwrap().0
            },
        );
    }
}

/// The store keeps its contract while links break. Greetings and resumptions count as messages, so
/// every kind of message is hit by a fault.
#[test]
fn conforms_while_links_break() {
    check(&options(), |n, _| if n % 7 == 6 { ServerAction::Cut } else { ServerAction::Serve });
    check(
        &options(),
        |n, _| if n % 11 == 10 { ServerAction::CutAnswer } else { ServerAction::Serve },
    );
}

#[test]
fn conforms_while_the_server_restarts_and_loses_unflushed_writes() {
    // The limit is so low that everything can be sent again between two restarts.
    let options = options().with_unflushed_bytes_max(2000);
    check(&options, |n, _| {
        if n % 83 == 82 { ServerAction::Restart(n as u64) } else { ServerAction::Serve }
    });
}

#[test]
fn conforms_while_answers_are_late_and_reordered() {
    check(&options(), |n, _| match n % 50 {
        7 | 8 | 20 => ServerAction::Late,
        31 => ServerAction::Wait(Duration::from_micros(300)),
        _ => ServerAction::Serve,
    });
}
