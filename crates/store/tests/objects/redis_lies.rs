//! Tests of the engine on a server that lies, and on one that fails at a chosen command.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use oblivio_core::StoreErrorKind;
use oblivio_store::objects::resp::{Decoder, Reply};
use oblivio_store::objects::{
    Answer, ObjectName, Objects, Prefix, RedisObjects, RedisOptions, Synced,
};
use oblivio_store::{OpenErrorKind, RedisLocation};

use crate::redis_cluster::eventually;

/// What the server does with a command.
enum Reaction {
    Say(Vec<u8>),
    SayAndClose(Vec<u8>),
    /// Closes the link.
    Close,
}

/// Chooses the reaction to a command; `None` for that of an honest server.
type Lie = Box<dyn FnMut(&str) -> Option<Reaction> + Send>;

/// A server of all slots, with one replica.
#[derive(Clone)]
struct Peer {
    port: u16,
    lie: Arc<Mutex<Lie>>,
    commands: Arc<AtomicUsize>,
}

/// The identity that the peer reports: run, history, version, number of connected replicas.
const SERVER: &str = "redis_version:7.0.15\r\nrun_id:aa\r\n";
const REPLICATION: &str = "role:master\r\nconnected_slaves:1\r\nmaster_replid:bb\r\n";
const NODES: &str = "id1 h:1@2 myself,master - 0 0 1 connected 0-16383\n\
                     id2 h:2@3 slave id1 0 0 1 connected\n";

const HEAD: ObjectName = ObjectName::Head(1);
const CHUNK: ObjectName = ObjectName::Chunk { session: 1, stream: 0, number: 0 };
/// The slot of [`CHUNK`] in the volume `v`.
const CHUNK_SLOT: u16 = 3462;

impl Peer {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = Self {
            port: listener.local_addr().unwrap().port(),
            lie: Arc::new(Mutex::new(Box::new(|_| None))),
            commands: Arc::default(),
        };
        let server = peer.clone();
        let accept = move || {
            for stream in listener.incoming() {
                let (server, stream) = (server.clone(), stream.unwrap());
                stream.set_nodelay(true).unwrap();
                thread::Builder::new().spawn(move || server.serve(stream)).unwrap();
            }
        };
        thread::Builder::new().spawn(accept).unwrap();
        peer
    }

    /// Tells this lie from now on.
    fn tell(&self, lie: impl FnMut(&str) -> Option<Reaction> + Send + 'static) {
        *self.lie.lock().unwrap() = Box::new(lie);
    }

    /// Answers commands that start with `command` with these bytes.
    fn say(&self, command: &'static str, bytes: impl Into<Vec<u8>>) {
        let bytes = bytes.into();
        self.tell(move |it| it.starts_with(command).then(|| Reaction::Say(bytes.clone())));
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut decoder = Decoder::default();
        let mut buffer = [0; 4096];
        loop {
            while let Some(Reply::Array(words)) = decoder.next(1 << 20).unwrap() {
                let words = words.iter().map(|word| match word {
                    Reply::Bulk(word) => String::from_utf8_lossy(word).into_owned(),
                    _ => panic!("a command has only strings"),
                });
                let command = words.collect::<Vec<_>>().join(" ");
                self.commands.fetch_add(1, Ordering::Relaxed);
                let lie = (self.lie.lock().unwrap())(&command);
                let (said, closes) = match lie {
                    Some(Reaction::Say(bytes)) => (bytes, false),
                    Some(Reaction::SayAndClose(bytes)) => (bytes, true),
                    Some(Reaction::Close) => (vec![], true),
                    None => (self.honest(&command), false),
                };
                if stream.write_all(&said).is_err() || closes {
                    let _ = stream.shutdown(Shutdown::Both);
                    return;
                }
            }
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(bytes) => decoder.feed(&buffer[..bytes]),
            }
        }
    }

    fn honest(&self, command: &str) -> Vec<u8> {
        let bulk = |text: &str| Reply::Bulk(Bytes::copy_from_slice(text.as_bytes()));
        let words: Vec<_> = command.split(' ').collect();
        let reply = match words[..] {
            ["CLUSTER", "SLOTS"] => {
                let node = Reply::Array(vec![bulk("127.0.0.1"), Reply::Integer(self.port.into())]);
                let range = vec![Reply::Integer(0), Reply::Integer(16383), node.clone(), node];
                Reply::Array(vec![Reply::Array(range)])
            }
            ["CLUSTER", "NODES"] => bulk(NODES),
            ["INFO", "server"] => bulk(SERVER),
            ["INFO", "replication"] => bulk(REPLICATION),
            ["CONFIG", "GET", name] => {
                let value = match name {
                    "appendonly" => "yes",
                    "appendfsync" => "always",
                    _ => "noeviction",
                };
                Reply::Array(vec![bulk(name), bulk(value)])
            }
            ["SET", ..] | ["ASKING"] => Reply::Status("OK".into()),
            ["HSETNX", ..] | ["EXISTS", _] | ["UNLINK", _] | ["WAIT", ..] => Reply::Integer(1),
            ["WAITAOF", ..] => Reply::Array(vec![Reply::Integer(1), Reply::Integer(1)]),
            ["GETRANGE", ..] | ["HGET", ..] => bulk("ab"),
            ["SCAN", ..] => Reply::Array(vec![bulk("0"), Reply::Array(vec![])]),
            ["HKEYS", ..] => Reply::Array(vec![bulk(&HEAD.to_string())]),
            ["HSTRLEN", ..] => Reply::Integer(2),
            _ => Reply::Error("ERR unknown command".into()),
        };
        let mut said = Vec::new();
        reply.encode(&mut said);
        said
    }

    fn location(&self) -> RedisLocation {
        let rest = format!("127.0.0.1:{}/v?plain", self.port);
        RedisLocation::parse(rest.as_bytes()).unwrap()
    }

    fn open(&self) -> RedisObjects {
        RedisObjects::open(&self.location(), options()).unwrap()
    }
}

