//! Who gets in when there are many: strangers who only connect keep nobody out, and clients who do not read
//! cannot make the server hold more than it may.

use std::thread::sleep;
use std::time::Duration;

use oblivio_serve::nbd::{Limits, NbdOptions, NotLetIn};

use super::client::{Client, GO, READ, Reply, export_wish, request};
use super::disk::MemoryDisk;
use super::protocol::wait_until;
use super::{DISK_BYTES, TestServer};

/// Long enough that no deadline lets anybody in while a test runs.
const PATIENT: Limits = Limits { handshake_seconds_max: 600, ..Limits::DEFAULT };

fn server(limits: Limits) -> TestServer {
    let options = NbdOptions { limits, ..NbdOptions::default() };
    TestServer::start(MemoryDisk::new(DISK_BYTES, 1), options)
}

fn strangers(server: &TestServer, count: usize) -> Vec<Client> {
    (0..count).map(|_| Client::connect_silently(&server.socket())).collect()
}

#[test]
fn strangers_who_say_nothing_keep_no_client_out() {
    let server = server(PATIENT);
    let mut first = Client::ready(&server.socket());
    let silent = strangers(&server, 200);
    let mut owner = Client::ready(&server.socket());
    assert_eq!(owner.write(0, 10, b"owner"), 0);
    assert_eq!(first.read(10, 5), b"owner", "clients in use are not displaced");
    let NotLetIn { turned_away, displaced } = server.handle.not_let_in();
    assert_eq!(turned_away, 0);
    assert!(displaced >= 200 - Limits::DEFAULT.handshakes_max as u64, "{displaced}");
    drop(silent);
}

#[test]
fn the_stranger_who_came_first_makes_room_for_the_last() {
    let server = server(Limits { handshakes_max: 2, ..PATIENT });
    let mut strangers = strangers(&server, 3).into_iter();
    strangers.next().unwrap().assert_left();
    for mut still_there in strangers {
        still_there.say(&3_u32.to_be_bytes());
        still_there.say_option(GO, &export_wish(b"", &[]));
        while still_there.hear_option_reply(GO).0 != 1 {}
        assert_eq!(still_there.read(0, 3), [0; 3]);
    }
    assert_eq!(server.handle.not_let_in(), NotLetIn { turned_away: 0, displaced: 1 });
}

#[test]
fn clients_beyond_the_bound_are_turned_away_and_counted() {
    let server = server(Limits { connections_max: 2, ..PATIENT });
    let clients = [(); 2].map(|()| Client::ready(&server.socket()));
    let turned_away = std::os::unix::net::UnixStream::connect(server.socket()).unwrap();
    Client { stream: turned_away }.assert_left();
    assert_eq!(server.handle.not_let_in(), NotLetIn { turned_away: 1, displaced: 0 });
    drop(clients);
    wait_until(|| server.handle.connections() == 0);
    assert_eq!(Client::ready(&server.socket()).read(0, 3), [0; 3]);
}

/// Who was talked to while there was a seat, and chose an export when there was none.
#[test]
fn a_client_who_took_too_long_finds_no_seat() {
    let server = server(Limits { connections_max: 1, ..PATIENT });
    let mut slow = Client::connect(&server.socket());
    let mut fast = Client::ready(&server.socket());
    slow.say_option(GO, &export_wish(b"", &[]));
    while slow.hear_option_reply(GO).0 != 1 {}
    slow.assert_left();
    assert_eq!(fast.read(0, 3), [0; 3]);
    assert_eq!(server.handle.not_let_in(), NotLetIn { turned_away: 1, displaced: 0 });
}

#[test]
fn clients_who_do_not_read_make_the_server_hold_no_more_than_it_may() {
    const READ_BYTES: u32 = 2 << 20;
    const AT_ONCE: usize = 3;
    let all_in_flight_bytes_max = READ_BYTES * AT_ONCE as u32;
    let server = server(Limits { all_in_flight_bytes_max, ..PATIENT });
    let mut clients: Vec<_> = (0..6).map(|_| Client::ready(&server.socket())).collect();
    for client in &mut clients {
        for _ in 0..2 {
            client.say(&request(0, READ, 77, 0, READ_BYTES));
        }
    }
    wait_until(|| server.disk.taken() == AT_ONCE);
    // A reply is longer than the socket takes, so none of them makes room.
    sleep(Duration::from_millis(300));
    assert_eq!(server.disk.taken(), AT_ONCE);
    // Whoever reads makes room for all others.
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
