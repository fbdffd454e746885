//! A volume on share servers in separate processes. Servers are killed, lie, are rolled back, lose
//! their disks, or belong to another volume.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;

use super::test_dir::{Bytes, MIB, TestDir, bytes, end};
use crate::common;

pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_oblivio");

/// Options that make small buckets, for many evictions.
pub(super) const SMALL: &str = "--block 4K --slots 74 --evict-period 16";

/// Share servers that know each other, in the directory of a [`TestDir`].
pub(super) struct ShareServers {
    /// The processes; `None` for a dead server.
    running: Vec<Option<Child>>,
    /// For each server, the words of a command line that start a program on the server's machine.
    /// Empty for this machine.
    there: Vec<Vec<String>>,
    addresses: Vec<String>,
    keys: Vec<String>,
    /// Parameters to append to the URL of a volume.
    more: &'static str,
    /// Maximum bytes of the recordings of each server that is started from now on. `None` if
    /// servers do not record.
    record: Option<&'static str>,
}

impl ShareServers {
    pub(super) fn new(test_dir: &TestDir, servers: usize, more: &'static str) -> Self {
        Self::with_quota(test_dir, servers, more, "")
    }

    fn with_quota(test_dir: &TestDir, servers: usize, more: &'static str, quota: &str) -> Self {
        let taken: Vec<_> =
            (0..servers).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses = taken.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
        drop(taken);
        Self::at(test_dir, addresses, vec![Vec::new(); servers], more, quota)
    }

    /// Starts servers at `addresses`. `there` gives the words of a command line that start a
    /// program on the machine of each server.
    pub(super) fn at(
        test_dir: &TestDir,
        addresses: Vec<String>,
        there: Vec<Vec<String>>,
        more: &'static str,
        quota: &str,
    ) -> Self {
        let line = test_dir.succeeds("key client client.key --name alice");
        fs::write(test_dir.path("allow"), format!("{} {quota}\n", line.trim())).unwrap();
        let servers = addresses.len();
        let (mut peers, mut keys) = (String::new(), Vec::new());
        for (number, address) in (1..).zip(&addresses) {
            let key = format!("key server server-{number}.key --address {address}");
            let line = test_dir.succeeds(&key);
            keys.push(line.split_whitespace().nth(1).unwrap().to_owned());
            peers += &line;
        }
        fs::write(test_dir.path("peers"), peers).unwrap();
        let running = (0..servers).map(|_| None).collect();
        let mut all = Self { running, there, addresses, keys, more, record: None };
        (0..servers).for_each(|server| all.start(test_dir, server));
        all
    }

    pub(super) fn folder(test_dir: &TestDir, server: usize) -> PathBuf {
        test_dir.path(format!("shares-{}", server + 1))
    }

    pub(super) fn start(&mut self, test_dir: &TestDir, server: usize) {
        let (number, address) = (server + 1, &self.addresses[server]);
        let record = self.record.map(|bytes_max| {
            format!("--record-views views-{number} --record-views-max {bytes_max}")
        });
        let record = record.unwrap_or_default();
        let command = format!(
            "serve shares shares-{number} --key server-{number}.key --allow allow --peers peers \
             --listen {address} --beyond-loopback --json {record}"
        );
        let log = test_dir.path("servers.log");
        let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command =
            inside(&self.there[server], common::command(&test_dir.path(""), &command));
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut printed = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            printed += &line.unwrap();
            if printed.ends_with('}') {
                break;
            }
        }
        let printed: Value = serde_json::from_str(&printed).unwrap();
        assert_eq!(printed["key"], self.keys[server].as_str());
        self.running[server] = Some(child);
    }

    /// The process of a running server.
    pub(super) fn pid(&self, server: usize) -> u32 {
        self.running[server].as_ref().unwrap().id()
    }

    pub(super) fn kill(&mut self, server: usize) {
        end(&mut self.running[server].take().unwrap());
    }

    /// Ends a server as its operator would.
    fn stop(&mut self, server: usize) {
        let mut child = self.running[server].take().unwrap();
        kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
        assert!(child.wait().unwrap().success());
    }

    /// Restarts all servers. From then on, each server records up to `bytes_max` bytes.
    fn record(&mut self, test_dir: &TestDir, bytes_max: &'static str) {
        self.record = Some(bytes_max);
        for server in 0..self.running.len() {
            self.stop(server);
            self.start(test_dir, server);
        }
    }

    pub(super) fn url_of(&self, order: &[usize], name: &str) -> String {
        let all = |of: &[String]| order.iter().map(|it| &of[*it][..]).collect::<Vec<_>>().join(",");
        let (addresses, keys) = (all(&self.addresses), all(&self.keys));
        format!("shares://{addresses}/{name}?server={keys}&key=client.key{}", self.more)
    }

    /// The bucket-server URL of one server alone, which is not the URL of a volume.
    fn bucket_url(&self, server: usize, name: &str) -> String {
        let (address, key) = (&self.addresses[server], &self.keys[server]);
        format!("oblivio+tls://{address}/{name}?server={key}&key=client.key")
    }

    /// The location and the options that open a volume.
    pub(super) fn volume(&self, name: &str) -> String {
        let all: Vec<_> = (0..self.addresses.len()).collect();
        format!("'{}' --key-file key", self.url_of(&all, name))
    }
}

