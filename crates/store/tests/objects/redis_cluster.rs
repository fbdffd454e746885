//! A Redis cluster of three masters and three replicas on this machine.
//!
//! Set `OBLIVIO_REDIS_SERVER` to the path of another server, such as `valkey-server`.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use oblivio_store::RedisLocation;
use oblivio_store::objects::resp::{self, Decoder, Reply};
use oblivio_wire::link::MonotonicTime;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustix::process::{Pid, Signal, kill_process};

const MASTERS: usize = 3;
const NODES: usize = 2 * MASTERS;
const SLOTS: usize = 16384;

/// The password of the default user.
pub(crate) const PASSWORD: &str = "correct horse";

/// The time that a change of the cluster may take on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// The cluster of this process. It is never dropped: the shells that started its nodes kill them
/// when this process ends.
static SHARED: Mutex<Option<RedisCluster>> = Mutex::new(None);

/// The shared cluster, for one test at a time. All its nodes are up.
pub(crate) struct SharedCluster(MutexGuard<'static, Option<RedisCluster>>);

impl SharedCluster {
    pub(crate) fn get() -> Self {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.get_or_insert_with(RedisCluster::start).restore();
        Self(shared)
    }
}

impl std::ops::Deref for SharedCluster {
    type Target = RedisCluster;

    fn deref(&self) -> &RedisCluster {
        self.0.as_ref().unwrap()
    }
}

impl std::ops::DerefMut for SharedCluster {
    fn deref_mut(&mut self) -> &mut RedisCluster {
        self.0.as_mut().unwrap()
    }
}

/// A folder that is removed after this process has ended, or when this is dropped.
struct Folder {
    path: PathBuf,
    _keeper: Keeper,
}

/// A shell that runs a command when its input ends: when this is dropped, or this process ends.
struct Keeper {
    input: Option<ChildStdin>,
    shell: Child,
}

impl Keeper {
    fn start(script: &str, arguments: &[&str]) -> (Self, String) {
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).args(arguments);
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut shell = shell.spawn().expect("sh cannot be started");
        let mut line = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self { input: shell.stdin.take(), shell }, line.trim().to_owned())
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.shell.wait();
    }
}

impl Folder {
    fn new() -> Self {
        let path = tempfile::Builder::new().prefix("oblivio-redis").tempdir().unwrap().keep();
        let script = "echo; exec >/dev/null; read _; sleep 1; rm -rf \"$1\"";
        let (keeper, _) = Keeper::start(script, &[path.to_str().unwrap()]);
        Self { path, _keeper: keeper }
    }
}

/// A server of its own, which is killed when this is dropped.
pub(crate) struct Node {
    port: u16,
    /// The port with TLS; 0 without.
    tls_port: u16,
    arguments: Vec<String>,
    process: Option<(Keeper, Pid)>,
    is_stopped: bool,
}

impl Node {
    fn start(&mut self, program: &Path) {
        let script = "\"$@\" >/dev/null 2>&1 & echo $!; exec >/dev/null; read _; kill -9 $!; wait";
        let arguments = self.arguments.iter().map(String::as_str);
        let arguments: Vec<_> = [program.to_str().unwrap()].into_iter().chain(arguments).collect();
        let (keeper, pid) = Keeper::start(script, &arguments);
        let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
        self.process = Some((keeper, pid));
        self.is_stopped = false;
    }

    fn signal(&mut self, signal: Signal) {
        let (_, pid) = self.process.as_ref().expect("the node is down");
        kill_process(*pid, signal).unwrap();
        self.is_stopped = signal == Signal::STOP;
    }

    /// A client of this node, which must be up.
    pub(crate) fn client(&self) -> Client {
        eventually("a connection to a node", || Client::connect(self.port))
    }
}

pub(crate) struct RedisCluster {
    program: PathBuf,
    nodes: Vec<Node>,
    has_tls: bool,
    /// The nodes are killed before it is removed.
    folder: Folder,
}

/// The role of a node in the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Role {
    id: String,
    /// The identifier of its master; `None` for a master.
    master: Option<String>,
    slots: String,
}

