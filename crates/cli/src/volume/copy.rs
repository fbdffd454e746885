//! `oblivio copy`: copies a volume to another location, without opening it.

use std::io;

use indicatif::ProgressBar;
use oblivio::Location;
use oblivio::opening::{check_parties, no_superblock};
use oblivio_core::StoreError;
use oblivio_core::store::{TreeShape, shapes_of};
use oblivio_store::{BoxedStore, OpenError, OpenErrorKind, OpenedStore, StoreOptions};
use oblivio_volume::VolumeError;
use oblivio_volume::copying::{
    self, Copied, CopyError, CopyOptions, CopyStep, CopyWatch, Progress, VolumeFingerprint,
};
use oblivio_volume::superblock::LockedSuperblock;
use serde_json::{Value, json};

use super::kept_progress::ProgressFile;
use super::plan::size;
use super::room;
use crate::args::CopyArgs;
use crate::error::CliError;
use crate::signals::StopFlag;
use crate::{output, progress};

/// `oblivio copy`.
pub(crate) fn copy(args: &CopyArgs) -> Result<(), CliError> {
    let CopyArgs { from, to, .. } = args;
    if let Some(path) = to.shared_file(from) {
        return Err(CliError::Input(format!(
            "{} is a part of the volume to copy: choose another location for the copy",
            path.display()
        )));
    }
    if [from, to].iter().any(|it| matches!(it, Location::Shares(_))) {
        return Err(CliError::Input(
            "the shares of a volume depend on its servers and cannot be copied: serve both \
             volumes (oblivio serve nbd), and copy the disk from one to the other, for example \
             with nbdcopy"
                .into(),
        ));
    }
    let options = StoreOptions::default().with_read_only(true);
    let OpenedStore { store: mut source, condition } = from.open(&options)?;
    condition.damage.iter().for_each(|damage| output::print_remark(&format!("{from}: {damage}")));
    let locked = copying::read_superblock(&mut *source)
        .map_err(|error| no_superblock(error, from.kind()))?;
    check_parties(from, locked.unauthenticated_params())?;
    let shapes = shapes_of(&*source);
    let file = ProgressFile::of(args, &shapes)?;
    // From here on, an interrupted copy needs a message.
    let end = StopFlag::listen()?;
    let name = VolumeFingerprint::compute(&mut *source).map_err(|error| failed(from, error, ""))?;
    let (mut target, begun) = match args.resume {
        true => match file.read()? {
            Some(begun) => resume(to, &shapes, &file, begun)?,
            None => resume_at_the_end(args, &locked, &file, name)?,
        },
        false => {
            file.check_vacant()?;
            to.check_vacant()?;
            room::check_copy(to, &shapes, condition.allocated_bytes)?;
            begin(to, &shapes, &file, Progress::begin(name))?
        }
    };

    let is_resumed = begun != Progress::begin(name);
    let reads_back = !args.no_verify;
    let options = CopyOptions { reads_back, keep_each_bytes: args.keep_every };
    let bar = progress::bar_of(0, "buckets");
    let mut watch = Watch { file: &file, bar, end, reads_back };
    let copied = copying::copy(&mut *source, &mut *target, begun, options, &mut watch);
    watch.bar.finish_and_clear();
    let copied = copied.map_err(|error| explained(error, from, to, &file))?;
    // Until here, the lock keeps other processes from opening the copy.
    drop(target);
    file.remove().map_err(|error| not_kept(&file, &error))?;
    output::print(&if args.json {
        format!("{:#}", report_json(args, &copied, is_resumed))
    } else {
        format!(
            "{to} is a copy of {from}: {}.\n\
             Once the copy has been opened, the original is refused as older.",
            report_text(args, &copied)
        )
    })
}

/// The report of this run as JSON. Work of an earlier run that was interrupted is not counted.
fn report_json(args: &CopyArgs, copied: &Copied, is_resumed: bool) -> Value {
    json!({
        "from": output::location_text(&args.from),
        "to": output::location_text(&args.to),
        "buckets": copied.buckets,
        "buckets_written": copied.buckets_written,
        "bytes_written": copied.bytes_written,
        "resumed": is_resumed,
        "buckets_compared": copied.buckets_compared,
        "read_back": copied.buckets_compared == copied.buckets,
    })
}

/// The numbers of buckets that this run wrote and compared, as a sentence without its full stop.
fn report_text(args: &CopyArgs, copied: &Copied) -> String {
    let Copied { buckets, buckets_written, bytes_written, buckets_compared } = *copied;
    let compared = if args.no_verify {
        "nothing was read back (--no-verify)".into()
    } else if buckets_compared == buckets {
        "everything was read back and compared".into()
    } else {
        format!(
            "{buckets_compared} buckets were read back and compared (an earlier run compared the \
             others)"
        )
    };
    let written = size(bytes_written as f64);
    format!("{buckets_written} of {buckets} buckets ({written}) were written, and {compared}")
}

/// Begins a copy. The progress file is written first, so that every later state can be resumed.
fn begin(
    to: &Location,
    shapes: &[TreeShape],
    file: &ProgressFile,
    begun: Progress,
) -> Result<(BoxedStore, Progress), CliError> {
    file.record(&begun).map_err(|error| not_kept(file, &error))?;
    let made = past_the_cache(|options| to.create(shapes, options)).inspect_err(|_| {
        // Nothing else was left behind. If removing fails, the next attempt gives advice.
        let _ = file.remove();
    })?;
    Ok((made, begun))
}