impl Drop for ShareServers {
    fn drop(&mut self) {
        self.running.iter_mut().flatten().for_each(end);
    }
}

/// Returns a command that runs `command` through the program and arguments `words`. Without words,
/// returns `command` itself.
pub(super) fn inside(words: &[String], command: Command) -> Command {
    let Some((first, rest)) = words.split_first() else { return command };
    let mut inside = Command::new(first);
    inside.args(rest).arg(command.get_program()).args(command.get_args()).stdin(Stdio::null());
    inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.get_current_dir().into_iter().for_each(|dir| {
        inside.current_dir(dir);
    });
    inside
}

#[test]
fn a_volume_on_share_servers_is_a_volume() {
    let test_dir = TestDir::new();
    let servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    let made = test_dir.json(&format!("create {volume} --size 1M {SMALL} --json"));
    assert_eq!((&made["scheme"], &made["servers"]), (&"s3oram".into(), &3.into()), "{made}");
    fs::write(test_dir.path("data"), bytes(3, MIB)).unwrap();
    test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    test_dir.succeeds(&format!(
        "serve nbd {volume} --record-view view --run 'nbdcopy \"$uri\" back && cmp data back'"
    ));
    let checked = test_dir.succeeds(&format!("check {volume}"));
    assert!(checked.contains("256 blocks hold data"), "{checked}");
    (0..3).for_each(|server| test_dir.assert_private(ShareServers::folder(&test_dir, server)));
    let info = test_dir.json(&format!("info {volume} --json"));
    assert_eq!(info["block_bytes"], 4096, "{info}");
    // Each server has a tree in the view.
    let view = test_dir.succeeds("view export view");
    for tree in ["100", "101", "102"] {
        assert!(view.lines().any(|line| line.split(',').any(|field| field == tree)), "{tree}");
    }
    let shown = test_dir.json("view show view --svg view.svg --json");
    for tree in
        shown["trees"].as_array().unwrap().iter().filter(|it| it["tree"].as_u64() >= Some(100))
    {
        let leaves = &tree["leaves"];
        assert!(leaves["accesses"].as_u64().unwrap() >= 256, "{tree}");
        assert_eq!(leaves["accesses_to_unknown_leaves"], 0, "{tree}");
        assert_ne!(leaves["uniformity"]["verdict"], "too_uneven", "{tree}");
    }
    assert!(fs::read_to_string(test_dir.path("view.svg")).unwrap().contains("of tree 100"));
    test_dir.fails_with(&format!("create {volume} --size 1M {SMALL}"), 3, "choose another name");
    // The bucket-server URL of one server leads to its records, but not to a volume.
    let alone = servers.bucket_url(0, "disk");
    for command in [
        format!("copy '{alone}' copy.obl"),
        format!("remove '{alone}'"),
        format!("remove '{alone}' --yes"),
        format!("info '{alone}' --public"),
        format!("info '{alone}' --key-file key"),
        format!("key list '{alone}'"),
        format!("check '{alone}' --key-file key"),
        format!("rescue '{alone}' rescued --key-file key"),
        format!("serve nbd '{alone}' --key-file key --run true"),
        format!("key add '{alone}' --key-file key --new-key-file data"),
        format!("create '{alone}' --size 1M --key-file key"),
    ] {
        let message =
            if command.starts_with("create") { "another name" } else { "by its shares:// URL" };
        test_dir.fails_with(&command, 3, message);
    }
    assert!(!test_dir.path("copy.obl").exists() && !test_dir.path("copy.obl.copying").exists());
    // The client that uses the volume keeps it, in spite of refused commands such as a repair that
    // finds nothing to do.
    let url = servers.url_of(&[0, 1, 2], "disk");
    let remove = format!("{PROGRAM} remove \"{url}\" --yes; test $? = 9");
    let repair = format!(
        "{PROGRAM} shares repair \"{url}\" --key-file key --server 2 --retry-for 1; test $? = 3"
    );
    let of_owner = servers.volume("disk").replace('\'', "\"");
    let rescue = format!(
        "{PROGRAM} rescue {of_owner} image; test $? = 9 && {PROGRAM} rescue {of_owner} data; \
         test $? = 4 && {PROGRAM} serve nbd {of_owner} --rescued --socket other; test $? = 9"
    );
    let write = "nbdcopy --flush data \"$uri\" && nbdcopy \"$uri\" back && cmp data back";
    test_dir.succeeds(&format!(
        "serve nbd {volume} --run '({remove}) && ({repair}) && ({rescue}) && {write}'"
    ));
    test_dir.succeeds(&format!("remove '{url}' --yes"));
    for server in 0..3 {
        let left = fs::read_dir(ShareServers::folder(&test_dir, server).join("alice")).unwrap();
        assert_eq!(left.count(), 0, "{server}");
    }
    // All clients have closed their connections properly.
    let log = fs::read_to_string(test_dir.path("servers.log")).unwrap();
    assert!(log.contains("client disconnected") && !log.contains("connection lost"), "{log}");
}

