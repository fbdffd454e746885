//! Oblivio volumes with default options.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::{Description, Subject, Testbed};
use crate::fio::{self, Target, Until};
use crate::growth::Model;
use crate::load::FILL;
use crate::tools::{End, Running, run_to_its_end};

pub const NBD: Description = Description {
    name: "oblivio nbd",
    note: "oblivio serve nbd: oblivious, encrypted, authenticated, survives crashes",
    is_filled: true,
    is_fuse: false,
    is_volume: true,
    programs: &[],
    start: |bytes, testbed, end| Ok(Box::new(serve_nbd(bytes, testbed, end)?)),
};

pub const MOUNT: Description = Description {
    name: "oblivio mount --raw",
    note: "the same through FUSE; the kernel sends the writes to one file one by one",
    is_filled: true,
    is_fuse: true,
    is_volume: true,
    programs: &["fusermount3"],
    start: |bytes, testbed, end| Ok(Box::new(mount_raw(bytes, testbed, end)?)),
};

/// A volume with ranges (rORAM). Its floor is not measured.
pub const RANGE: Description = Description {
    name: "oblivio nbd, ranges",
    note: "a volume made with --scheme range: ranges of 4 KiB and 1 MiB (rORAM)",
    is_volume: false,
    start: |bytes, testbed, end| {
        let options = ["--scheme", "range"].map(str::to_owned);
        let volume = Volume::create(bytes, &options, testbed, end)?;
        Ok(Box::new(volume.serve_nbd(&[], Stdio::inherit(), testbed, end)?))
    },
    ..NBD
};

/// A volume that is not being served.
pub struct Volume {
    program: PathBuf,
    /// The directory that contains the key and the client's directory.
    folder: TempDir,
    /// The location of the volume: a path or a URL.
    place: OsString,
    bytes: u64,
    pub creation: Duration,
}

impl Volume {
    /// Creates an empty volume on a file, with additional options of `oblivio create`.
    pub fn create(
        bytes: u64,
        options: &[String],
        testbed: &Testbed,
        end: &End,
    ) -> Result<Self, String> {
        let folder = testbed.folder()?;
        let place = folder.path().join("volume").into();
        Self::create_at(place, folder, bytes, options, testbed, end)
    }

    /// Creates a volume at a path or a URL, with its key and the client's directory in `folder`.
    pub fn create_at(
        place: OsString,
        folder: TempDir,
        bytes: u64,
        options: &[String],
        testbed: &Testbed,
        end: &End,
    ) -> Result<Self, String> {
        write_key(&folder.path().join("key"))
            .map_err(|error| format!("cannot create a key: {error}"))?;
        let program = testbed.programs.oblivio.clone();
        let mut volume = Self { program, folder, place, bytes, creation: Duration::ZERO };
        let start = Instant::now();
        let mut command = volume.command(&["create"]);
        run_to_its_end(command.arg("--size").arg(bytes.to_string()).args(options), end)?;
        volume.creation = start.elapsed();
        Ok(volume)
    }

    /// Changes the location at which the client accesses the volume.
    pub fn at_location(self, place: OsString) -> Self {
        Self { place, ..self }
    }

    /// Returns the command `oblivio WORDS` for the volume, with the key and the client's directory.
    fn command(&self, words: &[&str]) -> Command {
        let path = |name| self.folder.path().join(name);
        let mut command = Command::new(&self.program);
        command.args(words).arg(&self.place);
        command.arg("--key-file").arg(path("key")).arg("--state").arg(path("state"));
        command
    }

    /// Fills the volume once, while it is served with default options.
    pub fn filled(self, testbed: &Testbed, end: &End) -> Result<Self, String> {
        let mut served = self.serve_nbd(&[], Stdio::inherit(), testbed, end)?;
        fio::run(&served.target(), served.bytes(), &FILL, Until::End, 0, end)?;
        served.stop()?;
        Ok(served.volume)
    }

