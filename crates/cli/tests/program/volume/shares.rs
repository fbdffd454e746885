//! A volume on share servers in separate processes, one of which is killed, lies, loses its disk,
//! or is the wrong one.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value;

use super::world::{Bytes, MIB, World, bytes, end};
use crate::common;

pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_oblivio");

/// Small buckets, for many evictions.
pub(super) const SMALL: &str = "--block 4K --slots 74 --evict-period 16";

/// Share servers in the directory of a [`World`], which know each other.
pub(super) struct ShareServers {
    /// The processes; `None` for a dead server.
    running: Vec<Option<Child>>,
    /// The words that start a program on the server's machine.
    there: Vec<Vec<String>>,
    addresses: Vec<String>,
    keys: Vec<String>,
    /// Further parameters of the URL.
    more: &'static str,
    /// Maximum bytes of recordings of servers that are started; without it, they do not record.
    record: Option<&'static str>,
}

impl ShareServers {
    pub(super) fn new(world: &World, servers: usize, more: &'static str) -> Self {
        Self::with_quota(world, servers, more, "")
    }

    fn with_quota(world: &World, servers: usize, more: &'static str, quota: &str) -> Self {
        let taken: Vec<_> =
            (0..servers).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses = taken.iter().map(|it| it.local_addr().unwrap().to_string()).collect();
        drop(taken);
        Self::at(world, addresses, vec![Vec::new(); servers], more, quota)
    }

    /// Servers that listen at these addresses, each started with these words.
    pub(super) fn at(
        world: &World,
        addresses: Vec<String>,
        there: Vec<Vec<String>>,
        more: &'static str,
        quota: &str,
    ) -> Self {
        let line = world.good("key client client.key --name alice");
        fs::write(world.path("allow"), format!("{} {quota}\n", line.trim())).unwrap();
        let servers = addresses.len();
        let (mut peers, mut keys) = (String::new(), Vec::new());
        for (number, address) in (1..).zip(&addresses) {
            let key = format!("key server server-{number}.key --address {address}");
            let line = world.good(&key);
            keys.push(line.split_whitespace().nth(1).unwrap().to_owned());
            peers += &line;
        }
        fs::write(world.path("peers"), peers).unwrap();
        let running = (0..servers).map(|_| None).collect();
        let mut all = Self { running, there, addresses, keys, more, record: None };
        (0..servers).for_each(|server| all.start(world, server));
        all
    }

    pub(super) fn folder(world: &World, server: usize) -> PathBuf {
        world.path(format!("shares-{}", server + 1))
    }

    pub(super) fn start(&mut self, world: &World, server: usize) {
        let (number, address) = (server + 1, &self.addresses[server]);
        let record = self.record.map(|bytes_max| {
            format!("--record-views views-{number} --record-views-max {bytes_max}")
        });
        let record = record.unwrap_or_default();
        let command = format!(
            "serve shares shares-{number} --key server-{number}.key --allow allow --peers peers \
             --listen {address} --beyond-loopback --json {record}"
        );
        let log = world.path("servers.log");
        let log = fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = inside(&self.there[server], common::command(&world.path(""), &command));
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut said = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            said += &line.unwrap();
            if said.ends_with('}') {
                break;
            }
        }
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(said["key"], self.keys[server].as_str());
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

