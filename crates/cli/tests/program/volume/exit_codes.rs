//! Command lines that end with each exit code. Codes for damage are in `damage`, code 10 is in
//! `full_disk`.
//!
//! Code 5 (read data differs from written data) is tested in `copy`.

use std::fs::{self, File};
use std::net::TcpListener;

use super::test_dir::{MIB, Server, TestDir, VOLUME, bytes};
use crate::common::command;

#[test]
fn an_address_in_use_is_code_1() {
    let test_dir = TestDir::with_volume(4);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    test_dir.fails_with(
        &format!("serve nbd {VOLUME} --tcp {address} --run true"),
        1,
        "cannot listen on",
    );
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

#[test]
fn a_command_line_not_understood_is_code_2() {
    let test_dir = TestDir::new();
    for command_line in [
        "create disk.obl",
        "create disk.obl --size 16Q",
        "create disk.obl --size 99999999T",
        "check",
        "check disk.obl --key-file a --passphrase-file b",
        "serve",
        "serve nbd disk.obl --socket a --tcp 127.0.0.1:1",
        "serve nbd disk.obl --tcp somewhere",
        "serve nbd disk.obl --tls-key key",
        "serve nbd disk.obl --beyond-loopback",
        "serve nbd disk.obl --tcp 0.0.0.0:0 --any-client",
        "mount disk.obl . --raw --no-mkfs",
        "info disk.obl --public --require-clean",
        "key remove disk.obl",
        "key remove disk.obl first",
        "view record disk.obl --output view",
    ] {
        test_dir.fails_with(command_line, 2, "--help");
    }
    assert!(fs::read_dir(test_dir.path("")).unwrap().count() == 1, "only the key may exist");
}

#[test]
fn input_that_cannot_be_used_is_code_3_and_says_what_to_do() {
    let test_dir = TestDir::with_data(4);
    let label = "x".repeat(1000);
    for command_line in ["info label --key-file key", "check label --key-file key"] {
        fs::write(test_dir.path("label"), &label).unwrap();
        test_dir.fails_with(command_line, 3, "label: this is not an Oblivio volume");
    }
    test_dir.succeeds("create ranges.obl --size 4M --scheme range --key-file key --state ./ranges");
    test_dir.fails_with(
        "serve nbd ranges.obl --key-file key --state ./ranges --serve-hits --run true",
        3,
        "leave --serve-hits out",
    );
    test_dir.succeeds(
        "create long.obl --size 4M --scheme range --range-policy fixed=1M --key-file key \
         --state ./long",
    );
    test_dir.fails_with(
        "serve nbd long.obl --key-file key --state ./long --rate 4096/s --burst 4096 --run true",
        3,
        "make 256 or fewer",
    );
    test_dir.succeeds("info long.obl --key-file key --state ./long --require-clean");
    fs::write(test_dir.path("text"), "not a volume").unwrap();
    fs::write(test_dir.path("empty"), "").unwrap();
    File::create(test_dir.path("large")).unwrap().set_len(100 * MIB).unwrap();
    for (command_line, advice) in [
        ("info nowhere.obl --key-file key", "check the path"),
        ("info . --key-file key", "check the path"),
        ("check text --key-file key", "check the path"),
        ("check empty --key-file key", "check the path"),
        ("key list text", "check the path"),
        ("info disk.obl --key-file nowhere", "check the path"),
        ("info disk.obl --key-file .", "give a file"),
        ("info disk.obl --key-file large", "so it is not a key file"),
        ("info disk.obl --key-file empty", "byte"),
        ("info disk.obl --passphrase-file empty", "byte"),
        ("info disk.obl --passphrase-command false", "run it in a shell to see why"),
        ("info disk.obl", "use --key-file"),
        ("create disk.obl --size 16M --key-file key", "choose another name"),
        ("create new.obl --size 0 --key-file key", "byte"),
        ("create new.obl --size 16M --block 3 --key-file key", "byte"),
        ("create new.obl --size 16M --block 8G --key-file key", "16 to 1048576 bytes"),
        ("create new.obl --size 16M --slots 0 --key-file key", ""),
        ("create new.obl --size 16M --evict-period 0 --key-file key", ""),
        ("create new.obl --size 16M --slots 1 --evict-period 9 --key-file key", ""),
        ("plan --size 9000000T", ""),
        (&format!("create new.obl --size 16M --key-file key --label {label}"), "label"),
        (&format!("key add {VOLUME} --new-key-file nowhere"), "check the path"),
        (&format!("key add {VOLUME} --new-key-file empty"), "byte"),
        (&format!("key remove {VOLUME} 7"), "slot"),
        (&format!("key remove {VOLUME} 200"), "slot"),
        (&format!("key remove {VOLUME} 0"), "add another first"),
        (&format!("serve nbd {VOLUME} --tcp 0.0.0.0:0 --run true"), "beyond loopback"),
        (
            &format!("serve nbd {VOLUME} --tcp 0.0.0.0:0 --beyond-loopback --run true"),
            "--tls-client-authorities",
        ),
        (&format!("serve nbd {VOLUME} --socket text --run true"), "choose another socket file"),
        (&format!("serve nbd {VOLUME} --socket nowhere/socket --run true"), "make the folder"),
        (&format!("serve nbd {VOLUME} --socket text/socket --run true"), "make the folder"),
        (
            &format!("serve nbd {VOLUME} --tls-certificate nowhere --tls-key key --run true"),
            "nowhere",
        ),
        (&format!("serve nbd {VOLUME} --export-name {} --run true", "x".repeat(5000)), "too long"),
        ("view show text", "record the view again"),
    ] {
        test_dir.fails_with(command_line, 3, advice);
    }
    assert!(!test_dir.path("new.obl").exists());
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
    test_dir.assert_nothing_is_lost();
}

#[test]
fn output_that_cannot_be_written_is_code_4() {
    let test_dir = TestDir::with_volume(4);
    fs::write(test_dir.path("file"), "").unwrap();
    for command_line in [
        "man file".to_owned(),
        "man file/deeper".into(),
        format!("view record {VOLUME} --output nowhere/disk.view --run true"),
        format!("serve nbd {VOLUME} --record-view . --run true"),
    ] {
        test_dir.fails_with(&command_line, 4, "choose another place");
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut plan = command(&test_dir.path(""), "plan --size 1G");
    let output = plan.stdout(full).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("standard output cannot be written"), "{message}");
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
}

#[test]
fn a_wrong_key_is_code_6() {
    let test_dir = TestDir::with_data(4);
    fs::write(test_dir.path("words"), "a passphrase that is long enough to be a key file").unwrap();
    fs::write(test_dir.path("other"), "something else, and of 32 bytes or more").unwrap();
    test_dir.succeeds(&format!("key add {VOLUME} --new-passphrase-file words --unlock-millis 1"));
    for wrong in ["--key-file other", "--key-file words", "--passphrase-file other"] {
        for command in ["info", "check", "key add", "serve nbd"] {
            let new = if command == "key add" { "--new-key-file key" } else { "" };
            test_dir.fails_with(&format!("{command} disk.obl {wrong} {new}"), 6, "key list");
        }
        test_dir.fails_with(&format!("key remove disk.obl {wrong} 0"), 6, "key list");
    }
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_volume_in_use_is_code_9() {
    let test_dir = TestDir::with_data(4);
    let server = test_dir.serve("");
    for command_line in [
        format!("check {VOLUME}"),
        format!("info {VOLUME} --require-clean"),
        format!("serve nbd {VOLUME} --run true"),
        format!("key add {VOLUME} --new-key-file key"),
    ] {
        test_dir.fails_with(&command_line, 9, "close it there first");
    }
    // A copy of the file, with the same client's directory.
    test_dir.copy("disk.obl", "copy.obl");
    for command in ["check", "info --require-clean", "serve nbd", "key add --new-key-file key"] {
        test_dir.fails_with(&format!("{command} copy.obl --key-file key"), 9, "Stop it first");
    }
    // Another volume, and the same socket.
    test_dir.succeeds("create other.obl --key-file key --size 16M --state others");
    let socket = test_dir.state().join("nbd.sock");
    let line = format!(
        "serve nbd other.obl --key-file key --state others --socket '{}' --run true",
        socket.display()
    );
    test_dir.fails_with(&line, 9, "choose another socket file");
    assert!(
        server.contents() == fs::read(test_dir.path("data")).unwrap(),
        "the server must not be disturbed"
    );
    assert_eq!(server.stop().0, 0);
    fs::remove_file(test_dir.path("copy.obl")).unwrap();
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_volume_that_was_not_closed_is_code_14() {
    let test_dir = TestDir::with_data(8);
    fs::write(test_dir.path("data"), bytes(8, 8 * MIB)).unwrap();
    let server = Server::start(&test_dir, "").ready();
    server.write(&test_dir.path("data"));
    server.kill();
    for _ in 0..2 {
        test_dir.fails_with(
            &format!("info {VOLUME} --require-clean"),
            14,
            "the next opening recovers it",
        );
    }
    let report = test_dir.json(&format!("info {VOLUME} --json"));
    assert_eq!(report["needs_recovery"], true);
    assert!(test_dir.succeeds(&format!("info {VOLUME}")).contains("closed            no"));
    // A server reports how much it had to recover.
    let mut server = Server::start(&test_dir, "").ready();
    assert!(server.repeated() > 0);
    server.kill();
    let report = test_dir.json(&format!("check {VOLUME} --json"));
    assert_eq!(report["recovered"], true);
    test_dir.succeeds(&format!("info {VOLUME} --require-clean"));
    server = test_dir.serve("");
    assert_eq!(server.repeated(), 0);
    assert_eq!(server.stop(), (0, String::new()));
    test_dir.assert_nothing_is_lost();
}
