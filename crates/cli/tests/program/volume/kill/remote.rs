//! A volume on a real server. While fio writes the disk and verifies it, the server is killed and
//! connections are cut. fio must notice neither. Then the client is killed as well, while it writes
//! to another part of the disk. Everything flushed must survive.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Guard;
use crate::common;
use crate::volume::remote::StoreServer;
use crate::volume::test_dir::{TestDir, end, wait};
use crate::volume::tools::start;

/// Bytes of the disk. Writes that were not durable are sent to a restarted server again; they must
/// be few enough to arrive before the server is killed again.
const SIZE: &str = "4M";

/// Bytes at the beginning of the disk that are verified. The rest is being written when the client
/// is killed.
const VERIFIED: &str = "3M";

/// Choices of the number of bytes after which each connection is cut: enough for progress, and few
/// enough for cuts.
const CUT_AFTER: [usize; 3] = [4 << 20, 12 << 20, 40 << 20];

const ROUNDS: u64 = 1;

#[test]
fn kills_of_the_server_and_cuts_of_the_connection_go_unnoticed() {
    let (rounds, seed) = super::rounds_and_seed(ROUNDS);
    let mut coins = StdRng::seed_from_u64(seed);
    let test_dir = TestDir::new();
    let mut server = StoreServer::new(&test_dir, "");
    test_dir.succeeds(&format!("create {} --state state --size {SIZE}", server.volume("disk")));
    let mut kills = 0;
    for round in 0..rounds {
        let cut_after = CUT_AFTER[coins.random_range(0..CUT_AFTER.len())];
        let address = cutting_relay(server.address().to_owned(), cut_after);
        let volume = format!("{} --state state", server.volume_at(&address, "disk"));
        let cache = ["0", "64K", "4M"][coins.random_range(0..3)];
        let randseed: u32 = coins.random();
        let fio = |rest: &str| {
            format!(
                "fio --thread --name=disk --ioengine=nbd --uri=\"$uri\" --rw=randwrite --bs=4k \
                 --iodepth=16 --size={VERIFIED} --verify=crc32c --verify_fatal=1 \
                 --verify_state_save=0 --randseed={randseed} {rest}"
            )
        };
        let command = format!(
            "serve nbd {volume} --cache {cache} --run '{}'",
            fio("--end_fsync=1 --fsync=100 --loops=3")
        );
        let mut writer = common::command(&test_dir.path(""), &command);
        let mut writer = Guard(writer.stdout(Stdio::null()).spawn().unwrap());
        while writer.0.try_wait().unwrap().is_none() {
            thread::sleep(Duration::from_millis(coins.random_range(700..2500)));
            if writer.0.try_wait().unwrap().is_none() {
                server = server.killed_and_started(&test_dir);
                kills += 1;
            }
        }
        assert!(writer.0.wait().unwrap().success(), "round {round}: {cut_after}, cache {cache}");

        // Everything flushed is there after client and server have died. Writes that were not
        // flushed do no harm.
        let socket = test_dir.path("nbd.sock");
        let command = format!("serve nbd {volume} --cache {cache} --socket nbd.sock --json");
        let mut client = common::command(&test_dir.path(""), &command);
        let mut client = Guard(client.stdout(Stdio::piped()).spawn().unwrap());
        let mut line = String::new();
        BufReader::new(client.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let uri = format!("--uri=nbd+unix:///?socket={}", socket.display());
        let load = ["--thread", "--name=more", "--ioengine=nbd", "--rw=randwrite", "--bs=4k"];
        let place = format!("--offset={VERIFIED}");
        let more = [&uri[..], &place, "--size=1M", "--iodepth=16", "--fsync=20", "--loops=99"];
        let load: Vec<_> = load.into_iter().chain(more).collect();
        let mut writer = Guard(start("fio", &load));
        thread::sleep(Duration::from_millis(coins.random_range(200..900)));
        assert!(writer.0.try_wait().unwrap().is_none(), "the writer must still run");
        end(&mut client.0);
        wait(&mut writer.0);
        server = server.killed_and_started(&test_dir);
        test_dir.succeeds(&format!("serve nbd {volume} --run '{}'", fio("--verify_only=1")));
        println!("round {round}: cut after {cut_after}, cache {cache}");
    }
    test_dir.succeeds(&format!("check {} --state state", server.volume("disk")));
    println!("{rounds} rounds: the server was killed {kills} times under fio, nothing was lost");
}

/// Relays between clients and the server at `to`, until the process ends. Cuts each connection that
/// has carried `bytes_max` bytes, in both directions together. Returns the relay's address.
#[expect(clippy::disallowed_methods, reason = "the relay runs until the test process ends")]
fn cutting_relay(to: String, bytes_max: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for client in listener.incoming() {
            // If a killed server refuses, the client finds its connection closed.
            let (client, Ok(server)) = (client.unwrap(), TcpStream::connect(&to)) else { continue };
            let carried = Arc::new(AtomicUsize::new(0));
            for (from, to) in [(&client, &server), (&server, &client)] {
                let ends = (from.try_clone().unwrap(), to.try_clone().unwrap());
                let carried = carried.clone();
                thread::spawn(move || carry(ends, &carried, bytes_max));
            }
        }
    });
    address
}

/// Carries one direction of a connection until its end or until it is cut, and then ends both
/// directions.
fn carry((mut from, mut to): (TcpStream, TcpStream), carried: &AtomicUsize, bytes_max: usize) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let room = bytes_max.saturating_sub(carried.fetch_add(read, Ordering::Relaxed));
        // The cut may be at any byte, also within a message.
        if to.write_all(&buffer[..read.min(room)]).is_err() || room < read {
            break;
        }
    }
    // The thread of the other direction may have ended the connection already.
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