    /// Restarts all servers, which then record up to this number of bytes.
    fn record(&mut self, world: &World, bytes_max: &'static str) {
        self.record = Some(bytes_max);
        for server in 0..self.running.len() {
            self.stop(server);
            self.start(world, server);
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

/// The same command, started by these words.
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
    let world = World::new();
    let servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    let made = world.json(&format!("create {volume} --size 1M {SMALL} --json"));
    assert_eq!((&made["scheme"], &made["servers"]), (&"s3oram".into(), &3.into()), "{made}");
    fs::write(world.path("data"), bytes(3, MIB)).unwrap();
    world.good(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    world.good(&format!(
        "serve nbd {volume} --record-view view --run 'nbdcopy \"$uri\" back && cmp data back'"
    ));
    let checked = world.good(&format!("check {volume}"));
    assert!(checked.contains("256 blocks hold data"), "{checked}");
    (0..3).for_each(|server| world.assert_private(ShareServers::folder(&world, server)));
    let info = world.json(&format!("info {volume} --json"));
    assert_eq!(info["block_bytes"], 4096, "{info}");
    // Each server has a tree in the view.
    let view = world.good("view export view");
    for tree in ["100", "101", "102"] {
        assert!(view.lines().any(|line| line.split(',').any(|field| field == tree)), "{tree}");
    }
    let shown = world.json("view show view --svg view.svg --json");
    for tree in
        shown["trees"].as_array().unwrap().iter().filter(|it| it["tree"].as_u64() >= Some(100))
    {
        let leaves = &tree["leaves"];
        assert!(leaves["accesses"].as_u64().unwrap() >= 256, "{tree}");
        assert_eq!(leaves["accesses_to_unknown_leaves"], 0, "{tree}");
        assert_ne!(leaves["uniformity"]["verdict"], "too_uneven", "{tree}");
    }
    assert!(fs::read_to_string(world.path("view.svg")).unwrap().contains("of tree 100"));
    world.bad(&format!("create {volume} --size 1M {SMALL}"), 3, "choose another name");
    // One server alone holds records, but no volume.
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
        let said =
            if command.starts_with("create") { "another name" } else { "by its shares:// URL" };
        world.bad(&command, 3, said);
    }
    assert!(!world.path("copy.obl").exists() && !world.path("copy.obl.copying").exists());
    // A client that uses the volume keeps it: a repair that finds nothing to do does not fence it
    // off.
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
    world.good(&format!(
        "serve nbd {volume} --run '({remove}) && ({repair}) && ({rescue}) && {write}'"
    ));
    world.good(&format!("remove '{url}' --yes"));
    for server in 0..3 {
        let left = fs::read_dir(ShareServers::folder(&world, server).join("alice")).unwrap();
        assert_eq!(left.count(), 0, "{server}");
    }
    // All clients have closed their connections properly.
    let log = fs::read_to_string(world.path("servers.log")).unwrap();
    assert!(log.contains("client disconnected") && !log.contains("connection lost"), "{log}");
}

/// What each server records itself, and what several servers see together.
#[test]
fn views_of_servers_hold_the_messages_between_them() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 5, "");
    servers.record(&world, "1G");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(world.path("data"), bytes(4, MIB / 4)).unwrap();
    let copy = "nbdcopy --flush data \"$uri\"";
    world.good(&format!("serve nbd {volume} --record-view client.view --run '{copy}'"));
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
        let shown = world.json(&format!("view show {} --json", views(of)));
        let told = &shown["servers"];
        assert_eq!((&told["count"], &told["may_collude"]), (&5.into(), &2.into()), "{shown}");
        assert_eq!((&told["shown"], &told["exchanges_recorded_of"]), (&of.into(), &of.into()));
        assert_eq!(told["are_more_than_may_collude"], too_many, "{told}");
        assert_eq!(trees(&shown), of.iter().map(|it| u64::from(*it) + 99).collect::<Vec<_>>());
        // From each of these servers, and to each.
        let between = links(&shown);
        let ends = |it: &(u64, u64)| [it.0, it.1].iter().any(|end| of.contains(&(*end as u8)));
        let pairs = (1..=5).flat_map(|from| (1..=5).map(move |to| (from, to)));
        let expected: Vec<_> = pairs.filter(|it| it.0 != it.1 && ends(it)).collect();
        assert_eq!(between, expected, "{told}");
        let evictions = told["evictions"].as_array().unwrap();
        assert_eq!(evictions.len(), of.len(), "{told}");
        for eviction in evictions {
            assert!(eviction["attempts"].as_u64() >= Some(4), "{told}");
            assert_eq!(eviction["attempts"], eviction["alike"], "{told}");
        }
        for tree in shown["trees"].as_array().unwrap() {
            assert_ne!(tree["leaves"]["uniformity"]["verdict"], "too_uneven", "{tree}");
        }
        let text = world.good(&format!("view show {}", views(of)));
        assert_eq!(text.contains("MORE than may collude"), too_many, "{text}");
        assert!(text.contains("messages between servers\n"), "{text}");
        sent.extend(told["exchanges"].as_array().unwrap().clone());
    }
    // Both ends have counted the same messages.
    let of = |from: u64, to: u64| {
        let mut all = sent.iter().filter(|it| it["from"] == from && it["to"] == to);
        (all.next().unwrap().clone(), all.next_back().unwrap().clone())
    };
    for (from, to) in [(2, 1), (1, 2), (3, 2), (1, 3), (5, 1)] {
        let (one, other) = of(from, to);
        assert_eq!(one, other);
    }
    let [one, client] = [view(&1), "client.view".to_owned()];
    world.bad(&format!("view show {one} --parties 2"), 3, "add the view that was recorded there");
    world.bad(&format!("view show {one} --parties 6"), 3, "names some of 1 to 5");
    world.bad(&format!("view show {one} {one}"), 3, "give one file of each server");
    world.bad(&format!("view show {one} {client}"), 3, "give one file of each server");
    // A client sees no messages between servers, but what each server sees of the client.
    let shown = world.json(&format!("view show {client} --parties 4,2 --json"));
    let told = &shown["servers"];
    assert_eq!(
        (&told["shown"], &told["exchanges_recorded_of"]),
        (&vec![2, 4].into(), &Value::Array(vec![]))
    );
    assert_eq!(trees(&shown), [101, 103]);
    let text = world.good(&format!("view show {client}"));
    assert!(text.contains("messages between servers were not recorded"), "{text}");
    let lines = world.good(&format!("view export {client} --parties 4"));
    let party = |line: &str| line.split(',').nth(10).unwrap().to_owned();
    assert!(lines.lines().skip(1).all(|line| ["", "4"].contains(&&party(line)[..])));
    let lines = world.good(&format!("view export {}", view(&2)));
    for way in ["send", "receive"] {
        let mut of_way = lines.lines().filter(|line| line.split(',').nth(2) == Some(way));
        assert!(of_way.clone().count() > 40 && of_way.all(|line| party(line) == "2"), "{way}");
    }
    world.good("view show views-1/alice-disk-server1-1.view --svg one.svg");
}

