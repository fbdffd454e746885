//! Byte-exact checks against the specification.

use std::collections::HashMap;
use std::thread::sleep;
use std::time::Duration;

use oblivio_nbd::{Limits, NbdOptions};
use oblivio_volume::device::DiskErrorKind;

use super::client::{
    ACK, Client, DF, DISC, EINVAL, EIO, ENOSPC, ENOTSUP, EPERM, ESHUTDOWN, FAST_ZERO, FLUSH, FUA,
    GO, INFO, LIST, NO_HOLE, POLICY, READ, Reply, STARTTLS, STRUCTURED_REPLY, TRIM, UNKNOWN, UNSUP,
    WRITE, WRITE_ZEROES, export_query, option, request,
};
use super::disk::{BLOCK_BYTES, MemoryDisk, REQUEST_BYTES_MAX};
use super::{DISK_BYTES, TestServer};
use oblivio_testkit::memory_disk::wait_until;

const BLOCK: u32 = BLOCK_BYTES;

/// Flags of the export: flags, flush, FUA, trim, zeroes, multiple connections, fast zero.
const EXPORT_FLAGS: u16 = 0b1001_0110_1101;
const WITH_DF: u16 = 1 << 7;

fn named() -> TestServer {
    let options = NbdOptions {
        export_name: "disk".into(),
        description: "a test".into(),
        ..NbdOptions::default()
    };
    TestServer::start(MemoryDisk::new(DISK_BYTES, 2), options)
}

#[test]
fn a_list_names_the_export() {
    let server = named();
    let mut client = Client::connect(&server.socket());
    client.say_option(LIST, b"");
    let entry = [b"\0\0\0\x04disk".as_slice(), b"a test"].concat();
    assert_eq!(client.hear_option_reply(LIST), (2, entry));
    assert_eq!(client.hear_option_reply(LIST), (ACK, vec![]));
}

#[test]
fn information_describes_the_disk() {
    let server = named();
    let mut client = Client::connect(&server.socket());
    for name in [b"disk".as_slice(), b""] {
        client.say_option(INFO, &export_query(name, &[1, 2, 3, 999]));
        let mut infos = HashMap::new();
        while let (3, info) = client.hear_option_reply(INFO) {
            let (kind, data) = info.split_first_chunk().unwrap();
            infos.insert(u16::from_be_bytes(*kind), data.to_vec());
        }
        let export = [&DISK_BYTES.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat();
        let sizes = [1, BLOCK, REQUEST_BYTES_MAX].map(u32::to_be_bytes).concat();
        let expected = [(0, export), (1, b"disk".into()), (2, b"a test".into()), (3, sizes)];
        assert_eq!(infos, HashMap::from(expected));
    }
}

#[test]
fn unknown_options_are_unsupported() {
    let server = named();
    let mut client = Client::connect(&server.socket());
    for code in [0, 4, 9, 10, 11, u32::MAX] {
        client.say_option(code, b"whatever");
        assert_eq!(client.hear_option_reply(code), (UNSUP, vec![]));
    }
    client.say_option(STARTTLS, b"");
    assert_eq!(client.hear_option_reply(STARTTLS), (POLICY, vec![]));
}

#[test]
fn an_export_of_another_name_is_unknown() {
    let server = named();
    let mut client = Client::connect(&server.socket());
    for code in [INFO, GO] {
        client.say_option(code, &export_query(b"disc", &[]));
        assert_eq!(client.hear_option_reply(code), (UNKNOWN, vec![]));
    }
}

#[test]
fn an_export_can_be_chosen_by_export_name() {
    let server = named();
    for (client_flags, padding) in [(0_u32, 124), (1, 124), (3, 0)] {
        let mut client = Client::connect_silently(&server.socket());
        client.say(&client_flags.to_be_bytes());
        client.say(&option(1, b"disk"));
        let expected = [&DISK_BYTES.to_be_bytes()[..], &EXPORT_FLAGS.to_be_bytes()].concat();
        assert_eq!(client.hear(10), expected);
        assert_eq!(client.hear(padding), vec![0; padding]);
        assert_eq!(client.read(0, 3), [0; 3]);
    }
}

#[test]
fn an_abort_is_acknowledged() {
    let server = named();
    let mut client = Client::connect(&server.socket());
    client.say_option(2, b"");
    assert_eq!(client.hear_option_reply(2), (ACK, vec![]));
    client.assert_closed();
}

#[test]
fn fragments_are_offered_with_structured_replies_only() {
    let server = named();
    let mut client = Client::connect(&server.socket());
    client.say_option(STRUCTURED_REPLY, b"");
    assert_eq!(client.hear_option_reply(STRUCTURED_REPLY), (ACK, vec![]));
    client.say_option(INFO, &export_query(b"", &[]));
    let (_, export) = client.hear_option_reply(INFO);
    assert_eq!(export[10..], (EXPORT_FLAGS | WITH_DF).to_be_bytes());
}

#[test]
fn reads_return_what_was_written() {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    for (offset, bytes) in [(0, 1), (4095, 2), (5000, 100_000), (DISK_BYTES - 10, 10)] {
        let data: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8 + 1).collect();
        assert_eq!(client.write(0, offset, &data), 0);
        assert_eq!(client.read(offset, bytes), data);
        let start = offset as usize;
        assert_eq!(server.disk.contents()[start..start + bytes as usize], data);
    }
}

