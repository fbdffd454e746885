//! A file of a client's directory. Another thread can sync it while its owner continues.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::StateFile;

/// Bytes of filler that are written after appended data in a file that [expects
/// more](StateFile::expect_more). A sync of bytes that are allocated, in a file whose length does
/// not change, leaves the file system's metadata alone: it takes 120 microseconds instead of 160 to
/// 200, and 43 microseconds of CPU instead of 61.
pub const FILLER_BYTES: u64 = 256 << 10;

/// The byte of filler. Not zero: a file system or a disk returns zeros for data that it has lost.
pub const FILLER: u8 = 0xA5;

/// Maximum length of an append that writes filler.
const SHORT_BYTES_MAX: usize = 32 << 10;

/// A file that is open for appending.
pub(super) struct FsStateFile {
    file: Arc<File>,
    /// The offset of the next append.
    end: u64,
    /// Whether short appends write filler after the logical end.
    has_filler: bool,
    /// The end of the filler.
    filler_end: u64,
    /// The thread that syncs. It starts with the first background sync.
    syncer: Option<Syncer>,
}

impl FsStateFile {
    pub(super) fn new(file: File) -> Self {
        let file = Arc::new(file);
        Self { file, end: 0, has_filler: false, filler_end: 0, syncer: None }
    }

    fn write_filler(&mut self) {
        let filler = vec![FILLER; FILLER_BYTES as usize];
        self.filler_end = self.end + FILLER_BYTES;
        self.has_filler = self.file.write_all_at(&filler, self.end).is_ok();
        if !self.has_filler {
            // Without room for filler, there may be room for the next append: remove what was
            // written of it. If that fails, it only takes space.
            let _ = self.file.set_len(self.end);
        }
    }
}

impl StateFile for FsStateFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.end)?;
        self.end += bytes.len() as u64;
        // After the data: a process that is killed in between leaves no hole.
        if self.has_filler && self.end > self.filler_end && bytes.len() <= SHORT_BYTES_MAX {
            self.write_filler();
        }
        Ok(())
    }

    fn expect_more(&mut self) {
        self.has_filler = true;
    }

    fn sync(&mut self) -> io::Result<()> {
        // The system reports a sync error once: the background sync may have it.
        if let Some(syncer) = &mut self.syncer {
            syncer.finish()?;
        }
        self.file.sync_data()
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        if self.syncer.is_none() {
            // Without a thread, `finish_sync` makes the sync.
            self.syncer = Syncer::start(self.file.clone()).ok();
        }
        self.syncer.as_mut().map_or(Ok(()), Syncer::begin)
    }

    fn is_sync_over(&mut self) -> bool {
        self.syncer.as_mut().is_some_and(Syncer::is_over)
    }

    fn finish_sync(&mut self) -> io::Result<()> {
        match &mut self.syncer {
            Some(syncer) if syncer.is_under_way => syncer.finish(),
            _ => self.sync(),
        }
    }
}

/// Syncs a file on its own thread. The thread ends when this is dropped.
struct Syncer {
    /// Sends one message per sync. Dropped to end the thread.
    requests: Option<Sender<()>>,
    outcomes: Receiver<io::Result<()>>,
    is_under_way: bool,
    /// The outcome of the current sync, once it is known.
    outcome: Option<io::Result<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    fn start(file: Arc<File>) -> io::Result<Self> {
        let (requests, begun) = channel::<()>();
        let (done, outcomes) = channel();
        let serve = move || {
            while begun.recv().is_ok() && done.send(file.sync_data()).is_ok() {}
        };
        let thread = thread::Builder::new().name("log".into()).spawn(serve)?;
        Ok(Self {
            requests: Some(requests),
            outcomes,
            is_under_way: false,
            outcome: None,
            thread: Some(thread),
        })
    }

    fn begin(&mut self) -> io::Result<()> {
        self.finish()?;
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(()).map_err(|_| gone())?;
        self.is_under_way = true;
        Ok(())
    }

    /// Whether the current sync is over. If its thread has died, [`Self::finish`] reports that.
    fn is_over(&mut self) -> bool {
        if self.is_under_way && self.outcome.is_none() {
            self.outcome = self.outcomes.try_recv().ok();
        }
        self.outcome.is_some()
    }

