//! Measures the time of reads and writes of files, with the access pattern of the servers.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use serde::{Deserialize, Serialize};

use super::Clocks;
use super::spread::Spread;
use crate::LabError;
use crate::links::SERVERS;

/// Times of reads and writes of files by three threads at the same time, each of which imitates a
/// server. The files are in memory when they are read, and new when they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Files {
    /// Bytes read or written at once.
    pub piece_bytes: usize,
    /// Processor seconds to read a byte.
    pub read_byte_worked: f64,
    /// Processor seconds to write a byte.
    pub written_byte_worked: f64,
    /// Seconds of waiting for a written byte to become durable.
    pub written_byte_waited: f64,
    /// The median seconds until a small write is durable.
    pub sync_seconds: f64,
}

/// The order and the sizes of reads and writes in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// Slots of a bucket.
    pub(super) slots: usize,
    /// Bytes of a slot.
    pub(super) slot_bytes: usize,
    /// Bytes of a slot that are read or written at once, before the next slot follows.
    pub(super) piece_bytes: usize,
    /// Parts of a bucket that are in progress at the same time, each with its own buffer.
    pub(super) under_way: usize,
}

/// The minimum size of a file in bytes.
const FILE_BYTES: usize = 32 << 20;
const SYNCS: usize = 30;

impl Files {
    /// Measures reads and writes of new files in `folder`, and then removes the files.
    pub(super) fn measure(
        folder: &Path,
        pattern: Pattern,
        clocks: &Clocks,
    ) -> Result<Self, LabError> {
        let of_each: io::Result<Vec<Self>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..SERVERS as usize)
                .map(|number| {
                    let path = folder.join(format!("measured-{number}"));
                    scope.spawn(move || {
                        let measured = file(&path, pattern, clocks);
                        fs::remove_file(&path)?;
                        measured
                    })
                })
                .collect();
            let ended = threads.into_iter().map(|thread| thread.join());
            ended.map(|ended| ended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))).collect()
        });
        let of_each = of_each.map_err(|error| {
            LabError::Output(format!("{}: {error}; choose another folder", folder.display()))
        })?;
        let mean = |part: fn(&Self) -> f64| Spread::from_values(of_each.iter().map(part)).mean;
        Ok(Self {
            piece_bytes: pattern.piece_bytes,
            read_byte_worked: mean(|it| it.read_byte_worked),
            written_byte_worked: mean(|it| it.written_byte_worked),
            written_byte_waited: mean(|it| it.written_byte_waited),
            sync_seconds: mean(|it| it.sync_seconds),
        })
    }
}

fn file(path: &Path, pattern: Pattern, clocks: &Clocks) -> io::Result<Files> {
    let Pattern { slots, slot_bytes, piece_bytes, under_way } = pattern;
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let buckets = FILE_BYTES.div_ceil(slots * slot_bytes);
    let bytes = (buckets * slots * slot_bytes) as f64;
    // The order of an eviction: one part of all slots, then the next part.
    let parts = || {
        (0..buckets).flat_map(move |bucket| {
            let first_slot = bucket * slots;
            (0..slot_bytes).step_by(piece_bytes).map(move |first| (first_slot, first))
        })
    };
    let length = |first: usize| piece_bytes.min(slot_bytes - first);
    let offset = |slot: usize, first: usize| (slot * slot_bytes + first) as u64;
    let [worked, waited] = [&clocks.thread, &clocks.wall];

    let mut places = vec![vec![7; slots * piece_bytes]; under_way];
    let start = worked();
    for (i, (first_slot, first)) in parts().enumerate() {
        let written = &places[i % under_way];
        let pieces = written[..slots * length(first)].chunks_exact(length(first));
        for (piece, slot) in pieces.zip(first_slot..) {
            file.write_all_at(piece, offset(slot, first))?;
        }
    }
    let written_byte_worked = worked().saturating_sub(start).as_secs_f64() / bytes;
    let start = waited();
    file.sync_data()?;
    let written_byte_waited = waited().saturating_sub(start).as_secs_f64() / bytes;

    let start = worked();
    for (i, (first_slot, first)) in parts().enumerate() {
        let read = &mut places[i % under_way][..slots * length(first)];
        for (piece, slot) in read.chunks_exact_mut(length(first)).zip(first_slot..) {
            file.read_exact_at(piece, offset(slot, first))?;
        }
    }
    let read_byte_worked = worked().saturating_sub(start).as_secs_f64() / bytes;

    let mut syncs = Vec::new();
    for number in 0..SYNCS {
        let start = waited();
        file.write_all_at(&[7; 4096], (number * 4096) as u64)?;
        file.sync_data()?;
        syncs.push(waited().saturating_sub(start).as_secs_f64());
    }
    let sync_seconds = Spread::from_values(syncs).median;
    Ok(Files {
        piece_bytes,
        read_byte_worked,
        written_byte_worked,
        written_byte_waited,
        sync_seconds,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::super::Clock;
    use super::*;

    /// Each clock advances by a fixed time whenever it is read. It is read once before and once
    /// after the measured work, so the measured times are known.
    #[test]
    fn bytes_take_the_time_of_the_clock_and_files_are_removed() {
        let ticking = |millis: u64| -> Clock {
            let reads = AtomicU64::new(0);
            Arc::new(move || Duration::from_millis(millis * reads.fetch_add(1, Ordering::Relaxed)))
        };
        let clocks = Clocks { wall: ticking(7), thread: ticking(0), processors: ticking(0) };
        let folder = tempfile::tempdir().unwrap();
        // The last piece of a slot is shorter.
        let pattern = Pattern { slots: 10, slot_bytes: 100_000, piece_bytes: 30_000, under_way: 2 };
        let files = Files::measure(folder.path(), pattern, &clocks).unwrap();
        assert_eq!((files.piece_bytes, files.read_byte_worked), (30_000, 0.0));
        // All three threads read the same clock.
        let bytes = 34e6;
        assert!((0.007 / bytes..=0.5 / bytes).contains(&files.written_byte_waited), "{files:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        let nowhere = folder.path().join("nowhere");
        let error = Files::measure(&nowhere, pattern, &clocks).unwrap_err();
        assert!(error.to_string().contains("choose another folder"), "{error}");
    }
}
