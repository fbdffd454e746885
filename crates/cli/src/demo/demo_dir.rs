//! The directory of the demonstration, and the steps that use it.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use oblivio::Location;
use oblivio_core::store::TreeId;
use oblivio_shares::view::tree_of_server;
use oblivio_volume::volume::FIRST_TREE;
use oblivio_wire::private;
use rand::Rng;

use super::folder::Folder;
use super::programs::{self, DEBUGFS, E2FSCK, MKE2FS};
use super::servers::DemoServers;
use super::services::{self, DemoService};
use crate::args::{DemoStore, OpenArgs, SecretArgs, UnlockArgs, VolumeArgs};
use crate::error::CliError;
use crate::files;
use crate::volume::coins;

const KEY_BYTES: usize = 32;

/// Names of files of an earlier demonstration that this one replaces.
const MADE_AGAIN: [&str; 7] =
    ["volume.obl", "volume.key", "state", "files", "unpacked", "mnt", services::FOLDER];

/// The directory, and the volume of the demonstration.
pub(super) struct DemoDir {
    folder: PathBuf,
    volume: Location,
    /// The kind of store that holds the volume.
    store: DemoStore,
    /// The servers that store the volume, if it is not a file here.
    servers: Option<Mutex<Servers>>,
}

/// Servers that store the volume.
enum Servers {
    Ours(DemoServers),
    Others(DemoService),
}

impl Servers {
    fn location(&self) -> Result<Location, CliError> {
        match self {
            Self::Ours(servers) => servers.location(),
            Self::Others(service) => service.location(),
        }
    }

    fn kill_and_start_one(&mut self) -> Result<&'static str, CliError> {
        match self {
            Self::Ours(servers) => servers.kill_and_start_one().map(|()| servers.killed()),
            Self::Others(service) => service.kill_and_start_one().map(|()| service.killed()),
        }
    }
}

impl DemoDir {
    /// Creates the directory, removes files of an earlier demonstration, and makes a key. Starts
    /// the servers of the volume, if `store` is not a file; with share servers, `share_servers` of
    /// them.
    pub(super) fn prepare(
        path: &Path,
        store: DemoStore,
        share_servers: u8,
    ) -> Result<Self, CliError> {
        let failed = |error| files::cannot_write(path, &error);
        private::dir_builder().recursive(true).create(path).map_err(failed)?;
        let folder = fs::canonicalize(path).map_err(failed)?;
        let volume = Location::from(oblivio_store::Location::File(folder.join("volume.obl")));
        let mut demo_dir = Self { folder, volume, store, servers: None };
        demo_dir.leave_mount()?;
        for name in MADE_AGAIN.map(str::to_owned).into_iter().chain(DemoServers::made()) {
            let path = demo_dir.folder.join(name);
            let removed =
                if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            if let Err(error) = removed
                && path.exists()
            {
                return Err(files::cannot_write(&path, &error));
            }
        }
        demo_dir.make_key()?;
        let servers = match store {
            DemoStore::File => return Ok(demo_dir),
            DemoStore::Server => Servers::Ours(DemoServers::store(&demo_dir.folder)?),
            DemoStore::Shares => {
                Servers::Ours(DemoServers::shares(&demo_dir.folder, share_servers.into())?)
            }
            DemoStore::S3 => Servers::Others(DemoService::s3(&demo_dir.folder)?),
            DemoStore::Redis => Servers::Others(DemoService::redis(&demo_dir.folder)?),
        };
        demo_dir.volume = servers.location()?;
        demo_dir.servers = Some(Mutex::new(servers));
        Ok(demo_dir)
    }