fn options() -> RedisOptions {
    RedisOptions::default()
        .with_retry_for(Duration::from_millis(10))
        .with_retry_opening_for(Duration::from_millis(10))
        .with_connect_within(Duration::from_secs(10))
        .with_answer_within(Duration::from_secs(10))
}

/// Replies that no honest server sends to any command.
fn absurd_replies() -> Vec<Vec<u8>> {
    let mut replies: Vec<Vec<u8>> = [
        "$9223372036854775807\r\n",
        "$536870912\r\n",
        "$-7\r\n",
        "*9223372036854775807\r\n",
        "*100000000\r\n",
        "*-9\r\n",
        "%1\r\n+a\r\n+b\r\n",
        "HTTP/1.1 400 Bad Request\r\n\r\n",
        ":99999999999999999999\r\n",
        ":-5\r\n",
        "-\r\n",
        "-MOVED\r\n",
        "-MOVED 99999 h\r\n",
        "-ASK 1 :0\r\n",
        "-ASK 1 127.0.0.1:1\r\n",
        "*2\r\n:1\r\n$-1\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
        "*0\r\n",
        "+\r\n+\r\n+\r\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec();
    replies.push(b"*1\r\n".repeat(10_000));
    replies.push(b"+".repeat(100_000));
    replies.push([b"$1000000\r\n".to_vec(), vec![0; 1_000_002]].concat());
    replies
}

#[test]
fn absurd_replies_are_errors() {
    let peer = Peer::start();
    for bytes in absurd_replies() {
        let shown = bytes[..bytes.len().min(40)].escape_ascii().to_string();
        for command in ["GETRANGE", "EXISTS", "HGET"] {
            let name = if command == "HGET" { HEAD } else { CHUNK };
            peer.tell(|_| None);
            let mut objects = peer.open();
            peer.say(command, bytes.clone());
            let ticket = objects.begin_get(name, 0..2);
            let answer = objects.wait(ticket);
            // A head that is longer than the range is cut.
            let is_bytes = command == "HGET" && matches!(answer, Ok(Answer::Bytes(_)));
            assert!(answer.is_err() || is_bytes, "{command} {shown}: {answer:?}");
        }
        for command in ["HSETNX", "SCAN", "HKEYS", "HSTRLEN", "UNLINK", "WAIT", "CLUSTER NODES"] {
            peer.tell(|_| None);
            let mut objects = peer.open();
            peer.say(command, bytes.clone());
            // Some of these replies are possible here.
            let ticket = objects.begin_create(HEAD, vec!["ab".into()]);
            let _ = objects.wait(ticket);
            let _ = objects.list(Prefix::All, None);
            let _ = objects.delete(&[CHUNK]);
            let synced = objects.sync();
            let is_sync = ["WAIT", "CLUSTER NODES"].contains(&command);
            let is_possible = shown == ":1" || !is_sync;
            assert!(synced.is_err() || is_possible, "{command} {shown}: {synced:?}");
        }
    }
}

#[test]
fn absurd_replies_at_opening_are_errors() {
    let peer = Peer::start();
    for bytes in absurd_replies() {
        for command in
            ["CLUSTER SLOTS", "INFO server", "INFO replication", "CONFIG GET appendfsync"]
        {
            peer.say(command, bytes.clone());
            let opened = RedisObjects::open(&peer.location(), options());
            assert!(opened.is_err(), "{command} {}", bytes[..bytes.len().min(40)].escape_ascii());
        }
    }
    let names = "h".repeat(300);
    for host in ["h\u{1b}", "a b", &names] {
        let slots =
            format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n${}\r\n{host}\r\n:1\r\n", host.len());
        peer.say("CLUSTER SLOTS", slots);
        let refused = RedisObjects::open(&peer.location(), options()).map(drop).unwrap_err();
        assert!(refused.to_string().contains("malformed"), "{refused}");
    }
}

#[test]
fn a_node_that_became_a_replica_is_not_used() {
    let peer = Peer::start();
    let replica = REPLICATION.replace("role:master", "role:slave");
    peer.tell(move |it| (it == "INFO replication").then(|| info(&replica)));
    let refused = RedisObjects::open(&peer.location(), options()).map(drop).unwrap_err();
    assert_eq!(refused.kind(), OpenErrorKind::Unreachable);
    assert!(refused.to_string().contains("it is a replica"), "{refused}");
}

#[test]
fn an_error_does_not_repeat_the_password() {
    let peer = Peer::start();
    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    fs::write(&password, "correct horse").unwrap();
    fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
    let rest = format!("127.0.0.1:{}/v?plain&password={}", peer.port, password.display());
    let location = RedisLocation::parse(rest.as_bytes()).unwrap();
    for code in ["ERR unknown command", "WRONGPASS", "LOADING"] {
        peer.tell(move |it| {
            let words = it.strip_prefix("AUTH ")?;
            Some(Reaction::Say(format!("-{code} {words}\r\n").into_bytes()))
        });
        let refused = RedisObjects::open(&location, options()).map(drop).unwrap_err();
        assert!(!refused.to_string().contains("horse"), "{refused}");
    }
}

#[test]
fn redirections_in_a_circle_end_with_the_time() {
    let peers = [Peer::start(), Peer::start()];
    for code in ["MOVED", "ASK", "TRYAGAIN"] {
        let longer = options().with_retry_for(Duration::from_millis(300));
        let mut objects = RedisObjects::open(&peers[0].location(), longer).unwrap();
        for (peer, other) in [(&peers[0], &peers[1]), (&peers[1], &peers[0])] {
            let error = format!("-{code} 1 127.0.0.1:{}\r\n", other.port);
            peer.say("EXISTS", error);
            peer.commands.store(0, Ordering::Relaxed);
        }
        let ticket = objects.begin_get(CHUNK, 0..2);
        let refused = objects.wait(ticket).unwrap_err();
        assert_eq!(refused.kind(), StoreErrorKind::Unreachable, "{refused}");
        assert!(refused.to_string().contains(code), "{refused}");
        let commands = peers.each_ref().map(|peer| peer.commands.load(Ordering::Relaxed));
        assert!(commands.iter().sum::<usize>() < 200, "{commands:?}");
    }
}

#[test]
fn a_silent_server_is_unreachable() {
    let peer = Peer::start();
    let brief = Duration::from_millis(300);
    let brief = options().with_connect_within(brief).with_answer_within(brief);
    let attempt = || RedisObjects::open(&peer.location(), brief.clone()).ok();
    let mut objects = eventually("a link", attempt);
    peer.tell(|_| Some(Reaction::Say(vec![])));
    let ticket = objects.begin_create(CHUNK, vec![]);
    assert_eq!(objects.wait(ticket).unwrap(), Answer::Unknown);
    let ticket = objects.begin_get(CHUNK, 0..2);
    let refused = objects.wait(ticket).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unreachable, "{refused}");
    assert!(refused.to_string().contains("no answer came within"), "{refused}");
    let refused = RedisObjects::open(&peer.location(), brief).map(drop).unwrap_err();
    assert_eq!(refused.kind(), OpenErrorKind::Unreachable);
}

