//! Frames: messages on a stream, each with a length prefix.

use std::io::{self, ErrorKind, Read, Write};

use crate::message::MESSAGE_BYTES_MAX;

/// Bytes of the length prefix.
pub const LENGTH_BYTES: usize = 4;

/// The size of a message's buffer before any byte of the message has arrived. Most messages fit, so
/// their buffer never grows.
const BYTES_BEFORE_ANY: usize = 256 << 10;

/// Sends a message. After this returns, bytes may still be in a buffer of `stream`.
///
/// # Errors
/// I/O errors of the stream. [`ErrorKind::InvalidInput`] if the message is too long; then nothing
/// is sent.
pub fn send(stream: &mut impl Write, message: &[u8]) -> io::Result<()> {
    send_parts(stream, &[message])
}

/// Sends a message that is in several parts, without joining them first.
///
/// # Errors
/// See [`send`].
pub fn send_parts(stream: &mut impl Write, parts: &[&[u8]]) -> io::Result<()> {
    let bytes: usize = parts.iter().map(|part| part.len()).sum();
    if bytes > MESSAGE_BYTES_MAX {
        return Err(io::Error::new(ErrorKind::InvalidInput, "the message is too long to send"));
    }
    stream.write_all(&(bytes as u32).to_le_bytes())?;
    parts.iter().try_for_each(|part| stream.write_all(part))
}

/// Receives the next message; `None` if the stream ends before it.
///
/// # Errors
/// See [`receive_length`] and [`receive_body`].
pub fn receive(stream: &mut impl Read, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let Some(bytes) = receive_length(stream, bytes_max)? else { return Ok(None) };
    let mut message = Vec::new();
    receive_body(stream, bytes, &mut message, &mut |_| Ok(()))?;
    Ok(Some(message))
}

/// Receives the length of the next message; `None` if the stream ends before it. The caller then
/// calls [`receive_body`].
///
/// # Errors
/// I/O errors of the stream. [`ErrorKind::UnexpectedEof`] if the stream ends within the length;
/// [`ErrorKind::InvalidData`] if the message is longer than `bytes_max` or [`MESSAGE_BYTES_MAX`].
pub fn receive_length(stream: &mut impl Read, bytes_max: usize) -> io::Result<Option<usize>> {
    let mut length = [0; LENGTH_BYTES];
    let mut read = 0;
    while read < LENGTH_BYTES {
        match stream.read(&mut length[read..]) {
            Ok(0) if read == 0 => return Ok(None),
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(bytes) => read += bytes,
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    let bytes = u32::from_le_bytes(length) as usize;
    if bytes > bytes_max.min(MESSAGE_BYTES_MAX) {
        return Err(io::Error::new(ErrorKind::InvalidData, "a message is longer than the limit"));
    }
    Ok(Some(bytes))
}

/// Receives a message of `bytes` bytes into the beginning of `buffer`. A longer buffer keeps its
/// length; a shorter one doubles as bytes arrive. Before more of the buffer is used, `grow` is
/// called with the number of bytes used from then on. `grow` may block until memory is available.
///
/// # Errors
/// Errors of `grow` and I/O errors of the stream. [`ErrorKind::UnexpectedEof`] if the stream ends
/// within the message.
pub fn receive_body(
    stream: &mut impl Read,
    bytes: usize,
    buffer: &mut Vec<u8>,
    grow: &mut dyn FnMut(usize) -> io::Result<()>,
) -> io::Result<()> {
    let mut came = 0;
    while came < bytes {
        let end = bytes.min((2 * came).max(BYTES_BEFORE_ANY));
        grow(end)?;
        if buffer.len() < end {
            buffer.reserve_exact(end - buffer.len());
            buffer.resize(end, 0);
        }
        stream.read_exact(&mut buffer[came..end])?;
        came = end;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_round_trip_and_truncated_ones_are_errors() {
        let mut stream = Vec::new();
        send(&mut stream, b"").unwrap();
        send_parts(&mut stream, &[b"o", b"", b"ne"]).unwrap();
        send(&mut stream, &[7; 100_000]).unwrap();
        let mut rest = &stream[..];
        let mut next = || receive(&mut rest, MESSAGE_BYTES_MAX).unwrap();
        assert_eq!(next(), Some(vec![]));
        assert_eq!(next(), Some(b"one".to_vec()));
        assert_eq!(next(), Some(vec![7; 100_000]));
        assert_eq!(next(), None);
        for cut in [1, 5, 6, 12, 99_000] {
            let mut rest = &stream[..cut];
            let error = loop {
                match receive(&mut rest, MESSAGE_BYTES_MAX) {
                    Ok(Some(_)) => (),
                    Ok(None) => panic!("cut at {cut}"),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{cut}");
        }
        assert_eq!(receive(&mut &stream[4..], 2).unwrap_err().kind(), ErrorKind::InvalidData);
        assert_eq!(
            receive(&mut &[255; 9][..], usize::MAX).unwrap_err().kind(),
            ErrorKind::InvalidData
        );
        let long = vec![0; MESSAGE_BYTES_MAX + 1];
        assert_eq!(send(&mut stream, &long).unwrap_err().kind(), ErrorKind::InvalidInput);
    }

    /// The buffer grows only as bytes arrive. A peer that announces a long message without sending
    /// it costs at most [`BYTES_BEFORE_ANY`], or the size that the buffer already had.
    #[test]
    fn the_buffer_grows_only_as_bytes_arrive() {
        let announced = 1 << 20;
        let all: Vec<u8> = (0..announced).map(|i| (i * 7 % 251) as u8).collect();
        for used in [0, 1000, BYTES_BEFORE_ANY, 300_000] {
            for came in [0, 10, 1000, BYTES_BEFORE_ANY, 300_000, 700_000, announced - 1] {
                let mut buffer = vec![1; used];
                let mut granted = 0;
                let mut grow = |bytes| {
                    granted = bytes;
                    Ok(())
                };
                let error = receive_body(&mut &all[..came], announced, &mut buffer, &mut grow);
                let error = error.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
                let most = used.max(BYTES_BEFORE_ANY).max(2 * came);
                assert!(buffer.capacity() <= most, "{used} {came}: {}", buffer.capacity());
                assert!(granted <= most && granted >= came, "{used} {came}: {granted}");
            }
            let mut buffer = vec![1; used];
            receive_body(&mut &all[..], announced, &mut buffer, &mut |_| Ok(())).unwrap();
            assert!(buffer == all);
            let no_memory = &mut |_| Err(ErrorKind::TimedOut.into());
            let refused = receive_body(&mut &all[..], announced, &mut Vec::new(), no_memory);
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::TimedOut);
        }
    }
}