/// Resumes an interrupted copy with the progress `begun`. If nothing was copied yet, and the
/// destination is vacant or half-made, begins the copy again.
fn resume(
    to: &Location,
    shapes: &[TreeShape],
    file: &ProgressFile,
    begun: Progress,
) -> Result<(BoxedStore, Progress), CliError> {
    let is_at_its_beginning = begun.step == CopyStep::Moving && begun.buckets == 0;
    if is_at_its_beginning && to.check_vacant().is_ok() {
        return begin(to, shapes, file, begun);
    }
    let opened = match past_the_cache(|options| to.open(options)) {
        // Half-made storage without contents is made again.
        Err(error)
            if is_at_its_beginning
                && error.kind() != OpenErrorKind::Locked
                && to.is_incomplete(shapes)? =>
        {
            // If this fails, `begin` finds the storage and reports it.
            let _ = to.remove();
            return begin(to, shapes, file, begun);
        }
        opened => opened?,
    };
    opened
        .condition
        .mended
        .iter()
        .for_each(|mended| output::print_remark(&format!("{to}: {mended}")));
    Ok((opened.store, begun))
}

/// Resumes a copy whose progress file was deleted: only its last step can be left.
fn resume_at_the_end(
    args: &CopyArgs,
    locked: &LockedSuperblock,
    file: &ProgressFile,
    source: VolumeFingerprint,
) -> Result<(BoxedStore, Progress), CliError> {
    let CopyArgs { from, to, .. } = args;
    let opened = past_the_cache(|options| to.open(options));
    let mut store = opened.map_err(|_| file.is_missing())?.store;
    if VolumeFingerprint::compute(&mut *store).is_ok_and(|there| there == source) {
        return Ok((store, Progress { source, step: CopyStep::Finishing, buckets: 0 }));
    }
    let volume_id = locked.unauthenticated_volume_id();
    match copying::read_superblock(&mut *store) {
        Ok(there) if there.unauthenticated_volume_id() == volume_id => {
            Err(CliError::Input(format!(
                "{to} already holds this volume, so no copy can be resumed: it was copied, and \
                 {to} or {from} has been opened since. Use the one opened last"
            )))
        }
        _ => Err(file.is_missing()),
    }
}

/// Calls `open` with direct I/O if possible, so that reading back reads the medium and the copy
/// does not fill the page cache. If direct I/O is refused, calls `open` without it.
fn past_the_cache<T>(open: impl Fn(&StoreOptions) -> Result<T, OpenError>) -> Result<T, OpenError> {
    match open(&StoreOptions::default().with_direct(true)) {
        Err(error) if error.kind() == OpenErrorKind::DirectRefused => {
            open(&StoreOptions::default())
        }
        opened => opened,
    }
}

struct Watch<'k> {
    file: &'k ProgressFile,
    bar: ProgressBar,
    end: StopFlag,
    reads_back: bool,
}

impl CopyWatch for Watch<'_> {
    fn keep(&mut self, progress: &Progress) -> io::Result<()> {
        self.file.record(progress)
    }

    fn should_continue(&mut self, progress: &Progress, of: u64) -> bool {
        let steps = 1 + u64::from(self.reads_back);
        let done = if progress.step == CopyStep::Moving { 0 } else { of };
        self.bar.set_length(of.saturating_mul(steps));
        self.bar.set_position(done.saturating_add(progress.buckets));
        !self.end.is_requested()
    }
}

fn explained(error: CopyError, from: &Location, to: &Location, file: &ProgressFile) -> CliError {
    let message = error.to_string();
    match error {
        CopyError::NoVolume(error) => no_superblock(error, from.kind()).into(),
        CopyError::Source(error) => {
            failed(from, error, ". The same command with --resume continues")
        }
        CopyError::Destination(error) => {
            failed(to, error, ". The same command with --resume continues")
        }
        CopyError::Progress(error) => not_kept(file, &error),
        CopyError::Different(_) => CliError::Different(format!("{from} and {to}: {message}")),
        CopyError::InUse => CliError::Input(format!(
            "{to}: {message}. If it is the copy, it is complete: just remove {}",
            file.path().display()
        )),
        CopyError::Changed => {
            CliError::Input(format!("{from}: {message} ({to} and {})", file.path().display()))
        }
        CopyError::Interrupted => {
            CliError::Engine(format!("{message}: the same command with --resume continues"))
        }
        _ => CliError::Input(format!("{to}: {message}")),
    }
}

fn failed(place: &Location, error: StoreError, advice: &str) -> CliError {
    let message = format!("{place}: {error}{advice}");
    VolumeError::new(VolumeError::from(error).kind(), message).into()
}

fn not_kept(file: &ProgressFile, error: &io::Error) -> CliError {
    let path = file.path().display();
    let message = format!("{path} cannot be written or removed ({error})");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            CliError::NoSpace(format!(
                "{message}: make room there. The same command with --resume continues"
            ))
        }
        io::ErrorKind::NotFound => CliError::Output(format!(
            "{path}, which records the progress of the copy, cannot be written because its folder \
             does not exist: make the folder, or choose another destination"
        )),
        io::ErrorKind::ReadOnlyFilesystem => CliError::Output(format!(
            "{message}: mount its file system read-write, or choose another file with --progress"
        )),
        _ => CliError::Output(format!("{message}: choose another file with --progress")),
    }
}
