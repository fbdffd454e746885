//! Floods of connections, and owners who connect in spite of them.

use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use oblivio_bucket_server::BucketLimits;
use oblivio_wire::message::VERSION;
use oblivio_wire::{Answer, Failure, FailureKind, OpenMode, Request};

use super::party::{Party, Server, create, quick_limits};
use oblivio_testkit::memory_disk::{PATIENCE, wait_until};

#[test]
fn two_hundred_silent_connections_keep_no_client_out() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start_with(folder.path(), &[&alice], quick_limits());
    let (mut owner, _) = server.open(&alice, "disk", create());
    let mut strangers: Vec<_> =
        (0..200).map(|_| TcpStream::connect(server.address).unwrap()).collect();
    for round in 0..50 {
        owner.write(1, round);
        assert_eq!(owner.read(1), round);
    }
    owner.flush();
    // A new connection may be displaced at random, and then tries again.
    wait_until(|| server.try_greet(&alice).is_some());
    // All are closed in the end.
    for stranger in &mut strangers {
        stranger.set_read_timeout(Some(PATIENCE)).unwrap();
        let end = stranger.read(&mut [0; 16]);
        let is_reset = |error: &io::Error| error.kind() == ErrorKind::ConnectionReset;
        assert!(matches!(&end, Ok(0)) || end.as_ref().is_err_and(is_reset), "{end:?}");
    }
    let refused = |reason| server.metric(&format!("refused_total{{reason=\"{reason}\"}}"));
    wait_until(|| refused("unknown") + refused("displaced") >= 200);
    assert_eq!(server.metric("handshakes"), 0);
}

/// Connects a client that the server must refuse as full, and returns the server's message.
fn no_room(server: &Server, party: &Party) -> String {
    let mut client = server.try_connect(party).unwrap();
    match client.ask(&Request::Hello { version: VERSION }) {
        Answer::Failed(Failure { kind: FailureKind::Full, message, .. }) => {
            client.expect_end();
            message
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// Refused clients count as handshakes, so even many of them cannot keep other clients out.
#[test]
fn clients_without_a_seat_keep_no_other_client_out() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = (Party::named("alice"), Party::named("bob"));
    let limits = BucketLimits { connections_per_client_max: 1, ..BucketLimits::default() };
    let server = Server::start_with(folder.path(), &[&alice, &bob], limits);
    let _owner = server.open(&alice, "disk", create());
    // These clients do not end their connections themselves.
    let crowd: Vec<_> = (0..40).filter_map(|_| server.try_connect(&alice)).collect();
    wait_until(|| server.try_greet(&bob).is_some());
    wait_until(|| server.metric("handshakes") == 0);
    drop(crowd);
}

#[test]
fn a_connection_beyond_the_limit_replaces_a_possibly_dead_one() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, bob) = (Party::named("alice"), Party::named("bob"));
    let limits = BucketLimits {
        connections_max: 4,
        connections_per_client_max: 3,
        makes_room_after: Duration::from_millis(1500),
        ..BucketLimits::default()
    };
    let server = Server::start_with(folder.path(), &[&alice, &bob], limits);
    let mut hers: Vec<_> =
        ["a", "b", "c"].map(|name| server.open(&alice, name, create())).into_iter().collect();
    assert!(no_room(&server, &alice).contains("3 connections"));
    // Another client can still take the one remaining seat.
    let (mut his, _) = server.open(&bob, "disk", create());
    assert!(no_room(&server, &bob).contains("all connections"));
    assert_eq!(server.metric("refused_total{reason=\"no_room\"}"), 2);
    thread::sleep(Duration::from_millis(1600));
    hers[0].0.write(1, 1);
    hers[2].0.write(1, 1);
    let (mut second, _) = server.open(&alice, "b", OpenMode::Write);
    second.write(1, 1);
    let (mut lost, _) = hers.remove(1);
    lost.expect_end();
    hers.iter_mut().for_each(|(client, _)| client.write(1, 2));
    his.write(1, 1);
    assert_eq!(server.metric("connections"), 4);
}