#[test]
fn short_structured_reads_are_one_chunk() {
    let server = TestServer::new();
    let mut client = Client::ready_structured(&server.socket());
    assert_eq!(client.write(0, 7, b"data"), 0);
    for flags in [0, DF, FUA] {
        for (bytes, data) in [(4, b"data".to_vec()), (20_000, [b"data", &[0; 19_996][..]].concat())]
        {
            client.say(&request(flags, READ, 9, 7, bytes));
            let payload = [&7_u64.to_be_bytes()[..], &data].concat();
            assert_eq!(client.hear_reply(), Reply::Chunk { flags: 1, kind: 1, cookie: 9, payload });
        }
    }
    client.say(&request(0, READ, 9, 7, 0));
    assert_eq!(client.hear_reply(), Reply::Chunk { flags: 1, kind: 0, cookie: 9, payload: vec![] });
}

#[test]
fn structured_reads_fail_with_a_reason() {
    let server = TestServer::new();
    let mut client = Client::ready_structured(&server.socket());
    server.disk.fail(DiskErrorKind::Failed);
    client.say(&request(0, READ, 9, 0, 10));
    let payload = [&EIO.to_be_bytes()[..], b"\0\x07planted"].concat();
    assert_eq!(client.hear_reply(), Reply::Chunk { flags: 1, kind: 0x8001, cookie: 9, payload });
}

#[test]
fn failures_of_the_disk_map_to_error_numbers() {
    for (kind, errno) in [
        (DiskErrorKind::NoSpace, ENOSPC),
        (DiskErrorKind::Failed, EIO),
        (DiskErrorKind::Closed, ESHUTDOWN),
        (DiskErrorKind::OutOfRange, EINVAL),
    ] {
        let server = TestServer::new();
        let mut client = Client::ready(&server.socket());
        server.disk.fail(kind);
        assert_eq!(client.call(0, READ, 0, 10), errno, "{kind:?}");
        assert_eq!(client.write(0, 0, b"data"), errno, "{kind:?}");
        for command in [TRIM, WRITE_ZEROES] {
            assert_eq!(client.call(0, command, 0, BLOCK), errno, "{kind:?}");
        }
        assert_eq!(client.call(0, FLUSH, 0, 0), errno, "{kind:?}");
    }
}

