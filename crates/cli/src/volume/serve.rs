//! `oblivio serve nbd` and `oblivio view record`: serve a volume to other programs.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use oblivio_nbd::{BoundServer, Listen, NbdOptions, ServerHandle, TlsFiles, TlsMode, bind};
use oblivio_volume::Disk;
use oblivio_volume::device::BlockDevice;
use oblivio_volume::rescue::{RescuedDisk, Scratch};
use oblivio_volume::superblock::VolumeParams;
use serde_json::{Value, json};

use super::clean_end::{CLOSING, CLOSING_NOW, GracefulStop};
use super::client_watch::ClientWatch;
use super::disk_watch::DiskWatch;
use super::opening::{self, Opened};
use super::plan::size;
use super::running_command::RunningCommand;
use super::salvage::DamagedVolume;
use super::watching::{self, BoundWatchPage, WatchPage};
use crate::args::{NbdArgs, RunArgs, ViewRecordArgs};
use crate::background;
use crate::error::CliError;
use crate::output::{self, shell_word};
use crate::progress::{self, Counter};

/// The interval at which the command checks whether it must stop.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// `oblivio serve nbd`.
pub(crate) fn serve_nbd(args: &NbdArgs) -> Result<(), CliError> {
    if args.rescued { serve_rescued(args) } else { serve_volume(args) }
}

fn serve_volume(args: &NbdArgs) -> Result<(), CliError> {
    let mut watching = BoundWatchPage::bind(&args.watch)?;
    let Opened { volume, state, recording, recovery, .. } =
        opening::open_watched(&args.at, &args.run, watching.as_mut())?;
    let end = GracefulStop::listen(CLOSING)?;
    let insight = volume.insight();
    let disk = Arc::new(Disk::start(volume, &args.run.disk_options())?);
    let mut watch = DiskWatch::new(&disk, &end);
    let (page, device) = watching::start(watching, disk.clone(), insight)?;
    let announcement = json!({ "accesses_repeated": recovery.accesses });
    let announcement = Announcement { facts: announcement, page: page.as_ref() };
    let recorded = recording.as_ref().filter(|_| args.run_command.is_some());
    let counter = recorded.map(|it| (it, Counter::new("trips to storage recorded")));
    let poll = || {
        watch.poll();
        if let Some((recording, counter)) = &counter {
            counter.set(recording.trips());
        }
    };
    let served = bind(&listen(args, &state), options(args))
        .map_err(CliError::from)
        .and_then(|bound| serve_disk(args, bound, device, &state, &end, announcement, poll));
    drop(counter);
    // Close in any case, to keep what was written.
    end.set_waiting_for("what was written is being made durable");
    let closed = progress::with_spinner(CLOSING_NOW, || disk.close()).map_err(CliError::from);
    // Drop the page after closing, so that it also draws what storage sees of closing.
    drop(page);
    watch.end();
    drop(watch);
    drop(disk);
    let recorded = recording.map_or(Ok(()), super::recording::Recording::finish);
    let ended = closed.and(recorded);
    if let (Err(left), Err(_)) = (&served, &ended) {
        // The failure of the disk is the cause, and is returned.
        output::print_remark(&left.to_string());
    }
    ended_with(ended.and(served)?)?;
    // JSON is read by a program, which needs no closing remark.
    let is_read_by_another =
        args.run_command.is_some() || args.json && !args.background.in_background;
    if is_read_by_another {
        return Ok(());
    }
    background::report_end(&args.background, "the volume is closed")
}

/// Serves the remaining data of a damaged volume.
fn serve_rescued(args: &NbdArgs) -> Result<(), CliError> {
    if args.background.background && args.background.log.is_none() {
        let message = "a rescued volume must not write into the client's directory: choose a log \
                       file elsewhere with --log";
        return Err(CliError::Input(message.into()));
    }
    let folder = args.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let file = tempfile::tempfile_in(&folder)
        .and_then(|file| file.set_permissions(Permissions::from_mode(0o600)).map(|()| file))
        .map_err(|error| {
            let folder = folder.display();
            CliError::Output(format!(
                "{folder} cannot hold the rescued blocks ({error}): choose another directory with \
                 --scratch"
            ))
        })?;
    let salvage = DamagedVolume::begin(&args.at)?;
    let VolumeParams { blocks, block_bytes, .. } = *salvage.params();
    let state = salvage.state().to_owned();
    // Bind before all of storage is read, which may take hours.
    let bound = bind(&listen(args, &state), options(args))?;
    let mut scratch = Scratch::new(file, block_bytes, &mut opening::coins()?);
    let report = salvage.finish(&mut scratch).map_err(|error| match error {
        CliError::NoSpace(full) => CliError::NoSpace(format!(
            "{full} ({}), or choose another directory with more room that the volume's storage \
             does not see (--scratch)",
            folder.display()
        )),
        error => error,
    })?;
    let end = GracefulStop::listen("clients are about to be disconnected")?;
    if !args.json {
        output::print_remark(&report.text("can be read"));
    }
    let disk = Arc::new(RescuedDisk::new(scratch, blocks, report.rescued.lost.clone()));
    let announcement = Announcement { facts: report.json(), page: None };
    let status = serve_disk(args, bound, disk, &state, &end, announcement, || ())?;
    ended_with(status).and(report.verdict())
}

fn ended_with(status: ExitStatus) -> Result<(), CliError> {
    if status.success() { Ok(()) } else { Err(CliError::Command(status)) }
}

