//! Clients that violate the protocol. Each is refused or disconnected, and the next client is
//! served.

use std::net::Shutdown;
use std::sync::Arc;

use oblivio_nbd::export::{Export, RequestAction};
use oblivio_nbd::negotiation::{Negotiation, TlsPhase};
use oblivio_nbd::wire::{ClientFlags, OptionHead, RequestHead};
use oblivio_nbd::{Limits, NbdOptions, Service};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::client::{
    Client, DF, EINVAL, ENOSPC, FLUSH, FUA, GO, INFO, INVALID, LIST, NO_HOLE, READ, STARTTLS,
    STRUCTURED_REPLY, TRIM, WRITE, WRITE_ZEROES, export_query, option, request,
};
use super::disk::{MemoryDisk, REQUEST_BYTES_MAX};
use super::{DISK_BYTES, TestServer};
use oblivio_testkit::memory_disk::wait_until;

/// Asserts that the server still serves clients.
fn assert_serves(server: &TestServer) {
    let mut client = Client::ready(&server.socket());
    assert_eq!(client.write(0, 10, b"alive"), 0);
    assert_eq!(client.read(10, 5), b"alive");
    drop(client);
    wait_until(|| server.handle.connections() == 0);
}

/// Asserts that the server disconnects if it receives `sent` in place of options.
fn left_in_negotiation(sent: &[u8]) {
    let server = TestServer::new();
    let mut client = Client::connect(&server.socket());
    client.say(sent);
    client.assert_closed();
    assert_serves(&server);
}

/// Asserts that the server disconnects if it receives `sent` in place of requests.
fn left_in_transmission(sent: &[u8]) {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    client.say(sent);
    client.assert_closed();
    assert_serves(&server);
}

/// Asserts that this request gets the error `errno`, and that the next request succeeds.
fn refused(errno: u32, (flags, command): (u16, u16), (offset, bytes): (u64, u32), data: &[u8]) {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    client.say(&request(flags, command, 77, offset, bytes));
    client.say(data);
    assert_eq!(client.hear_error(), errno);
    assert_eq!(client.read(0, 10), [0; 10]);
    assert_eq!(server.disk.taken(), 1, "the refused request reached the disk");
    drop(client);
    assert_serves(&server);
}

#[test]
fn unknown_client_flags() {
    let server = TestServer::new();
    let mut client = Client::connect_silently(&server.socket());
    client.say(&7_u32.to_be_bytes());
    client.assert_closed();
    assert_serves(&server);
}

#[test]
fn an_option_from_a_client_that_expects_no_replies() {
    let server = TestServer::new();
    let mut client = Client::connect_silently(&server.socket());
    client.say(&0_u32.to_be_bytes());
    client.say(&option(LIST, b""));
    client.assert_closed();
    assert_serves(&server);
}

#[test]
fn an_option_with_bad_magic() {
    left_in_negotiation(b"IHAVEOPS\0\0\0\x03\0\0\0\0");
}

#[test]
fn an_option_too_long() {
    left_in_negotiation(b"IHAVEOPT\0\0\0\x03\xff\xff\xff\xff");
    left_in_negotiation(b"IHAVEOPT\0\0\0\x63\0\0\x20\x01");
}

#[test]
fn an_unknown_export_name() {
    left_in_negotiation(&option(1, b"absent"));
}

#[test]
fn an_http_client() {
    left_in_negotiation(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

#[test]
fn options_whose_data_do_not_fit() {
    let server = TestServer::new();
    let mut client = Client::connect(&server.socket());
    let query = export_query(b"", &[1, 2]);
    let long_name = export_query(&[b'x'; 4097], &[]);
    for (code, data) in [
        (LIST, b"stray".as_slice()),
        (STRUCTURED_REPLY, b"stray"),
        (STARTTLS, b"stray"),
        (INFO, b""),
        (GO, b"\xff\xff\xff\xff\0\0"),
        (GO, &query[..query.len() - 1]),
        (GO, &[&query[..], b"stray"].concat()),
        (GO, &long_name),
    ] {
        client.say_option(code, data);
        assert_eq!(client.hear_option_reply(code), (INVALID, vec![]), "{code}: {data:?}");
    }
}

#[test]
fn disconnect_in_the_middle_of_an_option() {
    let server = TestServer::new();
    for cut in [1, 15, 17, 21] {
        let mut client = Client::connect(&server.socket());
        client.say(&option(GO, &export_query(b"", &[]))[..cut]);
        client.stream.shutdown(Shutdown::Write).unwrap();
        client.assert_closed();
    }
    assert_serves(&server);
}

#[test]
fn a_client_that_says_nothing() {
    let limits = Limits { handshake_seconds_max: 1, ..Limits::default() };
    let options = NbdOptions { limits, ..NbdOptions::default() };
    let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 1), options);
    let mut chosen = Client::ready(&server.socket());
    Client::connect_silently(&server.socket()).assert_closed();
    assert_eq!(chosen.read(0, 1), [0], "after the handshake there is no timeout");
}

