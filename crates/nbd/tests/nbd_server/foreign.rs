//! Interoperability with programs of other projects.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use oblivio_nbd::{Listen, NbdOptions, serve};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;

use super::disk::MemoryDisk;
use super::tools::{run, try_run};
use super::{DISK_BYTES, TestServer};

/// Returns random data with holes.
pub(crate) fn image(seed: u64) -> Vec<u8> {
    let mut image = vec![0; DISK_BYTES as usize];
    let mut coins = StdRng::seed_from_u64(seed);
    for piece in image.chunks_mut(300_000).step_by(3) {
        coins.fill_bytes(piece);
    }
    image
}

fn file(folder: &Path, contents: &[u8]) -> PathBuf {
    let path = folder.join("image");
    fs::write(&path, contents).unwrap();
    path
}

fn json(printed: &str) -> Value {
    serde_json::from_str(printed).unwrap()
}

#[test]
fn nbdinfo_describes_and_lists() {
    let options = NbdOptions {
        export_name: "disk".into(),
        description: "a test".into(),
        ..NbdOptions::default()
    };
    let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 1), options);
    let uri = server.handle.uri();
    for arguments in [vec!["--json", &uri], vec!["--list", "--json", &uri]] {
        let report = json(&run("nbdinfo", &arguments));
        assert_eq!(report["protocol"], "newstyle-fixed");
        let export = &report["exports"][0];
        assert_eq!(export["export-name"], "disk");
        assert_eq!(export["description"], "a test");
        assert_eq!(export["export-size"], DISK_BYTES);
        assert_eq!(export["block_size_minimum"], 1);
        assert_eq!(export["block_size_preferred"], 4096);
        assert_eq!(export["block_size_maximum"], 4 << 20);
        assert_eq!(export["is_read_only"], false);
        for can in ["flush", "fua", "trim", "zero", "fast_zero", "df", "multi_conn"] {
            assert_eq!(export[&format!("can_{can}")], true, "{can}");
        }
        assert_eq!(export["can_cache"], false);
    }
}

#[test]
fn nbd_client_lists() {
    let options = NbdOptions { export_name: "disk".into(), ..NbdOptions::default() };
    let server = TestServer::start(MemoryDisk::new(DISK_BYTES, 1), options);
    let socket = server.socket();
    let listed = run("nbd-client", &["-l".as_ref(), "-u".as_ref(), socket.as_os_str()]);
    assert!(listed.lines().any(|line| line.trim() == "disk"), "{listed}");
}

#[test]
fn nbdcopy_copies_both_ways() {
    let server = TestServer::new();
    let (uri, image) = (server.handle.uri(), image(1));
    let from = file(server.folder.path(), &image);
    let parallel = ["--connections=4", "--requests=64", "--flush"];
    run("nbdcopy", &[&parallel[..], &[from.to_str().unwrap(), &uri]].concat());
    assert!(server.disk.contents() == image);
    assert!(server.disk.after_crash() == image, "--flush did not reach the disk");
    let to = server.folder.path().join("copy");
    run("nbdcopy", &[&parallel[..], &[&uri, to.to_str().unwrap()]].concat());
    assert!(fs::read(&to).unwrap() == image);
}

#[test]
fn nbdcopy_copies_over_tcp() {
    let disk = std::sync::Arc::new(MemoryDisk::new(DISK_BYTES, 1));
    let listen = Listen::Tcp("127.0.0.1:0".parse().unwrap());
    let server = serve(disk.clone(), listen, NbdOptions::default()).unwrap();
    let (folder, image) = (tempfile::tempdir().unwrap(), image(2));
    let from = file(folder.path(), &image);
    run("nbdcopy", &["--synchronous", from.to_str().unwrap(), &server.uri()]);
    assert!(disk.contents() == image);
    let counts = server.shutdown().unwrap();
    assert!(counts.connections > 0 && counts.requests > 0);
}

#[test]
fn qemu_img_reports_converts_and_compares() {
    let server = TestServer::new();
    let (uri, image) = (server.handle.uri(), image(3));
    let info = json(&run("qemu-img", &["info", "--output=json", &uri]));
    assert_eq!(info["virtual-size"], DISK_BYTES);
    let from = file(server.folder.path(), &image);
    let from = from.to_str().unwrap();
    run("qemu-img", &["convert", "-n", "-f", "raw", "-O", "raw", "-W", from, &uri]);
    assert!(server.disk.contents() == image);
    run("qemu-img", &["compare", "-f", "raw", "-F", "raw", from, &uri]);
    let back = server.folder.path().join("copy");
    run("qemu-img", &["convert", "-f", "raw", "-O", "raw", &uri, back.to_str().unwrap()]);
    assert!(fs::read(&back).unwrap() == image);
    let mut other = image;
    *other.last_mut().unwrap() ^= 1;
    server.disk.fill(&other);
    let differs = try_run("qemu-img", &["compare", "-f", "raw", "-F", "raw", from, &uri]);
    assert_eq!(differs.status.code(), Some(1));
}

fn qemu_io(server: &TestServer, commands: &[&str]) -> Output {
    let uri = server.handle.uri();
    let mut arguments = vec!["-f", "raw", "-t", "none"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
    try_run("qemu-io", &[&arguments[..], &[&uri]].concat())
}

fn qemu_io_succeeds(server: &TestServer, commands: &[&str]) {
    let Output { status, stdout, .. } = qemu_io(server, commands);
    let printed = String::from_utf8_lossy(&stdout);
    assert!(status.success() && !printed.contains("failed"), "{commands:?}: {printed}");
}

#[test]
fn qemu_io_writes_discards_zeroes_and_flushes() {
    let server = TestServer::new();
    qemu_io_succeeds(&server, &["write -P 7 1k 64k", "read -P 7 1k 64k", "read -P 0 0 1k"]);
    qemu_io_succeeds(&server, &["write -z 2k 3k", "read -P 0 2k 3k", "read -P 7 5k 60k"]);
    qemu_io_succeeds(&server, &["discard 16k 8k", "read -P 0 16k 8k", "read -P 7 24k 41k"]);
    qemu_io_succeeds(&server, &["flush"]);
    assert_eq!(server.disk.after_crash()[1024..2048], [7; 1024]);
}

/// A write with `-f` reaches the disk as durable, which the disk counts as one more flush. qemu-io
/// always sends one flush at its end.
#[test]
fn qemu_io_forces_writes() {
    let flushes = ["write -P 9 0 4k", "write -f -P 9 0 4k"].map(|command| {
        let server = TestServer::new();
        qemu_io_succeeds(&server, &[command]);
        server.disk.flushes()
    });
    assert_eq!(flushes[1], flushes[0] + 1);
}

#[test]
fn qemu_io_reports_that_no_space_is_left() {
    let server = TestServer::new();
    server.disk.fail(oblivio_volume::device::DiskErrorKind::NoSpace);
    let output = qemu_io(&server, &["write -P 7 0 64k"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("No space left on device"), "{printed}");
}

#[test]
fn fio_verifies_what_it_wrote() {
    let server = TestServer::new();
    let uri = format!("--uri={}", server.handle.uri());
    run(
        "fio",
        &[
            "--name=verify",
            "--ioengine=nbd",
            &uri,
            "--rw=randwrite",
            "--bsrange=512-64k",
            "--bs_unaligned=1",
            "--iodepth=32",
            "--size=8M",
            "--fsync=64",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--do_verify=1",
            "--verify_state_save=0",
        ],
    );
    assert!(server.disk.flushes() > 0);
}