/// Recordings of a frequent client do not fill a server's disk, and the client is still served.
#[test]
fn recordings_stop_without_room_and_their_servers_do_not() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    let recorded = || fs::read_dir(world.path("views-1")).unwrap().count();
    let log = || fs::read_to_string(world.path("servers.log")).unwrap();
    servers.record(&world, "3M");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    servers.record(&world, "3M");
    assert_eq!(recorded(), 1);
    assert!(!log().contains("--record-views-max"), "{}", log());
    for _ in 0..2 {
        world.good(&format!("check {volume}"));
        servers.record(&world, "3M");
    }
    assert_eq!(recorded(), 2);
    assert!(log().contains("or raise --record-views-max"), "{}", log());
}

#[test]
fn a_volume_on_some_servers_is_removed_and_no_server_may_be_left_out() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 5, "");
    let url = servers.url_of(&[0, 1, 2, 3, 4], "disk");
    world.good(&format!("create '{url}' --key-file key --size 256K {SMALL}"));
    let other = format!("'{url}&collude=1'");
    for command in [format!("check {other} --key-file key"), format!("info {other} --public")] {
        world.bad(&command, 3, "2 of the servers of this volume may collude, but the URL means 1");
    }
    let fewer = format!("remove '{}' --yes", servers.url_of(&[0, 1, 2], "disk"));
    world.bad(&fewer, 3, "on 5 share servers, but 3 are named");
    servers.kill(1);
    let remove = format!("remove '{url}'");
    world.bad(&format!("{remove} --yes"), 15, "server 2");
    fs::remove_dir_all(ShareServers::folder(&world, 1)).unwrap();
    servers.start(&world, 1);
    world.bad(&format!("create '{url}' --key-file key --size 256K"), 3, "oblivio remove");
    world.bad(&remove, 3, "Nothing of the volume is on server 2");
    let removed = world.json(&format!("{remove} --yes --json"));
    assert!(removed["absent"][0].as_str().unwrap().starts_with("server 2 "), "{removed}");
    assert!(removed["bytes_freed"].as_u64().unwrap() > 0, "{removed}");
    world.bad(&format!("{remove} --yes"), 3, "no volume disk on any of the servers");
    world.good(&format!("create '{url}' --key-file key --size 256K {SMALL}"));
}

