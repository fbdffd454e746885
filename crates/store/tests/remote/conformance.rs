//! The contract of every store, with and without faults on the way.

use std::time::Duration;

use oblivio_store::{RemoteOptions, RemoteStore};
use oblivio_testkit::conformance::check_store;
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
        check(&RemoteOptions { unflushed_bytes_max, ..options() }, |_, _| Deed::Do);
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
    let options = RemoteOptions { unflushed_bytes_max: 2000, ..options() };
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
