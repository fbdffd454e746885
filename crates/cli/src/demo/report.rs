//! The figures of a demonstration.

use std::path::{Path, PathBuf};

use oblivio_core::view::Operation;
use oblivio_store::path_text;
use serde::{Serialize, Serializer};

use super::crash::MountReport;
use super::folder::{Difference, Folder};
use super::picture::Pictures;
use super::session::DemoSession;
use crate::error::CliError;

/// The output of `--json`. Other programs rely on the names of the fields.
#[derive(Serialize)]
pub(super) struct Report {
    #[serde(serialize_with = "as_text")]
    folder: PathBuf,
    files: usize,
    file_bytes: u64,
    disk_bytes: u64,
    requests_of_owner: u64,
    /// Microseconds per request, including the time of clients and of the recorder.
    microseconds_per_request: f64,
    seen_by_storage: SeenByStorage,
    /// Whether the server of a mounted file system was killed, too.
    was_mounted: bool,
    files_synced_before_the_kill: usize,
    files_lost: usize,
    files_changed: usize,
    #[serde(serialize_with = "as_text")]
    picture: PathBuf,
    #[serde(serialize_with = "as_text")]
    view: PathBuf,
}

/// Writes a path as JSON, even if it is not UTF-8.
fn as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path_text(path))
}

#[derive(Serialize)]
struct SeenByStorage {
    accesses: u64,
    trips: u64,
    pieces: u64,
    bytes_read: u64,
    bytes_written: u64,
}

impl Report {
    pub(super) fn new(
        source: &Folder,
        disk_bytes: u64,
        session: &DemoSession,
        differences: [&Difference; 2],
        mounted: &MountReport,
        pictures: &Pictures,
    ) -> Self {
        let requests = session.requests();
        Self {
            folder: source.path.clone(),
            files: source.files.len(),
            file_bytes: source.bytes,
            disk_bytes,
            requests_of_owner: requests,
            microseconds_per_request: session.elapsed.as_secs_f64() * 1e6 / requests as f64,
            seen_by_storage: SeenByStorage::new(session),
            was_mounted: matches!(mounted, MountReport::Killed(_)),
            files_synced_before_the_kill: mounted.synced().len(),
            files_lost: differences.iter().map(|difference| difference.lost).sum(),
            files_changed: differences.iter().map(|difference| difference.changed).sum(),
            picture: pictures.svg.clone(),
            view: pictures.view.clone(),
        }
    }

    pub(super) fn json(&self) -> Result<String, CliError> {
        serde_json::to_string_pretty(self)
            .map_err(|error| CliError::Output(format!("cannot write the figures as JSON: {error}")))
    }

    pub(super) fn text(&self) -> String {
        let seen = &self.seen_by_storage;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        format!(
            "owner          {} blocks requested, {:.0} µs each (recording included)\n\
             storage        saw {} accesses to paths, {} calls, {} pieces\n\
             bytes moved    {:.0} MiB read, {:.0} MiB written\n\
             lost           {} files\n\
             changed        {} files\n\
             picture        {}\n\
             view           {} (show it with oblivio view show, or view export)",
            self.requests_of_owner,
            self.microseconds_per_request,
            seen.accesses,
            seen.trips,
            seen.pieces,
            mib(seen.bytes_read),
            mib(seen.bytes_written),
            self.files_lost,
            self.files_changed,
            self.picture.display(),
            self.view.display(),
        )
    }

    /// Fails unless every file is intact.
    pub(super) fn check_nothing_lost(&self) -> Result<(), CliError> {
        match self.files_lost + self.files_changed {
            0 => Ok(()),
            wrong => Err(CliError::Different(format!(
                "{wrong} files are not what was written, which is a defect: please report it with \
                 {}",
                self.view.display()
            ))),
        }
    }
}

impl SeenByStorage {
    fn new(session: &DemoSession) -> Self {
        let tally = &session.summary.tally;
        let totals = Operation::ALL.map(|operation| tally.of(operation));
        Self {
            accesses: session.summary.accesses,
            trips: totals.iter().map(|total| total.trips).sum(),
            pieces: totals.iter().map(|total| total.events).sum(),
            bytes_read: tally.of(Operation::Read).bytes,
            bytes_written: tally.of(Operation::Write).bytes,
        }
    }
}
