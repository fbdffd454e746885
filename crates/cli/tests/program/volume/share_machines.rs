//! Share servers on separate machines: network namespaces on one bridge, which the test makes.

use std::fs;
use std::process::{Child, Command, Stdio};

use super::needs::can_mount;
use super::shares::{SMALL, ShareServers, inside};
use super::test_dir::{TestDir, bytes, end};
use crate::common;

/// A network namespace that acts as a machine. It exists as long as this process, which runs in it.
/// The bridge is in the client's namespace.
struct Machine(Child);

impl Machine {
    fn new(enter: &[String]) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 600"]);
        let mut child = inside(enter, command).stdout(Stdio::piped()).spawn().unwrap();
        let mut up = [0; 3];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut up).unwrap();
        Self(child)
    }

    /// The words before a command that run it on this machine.
    fn enter(&self) -> Vec<String> {
        ["nsenter", "--net", "--target", &self.0.id().to_string()].map(str::to_owned).to_vec()
    }

    fn does(&self, command_line: &str) {
        let mut words = command_line.split(' ');
        let mut command = Command::new(words.next().unwrap());
        command.args(words);
        let done = inside(&self.enter(), command).output().unwrap();
        assert!(done.status.success(), "{command_line}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

/// Creates the machines of a client and of servers in one network. Server `n`, counted from 1, has
/// the address `10.93.0.n`.
fn machines(servers: usize) -> (Machine, Vec<Machine>) {
    let client = Machine::new(&[]);
    client.does("ip link add name br0 type bridge");
    client.does("ip link set br0 up");
    client.does("ip addr add 10.93.0.100/24 dev br0");
    let server = |number| {
        let server = Machine::new(&client.enter());
        let id = server.0.id();
        client.does(&format!("ip link add name port{number} type veth peer name eth0 netns {id}"));
        client.does(&format!("ip link set port{number} master br0 up"));
        server.does(&format!("ip addr add 10.93.0.{number}/24 dev eth0"));
        server.does("ip link set eth0 up");
        server
    };
    let servers = (1..=servers).map(server).collect();
    (client, servers)
}

#[test]
fn a_file_system_on_servers_of_other_machines_survives_the_death_of_one() {
    if !can_mount() {
        return;
    }
    let test_dir = TestDir::new();
    let (client, machines) = machines(3);
    let addresses = (1..=3).map(|number| format!("10.93.0.{number}:2412")).collect();
    let there = machines.iter().map(Machine::enter).collect();
    let mut servers = ShareServers::at(&test_dir, addresses, there, "", "");
    let volume = servers.volume("disk");
    let run = |command_line: &str| {
        let command = common::command(&test_dir.path(""), command_line);
        let done = inside(&client.enter(), command).output().unwrap();
        let printed = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{command_line}: {printed}");
    };
    run(&format!("create {volume} --size 4M {SMALL}"));
    fs::create_dir(test_dir.path("mnt")).unwrap();
    fs::write(test_dir.path("data"), bytes(7, 300_000)).unwrap();
    let mount = || {
        let command = format!("mount {volume} mnt");
        let mut command = inside(&client.enter(), common::command(&test_dir.path(""), &command));
        let mut mounted = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut printed = [0; 1];
        std::io::Read::read_exact(mounted.stdout.as_mut().unwrap(), &mut printed).unwrap();
        mounted
    };
    let mut mounted = mount();
    fs::copy(test_dir.path("data"), test_dir.path("mnt/first")).unwrap();
    servers.kill(1);
    fs::copy(test_dir.path("data"), test_dir.path("mnt/second")).unwrap();
    servers.start(&test_dir, 1);
    run("umount mnt");
    assert!(mounted.wait().unwrap().success());
    let mut mounted = mount();
    for copy in ["mnt/first", "mnt/second"] {
        assert!(fs::read(test_dir.path(copy)).unwrap() == fs::read(test_dir.path("data")).unwrap());
    }
    run("umount mnt");
    assert!(mounted.wait().unwrap().success());
    run(&format!("check {volume}"));
}
