//! What programs do with files, as the profiles of `FileBench` of these names have it.

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
    /// One reads a file of 1 GiB from its beginning on, 1 MiB at a time.
    SeqRead,
    /// 50 create a file of 128 KiB, append 16 KiB to another, read a third whole in reads of 1 MiB, delete one, and look at one.
    FileServer,
    /// 48 read videos, 256 KiB at a time, while one writes a video anew, 1 MiB at a time.
    VideoServer,
}

/// Of the file server.
const FILES: usize = 5000;
const FILES_PER_FOLDER: usize = 20;
const FILE_BYTES: usize = 128 * KIB;
const APPEND_BYTES: usize = 16 * KIB;
const CLIENTS: u64 = 50;
const ROUNDS: usize = 20;

/// Of the video server. Half of the videos are shown.
const VIDEOS: usize = 32;
const VIDEO_BYTES: usize = 64 * MIB;
const READERS: u64 = 48;
const READ_BYTES: usize = 256 * KIB;
const READS: usize = 64;
/// The reader that has read so many times has the writer write a piece: in the time in which 48 readers read 12 GiB, a video is
/// replaced.
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

    /// What the kernel reads ahead: as much as a program reads at a time.
    pub(super) fn read_ahead_kib(self) -> usize {
        match self {
            Self::SeqRead | Self::FileServer => MIB / KIB,
            Self::VideoServer => READ_BYTES / KIB,
        }
    }

    /// Makes the files that there are before.
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

    /// Runs all programs, each on a thread.
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

/// Runs `program` on so many threads.
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
        let crashed = |_| Err(io::Error::other("a program of the mix has crashed"));
        programs.into_iter().try_for_each(|program| program.join().unwrap_or_else(crashed))
    })
}

/// A round of a client of the file server. `next` is the number of the next new file.
fn serve_files(folder: &Path, next: &Mutex<usize>, coins: &mut StdRng) -> io::Result<()> {
    let number = {
        let mut next = next.lock().map_err(|_| io::Error::other("a client has crashed"))?;
        *next += 1;
        *next - 1
    };
    let mut any = || file(folder, coins.random_range(0..FILES));
    let [appended, whole, deleted, looked_at] = [any(), any(), any(), any()];
    let new = file(folder, number);
    fs::create_dir_all(new.parent().unwrap_or(folder))?;
    write(&new, FILE_BYTES, MIB, coins)?;
    // Another client may have deleted a file: then there is nothing to do with it.
    if let Ok(mut file) = OpenOptions::new().append(true).open(appended) {
        file.write_all(&data(APPEND_BYTES, coins))?;
    }
    unless_gone(read(&whole, MIB))?;
    unless_gone(fs::remove_file(deleted))?;
    unless_gone(fs::metadata(looked_at).map(drop))
}

/// Which piece of which video is written next.
struct Writer {
    reads: usize,
    pieces: usize,
}

/// A reader begins somewhere in a video that is shown.
fn show_video(folder: &Path, writer: &Mutex<Writer>, coins: &mut StdRng) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let shown = File::open(video(folder, coins.random_range(0..VIDEOS / 2)))?;
    let reads_in_video = VIDEO_BYTES / READ_BYTES;
    let first = coins.random_range(0..reads_in_video);
    let mut buffer = vec![0; READ_BYTES];
    for read in first..first + READS {
        shown.read_exact_at(&mut buffer, (read % reads_in_video * READ_BYTES) as u64)?;
        let mut writer = writer.lock().map_err(|_| io::Error::other("a reader has crashed"))?;
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

/// Writes a new file, so much at a time.
fn write(path: &Path, bytes: usize, at_once: usize, coins: &mut StdRng) -> io::Result<()> {
    let mut file = File::create(path)?;
    let data = data(at_once.min(bytes), coins);
    (0..bytes / data.len()).try_for_each(|_| file.write_all(&data))
}

/// Reads a file whole, so much at a time.
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
