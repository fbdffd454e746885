//! nbdkit: network block devices without privacy, some with encryption.

use std::ffi::OsString;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{Description, Subject, Testbed, sparse_file};
use crate::fio::Target;
use crate::tools::{End, Running, run_to_its_end};

pub const FILE_PLUGIN: Description = Description {
    name: "nbdkit file",
    note: "through the page cache, not encrypted",
    is_filled: true,
    is_fuse: false,
    is_volume: false,
    programs: &["nbdkit"],
    start: |bytes, testbed, end| {
        let file = |path: &Path, _: &End| {
            sparse_file(path, bytes)?;
            Ok(vec!["file".into(), path.into()])
        };
        Ok(Box::new(Nbdkit::start("file", bytes, file, testbed, end)?))
    },
};

pub const MEMORY_PLUGIN: Description = Description {
    name: "nbdkit memory",
    note: "a disk in memory: the cost of the protocol",
    start: |bytes, testbed, end| {
        let memory = |_: &Path, _: &End| Ok(vec!["memory".into(), bytes.to_string().into()]);
        Ok(Box::new(Nbdkit::start("memory", bytes, memory, testbed, end)?))
    },
    ..FILE_PLUGIN
};

pub const LUKS_FILTER: Description = Description {
    name: "nbdkit luks",
    note: "the same file with the encryption of dm-crypt (AES-256-XTS): the cost of encryption",
    programs: &["nbdkit", "qemu-img"],
    start: |bytes, testbed, end| {
        let luks = |path: &Path, end: &End| {
            make_luks(path, bytes, end)?;
            let passphrase = format!("passphrase={PASSPHRASE}");
            Ok(vec!["--filter=luks".into(), "file".into(), path.into(), passphrase.into()])
        };
        Ok(Box::new(Nbdkit::start("luks", bytes, luks, testbed, end)?))
    },
    ..FILE_PLUGIN
};

/// The passphrase of encrypted disks. Not secret: the disk is removed after the measurement.
const PASSPHRASE: &str = "measured";

fn make_luks(path: &Path, bytes: u64, end: &End) -> Result<(), String> {
    let mut command = Command::new("qemu-img");
    command.args(["create", "-q", "-f", "luks", "--object"]);
    command.arg(format!("secret,id=key,data={PASSPHRASE}"));
    command.args(["-o", "key-secret=key,iter-time=10"]).arg(path).arg(bytes.to_string());
    run_to_its_end(&mut command, end).map(drop)
}

/// An nbdkit server that serves a disk in memory, over TCP without encryption.
pub struct OverTcp {
    server: Running,
    pub address: String,
    _folder: TempDir,
}

impl OverTcp {
    pub fn start(bytes: u64, testbed: &Testbed, end: &End) -> Result<Self, String> {
        let folder = testbed.folder()?;
        // nbdkit creates this file when it accepts connections.
        let ready = folder.path().join("ready");
        // nbdkit cannot choose a free port and report it.
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(|error| format!("cannot find a free port: {error}"))?;
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--ipaddr", &address.ip().to_string()]);
        command.args(["--port", &address.port().to_string(), "memory", &bytes.to_string()]);
        let mut server = Running::start(command.arg("--pidfile").arg(&ready))?;
        server.wait_for(&ready, end)?;
        Ok(Self { server, address: address.to_string(), _folder: folder })
    }

    pub fn id(&self) -> u32 {
        self.server.id()
    }

    pub fn stop(&mut self) -> Result<(), String> {
        self.server.stop()
    }
}

struct Nbdkit {
    server: Running,
    socket: PathBuf,
    bytes: u64,
    _folder: TempDir,
}

impl Nbdkit {
    /// Starts nbdkit. `make` creates the disk, at the given path if it is a file, and returns the
    /// arguments that serve it.
    fn start(
        name: &str,
        bytes: u64,
        make: impl FnOnce(&Path, &End) -> Result<Vec<OsString>, String>,
        testbed: &Testbed,
        end: &End,
    ) -> Result<Self, String> {
        let folder = testbed.folder()?;
        let socket = testbed.socket(&format!("nbdkit-{name}"));
        let served = make(&folder.path().join("disk"), end)?;
        let mut command = Command::new("nbdkit");
        command.args(["--foreground", "--unix"]).arg(&socket).args(served);
        let mut server = Running::start(&mut command)?;
        server.wait_for(&socket, end)?;
        Ok(Self { server, socket, bytes, _folder: folder })
    }
}

impl Subject for Nbdkit {
    fn target(&self) -> Target {
        Target::nbd_socket(&self.socket)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn server(&self) -> Option<u32> {
        Some(self.server.id())
    }

    fn stop(&mut self) -> Result<(), String> {
        self.server.stop()
    }
}
