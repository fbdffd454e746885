//! A lower bound for volumes: moving, verifying, sealing and writing the bytes, and syncing the
//! log. Each part is measured alone, on one processor, in the same run.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::time::Instant;

use aegis::aegis256x4::{Aegis256X4, Aegis256X4Mac};
use tempfile::TempDir;

use crate::load::Load;
use crate::rounds::Rounds;
use crate::spread::Spread;
use crate::subjects::Testbed;

/// Size of a bucket of five blocks of 4 KiB, as in a volume.
const BUCKET_BYTES: usize = 5 * 4096;

/// Size of the measured file: larger than the processor's caches, and small enough for the page
/// cache.
const FILE_BYTES: u64 = 256 << 20;

/// Number of buckets that each part of the measurement moves in a round: reads, writes, verifies or
/// seals.
const ROUND_BUCKETS: usize = 4096;

const ROUND_SYNCS: u32 = 200;

/// Size of a log record of a few accesses, in bytes.
const RECORD_BYTES: usize = 512;

/// The files of the measurement, and its results.
pub struct Floor {
    file: File,
    buckets: u64,
    log: File,
    rounds: Vec<Costs>,
    _folder: TempDir,
}

/// The costs of the parts in seconds: per byte, or per log record.
#[derive(Clone, Copy, Debug)]
struct Costs {
    /// Seconds per byte read from the page cache.
    reads: f64,
    /// Seconds per byte written to the page cache.
    writes: f64,
    /// Seconds per byte of AEGIS-256X4-MAC alone.
    verifies: f64,
    /// Seconds per byte of AEGIS-256X4-MAC with the key stream.
    seals: f64,
    /// Seconds per log record: append and sync.
    syncs: f64,
}

impl Floor {
    pub fn prepare(testbed: &Testbed) -> Result<Self, String> {
        let folder = testbed.folder()?;
        let make = |name: &str| {
            let path = folder.path().join(name);
            OpenOptions::new().read(true).write(true).create_new(true).open(path)
        };
        let (file, log) =
            make("buckets").and_then(|file| Ok((file, make("log")?))).map_err(failed)?;
        let buckets = FILE_BYTES / BUCKET_BYTES as u64;
        let bucket = vec![1; BUCKET_BYTES];
        (0..buckets).try_for_each(|i| file.write_all_at(&bucket, place(i))).map_err(failed)?;
        file.sync_all().map_err(failed)?;
        Ok(Self { file, buckets, log, rounds: Vec::new(), _folder: folder })
    }

    /// Measures each part once.
    pub fn round(&mut self) -> Result<(), String> {
        let mut bucket = vec![1; BUCKET_BYTES];
        let seed = self.rounds.len() as u64;
        let places: Vec<_> =
            scattered(seed).map(|i| place(i % self.buckets)).take(ROUND_BUCKETS).collect();
        // Other subjects may have evicted the file from the page cache.
        (0..self.buckets)
            .try_for_each(|i| self.file.read_exact_at(&mut bucket, place(i)))
            .map_err(failed)?;
        let per_byte = |seconds: f64| seconds / (ROUND_BUCKETS * BUCKET_BYTES) as f64;
        let reads =
            time(|| places.iter().try_for_each(|at| self.file.read_exact_at(&mut bucket, *at)))?;
        let writes =
            time(|| places.iter().try_for_each(|at| self.file.write_all_at(&bucket, *at)))?;
        let mac = Aegis256X4Mac::<32>::new(&[7; 32]);
        let verifies = time(|| {
            for _ in 0..ROUND_BUCKETS {
                let mut mac = mac.clone();
                mac.update(black_box(&bucket));
                black_box(mac.finalize());
            }
            Ok(())
        })?;
        let streams = time(|| {
            for _ in 0..ROUND_BUCKETS {
                Aegis256X4::<32>::new(&[7; 32], &[8; 32])
                    .stream_xor_in_place(black_box(&mut bucket));
            }
            Ok(())
        })?;
        let syncs = time(|| {
            (0..ROUND_SYNCS).try_for_each(|_| {
                self.log.write_all(&[1; RECORD_BYTES])?;
                self.log.sync_data()
            })
        })?;
        self.rounds.push(Costs {
            reads: per_byte(reads),
            writes: per_byte(writes),
            verifies: per_byte(verifies),
            seals: per_byte(verifies + streams),
            syncs: syncs / f64::from(ROUND_SYNCS),
        });
        Ok(())
    }

    /// Upper bound on the requests per second of a load, given the bytes that the volume moved per
    /// request. Syncs of the log count only if the load waits for them; otherwise they overlap with
    /// other requests. `None` before the first round, or if the bytes were not measured.
    pub fn requests_per_second(&self, measured: &Rounds) -> Option<f64> {
        let read = measured.read_bytes()?.median;
        let written = measured.written_bytes()?.median;
        let Costs { reads, writes, verifies, seals, syncs } = self.median()?;
        let Load { flushes, .. } = measured.load;
        let waits = if flushes { syncs } else { 0.0 };
        Some(1.0 / (read * (reads + verifies) + written * (writes + seals) + waits))
    }

    /// Formats the costs as text.
    pub fn describe(&self) -> Option<String> {
        let Costs { reads, writes, verifies, seals, syncs } = self.median()?;
        let rate = |seconds: f64| 1e-9 / seconds;
        Some(format!(
            "floor: the bytes that a request moved, on one processor: {:.1} GB/s from the page \
             cache, {:.1} verified, {:.1} sealed, {:.1} into the page cache; {:.0} us per sync, if \
             the load waits for it",
            rate(reads),
            rate(verifies),
            rate(seals),
            rate(writes),
            syncs * 1e6
        ))
    }

    fn median(&self) -> Option<Costs> {
        if self.rounds.is_empty() {
            return None;
        }
        let over =
            |part: fn(&Costs) -> f64| Spread::from_values(self.rounds.iter().map(part)).median;
        Some(Costs {
            reads: over(|costs| costs.reads),
            writes: over(|costs| costs.writes),
            verifies: over(|costs| costs.verifies),
            seals: over(|costs| costs.seals),
            syncs: over(|costs| costs.syncs),
        })
    }
}

fn place(bucket: u64) -> u64 {
    bucket * BUCKET_BYTES as u64
}

/// Generates pseudo-random numbers, different for each seed.
fn scattered(seed: u64) -> impl Iterator<Item = u64> {
    (seed << 32..).map(|i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16)
}

fn time(work: impl FnOnce() -> std::io::Result<()>) -> Result<f64, String> {
    let clock = Instant::now();
    work().map_err(failed)?;
    Ok(clock.elapsed().as_secs_f64())
}

fn failed(error: std::io::Error) -> String {
    format!("cannot measure the floor: {error}")
}
