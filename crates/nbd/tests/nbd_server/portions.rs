//! Long requests reach the disk in portions.

use std::net::Shutdown;
use std::thread::sleep;
use std::time::Duration;

use oblivio_nbd::{Limits, NbdOptions};

use super::client::{Client, DF, EIO, FUA, READ, Reply, WRITE, request};
use super::disk::{MemoryDisk, REQUEST_BYTES_MAX};
use super::{DISK_BYTES, TestServer};
use oblivio_testkit::memory_disk::wait_until;

const PORTION: u64 = 32 << 10;
/// The number of portions of the longest request.
const PORTIONS: u64 = REQUEST_BYTES_MAX as u64 / PORTION;
const COOKIE: u64 = 9;

/// Returns `bytes` bytes, each determined by its offset.
fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at / 4096 % 251) as u8 ^ at as u8).collect()
}

fn filled(seed: u64) -> (TestServer, Vec<u8>) {
    filled_disk(MemoryDisk::new(DISK_BYTES, seed))
}

fn filled_disk(disk: MemoryDisk) -> (TestServer, Vec<u8>) {
    let server = TestServer::start(disk, NbdOptions::default());
    let contents = pattern(DISK_BYTES);
    server.disk.fill(&contents);
    (server, contents)
}

/// A chunk of a structured reply.
enum Chunk {
    Data { offset: u64, data: Vec<u8> },
    Failed { errno: u32, reason: Vec<u8>, offset: Option<u64> },
}

/// Receives all chunks of one structured reply.
fn hear_chunks(client: &mut Client) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    loop {
        let Reply::Chunk { flags, kind, cookie: COOKIE, payload } = client.hear_reply() else {
            panic!("the reply is not a chunk")
        };
        let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        chunks.push(match kind {
            1 => Chunk::Data { offset: number(&payload[..8]), data: payload[8..].to_vec() },
            0x8001 | 0x8002 => {
                let (start, rest) = payload.split_at(6);
                let (reason, place) = rest.split_at(number(&start[4..]) as usize);
                let offset = (kind == 0x8002).then(|| number(place));
                assert_eq!(place.len(), if kind == 0x8002 { 8 } else { 0 });
                Chunk::Failed { errno: number(&start[..4]) as u32, reason: reason.into(), offset }
            }
            other => panic!("unexpected kind of chunk {other:x}"),
        });
        match flags {
            0 => (),
            1 => return chunks,
            other => panic!("unexpected flags of a chunk {other:x}"),
        }
    }
}

#[test]
fn a_long_read_arrives_in_chunks_in_any_order_and_complete() {
    let mut orders = Vec::new();
    for seed in 0..8 {
        let (server, contents) = filled(seed);
        let mut client = Client::ready_structured(&server.socket());
        for (offset, bytes) in [(0, REQUEST_BYTES_MAX), (PORTION - 3, 3 << 20), (5, 1 << 20)] {
            client.say(&request(0, READ, COOKIE, offset, bytes));
            let mut heard = vec![None; bytes as usize];
            let mut order = Vec::new();
            for chunk in hear_chunks(&mut client) {
                let Chunk::Data { offset: at, data } = chunk else { panic!("the read failed") };
                assert!(!data.is_empty() && data.len() as u64 <= PORTION);
                assert_eq!(at / PORTION, (at + data.len() as u64 - 1) / PORTION);
                order.push(at);
                for (slot, byte) in heard[(at - offset) as usize..].iter_mut().zip(data) {
                    assert_eq!(slot.replace(byte), None, "a byte came twice");
                }
            }
            let heard: Option<Vec<u8>> = heard.into_iter().collect();
            let range = offset as usize..offset as usize + bytes as usize;
            assert_eq!(heard.as_deref(), Some(&contents[range]));
            orders.push(order);
        }
        // No byte of the reply is left over.
        client.say(&request(0, READ, COOKIE, 1, 2));
        assert_eq!(hear_chunks(&mut client).len(), 1);
    }
    assert!(orders.iter().any(|order| !order.is_sorted()), "all chunks came in order");
}

