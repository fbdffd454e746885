//! Each exit code, reached as users reach it. Codes for damage are in `damage`, code 10 is in
//! `full_disk`.
//!
//! Code 5 has no test here: it means that the engine returned other bytes than were written.

use std::fs::{self, File};
use std::net::TcpListener;

use super::world::{MIB, Server, VOLUME, World, bytes};
use crate::common::command;

#[test]
fn an_address_in_use_is_code_1() {
    let world = World::with_volume(4);
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    world.bad(&format!("serve nbd {VOLUME} --tcp {address} --run true"), 1, "cannot listen on");
    world.good(&format!("info {VOLUME} --require-clean"));
}

#[test]
fn a_command_line_not_understood_is_code_2() {
    let world = World::new();
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
        world.bad(command_line, 2, "--help");
    }
    assert!(fs::read_dir(world.path("")).unwrap().count() == 1, "only the key may exist");
}

#[test]
fn input_that_cannot_be_used_is_code_3_and_says_what_to_do() {
    let world = World::with_data(4);
    let label = "x".repeat(1000);
    for command_line in ["info label --key-file key", "check label --key-file key"] {
        fs::write(world.path("label"), &label).unwrap();
        world.bad(command_line, 3, "label: this is not an Oblivio volume");
    }
    world.good("create ranges.obl --size 4M --scheme range --key-file key --state ./ranges");
    world.bad(
        "serve nbd ranges.obl --key-file key --state ./ranges --serve-hits --run true",
        3,
        "leave --serve-hits out",
    );
    world.good(
        "create long.obl --size 4M --scheme range --range-policy fixed=1M --key-file key \
         --state ./long",
    );
    world.bad(
        "serve nbd long.obl --key-file key --state ./long --rate 4096/s --burst 4096 --run true",
        3,
        "make 256 or fewer",
    );
    world.good("info long.obl --key-file key --state ./long --require-clean");
    fs::write(world.path("text"), "not a volume").unwrap();
    fs::write(world.path("empty"), "").unwrap();
    File::create(world.path("large")).unwrap().set_len(100 * MIB).unwrap();
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
        world.bad(command_line, 3, advice);
    }
    assert!(!world.path("new.obl").exists());
    world.good(&format!("info {VOLUME} --require-clean"));
    world.assert_nothing_is_lost();
}

#[test]
fn output_that_cannot_be_written_is_code_4() {
    let world = World::with_volume(4);
    fs::write(world.path("file"), "").unwrap();
    for command_line in [
        "man file".to_owned(),
        "man file/deeper".into(),
        format!("view record {VOLUME} --output nowhere/disk.view --run true"),
        format!("serve nbd {VOLUME} --record-view . --run true"),
    ] {
        world.bad(&command_line, 4, "choose another place");
    }
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut plan = command(&world.path(""), "plan --size 1G");
    let output = plan.stdout(full).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{message}");
    assert!(message.contains("standard output cannot be written"), "{message}");
    world.good(&format!("info {VOLUME} --require-clean"));
}

#[test]
fn a_wrong_key_is_code_6() {
    let world = World::with_data(4);
    fs::write(world.path("words"), "a passphrase that is long enough to be a key file").unwrap();
    fs::write(world.path("other"), "something else, and of 32 bytes or more").unwrap();
    world.good(&format!("key add {VOLUME} --new-passphrase-file words --unlock-millis 1"));
    for wrong in ["--key-file other", "--key-file words", "--passphrase-file other"] {
        for command in ["info", "check", "key add", "serve nbd"] {
            let new = if command == "key add" { "--new-key-file key" } else { "" };
            world.bad(&format!("{command} disk.obl {wrong} {new}"), 6, "key list");
        }
        world.bad(&format!("key remove disk.obl {wrong} 0"), 6, "key list");
    }
    world.assert_nothing_is_lost();
}

#[test]
fn a_volume_in_use_is_code_9() {
    let world = World::with_data(4);
    let server = world.serve("");
    for command_line in [
        format!("check {VOLUME}"),
        format!("info {VOLUME} --require-clean"),
        format!("serve nbd {VOLUME} --run true"),
        format!("key add {VOLUME} --new-key-file key"),
    ] {
        world.bad(&command_line, 9, "close it there first");
    }
    // A copy of the file, with the same client's directory.
    world.copy("disk.obl", "copy.obl");
    for command in ["check", "info --require-clean", "serve nbd", "key add --new-key-file key"] {
        world.bad(&format!("{command} copy.obl --key-file key"), 9, "Stop it first");
    }
    // Another volume, and the same socket.
    world.good("create other.obl --key-file key --size 16M --state others");
    let socket = world.state().join("nbd.sock");
    let line = format!(
        "serve nbd other.obl --key-file key --state others --socket '{}' --run true",
        socket.display()
    );
    world.bad(&line, 9, "choose another socket file");
    assert!(
        server.contents() == fs::read(world.path("data")).unwrap(),
        "the server must not be disturbed"
    );
    assert_eq!(server.stop().0, 0);
    fs::remove_file(world.path("copy.obl")).unwrap();
    world.assert_nothing_is_lost();
}

#[test]
fn a_volume_that_was_not_closed_is_code_14() {
    let world = World::with_data(8);
    fs::write(world.path("data"), bytes(8, 8 * MIB)).unwrap();
    let server = Server::start(&world, "").ready();
    server.write(&world.path("data"));
    server.kill();
    for _ in 0..2 {
        world.bad(&format!("info {VOLUME} --require-clean"), 14, "the next opening recovers it");
    }
    let report = world.json(&format!("info {VOLUME} --json"));
    assert_eq!(report["needs_recovery"], true);
    assert!(world.good(&format!("info {VOLUME}")).contains("closed            no"));
    // A server reports how much it had to recover.
    let mut server = Server::start(&world, "").ready();
    assert!(server.repeated() > 0);
    server.kill();
    let report = world.json(&format!("check {VOLUME} --json"));
    assert_eq!(report["recovered"], true);
    world.good(&format!("info {VOLUME} --require-clean"));
    server = world.serve("");
    assert_eq!(server.repeated(), 0);
    assert_eq!(server.stop(), (0, String::new()));
    world.assert_nothing_is_lost();
}
