//! File accesses of programs, after the `FileBench` profiles of the same names.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// A mix of programs.
#[derive(Clone, Copy)]
pub(super) enum Mix {
    /// One program reads a file of 1 GiB sequentially, in reads of 1 MiB.
    SeqRead,
    /// 50 programs repeat these steps: create a file of 128 KiB, append 16 KiB to a second, read a
    /// third in reads of 1 MiB, delete a fourth, and stat a fifth.
    FileServer,
    /// 48 programs read videos in reads of 256 KiB while one replaces videos in writes of 1 MiB.
    VideoServer,
}

/// Number of files of the file server.
const FILES: usize = 5000;
const FILES_PER_FOLDER: usize = 20;
const FILE_BYTES: usize = 128 * KIB;
const APPEND_BYTES: usize = 16 * KIB;
const CLIENTS: u64 = 50;
const ROUNDS: usize = 20;

/// Number of videos of the video server. Readers read the first half; the writer replaces the
/// second half.
const VIDEOS: usize = 32;
const VIDEO_BYTES: usize = 64 * MIB;
const READERS: u64 = 48;
const READ_BYTES: usize = 256 * KIB;
const READS: usize = 64;
/// Number of reads, over all readers, per piece that the writer writes.
const READS_PER_PIECE: usize = 64;

impl Mix {
    pub(super) const ALL: [Self; 3] = [Self::SeqRead, Self::FileServer, Self::VideoServer];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SeqRead => "seq-read",
            Self::FileServer => "file-server",
            Self::VideoServer => "video-server",
        }
    }

    /// The read-ahead of the kernel in KiB: the size of one read.
    pub(super) fn read_ahead_kib(self) -> usize {
        match self {
            Self::SeqRead | Self::FileServer => MIB / KIB,
            Self::VideoServer => READ_BYTES / KIB,
        }
    }

    /// Creates the files that exist before the run.
    pub(super) fn prepare(self, folder: &Path, seed: u64) -> io::Result<()> {
        let mut coins = StdRng::seed_from_u64(seed);
        match self {
            Self::SeqRead => write(&folder.join("file"), 1 << 30, MIB, &mut coins),
            Self::FileServer => (0..FILES).try_for_each(|number| {
                let path = file(folder, number);
                fs::create_dir_all(path.parent().unwrap_or(folder))?;
                write(&path, FILE_BYTES, MIB, &mut coins)
            }),
            Self::VideoServer => (0..VIDEOS)
                .try_for_each(|number| write(&video(folder, number), VIDEO_BYTES, MIB, &mut coins)),
        }
    }

    /// Runs each program of the mix on its own thread. The writer of videos has none: the readers
    /// do its writes.
    pub(super) fn run(self, folder: &Path, seed: u64) -> io::Result<()> {
        match self {
            Self::SeqRead => read(&folder.join("file"), MIB),
            Self::FileServer => {
                let next = Mutex::new(FILES);
                on_threads(CLIENTS, seed, |coins| {
                    (0..ROUNDS).try_for_each(|_| serve_files(folder, &next, coins))
                })
            }
            Self::VideoServer => {
                let written = Mutex::new(Writer { reads: 0, pieces: 0 });
                on_threads(READERS, seed, |coins| show_video(folder, &written, coins))
            }
        }
    }
}

/// Runs `program` on `threads` threads.
fn on_threads(
    threads: u64,
    seed: u64,
    program: impl Fn(&mut StdRng) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let program = &program;
    thread::scope(|scope| {
        let programs: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || program(&mut StdRng::seed_from_u64(seed << 16 | thread)))
            })
            .collect();
        let crashed = |_| Err(io::Error::other("a program of the mix panicked"));
        programs.into_iter().try_for_each(|program| program.join().unwrap_or_else(crashed))
    })
}

/// Runs one round of a client of the file server. `next` is the number of the next new file.
fn serve_files(folder: &Path, next: &Mutex<usize>, coins: &mut StdRng) -> io::Result<()> {
    let number = {
        let mut next = next.lock().map_err(|_| io::Error::other("a client panicked"))?;
        *next += 1;
        *next - 1
    };
    let mut any = || file(folder, coins.random_range(0..FILES));
    let [appended, whole, deleted, looked_at] = [any(), any(), any(), any()];
    let new = file(folder, number);
    fs::create_dir_all(new.parent().unwrap_or(folder))?;
    write(&new, FILE_BYTES, MIB, coins)?;
    // Another client may have deleted a file. Skip it then.
    if let Ok(mut file) = OpenOptions::new().append(true).open(appended) {
        file.write_all(&data(APPEND_BYTES, coins))?;
    }
    unless_gone(read(&whole, MIB))?;
    unless_gone(fs::remove_file(deleted))?;
    unless_gone(fs::metadata(looked_at).map(drop))
}

/// The writer of videos, with the numbers of reads and written pieces so far. They determine the
/// next piece to write.
struct Writer {
    reads: usize,
    pieces: usize,
}

/// Runs one reader, which starts at a random place in a random video. After every
/// [`READS_PER_PIECE`] reads of all readers, writes the next piece for `writer`.
fn show_video(folder: &Path, writer: &Mutex<Writer>, coins: &mut StdRng) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let shown = File::open(video(folder, coins.random_range(0..VIDEOS / 2)))?;
    let reads_in_video = VIDEO_BYTES / READ_BYTES;
    let first = coins.random_range(0..reads_in_video);
    let mut buffer = vec![0; READ_BYTES];
    for read in first..first + READS {
        shown.read_exact_at(&mut buffer, (read % reads_in_video * READ_BYTES) as u64)?;
        let mut writer = writer.lock().map_err(|_| io::Error::other("a reader panicked"))?;
        writer.reads += 1;
        if writer.reads.is_multiple_of(READS_PER_PIECE) {
            let pieces_in_video = VIDEO_BYTES / MIB;
            let number = VIDEOS / 2 + writer.pieces / pieces_in_video % (VIDEOS / 2);
            let file = OpenOptions::new().write(true).open(video(folder, number))?;
            let offset = writer.pieces % pieces_in_video * MIB;
            file.write_all_at(&data(MIB, coins), offset as u64)?;
            file.sync_data()?;
            writer.pieces += 1;
        }
    }
    Ok(())
}

fn file(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("{}/{number}", number / FILES_PER_FOLDER))
}

fn video(folder: &Path, number: usize) -> PathBuf {
    folder.join(number.to_string())
}

fn data(bytes: usize, coins: &mut StdRng) -> Vec<u8> {
    let mut data = vec![0; bytes];
    coins.fill(&mut data[..]);
    data
}

/// Writes a new file of `bytes` bytes, `at_once` bytes per write.
fn write(path: &Path, bytes: usize, at_once: usize, coins: &mut StdRng) -> io::Result<()> {
    let mut file = File::create(path)?;
    let data = data(at_once.min(bytes), coins);
    (0..bytes / data.len()).try_for_each(|_| file.write_all(&data))
}

/// Reads a whole file, `at_once` bytes per read.
fn read(path: &Path, at_once: usize) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; at_once];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}

fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