#[test]
fn a_request_with_bad_magic() {
    let mut bad = request(0, READ, 1, 0, 10);
    bad[3] ^= 1;
    left_in_transmission(&bad);
}

#[test]
fn disconnect_in_the_middle_of_a_request() {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    client.say(&request(0, READ, 1, 0, 10)[..27]);
    client.stream.shutdown(Shutdown::Write).unwrap();
    client.assert_closed();
    assert_serves(&server);
}

#[test]
fn disconnect_in_the_middle_of_a_payload() {
    let server = TestServer::new();
    for (flags, bytes) in [(0, 100_000), (0xffff, 100_000), (0, u32::MAX)] {
        let mut client = Client::ready(&server.socket());
        client.say(&request(flags, WRITE, 1, 0, bytes));
        client.say(&[1; 30_000]);
        client.stream.shutdown(Shutdown::Write).unwrap();
        client.assert_closed();
    }
    assert_eq!(server.disk.taken(), 0, "a part of a write reached the disk");
    assert_serves(&server);
}

#[test]
fn disconnect_with_replies_on_their_way() {
    let server = TestServer::new();
    for _ in 0..5 {
        let mut client = Client::ready(&server.socket());
        for cookie in 0..50 {
            client.say(&request(0, READ, cookie, 0, 1 << 20));
        }
    }
    wait_until(|| server.handle.connections() == 0);
    assert_serves(&server);
}

#[test]
fn an_unknown_command() {
    refused(EINVAL, (0, 99), (0, 10), b"");
    refused(EINVAL, (0, 5), (0, 10), b"");
    refused(EINVAL, (0, 7), (0, 10), b"");
}

#[test]
fn a_huge_read() {
    refused(EINVAL, (0, READ), (0, u32::MAX), b"");
    refused(EINVAL, (0, READ), (0, REQUEST_BYTES_MAX + 1), b"");
}

#[test]
fn a_write_too_long() {
    let bytes = REQUEST_BYTES_MAX + 1;
    refused(EINVAL, (0, WRITE), (0, bytes), &vec![1; bytes as usize]);
}

#[test]
fn a_write_past_the_end() {
    refused(ENOSPC, (0, WRITE), (DISK_BYTES - 3, 4), b"data");
    refused(ENOSPC, (0, WRITE), (u64::MAX, 4), b"data");
    refused(ENOSPC, (0, WRITE_ZEROES), (1, DISK_BYTES as u32), b"");
}

#[test]
fn a_read_or_a_trim_past_the_end() {
    for command in [READ, TRIM] {
        refused(EINVAL, (0, command), (DISK_BYTES - 3, 4), b"");
        refused(EINVAL, (0, command), (DISK_BYTES, 1), b"");
        refused(EINVAL, (0, command), (u64::MAX, 1), b"");
    }
}

#[test]
fn bad_flags() {
    refused(EINVAL, (NO_HOLE, TRIM), (0, 4096), b"");
    refused(EINVAL, (NO_HOLE, WRITE), (0, 4), b"data");
    refused(EINVAL, (1 << 15, WRITE_ZEROES), (0, 4096), b"");
    refused(EINVAL, (NO_HOLE, FLUSH), (0, 0), b"");
}

#[test]
fn an_unfragmented_read_without_structured_replies() {
    refused(EINVAL, (DF, READ), (0, 4), b"");
}

#[test]
fn a_flush_of_a_range() {
    refused(EINVAL, (0, FLUSH), (0, 1), b"");
    refused(EINVAL, (0, FLUSH), (1, 0), b"");
}