#[test]
fn a_reply_without_a_command_ends_the_link_only() {
    let peer = Peer::start();
    let mut objects = peer.open();
    peer.say("EXISTS", ":1\r\n$2\r\nab\r\n:7\r\n");
    let ticket = objects.begin_get(CHUNK, 0..2);
    assert_eq!(objects.wait(ticket).unwrap(), Answer::Bytes("ab".into()));
    let links = Arc::new(AtomicUsize::new(0));
    let counted = links.clone();
    peer.tell(move |it| {
        counted.fetch_add(usize::from(it == "INFO server"), Ordering::Relaxed);
        None
    });
    let ticket = objects.begin_get(CHUNK, 0..2);
    assert_eq!(objects.wait(ticket).unwrap(), Answer::Bytes("ab".into()));
    assert_eq!(links.load(Ordering::Relaxed), 1, "another link");
}

fn create(objects: &mut RedisObjects) -> Answer {
    let ticket = objects.begin_create(CHUNK, vec!["ab".into()]);
    objects.wait(ticket).unwrap()
}

/// A reply of this text to `INFO`.
fn info(text: &str) -> Reaction {
    Reaction::Say(format!("${}\r\n{text}\r\n", text.len()).into_bytes())
}

#[test]
fn a_creation_whose_answer_is_lost_is_covered_by_the_next_sync() {
    for (section, from, to, expected) in [
        ("INFO server", "run_id:aa", "run_id:aa", Synced::Durable),
        ("INFO server", "run_id:aa", "run_id:ac", Synced::MayHaveLost),
        ("INFO replication", "replid:bb", "replid:bd", Synced::MayHaveLost),
    ] {
        let peer = Peer::start();
        let mut objects = peer.open();
        assert_eq!(objects.sync().unwrap(), Synced::Durable);
        peer.tell(|command| command.starts_with("SET").then_some(Reaction::Close));
        assert_eq!(create(&mut objects), Answer::Unknown);
        let text = if section == "INFO server" { SERVER } else { REPLICATION };
        let text = text.replace(from, to);
        peer.tell(move |command| (command == section).then(|| info(&text)));
        assert_eq!(objects.sync().unwrap(), expected, "{to}");
        assert_eq!(objects.sync().unwrap(), Synced::Durable, "nothing was created since");
    }
}

