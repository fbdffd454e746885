//! Sequential reads, for which ranges are read ahead.

use std::collections::VecDeque;

/// Maximum number of streams that are tracked.
const STREAMS_MAX: usize = 16;

/// The ends of recent reads, and the number of bytes read sequentially up to each. Secret.
#[derive(Default)]
pub(super) struct Streams(VecDeque<Stream>);

struct Stream {
    end: u64,
    bytes: u64,
}

impl Streams {
    /// Records a read of `bytes` bytes. If it begins at the end of an earlier read, returns the
    /// bytes that were read sequentially, including this read; otherwise 0.
    pub(super) fn follow(&mut self, offset: u64, bytes: u64) -> u64 {
        let before = self.0.iter().position(|stream| stream.end == offset);
        let before = before.and_then(|at| self.0.remove(at)).map_or(0, |stream| stream.bytes);
        let sequential_bytes = before + bytes;
        self.0.push_back(Stream { end: offset + bytes, bytes: sequential_bytes });
        if self.0.len() > STREAMS_MAX {
            self.0.pop_front();
        }
        if before > 0 { sequential_bytes } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_begins_where_another_ended_continues_its_stream() {
        let mut streams = Streams::default();
        assert_eq!(streams.follow(0, 10), 0);
        assert_eq!(streams.follow(1000, 10), 0);
        assert_eq!(streams.follow(10, 5), 15);
        assert_eq!(streams.follow(1010, 1), 11);
        assert_eq!(streams.follow(16, 1), 0);
        for far in 0..STREAMS_MAX as u64 {
            streams.follow(1 << 20 | far << 8, 1);
        }
        assert_eq!(streams.follow(15, 1), 0, "the stream was dropped");
    }
}