    /// Waits for the current sync, if there is one.
    fn finish(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_under_way) {
            return Ok(());
        }
        match self.outcome.take() {
            Some(outcome) => outcome,
            None => self.outcomes.recv().map_err(|_| gone())?,
        }
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that syncs the log has ended")
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is ignored: no sync is waited for any more.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_while_a_sync_is_under_way_is_appended_and_synced_later() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = FsStateFile::new(File::create(&path).unwrap());
        file.finish_sync().unwrap();
        for round in 0..20 {
            file.append(b"before ").unwrap();
            file.begin_sync().unwrap();
            file.append(b"meanwhile ").unwrap();
            while round % 4 == 0 && !file.is_sync_over() {
                thread::yield_now();
            }
            if round % 3 == 0 {
                file.begin_sync().unwrap();
            }
            if round % 2 == 0 {
                file.finish_sync().unwrap();
            } else {
                file.sync().unwrap();
            }
            assert!(file.syncer.as_ref().is_some_and(|syncer| !syncer.is_under_way));
        }
        drop(file);
        assert_eq!(std::fs::read(&path).unwrap(), b"before meanwhile ".repeat(20));
    }

    /// A failed background sync is reported by the next call that waits for or begins a sync. The
    /// system would not report the error again: a later sync of the same file succeeds.
    #[test]
    fn no_later_sync_hides_an_error() {
        let finishings: [fn(&mut FsStateFile) -> io::Result<()>; 3] =
            [StateFile::sync, StateFile::finish_sync, StateFile::begin_sync];
        for finish in finishings {
            let (outcome, outcomes) = channel();
            outcome.send(Err(io::Error::other("the medium has failed"))).unwrap();
            let (requests, _begun) = channel();
            let syncer = Syncer {
                requests: Some(requests),
                outcomes,
                is_under_way: true,
                outcome: None,
                thread: None,
            };
            let file = tempfile::tempfile().unwrap();
            let mut file = FsStateFile { syncer: Some(syncer), ..FsStateFile::new(file) };
            // Asking whether the sync is over does not consume its error.
            assert!(file.is_sync_over() && file.is_sync_over());
            assert!(finish(&mut file).is_err());
            assert!(!file.is_sync_over(), "the sync is no longer under way");
        }
    }

    /// A file that accepts writes and fails syncs.
    fn never_durable() -> FsStateFile {
        FsStateFile::new(File::options().write(true).open("/dev/null").unwrap())
    }

    #[test]
    fn filler_comes_behind_what_is_appended_and_gives_way_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut file = FsStateFile::new(File::create(&path).unwrap());
        let mut expected = Vec::new();
        let mut append = |file: &mut FsStateFile, byte: u8, bytes: usize| {
            file.append(&vec![byte; bytes]).unwrap();
            expected.resize(expected.len() + bytes, byte);
            let held = std::fs::read(&path).unwrap();
            assert!(held[..expected.len()] == expected, "{byte}: what was appended");
            assert!(
                held[expected.len()..].iter().all(|byte| *byte == FILLER),
                "{byte}: what follows"
            );
            (held.len() - expected.len()) as u64
        };
        assert_eq!(append(&mut file, 1, 100), 0, "no more appends are expected");
        file.expect_more();
        assert_eq!(append(&mut file, 2, 100), FILLER_BYTES);
        assert_eq!(append(&mut file, 3, 1000), FILLER_BYTES - 1000);
        assert_eq!(append(&mut file, 4, SHORT_BYTES_MAX), FILLER_BYTES - 1000 - (32 << 10));
        assert_eq!(append(&mut file, 5, 1 << 20), 0, "too long for filler");
        assert_eq!(append(&mut file, 6, 1), FILLER_BYTES);
    }

    #[test]
    fn without_a_thread_finishing_a_sync_makes_it() {
        let mut file = never_durable();
        file.append(b"some").unwrap();
        assert!(file.finish_sync().is_err());
    }

    #[test]
    fn the_next_call_returns_the_error_of_a_sync() {
        let mut file = never_durable();
        file.append(b"some").unwrap();
        file.begin_sync().unwrap();
        assert!(file.finish_sync().is_err());
        file.begin_sync().unwrap();
        assert!(file.begin_sync().is_err());
        file.begin_sync().unwrap();
        assert!(file.sync().is_err());
    }
}
