//! Services of others that store the volume of the demonstration: `SeaweedFS`, which speaks S3, or
//! a Redis cluster. Each runs on this machine, in a folder of the demonstration.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use oblivio::Location;
use oblivio_wire::link::MonotonicTime;
use oblivio_wire::private;

use super::programs::{self, REDIS_CLI, REDIS_SERVER, WEED};
use crate::error::CliError;
use crate::files;

/// The folder of the services in the directory of the demonstration.
pub(super) const FOLDER: &str = "service";

/// Time limit for the start of a service.
const STARTS_WITHIN: Duration = Duration::from_secs(90);

/// Time that a killed Redis master stays down. Its replica takes over meanwhile.
const DEAD_FOR: Duration = Duration::from_secs(1);

const BUCKET: &str = "demo";
const MASTERS: usize = 3;

/// The keys of the S3 service: it listens on this machine only, and ends with the demonstration.
const ACCESS_KEY: &str = "demo";
const SECRET_KEY: &str = "a secret of the demonstration";

/// A running service.
pub(super) enum DemoService {
    /// One process.
    S3 { folder: PathBuf, ports: [u16; 8], process: Process },
    /// Masters and replicas.
    Redis { folder: PathBuf, nodes: Vec<(u16, Process)> },
}

/// A process that is killed when it is dropped.
pub(super) struct Process(Child);

impl Process {
    fn start(command: &mut Command, log: &Path) -> Result<Self, CliError> {
        let log = File::options().append(true).create(true).open(log);
        let log = log.and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(|error| files::cannot_write(Path::new("log"), &error))?;
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        child.map(Self).map_err(|error| programs::failed(command, &error))
    }

    fn kill(&mut self) {
        // An error means that the process has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl DemoService {
    /// Starts `SeaweedFS` with one bucket.
    pub(super) fn s3(demo_dir: &Path) -> Result<Self, CliError> {
        let folder = new_folder(demo_dir)?;
        let keys = format!(
            r#"{{"identities": [{{"name": "demo", "actions": ["Admin", "Read", "Write", "List"],
               "credentials": [{{"accessKey": "{ACCESS_KEY}", "secretKey": "{SECRET_KEY}"}}]}}]}}"#
        );
        write_private(&folder.join("s3.json"), &keys)?;
        let credentials =
            format!("access_key_id = {ACCESS_KEY}\nsecret_access_key = {SECRET_KEY}\n");
        write_private(&folder.join("credentials"), &credentials)?;
        make_dir(&folder.join("data"))?;
        let ports = free_ports()?;
        let process = start_s3(&folder, ports)?;
        let [s3, filer, ..] = ports;
        wait_until("SeaweedFS", || request(filer, "POST", &format!("/buckets/{BUCKET}/")) == 201)?;
        // It refuses requests without a signature once it knows the keys.
        wait_until("SeaweedFS", || request(s3, "GET", "/") == 403)?;
        Ok(Self::S3 { folder, ports, process })
    }

    /// Starts a Redis cluster of three masters with a replica each.
    pub(super) fn redis(demo_dir: &Path) -> Result<Self, CliError> {
        let folder = new_folder(demo_dir)?;
        let ports: [u16; 2 * MASTERS] = free_cluster_ports()?;
        let mut nodes = Vec::new();
        for port in ports {
            nodes.push((port, start_redis(&folder, port)?));
        }
        for port in ports {
            wait_until("redis-server", || TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        }
        let mut create = Command::new(REDIS_CLI.find()?);
        create.args(["--cluster", "create"]);
        create.args(ports.map(|port| format!("127.0.0.1:{port}")));
        programs::run(create.args(["--cluster-replicas", "1", "--cluster-yes"]))?;
        let service = Self::Redis { folder, nodes };
        for port in ports {
            wait_until("the Redis cluster", || {
                info(port, &["cluster", "info"]).contains("cluster_state:ok") && {
                    let replication = info(port, &["info", "replication"]);
                    replication.contains("connected_slaves:1")
                        || replication.contains("master_link_status:up")
                }
            })?;
        }
        Ok(service)
    }

    /// The location of the volume.
    pub(super) fn location(&self) -> Result<Location, CliError> {
        let url = match self {
            Self::S3 { folder, ports: [s3, ..], .. } => {
                let credentials = folder.join("credentials");
                let credentials = credentials.to_str().ok_or_else(|| {
                    let path = credentials.display();
                    CliError::Input(format!("{path} is not UTF-8: choose another --output"))
                })?;
                let credentials =
                    credentials.replace('%', "%25").replace('&', "%26").replace('?', "%3F");
                format!(
                    "s3://{BUCKET}/volume?credentials={credentials}\
                     &endpoint=http://127.0.0.1:{s3}&plain"
                )
            }
            Self::Redis { nodes, .. } => {
                let nodes: Vec<_> =
                    nodes.iter().map(|(port, _)| format!("127.0.0.1:{port}")).collect();
                format!("redis://{}/volume?plain", nodes.join(","))
            }
        };
        url.parse().map_err(|error| CliError::Engine(format!("{url}: {error}")))
    }

    /// Kills the S3 server or a Redis master, and starts it again.
    pub(super) fn kill_and_start_one(&mut self) -> Result<(), CliError> {
        match self {
            Self::S3 { folder, ports, process } => {
                process.kill();
                *process = start_s3(folder, *ports)?;
            }
            Self::Redis { folder, nodes } => {
                let is_master = |port| info(port, &["role"]).starts_with("master");
                let at = nodes.iter().position(|(port, _)| is_master(*port)).unwrap_or_default();
                let (port, process) = &mut nodes[at];
                process.kill();
                thread::sleep(DEAD_FOR);
                *process = start_redis(folder, *port)?;
            }
        }
        Ok(())
    }

    /// A description of the server that [`Self::kill_and_start_one`] kills, as the subject of a
    /// sentence.
    pub(super) fn killed(&self) -> &'static str {
        match self {
            Self::S3 { .. } => "the S3 server",
            Self::Redis { .. } => "a Redis master",
        }
    }
}

