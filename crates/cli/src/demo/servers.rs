//! Server processes that store the volume of the demonstration: a bucket server, or share servers.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use oblivio::Location;
use oblivio_wire::keys::{KeyError, SecretKey};
use serde_json::Value;

use super::programs;
use crate::error::CliError;
use crate::files;

/// The owner's name on the servers.
const OWNER: &str = "owner";

/// Maximum number of share servers.
const SERVERS_MAX: usize = 7;

/// Time that a killed share server stays down. With five servers, the client does not wait for it.
const DEAD_FOR: Duration = Duration::from_secs(2);

/// The servers that store the volume.
pub(super) struct DemoServers {
    folder: PathBuf,
    kind: ServerKind,
    servers: Vec<RunningServer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ServerKind {
    Store,
    Shares,
}

/// A server, killed when dropped.
struct RunningServer {
    child: Child,
    address: String,
    key: String,
}

impl DemoServers {
    /// The names of all files and folders that servers of either kind need in the directory of the
    /// demonstration.
    pub(super) fn made() -> impl Iterator<Item = String> {
        let of_each = (1..=SERVERS_MAX).flat_map(|number| [folder_name(number), key_name(number)]);
        ["client.key", "allow", "peers"].map(str::to_owned).into_iter().chain(of_each)
    }

    /// Starts a bucket server on any free port of this machine.
    pub(super) fn store(folder: &Path) -> Result<Self, CliError> {
        Self::start(folder, ServerKind::Store, &["127.0.0.1:0".to_owned()])
    }

    /// Starts `servers` share servers, which know each other.
    pub(super) fn shares(folder: &Path, servers: usize) -> Result<Self, CliError> {
        let no_port =
            |error| CliError::Engine(format!("no free ports for servers on this machine: {error}"));
        // The ports must be known before any server starts. All are bound before the first is
        // released.
        let taken: Vec<_> = (0..servers)
            .map(|_| TcpListener::bind("127.0.0.1:0"))
            .collect::<Result<_, _>>()
            .map_err(no_port)?;
        let addresses: Vec<_> = taken
            .iter()
            .map(|listener| listener.local_addr().map(|address| address.to_string()))
            .collect::<Result<_, _>>()
            .map_err(no_port)?;
        drop(taken);
        Self::start(folder, ServerKind::Shares, &addresses)
    }

    fn start(folder: &Path, kind: ServerKind, addresses: &[String]) -> Result<Self, CliError> {
        let unusable = |error: KeyError| CliError::Output(error.to_string());
        let key = |name: &str| {
            let key = SecretKey::generate().map_err(unusable)?;
            let path = folder.join(name);
            key.write(&path).map_err(|error| files::cannot_write(&path, &error))?;
            Ok::<_, CliError>(key.public())
        };
        let owner = key("client.key")?;
        files::write(&folder.join("allow"), &format!("{owner} {OWNER}\n"))?;
        let mut peers = String::new();
        for (number, address) in (1..).zip(addresses) {
            peers += &format!("{} {address}\n", key(&key_name(number))?);
        }
        files::write(&folder.join("peers"), &peers)?;
        let mut servers = Self { folder: folder.to_owned(), kind, servers: Vec::new() };
        for (number, address) in (1..).zip(addresses) {
            let server = servers.listen(number, address)?;
            servers.servers.push(server);
        }
        Ok(servers)
    }

    fn listen(&self, number: usize, address: &str) -> Result<RunningServer, CliError> {
        let folder = &self.folder;
        let mut command = programs::oblivio()?;
        command.args(["serve", if self.kind == ServerKind::Store { "store" } else { "shares" }]);
        command.arg(folder.join(folder_name(number)));
        command.arg("--key").arg(folder.join(key_name(number)));
        command.arg("--allow").arg(folder.join("allow"));
        if self.kind == ServerKind::Shares {
            command.arg("--peers").arg(folder.join("peers"));
            // Killing one of the servers is part of the demonstration, so hide the messages about
            // it.
            command.stderr(Stdio::null());
        }
        command.args(["--listen", address, "--json"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let not_started = |error| CliError::Engine(format!("cannot start a server: {error}"));
        let mut child = command.spawn().map_err(not_started)?;
        let mut report = String::new();
        let lines = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
        for line in lines {
            report += &line.map_err(not_started)?;
            if report.ends_with('}') {
                break;
            }
        }
        let report: Value = serde_json::from_str(&report).unwrap_or_default();
        let of = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        let (address, key) = (of("address"), of("key"));
        Ok(RunningServer { child, address, key })
    }

    /// The location of the volume.
    pub(super) fn location(&self) -> Result<Location, CliError> {
        let key = self.folder.join("client.key");
        let key = key.to_str().ok_or_else(|| {
            CliError::Input(format!("{} is not UTF-8: choose another --output", key.display()))
        })?;
        let key = key.replace('%', "%25").replace('&', "%26").replace('?', "%3f");
        let all = |of: fn(&RunningServer) -> &str| {
            self.servers.iter().map(of).collect::<Vec<_>>().join(",")
        };
        let (addresses, keys) = (all(|server| &server.address), all(|server| &server.key));
        // With five servers, one of which may collude, one server may be missing.
        let (scheme, more) = match self.kind {
            ServerKind::Store => ("oblivio+tls", ""),
            ServerKind::Shares => ("shares", "&collude=1"),
        };
        let url = format!("{scheme}://{addresses}/volume?server={keys}&key={key}{more}");
        url.parse()
            .map_err(|error| CliError::Engine(format!("a server reported no address: {error}")))
    }

    /// Kills the server with the highest number, and restarts it at the same address. A share
    /// server stays down for [`DEAD_FOR`].
    pub(super) fn kill_and_start_one(&mut self) -> Result<(), CliError> {
        let last = self.servers.len() - 1;
        self.servers[last].kill();
        if self.kind == ServerKind::Shares {
            thread::sleep(DEAD_FOR);
        }
        let address = self.servers[last].address.clone();
        self.servers[last] = self.listen(last + 1, &address)?;
        Ok(())
    }

    /// A description of the server that [`Self::kill_and_start_one`] kills, as the subject of a
    /// sentence.
    pub(super) fn killed(&self) -> &'static str {
        match self.kind {
            ServerKind::Store => "the bucket server",
            ServerKind::Shares => "one of the share servers",
        }
    }
}

fn folder_name(number: usize) -> String {
    format!("server-{number}")
}

fn key_name(number: usize) -> String {
    format!("server-{number}.key")
}

impl RunningServer {
    fn kill(&mut self) {
        // An error means that the server has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.kill();
    }
}
