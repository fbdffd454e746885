//! A pipelined link to a master, and the thread that reads its replies.

use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use oblivio_wire::link::{Link, LinkReader, LinkWriter};

use super::node_info::NodeInfo;
use super::reply_table::{BatchId, LinkId, ReplyTable};
use crate::objects::resp::{Command, Decoder};

/// The maximum number of bytes of one read.
const READ_BYTES: usize = 128 << 10;

/// The number of bytes of small arguments that are collected before they are sent.
const WRITE_BYTES: usize = 16 << 10;

pub(super) struct Connection {
    link: LinkId,
    writer: BufWriter<Box<dyn LinkWriter>>,
    table: Arc<ReplyTable>,
    thread: Option<JoinHandle<()>>,
    /// What the node reported when the link was opened.
    pub(super) info: Arc<NodeInfo>,
}

impl Connection {
    /// Starts the reading thread.
    pub(super) fn start(
        link: Link,
        id: LinkId,
        table: Arc<ReplyTable>,
        info: Arc<NodeInfo>,
    ) -> io::Result<Self> {
        let Link { reader, writer } = link;
        table.add_link(id);
        let table_of_thread = table.clone();
        let read = move || read_replies(reader, &table_of_thread, id);
        let thread = thread::Builder::new().name("redis-replies".into()).spawn(read);
        let thread = thread.inspect_err(|_| table.remove_link(id))?;
        let writer = BufWriter::with_capacity(WRITE_BYTES, writer);
        Ok(Self { link: id, writer, table, thread: Some(thread), info })
    }

    pub(super) fn is_up(&self) -> bool {
        self.table.is_up(self.link)
    }

    /// Sends a batch of commands. If that fails, the link is lost, and the batch with it.
    pub(super) fn send(&mut self, batch: BatchId, commands: &[Command], reply_bytes_max: usize) {
        self.table.expect(self.link, batch, commands.len(), reply_bytes_max);
        let mut segments = commands.iter().flat_map(Command::segments);
        let sent = segments
            .try_for_each(|segment| self.writer.write_all(segment))
            .and_then(|()| self.writer.flush());
        if let Err(error) = sent {
            self.table.lose(self.link, &error.to_string());
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.writer.get_mut().close();
        self.table.remove_link(self.link);
        if let Some(thread) = self.thread.take() {
            // Ignore a panic of the thread; it reads no more replies.
            let _ = thread.join();
        }
    }
}

fn read_replies(mut reader: Box<dyn LinkReader>, table: &ReplyTable, link: LinkId) {
    let _wakes_the_caller = OnEnd { table, link };
    let mut buffer = vec![0; READ_BYTES];
    let mut decoder = Decoder::default();
    let cause = loop {
        match reader.read(&mut buffer) {
            Ok(0) => break "the server closed the link".to_owned(),
            Ok(bytes) => decoder.feed(&buffer[..bytes]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => break error.to_string(),
        }
        if let Err(cause) = decode_all(&mut decoder, table, link) {
            break cause;
        }
    };
    table.lose(link, &cause);
    // A sender may be blocked in the other half.
    reader.close();
}

fn decode_all(decoder: &mut Decoder, table: &ReplyTable, link: LinkId) -> Result<(), String> {
    let mut limit = table.received(link);
    while !decoder.is_empty() {
        let bytes_max = limit.ok_or("it violates the protocol: a reply without a command")?;
        let reply = decoder.next(bytes_max);
        let reply = reply.map_err(|invalid| format!("it violates the protocol: {invalid}"))?;
        let Some(reply) = reply else { break };
        limit = table.take_in(link, reply);
    }
    Ok(())
}

/// Marks the link as lost when the thread ends for any reason, even a panic.
struct OnEnd<'a> {
    table: &'a ReplyTable,
    link: LinkId,
}

impl Drop for OnEnd<'_> {
    fn drop(&mut self) {
        self.table.lose(self.link, "the thread that reads replies ended");
    }
}
