//! What can be done with an ORAM: by whoever uses it, and by whoever owns it.

use alloc::boxed::Box;
use alloc::format;

use super::Counters;
use crate::error::{Error, ErrorKind};
use crate::geometry::Leaf;
use crate::pieces::TreeId;
use crate::scheme::{Location, Op, Scheme};
use crate::stash::StashView;

/// One request of a batch.
pub struct Access<'a> {
    /// Which block, from 0 to the capacity less one. Secret.
    pub address: u64,
    /// What to do with it. Secret, and so is whether it reads or writes.
    pub op: Op<'a>,
}

/// An oblivious array of `capacity` blocks of `block_bytes` each.
///
/// Storage learns how many accesses there were, and nothing else: not which blocks, not how often
/// the same, not whether they were read or written. A position map that lies in the ORAM
/// itself adds accesses of its own: see [`recursion`](super::recursion). Where [`HitPolicy::Serve`](super::HitPolicy) was chosen,
/// requests for blocks on the client make none, and storage learns what that policy says.
///
/// A `dyn Oram` does all that any does:
///
/// ```
/// use oblivio_core::{Error, Oram};
///
/// /// Counts in the first byte of a block, in one access.
/// fn count(oram: &mut dyn Oram, address: u64) -> Result<u8, Error> {
///     let mut counted = 0;
///     oram.update(address, &mut |block| {
///         block[0] += 1;
///         counted = block[0];
///     })?;
///     Ok(counted)
/// }
/// # use oblivio_core::{Key, MemoryStore, PathOram, Sealer, TreeConfig};
/// # use rand::{SeedableRng, rngs::StdRng};
/// # let mut coins = StdRng::seed_from_u64(1);
/// # let config = TreeConfig::path(10, 16)?;
/// # let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
/// # let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree);
/// # let mut oram = PathOram::path(&config, sealer, store, coins)?;
/// # assert_eq!((count(&mut oram, 7)?, count(&mut oram, 7)?), (1, 2));
/// # Ok::<(), Error>(())
/// ```
pub trait Oram {
    /// How many blocks. Public.
    fn capacity(&self) -> u64;

    /// Bytes of a block. Public.
    fn block_bytes(&self) -> usize;

    /// Serves a batch in order, as many accesses as it has entries. Storage may see that they came
    /// together: the path of the next access is shown to it ahead of time, in windows of
    /// [`WINDOW_ACCESSES_MAX`](crate::scheme::WINDOW_ACCESSES_MAX).
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) before anything is touched, for the whole
    /// batch. Any other error: the accesses before the failing one have taken effect, and
    /// [`ErrorKind`] says whether the ORAM goes on.
    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error>;

    /// Reads a block into `buffer`.
    ///
    /// # Errors
    /// See [`Self::access`].
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Read(buffer) }])
    }

    /// Replaces a block by `data`.
    ///
    /// # Errors
    /// See [`Self::access`].
    fn write(&mut self, address: u64, data: &[u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Write(data) }])
    }

    /// Reads, modifies and writes a block in one access.
    ///
    /// # Errors
    /// See [`Self::access`].
    fn update(&mut self, address: u64, change: &mut dyn FnMut(&mut [u8])) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Update(change) }])
    }
}

/// Whatever has an ORAM is one.
macro_rules! forward_to_what_it_points_to {
    ($($pointer:ty),*) => {$(
        impl<O: Oram + ?Sized> Oram for $pointer {
            fn capacity(&self) -> u64 {
                (**self).capacity()
            }

            fn block_bytes(&self) -> usize {
                (**self).block_bytes()
            }

            fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error> {
                (**self).access(batch)
            }
        }
    )*};
}

forward_to_what_it_points_to!(Box<O>, &mut O);

