//! What the machine takes under real servers, apart from computing: a question, bytes between sockets, files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use oblivio_core::BucketId;
use oblivio_core::store::{Patience, ShareServers};
use oblivio_shares::message::{Point, Request, Slots};
use oblivio_shares::tree::Tree;
use serde::{Deserialize, Serialize};

use super::Clock;
use super::metered::Metered;
use super::place::{Disk, Place};
use super::spread::Spread;
use crate::LabError;
use crate::link::Link;
use crate::links::SERVERS;

/// Measured before anything that is compared with it, with the servers of the tree that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// All servers are asked something that takes no computing: how far they are. The median, in seconds.
    pub question_seconds: f64,
    /// Bytes that all servers together answer in a second, through TLS and sockets.
    pub bytes_per_second: f64,
    /// To read a byte of a file that is in memory, where each server does.
    pub read_byte_seconds: f64,
    /// To write a byte and have it durable, where each server does.
    pub written_byte_seconds: f64,
    /// To write a little and have it durable, where each server does. The median.
    pub sync_seconds: f64,
    /// Processors that clients and servers share.
    pub processors: f64,
}

const QUESTIONS: usize = 60;
const FETCHES: usize = 40;
const FILE_BYTES: usize = 32 << 20;
const CHUNK_BYTES: usize = 256 << 10;
const SYNCS: usize = 30;

impl Ground {
    /// Asks servers of a new tree, and makes files beside theirs.
    pub(super) fn measure(
        servers: &mut Metered,
        (tree, slot_bytes): (Tree, usize),
        folder: &Path,
        clock: &Clock,
    ) -> Result<Self, LabError> {
        let count = servers.count();
        let mut median = |request: &Request, times: usize| {
            servers.take();
            for _ in 0..times {
                let message = Some(request.encode());
                let answered = servers.ask(vec![message; count], Patience::Short);
                if let Some(Err(error)) = answered.into_iter().flatten().find(Result::is_err) {
                    return Err(LabError::from(oblivio_core::Error::from(error)));
                }
            }
            Ok(Spread::of(servers.take().iter().map(|asked| asked.seconds)).median)
        };
        let question_seconds = median(&Request::Epoch, QUESTIONS)?;
        let leaf = BucketId::new(tree.height(), 0);
        let slots = Slots { bucket: leaf, first: 0, count: 1 };
        let fetched = median(&Request::Fetch { at: Point::default(), slots }, FETCHES)?;
        let bytes = (count * slot_bytes) as f64;
        let files = files(folder, clock).map_err(|error| {
            LabError::Output(format!("{}: {error}; choose another folder", folder.display()))
        })?;
        let [read_byte_seconds, written_byte_seconds, sync_seconds] = files;
        Ok(Self {
            question_seconds,
            bytes_per_second: bytes / (fetched - question_seconds).max(1e-6),
            read_byte_seconds,
            written_byte_seconds,
            sync_seconds,
            processors: thread::available_parallelism().map_or(1.0, |count| count.get() as f64),
        })
    }

    /// So many servers here, reached directly or behind a link.
    pub fn place(&self, behind: Option<Link>, servers: u8) -> Place {
        let servers = f64::from(servers);
        let megabits = self.bytes_per_second * 8.0 / 1e6;
        let question_millis = self.question_seconds * 1e3;
        let link = match behind {
            None => Link::new(megabits, megabits, question_millis),
            Some(link) => {
                Link { round_trip_millis: link.round_trip_millis + question_millis, ..link }
            }
        };
        // All of them send at the same time.
        let each = megabits / servers;
        Place {
            link,
            between: Link::new(each, each, question_millis),
            disk: Disk {
                name: "files here".to_owned(),
                read_byte_seconds: self.read_byte_seconds,
                written_byte_seconds: self.written_byte_seconds,
                sync_seconds: self.sync_seconds,
            },
            processors: self.processors / servers,
        }
    }
}

/// Seconds to read a byte, to write one, and to have a little durable: the mean of three threads that do it at the same time.
fn files(folder: &Path, clock: &Clock) -> io::Result<[f64; 3]> {
    let each: Vec<io::Result<[f64; 3]>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..SERVERS as usize)
            .map(|number| {
                let path = folder.join(format!("measured-{number}"));
                scope.spawn(move || {
                    let measured = file(&path, clock);
                    fs::remove_file(&path)?;
                    measured
                })
            })
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|ended| ended.unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))).collect()
    });
    let mut mean = [0.0; 3];
    for of_thread in each {
        let of_thread = of_thread?;
        mean.iter_mut().zip(of_thread).for_each(|(mean, of_thread)| *mean += of_thread / SERVERS);
    }
    Ok(mean)
}

fn file(path: &Path, clock: &Clock) -> io::Result<[f64; 3]> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let mut chunk = vec![7; CHUNK_BYTES];
    let offsets = || (0..FILE_BYTES).step_by(CHUNK_BYTES).map(|offset| offset as u64);
    let since = |start: std::time::Duration| clock().saturating_sub(start).as_secs_f64();
    let start = clock();
    for offset in offsets() {
        file.write_all_at(&chunk, offset)?;
    }
    file.sync_data()?;
    let written = since(start) / FILE_BYTES as f64;
    let start = clock();
    for offset in offsets() {
        file.read_exact_at(&mut chunk, offset)?;
    }
    let read = since(start) / FILE_BYTES as f64;
    let mut syncs = Vec::new();
    for number in 0..SYNCS {
        let start = clock();
        file.write_all_at(&chunk[..4096], (number * 4096) as u64)?;
        file.sync_data()?;
        syncs.push(since(start));
    }
    Ok([read, written, Spread::of(syncs).median])
}