#[test]
fn a_full_server_and_a_damaged_server_have_their_own_errors() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    let create = format!("create {volume} --size 1M {SMALL}");
    let pid = Pid::from_child(servers.running[1].as_ref().unwrap());
    let limit = |bytes| {
        let limit = Rlimit { current: bytes, maximum: None };
        prlimit(Some(pid), Resource::Fsize, limit).unwrap();
    };
    limit(Some(2 << 20));
    world.bad(&create, 10, "server 2");
    limit(None);
    world.good(&create);
    let shares = ShareServers::folder(&world, 1).join("alice/disk/shares");
    for name in ["setup", "leaves"] {
        let path = shares.join(name);
        let file = Bytes::of(&path);
        let sound = (file.len(), file.read(0, file.len().min(4096)));
        // An open volume's files are not read again.
        servers.kill(1);
        file.set_len(30);
        servers.start(&world, 1);
        world.bad(&format!("check {volume}"), 7, "server 2");
        file.set_len(sound.0);
        file.replace(0, &sound.1);
    }
    world.good(&format!("check {volume}"));
}

#[test]
fn a_position_map_that_does_not_fit_on_the_client_is_on_the_servers() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    let create = format!("create {volume} --size 1M {SMALL} --client-memory 236000 --json");
    let made = world.json(&create);
    assert_eq!((&made["map_levels"], &made["levels"]), (&[2].into(), &5.into()), "{made}");
    fs::write(world.path("data"), bytes(3, MIB)).unwrap();
    world.good(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    let read = "nbdcopy \"$uri\" back && cmp data back";
    world.good(&format!("serve nbd {volume} --record-view view --run '{read}'"));
    // Each server has a tree of the view for the data, and another one for the map.
    let shown = world.json("view show view --json");
    let trees: Vec<_> =
        shown["trees"].as_array().unwrap().iter().filter_map(|it| it["tree"].as_u64()).collect();
    assert!([100, 101, 102, 110, 111, 112].iter().all(|tree| trees.contains(tree)), "{trees:?}");
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&world, 1)).unwrap();
    servers.start(&world, 1);
    world.good(&format!("shares repair {volume} --server 2"));
    let checked = world.good(&format!("check {volume}"));
    assert!(checked.contains("256 blocks hold data"), "{checked}");
    world.good(&format!("serve nbd {volume} --run '{read}'"));
    servers.kill(2);
    world.bad(&format!("rescue {volume} rescued"), 7, "blocks that are lost: 0");
    assert_eq!(fs::read(world.path("rescued")).unwrap(), bytes(3, MIB));
}

/// A server keeps a version beside its shares. An opening names an older or a newer one.
#[test]
fn shares_of_another_version_are_refused_as_such() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 1M {SMALL} --client-memory 236000"));
    let setup = ShareServers::folder(&world, 1).join("alice/disk/shares/setup");
    let sound = fs::read(&setup).unwrap();
    let (without_version, last) = (&sound[..sound.len() - 8], sound.len() - 1);
    let mut newer = sound.clone();
    newer[last] += 1;
    for (kept, said) in [(without_version, "an older program"), (&newer, "a newer program")] {
        servers.kill(1);
        fs::write(&setup, kept).unwrap();
        servers.start(&world, 1);
        world.bad(&format!("check {volume}"), 13, said);
    }
    servers.kill(1);
    fs::write(&setup, sound).unwrap();
    servers.start(&world, 1);
    world.good(&format!("check {volume}"));
}

/// An image is shared leaf by leaf, and then the volume is like any other.
#[test]
fn an_image_becomes_a_volume() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    // The last block of the image is not whole.
    fs::write(world.path("data"), [bytes(4, MIB), vec![0; 8192], bytes(5, 1000)].concat()).unwrap();
    let made = world.json(&format!("create {volume} --from data {SMALL} --json"));
    assert_eq!(made["disk_bytes"], MIB + 3 * 4096, "{made}");
    let checked = world.good(&format!("check {volume}"));
    assert!(checked.contains("257 blocks hold data"), "{checked}");
    world.bad(&format!("check {volume} --rate-max 1M/s"), 3, "leave it out");
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&world, 1)).unwrap();
    servers.start(&world, 1);
    world.good(&format!("shares repair {volume} --server 2"));
    let read = "nbdcopy \"$uri\" back && cmp --bytes=$(stat -c %s data) data back";
    world.good(&format!("serve nbd {volume} --run '{read} && nbdcopy --flush back \"$uri\"'"));
    world.good(&format!("check {volume}"));
    world.good(&format!("serve nbd {volume} --run '{read}'"));
    // Other stores receive it block by block.
    world.good("create disk.obl --from data --size 2M --key-file key");
    world.good(&format!("serve nbd disk.obl --key-file key --run '{read}'"));
    fs::write(world.path("empty"), "").unwrap();
    let pipe = Command::new("mkfifo").arg(world.path("pipe")).status().unwrap();
    assert!(pipe.success());
    for (said, code, message) in [
        ("--from data --size 1M", 3, "leave --size out"),
        ("--from nothing", 3, "nothing"),
        ("--from empty", 3, "is empty"),
        ("--from /dev/null", 3, "a disk has: name a file"),
        ("--from .", 3, "a disk has: name a file"),
        ("--from pipe", 3, "a disk has: name a file"),
        ("", 2, "--size"),
    ] {
        world.bad(&format!("create other.obl --key-file key {said}"), code, message);
    }
    assert!(!world.path("other.obl").exists());
}

