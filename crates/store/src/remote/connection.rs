//! A link to the server, and the thread that reads its answers.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use oblivio_wire::buffer_pool::BufferPool;
use oblivio_wire::frame;
use oblivio_wire::link::{Link, LinkReader, LinkWriter};
use oblivio_wire::message::MESSAGE_BYTES_MAX;

use super::frames::Frame;
use super::request_table::RequestTable;

pub(super) struct Connection {
    writer: Box<dyn LinkWriter>,
    table: Arc<RequestTable>,
    thread: Option<JoinHandle<()>>,
}

impl Connection {
    /// Starts the reading thread. Each answer must arrive within `answer_within` after the previous
    /// answer or after the first request.
    pub(super) fn start(
        link: Link,
        table: Arc<RequestTable>,
        answer_within: Duration,
    ) -> io::Result<Self> {
        let Link { reader, writer } = link;
        table.link_is_up();
        let table_of_thread = table.clone();
        let serve = move || serve(reader, &table_of_thread, answer_within);
        let thread = thread::Builder::new().name("answers".into()).spawn(serve);
        let thread = thread.inspect_err(|error| table.lose(error.to_string()))?;
        Ok(Self { writer, table, thread: Some(thread) })
    }

    /// Sends a request. If that fails, the link is lost.
    pub(super) fn send(&mut self, frame: &Frame) {
        let sent = self.writer.write_all(frame.bytes()).and_then(|()| self.writer.flush());
        if let Err(error) = sent {
            self.table.lose(error.to_string());
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Close the write half first, so that the server sees a clean shutdown rather than a lost
        // link.
        self.writer.close();
        self.table.lose("the link was closed".into());
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the thread; it reads no more answers.
            let _ = thread.join();
        }
    }
}

fn serve(mut reader: Box<dyn LinkReader>, table: &RequestTable, answer_within: Duration) {
    let _wakes_waiters = OnEnd(table);
    let pool = Arc::default();
    while table.expects_answers() {
        let received = receive(&mut reader, answer_within, &pool);
        if let Err(cause) = received.and_then(|message| table.take_in(&message)) {
            table.lose(cause);
        }
    }
    // A sender may be blocked in the other half.
    reader.close();
}

fn receive(
    reader: &mut Box<dyn LinkReader>,
    within: Duration,
    pool: &Arc<BufferPool>,
) -> Result<Bytes, String> {
    match next(reader, within, pool) {
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err("the server closed the link".into()),
        Err(error) => Err(why_nothing_came(&error, within)),
    }
}

fn next(
    reader: &mut Box<dyn LinkReader>,
    within: Duration,
    pool: &Arc<BufferPool>,
) -> io::Result<Option<Bytes>> {
    reader.limit(Some(within))?;
    let Some(bytes) = frame::receive_length(reader, MESSAGE_BYTES_MAX)? else { return Ok(None) };
    pool.receive(reader, bytes, &mut |_| Ok(())).map(Some)
}

/// Describes the reason why no answer arrived.
pub(super) fn why_nothing_came(error: &io::Error, within: Duration) -> String {
    match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            format!("no answer came within {within:.0?}")
        }
        _ => error.to_string(),
    }
}

/// Marks the link as lost when the thread ends for any reason, even a panic.
struct OnEnd<'a>(&'a RequestTable);

impl Drop for OnEnd<'_> {
    fn drop(&mut self) {
        self.0.lose("the thread that reads answers ended".into());
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Sink, Write, empty, sink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// A reader that never receives data. Its `close` records whether the writer was closed before.
    struct Silent(Arc<AtomicBool>, Arc<AtomicBool>);

    impl Read for Silent {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            empty().read(buffer)
        }
    }

    impl LinkReader for Silent {
        fn limit(&mut self, _: Option<Duration>) -> io::Result<()> {
            Ok(())
        }
        fn close(&mut self) {
            self.1.store(self.0.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    /// A writer that takes some time to close.
    struct Slow(Arc<AtomicBool>, Sink);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LinkWriter for Slow {
        fn close(&mut self) {
            thread::sleep(Duration::from_millis(20));
            self.0.store(true, Ordering::Relaxed);
        }
    }

    #[test]
    fn the_write_half_is_closed_first() {
        let [is_closed, was_closed_first] = [(); 2].map(|()| Arc::<AtomicBool>::default());
        let reader = Box::new(Silent(is_closed.clone(), was_closed_first.clone()));
        let link = Link { reader, writer: Box::new(Slow(is_closed, sink())) };
        drop(Connection::start(link, Arc::default(), Duration::from_secs(10)).unwrap());
        assert!(was_closed_first.load(Ordering::Relaxed));
    }
}
