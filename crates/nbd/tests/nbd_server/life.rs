//! Tests of starting and stopping a server: its socket file, unsafe options, and requests in
//! flight.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use oblivio_nbd::{Counts, Limits, Listen, NbdOptions, ServeError, TlsMode, serve};

use super::client::{Client, WRITE, request};
use super::disk::MemoryDisk;
use super::tls::Certificates;
use super::{DISK_BYTES, TestServer, tools};
use oblivio_testkit::memory_disk::wait_until;

fn disk() -> Arc<MemoryDisk> {
    Arc::new(MemoryDisk::new(DISK_BYTES, 1))
}

#[test]
fn only_the_owner_can_use_the_socket() {
    let server = TestServer::new();
    let mode = fs::metadata(server.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_socket_left_over_by_a_dead_server_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nbd.sock");
    drop(UnixListener::bind(&socket).unwrap());
    // A child process of another test may hold the listening socket a moment longer.
    wait_until(|| UnixStream::connect(&socket).is_err());
    assert!(socket.exists());
    let server = serve(disk(), Listen::Unix(socket.clone()), NbdOptions::default()).unwrap();
    Client::ready(&socket);
    server.shutdown().unwrap();
    assert!(!socket.exists());
}

#[test]
fn a_socket_of_a_living_server_is_left_alone() {
    let server = TestServer::new();
    let second = serve(disk(), Listen::Unix(server.socket()), NbdOptions::default());
    assert!(matches!(second.err(), Some(ServeError::InUse(_))));
    Client::ready(&server.socket());
}

#[test]
fn a_file_that_is_no_socket_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("precious");
    fs::write(&path, "data").unwrap();
    let server = serve(disk(), Listen::Unix(path.clone()), NbdOptions::default());
    assert!(matches!(server.err(), Some(ServeError::NotASocket(_))));
    assert_eq!(fs::read_to_string(&path).unwrap(), "data");
}

#[test]
fn a_lock_on_the_folder_does_not_block_a_server() {
    let folder = tempfile::tempdir().unwrap();
    // Any user who can read the folder can lock it.
    let locked = fs::File::open(folder.path()).unwrap();
    locked.lock().unwrap();
    let socket = folder.path().join("nbd.sock");
    let server = serve(disk(), Listen::Unix(socket.clone()), NbdOptions::default()).unwrap();
    Client::ready(&socket);
    server.shutdown().unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "files are left in the folder");
}

#[test]
fn a_socket_that_another_server_is_creating_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nbd.sock");
    let lock = fs::File::create(folder.path().join("nbd.sock.lock")).unwrap();
    lock.lock().unwrap();
    let refused = serve(disk(), Listen::Unix(socket.clone()), NbdOptions::default());
    assert!(matches!(refused.err(), Some(ServeError::InUse(_))));
    drop(lock);
    // A stale lock file of a dead server does not block. A child process of another test may hold
    // the lock a moment longer.
    wait_until(|| serve(disk(), Listen::Unix(socket.clone()), NbdOptions::default()).is_ok());
}

#[test]
fn a_lock_file_of_another_user_is_not_trusted() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can create files of other users");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nbd.sock");
    let lock = folder.path().join("nbd.sock.lock");
    fs::write(&lock, "").unwrap();
    std::os::unix::fs::chown(&lock, Some(65534), None).unwrap();
    let refused = serve(disk(), Listen::Unix(socket.clone()), NbdOptions::default());
    assert!(matches!(refused.err(), Some(ServeError::ForeignLock(path)) if path == lock));
    // Symbolic links are not followed.
    fs::remove_file(&lock).unwrap();
    fs::write(folder.path().join("precious"), "data").unwrap();
    std::os::unix::fs::symlink("precious", &lock).unwrap();
    assert!(serve(disk(), Listen::Unix(socket.clone()), NbdOptions::default()).is_err());
    assert_eq!(fs::read_to_string(folder.path().join("precious")).unwrap(), "data");
    assert!(!socket.exists());
}

#[test]
fn a_socket_path_that_is_too_long_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("x".repeat(100));
    fs::create_dir(&deep).unwrap();
    let socket = deep.join("nbd.sock");
    let refused = serve(disk(), Listen::Unix(socket), NbdOptions::default()).err().unwrap();
    assert!(matches!(refused, ServeError::PathTooLong(_)), "{refused}");
    assert!(refused.to_string().contains("choose a shorter one"), "{refused}");
}

#[test]
fn the_socket_of_a_successor_is_left_alone() {
    let server = TestServer::new();
    let socket = server.socket();
    fs::remove_file(&socket).unwrap();
    let _successor = UnixListener::bind(&socket).unwrap();
    server.handle.shutdown().unwrap();
    UnixStream::connect(&socket).unwrap();
}

#[test]
fn other_machines_must_be_allowed() {
    let anywhere: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let refused = serve(disk(), Listen::Tcp(anywhere), NbdOptions::default());
    assert!(matches!(refused.err(), Some(ServeError::NotLoopback(_))));
}