#[test]
fn an_object_that_existed_is_covered_by_the_next_sync() {
    let peer = Peer::start();
    let mut objects = peer.open();
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    peer.say("SET v:0", "$-1\r\n");
    assert_eq!(create(&mut objects), Answer::Exists);
    peer.tell(|it| (it == "INFO server").then(|| info(&SERVER.replace("run_id:aa", "run_id:ac"))));
    assert_eq!(objects.sync().unwrap(), Synced::MayHaveLost);
}

#[test]
fn the_first_sync_covers_objects_of_earlier_sessions() {
    let peer = Peer::start();
    let mut objects = peer.open();
    let ticket = objects.begin_get(CHUNK, 0..2);
    assert_eq!(objects.wait(ticket).unwrap(), Answer::Bytes("ab".into()));
    peer.tell(|it| (it == "INFO server").then(|| info(&SERVER.replace("run_id:aa", "run_id:ac"))));
    assert_eq!(objects.sync().unwrap(), Synced::MayHaveLost);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
}

#[test]
fn a_listing_starts_again_on_another_link() {
    let peer = Peer::start();
    let longer = options().with_retry_for(Duration::from_secs(5));
    let mut objects = RedisObjects::open(&peer.location(), longer).unwrap();
    let scans = Arc::new(Mutex::new(Vec::new()));
    let seen = scans.clone();
    peer.tell(move |it| {
        let cursor = it.strip_prefix("SCAN ")?.split(' ').next()?.to_owned();
        seen.lock().unwrap().push(cursor);
        let scans = seen.lock().unwrap().len();
        let goes_on = b"*2\r\n$1\r\n5\r\n*0\r\n".to_vec();
        (scans == 1).then_some(Reaction::SayAndClose(goes_on))
    });
    assert_eq!(objects.list(Prefix::Session(1), None).unwrap(), []);
    // The client may notice the loss before or after it sends the next part.
    let scans = scans.lock().unwrap();
    assert_eq!((&*scans[0], scans.last().map(|it| &**it)), ("0", Some("0")), "{scans:?}");
    assert!(scans.len() >= 2, "{scans:?}");
}