/// Each server records its own view, and several servers together see more.
#[test]
fn views_of_servers_hold_the_messages_between_them() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 5, "");
    servers.record(&test_dir, "1G");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(test_dir.path("data"), bytes(4, MIB / 4)).unwrap();
    let copy = "nbdcopy --flush data \"$uri\"";
    test_dir.succeeds(&format!("serve nbd {volume} --record-view client.view --run '{copy}'"));
    (0..5).for_each(|server| servers.stop(server));
    let view = |number: &u8| format!("views-{number}/alice-disk-server{number}-1.view");
    let views = |of: &[u8]| of.iter().map(view).collect::<Vec<_>>().join(" ");
    let trees = |shown: &Value| -> Vec<u64> {
        let trees = shown["trees"].as_array().unwrap().iter();
        trees.filter_map(|it| it["tree"].as_u64().filter(|tree| *tree >= 100)).collect()
    };
    let links = |shown: &Value| -> Vec<(u64, u64)> {
        let links = shown["servers"]["exchanges"].as_array().unwrap().iter();
        links.map(|it| (it["from"].as_u64().unwrap(), it["to"].as_u64().unwrap())).collect()
    };
    let mut sent = Vec::new();
    for (of, too_many) in [(&[2][..], false), (&[1, 3], false), (&[1, 3, 5], true)] {
        let shown = test_dir.json(&format!("view show {} --json", views(of)));
        let shown_servers = &shown["servers"];
        assert_eq!(
            (&shown_servers["count"], &shown_servers["may_collude"]),
            (&5.into(), &2.into()),
            "{shown}"
        );
        assert_eq!(
            (&shown_servers["shown"], &shown_servers["exchanges_recorded_of"]),
            (&of.into(), &of.into())
        );
        assert_eq!(shown_servers["are_more_than_may_collude"], too_many, "{shown_servers}");
        assert_eq!(trees(&shown), of.iter().map(|it| u64::from(*it) + 99).collect::<Vec<_>>());
        // Messages from and to each of these servers are counted.
        let between = links(&shown);
        let ends = |it: &(u64, u64)| [it.0, it.1].iter().any(|end| of.contains(&(*end as u8)));
        let pairs = (1..=5).flat_map(|from| (1..=5).map(move |to| (from, to)));
        let expected: Vec<_> = pairs.filter(|it| it.0 != it.1 && ends(it)).collect();
        assert_eq!(between, expected, "{shown_servers}");
        let evictions = shown_servers["evictions"].as_array().unwrap();
        assert_eq!(evictions.len(), of.len(), "{shown_servers}");
        for eviction in evictions {
            assert!(eviction["attempts"].as_u64() >= Some(4), "{shown_servers}");
            assert_eq!(eviction["attempts"], eviction["alike"], "{shown_servers}");
        }
        for tree in shown["trees"].as_array().unwrap() {
            assert_ne!(tree["leaves"]["uniformity"]["verdict"], "too_uneven", "{tree}");
        }
        let text = test_dir.succeeds(&format!("view show {}", views(of)));
        assert_eq!(text.contains("MORE than may collude"), too_many, "{text}");
        assert!(text.contains("messages between servers\n"), "{text}");
        sent.extend(shown_servers["exchanges"].as_array().unwrap().clone());
    }
    // The sender and the receiver have counted the same messages.
    let of = |from: u64, to: u64| {
        let mut all = sent.iter().filter(|it| it["from"] == from && it["to"] == to);
        (all.next().unwrap().clone(), all.next_back().unwrap().clone())
    };
    for (from, to) in [(2, 1), (1, 2), (3, 2), (1, 3), (5, 1)] {
        let (one, other) = of(from, to);
        assert_eq!(one, other);
    }
    let [one, client] = [view(&1), "client.view".to_owned()];
    test_dir.fails_with(
        &format!("view show {one} --parties 2"),
        3,
        "add the view that was recorded there",
    );
    test_dir.fails_with(&format!("view show {one} --parties 6"), 3, "names some of 1 to 5");
    test_dir.fails_with(&format!("view show {one} {one}"), 3, "give one file of each server");
    test_dir.fails_with(&format!("view show {one} {client}"), 3, "give one file of each server");
    // A client's view has no messages between servers, but it has what each server sees of the
    // client.
    let shown = test_dir.json(&format!("view show {client} --parties 4,2 --json"));
    let shown_servers = &shown["servers"];
    assert_eq!(
        (&shown_servers["shown"], &shown_servers["exchanges_recorded_of"]),
        (&vec![2, 4].into(), &Value::Array(vec![]))
    );
    assert_eq!(trees(&shown), [101, 103]);
    let text = test_dir.succeeds(&format!("view show {client}"));
    assert!(text.contains("messages between servers were not recorded"), "{text}");
    let lines = test_dir.succeeds(&format!("view export {client} --parties 4"));
    let party = |line: &str| line.split(',').nth(10).unwrap().to_owned();
    assert!(lines.lines().skip(1).all(|line| ["", "4"].contains(&&party(line)[..])));
    let lines = test_dir.succeeds(&format!("view export {}", view(&2)));
    for way in ["send", "receive"] {
        let mut of_way = lines.lines().filter(|line| line.split(',').nth(2) == Some(way));
        assert!(of_way.clone().count() > 40 && of_way.all(|line| party(line) == "2"), "{way}");
    }
    test_dir.succeeds("view show views-1/alice-disk-server1-1.view --svg one.svg");
}

