//! Records of share servers that were unavailable when newer records were written.

use std::fs;

use super::shares::{PROGRAM, SMALL, ShareServers};
use super::test_dir::TestDir;
use crate::common;

/// Five servers, one of which may lie, and a volume on them.
struct Five {
    test_dir: TestDir,
    servers: ShareServers,
}

impl Five {
    fn new() -> Self {
        let test_dir = TestDir::new();
        let servers = ShareServers::new(&test_dir, 5, "&collude=1");
        let new = Self { test_dir, servers };
        let volume = new.servers.volume("disk");
        new.test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
        new
    }

    /// Opens and closes the volume. Returns the exit code and the messages.
    fn open(&self) -> (i32, String) {
        let volume = self.servers.volume("disk");
        let command = format!("serve nbd {volume} --retry-for 0.3 --run true");
        let (code, _, printed) = common::oblivio(self.test_dir.path(""), &command);
        (code, printed)
    }

    fn assert_opens(&self) {
        let (code, printed) = self.open();
        assert_eq!(code, 0, "{printed}");
    }

    /// Uses the volume twice while servers 1 and 2 are unavailable.
    fn use_without_two(&mut self) {
        self.be_there(&[0, 1], false);
        self.assert_opens();
        self.assert_opens();
        self.be_there(&[0, 1], true);
    }

    /// Kills servers 1 and 2 during a session before a block is written, and restarts them.
    fn write_after_two_died(&mut self) {
        let volume = self.servers.volume("disk");
        let [one, two] = [0, 1].map(|server| self.servers.pid(server));
        let write = "qemu-io --format raw --cmd \"write -q 0 4K\" \"$uri\"";
        self.test_dir.succeeds(&format!(
            "serve nbd {volume} --retry-for 0.3 --run 'kill -9 {one} {two} && {write}'"
        ));
        self.be_there(&[0, 1], false);
        self.be_there(&[0, 1], true);
    }

    /// Restarts a server with an empty folder. `server` counts from 0.
    fn lose_disk(&mut self, server: usize) {
        self.be_there(&[server], false);
        fs::remove_dir_all(ShareServers::folder(&self.test_dir, server)).unwrap();
        self.be_there(&[server], true);
    }

    /// Asserts that `command` fails with exit code `code`, and that its message contains all texts
    /// in `expected`.
    fn assert_refused(&self, command: &str, code: i32, expected: &[&str]) {
        let printed = common::fails_with(self.test_dir.path(""), command, code);
        for expected in expected {
            assert!(printed.contains(expected), "{command}: {expected}: {printed}");
        }
    }

    fn be_there(&mut self, which: &[usize], is_there: bool) {
        for server in which {
            match is_there {
                true => self.servers.start(&self.test_dir, *server),
                false => self.servers.kill(*server),
            }
        }
    }
}

/// Two servers hold old records and two the newest, although no server lies. The volume is not
/// reported as rolled back.
#[test]
fn older_records_of_servers_that_were_away_are_no_rollback() {
    let mut five = Five::new();
    five.use_without_two();
    five.be_there(&[4], false);
    five.assert_opens();
    five.be_there(&[4], true);
    five.assert_opens();
    // Server 3 alone has the newest records, and does not outvote servers 1 and 2. The message
    // names the missing servers, which may have the newest records, too.
    five.use_without_two();
    five.be_there(&[3, 4], false);
    let (code, printed) = five.open();
    assert_eq!(code, 15, "{printed}");
    for expected in ["server 4", "server 5", "bring all servers back"] {
        assert!(printed.contains(expected), "{expected}: {printed}");
    }
    five.be_there(&[3, 4], true);
    five.assert_opens();
    // An opening writes to all available servers: servers 1 and 2 are up to date.
    five.be_there(&[3, 4], false);
    five.assert_opens();
}

#[test]
fn a_repair_copies_the_newest_records_and_no_removed_key_comes_back() {
    let mut five = Five::new();
    let volume = five.servers.volume("disk");
    fs::write(five.test_dir.path("other"), [9; 32]).unwrap();
    five.test_dir.succeeds(&format!("key add {volume} --new-key-file other"));
    five.be_there(&[0, 1], false);
    five.test_dir.succeeds(&format!("key remove {volume} 1"));
    five.be_there(&[0, 1], true);
    five.use_without_two();
    // Server 5 gets a new disk while two of the others have old records, and two the newest.
    five.lose_disk(4);
    let repair = format!("shares repair {volume} --server 5");
    five.test_dir.succeeds(&repair);
    // Server 5 got the newest records: two servers have them, although server 4 is missing.
    five.be_there(&[3], false);
    let by_other = volume.replace("--key-file key", "--key-file other");
    five.test_dir.fails_with(&format!("check {by_other}"), 6, "the key file is wrong");
    five.assert_opens();
    five.be_there(&[3], true);
    five.assert_opens();
}