/// While one of three servers is dead, requests wait. When it comes back, they are answered.
#[test]
fn reads_and_writes_wait_for_a_killed_server() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 1M {SMALL}"));
    fs::write(world.path("data"), bytes(4, MIB)).unwrap();
    let line = format!(
        "serve nbd {volume} --cache 0 --run 'nbdcopy --flush data \"$uri\" && nbdcopy \"$uri\" \
         back && cmp data back'"
    );
    let mut copying = common::command(&world.path(""), &line).spawn().unwrap();
    for server in [1, 2, 0] {
        thread::sleep(Duration::from_millis(400));
        servers.kill(server);
        thread::sleep(Duration::from_millis(200));
        servers.start(&world, server);
    }
    assert!(copying.wait().unwrap().success());
    world.good(&format!("check {volume}"));
}

#[test]
fn servers_of_another_volume_or_in_another_order_are_named() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 4, "");
    let three =
        |order: &[usize], name: &str| format!("'{}' --key-file key", servers.url_of(order, name));
    let volume = three(&[0, 1, 2], "disk");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(world.path("data"), bytes(5, MIB / 4)).unwrap();
    world.good(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    // In another order, each server has another number than the client expects.
    let swapped = three(&[1, 0, 2], "disk");
    for command in [
        format!("serve nbd {swapped} --run true"),
        format!("check {swapped}"),
        format!("rescue {swapped} image"),
        format!("shares repair {swapped} --server 3 --anyway"),
    ] {
        world.bad(&command, 3, "named in another order");
    }
    assert!(!world.path("image").exists());
    world.bad(&format!("info {}", three(&[0, 1, 3], "disk")), 3, "server 3");
    world.bad(&format!("info {}", three(&[0, 1], "disk")), 2, "shares://");
    world.bad(&format!("info {}", three(&[0, 1, 1], "disk")), 2, "");
    world.good(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
    // Too few servers are available.
    servers.kill(2);
    let volume = format!("'{}' --key-file key", servers.url_of(&[0, 1, 2], "disk"));
    world.bad(&format!("check {volume}"), 15, "server 3");
}

#[test]
fn a_server_that_was_rolled_back_is_named_and_nothing_is_changed() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(world.path("data"), bytes(6, MIB / 4)).unwrap();
    let copy = |from: &str| format!("serve nbd {volume} --run 'nbdcopy --flush {from} \"$uri\"'");
    world.good(&copy("data"));
    servers.kill(1);
    world.copy("shares-2", "older");
    servers.start(&world, 1);
    world.good(&copy("data"));
    servers.kill(1);
    world.copy("shares-2", "latest");
    fs::remove_dir_all(ShareServers::folder(&world, 1)).unwrap();
    world.copy("older", "shares-2");
    servers.start(&world, 1);
    world.bad(&format!("check {volume}"), 8, "server 2");
    world.bad(&format!("serve nbd {volume} --run true"), 8, "was rolled back behind the others");
    let (code, said, _) = common::oblivio(world.path(""), &format!("rescue {volume} image"));
    assert_eq!(code, 7, "{said}");
    assert!(said.contains("server 2") && said.contains("rolled back"), "{said}");
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&world, 1)).unwrap();
    world.copy("latest", "shares-2");
    servers.start(&world, 1);
    world.good(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
}