/// Recordings of a frequent client do not fill a server's disk, and the client is still served.
#[test]
fn recordings_stop_without_room_and_their_servers_do_not() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    let recorded = || fs::read_dir(test_dir.path("views-1")).unwrap().count();
    let log = || fs::read_to_string(test_dir.path("servers.log")).unwrap();
    servers.record(&test_dir, "3M");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
    servers.record(&test_dir, "3M");
    assert_eq!(recorded(), 1);
    assert!(!log().contains("--record-views-max"), "{}", log());
    for _ in 0..2 {
        test_dir.succeeds(&format!("check {volume}"));
        servers.record(&test_dir, "3M");
    }
    assert_eq!(recorded(), 2);
    assert!(log().contains("or raise --record-views-max"), "{}", log());
}

#[test]
fn a_volume_on_some_servers_is_removed_and_no_server_may_be_left_out() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 5, "");
    let url = servers.url_of(&[0, 1, 2, 3, 4], "disk");
    test_dir.succeeds(&format!("create '{url}' --key-file key --size 256K {SMALL}"));
    let other = format!("'{url}&collude=1'");
    for command in [format!("check {other} --key-file key"), format!("info {other} --public")] {
        test_dir.fails_with(
            &command,
            3,
            "2 of the servers of this volume may collude, but the URL means 1",
        );
    }
    let fewer = format!("remove '{}' --yes", servers.url_of(&[0, 1, 2], "disk"));
    test_dir.fails_with(&fewer, 3, "on 5 share servers, but 3 are named");
    servers.kill(1);
    let remove = format!("remove '{url}'");
    test_dir.fails_with(&format!("{remove} --yes"), 15, "server 2");
    fs::remove_dir_all(ShareServers::folder(&test_dir, 1)).unwrap();
    servers.start(&test_dir, 1);
    test_dir.fails_with(&format!("create '{url}' --key-file key --size 256K"), 3, "oblivio remove");
    test_dir.fails_with(&remove, 3, "Nothing of the volume is on server 2");
    let removed = test_dir.json(&format!("{remove} --yes --json"));
    assert!(removed["absent"][0].as_str().unwrap().starts_with("server 2 "), "{removed}");
    assert!(removed["bytes_freed"].as_u64().unwrap() > 0, "{removed}");
    test_dir.fails_with(&format!("{remove} --yes"), 3, "no volume disk on any of the servers");
    test_dir.succeeds(&format!("create '{url}' --key-file key --size 256K {SMALL}"));
}

