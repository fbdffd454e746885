//! An array of blocks in memory or on a store of one's own, which lives as long as the program.

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

/// An eviction makes room for more than one block, so long before this something else is wrong.
const EVICTIONS_MAX: usize = 1000;

/// An oblivious array of blocks: storage learns how many accesses there were and when, and not to which blocks, nor whether they read or wrote.
///
/// **Never fork or copy a process that has one**, or go back to a snapshot of its machine: two that go on from one state seal different data with one mask, and storage has the difference of both.
///
/// **It lives as long as the program.** Key, stash and position map are in its memory alone, and nothing opens the storage again once they are
/// gone. For what has to last, take a [`Volume`](crate::Volume).
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
/// array.flush()?; // storage has it all; without the array, nobody can read it
/// let store: MemoryStore = array.into_store().unwrap();
/// assert!(!store.contents().is_empty());
/// # Ok::<(), oblivio::Error>(())
/// ```
pub struct Array {
    oram: Box<dyn OramOnStore>,
    /// Storage could not be flushed: nobody knows what it holds.
    is_lost: bool,
}

impl Array {
    fn of(oram: Box<dyn OramOnStore>) -> Self {
        Self { oram, is_lost: false }
    }

    /// As it is unless somebody says otherwise, in memory. See [`ArrayOptions`].
    ///
    /// # Errors
    /// Those of [`ArrayOptions::in_memory`].
    pub fn in_memory(capacity: u64, block_bytes: usize) -> Result<Self, Error> {
        ArrayOptions::new(capacity, block_bytes).in_memory()
    }

    /// How many blocks. Public.
    pub fn capacity(&self) -> u64 {
        self.oram.capacity()
    }

    /// Bytes of a block. Public.
    pub fn block_bytes(&self) -> usize {
        self.oram.block_bytes()
    }

    /// Reads a block into `buffer`. One that was never written is zeros.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    pub fn read(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Read(buffer) }])
    }

    /// Replaces a block.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Write(data) }])
    }

    /// Reads, changes and writes a block in one access. `change` runs between the two in Path ORAM, and storage sees how long it takes.
    ///
    /// # Errors
    /// Those of [`Self::access`].
    pub fn update(&mut self, address: u64, mut change: impl FnMut(&mut [u8])) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Update(&mut change) }])
    }

    /// Serves a batch in order, as many accesses as it has entries. If the stash is over its bound, evictions come first: storage sees them, and they depend
    /// on leaves alone.
    ///
    /// # Errors
    /// [`Input`](ErrorKind::Input) for an address past the end and for a buffer of another length than a block: of a batch, nothing was done then.
    /// [`Tampered`](ErrorKind::Tampered) if storage does not hold what was written, and is authenticated. After any but the first, the array answers
    /// nothing more.
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

    /// An access to nothing, which storage cannot tell from another.
    ///
    /// # Errors
    /// Those of storage.
    pub fn dummy(&mut self) -> Result<(), Error> {
        self.make_room()?;
        Ok(self.oram.dummy()?)
    }

    /// An eviction ahead of its time: it makes the stash smaller. Storage sees it.
    ///
    /// Nobody has to: a request that finds the stash over its bound makes them itself. Where the time of a request
    /// counts, they can be made before it comes, at times that do not depend on what is asked for.
    ///
    /// # Errors
    /// Those of storage.
    pub fn background_evict(&mut self) -> Result<(), Error> {
        self.check_not_lost()?;
        Ok(self.oram.evict()?)
    }

    /// Has storage make durable what it was sent. Storage sees that. The array is no more durable for it: what opens
    /// its blocks is in memory alone.
    ///
    /// # Errors
    /// Those of storage. It may have lost something then, so the array answers nothing more.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.check_not_lost()?;
        let flushed = self.oram.store_mut().flush();
        self.is_lost = flushed.is_err();
        Ok(flushed?)
    }

    /// Ends the array, and hands back the store that it was [made on](ArrayOptions::on), a
    /// [`MemoryStore`](oblivio_core::MemoryStore) of one in memory. It holds what storage saw last; key, stash and positions are gone, so
    /// **nothing opens the blocks any more**. Read what is still wanted before.
    ///
    /// # Errors
    /// The array as it was, if its store is no `S`.
    pub fn into_store<S: BucketStore + 'static>(mut self) -> Result<S, Self> {
        let store: &dyn Any = self.oram.store_mut();
        if !store.is::<S>() {
            return Err(self);
        }
        let store: Box<dyn Any> = self.oram.into_store();
        match store.downcast() {
            Ok(store) => Ok(*store),
            Err(_) => unreachable!("it was one a moment ago"),
        }
    }

    fn check_not_lost(&self) -> Result<(), Error> {
        if !self.is_lost {
            return Ok(());
        }
        let message =
            "storage could not be flushed before, and may have lost blocks: make the array anew";
        Err(Error::new(ErrorKind::Failed, message))
    }

    fn make_room(&mut self) -> Result<(), Error> {
        self.check_not_lost()?;
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

/// Nothing of what it holds.
impl fmt::Debug for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({} blocks of {} bytes)", self.capacity(), self.block_bytes())
    }
}
