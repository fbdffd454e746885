//! Slow readers, too many readers, disconnected readers, and the shutdown of the page.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use oblivio_volume::device::{DiskOp, WipedBytes, call};
use oblivio_watch::WatchLimits;

use super::reader::Reader;
use super::{LIMITS, Watched, until_trips};
use oblivio_testkit::memory_disk::wait_until;

/// Limits with which the queue of a reader that does not read fills soon: the socket buffer is
/// small and frames are frequent.
const NARROW: WatchLimits = WatchLimits {
    frame_millis: 1,
    frames_waiting_max: 4,
    send_buffer_bytes: 4 << 10,
    ..WatchLimits::DEFAULT
};

/// Requests to the disk complete while no reader reads. A slow reader then gets the number of
/// missed frames, and a frame with the correct totals.
#[test]
fn the_disk_waits_for_no_reader_and_a_slow_one_gets_the_count_of_missed_frames() {
    const ROUNDS: u64 = 600;
    let mut watched = Watched::start(NARROW, true);
    let mut slow = watched.reader();
    for round in 0..ROUNDS {
        let offset = round * 4096;
        let write = DiskOp::Write { offset, data: WipedBytes::zeros(4096), durable: false };
        call(&*watched.disk, write).unwrap();
        // More visits than a frame lists.
        (0..1000).for_each(|i| watched.storage_sees(1000 * round + i));
        thread::sleep(Duration::from_millis(1));
    }
    let (_, missed) = slow.until(|name, _| name == "missed");
    assert!(missed.as_u64().unwrap() > 0);
    // The totals are correct again.
    let frame = until_trips(&mut slow, 1000 * ROUNDS);
    assert_eq!(frame["owner"]["requests"][1], ROUNDS);
    let longest = slow.heard.lines().map(str::len).max().unwrap();
    assert!(longest < 40_000, "a frame is bounded: {longest}");
    assert!(slow.heard.contains("\"visits_left_out\":"));
}

#[test]
fn the_number_of_open_pages_is_limited_and_closing_one_admits_another() {
    let watched = Watched::start(WatchLimits { readers_max: 2, ..LIMITS }, false);
    let address = watched.address();
    let events = format!("/{}/events", address.token);
    let readers = [watched.reader(), watched.reader()];
    let answer = address.get(&events, &address.host());
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert!(answer.contains("close one"), "{answer}");
    drop(readers);
    // The server notices that a reader has left when it sends the next frame.
    wait_until(|| {
        let mut stream = address.connect();
        std::io::Write::write_all(
            &mut stream,
            format!("GET {events} HTTP/1.1\r\n{}\r\n", address.host()).as_bytes(),
        )
        .unwrap();
        let mut status = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut status).unwrap();
        status == *b"HTTP/1.1 200"
    });
}

#[test]
fn the_page_ends_with_its_server_and_readers_get_an_end_event() {
    let mut watched = Watched::start(LIMITS, false);
    let address = watched.address();
    let mut reader = watched.reader();
    let deaf: Vec<_> = (0..3).map(|_| watched.reader()).collect();
    watched.storage_sees(1);
    until_trips(&mut reader, 1);
    drop(watched);
    assert_eq!(last(&mut reader), "end");
    drop(deaf);
    assert!(TcpStream::connect(address.socket).is_err(), "the server still listens");
}

/// Returns the name of the last event of the stream.
fn last(reader: &mut Reader) -> String {
    let mut last = String::new();
    while let Some((name, _)) = reader.next() {
        last = name;
    }
    last
}
