//! The traits of ORAMs: [`Oram`] for code that reads and writes blocks, and [`Front`] for the owner
//! of an ORAM, who also maintains it.

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
    /// The address of the block, below the capacity. Secret.
    pub address: u64,
    /// The operation. Secret, including whether it reads or writes.
    pub op: Op<'a>,
}

/// An oblivious array of `capacity` blocks of `block_bytes` each.
///
/// Storage learns the number of accesses and nothing else: not which blocks, not how often the same
/// block, and not whether they were read or written. A position map in the ORAM itself adds
/// accesses: see [`recursion`](super::recursion). With [`HitPolicy::Serve`](super::HitPolicy),
/// requests for blocks on the client make no access, and storage learns what that policy describes.
///
/// `dyn Oram` supports every operation:
///
/// ```
/// use oblivio_core::{Error, Oram};
///
/// /// Increments the first byte of a block, in one access.
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
    /// The number of blocks. Public.
    fn capacity(&self) -> u64;

    /// Bytes of a block. Public.
    fn block_bytes(&self) -> usize;

    /// Serves a batch in order, with one access for each request. Storage might see that the
    /// requests form a batch, because paths are announced before they are read, within windows of
    /// at most [`WINDOW_ACCESSES_MAX`](crate::scheme::WINDOW_ACCESSES_MAX) requests.
    ///
    /// # Errors
    /// [`InvalidRequest`](ErrorKind::InvalidRequest) for the whole batch, before anything is
    /// touched. With any other error, the accesses before the failing one have taken effect, and
    /// [`ErrorKind`] says whether the ORAM remains usable.
    fn access(&mut self, batch: &mut [Access<'_>]) -> Result<(), Error>;

    /// Reads a block into `buffer`.
    ///
    /// # Errors
    /// See [`Self::access`].
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.access(&mut [Access { address, op: Op::Read(buffer) }])
    }

    /// Replaces a block with `data`.
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

/// Implements [`Oram`] for pointers to ORAMs.
macro_rules! impl_oram_for_pointer {
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

impl_oram_for_pointer!(Box<O>, &mut O);

/// An interface for the owner of an ORAM: operations beyond serving requests.
///
/// [`build`](super::build()) returns a `Box<dyn Front>` for any ORAM.
///
/// # Blocks outside of the ORAM
/// A block can be [taken](Self::take) out, and [put back](Self::put_back) later without an access
/// to its path. Until then it is in no bucket and not in the stash. The position map already has a
/// fresh leaf for it, which storage has never seen. So when the block is put back, it goes directly
/// into the stash (IR-ORAM, section IV-D; Nagarajan et al., ASPLOS'19).
pub trait Front: Oram {
    /// Checks that neither an earlier failure nor a full stash would make the next request fail at
    /// once. Touches nothing.
    ///
    /// # Errors
    /// [`MustReopen`](ErrorKind::MustReopen) or [`StashFull`](ErrorKind::StashFull).
    fn check_ready(&self) -> Result<(), Error>;

    /// Makes a dummy access. Storage cannot distinguish it from an [access](Oram::access), and it
    /// does not make the stash larger. See [`Scheme::dummy`](crate::scheme::Scheme::dummy).
    ///
    /// # Errors
    /// [`MustReopen`](ErrorKind::MustReopen), and any error of the storage.
    fn dummy(&mut self) -> Result<(), Error>;

    /// Makes a background eviction, to shrink the stash. Storage sees the eviction, and can
    /// distinguish it from an access in some schemes. See
    /// [`Scheme::evict`](crate::scheme::Scheme::evict).
    ///
    /// # Errors
    /// [`MustReopen`](ErrorKind::MustReopen), and any error of the storage.
    fn evict(&mut self) -> Result<(), Error>;

    /// Serves a request on the client, if the client finds the block by its address: in the stash,
    /// or in a [set-associative](crate::TreeTopKind::SetAssociative) tree top. Returns whether it
    /// did. This makes no access. Storage learns what [`HitPolicy::Serve`](crate::HitPolicy::Serve)
    /// describes.
    ///
    /// # Errors
    /// The errors of [`Oram::access`], except that it never fails because of a full stash.
    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error>;

    /// Makes the next position-map access that a request for `address` needs. Returns whether the
    /// request needed such an access. If not, only the access to data is left. Storage sees an
    /// ordinary access (IR-ORAM, section IV-D: the stages of an early write-back). Front ends that
    /// cannot make such an access by itself do nothing and return `false`.
    ///
    /// # Errors
    /// The errors of [`Oram::access`].
    fn fetch_position(&mut self, address: u64) -> Result<bool, Error>;

    /// Checks that this ORAM supports taking blocks out.
    ///
    /// # Errors
    /// [`InvalidConfig`](ErrorKind::InvalidConfig) if not.
    fn check_takes(&self) -> Result<(), Error>;

    /// Takes a block out of the ORAM, and copies it to `block`. A block never written is zeros.
    /// Returns whether the block existed. Storage sees an ordinary access.
    ///
    /// # Errors
    /// The errors of [`Oram::access`].
    fn take(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error>;

    /// Takes a block out of the ORAM, and copies it to `block`, if the client finds it by its
    /// address, as in [`Self::serve_on_client`]. Returns whether it did; if not, `block` is
    /// unchanged.
    ///
    /// Storage sees nothing. But if a caller tries this before [`Self::take`], the missing access
    /// reveals what [`HitPolicy::Serve`](crate::HitPolicy::Serve) describes.
    ///
    /// # Errors
    /// The errors of [`Oram::access`], except that it never fails because of a full stash.
    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<bool, Error>;

    /// Puts back a block that [was taken](Self::take) and not yet put back. The caller must not
    /// pass any other block, which would then exist twice. Storage sees the position-map accesses,
    /// if the map is in the ORAM, and no access to data. Putting a block back counts as an access
    /// towards the stash bound.
    ///
    /// # Errors
    /// The errors of [`Oram::access`].
    fn put_back(&mut self, address: u64, block: &[u8]) -> Result<(), Error>;

    /// Empties the cache, if this ORAM has one, and returns its blocks to the ORAM, except
    /// unchanged blocks that the ORAM still holds. The cache can then be dropped without loss.
    ///
    /// # Errors
    /// [`StashFull`](ErrorKind::StashFull) if the stash cannot take all of these blocks at once;
    /// the remaining blocks stay in the cache. [Evict](Self::evict) and flush again. Also
    /// [`MustReopen`](ErrorKind::MustReopen), and any error of the storage.
    fn flush(&mut self) -> Result<(), Error>;

    /// Fills an ORAM that was never accessed: every block then counts as written, with zeros,
    /// including the blocks of a position map in the tree.
    ///
    /// # Errors
    /// The errors of [`Scheme::populate`](crate::scheme::Scheme::populate), and
    /// [`InvalidConfig`](ErrorKind::InvalidConfig) with PMMAC, because every block in storage must
    /// have been sealed by an access.
    fn populate(&mut self) -> Result<(), Error>;

    /// Whether a block is in the small tree of ρ. A request for such a block needs no access to the
    /// main tree. Secret.
    fn is_in_small_tree(&self, _address: u64) -> bool {
        false
    }

    /// Counters since the ORAM was made. Secret.
    fn counters(&self) -> Counters;

    /// The stash. If the ORAM has several trees, the stash of the tree that holds the data; with ρ,
    /// of the main tree. Secret.
    fn stash(&self) -> StashView<'_>;

    /// Number of blocks in the stash, or in the stashes of all trees together. Secret.
    fn stash_blocks(&self) -> usize {
        self.stash().blocks()
    }

    /// Checks that each tree holds every block at most once and in a valid place. Storage sees
    /// scans.
    ///
    /// # Errors
    /// [`Corrupt`](ErrorKind::Corrupt) with the first violation,
    /// [`MustReopen`](ErrorKind::MustReopen), and any error of the storage.
    fn check_invariants(&mut self) -> Result<(), Error>;

    /// Calls `visit` for each block in a tree or a stash, and for a block on its way between two
    /// trees. Blocks of a position map have addresses past the capacity. Storage sees a scan of
    /// each tree.
    ///
    /// # Errors
    /// Any error of the storage.
    fn visit_blocks(&mut self, visit: &mut dyn FnMut(VisitedBlock)) -> Result<(), Error>;
}

/// A block found by [`Front::visit_blocks`]. Secret: `Debug` is for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VisitedBlock {
    /// The address of the block.
    pub address: u64,
    /// The placement of the block in a tree or its stash. `None` if the block is in neither,
    /// because it is on its way between two trees.
    pub placement: Option<Placement>,
}

/// The location of a block in a tree, and its leaf. Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The tree that holds the block.
    pub tree: TreeId,
    /// The location of the block in the tree: the stash, or a bucket.
    pub location: Location,
    /// The leaf of the block.
    pub leaf: Leaf,
}

/// Calls `visit` for each block of one tree. `address` maps a block number of the tree to the
/// block's address.
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

/// Checks every request of a batch with [`check_request`].
pub(crate) fn check_requests<O: Oram>(oram: &O, batch: &[Access<'_>]) -> Result<(), Error> {
    batch.iter().try_for_each(|request| {
        check_request(request.address, &request.op, oram.capacity(), oram.block_bytes())
    })
}

/// Checks a request against the size of an ORAM.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest) if the address is past the end or the buffer has
/// another length than a block.
pub fn check_request(
    address: u64,
    op: &Op<'_>,
    capacity: u64,
    block_bytes: usize,
) -> Result<(), Error> {
    let invalid = |message| Err(Error::new(ErrorKind::InvalidRequest, message));
    if address >= capacity {
        // Messages may be logged, so they do not contain the address.
        return invalid(format!("the address is past the end: the ORAM has {capacity} blocks"));
    }
    check_buffer(op, block_bytes)
}

/// Checks that the buffer of an operation has the length of a block.
///
/// # Errors
/// [`InvalidRequest`](ErrorKind::InvalidRequest).
pub(crate) fn check_buffer(op: &Op<'_>, block_bytes: usize) -> Result<(), Error> {
    match op.buffer_bytes() {
        Some(bytes) if bytes != block_bytes => Err(Error::new(
            ErrorKind::InvalidRequest,
            format!("the buffer has {bytes} bytes: pass one block of {block_bytes} bytes"),
        )),
        _ => Ok(()),
    }
}
