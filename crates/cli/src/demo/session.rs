//! The owner uses the disk in four phases with recognisable patterns of requests, while the program
//! records what storage sees.

use std::slice;
use std::sync::Arc;
use std::time::Duration;

use oblivio_nbd::{Listen, NbdOptions, serve};
use oblivio_volume::Disk;
use oblivio_volume::device::{BlockDevice, DiskOp, call};
use rand::RngExt;

use super::demo_dir::DemoDir;
use super::programs;
use super::request_log::{Phase, RequestLog};
use crate::args::RunArgs;
use crate::clock::Stopwatch;
use crate::error::CliError;
use crate::view::{TreeSummary, ViewEvaluation};
use crate::volume::{Opened, coins, open};

/// Number of blocks that the loop phase reads repeatedly.
const LOOP_BLOCKS: u64 = 300;

/// A recorded session: the owner's requests, and what storage saw.
pub(super) struct DemoSession {
    /// The owner's requests. Secret.
    pub(super) phases: Vec<Phase>,
    /// Blocks of the disk.
    pub(super) blocks: u64,
    pub(super) summary: TreeSummary,
    /// Time taken to write the file system.
    pub(super) writing: Duration,
    /// Time taken by all phases.
    pub(super) elapsed: Duration,
}

impl DemoSession {
    /// All requested blocks, in order.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.phases.iter().flat_map(|phase| phase.blocks.iter().copied())
    }

    pub(super) fn requests(&self) -> u64 {
        self.phases.iter().map(|phase| phase.blocks.len() as u64).sum()
    }
}

/// Plays all phases. The disk has no cache, so every request reaches storage.
pub(super) fn play(demo_dir: &DemoDir) -> Result<DemoSession, CliError> {
    let view_path = demo_dir.path("demo.view");
    let run = RunArgs { cache: 0, record_view: Some(view_path.clone()), ..RunArgs::default() };
    let Opened { volume, recording, .. } = open(&demo_dir.open_args(), &run)?;
    let blocks = volume.blocks();
    let disk = Arc::new(Disk::start(volume, &run.disk_options())?);
    let request_log = RequestLog::default();
    let watched = request_log.of(disk.clone());
    let server = serve(watched.clone(), Listen::Unix(demo_dir.socket()), NbdOptions::default())
        .map_err(|error| CliError::Engine(error.to_string()))?;

    let stopwatch = Stopwatch::start();
    let mut phases = Vec::new();
    programs::run(&mut demo_dir.write_image(&server.uri())?)?;
    phases.push(request_log.end_phase("write the files"));
    let writing = stopwatch.elapsed();
    programs::run(&mut demo_dir.read_disk(&server.uri(), &demo_dir.copy())?)?;
    phases.push(request_log.end_phase("read the disk"));
    for (name, requested) in short_phases(blocks, demo_dir.short_phase())? {
        read_each(&*watched, &requested)?;
        phases.push(request_log.end_phase(name));
    }
    let elapsed = stopwatch.elapsed();

    server.shutdown().map_err(|error| CliError::Engine(error.to_string()))?;
    drop(watched);
    disk.close()?;
    drop(disk);
    recording.map_or(Ok(()), |recording| recording.finish())?;
    let summary =
        ViewEvaluation::read(slice::from_ref(&view_path), &[], Some(demo_dir.watched_tree()))?
            .into_summary();
    let summary =
        summary.ok_or_else(|| CliError::Engine("storage saw no access to the data".into()))?;
    Ok(DemoSession { phases, blocks, summary, writing, elapsed })
}

/// The name of each phase that reads single blocks, and the blocks that it reads, in order.
fn short_phases(blocks: u64, reads: u64) -> Result<[(&'static str, Vec<u64>); 2], CliError> {
    let mut coins = coins()?;
    let hot = [1, 5, 6].map(|eighths| blocks * eighths / 8);
    let hot = (0..reads).map(|_| hot[coins.random_range(0..hot.len())]).collect();
    let round = (0..reads).map(|i| blocks / 4 + i % LOOP_BLOCKS.min(blocks / 4)).collect();
    Ok([("three blocks", hot), ("a loop", round)])
}

fn read_each(disk: &dyn BlockDevice, blocks: &[u64]) -> Result<(), CliError> {
    let bytes = disk.block_bytes();
    for block in blocks {
        let offset = block * u64::from(bytes);
        call(disk, DiskOp::Read { offset, bytes })
            .map_err(|error| CliError::Engine(error.to_string()))?;
    }
    Ok(())
}
