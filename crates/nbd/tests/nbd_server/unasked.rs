//! The server makes no requests of its own: if the disk has no fixed rate, storage sees each
//! request that reaches the disk.

use super::TestServer;
use super::client::{Client, DISC, FLUSH, LIST, READ, request};
use oblivio_testkit::memory_disk::wait_until;

#[test]
fn connections_without_requests_do_not_reach_the_disk() {
    let server = TestServer::new();
    for says_goodbye in [true, false] {
        let mut client = Client::ready_structured(&server.socket());
        if says_goodbye {
            client.say(&request(0, DISC, 0, 0, 0));
            client.assert_closed();
        }
    }
    let mut client = Client::connect(&server.socket());
    client.say_option(LIST, b"");
    drop(client);
    wait_until(|| server.handle.connections() == 0);
    assert_eq!(server.disk.submitted(), 0);
}

#[test]
fn each_request_reaches_the_disk_once() {
    let server = TestServer::new();
    let mut client = Client::ready(&server.socket());
    client.read(0, 4096);
    client.read(0, 4096);
    assert_eq!(client.write(0, 4096, b"data"), 0);
    assert_eq!(client.call(0, FLUSH, 0, 0), 0);
    // A refused request does not reach the disk.
    assert_ne!(client.call(0, READ, u64::MAX, 1), 0);
    assert_eq!(server.disk.submitted(), 4);
}
