//! `oblivio mount` and `oblivio umount`.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use oblivio_mount::fuse::{FuseMount, FuseOptions, MountError, mount_raw};
use oblivio_mount::registry::Registry;
use oblivio_mount::{
    Filesystem, FilesystemMount, MakeFilesystem, MountOptions, Unmounted, check_system,
    exempt_from_reclaim, mount_filesystem, refuse_deadlock, refuse_hiding, unmount_served,
};
use oblivio_volume::Disk;
use rustix::process::geteuid;

use super::clean_end::{CLOSING, CLOSING_NOW, GracefulStop};
use super::disk_watch::DiskWatch;
use super::opening;
use super::watching::{self, BoundWatchPage};
use crate::args::{MountArgs, UmountArgs};
use crate::error::CliError;
use crate::output::{self, shell_word};
use crate::{background, progress};

/// The interval at which the command checks whether it must stop.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum time that `umount` waits for a `mount` that is still opening its volume.
const STARTING_MAX: Duration = Duration::from_secs(60);

/// `oblivio mount`.
pub(crate) fn mount(args: &MountArgs) -> Result<(), CliError> {
    refuse_hiding(&args.directory, files_in_use(args))?;
    background::run(&args.background, || serve(args))
}

/// The files that the command line names, which must not lie below the mount point.
fn files_in_use(args: &MountArgs) -> impl Iterator<Item = &Path> {
    let volume = &args.at.volume;
    let named = [
        &args.background.log,
        &args.run.record_view,
        &volume.state,
        &volume.secret.key_file,
        &volume.secret.passphrase_file,
    ];
    volume.volume.local_files().into_iter().chain(named.into_iter().flatten().map(PathBuf::as_path))
}

/// Exempts this process from waiting for its own disk when memory is short. Call this before any
/// thread starts. If the kernel refuses, returns a warning to root and `None` to other users.
///
/// # Errors
/// If the kernel refuses, a file system would be mounted writable, and this process is in a limited
/// memory cgroup of version 1.
fn avoid_deadlock(args: &MountArgs) -> Result<Option<String>, CliError> {
    let Err(error) = exempt_from_reclaim() else { return Ok(None) };
    if !args.raw && !args.read_only {
        refuse_deadlock()?;
    }
    // Other users cannot have the capability, and their mounts hold no kernel file system.
    Ok(geteuid().is_root().then(|| {
        format!(
            "the mount may hang if memory runs out or its memory cgroup gets a limit, because the \
             kernel does not exempt this process from memory reclaim ({error}). Grant \
             CAP_SYS_RESOURCE to it, and mount again"
        )
    }))
}

/// Mounts the volume, and serves it until it is unmounted.
fn serve(args: &MountArgs) -> Result<(), CliError> {
    let warning = avoid_deadlock(args)?;
    let make = if args.no_mkfs { MakeFilesystem::Never } else { MakeFilesystem::IfEmpty };
    if !args.raw {
        // Before the passphrase prompt.
        check_system(make)?;
    }
    // `umount` waits for the end of the registration, so it is dropped last.
    let mut registration = Registry::open()?.register(&args.directory)?;
    let mut watching = BoundWatchPage::bind(&args.watch)?;
    let opened = opening::open_watched(&args.at, &args.run, watching.as_mut())?;
    if let Err(hides) = refuse_hiding(&args.directory, [opened.state.as_path()]) {
        opened.volume.close()?;
        return Err(hides.into());
    }
    let end = GracefulStop::listen(CLOSING)?;
    let is_known_empty = !opened.volume.may_hold_contents();
    let insight = opened.volume.insight();
    let disk = Arc::new(Disk::start(opened.volume, &args.run.disk_options())?);
    let mut watch = DiskWatch::new(&disk, &end);
    let (page, device) = watching::start(watching, disk.clone(), insight)?;
    let page_line = page.as_ref().map_or_else(String::new, |page| format!("\n{}", page.line()));
    // Open the log before the mount: a log opened through the mount would keep it in use.
    let served = background::log(&args.background, &opened.state).and_then(|mut log| {
        if let Some(warning) = &warning {
            output::print_remark(warning);
            log.iter_mut().for_each(|log| output::write_to_log(log, warning));
        }
        if args.raw {
            let options = FuseOptions { read_only: args.read_only };
            let mut mount = mount_raw(device, registration.directory(), &options)?;
            let what = format!("the disk is {}{page_line}", mount.disk().display());
            tell(args, log, registration.directory(), &what)?;
            let is_unmounted = FuseMount::wait_until_unmounted;
            run(&end, &mut watch, &mut mount, is_unmounted, FuseMount::unmount)
        } else {
            let filesystem = Filesystem::default();
            let options =
                MountOptions { make, filesystem, is_known_empty, read_only: args.read_only };
            let mut mount = mount_filesystem(device, &registration, &options)?;
            let what = format!("mounted on {}{page_line}", mount.directory().display());
            tell(args, log, mount.directory(), &what)?;
            let is_unmounted = FilesystemMount::wait_until_unmounted;
            run(&end, &mut watch, &mut mount, is_unmounted, FilesystemMount::unmount)
        }
    });
    end.set_waiting_for("what was written is being made durable");
    let closed = progress::with_spinner(CLOSING_NOW, || disk.close()).map_err(CliError::from);
    // Drop the page after closing, so that it also draws what storage sees of closing.
    drop(page);
    watch.end();
    drop(watch);
    drop(disk);
    let recorded = opened.recording.map_or(Ok(()), super::recording::Recording::finish);
    let ended = served.and(closed).and(recorded);
    if let Err(error) = &ended {
        registration.has_failed(error.code(), &error.to_string());
    }
    drop(registration);
    ended?;
    background::report_end(&args.background, "unmounted, and the volume is closed")
}

