//! Replies, from the disk to the client.

use std::io::IoSlice;
use std::sync::Arc;

use oblivio_volume::device::{DiskError, DiskErrorKind, WipedBytes};
use tokio::io::{self, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::UnboundedReceiver;

use super::portions::{Asked, Stage};
use super::requests::Held;
use super::wire::{self, Errno, IsLast, RequestHead, command};

/// Replies that are taken from the queue at once.
const BATCH_REPLIES: usize = 64;
/// Data up to here are copied behind their head, so that one write carries many replies.
const COPIED_BYTES_MAX: usize = 16 << 10;
/// When as much as this is gathered, it is written.
const GATHERED_BYTES: usize = 256 << 10;
/// One more reply may be gathered before that: its head or its message, and data that are copied.
const GATHERED_BYTES_MAX: usize = GATHERED_BYTES + 2 * wire::STRING_BYTES_MAX + COPIED_BYTES_MAX;

/// The answer to a portion of a request, on its way to the client.
pub(super) struct Reply {
    pub(super) asked: Arc<Asked>,
    /// Where the portion begins.
    pub(super) offset: u64,
    pub(super) answer: Answer,
    pub(super) held: Held,
}

/// What came of it.
pub(super) enum Answer {
    /// The bytes that were read.
    Data(WipedBytes),
    /// It was done.
    Done,
    /// It failed, for a reason that people can read.
    Failed(Errno, String),
}

impl Answer {
    /// What the disk says.
    pub(super) fn new(head: &RequestHead, answer: Result<WipedBytes, DiskError>) -> Self {
        match answer {
            Ok(data) if head.command != command::READ => {
                debug_assert!(data.is_empty());
                Self::Done
            }
            Ok(data) if data.len() == head.bytes as usize => Self::Data(data),
            // Sent as it is, it would make all later replies unreadable.
            Ok(_) => Self::Failed(Errno::Io, "the disk returned too much or too little".into()),
            Err(DiskError { kind, message, .. }) => Self::Failed(errno(kind), message),
        }
    }

    /// What is not worth asking the disk.
    pub(super) fn refused(errno: Errno) -> Self {
        let reason = match errno {
            Errno::Perm => "the export is read-only",
            Errno::NoSpace => "the write goes past the end of the disk",
            Errno::NotSup => "zeroing a part of a block is not faster than writing",
            Errno::Inval | Errno::Io | Errno::Shutdown => {
                "the request is unknown, too long, past the end of the disk, or has unknown flags"
            }
        };
        Self::Failed(errno, reason.into())
    }
}

fn errno(kind: DiskErrorKind) -> Errno {
    match kind {
        DiskErrorKind::OutOfRange => Errno::Inval,
        DiskErrorKind::NoSpace => Errno::NoSpace,
        DiskErrorKind::Closed => Errno::Shutdown,
        DiskErrorKind::ReadOnly => Errno::Perm,
        _ => Errno::Io,
    }
}

/// Writes replies until no request is left that could add one. What a portion holds is free again
/// when its reply is written, so a client that does not read cannot pile up replies.
pub(super) async fn write_replies<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut queue: UnboundedReceiver<Reply>,
    structured: bool,
) -> io::Result<()> {
    let mut replies = Vec::with_capacity(BATCH_REPLIES);
    let mut held = Vec::with_capacity(BATCH_REPLIES);
    let mut head = Vec::new();
    let mut gathered = WipedBytes::with_capacity(GATHERED_BYTES_MAX);
    while queue.recv_many(&mut replies, BATCH_REPLIES).await > 0 {
        for reply in replies.drain(..) {
            head.clear();
            push_head(&mut head, &reply, structured);
            gathered.extend_from_slice(&head);
            held.push((reply.held, reply.asked));
            if let Answer::Data(data) = reply.answer {
                if data.len() <= COPIED_BYTES_MAX {
                    gathered.extend_from_slice(&data);
                } else {
                    write_both(&mut writer, &gathered, &data).await?;
                    gathered.clear();
                    drop(data);
                    // Others wait for the room.
                    held.clear();
                }
            }
            if gathered.len() >= GATHERED_BYTES {
                writer.write_all(&gathered).await?;
                gathered.clear();
            }
        }
        writer.write_all(&gathered).await?;
        writer.flush().await?;
        gathered.clear();
        held.clear();
    }
    writer.shutdown().await
}

/// What stands before the data, or instead of them. Where a reply is not made of chunks, it is that to the last portion.
fn push_head(out: &mut Vec<u8>, reply: &Reply, structured: bool) {
    let Reply { asked, offset, answer, .. } = reply;
    let RequestHead { cookie, command, .. } = asked.head;
    let stage = asked.advance(match answer {
        Answer::Failed(errno, _) => Some(*errno),
        Answer::Data(_) | Answer::Done => None,
    });
    if structured && command == command::READ {
        let is_last = IsLast(matches!(stage, Stage::Over(_)));
        match answer {
            Answer::Data(data) => wire::push_data_chunk(out, cookie, is_last, *offset, data.len()),
            Answer::Done => wire::push_data_chunk(out, cookie, is_last, *offset, 0),
            Answer::Failed(errno, reason) => {
                let at = (asked.portions > 1).then_some(*offset);
                wire::push_error_chunk(out, cookie, is_last, *errno, reason, at);
            }
        }
    } else if let Stage::Over(failure) = stage {
        wire::push_simple_reply(out, cookie, failure);
    }
}

/// Writes one after the other, with one call if the connection takes both.
async fn write_both<W: AsyncWrite + Unpin>(
    writer: &mut W,
    first: &[u8],
    second: &[u8],
) -> io::Result<()> {
    let slices = [IoSlice::new(first), IoSlice::new(second)];
    let written = writer.write_vectored(&slices).await?;
    let Some(of_second) = written.checked_sub(first.len()) else {
        writer.write_all(&first[written..]).await?;
        return writer.write_all(second).await;
    };
    writer.write_all(&second[of_second..]).await
}