/// A repair does not copy old records while a missing server may have newer records. Servers 1 and
/// 2 hold old records, and server 3 has lost its disk.
#[test]
fn a_repair_copies_no_old_records_while_a_missing_server_may_have_newer_ones() {
    let mut five = Five::new();
    let volume = five.servers.volume("disk");
    five.test_dir.copy(five.test_dir.state(), "old-state");
    for server in [1, 2, 4] {
        five.test_dir.copy(format!("shares-{server}"), format!("old-{server}"));
    }
    five.use_without_two();
    five.lose_disk(2);
    let repair = |more: &str| format!("shares repair {volume} --retry-for 0.3 {more}");
    five.be_there(&[3, 4], false);
    let advice = ["older records", "server 4", "server 5", "repeat the repair"];
    five.assert_refused(&repair("--server 3"), 15, &advice);
    five.assert_refused(&repair("--server 3 --anyway"), 15, &advice);
    assert!(!ShareServers::folder(&five.test_dir, 2).join("alice/disk").exists());
    five.be_there(&[3], true);
    // Without the client's directory, nothing shows that these records are old.
    fs::rename(five.test_dir.path("state-home"), five.test_dir.path("elsewhere")).unwrap();
    let advice = ["client's directory", "server 5", "--without-missing"];
    five.assert_refused(&repair("--server 3"), 15, &advice);
    assert!(!ShareServers::folder(&five.test_dir, 2).join("alice/disk").exists());
    five.be_there(&[4], true);
    five.test_dir.succeeds(&repair("--server 3"));
    fs::rename(five.test_dir.path("elsewhere"), five.test_dir.path("state-home")).unwrap();
    five.assert_opens();

    // A client's directory that is in use does not show it either, nor does an old copy of it. A
    // refusal does not take the volume from the client that uses it.
    five.lose_disk(2);
    five.be_there(&[4], false);
    let refused = repair("--server 3").replace('\'', "\"");
    let write = "qemu-io --format raw --cmd \"write -q 0 4K\" \"$uri\"";
    five.test_dir.succeeds(&format!(
        "serve nbd {volume} --retry-for 1 --run '{PROGRAM} {refused}; test $? = 15 && {write}'"
    ));
    let advice = ["client's directory is older than storage", "server 5", "--without-missing"];
    five.assert_refused(&repair("--server 3 --state old-state"), 15, &advice);
    five.assert_refused(&repair("--server 3 --state old-state --anyway"), 15, &advice);
    five.test_dir.succeeds(&repair("--server 3 --state old-state --without-missing"));
    five.assert_opens();

    // If no other server is missing, records that are too old are a rollback.
    five.be_there(&[0, 1, 3], false);
    for server in [1, 2, 4] {
        five.test_dir.copy(format!("old-{server}"), format!("shares-{server}"));
    }
    five.be_there(&[0, 1, 3, 4], true);
    five.lose_disk(4);
    five.assert_refused(&repair("--server 5"), 8, &["storage is older"]);
    assert!(!ShareServers::folder(&five.test_dir, 4).join("alice/disk").exists());
}

/// A repair does not copy the records of an opening while a server that saw the volume closed is
/// missing. Servers 1 and 2 died in a session, so they hold the records of its opening, one
/// checkpoint old.
#[test]
fn a_repair_copies_no_records_of_an_opening_while_a_server_that_saw_the_close_is_missing() {
    let mut five = Five::new();
    let volume = five.servers.volume("disk");
    five.write_after_two_died();
    five.lose_disk(2);
    five.be_there(&[3, 4], false);
    let repair = format!("shares repair {volume} --retry-for 0.3 --server 3");
    five.assert_refused(&repair, 15, &["newer records", "server 4", "server 5"]);
    five.be_there(&[3], true);
    five.assert_refused(&repair, 15, &["newer records", "server 5"]);
    five.be_there(&[4], true);
    five.test_dir.succeeds(&repair);
    five.assert_opens();
}

#[test]
fn a_rescue_says_that_missing_servers_may_hold_newer_blocks() {
    let mut five = Five::new();
    let volume = five.servers.volume("disk");
    // The records of servers 1 and 2 are older, but no block is.
    five.use_without_two();
    five.be_there(&[3, 4], false);
    let with_lost = |lost| ["server 4", "server 5", "that the missing servers hold", lost];
    let none = with_lost("blocks that are lost: 0;");
    five.assert_refused(&format!("rescue {volume} older"), 15, &none);
    assert!(five.test_dir.path("older").exists());
    five.assert_refused(&format!("serve nbd {volume} --rescued --run true"), 15, &none);
    five.be_there(&[3, 4], true);
    five.assert_opens();
    // Servers 1 and 2 die in a session, before a block is written to the other servers.
    five.write_after_two_died();
    five.be_there(&[3, 4], false);
    let one = with_lost("blocks that are lost: 1;");
    five.assert_refused(&format!("rescue {volume} image"), 15, &one);
    five.be_there(&[3, 4], true);
    five.test_dir.succeeds(&format!("rescue {volume} whole"));
}

/// While servers with the newest superblock are missing, neither the old nor the new key opens the
/// volume. The program asks for the servers, and does not report a rollback or a wrong key.
#[test]
fn an_old_superblock_is_no_rollback_while_servers_are_missing() {
    let mut five = Five::new();
    let volume = five.servers.volume("disk");
    let by_other = volume.replace("--key-file key", "--key-file other");
    fs::write(five.test_dir.path("other"), [9; 32]).unwrap();
    five.be_there(&[0, 1], false);
    five.test_dir.succeeds(&format!("key add {volume} --new-key-file other"));
    five.be_there(&[0, 1], true);
    five.be_there(&[3, 4], false);
    let slot = format!("{by_other} --key-slot 1");
    for volume in [&volume, &by_other, &slot] {
        for command in ["check", "info", "rescue", "serve nbd --rescued --run true"] {
            let image = if command == "rescue" { "image" } else { "" };
            let command = format!("{command} {volume} {image}");
            five.assert_refused(&command, 15, &["server 4", "server 5", "bring all servers back"]);
        }
    }
    five.lose_disk(2);
    for volume in [&volume, &by_other] {
        let repair = format!("shares repair {volume} --retry-for 0.3 --server 3");
        five.assert_refused(&repair, 15, &["older records", "server 4", "server 5"]);
    }
}
