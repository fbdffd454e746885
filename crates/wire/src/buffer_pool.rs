//! A pool of message buffers.
//!
//! Allocating and freeing a buffer of a hundred KiB per message takes longer than encrypting the
//! message: the allocator requests the pages from the system each time.

use std::io::{self, Read};
use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use crate::frame::receive_body;

/// A pool of message buffers.
#[derive(Default)]
pub struct BufferPool(Mutex<PooledBuffers>);

#[derive(Default)]
struct PooledBuffers {
    buffers: Vec<Vec<u8>>,
    /// The capacity in bytes of all buffers that are pooled, or were taken from the pool and are in
    /// use. A buffer in use counts with its capacity when it was taken. It counts at all because
    /// the memory granted for its message may not cover it.
    bytes: usize,
}

/// Maximum number of bytes of pooled buffers, in addition to the memory granted for messages.
const POOL_BYTES_MAX: usize = 8 << 20;

/// Maximum number of bytes of a pooled buffer. Longer buffers are freed: their allocation costs
/// little compared with sending such a message.
const POOLED_BUFFER_BYTES_MAX: usize = 1 << 20;

impl BufferPool {
    /// Takes an empty buffer, which returns to the pool when dropped.
    pub fn take(self: &Arc<Self>) -> Buffer {
        let mut buffer = self.take_used();
        buffer.clear();
        buffer
    }

    /// Receives the body of a message into a buffer of the pool. Old contents of the buffer are
    /// overwritten, not zeroed. Calls `grow` as [`receive_body`] does.
    ///
    /// # Errors
    /// See [`receive_body`].
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

    /// Takes a buffer with its old contents, for callers that overwrite them.
    fn take_used(self: &Arc<Self>) -> Buffer {
        let bytes = self.pooled().buffers.pop().unwrap_or_default();
        Buffer { had: bytes.capacity(), bytes, pool: self.clone() }
    }

    /// The capacity in bytes that the buffers in use had when they were taken from the pool.
    pub fn in_use(&self) -> usize {
        let pooled = self.pooled();
        pooled.bytes - pooled.buffers.iter().map(Vec::capacity).sum::<usize>()
    }

    fn pooled(&self) -> MutexGuard<'_, PooledBuffers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A buffer that returns to the pool when dropped.
pub struct Buffer {
    bytes: Vec<u8>,
    /// The capacity of the buffer when it was taken from the pool.
    had: usize,
    pool: Arc<BufferPool>,
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
        let mut pooled = self.pool.pooled();
        pooled.bytes -= self.had;
        let is_worth_it = (1..=POOLED_BUFFER_BYTES_MAX).contains(&bytes.capacity());
        if is_worth_it && pooled.bytes + bytes.capacity() <= POOL_BYTES_MAX {
            pooled.bytes += bytes.capacity();
            pooled.buffers.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_reused_empty_and_the_pool_is_bounded() {
        let pool = Arc::new(BufferPool::default());
        let pooled = || pool.pooled().buffers.iter().map(Vec::capacity).sum::<usize>();
        drop(pool.take());
        pool.take().extend([7; 1000]);
        assert!(pooled() >= 1000);
        let again = pool.take();
        assert!(again.is_empty() && again.capacity() >= 1000 && pooled() == 0);
        drop(again);
        pool.take().extend([7; 1000]);
        assert_eq!(pool.take_used()[..], [7; 1000]);
        let receive = |bytes| pool.receive(&mut &[8; 20][..], bytes, &mut |_| Ok(()));
        assert_eq!(receive(9).unwrap()[..], [8; 9]);
        assert!(receive(21).is_err(), "a message contains no old bytes");
        pool.take().resize(POOLED_BUFFER_BYTES_MAX + 1, 0);
        assert_eq!(pooled(), 0);
        let mut many: Vec<_> = (0..20).map(|_| pool.take()).collect();
        many.iter_mut().for_each(|buffer| buffer.resize(POOLED_BUFFER_BYTES_MAX, 0));
        drop(many);
        assert_eq!(pooled(), POOL_BYTES_MAX);
    }

    #[test]
    fn buffers_in_use_count_towards_the_bound_of_the_pool() {
        let pool = Arc::new(BufferPool::default());
        let held: Vec<_> = (0..64)
            .map(|_| {
                pool.take().resize(POOLED_BUFFER_BYTES_MAX, 0);
                pool.take()
            })
            .collect();
        assert_eq!(held.iter().map(|it| it.capacity()).sum::<usize>(), POOL_BYTES_MAX);
        drop(held);
        let pooled = pool.pooled();
        assert_eq!((pooled.bytes, pooled.buffers.len()), (POOL_BYTES_MAX, 8));
    }

    #[test]
    fn a_panic_leaves_nothing_in_a_buffer() {
        let pool = Arc::new(BufferPool::default());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.take().extend([7; 1000]);
            let mut buffer = pool.take();
            buffer.extend([7; 1000]);
            panic!("in the middle of an answer");
        }));
        assert!(panicked.is_err());
        let again = pool.take();
        assert!(again.is_empty() && again.capacity() >= 1000);
    }
}