    /// Serves the volume over NBD. The server's stderr goes to `remarks`.
    pub fn serve_nbd(
        self,
        options: &[String],
        remarks: Stdio,
        testbed: &Testbed,
        end: &End,
    ) -> Result<Served, String> {
        // A separate socket for each volume, because several may be served at once.
        let name = self.folder.path().file_name().unwrap_or_default();
        let socket = testbed.socket(&name.to_string_lossy());
        let mut command = self.command(&["serve", "nbd"]);
        command.arg("--socket").arg(&socket).args(options).stderr(remarks);
        let mut server = Running::start(&mut command)?;
        server.wait_for(&socket, end)?;
        Ok(Served { server, target: Target::nbd_socket(&socket), volume: self })
    }

    /// The costs that `oblivio info` reports. Unlike a plan, they depend on the volume's location.
    pub fn model(&self, end: &End) -> Result<Model, String> {
        let text = run_to_its_end(self.command(&["info"]).arg("--json"), end)?;
        let costs = serde_json::from_str(&text).ok().and_then(|costs| Model::from_plan(&costs));
        costs.ok_or_else(|| format!("cannot parse the costs: {text}"))
    }

    /// Returns the allocated bytes of the volume's file.
    pub fn allocated_bytes(&self) -> Result<u64, String> {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(&self.place)
            .map(|metadata| metadata.blocks() * 512)
            .map_err(|error| format!("cannot read the metadata of the volume: {error}"))
    }
}

fn write_key(path: &Path) -> std::io::Result<()> {
    let mut key = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut key)?;
    fs::write(path, key)
}

/// A volume that is being served.
pub struct Served {
    // Drop order: the server before the volume.
    server: Running,
    target: Target,
    pub volume: Volume,
}

/// Creates a volume and serves it over NBD.
pub fn serve_nbd(bytes: u64, testbed: &Testbed, end: &End) -> Result<Served, String> {
    Volume::create(bytes, &[], testbed, end)?.serve_nbd(&[], Stdio::inherit(), testbed, end)
}

fn mount_raw(bytes: u64, testbed: &Testbed, end: &End) -> Result<Served, String> {
    let volume = Volume::create(bytes, &[], testbed, end)?;
    let directory = volume.folder.path().join("mount");
    fs::create_dir(&directory).map_err(|error| format!("cannot create a directory: {error}"))?;
    let mut command = volume.command(&["mount"]);
    let mut server = Running::start(command.arg(&directory).arg("--raw"))?;
    let path = directory.join("disk");
    server.wait_for(&path, end)?;
    Ok(Served { server, target: Target::File { path, direct: true }, volume })
}

impl Subject for Served {
    fn target(&self) -> Target {
        self.target.clone()
    }

    fn bytes(&self) -> u64 {
        self.volume.bytes
    }

    fn server(&self) -> Option<u32> {
        Some(self.server.id())
    }

    fn stop(&mut self) -> Result<(), String> {
        self.server.stop()
    }
}

/// Returns the output of `oblivio plan --json` for a volume of `bytes` bytes.
pub fn plan(
    bytes: u64,
    options: &[String],
    testbed: &Testbed,
    end: &End,
) -> Result<serde_json::Value, String> {
    let mut command = Command::new(&testbed.programs.oblivio);
    command.args(["plan", "--json", "--size", &bytes.to_string()]).args(options);
    let text = run_to_its_end(&mut command, end)?;
    serde_json::from_str(&text).map_err(|error| format!("cannot parse the plan: {error}"))
}

/// Whether `oblivio create` has the option `option`, according to its help text.
pub fn can_create_with(option: &str, testbed: &Testbed, end: &End) -> Result<bool, String> {
    let mut command = Command::new(&testbed.programs.oblivio);
    Ok(run_to_its_end(command.args(["create", "--help"]), end)?.contains(option))
}