#[test]
fn an_unfragmented_long_read_is_one_piece() {
    let (server, contents) = filled(1);
    let mut structured = Client::ready_structured(&server.socket());
    structured.say(&request(DF, READ, COOKIE, 7, REQUEST_BYTES_MAX));
    let chunks = hear_chunks(&mut structured);
    let [Chunk::Data { offset: 7, data }] = &chunks[..] else { panic!("not one chunk") };
    assert_eq!(data[..], contents[7..][..REQUEST_BYTES_MAX as usize]);
    let mut simple = Client::ready(&server.socket());
    assert_eq!(simple.read(7, REQUEST_BYTES_MAX)[..], data[..]);
    assert_eq!(server.disk.taken(), 2);
}

#[test]
fn a_long_read_reports_which_portion_is_lost() {
    let (server, contents) = filled(1);
    server.disk.lose(2 * PORTION + 5..2 * PORTION + 6);
    let mut client = Client::ready_structured(&server.socket());
    for _ in 0..4 {
        client.say(&request(0, READ, COOKIE, 0, REQUEST_BYTES_MAX));
        let mut failed = 0;
        let chunks = hear_chunks(&mut client);
        assert_eq!(chunks.len() as u64, PORTIONS);
        for chunk in chunks {
            match chunk {
                Chunk::Data { offset, data } => {
                    assert_eq!(data, contents[offset as usize..][..PORTION as usize]);
                }
                Chunk::Failed { errno, reason, offset } => {
                    let failure = (errno, &reason[..], offset);
                    assert_eq!(failure, (EIO, &b"lost"[..], Some(2 * PORTION)));
                    failed += 1;
                }
            }
        }
        assert_eq!(failed, 1);
    }
    let mut simple = Client::ready(&server.socket());
    assert_eq!(simple.call(0, READ, 0, REQUEST_BYTES_MAX), EIO);
    assert_eq!(simple.read(0, 10), contents[..10]);
}

/// A portion never ends within a block: a block is written atomically, and without a cache, each
/// part of a block would cost another access.
#[test]
fn no_portion_divides_a_block() {
    for (block_bytes, portions) in [(4096, 1), (1000, 1), (20_000, 4), (64 << 10, 4), (1 << 20, 4)]
    {
        let disk = MemoryDisk::new(DISK_BYTES, 1).with_blocks_of(block_bytes);
        let server = TestServer::start(disk, NbdOptions::default());
        let mut client = Client::ready_structured(&server.socket());
        let data = pattern(4 * u64::from(block_bytes));
        assert_eq!(client.write(0, u64::from(block_bytes), &data), 0);
        assert_eq!(server.disk.taken(), portions, "blocks of {block_bytes}");
        assert_eq!(server.disk.contents()[block_bytes as usize..][..data.len()], data);
    }
}

#[test]
fn a_long_write_has_one_reply_and_the_requested_durability() {
    for (flags, seed) in [(0, 1), (FUA, 2), (FUA, 3)] {
        let server = TestServer::start(MemoryDisk::new(DISK_BYTES, seed), NbdOptions::default());
        let mut client = Client::ready_structured(&server.socket());
        let data = pattern(u64::from(REQUEST_BYTES_MAX));
        assert_eq!(client.write(flags, 5, &data), 0);
        assert_eq!(server.disk.taken() as u64, PORTIONS + 1);
        let written = &server.disk.contents()[5..][..data.len()];
        assert_eq!(written, data);
        let durable = &server.disk.after_crash()[5..][..data.len()];
        assert_eq!(durable == data, flags == FUA);
        // No byte of the reply is left over.
        assert_eq!(client.write(0, 0, b"more"), 0);
    }
}

#[test]
fn a_long_write_fails_if_a_portion_does() {
    for lost in [0, 1, PORTIONS / 2, PORTIONS - 1] {
        let (server, _) = filled(lost);
        server.disk.lose(lost * PORTION..lost * PORTION + 1);
        let mut client = Client::ready(&server.socket());
        let data = vec![1; REQUEST_BYTES_MAX as usize];
        for _ in 0..3 {
            assert_eq!(client.write(FUA, 0, &data), EIO);
        }
        assert_eq!(client.write(0, PORTIONS * PORTION, b"data"), 0);
    }
}

