//! What storage saw, kept while it happens.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use oblivio_core::store::Part;
use oblivio_core::view::{Event, EventSink, FileSink, Operation, Tally};

use super::SchemeConfig;
use crate::error::CliError;
use crate::files;

/// Storage, which writes down all it sees.
pub(super) struct Onlooker {
    path: PathBuf,
    file: FileSink<BufWriter<File>>,
    tally: Tally,
    /// What storage knows of the scheme: it is public.
    leaf_level: u8,
    has_evictions: bool,
    visits: Vec<Visit>,
    accesses: u64,
}

/// A path that storage saw being rewritten.
#[derive(Clone, Copy)]
pub(super) struct Visit {
    /// How many accesses came before.
    pub(super) access: u64,
    /// Where the path ends: the index of its leaf bucket.
    pub(super) leaf: u64,
    /// An eviction of RAW ORAM, in a public order, rather than an access.
    pub(super) is_eviction: bool,
}

/// Everything storage saw, in short.
pub(super) struct Seen {
    pub(super) visits: Vec<Visit>,
    pub(super) leaf_level: u8,
    pub(super) tally: Tally,
}

impl Onlooker {
    /// One that keeps the view at `path`.
    pub(super) fn new(path: &Path, config: &SchemeConfig) -> Result<Self, CliError> {
        Ok(Self {
            path: path.to_owned(),
            file: FileSink::new(files::create(path)?),
            tally: Tally::new(),
            leaf_level: config.tree().geometry.leaf_level(),
            has_evictions: matches!(config, SchemeConfig::Raw(_)),
            visits: Vec::new(),
            accesses: 0,
        })
    }

    /// Ends the view file.
    pub(super) fn finish(self) -> Result<Seen, CliError> {
        self.file.finish().map_err(|error| files::cannot_write(&self.path, &error))?;
        Ok(Seen { visits: self.visits, leaf_level: self.leaf_level, tally: self.tally })
    }
}

impl EventSink for Onlooker {
    fn record(&mut self, event: &Event, contents: &[u8]) {
        self.file.record(event, contents);
        self.tally.record(event, contents);
        let Event { operation: Operation::Write, piece: Some(piece), .. } = event else { return };
        if piece.bucket.level() == self.leaf_level {
            // RAW ORAM writes headers back after an access, whole buckets after an eviction.
            let is_eviction = self.has_evictions && piece.part == Part::Whole;
            let leaf = piece.bucket.index();
            self.visits.push(Visit { access: self.accesses, leaf, is_eviction });
            self.accesses += u64::from(!is_eviction);
        }
    }
}
