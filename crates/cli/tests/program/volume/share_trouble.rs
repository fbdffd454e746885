//! Volumes on share servers with a damaged file, with a missing or rolled-back server, and with two
//! clients that create the same volume at once.

use std::fs;
use std::path::Path;
use std::thread;

use serde_json::Value;

use super::shares::{SMALL, ShareServers};
use super::test_dir::{MIB, TestDir, bytes};
use crate::common;

/// A file of a server holds only zeros. Whichever file it is, the message names the server and the
/// command that repairs the server. The repair works, and no wrong data is read.
#[test]
fn a_file_of_zeros_on_a_server_is_noticed_and_repaired() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(test_dir.path("data"), bytes(5, MIB / 4)).unwrap();
    test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    let check = format!("check {volume}");
    let repair = format!("shares repair {volume} --server 2");
    // A server with zeros in front counts as new. Otherwise its shares do not fit the others; the
    // client's directory then lists it as wrong, so its repair needs no `--anyway`.
    for (file, code, is_listed) in
        [("root", 8, false), ("setup", 7, false), ("siblings", 7, true), ("leaves", 7, true)]
    {
        servers.kill(1);
        let path = ShareServers::folder(&test_dir, 1).join("alice/disk/shares").join(file);
        let length = fs::metadata(&path).unwrap().len();
        fs::File::create(&path).unwrap().set_len(length).unwrap();
        servers.start(&test_dir, 1);
        let (found, _, printed) = common::oblivio(test_dir.path(""), &check);
        assert_eq!(found, code, "{file}: {printed}");
        for expected in ["server 2", "oblivio shares repair"] {
            assert!(printed.contains(expected), "{file}: {printed}");
        }
        test_dir.succeeds(&repair);
        if is_listed {
            // The client's directory remembers the tampering until the owner confirms that it is
            // over.
            test_dir.fails_with(&check, 7, "--after-tampering");
            test_dir.succeeds(&format!("{check} --after-tampering"));
        } else {
            test_dir.succeeds(&check);
        }
        test_dir.succeeds(&format!(
            "serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"
        ));
    }
}

/// A wrong file, or a directory in place of a file, is reported as damage of that server only, and
/// a repair fixes it. Only a directory with the name `buckets` must be removed by the operator.
#[test]
fn a_wrong_file_of_a_server_is_reported_as_damage() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
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
        // The server then claims to be another server.
        ("shares/setup", &with_a_bit_flipped, true),
        ("session", &with_a_bit_flipped, false),
        ("shares/root", &a_directory, false),
        ("shares/setup", &a_directory, false),
    ];
    for (file, damage, needs_anyway) in cases {
        servers.kill(1);
        damage(&ShareServers::folder(&test_dir, 1).join("alice/disk").join(file));
        servers.start(&test_dir, 1);
        let printed = common::fails_with(test_dir.path(""), &check, 7);
        for expected in ["server 2", "oblivio shares repair"] {
            assert!(printed.contains(expected), "{file}: {printed}");
        }
        assert!(
            !printed.contains("server 1") && !printed.contains("server 3"),
            "{file}: {printed}"
        );
        if needs_anyway {
            assert!(printed.contains("--anyway"), "{printed}");
            test_dir.fails_with(&repair, 3, "--anyway");
            test_dir.succeeds(&format!("{repair} --anyway"));
        } else {
            test_dir.succeeds(&repair);
        }
        // The client's directory remembers the tampering.
        test_dir.succeeds(&format!("{check} --after-tampering"));
    }
    servers.kill(1);
    a_directory(&ShareServers::folder(&test_dir, 1).join("alice/disk/buckets"));
    servers.start(&test_dir, 1);
    test_dir.fails_with(&check, 7, "server 2");
    test_dir.fails_with(&repair, 7, "is a directory");
}

/// A rescue reports a missing server once, not once for each piece of damage that it causes.
#[test]
fn a_rescue_names_a_missing_server_once() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
    servers.kill(1);
    let (code, stdout, printed) =
        common::oblivio(test_dir.path(""), &format!("rescue {volume} image --json"));
    assert_eq!(code, 7, "{printed}");
    let stdout: Value = serde_json::from_str(&stdout).unwrap();
    let damage = stdout["damage"].as_array().unwrap();
    assert_eq!(damage.len(), 1, "{stdout}");
    assert!(damage[0].as_str().unwrap().contains("server 2"), "{stdout}");
}

/// A server that was rolled back to before the last eviction does not fit a repaired server. The
/// message of the repair names it as the next server to repair.
#[test]
fn a_repair_names_the_server_that_is_an_eviction_behind() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 5, "&collude=1");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
    // While one server is missing, accesses stop where an eviction is due.
    servers.kill(4);
    let writes: String =
        (0..20).map(|block| format!("--cmd \"write -q {}K 4K\" ", 4 * block)).collect();
    let write = format!("qemu-io --format raw {writes} \"$uri\"");
    let serve = format!("serve nbd {volume} --cache 0 --retry-for 1 --run '{write}'");
    let (code, ..) = common::oblivio(test_dir.path(""), &serve);
    assert_ne!(code, 0);
    servers.kill(1);
    test_dir.copy("shares-2", "before");
    servers.start(&test_dir, 1);
    servers.start(&test_dir, 4);
    test_dir.succeeds(&format!("check {volume}"));
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&test_dir, 1)).unwrap();
    test_dir.copy("before", "shares-2");
    servers.start(&test_dir, 1);
    let repair = |server, more: &str| {
        let command = format!("shares repair {volume} --server {server} --anyway {more}");
        let (code, stdout, printed) = common::oblivio(test_dir.path(""), &command);
        assert_eq!(code, 0, "{printed}");
        (stdout, printed)
    };
    let (stdout, json_printed) = repair(1, "--json");
    let json: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&json["server"], &json["behind"]), (&1.into(), &vec![2].into()), "{json}");
    let (stdout, printed) = repair(3, "");
    assert!(stdout.starts_with("server 3 ("), "{stdout}");
    for printed in [&json_printed, &printed] {
        assert!(
            printed.contains("server 2 (") && printed.contains("is one eviction behind"),
            "{printed}"
        );
        assert_eq!(printed.matches("server ").count(), 1, "{printed}");
    }
    let json: Value = serde_json::from_str(&repair(2, "--json").0).unwrap();
    assert_eq!((&json["server"], &json["behind"]), (&2.into(), &Value::Array(vec![])), "{json}");
    test_dir.succeeds(&format!("check {volume}"));
}

#[test]
fn if_two_clients_create_a_volume_at_once_one_succeeds() {
    let test_dir = TestDir::new();
    let servers = ShareServers::new(&test_dir, 3, "");
    for round in 0..8 {
        let volume = servers.volume(&format!("disk-{round}"));
        let create = |state: usize| {
            let state = format!("state-{round}-{state}");
            let command = format!("create {volume} --size 256K {SMALL} --state {state}");
            (state, common::oblivio(test_dir.path(""), &command))
        };
        let mut made: Vec<_> = thread::scope(|scope| {
            let create = &create;
            let begun = [0, 1].map(|state| scope.spawn(move || create(state)));
            begun.into_iter().map(|it| it.join().unwrap()).collect()
        });
        made.sort_by_key(|(_, (code, ..))| *code);
        let [(owner, (done, ..)), (_, (code, _, printed))] = &made[..] else { panic!("two") };
        assert_eq!((*done, *code), (0, 3), "{made:?}");
        assert!(printed.contains("choose another name"), "{printed}");
        test_dir.succeeds(&format!("check {volume} --state {owner}"));
    }
}
