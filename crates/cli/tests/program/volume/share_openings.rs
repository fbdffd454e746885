//! Openings of volumes on share servers. If an opening is refused, the client that has the volume
//! open keeps it.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::shares::{PROGRAM, SMALL, ShareServers};
use super::test_dir::{MIB, PATIENCE, TestDir, bytes, end};
use crate::common;

/// A copy of the client's directory is older than the servers' records if it lacks the last writes
/// of a client that uses the volume, or everything since its opening. Commands with such a copy end
/// with exit code 12.
#[test]
fn an_older_copy_of_the_directory_is_refused_and_its_owner_keeps_the_volume() {
    for map in ["", "--client-memory 236000"] {
        let test_dir = TestDir::new();
        let servers = ShareServers::new(&test_dir, 3, "");
        let volume = servers.volume("disk");
        test_dir.succeeds(&format!("create {volume} --size 1M {SMALL} {map} --state client"));
        fs::write(test_dir.path("data"), bytes(3, MIB / 4)).unwrap();
        test_dir.copy("client", "older");
        let refused = |state: &str| {
            let of_copy = servers.volume("disk").replace('\'', "\"");
            let opened = format!("{of_copy} --state {state}");
            format!(
                "{PROGRAM} check {opened}; test $? = 12 && {PROGRAM} serve nbd {opened} --run \
                 true; test $? = 12"
            )
        };
        let write = "nbdcopy --flush data \"$uri\"";
        // The last copy lacks one block, without an eviction after it.
        let one_block = "qemu-io --format raw --cmd \"write -q 0 4K\" \"$uri\"";
        let (older, lacks_many, lacks_one) =
            (refused("older"), refused("lacks-many"), refused("lacks-one"));
        test_dir.succeeds(&format!(
            "serve nbd {volume} --cache 0 --state client --run '({older}) && \
             cp -r client lacks-many && {write} && ({lacks_many}) && \
             cp -r client lacks-one && {one_block} && ({lacks_one}) && \
             {write} && nbdcopy \"$uri\" back && cmp --bytes=262144 data back'"
        ));
        test_dir.succeeds(&format!("check {volume} --state client"));
    }
}

/// Checks that commands that open or describe the volume end with exit code `code`, and that their
/// messages contain `advice`.
fn all_end(test_dir: &TestDir, servers: &ShareServers, code: i32, advice: &str) {
    let volume = servers.volume("disk");
    let url = servers.url_of(&[0, 1, 2], "disk");
    for command in [
        format!("check {volume} --state client"),
        format!("serve nbd {volume} --state client --run true"),
        format!("rescue {volume} image --state client"),
        format!("info {volume}"),
        format!("info '{url}' --public"),
        format!("key list '{url}'"),
        format!("shares repair {volume} --server 1 --retry-for 1"),
        format!("shares repair {volume} --server 3 --retry-for 1"),
    ] {
        test_dir.fails_with(&command, code, advice);
    }
}

/// Deletes the volume from a server's disk, and restarts the server.
fn lose(test_dir: &TestDir, servers: &mut ShareServers, server: usize) {
    servers.kill(server);
    fs::remove_dir_all(ShareServers::folder(test_dir, server).join("alice")).unwrap();
    servers.start(test_dir, server);
}

/// A volume is in use during its creation. If the creating client is killed, `remove` deletes the
/// remains, even if some servers have lost theirs. Then the volume can be created again.
#[test]
fn an_unfinished_volume_is_in_use_until_its_client_dies_and_can_then_be_removed() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    fs::write(test_dir.path("data"), bytes(3, 2 * MIB)).unwrap();
    let unfinished = "`oblivio remove URL --yes`), and create it again";
    for lost in [&[][..], &[0], &[2], &[0, 1], &[1, 2]] {
        let create = format!("create {volume} --from data {SMALL} --state client");
        let mut command = common::command(&test_dir.path(""), &create);
        let mut making = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let shares = |server| ShareServers::folder(&test_dir, server).join("alice/disk/shares");
        let has_begun = || (0..3).all(|server| shares(server).exists());
        let begins = (0..PATIENCE.as_millis()).any(|_| {
            thread::sleep(Duration::from_millis(1));
            has_begun()
        });
        assert!(begins);
        kill_process(Pid::from_child(&making), Signal::STOP).unwrap();
        if lost.is_empty() {
            all_end(&test_dir, &servers, 9, "close the volume elsewhere");
        }
        end(&mut making);
        lost.iter().for_each(|server| lose(&test_dir, &mut servers, *server));
        all_end(&test_dir, &servers, 7, unfinished);
        test_dir.succeeds(&format!("remove '{}' --yes", servers.url_of(&[0, 1, 2], "disk")));
        fs::remove_dir_all(test_dir.path("client")).unwrap();
    }
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL} --state client"));
    test_dir.succeeds(&format!("check {volume} --state client"));
}

/// If two of three servers lost the volume, it is reported as unreadable. No message asks for a
/// repair, which would need more servers.
#[test]
fn a_volume_on_too_few_servers_is_reported_as_unreadable() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL} --state client"));
    test_dir.copy("shares-2", "disk-of-2");
    lose(&test_dir, &mut servers, 1);
    lose(&test_dir, &mut servers, 2);
    let message = "2 of 3 servers report no volume disk, and 2 must have it: its data is lost";
    all_end(&test_dir, &servers, 7, message);
    servers.kill(1);
    test_dir.copy("disk-of-2", "shares-2");
    servers.start(&test_dir, 1);
    test_dir.succeeds(&format!("shares repair {volume} --server 3"));
    test_dir.succeeds(&format!("check {volume} --state client"));
    // Server 3, one of the two servers that a repair needs, is missing. The message says so, and
    // does not advise to repair server 3.
    servers.kill(2);
    let away = common::fails_with(
        test_dir.path(""),
        &format!("shares repair {volume} --server 2 --anyway --retry-for 1"),
        15,
    );
    assert!(away.contains("server 3") && away.contains("bring back another"), "{away}");
    assert!(!away.contains("repair one of these"), "{away}");
    // If server 3 has lost its disk instead, it can be repaired.
    servers.start(&test_dir, 2);
    lose(&test_dir, &mut servers, 2);
    let anyway = format!("shares repair {volume} --server 2 --anyway");
    let printed = common::fails_with(test_dir.path(""), &anyway, 3);
    assert!(
        printed.contains("server 3") && printed.contains("repair one of these first"),
        "{printed}"
    );
    test_dir.succeeds(&format!("shares repair {volume} --server 3"));
    test_dir.succeeds(&anyway);
    test_dir.succeeds(&format!("check {volume} --state client"));
}
