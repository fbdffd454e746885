//! Other programs use a volume over a Unix socket, over TCP, and with TLS.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::test_dir::{MIB, Server, TestDir, VOLUME, bytes};
use super::tools::{run, try_run};

/// Options for the different ways to reach the server.
const WAYS: [&str; 2] = ["", "--tcp 127.0.0.1:0"];

/// Random data with holes, in the file `data`.
fn image(test_dir: &TestDir, seed: u64) -> Vec<u8> {
    let mut image = bytes(seed, 8 * MIB);
    image.chunks_mut(700_000).step_by(3).for_each(|hole| hole.fill(0));
    fs::write(test_dir.path("data"), &image).unwrap();
    image
}

fn qemu_io(server: &Server, commands: &[&str]) {
    let mut arguments = vec!["-f", "raw", "-t", "none"];
    arguments.extend(commands.iter().flat_map(|command| ["-c", *command]));
    arguments.push(server.uri());
    let printed = run("qemu-io", &arguments);
    assert!(!printed.contains("failed"), "{commands:?}: {printed}");
}

#[test]
fn nbdinfo_describes_the_volume() {
    let test_dir = TestDir::with_volume(8);
    for way in WAYS {
        let server = test_dir.serve(&format!("{way} --export-name disk"));
        let report: Value =
            serde_json::from_str(&run("nbdinfo", &["--json", server.uri()])).unwrap();
        let export = &report["exports"][0];
        assert_eq!(export["export-name"], "disk");
        assert_eq!(export["export-size"], 8 * MIB);
        assert_eq!(export["block_size_preferred"], 4096);
        assert_eq!(export["is_read_only"], false);
        for can in ["flush", "fua", "trim", "zero", "multi_conn"] {
            assert_eq!(export[&format!("can_{can}")], true, "{can}");
        }
        assert_eq!(server.stop().0, 0);
    }
}

#[test]
fn qemu_img_converts_both_ways_and_compares() {
    let test_dir = TestDir::with_volume(8);
    for (way, seed) in WAYS.into_iter().zip(1..) {
        let image = image(&test_dir, seed);
        let (data, back) = (test_dir.path("data"), test_dir.path("back"));
        let (data, back) = (data.to_str().unwrap(), back.to_str().unwrap());
        let server = test_dir.serve(way);
        let raw = ["-f", "raw", "-O", "raw"];
        run("qemu-img", &[&["convert", "-n", "-W"], &raw[..], &[data, server.uri()]].concat());
        run("qemu-img", &["compare", "-f", "raw", "-F", "raw", data, server.uri()]);
        run("qemu-img", &[&["convert"], &raw[..], &[server.uri(), back]].concat());
        assert!(fs::read(back).unwrap() == image);
        assert_eq!(server.stop().0, 0);
        test_dir.assert_nothing_is_lost();
    }
}

#[test]
fn nbdcopy_copies_both_ways_over_many_connections() {
    let test_dir = TestDir::with_volume(8);
    for (way, seed) in WAYS.into_iter().zip(3..) {
        let image = image(&test_dir, seed);
        let (data, back) = (test_dir.path("data"), test_dir.path("back"));
        let server = test_dir.serve(way);
        let parallel = ["--connections=4", "--requests=64", "--flush"];
        let copy = |from: &str, to: &str| run("nbdcopy", &[&parallel[..], &[from, to]].concat());
        copy(data.to_str().unwrap(), server.uri());
        copy(server.uri(), back.to_str().unwrap());
        assert!(fs::read(back).unwrap() == image);
        // Flushed data survives a kill.
        server.kill();
        test_dir.assert_nothing_is_lost();
    }
}