#[test]
fn a_failover_after_a_sync_has_lost_nothing() {
    let peer = Peer::start();
    let mut objects = peer.open();
    assert_eq!(create(&mut objects), Answer::Created);
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
    let mut is_first = true;
    peer.tell(move |it| match it {
        "INFO server" => Some(info(&SERVER.replace("run_id:aa", "run_id:ac"))),
        _ if it.starts_with("EXISTS") && std::mem::take(&mut is_first) => Some(Reaction::Close),
        _ => None,
    });
    let ticket = objects.begin_get(CHUNK, 0..2);
    assert_eq!(objects.wait(ticket).unwrap(), Answer::Bytes("ab".into()));
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
}

#[test]
fn a_sync_is_not_durable_if_a_proof_is_missing() {
    let aof = SERVER.replace("7.0.15", "7.2.4");
    let two_replicas = REPLICATION.replace("slaves:1", "slaves:2");
    let other_history = REPLICATION.replace("replid:bb", "replid:bd");
    let replica = REPLICATION.replace("role:master", "role:slave");
    let third = format!("{NODES}id3 h:3@4 slave,fail id1 0 0 1 disconnected\n");
    let fewer_slots = NODES.replace("0-16383", "0-1");
    let moving = NODES.replace("0-16383", &format!("0-16383 [{CHUNK_SLOT}->-id2]"));
    for (is_after_waiting, command, text, expected) in [
        (false, "INFO replication", two_replicas.as_str(), Err("1 of 2 replicas confirmed")),
        (true, "INFO replication", &two_replicas, Err("1 of 2 replicas confirmed")),
        (true, "INFO replication", &other_history, Ok(Synced::MayHaveLost)),
        (true, "INFO replication", &replica, Ok(Synced::MayHaveLost)),
        (false, "INFO replication", &other_history, Ok(Synced::MayHaveLost)),
        (true, "CLUSTER NODES", &third, Err("1 of 2 replicas confirmed")),
        (true, "CLUSTER NODES", &fewer_slots, Ok(Synced::MayHaveLost)),
        (true, "CLUSTER NODES", &moving, Err("moving slots")),
        (true, "CLUSTER NODES", NODES, Ok(Synced::Durable)),
    ] {
        let peer = Peer::start();
        let mut objects = peer.open();
        assert_eq!(create(&mut objects), Answer::Created);
        let (lie, mut has_waited) = (text.to_owned(), !is_after_waiting);
        peer.tell(move |it| {
            has_waited |= it.starts_with("WAIT");
            (it == command && has_waited).then(|| info(&lie))
        });
        let synced = objects.sync();
        match (&synced, expected) {
            (Ok(synced), Ok(expected)) => assert_eq!(*synced, expected, "{text}"),
            (Err(refused), Err(expected)) => {
                assert_eq!(refused.kind(), StoreErrorKind::Unreachable);
                assert!(refused.to_string().contains(expected), "{text}: {refused}");
            }
            _ => panic!("{text}: {synced:?}"),
        }
    }
    for (logged, replicas, is_durable) in [(1, 1, true), (0, 1, false), (1, 0, false)] {
        let peer = Peer::start();
        let aof = aof.clone();
        peer.tell(move |it| match it.split(' ').next()? {
            "INFO" if it == "INFO server" => Some(info(&aof)),
            "WAITAOF" => {
                let counts = format!("*2\r\n:{logged}\r\n:{replicas}\r\n");
                Some(Reaction::Say(counts.into_bytes()))
            }
            _ => None,
        });
        let mut objects = peer.open();
        assert_eq!(create(&mut objects), Answer::Created);
        assert_eq!(objects.sync().is_ok(), is_durable, "{logged} {replicas}");
    }
}