fn start_s3(folder: &Path, ports: [u16; 8]) -> Result<Process, CliError> {
    let [s3, filer, s3_grpc, filer_grpc, master, master_grpc, volume, volume_grpc] = ports;
    let mut command = Command::new(WEED.find()?);
    command
        .current_dir(folder)
        .args(["server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-dir=data"])
        .args(["-master.telemetry=false", "-master.electionTimeout=1s"])
        .args(["-master.volumeSizeLimitMB=64", "-volume.max=30", "-s3.config=s3.json"])
        .args(["-s3.port.iceberg=0", "-s3.port.lance=0"]);
    for (option, port) in [
        ("s3.port", s3),
        ("s3.port.grpc", s3_grpc),
        ("filer.port", filer),
        ("filer.port.grpc", filer_grpc),
        ("master.port", master),
        ("master.port.grpc", master_grpc),
        ("volume.port", volume),
        ("volume.port.grpc", volume_grpc),
    ] {
        command.arg(format!("-{option}={port}"));
    }
    Process::start(&mut command, &folder.join("log"))
}

fn start_redis(folder: &Path, port: u16) -> Result<Process, CliError> {
    let dir = folder.join(port.to_string());
    make_dir(&dir)?;
    let mut command = Command::new(REDIS_SERVER.find()?);
    command
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
        .arg("--dir")
        .arg(&dir)
        .args(["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"])
        .args(["--appendonly", "yes", "--appendfsync", "always"])
        .args(["--maxmemory-policy", "noeviction", "--repl-diskless-sync-delay", "0"]);
    Process::start(&mut command, &folder.join("log"))
}

/// The answer of a Redis server to a command; empty if it does not answer.
fn info(port: u16, command: &[&str]) -> String {
    let Ok(program) = REDIS_CLI.find() else { return String::new() };
    let mut cli = Command::new(program);
    cli.args(["-p", &port.to_string()]).args(command);
    programs::outcome(&mut cli).map(|(_, printed)| printed).unwrap_or_default()
}

/// The status of the answer to an HTTP request without a body; 0 if there is no answer.
fn request(port: u16, method: &str, path: &str) -> u16 {
    let ask = || -> io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 0\r\n\
             Connection: close\r\n\r\n"
        )?;
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let status = ask().ok().and_then(|answer| answer.split(' ').nth(1)?.parse().ok());
    status.unwrap_or(0)
}

fn wait_until(what: &str, mut is_ready: impl FnMut() -> bool) -> Result<(), CliError> {
    let until = MonotonicTime::now().after(STARTS_WITHIN);
    while !is_ready() {
        if until.left().is_none() {
            let message = format!("{what} did not start within {STARTS_WITHIN:?}: see its log");
            return Err(CliError::Engine(message));
        }
        thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Ports that are free now. All are bound before the first is released.
fn free_ports<const COUNT: usize>() -> Result<[u16; COUNT], CliError> {
    let bound: Result<Vec<_>, _> = (0..COUNT).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let ports = bound.and_then(|bound| {
        bound
            .iter()
            .map(|listener| Ok(listener.local_addr()?.port()))
            .collect::<io::Result<Vec<_>>>()
    });
    let failed = |error: io::Error| CliError::Engine(format!("no free ports: {error}"));
    let ports = ports.map_err(failed)?;
    ports.try_into().map_err(|_| CliError::Engine("no free ports".into()))
}

/// Free ports of Redis nodes, which also listen on the port that is 10,000 higher.
fn free_cluster_ports<const COUNT: usize>() -> Result<[u16; COUNT], CliError> {
    let mut found = Vec::new();
    for port in (21_000..55_000).step_by(7) {
        let bound = [port, port + 10_000].map(|port| TcpListener::bind(("127.0.0.1", port)));
        if bound.iter().all(Result::is_ok) {
            found.push(port);
        }
        if found.len() == COUNT {
            break;
        }
    }
    found.try_into().map_err(|_| CliError::Engine("no free ports for a Redis cluster".into()))
}

fn new_folder(demo_dir: &Path) -> Result<PathBuf, CliError> {
    let folder = demo_dir.join(FOLDER);
    make_dir(&folder)?;
    Ok(folder)
}

fn make_dir(path: &Path) -> Result<(), CliError> {
    private::dir_builder()
        .recursive(true)
        .create(path)
        .map_err(|error| files::cannot_write(path, &error))
}

fn write_private(path: &Path, text: &str) -> Result<(), CliError> {
    let file = private::file_options().write(true).create(true).truncate(true).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| files::cannot_write(path, &error))
}
