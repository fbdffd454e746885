//! A volume on a bucket server in another process, which is killed, restarted, and taken over by
//! other clients.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::test_dir::{MIB, TestDir, bytes, end, end_by};
use crate::common;

/// The name of the file that holds the server's log.
const LOG: &str = "server.log";

/// A bucket server in the directory of a [`TestDir`]. Killed when dropped.
pub(crate) struct StoreServer {
    child: Child,
    address: String,
    query: String,
    metrics: String,
}

impl StoreServer {
    /// Starts a server with a client `alice`, which has the key `client.key`. `quota` is a field of
    /// the allow list, such as `quota=1000000`, or empty.
    pub(crate) fn new(test_dir: &TestDir, quota: &str) -> Self {
        let line = test_dir.succeeds("key client client.key --name alice");
        fs::write(test_dir.path("allow"), format!("{} {quota}\n", line.trim())).unwrap();
        test_dir.succeeds("key server server.key");
        Self::start(test_dir, "127.0.0.1:0")
    }

    fn start(test_dir: &TestDir, listen: &str) -> Self {
        let command = format!(
            "serve store stores --key server.key --allow allow --listen {listen} \
             --metrics 127.0.0.1:0 --json"
        );
        let mut command = common::command(&test_dir.path(""), &command);
        let log =
            fs::OpenOptions::new().create(true).append(true).open(test_dir.path(LOG)).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut printed = String::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            printed += &line.unwrap();
            if printed.ends_with('}') {
                break;
            }
        }
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let of = |name: &str| printed[name].as_str().unwrap().to_owned();
        Self { child, address: of("address"), query: of("query"), metrics: of("metrics") }
    }

    fn url(&self, name: &str) -> String {
        self.url_at(&self.address, name)
    }

    fn url_at(&self, address: &str, name: &str) -> String {
        format!("oblivio+tls://{address}/{name}?{}&key=client.key", self.query)
    }

    /// The location and the options that open the volume `name`.
    pub(crate) fn volume(&self, name: &str) -> String {
        self.volume_at(&self.address, name)
    }

    /// Like [`Self::volume`], with another address of the server, such as that of a relay.
    pub(crate) fn volume_at(&self, address: &str, name: &str) -> String {
        format!("{} --key-file key", self.url_at(address, name))
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Kills the server, and restarts it at the same address.
    pub(crate) fn killed_and_started(mut self, test_dir: &TestDir) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        Self::start(test_dir, &self.address)
    }

    fn page(&self) -> String {
        self.get("/metrics")
    }

    fn get(&self, path: &str) -> String {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&self.metrics).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.metrics).unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

/// A child process. Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

#[test]
fn a_volume_on_a_server_is_a_volume() {
    let test_dir = TestDir::new();
    let server = StoreServer::new(&test_dir, "");
    let volume = server.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 8M"));
    fs::write(test_dir.path("data"), bytes(3, 8 * MIB)).unwrap();
    test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    test_dir
        .succeeds(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
    test_dir.succeeds(&format!("check {volume}"));
    let info = test_dir.json(&format!("info {volume} --json"));
    assert_eq!(info["blocks"], 2048, "{info}");
    test_dir.fails_with(&format!("create {volume} --size 8M"), 3, "(oblivio remove)");
    assert!(server.get("/").starts_with("HTTP/1.1 404 "));
    let page = server.page();
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("requests_total"), "{page}");
    let log = fs::read_to_string(test_dir.path(LOG)).unwrap();
    assert!(log.contains("client=\"alice\"") && log.contains("client disconnected"), "{log}");
    // The metrics name neither volumes nor clients, and only the server's user can read the stores.
    assert!(!page.contains("disk") && !page.contains("alice"), "{page}");
    test_dir.assert_private("stores");
    test_dir.succeeds(&format!("key add {volume} --new-key-file allow"));
    test_dir.fails_with(
        &format!("rescue {} --key-file key image --state nowhere", server.url("other")),
        3,
        "no",
    );
}

