//! Admission under load: connections without a handshake keep no client out, and clients that do
//! not read cannot exceed the server's memory budget.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::thread::sleep;
use std::time::Duration;

use oblivio_nbd::{Limits, NbdOptions, RefusedCounts, TlsMode};

use super::client::{Client, GO, READ, Reply, export_query, request};
use super::disk::MemoryDisk;
use super::tls::Certificates;
use super::{DISK_BYTES, TestServer};
use oblivio_testkit::memory_disk::{PATIENCE, wait_until};

/// Limits with a timeout so long that no handshake expires during a test.
const PATIENT: Limits = Limits { handshake_seconds_max: 600, ..Limits::DEFAULT };

fn server(limits: Limits) -> TestServer {
    let options = NbdOptions { limits, ..NbdOptions::default() };
    TestServer::start(MemoryDisk::new(DISK_BYTES, 1), options)
}

fn strangers(server: &TestServer, count: usize) -> Vec<Client> {
    (0..count).map(|_| Client::connect_silently(&server.socket())).collect()
}

/// Connects a client that has a seat: it has received an answer.
fn seated(server: &TestServer) -> Client {
    let mut client = Client::ready(&server.socket());
    assert_eq!(client.read(0, 3), [0; 3]);
    client
}

#[test]
fn silent_connections_keep_no_client_out() {
    let server = server(PATIENT);
    let mut first = Client::ready(&server.socket());
    let silent = strangers(&server, 200);
    let mut owner = Client::ready(&server.socket());
    assert_eq!(owner.write(0, 10, b"owner"), 0);
    assert_eq!(first.read(10, 5), b"owner", "clients in the transmission phase are not displaced");
    let RefusedCounts { turned_away, displaced } = server.handle.refused_counts();
    assert_eq!(turned_away, 0);
    assert!(displaced >= 200 - Limits::DEFAULT.handshakes_max as u64, "{displaced}");
    drop(silent);
}

/// Each handshake other than the newest has the same chance to be displaced. If the choice were
/// predictable, an attacker could target the owner.
#[test]
fn the_displaced_handshake_is_chosen_at_random() {
    const ROUNDS: usize = 64;
    let mut displaced = [0; 2];
    for _ in 0..ROUNDS {
        let server = server(Limits { handshakes_max: 2, ..PATIENT });
        let mut strangers = strangers(&server, 3);
        displaced[closed_index(&strangers)] += 1;
        // The newest client was admitted, and the remaining one can continue.
        strangers.retain(|stranger| !is_closed(stranger));
        assert_eq!(strangers.len(), 2);
        for mut still_there in strangers {
            still_there.stream.set_nonblocking(false).unwrap();
            still_there.say(&3_u32.to_be_bytes());
            still_there.go();
            assert_eq!(still_there.read(0, 3), [0; 3]);
        }
        assert_eq!(server.handle.refused_counts(), RefusedCounts { turned_away: 0, displaced: 1 });
    }
    // Fails by chance once in 10^10 runs.
    assert!(displaced.iter().all(|times| *times >= ROUNDS / 8), "{displaced:?}");
}

/// Waits until the server closes a connection, and returns the connection's index.
fn closed_index(strangers: &[Client]) -> usize {
    let mut place = None;
    wait_until(|| {
        place = strangers.iter().position(is_closed);
        place.is_some()
    });
    place.unwrap()
}

/// Whether the server has closed the connection of `stranger`. The server sends nothing before
/// that.
fn is_closed(stranger: &Client) -> bool {
    stranger.stream.set_nonblocking(true).unwrap();
    matches!((&stranger.stream).read(&mut [0; 1]), Ok(0))
}

/// The server has one seat, and no client chooses an export. A refused connection would mean that a
/// handshake took the seat.
#[test]
fn handshakes_take_no_seats() {
    let server = server(Limits { connections_max: 1, ..PATIENT });
    let socket = &server.socket();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..5000 {
                    drop(UnixStream::connect(socket).unwrap());
                }
            });
        }
    });
    wait_until(|| server.handle.connections() == 0);
    assert_eq!(server.handle.refused_counts().turned_away, 0);
}