/// qemu-io changes the disk at offsets that are not multiples of the block size. The contents must
/// equal those of an array on which the test makes the same changes.
#[test]
fn qemu_io_writes_discards_and_zeroes_at_odd_places() {
    let test_dir = TestDir::with_volume(8);
    let mut model = vec![0; (8 * MIB) as usize];
    for way in WAYS {
        let server = test_dir.serve(way);
        qemu_io(
            &server,
            &[
                "write -P 7 1k 300k",
                "write -P 8 511 1027",
                "write -z 9000 70001",
                "discard 100k 50k",
                "write -P 9 8388000 216",
                "aio_write -P 10 5M 1M",
                "aio_write -P 11 6M 123",
                "aio_flush",
                "write -f -P 12 7M 64k",
                "write -z -u 7176k 13k",
                "flush",
                "read -P 8 511 1027",
                "read -P 0 9000 70001",
                "read -P 10 5M 1M",
            ],
        );
        for (byte, at, length) in [
            (7, 1 << 10, 300 << 10),
            (8, 511, 1027),
            (0, 9000, 70_001),
            // The whole blocks of the discard.
            (0, 100 << 10, 48 << 10),
            (9, 8_388_000, 216),
            (10, 5 << 20, 1 << 20),
            (11, 6 << 20, 123),
            (12, 7 << 20, 64 << 10),
            (0, 7176 << 10, 13 << 10),
        ] {
            model[at..at + length].fill(byte);
        }
        let mut contents = server.contents();
        // A discard of a part of a block may have no effect.
        let edge = (148 << 10)..(150 << 10);
        contents[edge.clone()].fill(1);
        model[edge].fill(1);
        assert!(contents == model);
        assert_eq!(server.stop().0, 0);
    }
    test_dir.succeeds(&format!("check {VOLUME}"));
}

#[test]
fn fio_verifies_what_it_wrote_between_trims() {
    let test_dir = TestDir::with_volume(8);
    let server = test_dir.serve("--cache 1M");
    let uri = format!("--uri={}", server.uri());
    let fio = |options: &[&str]| {
        let job = ["--name=job", "--ioengine=nbd", &uri, "--bs=4k", "--verify_state_save=0"];
        run("fio", &[&job[..], options].concat())
    };
    // Each block is trimmed, and then written.
    fio(&[
        "--rw=randtrimwrite",
        "--iodepth=8",
        "--size=8M",
        "--fsync=256",
        "--verify=crc32c",
        "--verify_fatal=1",
        "--do_verify=1",
    ]);
    fio(&["--rw=randtrim", "--iodepth=32", "--offset=2M", "--size=4M"]);
    let contents = server.contents();
    let half = (2 * MIB) as usize;
    assert!(contents[half..3 * half].iter().all(|byte| *byte == 0), "these blocks were trimmed");
    let written = [&contents[..half], &contents[3 * half..4 * half]].concat();
    let is_empty = |block: &[u8]| block.iter().all(|byte| *byte == 0);
    assert!(!written.chunks(4096).any(is_empty), "these blocks were not trimmed");
    assert_eq!(server.stop().0, 0);
    let report = test_dir.json(&format!("check {VOLUME} --json"));
    assert_eq!(report["blocks"], 1024, "trimmed blocks are not kept");
}

#[test]
fn several_clients_verify_at_once() {
    let test_dir = TestDir::with_volume(4);
    let server = test_dir.serve("");
    let uri = format!("--uri={}", server.uri());
    run(
        "fio",
        &[
            "--name=verify",
            "--thread",
            "--ioengine=nbd",
            &uri,
            "--rw=randwrite",
            "--bsrange=512-64k",
            "--bs_unaligned=1",
            "--iodepth=8",
            "--numjobs=3",
            "--size=4M",
            "--offset_increment=5M",
            "--fsync=64",
            "--verify=crc32c",
            "--verify_fatal=1",
            "--do_verify=1",
            "--verify_state_save=0",
        ],
    );
    assert_eq!(server.stop().0, 0);
    test_dir.succeeds(&format!("check {VOLUME}"));
}

/// Writes a self-signed certificate and its key to a new directory, under the file names that
/// libnbd expects.
fn make_certificates(directory: &Path) {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    fs::create_dir(directory).unwrap();
    for name in ["ca-cert.pem", "server-cert.pem"] {
        fs::write(directory.join(name), made.cert.pem()).unwrap();
    }
    fs::write(directory.join("server-key.pem"), made.signing_key.serialize_pem()).unwrap();
}