#[test]
fn a_volume_is_striped_over_servers_and_a_file() {
    let test_dir = TestDir::new();
    let server = StoreServer::new(&test_dir, "");
    for (first, second) in [("one", "two"), ("three", "./file.obl")] {
        let [first, second] = [first, second]
            .map(|name| if name.contains('/') { name.into() } else { server.url(name) });
        let volume = format!("stripe:{first},{second} --key-file key");
        test_dir.succeeds(&format!("create {volume} --size 4M"));
        fs::write(test_dir.path("data"), bytes(6, 4 * MIB)).unwrap();
        test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
        test_dir.succeeds(&format!(
            "serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"
        ));
        test_dir.succeeds(&format!("check {volume}"));
        // A refused command does not take the stripe from the client that uses it.
        let program = env!("CARGO_BIN_EXE_oblivio");
        let refused = format!("! {program} check \"stripe:{first},{second}\" --key-file allow");
        let read = "nbdcopy \"$uri\" back && cmp data back";
        test_dir.succeeds(&format!("serve nbd {volume} --cache 0 --run '{refused} && {read}'"));
    }
}

#[test]
fn an_interrupted_creation_leaves_no_obstacle() {
    let test_dir = TestDir::new();
    let server = StoreServer::new(&test_dir, "");
    let mut interrupted = 0;
    for milliseconds in (4..60).step_by(4) {
        let name = format!("disk{milliseconds}");
        let create = format!("create {} --size 32M --state {name}", server.volume(&name));
        let mut command = common::command(&test_dir.path(""), &create);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(Duration::from_millis(milliseconds));
        if end_by(&mut child, &[Signal::TERM]) == Some(0) {
            test_dir.succeeds(&format!("check {} --state {name}", server.volume(&name)));
        } else {
            interrupted += 1;
            assert!(!test_dir.path(&name).exists());
            test_dir.succeeds(&create);
        }
    }
    assert!(interrupted > 2, "{interrupted} were interrupted");
}

/// The client sends writes again if the server was killed before they were durable.
#[test]
fn a_server_that_is_killed_under_load_loses_nothing() {
    let test_dir = TestDir::new();
    let mut server = StoreServer::new(&test_dir, "");
    let volume = server.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 48M"));
    fs::write(test_dir.path("data"), bytes(4, 48 * MIB)).unwrap();
    let command = format!(
        "serve nbd {volume} --run 'nbdcopy --flush data \"$uri\" && nbdcopy \"$uri\" back && cmp \
         data back'"
    );
    let mut copy = common::command(&test_dir.path(""), &command).spawn().unwrap();
    for _ in 0..3 {
        thread::sleep(Duration::from_millis(300));
        assert!(copy.try_wait().unwrap().is_none(), "the copy must still run");
        server = server.killed_and_started(&test_dir);
    }
    let status = copy.wait().unwrap();
    assert!(status.success(), "{status}");
    test_dir.succeeds(&format!("check {volume}"));
}

