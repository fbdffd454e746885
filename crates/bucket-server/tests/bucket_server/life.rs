//! Start, stop and restart of servers.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::Duration;

use oblivio_bucket_server::{BucketLimits, BucketServer, BucketServerError, BucketServerOptions};
use oblivio_wire::keys::{AllowedClient, PeerServer, SecretKey};
use oblivio_wire::{Answer, OpenMode, Request};

use super::party::{Party, Server, create, write_of};

#[test]
fn stopping_under_load_loses_no_flushed_write() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let names = ["a", "b", "c"];
    let clients = names.map(|name| server.open(&alice, name, create()).0);
    // The last flushed round of each client.
    let flushed = thread::scope(|scope| {
        let loads = clients.map(|mut client| {
            scope.spawn(move || {
                let mut flushed = 0;
                for round in 1..=u8::MAX {
                    let _ = client.try_say(&write_of(1, 4, round));
                    let _ = client.try_say(&Request::Flush { number: 2 });
                    if client.try_hear() != Some(Answer::Done { number: 1 })
                        || client.try_hear() != Some(Answer::Done { number: 2 })
                    {
                        break;
                    }
                    flushed = round;
                }
                flushed
            })
        });
        thread::sleep(Duration::from_millis(30));
        server.stop();
        loads.map(|load| load.join().unwrap())
    });
    let server = Server::start(folder.path(), &[&alice]);
    for (name, flushed) in names.into_iter().zip(flushed) {
        let (mut client, _) = server.open(&alice, name, OpenMode::Write);
        let read = client.read(4);
        // The next write may have arrived too.
        assert!(read == flushed || read == flushed + 1, "{read} after {flushed}");
    }
}

#[test]
fn stopping_does_not_wait_for_silent_connections() {
    let folder = tempfile::tempdir().unwrap();
    let alice = Party::named("alice");
    let server = Server::start(folder.path(), &[&alice]);
    let (mut owner, _) = server.open(&alice, "disk", create());
    let mut silent = server.greet(&alice);
    let stranger = std::net::TcpStream::connect(server.address).unwrap();
    let (ended, end) = std::sync::mpsc::channel();
    let stopping = thread::Builder::new().spawn(move || {
        server.stop();
        ended.send(()).unwrap();
    });
    end.recv_timeout(Duration::from_secs(5)).expect("the server did not stop");
    stopping.unwrap().join().unwrap();
    owner.expect_end();
    silent.expect_end();
    drop(stranger);
}

#[test]
fn a_server_that_is_stopped_before_it_runs_returns_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = bind(folder.path(), vec![]).unwrap();
    let handle = server.handle();
    handle.stop();
    handle.stop();
    server.run().unwrap();
    // Remaining handles do not lock the folder.
    drop(bind(folder.path(), vec![]).unwrap());
    assert!(handle.metrics().contains("oblivio_store_connections 0\n"));
}

#[test]
fn invalid_options_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let client = |name: &str| AllowedClient {
        key: SecretKey::generate().unwrap().public(),
        name: name.into(),
        quota_bytes: None,
    };
    let first = bind(path, vec![client("alice")]).unwrap();
    let refused = |path: &Path, clients| bind(path, clients).map(drop).unwrap_err();
    assert!(matches!(refused(path, vec![]), BucketServerError::InUse(_)));
    drop(first);
    for clients in [vec![client("../alice")], vec![client("a"), client("a")]] {
        assert!(matches!(refused(path, clients), BucketServerError::Client(_)));
    }
    let twice = client("a");
    let clients = vec![twice.clone(), AllowedClient { name: "b".into(), ..twice }];
    assert!(matches!(refused(path, clients), BucketServerError::Client(_)));
    let key = SecretKey::generate().unwrap();
    let clients = vec![AllowedClient { key: key.public(), ..client("a") }];
    let options = BucketServerOptions {
        folder: path.into(),
        key,
        clients,
        peers: None,
        limits: BucketLimits::default(),
    };
    let refused_itself = BucketServer::bind("127.0.0.1:0".parse().unwrap(), options);
    assert!(matches!(refused_itself, Err(BucketServerError::Client(_))));
    let peer = |key| PeerServer { key, address: "host:1".into(), label: None };
    let both = client("a");
    for peers in [vec![peer(both.key)], vec![peer(client("b").key); 2]] {
        let options = BucketServerOptions {
            folder: path.into(),
            key: SecretKey::generate().unwrap(),
            clients: vec![both.clone()],
            peers: Some(peers),
            limits: BucketLimits::default(),
        };
        let refused = BucketServer::bind("127.0.0.1:0".parse().unwrap(), options);
        assert!(matches!(refused, Err(BucketServerError::Peer(_))));
    }
    fs::write(path.join("file"), "").unwrap();
    for place in ["file", "none"] {
        assert!(matches!(refused(&path.join(place), vec![]), BucketServerError::Folder(..)));
    }
    let limits = BucketLimits { message_bytes_max: 0, ..BucketLimits::default() };
    let limited = bind_with(path, vec![], limits).map(drop).unwrap_err();
    assert!(matches!(limited, BucketServerError::Limits(_)));
}

fn bind(folder: &Path, clients: Vec<AllowedClient>) -> Result<BucketServer, BucketServerError> {
    bind_with(folder, clients, BucketLimits::default())
}

fn bind_with(
    folder: &Path,
    clients: Vec<AllowedClient>,
    limits: BucketLimits,
) -> Result<BucketServer, BucketServerError> {
    let address: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let key = SecretKey::generate().unwrap();
    BucketServer::bind(
        address,
        BucketServerOptions { folder: folder.into(), key, clients, peers: None, limits },
    )
}
