//! Writes the disk's answers to the client as replies, several in one system call.

use std::io::IoSlice;
use std::sync::Arc;

use oblivio_volume::device::{DiskError, DiskErrorKind, WipedBytes};
use tokio::io::{self, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::UnboundedReceiver;

use super::portions::{PendingRequest, Stage};
use super::requests::Permit;
use super::wire::{self, Errno, IsLast, RequestHead, command};

/// Maximum number of replies taken from the queue at once.
const BATCH_REPLIES: usize = 64;
/// Maximum bytes of data that are copied after their header, so that one write carries many
/// replies.
const COPIED_BYTES_MAX: usize = 16 << 10;
/// Number of gathered bytes at which replies are written to the connection.
const GATHERED_BYTES: usize = 256 << 10;
/// Capacity of the buffer for gathered replies. It has room for one further reply: its header or
/// message, and copied data.
const GATHERED_BYTES_MAX: usize = GATHERED_BYTES + 2 * wire::STRING_BYTES_MAX + COPIED_BYTES_MAX;

/// The answer to a portion of a request, to send to the client.
pub(super) struct Reply {
    pub(super) pending: Arc<PendingRequest>,
    /// The offset of the portion.
    pub(super) offset: u64,
    pub(super) answer: Answer,
    pub(super) permit: Permit,
}

/// The outcome of a portion.
pub(super) enum Answer {
    /// The bytes that the disk read.
    Data(WipedBytes),
    /// Success without data.
    Done,
    /// An error of the disk, with a human-readable message.
    Failed(Errno, String),
}

impl Answer {
    /// Converts the disk's answer.
    pub(super) fn new(head: &RequestHead, answer: Result<WipedBytes, DiskError>) -> Self {
        match answer {
            Ok(data) if head.command != command::READ => {
                debug_assert!(data.is_empty());
                Self::Done
            }
            Ok(data) if data.len() == head.bytes as usize => Self::Data(data),
            // Data of the wrong length would make all later replies unreadable.
            Ok(_) => Self::Failed(Errno::Io, "the disk returned a wrong number of bytes".into()),
            Err(DiskError { kind, message, .. }) => Self::Failed(errno(kind), message),
        }
    }

    /// Returns the answer to a request that is refused without involving the disk.
    pub(super) fn refused(errno: Errno) -> Self {
        let reason = match errno {
            Errno::Perm => "the export is read-only",
            Errno::NoSpace => "the write goes past the end of the disk",
            Errno::NotSup => "fast zeroing needs whole blocks",
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

/// Writes replies until no remaining request can produce one. Releases a portion's memory permit
/// once its reply is written, so replies to a client that does not read cannot pile up.
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
            held.push((reply.permit, reply.pending));
            if let Answer::Data(data) = reply.answer {
                if data.len() <= COPIED_BYTES_MAX {
                    gathered.extend_from_slice(&data);
                } else {
                    write_both(&mut writer, &gathered, &data).await?;
                    gathered.clear();
                    drop(data);
                    // Release the permits now; other clients wait for them.
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

/// Notes that a portion is answered, and appends the header of its reply. A reply without chunks
/// has only one header, which is appended with the request's last portion.
fn push_head(out: &mut Vec<u8>, reply: &Reply, structured: bool) {
    let Reply { pending, offset, answer, .. } = reply;
    let RequestHead { cookie, command, .. } = pending.head;
    let stage = pending.advance(match answer {
        Answer::Failed(errno, _) => Some(*errno),
        Answer::Data(_) | Answer::Done => None,
    });
    if structured && command == command::READ {
        let is_last = IsLast(matches!(stage, Stage::Over(_)));
        match answer {
            Answer::Data(data) => wire::push_data_chunk(out, cookie, is_last, *offset, data.len()),
            Answer::Done => wire::push_data_chunk(out, cookie, is_last, *offset, 0),
            Answer::Failed(errno, reason) => {
                let at = (pending.portions > 1).then_some(*offset);
                wire::push_error_chunk(out, cookie, is_last, *errno, reason, at);
            }
        }
    } else if let Stage::Over(failure) = stage {
        wire::push_simple_reply(out, cookie, failure);
    }
}

/// Writes `first` and then `second`, in one system call if possible.
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