#[test]
fn an_authenticated_client_is_not_displaced_by_unauthenticated_ones() {
    let certificates = Certificates::new();
    for handshakes_max in [1, 2] {
        let options = NbdOptions {
            tls: TlsMode::Required(certificates.files_for_known_clients()),
            limits: Limits { handshakes_max, ..PATIENT },
            ..NbdOptions::default()
        };
        let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 1), options);
        let mut known = certificates.known_client(&server.socket());
        let strangers: Vec<_> =
            (0..50).map(|_| UnixStream::connect(server.socket()).unwrap()).collect();
        wait_until(|| server.handle.refused_counts().displaced == 51 - handshakes_max as u64);
        known.go();
        assert_eq!(known.read(0, 3), [0; 3]);
        drop(strangers);
    }
}

#[test]
fn clients_beyond_the_limit_are_refused_and_counted() {
    let server = server(Limits { connections_max: 2, ..PATIENT });
    let clients = [(); 2].map(|()| seated(&server));
    let turned_away = UnixStream::connect(server.socket()).unwrap();
    turned_away.set_read_timeout(Some(PATIENCE)).unwrap();
    Client { stream: turned_away }.assert_closed();
    assert_eq!(server.handle.refused_counts(), RefusedCounts { turned_away: 1, displaced: 0 });
    drop(clients);
    wait_until(|| server.handle.connections() == 0);
    assert_eq!(Client::ready(&server.socket()).read(0, 3), [0; 3]);
}

/// A client that begins its handshake while a seat is free is refused if no seat is free when it
/// chooses an export.
#[test]
fn a_slow_client_is_refused_if_no_seat_is_left() {
    let server = server(Limits { connections_max: 1, ..PATIENT });
    let mut slow = Client::connect(&server.socket());
    let mut fast = seated(&server);
    slow.say_option(GO, &export_query(b"", &[]));
    while slow.hear_option_reply(GO).0 != 1 {}
    slow.assert_closed();
    assert_eq!(fast.read(0, 3), [0; 3]);
    assert_eq!(server.handle.refused_counts(), RefusedCounts { turned_away: 1, displaced: 0 });
}

/// All clients share a thread. The thread would block if it passed more requests than the disk
/// accepts.
#[test]
fn a_client_that_keeps_the_disk_busy_does_not_block_others() {
    const ROOM: usize = 4;
    let options = NbdOptions { limits: PATIENT, ..NbdOptions::default() };
    let disk = MemoryDisk::new(DISK_BYTES, 1).with_room_for(ROOM);
    let server = TestServer::start(disk, options);
    server.disk.hold();
    let mut busy = Client::ready(&server.socket());
    (0..3 * ROOM).for_each(|_| busy.say(&request(0, READ, 77, 0, 1)));
    wait_until(|| server.disk.taken() == ROOM);
    let mut other = Client::ready(&server.socket());
    other.say(&request(0, READ, 78, 0, 1));
    assert_eq!(server.disk.submitted(), ROOM);
    server.disk.release();
    for (client, cookie, requests) in [(&mut other, 78, 1), (&mut busy, 77, 3 * ROOM)] {
        for _ in 0..requests {
            assert_eq!(client.hear_reply(), Reply::Simple { error: 0, cookie });
            assert_eq!(client.hear(1), [0]);
        }
    }
}

#[test]
fn clients_that_do_not_read_cannot_exceed_the_memory_budget() {
    const READ_BYTES: u32 = 2 << 20;
    const AT_ONCE: usize = 3;
    let request_bytes_max = READ_BYTES * AT_ONCE as u32;
    let server = server(Limits { request_bytes_max, ..PATIENT });
    let mut clients: Vec<_> = (0..6).map(|_| Client::ready(&server.socket())).collect();
    for client in &mut clients {
        for _ in 0..2 {
            client.say(&request(0, READ, 77, 0, READ_BYTES));
        }
    }
    wait_until(|| server.disk.taken() == AT_ONCE);
    // A reply is longer than the socket buffer, so no reply completes.
    sleep(Duration::from_millis(300));
    assert_eq!(server.disk.taken(), AT_ONCE);
    // A client that reads frees memory for all others.
    let reading = clients.into_iter().map(|mut client| {
        std::thread::Builder::new().spawn(move || {
            for _ in 0..2 {
                assert_eq!(client.hear_reply(), Reply::Simple { error: 0, cookie: 77 });
                assert_eq!(client.hear(READ_BYTES as usize), vec![0; READ_BYTES as usize]);
            }
        })
    });
    let reading: Vec<_> = reading.collect();
    reading.into_iter().for_each(|client| client.unwrap().join().unwrap());
}