#[test]
fn data_are_written_and_read_back_with_tls() {
    let test_dir = TestDir::with_volume(8);
    let (certificates, others) = (test_dir.path("pki"), test_dir.path("others"));
    make_certificates(&certificates);
    make_certificates(&others);
    let image = image(&test_dir, 6);
    let (data, back) = (test_dir.path("data"), test_dir.path("back"));
    let files = "--tls-certificate pki/server-cert.pem --tls-key pki/server-key.pem";
    for way in ["--socket tls.sock", "--tcp 127.0.0.1:0"] {
        let server = test_dir.serve(&format!("{way} {files}"));
        assert!(server.uri().starts_with("nbds"), "{}", server.uri());
        let uri = |trusted: &Path| {
            let uri = server.uri().replace("127.0.0.1", "localhost");
            let joint = if uri.contains('?') { '&' } else { '?' };
            format!("{uri}{joint}tls-certificates={}", trusted.display())
        };
        run("nbdcopy", &["--flush", data.to_str().unwrap(), &uri(&certificates)]);
        run("nbdcopy", &[&uri(&certificates), back.to_str().unwrap()]);
        assert!(fs::read(&back).unwrap() == image);
        // Without a host name, libnbd does not check the certificate.
        if way.contains("--tcp") {
            let stranger = try_run("nbdinfo", &["--size", &uri(&others)]);
            assert!(!stranger.status.success(), "a server without a trusted certificate");
        }
        let plain = try_run("nbdinfo", &["--size", &server.uri().replacen("nbds", "nbd", 1)]);
        assert!(!plain.status.success(), "TLS is required");
        assert_eq!(server.stop().0, 0);
    }
    let server = test_dir.serve(&format!("--tcp 127.0.0.1:0 {files} --tls-optional"));
    let size = run("nbdinfo", &["--size", &server.uri().replacen("nbds", "nbd", 1)]);
    assert_eq!(size.trim(), (8 * MIB).to_string());
    // Clients must present a certificate.
    let options = format!("--socket tls.sock {files} --tls-client-authorities pki/ca-cert.pem");
    drop(server);
    let server = test_dir.serve(&options);
    let trusted = format!("&tls-certificates={}", certificates.display());
    let stranger = try_run("nbdinfo", &["--size", &(server.uri().to_owned() + &trusted)]);
    assert!(!stranger.status.success(), "a client without a trusted certificate");
    assert_eq!(server.stop().0, 0);
    test_dir.assert_nothing_is_lost();
}

#[test]
fn nothing_is_written_to_a_disk_that_is_read_only() {
    let test_dir = TestDir::with_data(4);
    let server = test_dir.serve("--read-only");
    for command in ["write -P 1 0 4k", "discard 0 64k", "write -z 0 64k"] {
        let output = try_run("qemu-io", &["-f", "raw", "-c", command, server.uri()]);
        assert!(!output.status.success(), "{command}");
    }
    run("nbdinfo", &["--is", "read-only", server.uri()]);
    assert_eq!(server.stop().0, 0);
    test_dir.assert_nothing_is_lost();
}

#[test]
fn the_kernel_is_a_client() {
    let test_dir = TestDir::with_volume(4);
    let server = test_dir.serve("--export-name disk");
    let socket = server.socket().to_str().unwrap();
    let listed = run("nbd-client", &["-l", "-u", socket]);
    assert!(listed.lines().any(|line| line.starts_with("disk")), "{listed}");
    let device = "/dev/nbd15";
    if !Path::new(device).exists() {
        eprintln!("LEFT OUT: a test that needs {device} (modprobe nbd nbds_max=16, as root)");
        return;
    }
    run("nbd-client", &["-u", socket, "-N", "disk", device]);
    let data = test_dir.path("data");
    image(&test_dir, 7);
    let copied = try_run(
        "dd",
        &[&format!("if={}", data.display()), &format!("of={device}"), "bs=1M", "conv=fsync"],
    );
    run("nbd-client", &["-d", device]);
    assert!(copied.status.success(), "{copied:?}");
    assert_eq!(server.stop().0, 0);
    test_dir.assert_nothing_is_lost();
}