#[test]
fn a_second_client_takes_the_volume_over_and_the_first_reports_it() {
    let test_dir = TestDir::new();
    let server = StoreServer::new(&test_dir, "");
    let volume = server.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 4M --state one"));
    let command = format!("serve nbd {volume} --state one --cache 0 --socket one.sock --json");
    let mut first = common::command(&test_dir.path(""), &command);
    let first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = Running(first);
    let mut line = String::new();
    BufReader::new(first.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let uri = format!("nbd+unix:///?socket={}", test_dir.path("one.sock").display());
    let can_read = || {
        let mut read = std::process::Command::new("nbdcopy");
        let read = read.arg(&uri).arg(test_dir.path("out")).stderr(Stdio::null());
        read.status().unwrap().success()
    };
    // A refused command does not take the volume from the client that uses it.
    let by_stranger = format!("check {} --key-file allow", server.url("disk"));
    test_dir.fails_with(&format!("{by_stranger} --state one"), 6, "");
    test_dir.fails_with(&format!("check {volume} --state none"), 11, "");
    test_dir.fails_with(
        &format!("key add {} --key-file allow --new-key-file allow", server.url("disk")),
        6,
        "",
    );
    test_dir.succeeds(&format!("create {} --size 4M --state other", server.volume("other")));
    test_dir.fails_with(&format!("check {volume} --state other"), 11, "");
    assert!(can_read());
    // A copy of the client's directory, as if its machine had been cloned.
    test_dir.copy("one", "two");
    test_dir.fails_with(&format!("serve nbd {volume} --state one --run true"), 9, "");
    let second = common::oblivio(test_dir.path(""), &format!("check {volume} --state two"));
    assert!([0, 12].contains(&second.0), "{second:?}");
    assert!(!can_read(), "every request to the first client must fail");
    let code = end_by(&mut first.0, &[Signal::TERM]);
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut first.0.stderr.take().unwrap(), &mut printed).unwrap();
    assert!(code != Some(0) && printed.contains("another client"), "{code:?}: {printed}");
}

/// An older copy of the client's directory lacks later writes, even if it has the last checkpoint.
/// The client then finds evictions in storage that the copy does not know, and refuses to open the
/// volume.
#[test]
fn an_older_copy_of_the_directory_is_refused_and_its_owner_keeps_the_volume() {
    let test_dir = TestDir::new();
    let server = StoreServer::new(&test_dir, "");
    let volume = server.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 4M --state client"));
    fs::write(test_dir.path("data"), bytes(5, 4 * MIB)).unwrap();
    // With `--cache 0`, each write reaches storage at once, so storage is newer than the copied
    // directory.
    let serve = format!("serve nbd {volume} --cache 0 --state client --run");
    test_dir.succeeds(&format!("{serve} 'nbdcopy --flush data \"$uri\"'"));
    let program = env!("CARGO_BIN_EXE_oblivio");
    let refused = format!(
        "{program} check \"{}\" --key-file key --state older; test $? = 12",
        server.url("disk")
    );
    let write = "qemu-io --format raw --cmd \"write -q -P 7 1M 128K\" \"$uri\"";
    let read = "qemu-io --format raw --cmd \"read -q -P 7 1M 128K\" \"$uri\"";
    test_dir.succeeds(&format!(
        "{serve} 'cp -r client older && {write} && ({refused}) && {write} && {read}'"
    ));
    test_dir.succeeds(&format!("check {volume} --state client"));
}

/// If a server does not come back within `--retry-for`, the client gives up. When the server is
/// back, the volume recovers.
#[test]
fn a_server_that_stays_away_is_given_up_and_nothing_is_lost() {
    let test_dir = TestDir::new();
    let mut server = StoreServer::new(&test_dir, "");
    let volume = server.volume("disk");
    test_dir.succeeds(&format!("create {volume} --size 4M"));
    fs::write(test_dir.path("data"), bytes(5, 4 * MIB)).unwrap();
    test_dir.succeeds(&format!("serve nbd {volume} --run 'nbdcopy --flush data \"$uri\"'"));
    let command = format!(
        "serve nbd {volume} --retry-for 1 --run 'touch up; sleep 1; nbdcopy \"$uri\" back'"
    );
    let mut away = common::command(&test_dir.path(""), &command);
    let mut away = away.stderr(Stdio::piped()).spawn().unwrap();
    while !test_dir.path("up").exists() {
        assert!(away.try_wait().unwrap().is_none(), "the client ended before the server");
        thread::sleep(Duration::from_millis(10));
    }
    end(&mut server.child);
    assert!(!away.wait().unwrap().success());
    let mut printed = String::new();
    std::io::Read::read_to_string(&mut away.stderr.take().unwrap(), &mut printed).unwrap();
    assert!(printed.contains("the server could not be reached for 1s"), "{printed}");
    let server = StoreServer::start(&test_dir, &server.address);
    assert_eq!(server.volume("disk"), volume);
    test_dir
        .succeeds(&format!("serve nbd {volume} --run 'nbdcopy \"$uri\" back && cmp data back'"));
}

