//! The page that watches a volume, from a user's point of view.

use std::fs;
use std::net::TcpStream;

use serde_json::Value;

use super::page_reader::{Address, Reader};
use super::test_dir::{TestDir, VOLUME};
use super::tools::run;
use crate::common::oblivio;

/// Number of bytes that [`write`] writes in one request.
const BYTES: u64 = 3 * 4096;
const OFFSET: u64 = 737_280;

/// Writes three blocks at [`OFFSET`], and flushes them.
fn write(uri: &str) {
    let command = format!("write -P 7 {OFFSET} {BYTES}");
    run("qemu-io", &["--format", "raw", "-c", &command, "-c", "flush", uri]);
}

#[test]
fn a_page_shows_what_storage_sees_and_nothing_of_the_owner() {
    let test_dir = TestDir::with_volume(1);
    let server = test_dir.serve("--cache 0 --watch");
    let address = Address::enter(server.page());
    assert!(address.socket.ip().is_loopback());
    let page = address.get(&format!("/{}/", address.token), &address.host());
    assert!(page.contains("What storage sees"), "{page}");
    let mut reader = Reader::connect(&address);
    write(server.uri());
    // Each of the three blocks makes an access.
    let is_read = |level: &Value| level[0].as_u64().unwrap() >= 3;
    let levels = |data: &Value| data["storage"]["levels"][0].as_array().unwrap().clone();
    reader.until(|name, data| name == "frame" && levels(data).iter().any(is_read));
    assert!(!reader.heard.contains("owner") && !reader.heard.contains(&OFFSET.to_string()));

    // The page ends with the volume, and readers of the page receive the event `end`.
    let (code, messages) = server.stop();
    assert_eq!((code, messages.as_str()), (0, ""));
    let mut names = Vec::new();
    while let Some((name, _)) = reader.next() {
        names.push(name);
    }
    assert_eq!(names.last().unwrap(), "end");
    assert!(TcpStream::connect(address.socket).is_err(), "the port must be closed");
    // No file in the client's directory contains the token.
    for file in fs::read_dir(test_dir.state()).unwrap() {
        let contents = fs::read(file.unwrap().path()).unwrap_or_default();
        assert_eq!(memchr::memmem::find(&contents, address.token.as_bytes()), None);
    }
}

#[test]
fn with_secrets_the_page_shows_both_sides() {
    let test_dir = TestDir::with_volume(1);
    let server = test_dir.serve("--cache 0 --watch --watch-secrets");
    let mut reader = Reader::connect(&Address::enter(server.page()));
    write(server.uri());
    let written = |data: &Value| data["owner"]["bytes"][1] == BYTES;
    let frame = reader.until(|name, data| name == "frame" && written(data)).1;
    assert!(reader.heard.contains(&format!("[1,{OFFSET},{BYTES}]")), "{}", reader.heard);
    let inner = &frame["owner"]["inner"];
    assert!(inner["stash"]["blocks_max"].as_u64().unwrap() > 0, "{inner}");
    assert_eq!(server.stop().0, 0);
}

#[test]
fn a_page_that_others_could_reach_is_refused_before_the_volume_is_opened() {
    let test_dir = TestDir::new();
    // There is no volume yet.
    let reason = "forward the port with `ssh -L`";
    test_dir.fails_with(&format!("serve nbd {VOLUME} --watch=0.0.0.0:0"), 3, reason);
    test_dir.fails_with(&format!("serve nbd {VOLUME} --watch-secrets"), 2, "--watch");
    test_dir.fails_with(&format!("serve nbd {VOLUME} --rescued --watch"), 2, "cannot be used with");
    let taken = "such as 127.0.0.1:8080";
    test_dir.fails_with(&format!("serve nbd {VOLUME} --watch=localhost:8080"), 2, taken);
}

#[test]
fn the_output_of_a_command_is_not_mixed_with_other_text() {
    let test_dir = TestDir::with_volume(1);
    let command_line = format!("serve nbd {VOLUME} --watch --run 'echo done'");
    let (code, stdout, stderr) = oblivio(test_dir.path(""), &command_line);
    assert_eq!((code, stdout.as_str()), (0, "done\n"), "{stderr}");
    assert!(stderr.starts_with("watch it at http://127.0.0.1:"), "{stderr}");
}
