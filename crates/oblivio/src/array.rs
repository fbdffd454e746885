//! An array of blocks in memory or on a custom store, which is lost when the program ends.

mod on_store;
mod options;

use std::any::Any;
use std::fmt;

use oblivio_core::front::check_request;
use oblivio_core::scheme::WINDOW_ACCESSES_MAX;
use oblivio_core::{Access, BucketStore, Op};

pub use self::options::{ArrayOptions, Positions, Scheme};

use self::on_store::OramOnStore;
use crate::error::{Error, ErrorKind};

/// Maximum number of evictions before a request. Each eviction makes room for several blocks, so
/// reaching this number is a defect.
const EVICTIONS_MAX: usize = 1000;

/// An oblivious array of blocks. Storage learns the number and the times of accesses, but neither
/// the blocks nor whether they were read or written.
///
/// **Never fork or copy a process that has an array**, or roll its machine back to a snapshot. Two
/// copies that continue from one state seal different data with the same keystream, which reveals
/// the difference to storage.
///
/// **An array is lost when the program ends.** Key, stash and position map are only in the
/// program's memory, and nothing opens the storage again without them. Use a
/// [`Volume`](crate::Volume) for data that must last.
///
/// ```
/// use oblivio::oblivio_core::MemoryStore;
/// use oblivio::{ArrayOptions, Scheme};
///
/// let mut array = ArrayOptions::new(1000, 64).with_scheme(Scheme::Path).in_memory()?;
/// array.write(7, &[42; 64])?;
/// array.update(7, |block| block[0] += 1)?;
/// let mut block = [0; 64];
/// array.read(7, &mut block)?;
/// assert_eq!((block[0], block[1]), (43, 42));
/// array.flush()?; // storage has all of the data, but only the array can read it
/// let store: MemoryStore = array.into_store().unwrap();
/// assert!(!store.contents().is_empty());
/// # Ok::<(), oblivio::Error>(())
/// ```
pub struct Array {
    oram: Box<dyn OramOnStore>,
    /// Whether a flush failed. The contents of storage are then unknown.
    has_failed: bool,
}

impl Array {
    fn from_oram(oram: Box<dyn OramOnStore>) -> Self {
        Self { oram, has_failed: false }
    }

    /// An array in memory with default options. See [`ArrayOptions`].
    ///
    /// # Errors
    /// See [`ArrayOptions::in_memory`].
    pub fn in_memory(capacity: u64, block_bytes: usize) -> Result<Self, Error> {
        ArrayOptions::new(capacity, block_bytes).in_memory()
    }

    /// Number of blocks. Public.
    pub fn capacity(&self) -> u64 {
        self.oram.capacity()
    }

    /// Bytes of a block. Public.
    pub fn block_bytes(&self) -> usize {
        self.oram.block_bytes()
    }

    /// Reads a block into `buffer`. A block that was never written is zeros.
    ///
    /// # Errors
    /// See [`Self::access`].
    pub fn read(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Read(buffer) }])
    }

    /// Replaces a block.
    ///
    /// # Errors
    /// See [`Self::access`].
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Write(data) }])
    }

    /// Reads, changes and writes a block in one access. In Path ORAM, `change` runs between reading
    /// and writing, and storage sees how long `change` takes.
    ///
    /// # Errors
    /// See [`Self::access`].
    pub fn update(&mut self, address: u64, mut change: impl FnMut(&mut [u8])) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Update(&mut change) }])
    }

    /// Serves a batch in order, with one access for each entry (more with [`Positions::InTree`]).
    /// If the stash is over its bound, evictions come first: storage sees them, and they depend on
    /// leaves alone.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) for an address past the end, or a buffer whose length is not the
    /// block size: then nothing of the batch was done. [`Tampered`](ErrorKind::Tampered) if the
    /// array is authenticated and storage does not hold what was written. After any error except
    /// `Input`, the array fails all further requests.
    pub fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
        for Access { address, op } in &*batch {
            check_request(*address, op, self.capacity(), self.block_bytes())?;
        }
        for window in batch.chunks_mut(WINDOW_ACCESSES_MAX) {
            self.make_room()?;
            self.oram.access(window)?;
        }
        Ok(())
    }

    /// Makes a dummy access, which storage cannot tell from another access. If the stash is over
    /// its bound, evictions come first, as in [`Self::access`].
    ///
    /// # Errors
    /// Errors of storage.
    pub fn dummy(&mut self) -> Result<(), Error> {
        self.make_room()?;
        Ok(self.oram.dummy()?)
    }

    /// An early eviction, which shrinks the stash. Storage sees it.
    ///
    /// Calling this is optional: a request that finds the stash over its bound makes evictions
    /// itself. If latency matters, make evictions in advance, at times that do not depend on the
    /// requests.
    ///
    /// # Errors
    /// Errors of storage.
    pub fn background_evict(&mut self) -> Result<(), Error> {
        self.check_not_failed()?;
        Ok(self.oram.evict()?)
    }

    /// Makes storage flush all writes. Storage sees that. The array does not become durable: its
    /// key and position map are only in memory.
    ///
    /// # Errors
    /// Errors of storage. Storage may have lost data then, so the array fails all further requests.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.check_not_failed()?;
        let flushed = self.oram.store_mut().flush();
        self.has_failed = flushed.is_err();
        Ok(flushed?)
    }

    /// Ends the array, and returns the store that it was [made on](ArrayOptions::on): for an array
    /// in memory, a [`MemoryStore`](oblivio_core::MemoryStore). Key, stash and positions are lost,
    /// so **nothing opens the blocks any more**. Read what you still need first.
    ///
    /// # Errors
    /// Returns the array unchanged if its store is not an `S`.
    pub fn into_store<S: BucketStore + 'static>(mut self) -> Result<S, Self> {
        let store: &dyn Any = self.oram.store_mut();
        if !store.is::<S>() {
            return Err(self);
        }
        let store: Box<dyn Any> = self.oram.into_store();
        match store.downcast() {
            Ok(store) => Ok(*store),
            Err(_) => unreachable!("the type was checked above"),
        }
    }

    fn check_not_failed(&self) -> Result<(), Error> {
        if !self.has_failed {
            return Ok(());
        }
        let message =
            "storage could not be flushed before, and may have lost blocks: create a new array";
        Err(Error::new(ErrorKind::Failed, message))
    }

    fn make_room(&mut self) -> Result<(), Error> {
        self.check_not_failed()?;
        let is_full =
            |error: &oblivio_core::Error| error.kind() == oblivio_core::ErrorKind::StashFull;
        for _ in 0..EVICTIONS_MAX {
            match self.oram.check_ready() {
                Err(error) if is_full(&error) => self.oram.evict()?,
                ready => return Ok(ready?),
            }
        }
        Ok(self.oram.check_ready()?)
    }
}

/// Shows the size of the array, but no contents.
impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} blocks of {} bytes)", self.capacity(), self.block_bytes())
    }
}