#[test]
fn a_full_server_and_a_damaged_server_have_their_own_errors() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    let create = format!("create {volume} --size 1M {SMALL}");
    let pid = Pid::from_child(servers.running[1].as_ref().unwrap());
    let limit = |bytes| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
    };
    limit(Some(2 << 20));
    test_dir.fails_with(&create, 10, "server 2");
    limit(None);
    test_dir.succeeds(&create);
    let shares = ShareServers::folder(&test_dir, 1).join("alice/disk/shares");
    for name in ["setup", "leaves"] {
        let path = shares.join(name);
        let file = Bytes::of(&path);
        let sound = (file.len(), file.read(0, file.len().min(4096)));
        // The server does not read the files of an open volume again, so it is restarted.
        servers.kill(1);
        file.set_len(30);
        servers.start(&test_dir, 1);
        test_dir.fails_with(&format!("check {volume}"), 7, "server 2");
        file.set_len(sound.0);
        file.replace(0, &sound.1);
    }
    test_dir.succeeds(&format!("check {volume}"));
}

#[test]
fn a_position_map_that_does_not_fit_on_the_client_is_on_the_servers() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    let create = format!("create {volume} --size 1M {SMALL} --client-memory 236000 --json");
    let made = test_dir.json(&create);
    assert_eq!((&made["map_levels"], &made["levels"]), (&[2].into(), &5.into()), "{made}");
    fs::write(test_dir.path("data"), bytes(3, MIB)).unwrap();
    test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    let read = "nbdcopy \"$uri\" back && cmp data back";
    test_dir.succeeds(&format!("serve nbd {volume} --record-view view --run '{read}'"));
    // In the view, each server has one tree for the data and one tree for the map.
    let shown = test_dir.json("view show view --json");
    let trees: Vec<_> =
        shown["trees"].as_array().unwrap().iter().filter_map(|it| it["tree"].as_u64()).collect();
    assert!([100, 101, 102, 110, 111, 112].iter().all(|tree| trees.contains(tree)), "{trees:?}");
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&test_dir, 1)).unwrap();
    servers.start(&test_dir, 1);
    test_dir.succeeds(&format!("shares repair {volume} --server 2"));
    let checked = test_dir.succeeds(&format!("check {volume}"));
    assert!(checked.contains("256 blocks hold data"), "{checked}");
    test_dir.succeeds(&format!("serve nbd {volume} --run '{read}'"));
    servers.kill(2);
    test_dir.fails_with(&format!("rescue {volume} rescued"), 7, "blocks that are lost: 0");
    assert_eq!(fs::read(test_dir.path("rescued")).unwrap(), bytes(3, MIB));
}

/// A server stores the version of its format with its shares. If the version is older or newer than
/// that of the program, an opening fails and says which.
#[test]
fn shares_of_another_version_are_refused_as_such() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 1M {SMALL} --client-memory 236000"));
    let setup = ShareServers::folder(&test_dir, 1).join("alice/disk/shares/setup");
    let sound = fs::read(&setup).unwrap();
    let (without_version, last) = (&sound[..sound.len() - 8], sound.len() - 1);
    let mut newer = sound.clone();
    newer[last] += 1;
    for (contents, advice) in [(without_version, "an older program"), (&newer, "a newer program")] {
        servers.kill(1);
        fs::write(&setup, contents).unwrap();
        servers.start(&test_dir, 1);
        test_dir.fails_with(&format!("check {volume}"), 13, advice);
    }
    servers.kill(1);
    fs::write(&setup, sound).unwrap();
    servers.start(&test_dir, 1);
    test_dir.succeeds(&format!("check {volume}"));
}

/// `create --from` sends an image to the servers as shares, leaf by leaf. Afterwards, the volume
/// can be used like any other.
#[test]
fn an_image_becomes_a_volume() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    // The last block of the image is not whole.
    fs::write(test_dir.path("data"), [bytes(4, MIB), vec![0; 8192], bytes(5, 1000)].concat())
        .unwrap();
    let made = test_dir.json(&format!("create {volume} --from data {SMALL} --json"));
    assert_eq!(made["disk_bytes"], MIB + 3 * 4096, "{made}");
    let checked = test_dir.succeeds(&format!("check {volume}"));
    assert!(checked.contains("257 blocks hold data"), "{checked}");
    test_dir.fails_with(&format!("check {volume} --rate-max 1M/s"), 3, "leave it out");
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&test_dir, 1)).unwrap();
    servers.start(&test_dir, 1);
    test_dir.succeeds(&format!("shares repair {volume} --server 2"));
    let read = "nbdcopy \"$uri\" back && cmp --bytes=$(stat -c %s data) data back";
    test_dir
        .succeeds(&format!("serve nbd {volume} --run '{read} && nbdcopy --flush back \"$uri\"'"));
    test_dir.succeeds(&format!("check {volume}"));
    test_dir.succeeds(&format!("serve nbd {volume} --run '{read}'"));
    // Other stores receive the image block by block.
    test_dir.succeeds("create disk.obl --from data --size 2M --key-file key");
    test_dir.succeeds(&format!("serve nbd disk.obl --key-file key --run '{read}'"));
    fs::write(test_dir.path("empty"), "").unwrap();
    let pipe = Command::new("mkfifo").arg(test_dir.path("pipe")).status().unwrap();
    assert!(pipe.success());
    for (options, code, message) in [
        ("--from data --size 1M", 3, "leave --size out"),
        ("--from nothing", 3, "nothing"),
        ("--from empty", 3, "is empty"),
        ("--from /dev/null", 3, "a disk has: name a file"),
        ("--from .", 3, "a disk has: name a file"),
        ("--from pipe", 3, "a disk has: name a file"),
        ("", 2, "--size"),
    ] {
        test_dir.fails_with(&format!("create other.obl --key-file key {options}"), code, message);
    }
    assert!(!test_dir.path("other.obl").exists());
}

