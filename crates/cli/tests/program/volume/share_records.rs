//! Records on share servers that were away when they were written.

use std::fs;

use super::shares::{SMALL, ShareServers};
use super::world::World;
use crate::common;

/// Five servers, of which one may lie, and a volume on them.
struct Five {
    world: World,
    servers: ShareServers,
}

impl Five {
    fn new() -> Self {
        let world = World::new();
        let servers = ShareServers::new(&world, 5, "&collude=1");
        let new = Self { world, servers };
        let volume = new.servers.volume("disk");
        new.world.good(&format!("create {volume} --size 256K {SMALL}"));
        new
    }

    /// Opens and closes the volume. Returns the exit code and the messages.
    fn open(&self) -> (i32, String) {
        let volume = self.servers.volume("disk");
        let command = format!("serve nbd {volume} --retry-for 0.3 --run true");
        let (code, _, said) = common::oblivio(self.world.path(""), &command);
        (code, said)
    }

    fn assert_opens(&self) {
        let (code, said) = self.open();
        assert_eq!(code, 0, "{said}");
    }

    /// The volume is used twice while servers 1 and 2 are away.
    fn use_without_two(&mut self) {
        self.be_there(&[0, 1], false);
        self.assert_opens();
        self.assert_opens();
        self.be_there(&[0, 1], true);
    }

    fn be_there(&mut self, which: &[usize], is_there: bool) {
        for server in which {
            match is_there {
                true => self.servers.start(&self.world, *server),
                false => self.servers.kill(*server),
            }
        }
    }
}

/// Two servers hold old records, two the newest, and no server lies.
#[test]
fn older_records_of_servers_that_were_away_are_no_rollback() {
    let mut five = Five::new();
    five.use_without_two();
    five.be_there(&[4], false);
    five.assert_opens();
    five.be_there(&[4], true);
    five.assert_opens();
    // One server with the newest records does not outvote two. The message names those that may
    // have them.
    five.use_without_two();
    five.be_there(&[3, 4], false);
    let (code, said) = five.open();
    assert_eq!(code, 15, "{said}");
    for expected in ["server 4", "server 5", "bring all servers back"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    five.be_there(&[3, 4], true);
    five.assert_opens();
    // An opening writes to all servers that are there: servers 1 and 2 are up to date.
    five.be_there(&[3, 4], false);
    five.assert_opens();
}

#[test]
fn a_repair_copies_the_newest_records_and_no_removed_key_comes_back() {
    let mut five = Five::new();
    let volume = five.servers.volume("disk");
    fs::write(five.world.path("other"), [9; 32]).unwrap();
    five.world.good(&format!("key add {volume} --new-key-file other"));
    five.be_there(&[0, 1], false);
    five.world.good(&format!("key remove {volume} 1"));
    five.be_there(&[0, 1], true);
    five.use_without_two();
    // Server 5 gets a new disk while two of the others have old records, and two the newest.
    five.be_there(&[4], false);
    fs::remove_dir_all(ShareServers::folder(&five.world, 4)).unwrap();
    five.be_there(&[4], true);
    let repair = format!("shares repair {volume} --server 5");
    five.world.good(&repair);
    // It got the newest: two servers have that, though server 4 is away.
    five.be_there(&[3], false);
    let by_other = volume.replace("--key-file key", "--key-file other");
    five.world.bad(&format!("check {by_other}"), 6, "the key file is wrong");
    five.assert_opens();
    five.be_there(&[3], true);
    five.assert_opens();
}