/// Information to report together with the disk's URI once the disk can be used.
struct Announcement<'a> {
    facts: Value,
    page: Option<&'a WatchPage>,
}

/// Serves until a signal requests the end, the server ends, or the command of `--run` ends. Calls
/// `poll` regularly. Returns the command's exit status, or success without a command.
fn serve_disk(
    args: &NbdArgs,
    bound: BoundServer,
    disk: Arc<dyn BlockDevice>,
    state: &Path,
    end: &GracefulStop,
    announcement: Announcement<'_>,
    mut poll: impl FnMut(),
) -> Result<ExitStatus, CliError> {
    let server = bound.serve(disk)?;
    announce(args, &server, state, announcement)?;
    let mut clients = ClientWatch::default();
    let mut poll = || {
        poll();
        clients.poll(&server);
        if server.has_ended() {
            end.begin();
        }
        thread::sleep(POLL_INTERVAL);
    };
    let outcome = match &args.run_command {
        Some(command) => {
            let socket = args.tcp.is_none().then(|| socket(args, state));
            run_until_it_ends(command, &server.uri(), socket.as_deref(), end, poll)
        }
        None => {
            while !end.is_requested() {
                poll();
            }
            Ok(ExitStatus::default())
        }
    };
    clients.end(&server);
    end.set_waiting_for("requests of clients are being answered");
    let stopped = server.shutdown().map_err(CliError::from);
    stopped.and(outcome)
}

/// `oblivio view record`.
pub(crate) fn record_view(args: &ViewRecordArgs) -> Result<(), CliError> {
    let recorded = serve_nbd(&NbdArgs {
        run: RunArgs {
            record_view: Some(args.output.clone()),
            cache: args.cache,
            ..RunArgs::default()
        },
        run_command: Some(args.run.clone()),
        socket: args.socket.clone(),
        ..NbdArgs::new(args.at.clone())
    });
    if matches!(recorded, Ok(()) | Err(CliError::Command(_))) {
        let path = args.output.display().to_string();
        let bytes = std::fs::metadata(&args.output).map_or(0, |file| file.len());
        output::print_aside(&format!(
            "what storage saw is in {path} ({}): oblivio view show {}",
            size(bytes as f64),
            shell_word(path.clone())
        ));
    }
    recorded
}

fn socket(args: &NbdArgs, state: &Path) -> PathBuf {
    let path = args.socket.clone().unwrap_or_else(|| state.join("nbd.sock"));
    // The reader of this path may be in another directory.
    std::path::absolute(&path).unwrap_or(path)
}

fn listen(args: &NbdArgs, state: &Path) -> Listen {
    args.tcp.map_or_else(|| Listen::Unix(socket(args, state)), Listen::Tcp)
}

fn options(args: &NbdArgs) -> NbdOptions {
    let files = args.tls_certificate.clone().zip(args.tls_key.clone());
    let tls = files.map(|(certificate, key)| TlsFiles {
        certificate,
        key,
        client_authorities: args.tls_client_authorities.clone(),
    });
    NbdOptions {
        export_name: args.export_name.clone(),
        description: "an oblivious volume".into(),
        tls: match tls {
            None => TlsMode::Off,
            Some(files) if args.tls_optional => TlsMode::Offered(files),
            Some(files) => TlsMode::Required(files),
        },
        read_only: args.read_only || args.rescued,
        beyond_loopback: args.beyond_loopback,
        any_client: args.any_client,
        ..NbdOptions::default()
    }
}

fn announce(
    args: &NbdArgs,
    server: &ServerHandle,
    state: &Path,
    announcement: Announcement<'_>,
) -> Result<(), CliError> {
    let Announcement { mut facts, page } = announcement;
    let text = if args.json {
        facts["uri"] = server.uri().into();
        if let Some(page) = page {
            facts["watch"] = page.url().into();
        }
        if args.background.in_background {
            facts["pid"] = process::id().into();
        }
        facts.to_string()
    } else if args.run_command.is_none() {
        let page = page.map_or_else(String::new, |page| format!("{}\n", page.line()));
        let end = if args.rescued { "ends this" } else { "closes the volume" };
        let by = match args.background.in_background {
            true => format!("kill {}", process::id()),
            false => "Ctrl-C".into(),
        };
        format!("serving at {}\n{page}{by} {end}.", server.uri())
    } else {
        // The output of the command must not be mixed with other text.
        page.into_iter().for_each(|page| output::print_aside(&page.line()));
        return Ok(());
    };
    let log = background::log(&args.background, state)?;
    background::report_ready(log, &text, &format!("serving at {}", server.uri()))
}

/// Runs a shell command, and returns its exit status. Calls `poll` until the command has ended, or
/// until a signal requests the end; then stops the command. `poll` must sleep briefly each time.
fn run_until_it_ends(
    command: &str,
    uri: &str,
    socket: Option<&Path>,
    end: &GracefulStop,
    mut poll: impl FnMut(),
) -> Result<ExitStatus, CliError> {
    let failed = |error: io::Error| CliError::Engine(format!("the command failed: {error}"));
    let command = RunningCommand::start(command, uri, socket).map_err(failed)?;
    while !command.has_ended().map_err(failed)? && !end.is_requested() {
        poll();
    }
    if end.is_requested() {
        end.set_waiting_for("the command of --run is ending");
    }
    command.stop().map_err(failed)
}