impl RedisCluster {
    /// Starts a cluster.
    pub(crate) fn start() -> Self {
        let folder = Folder::new();
        let (program, has_tls) = program(&folder.path);
        write_certificates(&folder.path);
        write_private(&folder.path.join("password"), PASSWORD);
        let ports = free_ports(3 * NODES);
        let nodes = ports.chunks(3).map(|ports| {
            let [port, tls_port, bus_port] = ports.try_into().unwrap();
            let dir = folder.path.join(port.to_string());
            fs::create_dir(&dir).unwrap();
            let mut arguments = common_arguments(port, &dir);
            arguments.extend(
                ["--cluster-enabled yes", "--cluster-node-timeout 2000"].map(words).concat(),
            );
            arguments.extend(words(&format!("--cluster-port {bus_port}")));
            arguments.extend(words("--appendonly yes --appendfsync always"));
            arguments.extend(["--requirepass", PASSWORD, "--masterauth", PASSWORD].map(Into::into));
            let tls_port = if has_tls { tls_port } else { 0 };
            if has_tls {
                let file = |name: &str| folder.path.join(name).display().to_string();
                arguments.extend(words(&format!("--tls-port {tls_port} --tls-auth-clients no")));
                // Otherwise the nodes name their ports without TLS to clients.
                arguments.extend(words("--tls-cluster yes --tls-replication yes"));
                arguments.extend(["--tls-cert-file".into(), file("node.pem")]);
                arguments.extend(["--tls-key-file".into(), file("node.key")]);
                arguments.extend(["--tls-ca-cert-file".into(), file("ca.pem")]);
            }
            Node { port, tls_port, arguments, process: None, is_stopped: false }
        });
        let mut cluster = Self { program, nodes: nodes.collect(), has_tls, folder };
        let bus_ports: Vec<_> = ports.chunks(3).map(|ports| ports[2]).collect();
        cluster.nodes.iter_mut().for_each(|node| node.start(&cluster.program));
        cluster.form(&bus_ports);
        cluster
    }

    fn form(&mut self, bus_ports: &[u16]) {
        let mut clients: Vec<_> = self.nodes.iter().map(Node::client).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            client.ok(&format!("CLUSTER SET-CONFIG-EPOCH {}", index + 1));
            if index < MASTERS {
                let slot = |index| index * SLOTS / MASTERS;
                let (first, last) = (slot(index), slot(index + 1) - 1);
                client.ok(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
            }
        }
        for (node, bus_port) in self.nodes.iter().zip(bus_ports).skip(1) {
            let port = if self.has_tls { node.tls_port } else { node.port };
            clients[0].ok(&format!("CLUSTER MEET 127.0.0.1 {port} {bus_port}"));
        }
        let ids: Vec<_> = clients.iter_mut().map(|client| client.text("CLUSTER MYID")).collect();
        for (index, client) in clients.iter_mut().enumerate().skip(MASTERS) {
            let command = format!("CLUSTER REPLICATE {}", ids[index - MASTERS]);
            eventually("a replica", || {
                matches!(client.call(&command), Reply::Status(_)).then_some(())
            });
        }
        self.wait_until_healthy();
    }

    /// Resumes and starts all nodes, resets their settings, and waits until all replicas are in
    /// step.
    pub(crate) fn restore(&mut self) {
        for node in &mut self.nodes {
            if node.process.is_none() {
                node.start(&self.program);
            } else if node.is_stopped {
                node.signal(Signal::CONT);
            }
        }
        for node in &self.nodes {
            for settings in [
                "appendonly yes appendfsync always maxmemory 0",
                "maxmemory-policy noeviction min-replicas-to-write 0",
            ] {
                // A node that is loading refuses.
                eventually("settings of a node", || {
                    let reply = node.client().call(&format!("CONFIG SET {settings}"));
                    matches!(reply, Reply::Status(_)).then_some(())
                });
            }
        }
        self.wait_until_healthy();
    }

    pub(crate) fn wait_until_healthy(&self) {
        eventually("a healthy cluster", || {
            let mut masters = 0;
            for node in &self.nodes {
                let mut client = Client::connect(node.port)?;
                let nodes = client.text("CLUSTER NODES");
                let is_formed = nodes.lines().count() == NODES
                    && !nodes.contains("fail")
                    && !nodes.contains("handshake");
                let is_ok = client.text("CLUSTER INFO").contains("cluster_state:ok");
                let replication = client.text("INFO replication");
                let is_master = replication.contains("role:master");
                let is_in_step = if is_master {
                    replication.contains("connected_slaves:1\r")
                        && replication.contains("state=online")
                } else {
                    replication.contains("master_link_status:up")
                };
                masters += usize::from(is_master);
                (is_formed && is_ok && is_in_step).then_some(())?;
            }
            (masters == MASTERS).then_some(())
        });
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.has_tls
    }

    /// The location of a volume, with the password and TLS if the server has it.
    pub(crate) fn location(&self, volume: &str) -> RedisLocation {
        let security = if self.has_tls { "ca=CA" } else { "plain" };
        self.location_with(volume, &format!("{security}&password=PASSWORD"))
    }