/// Reports that the disk can be used, and which command unmounts it.
fn tell(args: &MountArgs, log: Option<File>, directory: &Path, what: &str) -> Result<(), CliError> {
    let directory = shell_word(directory.display().to_string());
    let ctrl_c = if args.background.in_background { "" } else { ", or Ctrl-C," };
    let text =
        format!("{what}\noblivio umount {directory}{ctrl_c} unmounts it and closes the volume.");
    let logged = what.lines().next().unwrap_or_default();
    background::report_ready(log, &text, logged)
}

/// Waits until the directory is unmounted or a signal requests the end, and then ends the mount. A
/// mount in use stays in spite of signals, because its users would lose what they write.
fn run<M>(
    end: &GracefulStop,
    watch: &mut DiskWatch,
    mount: &mut M,
    is_unmounted: impl Fn(&M, Duration) -> bool,
    unmount: impl Fn(&mut M) -> Result<(), MountError>,
) -> Result<(), CliError> {
    let mut was_busy = false;
    loop {
        watch.poll();
        if is_unmounted(mount, POLL_INTERVAL) || end.is_requested() {
            if !was_busy {
                end.set_waiting_for("what was written to the directory is being written back");
            }
            match unmount(mount) {
                Err(error @ MountError::Busy(_)) => {
                    end.set_waiting_for(error.to_string());
                    if !was_busy {
                        output::print_remark(&format!("{error}; it is unmounted once it is free"));
                    }
                    was_busy = true;
                    std::thread::sleep(POLL_INTERVAL);
                }
                outcome => return Ok(outcome?),
            }
        }
    }
}

/// `oblivio umount`.
pub(crate) fn umount(args: &UmountArgs) -> Result<(), CliError> {
    let directory = args.directory.display();
    let registry = Registry::open()?;
    let waiting = format!("{directory} is unmounted once its volume is closed");
    let unmounted = progress::with_spinner(&waiting, || {
        unmount_served(&args.directory, &registry, STARTING_MAX)
    })?;
    output::print(&match unmounted {
        Unmounted::Closed => format!("{directory} is unmounted, and its volume is closed"),
        Unmounted::Failed { exit_code, why } => {
            output::print_remark(&format!(
                "{directory} is unmounted, but its server failed: {why}. What was flushed is kept; \
                 the rest may be lost"
            ));
            // The exit code of the mount itself: scripts distinguish a full disk from a broken one.
            return Err(CliError::ChildReported(ExitStatus::from_raw(i32::from(exit_code) << 8)));
        }
        Unmounted::Abandoned => format!(
            "{directory} is unmounted. The process that served it had died: its volume recovers \
             when it is opened next"
        ),
        Unmounted::NothingLeft => format!(
            "nothing is mounted on {directory}: the mount process ended before it mounted anything"
        ),
    })
}