#[test]
fn an_interrupted_write_writes_no_partial_portion() {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    client.say(&request(0, WRITE, COOKIE, 0, REQUEST_BYTES_MAX));
    client.say(&vec![1; (PORTION + PORTION / 2) as usize]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.assert_closed();
    let contents = server.disk.contents();
    assert!(contents[PORTION as usize..].iter().all(|byte| *byte == 0));
    let mut other = Client::ready(&server.socket());
    assert_eq!(other.write(0, 10, b"alive"), 0);
    assert_eq!(other.read(10, 5), b"alive");
}

#[test]
fn memory_is_bounded_by_some_portions_or_one_reply() {
    let limits = Limits {
        shared_bytes_max: 3 * PORTION as u32,
        request_bytes_max: REQUEST_BYTES_MAX,
        ..Limits::default()
    };
    let options = NbdOptions { limits, ..NbdOptions::default() };
    let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 1), options);
    // Structured: one portion of each client, and three shared ones. Simple: the bytes of one
    // longest reply.
    for (is_structured, in_flight) in [(true, 5), (false, 1)] {
        let connect = if is_structured { Client::ready_structured } else { Client::ready };
        server.disk.hold();
        let before = server.disk.taken();
        let mut clients = [connect(&server.socket()), connect(&server.socket())];
        for client in &mut clients {
            client.say(&request(0, READ, COOKIE, 0, REQUEST_BYTES_MAX));
        }
        wait_until(|| server.disk.taken() == before + in_flight);
        sleep(Duration::from_millis(100));
        assert_eq!(server.disk.taken(), before + in_flight);
        server.disk.release();
        std::thread::scope(|scope| {
            for client in &mut clients {
                scope.spawn(|| {
                    if is_structured {
                        assert_eq!(hear_chunks(client).len() as u64, PORTIONS);
                    } else {
                        let reply = Reply::Simple { error: 0, cookie: COOKIE };
                        assert_eq!(client.hear_reply(), reply);
                        client.hear(REQUEST_BYTES_MAX as usize);
                    }
                });
            }
        });
    }
}

#[test]
fn clients_that_do_not_read_do_not_block_others() {
    keep_no_other_from(MemoryDisk::new(DISK_BYTES, 1), PORTIONS);
}

/// Like the previous test, with long blocks: a portion is then as long as a block.
#[test]
fn clients_that_do_not_read_do_not_block_others_with_long_blocks() {
    const BLOCK_BYTES: u32 = 1 << 20;
    let portions = u64::from(REQUEST_BYTES_MAX / BLOCK_BYTES);
    keep_no_other_from(MemoryDisk::new(DISK_BYTES, 1).with_blocks_of(BLOCK_BYTES), portions);
}

/// Checks that clients that do not read their replies do not delay others. The longest request to
/// `disk` has `portions` portions.
fn keep_no_other_from(disk: MemoryDisk, portions: u64) {
    let (server, contents) = filled_disk(disk);
    let mut asleep: Vec<_> = (0..5).map(|_| Client::ready_structured(&server.socket())).collect();
    for client in &mut asleep {
        for _ in 0..4 {
            client.say(&request(0, READ, COOKIE, 0, REQUEST_BYTES_MAX));
        }
    }
    // Waits until the disk gets no further requests.
    let mut taken = 0;
    wait_until(|| {
        sleep(Duration::from_millis(100));
        std::mem::replace(&mut taken, server.disk.taken()) == server.disk.taken()
    });
    assert!((taken as u64) < 2 * portions, "clients that do not read exceed the budget");
    let mut awake = Client::ready_structured(&server.socket());
    awake.say(&request(0, READ, COOKIE, 3, REQUEST_BYTES_MAX));
    for chunk in hear_chunks(&mut awake) {
        let Chunk::Data { offset, data } = chunk else { panic!("the read failed") };
        assert_eq!(data, contents[offset as usize..][..data.len()]);
    }
    assert_eq!(awake.write(0, 0, &contents[..REQUEST_BYTES_MAX as usize]), 0);
    awake.say(&request(DF, READ, COOKIE, 0, REQUEST_BYTES_MAX));
    assert_eq!(hear_chunks(&mut awake).len(), 1);
    let mut simple = Client::ready(&server.socket());
    for bytes in [PORTION as u32, PORTION as u32 + 1, REQUEST_BYTES_MAX] {
        assert_eq!(simple.read(0, bytes), contents[..bytes as usize]);
    }
}