/// Rolled back to different moments, so that no two servers have the same records, and together.
#[test]
fn more_rolled_back_servers_than_may_collude_are_named() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 256K {SMALL}"));
    fs::write(world.path("data"), bytes(6, MIB / 4)).unwrap();
    let copy = format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'");
    for moment in 0..3 {
        world.good(&copy);
        for server in [1, 2] {
            servers.kill(server);
            world.copy(format!("shares-{}", server + 1), format!("{server}-{moment}"));
            servers.start(&world, server);
        }
    }
    world.good(&copy);
    for moments in [[0, 1], [0, 2], [1, 1]] {
        for (server, moment) in [1, 2].into_iter().zip(moments) {
            servers.kill(server);
            fs::remove_dir_all(ShareServers::folder(&world, server)).unwrap();
            world.copy(format!("{server}-{moment}"), format!("shares-{}", server + 1));
            servers.start(&world, server);
        }
        for command in ["check", "serve nbd --run true"] {
            let (code, _, said) = common::oblivio(world.path(""), &format!("{command} {volume}"));
            assert_eq!(code, 8, "{moments:?} {command}: {said}");
            for server in ["server 2", "server 3"] {
                assert!(said.contains(server), "{moments:?} {command}: {said}");
            }
        }
    }
}

#[test]
fn a_server_that_has_lost_its_disk_is_rebuilt_and_the_volume_opens_as_before() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 1M {SMALL}"));
    fs::write(world.path("data"), bytes(3, MIB)).unwrap();
    world.good(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    world.bad(&format!("shares repair {volume} --server 2"), 3, "--anyway rebuilds its shares");
    world.bad(&format!("shares repair {volume} --server 4"), 3, "servers 1 to 3");
    servers.kill(1);
    fs::remove_dir_all(ShareServers::folder(&world, 1)).unwrap();
    servers.start(&world, 1);
    let lost = "it has no volume disk, but others do: if it has lost its disk, rebuild its shares \
                (`oblivio shares repair URL` with --server 2)";
    world.bad(&format!("check {volume}"), 3, lost);
    // The other servers give back everything, and the report says that one is missing.
    let rescue = |image: &str| {
        world.bad(&format!("rescue {volume} {image}"), 7, "blocks that are lost: 0");
        assert!(fs::read(world.path(image)).unwrap() == fs::read(world.path("data")).unwrap());
    };
    rescue("of-two");
    servers.kill(1);
    rescue("without-one");
    servers.start(&world, 1);
    world.good(&format!("shares repair {volume} --server 2"));
    world.good(&format!("check {volume}"));
    let said = world.json(&format!("shares repair {volume} --server 1 --anyway --json"));
    assert_eq!((&said["server"], said["wrong"].as_array().unwrap().len()), (&1.into(), 0));
    world.good(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
    world.good(&format!("check {volume}"));
}

/// A mistyped name does not mean that a server has lost its disk.
#[test]
fn a_name_that_no_server_has_is_reported_as_wrong() {
    let world = World::new();
    let mut servers = ShareServers::new(&world, 3, "");
    world.good(&format!("create {} --size 256K {SMALL}", servers.volume("disk")));
    let volume = servers.volume("dusk");
    let remove = format!("remove '{}' --yes", servers.url_of(&[0, 1, 2], "dusk"));
    let said = "there is no volume dusk on any of the servers: check the name";
    world.bad(&format!("check {volume}"), 3, said);
    world.bad(&format!("shares repair {volume} --server 2"), 3, said);
    world.bad(&format!("rescue {volume} image"), 3, said);
    world.bad(&remove, 3, said);
    servers.kill(1);
    world.bad(&format!("check {volume}"), 3, "2 of 3 servers have no volume dusk");
}

#[test]
fn a_damaged_share_is_detected_when_it_is_read() {
    use std::os::unix::fs::FileExt;
    let world = World::new();
    let servers = ShareServers::new(&world, 3, "");
    let volume = servers.volume("disk");
    world.good(&format!("create {volume} --size 256K {SMALL} --state client"));
    fs::write(world.path("data"), bytes(7, MIB / 4)).unwrap();
    let write = format!("serve nbd {volume} --state client --run 'nbdcopy --flush data \"$uri\"'");
    world.good(&write);
    world.copy("client", "older");
    world.good(&write);
    // An old directory is refused, and a rescue uses what it knows.
    world.bad(&format!("check {volume} --state older"), 12, "");
    world.bad(&format!("rescue {volume} of-old --state older"), 12, "");
    assert!(fs::metadata(world.path("of-old")).is_ok());
    let leaves = ShareServers::folder(&world, 0).join("alice/disk/shares/leaves");
    let leaves = fs::File::options().read(true).write(true).open(leaves).unwrap();
    let mut damaged = vec![0; leaves.metadata().unwrap().len() as usize];
    leaves.read_exact_at(&mut damaged, 0).unwrap();
    damaged.iter_mut().filter(|byte| **byte != 0).for_each(|byte| *byte ^= 1);
    leaves.write_all_at(&damaged, 0).unwrap();
    world.bad(&format!("check {volume} --state client"), 7, "share");
    // The seals show which two of three shares are right: a rescue takes them, and a repair of
    // another server removes nothing.
    let repair = |server| format!("shares repair {volume} --server {server} --anyway");
    for wrong in [2, 3] {
        world.bad(&repair(wrong), 7, "Nothing was removed");
    }
    world.bad(&format!("rescue {volume} image --state client"), 7, "blocks that are lost: 0");
    assert!(fs::read(world.path("image")).unwrap() == fs::read(world.path("data")).unwrap());
    // The check has recorded the server: it deals in no eviction until it is repaired with that
    // directory.
    let info = format!("info {volume} --state client");
    assert!(world.good(&info).contains("server 1 has wrong shares"));
    assert_eq!(world.json(&format!("{info} --json"))["wrong_servers"], serde_json::json!([1]));
    world.bad(&write, 7, "a share of server 1");
    world.good(&format!("shares repair {volume} --server 1 --state client"));
    assert!(!world.good(&info).contains("wrong shares"));
    world.good(&format!("check {volume} --state client --after-tampering"));
    world.good(&write);
}

#[test]
fn impossible_volumes_are_refused_before_anything_is_made() {
    let world = World::new();
    let servers = ShareServers::with_quota(&world, 3, "", "quota=8388608");
    let volume = servers.volume("disk");
    world.bad(&format!("create {volume} --size 64M"), 10, "server 1");
    for server in 0..3 {
        let alice = ShareServers::folder(&world, server).join("alice/disk");
        assert!(!alice.exists(), "{server}");
    }
    world.bad(&format!("create {volume} --size 1M --scheme raw"), 3, "");
    world.bad("create disk.obl --size 1M --scheme s3oram --key-file key", 3, "shares://");
    let peers = fs::read_to_string(world.path("peers")).unwrap();
    let client = fs::read_to_string(world.path("allow")).unwrap();
    let client = client.replace("alice", "127.0.0.1:9");
    let client = client.split(" quota").next().unwrap();
    let alone = peers.lines().next().unwrap();
    for (list, said) in [
        ("something else", "line 1 of the peers file"),
        ("", "has 0 other servers"),
        (alone, "has 0 other servers"),
        (
            &format!("{peers}\n{client}"),
            "line 5 of the peers file: this is the key of the client alice",
        ),
    ] {
        fs::write(world.path("list"), list).unwrap();
        let serve = "serve shares folder --key server-1.key --allow allow --peers list";
        world.bad(serve, 3, said);
    }
    world.bad("key server server-1.key --address nowhere", 2, "one.example:2412");
    world.bad("key server server-1.key --address 'a b:80'", 2, "one.example:2412");
    world.bad("plan --size 1T --scheme s3oram --client-memory 1M", 3, "--client-memory");
    // If one of five servers may collude, two may be missing, and would lack marks.
    world.bad("plan --size 1T --servers 5 --colluding 1", 3, "must be on the client");
    let plan = world.good("plan --size 1T --servers 3");
    assert!(plan.contains("in smaller trees on the servers"), "{plan}");
    world.bad("plan --size 1G --scheme s3oram --block 5G", 3, "16 to 1048576 bytes");
    world.bad(
        &format!("bench '{}'", servers.url_of(&[0, 1, 2], "disk")),
        3,
        "a directory of this machine",
    );
    let plan = world.json("plan --size 40G --servers 3 --json");
    assert_eq!((&plan["block_bytes"], &plan["levels"]), (&131_072.into(), &12.into()), "{plan}");
}