/// A front end as its owner has it: what there is to do besides serving requests.
///
/// `Box<dyn Front>` is any ORAM that [`build`](super::build()) makes.
///
/// # Blocks that are out
/// A block can be [taken](Self::take) out, and [put back](Self::put_back) later without an access to its path. While it is
/// out it is in no bucket and not in the stash. Its mapping says nothing any more: the leaf that the
/// position map has for it is a fresh one, which storage has never seen. So when it is put back it goes into the
/// stash as it is (IR-ORAM, section IV-D; Nagarajan et al., ASPLOS'19).
pub trait Front: Oram {
    /// Whether the next request will be begun, and not be refused before anything is touched.
    ///
    /// # Errors
    /// [`MustReopen`](ErrorKind::MustReopen) or [`StashFull`](ErrorKind::StashFull).
    fn check_ready(&self) -> Result<(), Error>;

    /// An access to nothing. Storage cannot tell it from an [access](Oram::access), and the stash is no fuller
    /// after it. See [`Scheme::dummy`](crate::scheme::Scheme::dummy).
    ///
    /// # Errors
    /// [`MustReopen`](ErrorKind::MustReopen), and any that storage causes.
    fn dummy(&mut self) -> Result<(), Error>;

    /// Makes the stash smaller ahead of time. Storage sees it, and may tell it from an access. See
    /// [`Scheme::evict`](crate::scheme::Scheme::evict).
    ///
    /// # Errors
    /// [`MustReopen`](ErrorKind::MustReopen), and any that storage causes.
    fn evict(&mut self) -> Result<(), Error>;

    /// Serves a request where the block is, if the client finds it by its address: in the stash, or in
    /// a [set-associative](crate::TreeTopKind::SetAssociative) tree top. Answers whether it did. Storage sees
    /// nothing: it learns what [`HitPolicy::Serve`](crate::HitPolicy::Serve) says.
    ///
    /// # Errors
    /// Those of [`Oram::access`], but it is never refused for want of room.
    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error>;

    /// Makes one of the accesses that the position map takes before a request for `address`, the first,
    /// and answers whether there was one: if not, the request itself is one access now. Storage sees an
    /// access like any other (IR-ORAM, section IV-D: the stages of an early write-back).
    ///
    /// # Errors
    /// Those of [`Oram::access`].
    fn fetch_position(&mut self, address: u64) -> Result<bool, Error>;

    /// Whether blocks can be taken out of it at all.
    ///
    /// # Errors
    /// [`InvalidConfig`](ErrorKind::InvalidConfig) if not.
    fn check_takes(&self) -> Result<(), Error>;

