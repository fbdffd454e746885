//! A file of a state directory, which another thread can sync while its owner goes on.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use super::StateFile;

/// A file, open to append.
pub(super) struct FsStateFile {
    file: Arc<File>,
    /// Started when there is something to go on with.
    syncer: Option<Syncer>,
}

impl FsStateFile {
    pub(super) fn new(file: File) -> Self {
        Self { file: Arc::new(file), syncer: None }
    }
}

impl StateFile for FsStateFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        (&*self.file).write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        // The system tells an error once: whoever was to hear of it has to ask first.
        if let Some(syncer) = &mut self.syncer {
            syncer.finish()?;
        }
        self.file.sync_data()
    }

    fn begin_sync(&mut self) -> io::Result<()> {
        if self.syncer.is_none() {
            // Where no thread can be had, the sync waits until it is to be finished.
            self.syncer = Syncer::start(self.file.clone()).ok();
        }
        self.syncer.as_mut().map_or(Ok(()), Syncer::begin)
    }

    fn finish_sync(&mut self) -> io::Result<()> {
        match &mut self.syncer {
            Some(syncer) if syncer.is_under_way => syncer.finish(),
            _ => self.sync(),
        }
    }
}

/// Syncs a file on a thread of its own. It ends with this.
struct Syncer {
    /// Gone once the thread is told to end.
    requests: Option<Sender<()>>,
    outcomes: Receiver<io::Result<()>>,
    is_under_way: bool,
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
        Ok(Self { requests: Some(requests), outcomes, is_under_way: false, thread: Some(thread) })
    }

    fn begin(&mut self) -> io::Result<()> {
        self.finish()?;
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(()).map_err(|_| gone())?;
        self.is_under_way = true;
        Ok(())
    }

    /// Waits for the sync that is under way, if one is.
    fn finish(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_under_way) {
            self.outcomes.recv().map_err(|_| gone())??;
        }
        Ok(())
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that syncs the log has ended")
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked syncs nothing any more, and nobody asks it.
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

    /// The system tells an error once: a later sync of the same file succeeds.
    #[test]
    fn no_later_sync_hides_an_error() {
        let finishings: [fn(&mut FsStateFile) -> io::Result<()>; 3] =
            [StateFile::sync, StateFile::finish_sync, StateFile::begin_sync];
        for finish in finishings {
            let (outcome, outcomes) = channel();
            outcome.send(Err(io::Error::other("the medium has failed"))).unwrap();
            let (requests, _begun) = channel();
            let syncer =
                Syncer { requests: Some(requests), outcomes, is_under_way: true, thread: None };
            let file = Arc::new(tempfile::tempfile().unwrap());
            let mut file = FsStateFile { file, syncer: Some(syncer) };
            assert!(finish(&mut file).is_err());
        }
    }

    /// It can be written to, and not be synced.
    fn pipe() -> (io::PipeReader, FsStateFile) {
        let (reader, writer) = io::pipe().unwrap();
        (reader, FsStateFile::new(File::from(std::os::fd::OwnedFd::from(writer))))
    }

    #[test]
    fn where_no_thread_can_be_had_whoever_finishes_a_sync_makes_it() {
        let (_reader, mut file) = pipe();
        file.append(b"some").unwrap();
        assert!(file.finish_sync().is_err());
    }

    #[test]
    fn an_error_is_told_to_whoever_asks_next() {
        let (_reader, mut file) = pipe();
        file.append(b"some").unwrap();
        file.begin_sync().unwrap();
        assert!(file.finish_sync().is_err());
        file.begin_sync().unwrap();
        assert!(file.begin_sync().is_err());
        file.begin_sync().unwrap();
        assert!(file.sync().is_err());
    }
}
