//! A bucket server in a process of its own, which keeps the volume of the demonstration.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use oblivio_store::Location;
use oblivio_wire::keys::{KeyError, SecretKey};
use serde_json::Value;

use super::programs;
use crate::error::CliError;
use crate::files;

/// What the server calls the owner.
const OWNER: &str = "owner";

/// What it makes in the directory of the demonstration.
pub(super) const MADE: [&str; 4] = ["stores", "server.key", "client.key", "allow"];

/// Killed when dropped.
pub(super) struct StoreServer {
    folder: PathBuf,
    child: Child,
    address: String,
    /// Of the URLs of its volumes.
    query: String,
}

impl StoreServer {
    /// Makes keys for both sides, and starts a server on any free port of this machine.
    pub(super) fn start(folder: &Path) -> Result<Self, CliError> {
        let unusable = |error: KeyError| CliError::Output(error.to_string());
        let key = |name| {
            let key = SecretKey::generate().map_err(unusable)?;
            key.write(&folder.join(name)).map_err(unusable)?;
            Ok::<_, CliError>(key.public())
        };
        key("server.key")?;
        let owner = key("client.key")?;
        files::write(&folder.join("allow"), &format!("{owner} {OWNER}\n"))?;
        Self::listen(folder, "127.0.0.1:0")
    }

    fn listen(folder: &Path, address: &str) -> Result<Self, CliError> {
        let mut command = programs::oblivio()?;
        command.args(["serve", "store"]).arg(folder.join("stores"));
        command.arg("--key").arg(folder.join("server.key"));
        command.arg("--allow").arg(folder.join("allow"));
        command.args(["--listen", address, "--json"]).stdin(Stdio::null()).stdout(Stdio::piped());
        let not_started =
            |error| CliError::Engine(format!("the bucket server does not start: {error}"));
        let mut child = command.spawn().map_err(not_started)?;
        let mut said = String::new();
        let lines = child.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
        for line in lines {
            said += &line.map_err(not_started)?;
            if said.ends_with('}') {
                break;
            }
        }
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        let of = |name: &str| said[name].as_str().unwrap_or_default().to_owned();
        let (address, query) = (of("address"), of("query"));
        Ok(Self { folder: folder.to_owned(), child, address, query })
    }

    /// Where the volume is.
    pub(super) fn location(&self) -> Result<Location, CliError> {
        let key = self.folder.join("client.key");
        let key = key.to_str().ok_or_else(|| {
            CliError::Input(format!("{} is no text: choose another --output", key.display()))
        })?;
        let key = key.replace('%', "%25").replace('&', "%26").replace('?', "%3f");
        let url = format!("oblivio+tls://{}/volume?{}&key={key}", self.address, self.query);
        url.parse().map_err(|error| {
            CliError::Engine(format!("the bucket server did not say where it is: {error}"))
        })
    }

    /// Ends it without a warning, and starts it again in its place.
    pub(super) fn kill_and_start(&mut self) -> Result<(), CliError> {
        self.kill();
        *self = Self::listen(&self.folder, &self.address)?;
        Ok(())
    }

    fn kill(&mut self) {
        // One that has ended by itself is as dead.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        self.kill();
    }
}