    /// Takes a block out, into `block`. One that was never written is zeros. Answers whether there
    /// was one. Storage sees an access like any other.
    ///
    /// # Errors
    /// Those of [`Oram::access`].
    fn take(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error>;

    /// Takes a block out, into `block`, if the client finds it by its address, as in
    /// [`Self::serve_on_client`]. Answers whether it did; if not, `block` is as it was.
    ///
    /// Storage sees nothing. So whoever calls this before [`Self::take`] shows storage, by the access
    /// that does not come, what [`HitPolicy::Serve`](crate::HitPolicy::Serve) says.
    ///
    /// # Errors
    /// Those of [`Oram::access`], but it is never refused for want of room.
    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error>;

    /// Puts a block back that [was taken](Self::take) and is still out: one that is not would be
    /// there twice. Storage sees the accesses that the position map takes, if it lies in the ORAM,
    /// and none to data. Towards the stash bound it counts like an access.
    ///
    /// # Errors
    /// Those of [`Oram::access`].
    fn put_back(&mut self, address: u64, block: &[u8]) -> Result<(), Error>;

    /// Brings the blocks that a cache in front holds back into the ORAM, so that it can be dropped without
    /// loss.
    ///
    /// # Errors
    /// [`StashFull`](ErrorKind::StashFull) when there is no room for all of them at once: those that are left
    /// stay where they are. [Evict](Self::evict) and flush again. Any other error is one that storage causes.
    fn flush(&mut self) -> Result<(), Error>;

    /// Fills an ORAM that was never accessed: afterwards each block has been written, with zeros, and so
    /// have those of a position map in the tree.
    ///
    /// # Errors
    /// Those of [`Scheme::populate`](crate::scheme::Scheme::populate); and
    /// [`InvalidConfig`](ErrorKind::InvalidConfig) under PMMAC, where nothing is in storage that
    /// was not sealed by an access.
    fn populate(&mut self) -> Result<(), Error>;

    /// Whether a block is in a small tree in front (ρ), where a request for it takes no access to the main one.
    /// Secret.
    fn is_in_small_tree(&self, _address: u64) -> bool {
        false
    }

    /// What it did so far. Secret.
    fn counters(&self) -> Counters;

    /// The stash, of two trees that of the main one. Secret.
    fn stash(&self) -> StashView<'_>;

    /// Blocks in the stash, of two trees in both of them. Secret.
    fn stash_blocks(&self) -> usize {
        self.stash().blocks()
    }

    /// Checks over each tree that each block is there once at most, and where it belongs. Storage sees
    /// scans.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) with the first violation, and any that storage causes.
    fn check_invariants(&mut self) -> Result<(), Error>;

    /// Calls `visit` for each block that exists. Those of a position map have addresses past the
    /// capacity. Storage sees a scan of each tree.
    ///
    /// # Errors
    /// Any that storage causes.
    fn visit_blocks(&mut self, visit: &mut dyn FnMut(VisitedBlock)) -> Result<(), Error>;
}

/// A block that [`Front::visit_blocks`] found. Secret: `Debug` is for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitedBlock {
    /// Its address.
    pub address: u64,
    /// Where it is. `None`: on the client, outside of every tree.
    pub placement: Option<Placement>,
}

/// Where a block is in a tree, and the leaf that it is mapped to. Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Which tree.
    pub tree: TreeId,
    /// In its stash, or in one of its buckets.
    pub location: Location,
    /// Its leaf.
    pub leaf: Leaf,
}

/// Visits the blocks of one tree. `address` turns the numbers that the tree has for its blocks into
/// addresses.
pub(crate) fn visit_tree(
    scheme: &mut (impl Scheme + ?Sized),
    mut address: impl FnMut(u64) -> u64,
    visit: &mut dyn FnMut(VisitedBlock),
) -> Result<(), Error> {
    let tree = scheme.config().tree;
    scheme.visit_blocks(&mut |location, number, leaf| {
        let placement = Some(Placement { tree, location, leaf });
        visit(VisitedBlock { address: address(number), placement });
    })
}

/// Refuses a batch of which an ORAM cannot serve every request.
pub(crate) fn check_requests<O: Oram>(oram: &O, batch: &[Access<'_>]) -> Result<(), Error> {
    batch.iter().try_for_each(|request| {
        check_request(request.address, &request.op, oram.capacity(), oram.block_bytes())
    })
}

/// Refuses a request that no ORAM of this size can serve.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest) for an address past the end, and for a buffer of another length than a block.
pub fn check_request(
    address: u64,
    op: &Op<'_>,
    capacity: u64,
    block_bytes: usize,
) -> Result<(), Error> {
    let invalid = |message| Err(Error::new(ErrorKind::InvalidRequest, message));
    if address >= capacity {
        // The address itself stays out of the message: messages may be logged.
        return invalid(format!("the address is past the end: there are {capacity} blocks"));
    }
    check_buffer(op, block_bytes)
}

/// Refuses an operation whose buffer has another length than a block.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest).
pub(crate) fn check_buffer(op: &Op<'_>, block_bytes: usize) -> Result<(), Error> {
    match op.buffer_bytes() {
        Some(bytes) if bytes != block_bytes => Err(Error::new(
            ErrorKind::InvalidRequest,
            format!("the buffer has {bytes} bytes, a block has {block_bytes}"),
        )),
        _ => Ok(()),
    }
}
