//! A speed comparison with nbdkit: the same load on a disk in memory.

use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use oblivio_nbd::NbdOptions;
use serde_json::Value;

use super::disk::MemoryDisk;
use super::{TestServer, tools};

const BYTES: u64 = 64 << 20;

/// Prints the requests per second of this server and of nbdkit. Run with `cargo test --release -p
/// oblivio-nbd --test nbd_server -- --ignored --nocapture requests_per_second`.
#[test]
#[ignore = "a measurement, not a check"]
fn requests_per_second_beside_nbdkit() {
    let at_once = TestServer::start(MemoryDisk::answering_at_once(BYTES), NbdOptions::default());
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("nbdkit.sock");
    let path = socket.to_str().unwrap();
    let mut nbdkit = tools::start("nbdkit", &["-f", "-U", path, "memory", "64M"]);
    while !socket.exists() {
        sleep(Duration::from_millis(10));
    }
    for pattern in ["randread", "randwrite"] {
        for round in 1..=3 {
            let ours = requests_per_second(&at_once.socket(), pattern);
            let theirs = requests_per_second(&socket, pattern);
            eprintln!("{pattern} 4k qd16 round {round}: oblivio {ours:.0}/s, nbdkit {theirs:.0}/s");
        }
    }
    nbdkit.kill().unwrap();
    nbdkit.wait().unwrap();
}

fn requests_per_second(socket: &Path, pattern: &str) -> f64 {
    let printed = tools::run(
        "fio",
        &[
            "--name=speed",
            "--ioengine=nbd",
            &format!("--uri=nbd+unix:///?socket={}", socket.display()),
            &format!("--rw={pattern}"),
            "--bs=4k",
            "--iodepth=16",
            "--size=64M",
            "--time_based",
            "--runtime=4",
            "--output-format=json",
        ],
    );
    // fio's NBD engine prints a greeting before the report.
    let report = &printed[printed.find("{\n").unwrap()..];
    let report: Value = serde_json::from_str(report).unwrap();
    let side = if pattern == "randread" { "read" } else { "write" };
    report["jobs"][0][side]["iops"].as_f64().unwrap()
}