/// While one of three servers is dead, requests wait. When it comes back, they are answered.
#[test]
fn reads_and_writes_wait_for_a_killed_server() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 1M {SMALL}"));
    fs::write(test_dir.path("data"), bytes(4, MIB)).unwrap();
    let line = format!(
        "serve nbd {volume} --cache 0 --run 'nbdcopy --flush data \"$uri\" && nbdcopy \"$uri\" \
         back && cmp data back'"
    );
    let mut copying = common::command(&test_dir.path(""), &line).spawn().unwrap();
    for server in [1, 2, 0] {
        thread::sleep(Duration::from_millis(400));
        servers.kill(server);
        thread::sleep(Duration::from_millis(200));
        servers.start(&test_dir, server);
    }
    assert!(copying.wait().unwrap().success());
    test_dir.succeeds(&format!("check {volume}"));
}

#[test]
fn servers_of_another_volume_or_in_another_order_are_named() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 4, "");
    let three =
        |order: &[usize], name: &str| format!("'{}' --key-file key", servers.url_of(order, name));
    let volume = three(&[0, 1, 2], "disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(test_dir.path("data"), bytes(5, MIB / 4)).unwrap();
    test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    // In another order, servers have other numbers than the client expects.
    let swapped = three(&[1, 0, 2], "disk");
    for command in [
        format!("serve nbd {swapped} --run true"),
        format!("check {swapped}"),
        format!("rescue {swapped} image"),
        format!("shares repair {swapped} --server 3 --anyway"),
    ] {
        test_dir.fails_with(&command, 3, "named in another order");
    }
    assert!(!test_dir.path("image").exists());
    test_dir.fails_with(&format!("info {}", three(&[0, 1, 3], "disk")), 3, "server 3");
    test_dir.fails_with(&format!("info {}", three(&[0, 1], "disk")), 2, "shares://");
    test_dir.fails_with(&format!("info {}", three(&[0, 1, 1], "disk")), 2, "");
    test_dir
        .succeeds(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
    // Too few servers are available.
    servers.kill(2);
    let volume = format!("'{}' --key-file key", servers.url_of(&[0, 1, 2], "disk"));
    test_dir.fails_with(&format!("check {volume}"), 15, "server 3");
}

#[test]
fn a_server_that_was_rolled_back_is_named_and_nothing_is_changed() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(test_dir.path("data"), bytes(6, MIB / 4)).unwrap();
    let copy = |from: &str| format!("serve nbd {volume} --run 'nbdcopy --flush {from} \"$uri\"'");
    test_dir.succeeds(&copy("data"));
    servers.kill(1);
    test_dir.copy("shares-2", "older");
    servers.start(&test_dir, 1);
    test_dir.succeeds(&copy("data"));
    servers.kill(1);
    test_dir.copy("shares-2", "latest");
    fs::remove_dir_all(ShareServers::folder(&test_dir, 1)).unwrap();
    test_dir.copy("older", "shares-2");
    servers.start(&test_dir, 1);
    test_dir.fails_with(&format!("check {volume}"), 8, "server 2");
    test_dir.fails_with(
        &format!("serve nbd {volume} --run true"),
        8,
        "was rolled back behind the others",
    );
    let (code, printed, _) = common::oblivio(test_dir.path(""), &format!("rescue {volume} image"));
    assert_eq!(code, 7, "{printed}");
    assert!(printed.contains("server 2") && printed.contains("rolled back"), "{printed}");
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&test_dir, 1)).unwrap();
    test_dir.copy("latest", "shares-2");
    servers.start(&test_dir, 1);
    test_dir
        .succeeds(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
}

