//! A buffered reader that wipes its buffer, because data that clients write pass through it.

use oblivio_volume::device::WipedBytes;
use tokio::io::{self, AsyncRead, AsyncReadExt};

/// A reader that wipes its buffer.
pub(super) struct WipedReader<R> {
    reader: R,
    buffer: WipedBytes,
    /// The start of the buffer's unread part.
    start: usize,
    end: usize,
}

impl<R: AsyncRead + Unpin> WipedReader<R> {
    pub(super) fn new(buffer_bytes: usize, reader: R) -> Self {
        Self { reader, buffer: WipedBytes::zeros(buffer_bytes), start: 0, end: 0 }
    }

    /// Waits for a byte or the end of the stream. Returns whether the stream has ended.
    pub(super) async fn is_at_its_end(&mut self) -> io::Result<bool> {
        if self.start == self.end {
            (self.start, self.end) = (0, self.reader.read(&mut self.buffer).await?);
        }
        Ok(self.start == self.end)
    }

    /// Reads until `bytes` is full.
    pub(super) async fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            if self.start == self.end && bytes.len() - filled >= self.buffer.len() {
                // Long reads bypass the buffer.
                return self.reader.read_exact(&mut bytes[filled..]).await.map(drop);
            }
            let taken = self.take(bytes.len() - filled).await?;
            bytes[filled..filled + taken.len()].copy_from_slice(taken);
            filled += taken.len();
        }
        Ok(())
    }

    /// Reads and discards `bytes` bytes without allocating memory for them.
    pub(super) async fn skip(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let wanted = usize::try_from(bytes).unwrap_or(usize::MAX);
            bytes -= self.take(wanted).await?.len() as u64;
        }
        Ok(())
    }

    /// Returns the next bytes: at least one, at most `bytes_max`.
    async fn take(&mut self, bytes_max: usize) -> io::Result<&[u8]> {
        if self.is_at_its_end().await? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let taken = self.start..self.end.min(self.start.saturating_add(bytes_max));
        self.start = taken.end;
        Ok(&self.buffer[taken])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reader returns all bytes in order, however pieces are aligned to the buffer and to the
    /// chunks that reads return.
    #[test]
    fn pieces_are_read_in_order_and_to_the_last_byte() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bytes: Vec<u8> = (0..200).collect();
        for (buffer, read_max, piece) in
            [(1, 1, 1), (8, 3, 5), (8, 100, 7), (8, 100, 8), (8, 3, 20), (300, 200, 200)]
        {
            runtime.block_on(async {
                let (mut sender, receiver) = io::duplex(read_max);
                let send = async {
                    io::AsyncWriteExt::write_all(&mut sender, &bytes).await.unwrap();
                    drop(sender);
                };
                let receive = async {
                    let mut reader = WipedReader::new(buffer, receiver);
                    let mut rest = &bytes[..];
                    while rest.len() >= 2 * piece {
                        let mut read = vec![0; piece];
                        reader.read_exact(&mut read).await.unwrap();
                        assert_eq!(read, rest[..piece], "{buffer} {read_max} {piece}");
                        reader.skip(piece as u64).await.unwrap();
                        rest = &rest[2 * piece..];
                    }
                    assert_eq!(reader.is_at_its_end().await.unwrap(), rest.is_empty());
                    let error = reader.skip(rest.len() as u64 + 1).await.unwrap_err();
                    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
                    assert!(reader.is_at_its_end().await.unwrap());
                };
                tokio::join!(send, receive);
            });
        }
    }
}