#[test]
fn errors_of_the_server_have_a_message_and_a_code_and_change_nothing() {
    let test_dir = TestDir::new();
    let server = StoreServer::new(&test_dir, "quota=100000000");
    let volume = server.volume("disk");
    test_dir.fails_with(&format!("check {volume}"), 3, "check the name");
    test_dir.fails_with(&format!("create {volume} --size 1G"), 10, "");
    let stranger = server.url("disk").replace("client.key", "other.key");
    test_dir.fails_with(&format!("create {stranger} --size 4M --key-file key"), 3, "other.key");
    test_dir.succeeds("key client other.key --name other");
    test_dir.fails_with(
        &format!("create {stranger} --size 4M --key-file key"),
        6,
        "check the keys",
    );
    let other_server = test_dir.json("key server other-server.key --json");
    let impostor =
        server.url("disk").replace(&server.query, other_server["query"].as_str().unwrap());
    test_dir.fails_with(&format!("create {impostor} --size 4M --key-file key"), 6, "another key");
    let serve = "serve store elsewhere --key server.key --allow allow --listen 127.0.0.1:0";
    test_dir.fails_with(&format!("{serve} --metrics 0.0.0.0:0"), 3, "--beyond-loopback");
    assert!(!test_dir.path("elsewhere").exists());
    for url in [
        "oblivio+tls://127.0.0.1/disk",
        "oblivio+tls://127.0.0.1/../disk?server=x&key=y",
        "oblivio+tls:///disk",
        "oblivio://127.0.0.1/disk",
    ] {
        test_dir.fails_with(&format!("create {url} --size 4M --key-file key"), 2, "--help");
    }
    let unreachable = server.url("disk").replace(&server.address, "127.0.0.1:1");
    test_dir.fails_with(
        &format!("create {unreachable} --size 4M --key-file key"),
        15,
        "cannot reach the server",
    );
    test_dir.fails_with(
        "serve store stores --key server.key --allow allow --listen 127.0.0.1:0",
        9,
        "another server",
    );
    test_dir.fails_with(
        "serve store stores --key server.key --allow allow --listen 0.0.0.0:0",
        3,
        "--beyond-loopback",
    );
    fs::write(test_dir.path("allow"), "").unwrap();
    test_dir.fails_with("serve store s2 --key server.key --allow allow", 3, "oblivio key client");
    let volumes = fs::read_dir(test_dir.path("stores/alice")).map_or(0, Iterator::count);
    assert_eq!(volumes, 0, "no volume may exist");
}

#[test]
fn a_volume_is_removed_only_by_its_owner_and_only_if_it_is_not_in_use() {
    let test_dir = TestDir::new();
    let server = StoreServer::new(&test_dir, "");
    fs::write(test_dir.path("text"), "something else").unwrap();
    for place in [server.url("disk"), "./disk.obl".into()] {
        let volume = format!("{place} --key-file key --state state");
        test_dir.succeeds(&format!("create {volume} --size 4M"));
        test_dir.fails_with(&format!("remove {place}"), 3, "--yes");
        test_dir.succeeds(&format!("check {volume}"));
        let program = env!("CARGO_BIN_EXE_oblivio");
        let in_use = format!("{program} remove \"{place}\" --yes; test $? = 9");
        test_dir.succeeds(&format!("serve nbd {volume} --run '{in_use}'"));
        test_dir.succeeds(&format!("check {volume}"));
        let removed = test_dir.json(&format!("remove {place} --yes --json"));
        assert!(removed["bytes_freed"].as_u64().unwrap() > 0, "{removed}");
        test_dir.fails_with(&format!("remove {place} --yes"), 3, "");
        fs::remove_dir_all(test_dir.path("state")).unwrap();
    }
    test_dir.fails_with("remove text --yes", 3, "");
    assert!(test_dir.path("text").exists());
}
