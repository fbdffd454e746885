//! Disks behind a connection: volumes on a bucket server, which a second process serves as a disk,
//! and nbdkit's memory disk as their peer.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::link::{Link, Relay};
use super::nbdkit::OverTcp;
use super::oblivio::{Served, Volume};
use super::{Subject, Testbed};
use crate::fio::Target;
use crate::growth::Model;
use crate::tools::{End, Running, run_to_its_end};

/// A bucket server for one client.
struct Store {
    server: Running,
    address: String,
    /// The query of the volume's URL, with the server's public key.
    query: String,
    client_key: PathBuf,
    _folder: TempDir,
}

impl Store {
    fn start(testbed: &Testbed, end: &End) -> Result<Self, String> {
        let folder = testbed.folder()?;
        let path = |name| folder.path().join(name);
        let program = || Command::new(&testbed.programs.oblivio);
        let client_key = path("client.key");
        let mut command = program();
        command.args(["key", "client"]).arg(&client_key).args(["--name", "client"]);
        let allowed = run_to_its_end(&mut command, end)?;
        let failed = |error: std::io::Error| format!("cannot set up a bucket server: {error}");
        fs::write(path("allow"), allowed).map_err(failed)?;
        run_to_its_end(program().args(["key", "server"]).arg(path("server.key")), end)?;
        let mut command = program();
        command.args(["serve", "store", "--json", "--listen", "127.0.0.1:0"]);
        command.arg(path("stores")).arg("--key").arg(path("server.key"));
        command.arg("--allow").arg(path("allow"));
        command.stderr(File::create(path("log")).map_err(failed)?);
        let (server, report) = Running::start_and_hear(&mut command, end)?;
        let of = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
        Ok(Self { server, address: of("address"), query: of("query"), client_key, _folder: folder })
    }

    /// Returns the URL of the server's only volume, with the server at `address`.
    fn url(&self, address: &str) -> OsString {
        let key = self.client_key.display();
        format!("oblivio+tls://{address}/disk?{}&key={key}", self.query).into()
    }
}

/// A volume on a bucket server.
pub struct Remote {
    // Drop order: volume server, relay, bucket server.
    served: Served,
    relay: Option<Relay>,
    store: Store,
    pub model: Model,
}

impl Remote {
    /// Creates and fills a volume without a link, then serves it with `options`, over `link` if
    /// given.
    pub fn start(
        bytes: u64,
        link: Option<&Link>,
        options: &[String],
        testbed: &Testbed,
        end: &End,
    ) -> Result<Self, String> {
        let store = Store::start(testbed, end)?;
        let here = store.url(&store.address);
        let volume = Volume::create_at(here, testbed.folder()?, bytes, &[], testbed, end)?;
        let volume = volume.filled(testbed, end)?;
        let model = volume.model(end)?;
        let relay =
            link.map(|link| Relay::start(link, &store.address, testbed, end)).transpose()?;
        let volume = match &relay {
            Some(relay) => volume.at_location(store.url(&relay.address)),
            None => volume,
        };
        let served = volume.serve_nbd(options, Stdio::inherit(), testbed, end)?;
        Ok(Self { served, relay, store, model })
    }
}

impl Subject for Remote {
    fn target(&self) -> Target {
        self.served.target()
    }

    fn bytes(&self) -> u64 {
        self.served.bytes()
    }

    fn server(&self) -> Option<u32> {
        self.served.server()
    }

    fn storage(&self) -> Option<u32> {
        Some(self.store.server.id())
    }

    fn stop(&mut self) -> Result<(), String> {
        self.served.stop()?;
        self.relay.as_mut().map_or(Ok(()), Relay::stop)?;
        self.store.server.stop()
    }
}

/// nbdkit's memory disk behind a link, without privacy or encryption.
pub struct Peer {
    relay: Relay,
    server: OverTcp,
    bytes: u64,
}

impl Peer {
    pub fn start(bytes: u64, link: &Link, testbed: &Testbed, end: &End) -> Result<Self, String> {
        let server = OverTcp::start(bytes, testbed, end)?;
        let relay = Relay::start(link, &server.address, testbed, end)?;
        Ok(Self { relay, server, bytes })
    }
}

impl Subject for Peer {
    fn target(&self) -> Target {
        Target::Nbd(format!("nbd://{}", self.relay.address))
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn server(&self) -> Option<u32> {
        None
    }

    fn storage(&self) -> Option<u32> {
        Some(self.server.id())
    }

    fn stop(&mut self) -> Result<(), String> {
        self.relay.stop()?;
        self.server.stop()
    }
}