    /// The location of a volume with these parameters. `CA` and `PASSWORD` stand for files.
    pub(crate) fn location_with(&self, volume: &str, parameters: &str) -> RedisLocation {
        let is_plain = parameters.split('&').any(|it| it == "plain");
        let port = |node: &Node| if is_plain { node.port } else { node.tls_port };
        let seeds = [0, 4].map(|index: usize| format!("127.0.0.1:{}", port(&self.nodes[index])));
        let file = |name: &str| self.folder.path.join(name).display().to_string();
        let parameters = parameters.replace("CA", &file("ca.pem"));
        let parameters = parameters.replace("PASSWORD", &file("password"));
        let rest = format!("{}/{volume}?{parameters}", seeds.join(","));
        RedisLocation::parse(rest.as_bytes()).unwrap()
    }

    /// Writes a file that only its owner may read, and returns its path.
    pub(crate) fn write_file(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.folder.path.join(name);
        write_private(&path, contents);
        path
    }

    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The index of the master of a key.
    pub(crate) fn master_of(&self, key: &str) -> usize {
        let slot = self.up().client().number(&format!("CLUSTER KEYSLOT {key}"));
        let owns = |role: &Role| {
            role.slots.split_whitespace().any(|range| {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                (first.parse().unwrap()..=last.parse().unwrap()).contains(&slot)
            })
        };
        self.roles().iter().position(|role| role.as_ref().is_some_and(owns)).unwrap()
    }

    /// The index of the replica of a master.
    pub(crate) fn replica_of(&self, master: usize) -> usize {
        let roles = self.roles();
        let id = &roles[master].as_ref().unwrap().id;
        let replicates = |role: &Role| role.master.as_ref() == Some(id);
        roles.iter().position(|role| role.as_ref().is_some_and(replicates)).unwrap()
    }

    fn up(&self) -> &Node {
        let is_up = |node: &&Node| node.process.is_some() && !node.is_stopped;
        self.nodes.iter().find(is_up).unwrap()
    }

    /// The roles of the nodes that are up, as each sees itself.
    fn roles(&self) -> Vec<Option<Role>> {
        let role = |node: &Node| {
            let is_up = node.process.is_some() && !node.is_stopped;
            let nodes = is_up.then(|| node.client().text("CLUSTER NODES"))?;
            let own = nodes.lines().find(|line| line.contains("myself"))?;
            let fields: Vec<_> = own.split(' ').collect();
            Some(Role {
                id: fields[0].into(),
                master: (fields[3] != "-").then(|| fields[3].into()),
                slots: fields[8..].join(" "),
            })
        };
        self.nodes.iter().map(role).collect()
    }

    /// Kills a node with `SIGKILL`.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].process = None;
    }

    /// Stops a node with `SIGSTOP`: it keeps its links and does not answer.
    pub(crate) fn stop(&mut self, node: usize) {
        self.nodes[node].signal(Signal::STOP);
    }

    pub(crate) fn resume(&mut self, node: usize) {
        self.nodes[node].signal(Signal::CONT);
    }

    /// Starts a killed node again.
    pub(crate) fn start_again(&mut self, node: usize) {
        self.nodes[node].start(&self.program);
    }

    /// Makes a replica the master, and its master the replica. Both keep running.
    pub(crate) fn swap_roles(&self, replica: usize) {
        let mut client = self.nodes[replica].client();
        eventually("an exchange of roles", || {
            client.call("CLUSTER FAILOVER");
            // The others refuse to vote if the same master was replaced a moment ago.
            let until = MonotonicTime::now().after(Duration::from_secs(1));
            while until.left().is_some() {
                if client.text("INFO replication").contains("role:master") {
                    return Some(());
                }
                thread::sleep(Duration::from_millis(20));
            }
            None
        });
        self.wait_until_healthy();
    }

    /// Waits until a node is a master with slots.
    pub(crate) fn wait_for_master(&self, node: usize) {
        eventually("a failover", || {
            let mut client = Client::connect(self.nodes[node].port)?;
            let is_master = client.text("INFO replication").contains("role:master");
            let is_ok = client.text("CLUSTER INFO").contains("cluster_state:ok");
            (is_master && is_ok).then_some(())
        });
    }
}

/// A server without cluster mode, with a location for the volume `v`.
pub(crate) struct SingleServer {
    _node: Node,
    pub(crate) location: RedisLocation,
    _folder: Folder,
}