#[test]
fn replies_are_sent_when_they_are_ready() {
    let server = TestServer::new();
    let contents: Vec<u8> = (0..DISK_BYTES).map(|i| (i / 4096) as u8).collect();
    server.disk.fill(&contents);
    let mut client = Client::ready(&server.socket());
    server.disk.hold();
    for cookie in 0..100 {
        client.say(&request(0, READ, cookie, cookie * 4096, 4096));
    }
    server.disk.release();
    let cookies: Vec<u64> = (0..100)
        .map(|_| match client.hear_reply() {
            Reply::Simple { error: 0, cookie } => {
                assert_eq!(client.hear(4096), [cookie as u8; 4096]);
                cookie
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let sorted = (0..100).collect::<Vec<_>>();
    assert_ne!(cookies, sorted, "the replies came in order");
    let mut seen = cookies;
    seen.sort_unstable();
    assert_eq!(seen, sorted);
}

#[test]
fn requests_in_flight_are_bounded() {
    for (limits, request_bytes, in_flight) in [
        (Limits { in_flight_requests_max: 5, ..Limits::default() }, 4096, 5),
        (
            Limits { in_flight_bytes_max: 2 * 4096, shared_bytes_max: 4096, ..Limits::default() },
            4096,
            3,
        ),
    ] {
        let options = NbdOptions { limits, ..NbdOptions::default() };
        let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 3), options);
        let mut client = Client::ready(&server.socket());
        server.disk.hold();
        for cookie in 0..50 {
            client.say(&request(0, READ, cookie, 0, request_bytes));
        }
        wait_until(|| server.disk.taken() == in_flight);
        sleep(Duration::from_millis(100));
        assert_eq!(server.disk.taken(), in_flight);
        server.disk.release();
        for _ in 0..50 {
            assert!(matches!(client.hear_reply(), Reply::Simple { error: 0, .. }));
            client.hear(request_bytes as usize);
        }
    }
}

/// The server's memory for requests and replies does not grow with the number of clients.
#[test]
fn bytes_in_flight_of_all_clients_are_bounded() {
    for (command, request_bytes) in [(READ, 4096), (WRITE, 4096)] {
        let limits = Limits {
            in_flight_bytes_max: request_bytes - 1,
            shared_bytes_max: 3 * request_bytes,
            ..Limits::default()
        };
        let options = NbdOptions { limits, ..NbdOptions::default() };
        let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 3), options);
        let mut clients: Vec<_> = (0..5).map(|_| Client::ready(&server.socket())).collect();
        server.disk.hold();
        let data = if command == WRITE { vec![1; request_bytes as usize] } else { Vec::new() };
        for client in &mut clients {
            for cookie in 0..4 {
                client.say(&[&request(0, command, cookie, 0, request_bytes)[..], &data].concat());
            }
        }
        wait_until(|| server.disk.taken() == 3);
        sleep(Duration::from_millis(100));
        assert_eq!(server.disk.taken(), 3);
        server.disk.release();
        for client in &mut clients {
            for _ in 0..4 {
                assert!(matches!(client.hear_reply(), Reply::Simple { error: 0, .. }));
                client.hear(if command == READ { request_bytes as usize } else { 0 });
            }
        }
    }
}

#[test]
fn a_disk_that_accepts_few_requests_serves_many_clients() {
    let disk = MemoryDisk::new(DISK_BYTES, 3).with_room_for(2);
    let server = TestServer::start(disk, NbdOptions::default());
    let mut clients: Vec<_> = (0..9).map(|_| Client::ready(&server.socket())).collect();
    for client in &mut clients {
        for cookie in 0..50 {
            client.say(&request(0, READ, cookie, 0, 4096));
        }
    }
    for client in &mut clients {
        for _ in 0..50 {
            assert!(matches!(client.hear_reply(), Reply::Simple { error: 0, .. }));
            client.hear(4096);
        }
    }
}

#[test]
fn replies_to_a_client_that_does_not_read_do_not_pile_up() {
    let limits = Limits { in_flight_requests_max: 4, ..Limits::default() };
    let options = NbdOptions { limits, ..NbdOptions::default() };
    let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 3), options);
    let mut client = Client::ready(&server.socket());
    for cookie in 0..64 {
        client.say(&request(0, READ, cookie, 0, 1 << 20));
    }
    wait_until(|| server.disk.taken() >= 4);
    sleep(Duration::from_millis(200));
    // Only requests in flight, and those whose replies fit in the socket buffers, reach the disk.
    assert!(server.disk.taken() < 16, "{}", server.disk.taken());
    for _ in 0..64 {
        assert!(matches!(client.hear_reply(), Reply::Simple { error: 0, .. }));
        client.hear(1 << 20);
    }
}

