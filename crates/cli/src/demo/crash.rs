//! Kills servers while they work.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::demo_dir::DemoDir;
use super::folder::Folder;
use super::programs::{self, Background};
use crate::error::CliError;
use crate::files;

/// The exit code of `info --require-clean` for a volume that was not closed.
const NEEDS_RECOVERY: i32 = 14;

/// Name of the folder on the mounted file system that receives the synced files.
const WORK: &str = "work";

/// The result of killing the process that serves the volume.
pub(super) struct KillReport {
    /// Whether the client of the killed process was still sending requests.
    client_was_busy: bool,
    /// A description of the server that stores the volume, if there is one. It was killed and
    /// restarted earlier in the same run, while the client was writing.
    server: Option<&'static str>,
}

impl KillReport {
    pub(super) fn text(&self) -> String {
        let when = if self.client_was_busy { "while writing" } else { "just after writing" };
        let store = self.server.map_or_else(String::new, |server| {
            format!("{server} was killed before that and restarted, and the client went on; ")
        });
        format!("{store}killed {when}; the volume reports that it needs recovery")
    }
}

/// The result of working on a mounted file system whose server is killed.
pub(super) enum MountReport {
    /// The file system was not mounted, for this reason.
    LeftOut(String),
    /// The server was killed. These files, with their checksums, had been synced, and were intact
    /// when the file system was mounted again.
    Killed(BTreeMap<PathBuf, [u8; 32]>),
}

impl MountReport {
    /// The checksums of the files that had been synced, and so must exist.
    pub(super) fn synced(&self) -> &BTreeMap<PathBuf, [u8; 32]> {
        static NONE: BTreeMap<PathBuf, [u8; 32]> = BTreeMap::new();
        match self {
            Self::LeftOut(_) => &NONE,
            Self::Killed(files) => files,
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::LeftOut(why) => format!("left out: {why}"),
            Self::Killed(files) => format!(
                "killed while a file was being written; mounted again: all {} files that had been \
                 synced are there, with correct checksums",
                files.len()
            ),
        }
    }
}

/// Serves the volume, writes the image to it again, and kills the server after half of `writing`,
/// the time that the first write took. Before that, kills and restarts a server that stores the
/// volume, if there is one. Fails if the volume does not need recovery afterwards.
pub(super) fn kill_server(demo_dir: &DemoDir, writing: Duration) -> Result<KillReport, CliError> {
    let mut serve = demo_dir.oblivio(&["serve", "nbd"])?;
    // Without a cache, storage is busy as long as the client is.
    serve.arg("--socket").arg(demo_dir.socket()).args(["--cache", "0", "--json"]);
    let (mut server, line) = start_and_listen(&mut serve)?;
    let report: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
    let uri = report["uri"].as_str().unwrap_or_default();
    let mut client =
        Background::start(demo_dir.write_image(uri)?.stdout(Stdio::null()).stderr(Stdio::null()))?;
    std::thread::sleep(writing / 4);
    let killed = demo_dir.kill_server()?;
    std::thread::sleep(writing / 4);
    let failed = |error: io::Error| CliError::Engine(format!("the server was not killed: {error}"));
    let client_was_busy = client.0.try_wait().map_err(failed)?.is_none();
    server.kill().map_err(failed)?;
    client.0.wait().map_err(failed)?;

    let mut info = demo_dir.oblivio(&["info"])?;
    let (code, printed) = programs::outcome(info.arg("--require-clean"))?;
    if code != NEEDS_RECOVERY {
        return Err(CliError::Engine(format!("the volume does not need recovery: {printed}")));
    }
    Ok(KillReport { client_was_busy, server: killed })
}

/// Mounts the file system, writes files in it, and kills its server; then mounts it again, and
/// compares the synced files. If a mount is impossible or `is_left_out`, returns the reason
/// instead.
pub(super) fn kill_mount(
    demo_dir: &DemoDir,
    source: &Folder,
    is_left_out: bool,
) -> Result<MountReport, CliError> {
    let missing =
        ["/dev/fuse", "/dev/loop-control"].into_iter().find(|path| !Path::new(path).exists());
    let why_not = match missing {
        _ if is_left_out => Some("--without-mount was given".to_owned()),
        _ if !rustix::process::geteuid().is_root() => Some("only root may mount ext4".to_owned()),
        Some(device) => Some(format!("this system has no {device}")),
        None => None,
    };
    if let Some(why) = why_not {
        return Ok(MountReport::LeftOut(why));
    }
    let mount_point = demo_dir.mount_point();
    fs::create_dir_all(&mount_point).map_err(|error| files::cannot_write(&mount_point, &error))?;
    let outcome = work_and_kill(demo_dir, source, &mount_point);
    demo_dir.leave_mount()?;
    outcome.map(MountReport::Killed)
}

fn work_and_kill(
    demo_dir: &DemoDir,
    source: &Folder,
    mount_point: &Path,
) -> Result<BTreeMap<PathBuf, [u8; 32]>, CliError> {
    let mut mount = demo_dir.oblivio(&["mount"])?;
    mount.arg(mount_point);
    let (mut server, _) = start_and_listen(&mut mount)?;
    let failed = |error: io::Error| {
        CliError::Engine(format!("the work on the mounted file system failed: {error}"))
    };
    let mut synced = BTreeMap::new();
    for (path, checksum) in source.files.iter().take(SYNCED_FILES_MAX) {
        let name = Path::new(WORK).join(path);
        write_synced(&source.path.join(path), &mount_point.join(&name)).map_err(failed)?;
        synced.insert(name, *checksum);
    }
    // This file is being written when the server dies.
    let mut unsynced = File::create(mount_point.join("unsynced")).map_err(failed)?;
    unsynced.write_all(&[0x5a; 1 << 20]).map_err(failed)?;
    server.kill().map_err(failed)?;
    drop(unsynced);
    demo_dir.leave_mount()?;

    let (_server, _) = start_and_listen(&mut mount)?;
    let again = Folder::read(mount_point)?;
    let expected = Folder { path: mount_point.to_owned(), files: synced, bytes: 0 };
    let difference = again.compare(&expected);
    // Unmount while the server is alive, which closes the volume.
    demo_dir.leave_mount()?;
    if difference.is_none() {
        Ok(expected.files)
    } else {
        Err(CliError::Different(format!("after the server was killed: {}", difference.text())))
    }
}

/// Maximum number of files that are written and synced before the server is killed. The number is
/// small because each file costs a sync.
const SYNCED_FILES_MAX: usize = 64;

/// Copies a file, and returns once the file and its name survive a crash.
fn write_synced(from: &Path, to: &Path) -> io::Result<()> {
    let folder = to.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut file = File::create(to)?;
    file.write_all(&fs::read(from)?)?;
    file.sync_all()
}

/// Starts a server, and waits for the line that reports it as ready.
fn start_and_listen(command: &mut Command) -> Result<(Background, String), CliError> {
    let mut server = Background::start(command.stdout(Stdio::piped()))?;
    let mut line = String::new();
    if let Some(output) = server.0.stdout.take() {
        BufReader::new(output)
            .read_line(&mut line)
            .map_err(|error| programs::failed(command, &error))?;
    }
    if line.is_empty() {
        return Err(CliError::Engine(format!("{command:?} ended before it was ready")));
    }
    Ok((server, line))
}