#[test]
fn requests_of_no_length() {
    for command in [READ, WRITE, TRIM, WRITE_ZEROES] {
        refused(0, (FUA, command), (DISK_BYTES, 0), b"");
    }
}

fn export() -> Export {
    Export {
        name: "disk".into(),
        description: String::new(),
        bytes: DISK_BYTES,
        block_bytes: 4096,
        request_bytes_max: REQUEST_BYTES_MAX,
        read_only: false,
    }
}

/// Generates byte streams that reach deeper into the protocol than random bytes.
fn session() -> impl Strategy<Value = Vec<u8>> {
    let codes = (0_u32..12, prop::collection::vec(any::<u8>(), 0..20));
    let requests = (any::<u16>(), 0_u16..9, 0..DISK_BYTES + 2, 0_u32..9000);
    let piece = prop_oneof![
        codes.prop_map(|(code, data)| option(code, &data)),
        Just(option(GO, &export_query(b"", &[1, 3]))),
        Just(option(1, b"")),
        requests.prop_map(|(flags, command, offset, bytes)| request(
            flags & flags >> 8,
            command,
            1,
            offset,
            bytes
        )),
        prop::collection::vec(any::<u8>(), 0..9000),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn parsers_accept_or_refuse_any_bytes(
        flags: [u8; 4],
        option: [u8; 16],
        request: [u8; 28],
        code in 0_u32..12,
        data in prop::collection::vec(any::<u8>(), 0..100),
    ) {
        let _ = ClientFlags::parse(flags);
        let _ = OptionHead::parse(option);
        let _ = RequestHead::parse(request);
        let client = ClientFlags { fixed_newstyle: true, no_zeroes: true };
        let export = export();
        for tls in [TlsPhase::Off, TlsPhase::Offered, TlsPhase::Required, TlsPhase::On] {
            let _ = Negotiation::new(&export, client, tls).take(code, &data, &mut Vec::new());
        }
    }

    /// Requests passed to the disk stay within the disk. Reads and writes are not longer than the
    /// disk accepts.
    #[test]
    fn plans_stay_on_the_disk(
        flags in 0_u16..32,
        command in 0_u16..9,
        offset in prop_oneof![0..2 * DISK_BYTES, any::<u64>()],
        bytes in prop_oneof![0..2 * DISK_BYTES as u32, any::<u32>()],
        structured: bool,
    ) {
        let head = RequestHead { flags, command, cookie: 0, offset, bytes };
        match export().classify(&head, structured) {
            Ok(RequestAction::Read | RequestAction::Write { .. }) => {
                prop_assert!(offset + u64::from(bytes) <= DISK_BYTES && bytes <= REQUEST_BYTES_MAX);
            }
            Ok(RequestAction::Zero { .. } | RequestAction::Trim { .. }) => {
                prop_assert!(offset + u64::from(bytes) <= DISK_BYTES);
            }
            Ok(RequestAction::Flush | RequestAction::Nothing | RequestAction::Disconnect)
            | Err(_) => {}
        }
    }

    /// The preferred size is a power of two of at least 512, as clients require, and at least a
    /// block.
    #[test]
    fn the_preferred_block_size_is_valid_for_clients(block_bytes in 1_u32..1 << 20) {
        let preferred = Export { block_bytes, ..export() }.preferred_block_bytes();
        prop_assert!(preferred.is_power_of_two() && preferred >= 512 && preferred >= block_bytes);
        prop_assert!(preferred == 512 || preferred < 2 * block_bytes);
    }

    /// Any session ends once the client sends nothing more.
    #[test]
    fn any_session_ends(sent in session()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let disk = Arc::new(MemoryDisk::answering_at_once(1 << 16));
            let service = Arc::new(Service::new(disk, &NbdOptions::default()).unwrap());
            let (near, far) = tokio::io::duplex(1 << 12);
            let (mut hear, mut say) = tokio::io::split(near);
            let client = async move {
                // Fails if the server has disconnected.
                let _ = say.write_all(&[&3_u32.to_be_bytes()[..], &sent].concat()).await;
                let _ = say.shutdown().await;
            };
            let ears = async move { hear.read_to_end(&mut Vec::new()).await };
            let (_, _, heard) = tokio::join!(service.serve(far), client, ears);
            heard.unwrap();
        });
    }
}
