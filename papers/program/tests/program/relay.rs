//! Tests of `oblivio-lab relay` from the command line: its address, the bytes that it forwards, and
//! its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{command, fails_with};

struct Relay {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Relay {
    fn start(dir: &TempDir, to: &TcpListener, options: &str) -> Self {
        let to = to.local_addr().unwrap();
        let line = format!("relay --listen 127.0.0.1:0 --to {to} {options}");
        let mut child = command(dir.path(), &line).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    /// Terminates the relay, and returns its remaining output.
    fn end(mut self) -> String {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut output = String::new();
        self.lines.read_to_string(&mut output).unwrap();
        assert!(self.child.wait().unwrap().success());
        output
    }
}

/// Kills a relay that a failed assertion left running.
impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_relay_forwards_until_terminated_and_reports_its_counts() {
    let dir = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut relay = Relay::start(&dir, &listener, "--link 100/100/10 --json");
    let first: Value = serde_json::from_str(&relay.line()).unwrap();
    assert_eq!(first["link"]["round_trip_millis"], 10.0);
    let mut client = TcpStream::connect(first["listens"].as_str().unwrap()).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    client.write_all(&[1; 1000]).unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    let mut asked = Vec::new();
    server.read_to_end(&mut asked).unwrap();
    server.write_all(&[2; 3000]).unwrap();
    client.read_exact(&mut [0; 3000]).unwrap();
    // The server has not closed its half, so the relay breaks the connection.
    let counts: Value = serde_json::from_str(&relay.end()).unwrap();
    assert_eq!(counts["up"], serde_json::json!({ "bytes": 1000, "turns": 1 }));
    assert_eq!(counts["down"], serde_json::json!({ "bytes": 3000, "turns": 1 }));
    assert_eq!((&counts["connections"], &counts["cuts"]), (&1.into(), &0.into()));
    assert_eq!(client.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn a_relay_cuts_after_the_given_number_of_bytes() {
    let dir = TempDir::new().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut relay = Relay::start(&dir, &listener, "--link lan --cut-after 1K --cut-each");
    let first = relay.line();
    let address = first.trim_start_matches("listens").trim().split(',').next().unwrap();
    for _ in 0..2 {
        let mut client = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[1; 2000]).unwrap();
        let mut asked = Vec::new();
        let _ = server.read_to_end(&mut asked);
        assert_eq!(asked.len(), 1024);
    }
    let output = relay.end();
    assert!(
        output.contains("up       2048 bytes, 2 turns") && output.contains("2 of them cut"),
        "{output}"
    );
}

#[test]
fn a_relay_stays_on_this_machine() {
    let dir = TempDir::new().unwrap();
    let to = "--to 127.0.0.1:9";
    let far = fails_with(&dir, &format!("relay --listen 0.0.0.0:0 {to} --link home"), 3);
    assert!(far.contains("no loopback address"), "{far}");
    let far = fails_with(&dir, "relay --listen 127.0.0.1:0 --to 192.0.2.1:9 --link home", 3);
    assert!(far.contains("192.0.2.1:9 is no loopback address"), "{far}");
    let strange = fails_with(&dir, &format!("relay --listen 127.0.0.1:0 {to} --link dsl"), 2);
    assert!(strange.contains("such as 29/5/15"), "{strange}");
    fails_with(&dir, &format!("relay --listen 127.0.0.1:0 {to} --link lan --cut-each"), 2);
}
