//! A thread that has the medium write while the store goes on.
//!
//! What the store has written lies in the page cache until somebody syncs it. If that were left to
//! the flush, the medium would be idle up to it, and the store during it.

use std::fs::File;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};

/// Syncs one file. Its errors are kept: the system tells each of them once, to whoever syncs next, and
/// so all syncs of a file must come through here once there is one.
pub(crate) struct Syncer {
    /// `None` once the thread is told to end.
    requests: Option<SyncSender<Request>>,
    thread: Option<JoinHandle<()>>,
}

enum Request {
    /// Begin to write; nobody waits.
    Begin,
    /// Answer when everything written so far is durable, or was not at any time.
    Finish(Sender<io::Result<()>>),
}

impl Syncer {
    /// Starts the thread.
    pub(crate) fn start(file: File) -> io::Result<Self> {
        // One sync under way, and one that waits for it: more would sync nothing more.
        let (requests, queue) = sync_channel(1);
        let thread =
            thread::Builder::new().name("sync".into()).spawn(move || serve(&file, &queue))?;
        Ok(Self { requests: Some(requests), thread: Some(thread) })
    }

    /// Has the medium begin to write what was written so far.
    pub(crate) fn begin(&self) {
        if let Some(requests) = &self.requests {
            // If one waits already, that one will see to it.
            let _ = requests.try_send(Request::Begin);
        }
    }

    /// Returns when everything written so far is durable.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let gone = || io::Error::other("the thread that syncs has ended");
        let (done, outcome) = channel();
        let requests = self.requests.as_ref().ok_or_else(gone)?;
        requests.send(Request::Finish(done)).map_err(|_| gone())?;
        outcome.recv().map_err(|_| gone())?
    }
}

fn serve(file: &File, queue: &Receiver<Request>) {
    let mut so_far = Ok(());
    while let Ok(request) = queue.recv() {
        so_far = so_far.and_then(|()| file.sync_data());
        if let Request::Finish(done) = request {
            let outcome = std::mem::replace(&mut so_far, Ok(()));
            if outcome.is_err() {
                so_far = Err(io::Error::other("an earlier sync failed"));
            }
            // Whoever asked waits for it.
            let _ = done.send(outcome);
        }
    }
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
    use std::io::Write;

    #[test]
    fn what_was_begun_is_finished() {
        let mut file = tempfile::tempfile().unwrap();
        let syncer = Syncer::start(file.try_clone().unwrap()).unwrap();
        for _ in 0..100 {
            file.write_all(&[7; 10_000]).unwrap();
            syncer.begin();
        }
        syncer.finish().unwrap();
    }

    #[test]
    fn an_error_that_came_while_nobody_waited_is_told_and_stays() {
        // Nothing can be synced on a pipe.
        let (_reader, writer) = io::pipe().unwrap();
        let syncer = Syncer::start(File::from(std::os::fd::OwnedFd::from(writer))).unwrap();
        syncer.begin();
        assert!(syncer.finish().is_err());
        assert!(syncer.finish().is_err());
    }
}
