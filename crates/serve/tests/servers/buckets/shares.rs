//! Servers that compute: who may ask them, and who may deal.

use std::net::{SocketAddr, TcpListener};

use oblivio_serve::buckets::BucketLimits;
use oblivio_wire::keys::{PeerServer, PublicKey};
use oblivio_wire::{FailureKind, OpenMode, Request};
use tempfile::TempDir;

use super::party::{READ, Server, Someone, create, open_request};
use crate::support::wait_until;

fn compute(message: &[u8]) -> Request {
    Request::Compute { number: 4, message: message.to_vec() }
}

fn peer_of(client: &Someone, name: &str) -> Request {
    Request::Peer { client: client.key.public(), name: name.into() }
}

fn at(key: PublicKey, address: SocketAddr) -> PeerServer {
    PeerServer { key, address: address.to_string(), label: None }
}

/// One that is free.
fn any_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A server that computes with others, which are no more than keys.
fn start(folder: &TempDir, clients: &[&Someone], peers: &[&Someone]) -> Server {
    let own = Someone::called("server").key;
    let peers = peers.iter().map(|peer| at(peer.key.public(), any_address())).collect();
    let address = "127.0.0.1:0".parse().unwrap();
    let limits = BucketLimits { connections_max: 2, ..BucketLimits::default() };
    Server::start_as(folder.path(), clients, limits, (own, address), Some(peers))
}

#[test]
fn a_server_without_peers_computes_nothing_and_says_how_it_would() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Someone::called("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut client, _) = server.open(&alice, "disk", create());
    let refused = client.last_refusal(&compute(b"how far are you?"));
    assert!(refused.contains("oblivio serve shares"), "{refused}");
    let refused = server.greet(&alice).last_refusal(&peer_of(&alice, "disk"));
    assert!(refused.contains("oblivio serve shares"), "{refused}");
    assert_eq!(server.metric("requests_total{kind=\"compute\"}"), 1);
}

#[test]
fn only_who_may_write_may_ask_what_computes() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, peer) = (Someone::called("alice"), Someone::called("peer"));
    let server = start(&folder, &[&alice], &[&peer]);
    let (mut old, _) = server.open(&alice, "disk", create());
    let (new, _) = server.open(&alice, "disk", OpenMode::Write);
    assert_eq!(old.last_failure(&compute(b"late")), FailureKind::Fenced);
    drop((old, new));
    wait_until(|| server.metric("connections") == 0);
    for mode in [READ, OpenMode::Look] {
        let (mut client, _) = server.open(&alice, "disk", mode);
        assert_eq!(client.last_failure(&compute(b"")), FailureKind::Refused);
        drop(client);
        wait_until(|| server.metric("connections") == 0);
    }
    assert_eq!(server.greet(&alice).last_failure(&compute(b"")), FailureKind::Invalid);
    let deal = Request::Deal { message: vec![1] };
    assert_eq!(server.greet(&alice).last_failure(&deal), FailureKind::Invalid);
    let refused = server.greet(&alice).last_refusal(&peer_of(&alice, "disk"));
    assert!(refused.contains("another server"), "{refused}");
}

#[test]
fn a_server_comes_for_a_volume_that_there_is_and_for_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let [alice, peer, stranger] = ["alice", "peer", "stranger"].map(Someone::called);
    let server = start(&folder, &[&alice], &[&peer]);
    let _owner = server.open(&alice, "disk", create());
    assert!(server.try_greet(&stranger).is_none());
    for (client, name) in [(&stranger, "disk"), (&peer, "disk"), (&alice, "other")] {
        let refused = server.greet(&peer).last_failure(&peer_of(client, name));
        assert_eq!(refused, FailureKind::NoVolume, "{name}");
    }
    for strange in [
        open_request("disk", OpenMode::Write),
        compute(b""),
        Request::Deal { message: vec![] },
        Request::Remove { name: "disk".into() },
    ] {
        assert_eq!(server.greet(&peer).last_failure(&strange), FailureKind::Refused);
    }
}

/// Neither kind takes seats of the other.
#[test]
fn servers_and_clients_have_seats_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (alice, peer) = (Someone::called("alice"), Someone::called("peer"));
    let server = start(&folder, &[&alice], &[&peer]);
    let servers: Vec<_> = (0..5).map(|_| server.greet(&peer)).collect();
    assert_eq!((server.metric("connections"), server.metric("peers")), (0, 5));
    let clients: Vec<_> = (0..2).map(|_| server.greet(&alice)).collect();
    assert!(server.try_greet(&alice).is_none());
    drop((servers, clients));
    wait_until(|| server.metric("peers") == 0);
}
