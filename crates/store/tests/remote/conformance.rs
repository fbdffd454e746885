//! The contract of every store, with and without faults on the way.

use std::cell::RefCell;
use std::time::Duration;

use oblivio_conformance::{check_durable_store, check_store};
use oblivio_store::{RemoteMode, RemoteOptions, RemoteStore};
use oblivio_wire::Request;

use crate::bench::options;
use crate::server::{Deed, Server};

fn check(options: &RemoteOptions, plan: fn(usize, &Request) -> Deed) {
    check_store(|shapes| {
        let server = Server::new();
        let store = RemoteStore::create(server.dial(), shapes, options.clone()).unwrap();
        server.plan(plan);
        store
    });
}

#[test]
fn conforms_whatever_is_kept() {
    for unflushed_bytes_max in [0, 1000, 64 << 20] {
        check(&options().with_unflushed_bytes_max(unflushed_bytes_max), |_, _| Deed::Do);
    }
}

/// Client and server die at once, and what was not flushed is lost.
#[test]
fn what_was_flushed_outlives_client_and_server() {
    for unflushed_bytes_max in [0, 1000, 64 << 20] {
        let options = options().with_unflushed_bytes_max(unflushed_bytes_max);
        let server = RefCell::new(Server::new());
        check_durable_store(
            |shapes| {
                server.replace(Server::new());
                RemoteStore::create(server.borrow().dial(), shapes, options.clone()).unwrap()
            },
            |store| {
                drop(store);
                server.borrow().world().restart(0);
                let dial = server.borrow().dial();
                RemoteStore::open(dial, RemoteMode::Write, options.clone()).unwrap().0
            },
        );
    }
}

/// Welcomes and answers to a resumption count, too: every fault hits some of each kind.
#[test]
fn conforms_while_lines_break() {
    check(&options(), |n, _| if n % 7 == 6 { Deed::Cut } else { Deed::Do });
    check(&options(), |n, _| if n % 11 == 10 { Deed::CutAnswer } else { Deed::Do });
}

#[test]
fn conforms_while_the_server_starts_anew_and_forgets() {
    // So little is kept that all of it can be sent again between two starts.
    let options = options().with_unflushed_bytes_max(2000);
    check(&options, |n, _| if n % 83 == 82 { Deed::Restart(n as u64) } else { Deed::Do });
}

#[test]
fn conforms_while_answers_come_late_and_in_another_order() {
    check(&options(), |n, _| match n % 50 {
        7 | 8 | 20 => Deed::Late,
        31 => Deed::Wait(Duration::from_micros(300)),
        _ => Deed::Do,
    });
}