impl SingleServer {
    pub(crate) fn start() -> Self {
        let folder = Folder::new();
        let (program, _) = program(&folder.path);
        let port = free_ports(1)[0];
        let arguments = common_arguments(port, &folder.path);
        let mut node = Node { port, tls_port: 0, arguments, process: None, is_stopped: false };
        node.start(&program);
        eventually("a server", || Client::connect_without_password(port));
        let location = format!("127.0.0.1:{port}/v?plain");
        let location = RedisLocation::parse(location.as_bytes()).unwrap();
        Self { _node: node, location, _folder: folder }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn common_arguments(port: u16, dir: &Path) -> Vec<String> {
    let mut arguments = words(&format!("--port {port} --bind 127.0.0.1 --dir"));
    arguments.extend([dir.display().to_string(), "--save".into(), String::new()]);
    arguments.extend(["--logfile".into(), dir.join("log").display().to_string()]);
    arguments.extend(words("--repl-diskless-sync-delay 0"));
    arguments
}

/// The path of the server's program, and whether it has TLS.
fn program(folder: &Path) -> (PathBuf, bool) {
    if let Some(program) = env::var_os("OBLIVIO_REDIS_SERVER") {
        let program = PathBuf::from(program);
        let built = Command::new(&program).args(["--tls-port", "0", "--version"]).output();
        built.unwrap_or_else(|error| panic!("{} cannot be started: {error}", program.display()));
        // The server of the Python package has no TLS.
        return (program, env::var_os("OBLIVIO_REDIS_WITHOUT_TLS").is_none());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let find = |name: &str| env::split_paths(&path).map(|it| it.join(name)).find(|it| it.exists());
    // Debian's package `redis-tools` has the server under this name, without a system service. The
    // program does what its name says.
    let found = find("redis-check-rdb").or_else(|| find("redis-server"));
    let found = found.expect("this test needs redis-server; `make test-tools` installs it");
    let program = folder.join("redis-server");
    symlink(found, &program).unwrap();
    (program, true)
}

fn free_ports(count: usize) -> Vec<u16> {
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect()
}

fn write_private(path: &Path, contents: &str) {
    fs::write(path, contents).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// Writes an authority to `ca.pem`, the certificate of all nodes to `node.pem`, their key to
/// `node.key`, and another authority to `other.pem`.
fn write_certificates(folder: &Path) {
    let authority = || {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        (certificate.pem(), Issuer::new(params, key))
    };
    let (ca, issuer) = authority();
    let key = KeyPair::generate().unwrap();
    let mut node = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap();
    // OpenSSL takes a certificate with the name of its authority for a self-signed one.
    node.distinguished_name.push(DnType::CommonName, "node");
    let node = node.signed_by(&key, &issuer).unwrap();
    for (name, contents) in [
        ("ca.pem", ca),
        ("other.pem", authority().0),
        ("node.pem", node.pem()),
        ("node.key", key.serialize_pem()),
    ] {
        write_private(&folder.join(name), &contents);
    }
}

/// Tries `attempt` until it succeeds.
pub(crate) fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let until = MonotonicTime::now().after(SOON);
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        assert!(until.left().is_some(), "waited {SOON:?} for {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A link to one node that waits for each reply.
pub(crate) struct Client {
    stream: TcpStream,
    decoder: Decoder,
}

impl Client {
    fn connect(port: u16) -> Option<Self> {
        let mut client = Self::connect_without_password(port)?;
        let reply = client.try_call(&["AUTH", PASSWORD])?;
        matches!(reply, Reply::Status(_)).then_some(client)
    }

    fn connect_without_password(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Some(Self { stream, decoder: Decoder::default() })
    }

    fn try_call(&mut self, words: &[&str]) -> Option<Reply> {
        let words: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        self.stream.write_all(&resp::Command::new(&words).segments().concat()).ok()?;
        let mut buffer = [0; 4096];
        loop {
            if let Some(reply) = self.decoder.next(1 << 20).unwrap() {
                return Some(reply);
            }
            let bytes = self.stream.read(&mut buffer).ok().filter(|bytes| *bytes > 0)?;
            self.decoder.feed(&buffer[..bytes]);
        }
    }

    /// Sends a command of these words.
    pub(crate) fn call_words(&mut self, words: &[&str]) -> Reply {
        self.try_call(words).expect("the node closed the link")
    }

    /// Sends a command whose words are separated by spaces.
    pub(crate) fn call(&mut self, command: &str) -> Reply {
        self.call_words(&command.split(' ').collect::<Vec<_>>())
    }

    /// Sends a command that is answered `OK`.
    pub(crate) fn ok(&mut self, command: &str) {
        let reply = self.call(command);
        assert!(matches!(reply, Reply::Status(_)), "{command}: {reply:?}");
    }

    /// Sends a command whose reply is a number.
    pub(crate) fn number(&mut self, command: &str) -> i64 {
        match self.call(command) {
            Reply::Integer(number) => number,
            reply => panic!("{command}: {reply:?}"),
        }
    }

    /// Sends a command whose reply is a text.
    pub(crate) fn text(&mut self, command: &str) -> String {
        match self.call(command) {
            Reply::Bulk(text) => String::from_utf8(text.to_vec()).unwrap(),
            // The node was told to do something that takes time, or is loading.
            reply => format!("{reply:?}"),
        }
    }
}