/// Two of three servers are rolled back, to different times or to the same time. The client reports
/// the rollback and names both servers, although no two servers agree in the former case.
#[test]
fn more_rolled_back_servers_than_may_collude_are_named() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(test_dir.path("data"), bytes(6, MIB / 4)).unwrap();
    let copy = format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'");
    for moment in 0..3 {
        test_dir.succeeds(&copy);
        for server in [1, 2] {
            servers.kill(server);
            test_dir.copy(format!("shares-{}", server + 1), format!("{server}-{moment}"));
            servers.start(&test_dir, server);
        }
    }
    test_dir.succeeds(&copy);
    for moments in [[0, 1], [0, 2], [1, 1]] {
        for (server, moment) in [1, 2].into_iter().zip(moments) {
            servers.kill(server);
            fs::remove_dir_all(ShareServers::folder(&test_dir, server)).unwrap();
            test_dir.copy(format!("{server}-{moment}"), format!("shares-{}", server + 1));
            servers.start(&test_dir, server);
        }
        for command in ["check", "serve nbd --run true"] {
            let (code, _, printed) =
                common::oblivio(test_dir.path(""), &format!("{command} {volume}"));
            assert_eq!(code, 8, "{moments:?} {command}: {printed}");
            for server in ["server 2", "server 3"] {
                assert!(printed.contains(server), "{moments:?} {command}: {printed}");
            }
        }
    }
}

#[test]
fn a_server_that_has_lost_its_disk_is_rebuilt_and_the_volume_opens_as_before() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 1M {SMALL}"));
    fs::write(test_dir.path("data"), bytes(3, MIB)).unwrap();
    test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    test_dir.fails_with(
        &format!("shares repair {volume} --server 2"),
        3,
        "--anyway rebuilds its shares",
    );
    test_dir.fails_with(&format!("shares repair {volume} --server 4"), 3, "servers 1 to 3");
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&test_dir, 1)).unwrap();
    servers.start(&test_dir, 1);
    let lost = "it has no volume disk, but others do: if it has lost its disk, rebuild its shares \
                (`oblivio shares repair URL` with --server 2)";
    test_dir.fails_with(&format!("check {volume}"), 3, lost);
    // The other servers give back everything, and the report says that one is missing.
    let rescue = |image: &str| {
        test_dir.fails_with(&format!("rescue {volume} {image}"), 7, "blocks that are lost: 0");
        assert!(
            fs::read(test_dir.path(image)).unwrap() == fs::read(test_dir.path("data")).unwrap()
        );
    };
    rescue("of-two");
    servers.kill(1);
    rescue("without-one");
    servers.start(&test_dir, 1);
    test_dir.succeeds(&format!("shares repair {volume} --server 2"));
    test_dir.succeeds(&format!("check {volume}"));
    let printed = test_dir.json(&format!("shares repair {volume} --server 1 --anyway --json"));
    assert_eq!((&printed["server"], printed["wrong"].as_array().unwrap().len()), (&1.into(), 0));
    test_dir
        .succeeds(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
    test_dir.succeeds(&format!("check {volume}"));
}

/// If no server has a volume of the given name, the error says to check the name. It does not say
/// that the servers lost their disks.
#[test]
fn a_name_that_no_server_has_is_reported_as_wrong() {
    let test_dir = TestDir::new();
    let mut servers = ShareServers::new(&test_dir, 3, "");
    test_dir.succeeds(&format!("create {} --size 256K {SMALL}", servers.volume("disk")));
    let volume = servers.volume("dusk");
    let remove = format!("remove '{}' --yes", servers.url_of(&[0, 1, 2], "dusk"));
    let message = "there is no volume dusk on any of the servers: check the name";
    test_dir.fails_with(&format!("check {volume}"), 3, message);
    test_dir.fails_with(&format!("shares repair {volume} --server 2"), 3, message);
    test_dir.fails_with(&format!("rescue {volume} image"), 3, message);
    test_dir.fails_with(&remove, 3, message);
    servers.kill(1);
    test_dir.fails_with(&format!("check {volume}"), 3, "2 of 3 servers have no volume dusk");
}

