//! Buffers of messages that are over, for those to come.
//!
//! For each message of a hundred KiB, the system would be asked for pages, and they would be given back: that takes longer than to encrypt it.

use std::io::{self, Read};
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::frame::receive_body;

/// All of them.
#[derive(Default)]
pub struct Spare(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    buffers: Vec<Vec<u8>>,
    /// Of these, and of those that came from here and are in use: whoever has one has perhaps no grant for so much.
    bytes: usize,
}

/// What they take together, besides the memory of messages, at most.
const SPARE_BYTES_MAX: usize = 8 << 20;

/// A longer one is not worth keeping: what it takes is next to nothing beside the time that so long a message takes.
const SPARE_BUFFER_BYTES_MAX: usize = 1 << 20;

impl Spare {
    /// An empty one, until it is dropped.
    pub fn take(self: &Arc<Self>) -> Buffer {
        let mut buffer = self.take_used();
        buffer.clear();
        buffer
    }

    /// Receives the body of a message into one of them, until it is dropped. What the buffer held
    /// is overwritten, not zeroed. `grow` is called before more bytes are received.
    ///
    /// # Errors
    /// Those of [`receive_body`].
    pub fn receive(
        self: &Arc<Self>,
        stream: &mut impl Read,
        bytes: usize,
        grow: &mut dyn FnMut(usize) -> io::Result<()>,
    ) -> io::Result<Bytes> {
        let mut buffer = self.take_used();
        receive_body(stream, bytes, &mut buffer, grow)?;
        Ok(Bytes::from_owner(buffer).slice(..bytes))
    }

    /// One that holds what was in it before, until it is dropped: for whoever writes over it.
    fn take_used(self: &Arc<Self>) -> Buffer {
        let bytes = self.kept().buffers.pop().unwrap_or_default();
        Buffer { had: bytes.capacity(), bytes, spare: self.clone() }
    }

    /// Bytes of those that came from here and are in use.
    pub fn in_use(&self) -> usize {
        let kept = self.kept();
        kept.bytes - kept.buffers.iter().map(Vec::capacity).sum::<usize>()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them.
pub struct Buffer {
    bytes: Vec<u8>,
    /// What it took when it was taken.
    had: usize,
    spare: Arc<Spare>,
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Deref for Buffer {
    type Target = Vec<u8>;

    fn deref(&self) -> &Vec<u8> {
        &self.bytes
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = mem::take(&mut self.bytes);
        let mut kept = self.spare.kept();
        kept.bytes -= self.had;
        let is_worth_it = (1..=SPARE_BUFFER_BYTES_MAX).contains(&bytes.capacity());
        if is_worth_it && kept.bytes + bytes.capacity() <= SPARE_BYTES_MAX {
            kept.bytes += bytes.capacity();
            kept.buffers.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_empty_and_few_are_kept() {
        let spare = Arc::new(Spare::default());
        let kept = || spare.kept().buffers.iter().map(Vec::capacity).sum::<usize>();
        drop(spare.take());
        spare.take().extend([7; 1000]);
        assert!(kept() >= 1000);
        let again = spare.take();
        assert!(again.is_empty() && again.capacity() >= 1000 && kept() == 0);
        drop(again);
        spare.take().extend([7; 1000]);
        assert_eq!(spare.take_used()[..], [7; 1000]);
        let receive = |bytes| spare.receive(&mut &[8; 20][..], bytes, &mut |_| Ok(()));
        assert_eq!(receive(9).unwrap()[..], [8; 9]);
        assert!(receive(21).is_err(), "nothing of before is in a message");
        spare.take().resize(SPARE_BUFFER_BYTES_MAX + 1, 0);
        assert_eq!(kept(), 0);
        let mut many: Vec<_> = (0..20).map(|_| spare.take()).collect();
        many.iter_mut().for_each(|buffer| buffer.resize(SPARE_BUFFER_BYTES_MAX, 0));
        drop(many);
        assert_eq!(kept(), SPARE_BYTES_MAX);
    }

    #[test]
    fn those_in_use_count_so_that_short_messages_hold_no_more_than_is_kept() {
        let spare = Arc::new(Spare::default());
        let held: Vec<_> = (0..64)
            .map(|_| {
                spare.take().resize(SPARE_BUFFER_BYTES_MAX, 0);
                spare.take()
            })
            .collect();
        assert_eq!(held.iter().map(|it| it.capacity()).sum::<usize>(), SPARE_BYTES_MAX);
        drop(held);
        let kept = spare.kept();
        assert_eq!((kept.bytes, kept.buffers.len()), (SPARE_BYTES_MAX, 8));
    }

    #[test]
    fn a_panic_leaves_nothing_in_a_buffer() {
        let spare = Arc::new(Spare::default());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            spare.take().extend([7; 1000]);
            let mut buffer = spare.take();
            buffer.extend([7; 1000]);
            panic!("in the middle of an answer");
        }));
        assert!(panicked.is_err());
        let again = spare.take();
        assert!(again.is_empty() && again.capacity() >= 1000);
    }
}