#[test]
fn a_loss_is_reported_although_another_master_fails() {
    let peers = [Peer::start(), Peer::start()];
    let node = |peer: &Peer| format!("*2\r\n$9\r\n127.0.0.1\r\n:{}\r\n", peer.port);
    let [one, other] = peers.each_ref().map(node);
    let slots =
        format!("*2\r\n*4\r\n:0\r\n:8191\r\n{one}{one}*4\r\n:8192\r\n:16383\r\n{other}{other}");
    let tell = |index: usize, run: &'static str, mark: &'static str| {
        let slots = slots.clone();
        peers[index].tell(move |it| match it {
            "CLUSTER SLOTS" => Some(Reaction::Say(slots.clone().into_bytes())),
            "INFO server" => Some(info(&SERVER.replace("run_id:aa", run))),
            _ if it.starts_with("SET v:mark") => Some(Reaction::Say(mark.into())),
            _ => None,
        });
    };
    tell(0, "run_id:aa", "+OK\r\n");
    tell(1, "run_id:bb", "+OK\r\n");
    let mut objects = peers[0].open();
    tell(0, "run_id:ac", "+OK\r\n");
    tell(1, "run_id:bb", "-OOM command not allowed\r\n");
    assert_eq!(objects.sync().unwrap(), Synced::MayHaveLost);
    assert_eq!(objects.sync().unwrap_err().kind(), StoreErrorKind::Full);
    tell(1, "run_id:bb", "+OK\r\n");
    assert_eq!(objects.sync().unwrap(), Synced::Durable);
}

#[test]
fn the_mark_must_be_written() {
    for (reply, kind) in [
        ("-OOM command not allowed\r\n", StoreErrorKind::Full),
        ("-MOVED 1 127.0.0.1:1\r\n", StoreErrorKind::Unreachable),
        (":1\r\n", StoreErrorKind::Failed),
    ] {
        let peer = Peer::start();
        let mut objects = peer.open();
        assert_eq!(create(&mut objects), Answer::Created);
        peer.say("SET v:mark", reply);
        let refused = objects.sync().unwrap_err();
        assert_eq!(refused.kind(), kind, "{refused}");
    }
}
