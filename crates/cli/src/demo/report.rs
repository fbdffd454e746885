//! The figures of a demonstration.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use oblivio_core::view::Operation;
use serde::Serialize;

use super::onlooker::Seen;
use super::owner::Diary;
use super::source::Source;
use crate::args::DemoArgs;
use crate::error::CliError;

/// What `--json` prints. Names are API.
#[derive(Serialize)]
pub(super) struct Report {
    file: PathBuf,
    file_bytes: u64,
    sha256_written: String,
    sha256_read_back: String,
    differing_reads: u64,
    identical: bool,
    scheme: String,
    seed: Option<u64>,
    block_bytes: usize,
    blocks: u64,
    accesses: u64,
    aes_blocks: u64,
    /// The recorder and its file are part of it.
    microseconds_per_access: f64,
    seen_by_storage: SeenByStorage,
    secret: Secret,
    picture: PathBuf,
    view: PathBuf,
    csv: PathBuf,
}

#[derive(Serialize)]
struct SeenByStorage {
    leaves: u64,
    trips: u64,
    events: u64,
    bytes_read: u64,
    bytes_written: u64,
}

/// What the owner knows and storage does not.
#[derive(Serialize)]
struct Secret {
    stash_peak_blocks: usize,
}

impl Report {
    pub(super) fn new(
        args: &DemoArgs,
        source: &Source,
        diary: &Diary,
        seen: &Seen,
        [picture, view, csv]: [&Path; 3],
    ) -> Self {
        let sha256_written = source.sha256();
        let sha256_read_back = diary.sha256_read_back.clone();
        let scheme = args.scheme.to_possible_value();
        Self {
            file: source.path.clone(),
            file_bytes: source.bytes.len() as u64,
            identical: sha256_written == sha256_read_back && diary.differing_reads == 0,
            sha256_written,
            sha256_read_back,
            differing_reads: diary.differing_reads,
            scheme: scheme.map_or_else(String::new, |value| value.get_name().to_owned()),
            seed: args.seed,
            block_bytes: source.block_bytes,
            blocks: diary.blocks,
            accesses: diary.accesses(),
            aes_blocks: diary.aes_blocks,
            microseconds_per_access: diary.elapsed.as_secs_f64() * 1e6 / diary.accesses() as f64,
            seen_by_storage: SeenByStorage::new(seen),
            secret: Secret { stash_peak_blocks: diary.stash_peak_blocks },
            picture: picture.to_owned(),
            view: view.to_owned(),
            csv: csv.to_owned(),
        }
    }

    pub(super) fn json(&self) -> Result<String, CliError> {
        serde_json::to_string_pretty(self)
            .map_err(|error| CliError::Output(format!("the figures are no JSON: {error}")))
    }

    pub(super) fn text(&self) -> String {
        let Self { file_bytes, block_bytes, blocks, accesses, seen_by_storage: seen, .. } = self;
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let moved = seen.bytes_read + seen.bytes_written;
        format!(
            "file           {} ({file_bytes} bytes in {blocks} blocks of {block_bytes})\n\
             sha-256        {} written\n\
             \x20              {} read back: {}\n\
             accesses       {accesses}, {:.1} µs each (recording included)\n\
             bytes moved    {:.1} MiB, {:.0} times the bytes asked for\n\
             AES blocks     {}, {:.0} an access\n\
             storage saw    {} calls for {} pieces, in a tree of {} leaves\n\
             secret         at most {} blocks were left in the stash; storage does not know\n\
             picture        {}\n\
             view           {}\n\
             \x20              {}",
            self.file.display(),
            self.sha256_written,
            self.sha256_read_back,
            if self.identical { "identical" } else { "DIFFERENT" },
            self.microseconds_per_access,
            mib(moved),
            moved as f64 / (*accesses as f64 * *block_bytes as f64),
            self.aes_blocks,
            self.aes_blocks as f64 / *accesses as f64,
            seen.trips,
            seen.events,
            seen.leaves,
            self.secret.stash_peak_blocks,
            self.picture.display(),
            self.view.display(),
            self.csv.display(),
        )
    }

    /// An error unless every byte came back as it was written.
    pub(super) fn check_identical(&self) -> Result<(), CliError> {
        if self.identical {
            return Ok(());
        }
        Err(CliError::Different(format!(
            "what was read back is not what was written ({} reads differ): this is a defect of the \
             engine; please report it with {}",
            self.differing_reads,
            self.view.display()
        )))
    }
}

impl SeenByStorage {
    fn new(seen: &Seen) -> Self {
        let totals = Operation::ALL.map(|operation| seen.tally.of(operation));
        Self {
            leaves: 1 << seen.leaf_level,
            trips: totals.iter().map(|total| total.trips).sum(),
            events: totals.iter().map(|total| total.events).sum(),
            bytes_read: seen.tally.of(Operation::Read).bytes,
            bytes_written: seen.tally.of(Operation::Write).bytes,
        }
    }
}