#[test]
fn a_flush_makes_durable_what_any_connection_wrote() {
    let server = TestServer::new();
    let (mut one, mut other) = (Client::ready(&server.socket()), Client::ready(&server.socket()));
    assert_eq!(one.write(0, 100, b"data"), 0);
    assert_eq!(server.disk.after_crash()[100..104], [0; 4]);
    assert_eq!(server.disk.flushes(), 0);
    assert_eq!(other.call(0, FLUSH, 0, 0), 0);
    assert_eq!(server.disk.after_crash()[100..104], *b"data");
    assert_eq!(server.disk.flushes(), 1);
}

#[test]
fn forced_access_is_durable() {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    assert_eq!(client.write(FUA, 0, &[1; 3 * BLOCK as usize]), 0);
    assert_eq!(server.disk.after_crash()[..3 * BLOCK as usize], [1; 3 * BLOCK as usize]);
    assert_eq!(client.call(FUA, TRIM, 0, BLOCK), 0);
    assert_eq!(client.call(FUA, WRITE_ZEROES, u64::from(BLOCK), BLOCK), 0);
    let durable = server.disk.after_crash();
    assert_eq!(durable[..2 * BLOCK as usize], [0; 2 * BLOCK as usize]);
    assert_eq!(durable[2 * BLOCK as usize], 1);
    assert_eq!(server.disk.flushes(), 3);
    for command in [TRIM, WRITE_ZEROES, READ] {
        let flags = if command == READ { FUA } else { 0 };
        assert_eq!(client.call(flags, command, 0, 1), 0);
    }
    assert_eq!(server.disk.flushes(), 3);
}

#[test]
fn fast_zero_is_supported_for_whole_blocks_only() {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    assert_eq!(client.write(0, 0, &[1; 10]), 0);
    assert_eq!(client.call(FAST_ZERO, WRITE_ZEROES, 0, 10), ENOTSUP);
    assert_eq!(client.read(0, 10), [1; 10]);
    assert_eq!(client.call(NO_HOLE, WRITE_ZEROES, 0, 9), 0);
    assert_eq!(client.read(0, 10), [0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    // Whole blocks are dropped, which is faster than writing them.
    assert_eq!(client.write(0, u64::from(BLOCK) - 1, &[1; 10]), 0);
    assert_eq!(client.call(FAST_ZERO, WRITE_ZEROES, BLOCK.into(), BLOCK), 0);
    assert_eq!(client.read(u64::from(BLOCK) - 1, 10), [1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for (offset, bytes) in [(1, BLOCK), (0, BLOCK - 1), (1, BLOCK - 1)] {
        assert_eq!(client.call(FAST_ZERO, WRITE_ZEROES, offset, bytes), ENOTSUP);
    }
    // Longer than the longest write, in one request.
    assert_eq!(client.call(0, WRITE_ZEROES, 0, DISK_BYTES as u32), 0);
    assert_eq!(server.disk.contents(), vec![0; DISK_BYTES as usize]);
}

#[test]
fn a_read_only_export_refuses_changes() {
    let options = NbdOptions { read_only: true, ..NbdOptions::default() };
    let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 3), options);
    let mut client = Client::connect(&server.socket());
    client.say_option(INFO, &export_query(b"", &[]));
    assert_eq!(client.hear_option_reply(INFO).1[10..], 0b1_0000_1111_u16.to_be_bytes());
    let mut client = Client::ready(&server.socket());
    assert_eq!(client.write(0, 0, &[1; 10]), EPERM);
    assert_eq!(client.call(0, TRIM, 0, BLOCK), EPERM);
    assert_eq!(client.call(0, WRITE_ZEROES, 0, BLOCK), EPERM);
    assert_eq!(client.call(0, FLUSH, 0, 0), 0);
    assert_eq!(client.read(0, 10), [0; 10]);
    assert_eq!(server.disk.contents(), vec![0; DISK_BYTES as usize]);
}

#[test]
fn requests_before_a_disconnect_are_answered() {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    server.disk.hold();
    client.say(&request(0, WRITE, 77, 0, 4));
    client.say(b"data");
    client.say(&request(0, DISC, 0, 0, 0));
    wait_until(|| server.disk.taken() == 1);
    server.disk.release();
    assert_eq!(client.hear_error(), 0);
    client.assert_closed();
    wait_until(|| server.handle.connections() == 0);
}