#[test]
fn beyond_loopback_clients_must_authenticate_unless_any_client_is_allowed() {
    let anywhere: SocketAddr = "0.0.0.0:0".parse().unwrap();
    let certificates = Certificates::new();
    let known = certificates.files_for_known_clients();
    let serve_with = |tls: TlsMode, any_client| {
        let options =
            NbdOptions { tls, any_client, beyond_loopback: true, ..NbdOptions::default() };
        serve(disk(), Listen::Tcp(anywhere), options).map(|server| server.shutdown().unwrap())
    };
    for tls in [
        TlsMode::Off,
        TlsMode::Required(certificates.files()),
        TlsMode::Offered(certificates.files()),
        // A client without TLS shows no certificate.
        TlsMode::Offered(known.clone()),
    ] {
        let refused = serve_with(tls.clone(), false);
        assert!(matches!(refused, Err(ServeError::AnyClient(_))), "{tls:?}: {refused:?}");
        serve_with(tls, true).unwrap();
    }
    serve_with(TlsMode::Required(known), false).unwrap();
}

#[test]
fn it_serves_over_tcp() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let options = NbdOptions { export_name: "a disk/1".into(), ..NbdOptions::default() };
        let server = serve(disk(), Listen::Tcp(address.parse().unwrap()), options).unwrap();
        let size = tools::run("nbdinfo", &["--size", &server.uri()]);
        assert_eq!(size.trim(), DISK_BYTES.to_string());
        server.shutdown().unwrap();
    }
}

#[test]
fn requests_in_flight_are_answered_before_the_end() {
    let server = TestServer::new();
    let socket = server.socket();
    let mut client = Client::ready(&socket);
    let mut idle = Client::ready(&socket);
    let mut undecided = Client::connect(&socket);
    wait_until(|| server.handle.connections() == 3);
    server.disk.hold();
    client.say(&request(0, WRITE, 77, 0, 4));
    client.say(b"data");
    wait_until(|| server.disk.taken() == 1);
    let TestServer { disk, handle, folder } = server;
    let stopping = std::thread::Builder::new().spawn(|| handle.shutdown()).unwrap();
    idle.assert_closed();
    undecided.assert_closed();
    wait_until(|| !socket.exists());
    assert!(!stopping.is_finished(), "the server stopped with a request in flight");
    disk.release();
    assert_eq!(client.hear_error(), 0);
    client.assert_closed();
    let counts = stopping.join().unwrap().unwrap();
    assert_eq!(counts, Counts { connections: 3, requests: 1 });
    drop(folder);
}

#[test]
fn shutdown_gives_up_on_a_disk_that_does_not_answer() {
    gives_up_on_a_disk_that_does_not_answer(1000, 1, 1);
}

/// The shutdown gives up after its deadline if the disk accepts one request and further requests
/// wait for it.
#[test]
fn shutdown_gives_up_on_a_disk_that_accepts_no_more_requests() {
    gives_up_on_a_disk_that_does_not_answer(1, 9, 1);
}

/// Checks that the shutdown reports unfinished requests if the disk answers none. The disk accepts
/// `room` requests, and each of `clients` clients sends one. The shutdown begins when `started`
/// requests have reached the disk, and must report at least `started` clients with unfinished
/// requests.
fn gives_up_on_a_disk_that_does_not_answer(room: usize, clients: usize, started: usize) {
    let limits = Limits { shutdown_seconds_max: 1, ..Limits::default() };
    let options = NbdOptions { limits, ..NbdOptions::default() };
    let disk = MemoryDisk::new(DISK_BYTES, 1).with_room_for(room);
    let TestServer { disk, handle, folder } = TestServer::start(disk, options);
    let socket = folder.path().join("nbd.sock");
    let mut connected: Vec<_> = (0..clients).map(|_| Client::ready(&socket)).collect();
    disk.hold();
    for client in &mut connected {
        client.say(&request(0, 0, 77, 0, 4));
    }
    wait_until(|| disk.submitted() >= started);
    let end = handle.shutdown();
    let Err(ServeError::Unfinished { connections }) = end else { panic!("{end:?}") };
    assert!((started..=clients).contains(&connections), "{connections} of {clients}");
    assert!(!socket.exists());
    disk.release();
    connected.iter_mut().for_each(|client| drop(client.hear_to_the_end()));
}

#[test]
fn a_server_that_is_dropped_ends() {
    let TestServer { handle, folder, .. } = TestServer::new();
    drop(handle);
    assert!(!folder.path().join("nbd.sock").exists());
}

#[test]
fn invalid_options_are_refused() {
    let long = NbdOptions { export_name: "x".repeat(5000), ..NbdOptions::default() };
    let shut = Limits { in_flight_requests_max: 0, ..Limits::default() };
    let shut = NbdOptions { limits: shut, ..NbdOptions::default() };
    for options in [long, shut] {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("nbd.sock");
        assert!(serve(disk(), Listen::Unix(socket.clone()), options).is_err());
        assert!(!socket.exists());
    }
}
