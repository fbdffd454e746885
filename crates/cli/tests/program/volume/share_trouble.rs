//! Volumes on share servers with a damaged file, and with two clients that create one at once.

use std::fs;
use std::path::Path;
use std::thread;

use serde_json::Value;

use super::shares::{SMALL, ShareServers};
use super::world::{MIB, World, bytes};
use crate::common;

/// For any file, the message names the server and what to do, that repairs it, and nothing wrong is
/// read.
#[test]
fn a_file_of_zeros_on_a_server_is_noticed_and_repaired() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(world.path("data"), bytes(5, MIB / 4)).unwrap();
    world.good(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    let check = format!("check {volume}");
    let repair = format!("shares repair {volume} --server 2");
    // A server with zeros in front counts as new. Otherwise its shares do not fit the others; the
    // client's directory then lists it as wrong, so its repair needs no `--anyway`.
    for (file, code, is_listed) in
        [("root", 8, false), ("setup", 7, false), ("siblings", 7, true), ("leaves", 7, true)]
    {
        servers.kill(1);
        let path = ShareServers::folder(&world, 1).join("alice/disk/shares").join(file);
        let length = fs::metadata(&path).unwrap().len();
        fs::File::create(&path).unwrap().set_len(length).unwrap();
        servers.start(&world, 1);
        let (found, _, said) = common::oblivio(world.path(""), &check);
        assert_eq!(found, code, "{file}: {said}");
        for expected in ["server 2", "oblivio shares repair"] {
            assert!(said.contains(expected), "{file}: {said}");
        }
        world.good(&repair);
        if is_listed {
            // The directory remembers the tampering until the owner confirms its end.
            world.bad(&check, 7, "--after-tampering");
            world.good(&format!("{check} --after-tampering"));
        } else {
            world.good(&check);
        }
        world.good(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
    }
}

/// A wrong file is reported as damage of that server only, and a repair fixes it. A directory in
/// place of a file must be fixed by the operator.
#[test]
fn a_wrong_file_of_a_server_is_reported_as_damage() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    let [check, repair] = ["check", "shares repair"].map(|command| format!("{command} {volume}"));
    let repair = format!("{repair} --server 2");
    let with_a_bit_flipped = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let a_directory = |path: &Path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    };
    type Damage<'d> = &'d dyn Fn(&Path);
    let cases: [(&str, Damage<'_>, bool); 4] = [
        // The server then claims to be another one.
        ("shares/setup", &with_a_bit_flipped, true),
        ("session", &with_a_bit_flipped, false),
        ("shares/root", &a_directory, false),
        ("shares/setup", &a_directory, false),
    ];
    for (file, damage, is_told) in cases {
        servers.kill(1);
        damage(&ShareServers::folder(&world, 1).join("alice/disk").join(file));
        servers.start(&world, 1);
        let said = common::bad(world.path(""), &check, 7);
        for expected in ["server 2", "oblivio shares repair"] {
            assert!(said.contains(expected), "{file}: {said}");
        }
        assert!(!said.contains("server 1") && !said.contains("server 3"), "{file}: {said}");
        if is_told {
            assert!(said.contains("--anyway"), "{said}");
            world.bad(&repair, 3, "--anyway");
            world.good(&format!("{repair} --anyway"));
        } else {
            world.good(&repair);
        }
        // The client's directory remembers what was found.
        world.good(&format!("{check} --after-tampering"));
    }
    servers.kill(1);
    a_directory(&ShareServers::folder(&world, 1).join("alice/disk/buckets"));
    servers.start(&world, 1);
    world.bad(&check, 7, "server 2");
    world.bad(&repair, 7, "is a directory");
}

/// A missing server counts as one damage, not as one for each place where it shows.
#[test]
fn a_rescue_names_a_missing_server_once() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    servers.kill(1);
    let (code, told, said) =
        common::oblivio(world.path(""), &format!("rescue {volume} image --json"));
    assert_eq!(code, 7, "{said}");
    let told: Value = serde_json::from_str(&told).unwrap();
    let damage = told["damage"].as_array().unwrap();
    assert_eq!(damage.len(), 1, "{told}");
    assert!(damage[0].as_str().unwrap().contains("server 2"), "{told}");
}

/// A server that was rolled back to before the last eviction cannot follow a repaired one. The
/// message names it as the next one to repair.
#[test]
fn a_repair_names_the_server_that_is_an_eviction_behind() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 5, "&collude=1");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    // While one server is missing, accesses stop where an eviction is due.
    servers.kill(4);
    let writes: String =
        (0..20).map(|block| format!("--cmd \"write -q {}K 4K\" ", 4 * block)).collect();
    let write = format!("qemu-io --format raw {writes} \"$uri\"");
    let serve = format!("serve nbd {volume} --cache 0 --retry-for 1 --run '{write}'");
    let (code, ..) = common::oblivio(world.path(""), &serve);
    assert_ne!(code, 0);
    servers.kill(1);
    world.copy("shares-2", "before");
    servers.start(&world, 1);
    servers.start(&world, 4);
    world.good(&format!("check {volume}"));
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&world, 1)).unwrap();
    world.copy("before", "shares-2");
    servers.start(&world, 1);
    let repair = |server, more: &str| {
        let command = format!("shares repair {volume} --server {server} --anyway {more}");
        let (code, told, said) = common::oblivio(world.path(""), &command);
        assert_eq!(code, 0, "{said}");
        (told, said)
    };
    let (told, json_said) = repair(1, "--json");
    let json: Value = serde_json::from_str(&told).unwrap();
    assert_eq!((&json["server"], &json["behind"]), (&1.into(), &vec![2].into()), "{json}");
    let (told, said) = repair(3, "");
    assert!(told.starts_with("server 3 ("), "{told}");
    for said in [&json_said, &said] {
        assert!(said.contains("server 2 (") && said.contains("is one eviction behind"), "{said}");
        assert_eq!(said.matches("server ").count(), 1, "{said}");
    }
    let json: Value = serde_json::from_str(&repair(2, "--json").0).unwrap();
    assert_eq!((&json["server"], &json["behind"]), (&2.into(), &Value::Array(vec![])), "{json}");
    world.good(&format!("check {volume}"));
}

#[test]
fn if_two_clients_create_a_volume_at_once_one_succeeds() {
    let world = World::new();
    let servers = ShareServers::new(&world, 3, "");
    for round in 0..8 {
        let volume = servers.volume(&format!("disk-{round}"));
        let create = |state: usize| {
            let state = format!("state-{round}-{state}");
            let command = format!("create {volume} --size 256K {SMALL} --state {state}");
            (state, common::oblivio(world.path(""), &command))
        };
        let mut made: Vec<_> = thread::scope(|scope| {
            let create = &create;
            let begun = [0, 1].map(|state| scope.spawn(move || create(state)));
            begun.into_iter().map(|it| it.join().unwrap()).collect()
        });
        made.sort_by_key(|(_, (code, ..))| *code);
        let [(owner, (done, ..)), (_, (code, _, said))] = &made[..] else { panic!("two") };
        assert_eq!((*done, *code), (0, 3), "{made:?}");
        assert!(said.contains("choose another name"), "{said}");
        world.good(&format!("check {volume} --state {owner}"));
    }
}