#[test]
fn a_damaged_share_is_detected_when_it_is_read() {
    use std::os::unix::fs::FileExt;
    let test_dir = TestDir::new();
    let servers = ShareServers::new(&test_dir, 3, "");
    let volume = servers.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 256K {SMALL} --state client"));
    fs::write(test_dir.path("data"), bytes(7, MIB / 4)).unwrap();
    let write = format!("serve nbd {volume} --state client --run 'nbdcopy --flush data \"$uri\"'");
    test_dir.succeeds(&write);
    test_dir.copy("client", "older");
    test_dir.succeeds(&write);
    // An old copy of the client's directory is refused by `check`, but `rescue` uses it.
    test_dir.fails_with(&format!("check {volume} --state older"), 12, "");
    test_dir.fails_with(&format!("rescue {volume} of-old --state older"), 12, "");
    assert!(fs::metadata(test_dir.path("of-old")).is_ok());
    let leaves = ShareServers::folder(&test_dir, 0).join("alice/disk/shares/leaves");
    let leaves = fs::File::options().read(true).write(true).open(leaves).unwrap();
    let mut damaged = vec![0; leaves.metadata().unwrap().len() as usize];
    leaves.read_exact_at(&mut damaged, 0).unwrap();
    damaged.iter_mut().filter(|byte| **byte != 0).for_each(|byte| *byte ^= 1);
    leaves.write_all_at(&damaged, 0).unwrap();
    test_dir.fails_with(&format!("check {volume} --state client"), 7, "share");
    // The seals show which two of three shares are right: a rescue takes them, and a repair of
    // another server removes nothing.
    let repair = |server| format!("shares repair {volume} --server {server} --anyway");
    for wrong in [2, 3] {
        test_dir.fails_with(&repair(wrong), 7, "Nothing was removed");
    }
    test_dir.fails_with(
        &format!("rescue {volume} image --state client"),
        7,
        "blocks that are lost: 0",
    );
    assert!(fs::read(test_dir.path("image")).unwrap() == fs::read(test_dir.path("data")).unwrap());
    // The check has recorded in the client's directory that server 1 is wrong. The server deals no
    // shares in evictions until it is repaired with this directory.
    let info = format!("info {volume} --state client");
    assert!(test_dir.succeeds(&info).contains("server 1 has wrong shares"));
    assert_eq!(test_dir.json(&format!("{info} --json"))["wrong_servers"], serde_json::json!([1]));
    test_dir.fails_with(&write, 7, "a share of server 1");
    test_dir.succeeds(&format!("shares repair {volume} --server 1 --state client"));
    assert!(!test_dir.succeeds(&info).contains("wrong shares"));
    test_dir.succeeds(&format!("check {volume} --state client --after-tampering"));
    test_dir.succeeds(&write);
}

#[test]
fn impossible_volumes_are_refused_before_anything_is_made() {
    let test_dir = TestDir::new();
    let servers = ShareServers::with_quota(&test_dir, 3, "", "quota=8388608");
    let volume = servers.volume("disk");
    test_dir.fails_with(&format!("create {volume} --size 64M"), 10, "server 1");
    for server in 0..3 {
        let alice = ShareServers::folder(&test_dir, server).join("alice/disk");
        assert!(!alice.exists(), "{server}");
    }
    test_dir.fails_with(&format!("create {volume} --size 1M --scheme raw"), 3, "");
    test_dir.fails_with("create disk.obl --size 1M --scheme s3oram --key-file key", 3, "shares://");
    let peers = fs::read_to_string(test_dir.path("peers")).unwrap();
    let client = fs::read_to_string(test_dir.path("allow")).unwrap();
    let client = client.replace("alice", "127.0.0.1:9");
    let client = client.split(" quota").next().unwrap();
    let alone = peers.lines().next().unwrap();
    for (list, message) in [
        ("something else", "line 1 of the peers file"),
        ("", "has 0 other servers"),
        (alone, "has 0 other servers"),
        (
            &format!("{peers}\n{client}"),
            "line 5 of the peers file: this is the key of the client alice",
        ),
    ] {
        fs::write(test_dir.path("list"), list).unwrap();
        let serve = "serve shares folder --key server-1.key --allow allow --peers list";
        test_dir.fails_with(serve, 3, message);
    }
    test_dir.fails_with("key server server-1.key --address nowhere", 2, "one.example:2412");
    test_dir.fails_with("key server server-1.key --address 'a b:80'", 2, "one.example:2412");
    test_dir.fails_with("plan --size 1T --scheme s3oram --client-memory 1M", 3, "--client-memory");
    // If one of five servers may collude, two may be missing. They could not catch up with a
    // position map on servers.
    test_dir.fails_with("plan --size 1T --servers 5 --colluding 1", 3, "must be on the client");
    let plan = test_dir.succeeds("plan --size 1T --servers 3");
    assert!(plan.contains("in smaller trees on the servers"), "{plan}");
    test_dir.fails_with("plan --size 1G --scheme s3oram --block 5G", 3, "16 to 1048576 bytes");
    test_dir.fails_with(
        &format!("bench '{}'", servers.url_of(&[0, 1, 2], "disk")),
        3,
        "a directory of this machine",
    );
    let plan = test_dir.json("plan --size 40G --servers 3 --json");
    assert_eq!((&plan["block_bytes"], &plan["levels"]), (&131_072.into(), &12.into()), "{plan}");
}