    /// Kills and restarts a server that stores the volume, if there is one. Returns its
    /// description.
    pub(super) fn kill_server(&self) -> Result<Option<&'static str>, CliError> {
        let Some(servers) = &self.servers else { return Ok(None) };
        let mut servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
        servers.kill_and_start_one().map(Some)
    }

    /// The tree whose accessed paths the picture shows.
    pub(super) fn watched_tree(&self) -> TreeId {
        match self.store {
            DemoStore::File | DemoStore::Server | DemoStore::S3 | DemoStore::Redis => FIRST_TREE,
            // All servers see the same paths.
            DemoStore::Shares => tree_of_server(0),
        }
    }

    /// Number of reads of single blocks in each of the phases "three blocks" and "a loop".
    pub(super) fn short_phase(&self) -> u64 {
        match self.store {
            DemoStore::File | DemoStore::Server => 3000,
            // Each path is several requests.
            DemoStore::S3 | DemoStore::Redis => 1000,
            // Each block is 32 times as long, and all servers share this machine.
            DemoStore::Shares => 300,
        }
    }

    fn make_key(&self) -> Result<(), CliError> {
        let mut key = zeroize::Zeroizing::new([0; KEY_BYTES]);
        coins()?.fill_bytes(&mut *key);
        let path = self.key();
        private::file_options()
            .write(true)
            .create_new(true)
            .open(&path)
            .and_then(|mut file| file.write_all(&*key))
            .map_err(|error| files::cannot_write(&path, &error))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn volume(&self) -> &Location {
        &self.volume
    }

    fn key(&self) -> PathBuf {
        self.path("volume.key")
    }

    fn image(&self) -> PathBuf {
        self.path("image.ext4")
    }

    /// Path of the file with the disk's contents from before the first kill.
    pub(super) fn copy(&self) -> PathBuf {
        self.path("copy.ext4")
    }

    /// Path of the file with the disk's contents after all recoveries.
    pub(super) fn recovered(&self) -> PathBuf {
        self.path("recovered.ext4")
    }

    pub(super) fn mount_point(&self) -> PathBuf {
        self.path("mnt")
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path("nbd.sock")
    }

    /// The arguments that name the volume and its key.
    pub(super) fn open_args(&self) -> OpenArgs {
        let volume = VolumeArgs {
            volume: self.volume.clone(),
            state: Some(self.path("state")),
            secret: SecretArgs { key_file: Some(self.key()), ..SecretArgs::default() },
        };
        OpenArgs { volume, unlock: UnlockArgs::default() }
    }

    /// A command of this program that uses the volume.
    pub(super) fn oblivio(&self, command: &[&str]) -> Result<Command, CliError> {
        let mut line = programs::oblivio()?;
        line.args(command).arg(self.volume.to_string());
        line.arg("--state").arg(self.path("state")).arg("--key-file").arg(self.key());
        Ok(line)
    }

    /// The files to store if no folder is named: this program and its manual; on share servers only
    /// the manual.
    pub(super) fn own_files(&self) -> Result<Folder, CliError> {
        let folder = self.path("files");
        programs::run(programs::oblivio()?.arg("man").arg(folder.join("man")))?;
        if self.store != DemoStore::Shares {
            let program = programs::oblivio()?;
            fs::copy(program.get_program(), folder.join("oblivio"))
                .map_err(|error| files::cannot_write(&folder, &error))?;
        }
        Folder::read(&folder)
    }

    pub(super) fn create_volume(&self, bytes: u64) -> Result<(), CliError> {
        let mut create = self.oblivio(&["create"])?;
        create.arg("--size").arg(bytes.to_string());
        if self.store == DemoStore::Shares {
            // With short buckets, evictions come more often, and each costs this one machine less.
            create.args(["--slots", "74", "--evict-period", "16"]);
        }
        programs::run(&mut create).map(drop)
    }

    /// Makes a file with a file system that holds `folder`. Needs no privileges.
    pub(super) fn make_image(&self, folder: &Folder, bytes: u64) -> Result<(), CliError> {
        let image = self.image();
        if image.exists() {
            fs::remove_file(&image).map_err(|error| files::cannot_write(&image, &error))?;
        }
        let kibibytes = format!("{}k", bytes >> 10);
        let (folder, image) = (folder.path.as_os_str(), image.as_os_str());
        let fixed = ["-q", "-F", "-t", "ext4", "-d"].map(OsStr::new);
        let arguments = [&fixed[..], &[folder, image, kibibytes.as_ref()]].concat();
        MKE2FS.run(&arguments).map(drop)
    }

    /// A command that writes the image to a disk.
    pub(super) fn write_image(&self, uri: &str) -> Result<Command, CliError> {
        let mut command = Command::new(programs::NBDCOPY.find()?);
        command.arg("--flush").arg(self.image()).arg(uri);
        Ok(command)
    }

    /// A command that reads a disk to a file.
    pub(super) fn read_disk(&self, uri: &str, to: &Path) -> Result<Command, CliError> {
        let mut command = Command::new(programs::NBDCOPY.find()?);
        command.arg(uri).arg(to);
        Ok(command)
    }

    /// Opens the volume, and reads the disk to a file. Returns the number of accesses that the
    /// recovery at the opening repeated.
    pub(super) fn read_out(&self, to: &Path) -> Result<u64, CliError> {
        let copy = format!("'{}' \"$uri\" '{}'", programs::NBDCOPY.find()?.display(), to.display());
        let mut serve = self.oblivio(&["serve", "nbd"])?;
        serve.arg("--socket").arg(self.socket()).args(["--json", "--run", &copy]);
        let printed = programs::run(&mut serve)?;
        let report = printed.lines().find_map(|line| serde_json::from_str(line).ok());
        let report: serde_json::Value = report.unwrap_or_default();
        report["accesses_repeated"].as_u64().ok_or_else(|| {
            CliError::Engine(format!("the server did not report its address: {printed}"))
        })
    }

    /// Checks the file system in a file, and unpacks it.
    pub(super) fn unpack(&self, image: &Path) -> Result<Folder, CliError> {
        E2FSCK.run(&["-f".as_ref(), "-n".as_ref(), image.as_ref()])?;
        let folder = self.path("unpacked");
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| files::cannot_write(&folder, &error))?;
        }
        private::dir_builder()
            .create(&folder)
            .map_err(|error| files::cannot_write(&folder, &error))?;
        let dump = format!("rdump / \"{}\"", folder.display());
        DEBUGFS.run(&["-R".as_ref(), dump.as_ref(), image.as_ref()])?;
        Folder::read(&folder)
    }

    /// Verifies every bucket of the volume, and returns the output of `check`.
    pub(super) fn check(&self) -> Result<String, CliError> {
        programs::run(&mut self.oblivio(&["check"])?)
    }

    /// Unmounts the mount point, if a file system is mounted there.
    pub(super) fn leave_mount(&self) -> Result<(), CliError> {
        let mount_point = self.mount_point();
        if mount_point.exists() {
            // An error means that nothing is mounted there, which is fine.
            programs::outcome(programs::oblivio()?.arg("umount").arg(&mount_point))?;
        }
        Ok(())
    }
}
