//! Accesses to a durable array.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use rand_core::CryptoRng;

use super::{AccessPlan, AnyStore, Contents, EncodedPlan, RangePolicy, Want, WrongServers};
use crate::error::{Error, ErrorKind};
use crate::records::Records;
use crate::scheme::{Op, WINDOW_ACCESSES_MAX};

/// The properties of an array that never change. Public.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayFacts {
    /// Number of blocks (N).
    pub blocks: u64,
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Number of buckets of the array in storage, without the places for older versions.
    pub buckets_in_storage: u64,
    /// Maximum number of accesses planned together. The client has room for all positions that
    /// these accesses can need.
    pub window_accesses_max: usize,
    /// Levels of positions that are not on the client: the maximum number of accesses to positions
    /// that one access may need beforehand. 0 if all positions are on the client.
    pub position_levels: usize,
    /// The classes of ranges, ascending from 0: an access can read an aligned range of `2^class`
    /// blocks at once.
    pub range_classes: Vec<u8>,
    /// The policy by which a disk divides its requests into ranges.
    pub range_policy: RangePolicy,
}

impl ArrayFacts {
    /// The properties of an array with all positions on the client, windows of
    /// [`WINDOW_ACCESSES_MAX`] accesses, and no ranges.
    pub fn new(blocks: u64, block_bytes: usize, buckets_in_storage: u64) -> Self {
        Self {
            blocks,
            block_bytes,
            buckets_in_storage,
            window_accesses_max: WINDOW_ACCESSES_MAX,
            position_levels: 0,
            range_classes: vec![0],
            range_policy: RangePolicy::Classes,
        }
    }
}

/// The accesses and evictions that the client may still make before it must evict or checkpoint.
/// Public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Number of accesses that the client may still make. At 0, the client must checkpoint first: a
    /// further access would overwrite data that the last saved state needs.
    pub accesses: u64,
    /// Number of [evictions](DurableOram::evict) that the client may still make. A further eviction
    /// would overwrite data that the last saved state needs.
    pub evictions: u64,
    /// Whether the stash is over its bound, so that an eviction must precede the next access.
    pub must_evict: bool,
}

/// The number of blocks in a stash, and its bound. Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StashFill {
    /// Blocks in the stash.
    pub blocks: u64,
    /// The bound. If the stash holds more blocks, an eviction must precede the next access.
    pub blocks_max: u64,
}

/// The purpose for which a client needs positions.
#[derive(Clone, Debug)]
pub enum PositionUse<'a> {
    /// To access the blocks with these addresses.
    Access(&'a [u64]),
    /// To forget the blocks of this range.
    Forget(Range<u64>),
}

/// An array of blocks whose accesses are planned first and carried out later.
pub trait DurableOram: Send {
    /// The array's properties, which never change, so callers can cache them.
    fn facts(&self) -> ArrayFacts;

    /// The accesses and evictions that the client may still make before it must evict or
    /// checkpoint.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen).
    fn headroom(&self) -> Result<Headroom, Error>;

    /// Plans the accesses `wanted`, in this order: draws all random choices that they will reveal
    /// to storage. They follow the accesses of `planned`, which are not carried out yet. Does not
    /// change the array, and reveals nothing to storage. The caller ensures that both together do
    /// not exceed [`window_accesses_max`](ArrayFacts::window_accesses_max) accesses.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if this array cannot make a wanted
    /// access (an address past the end, an unaligned range or a class that the array lacks, or a
    /// position that does not exist, is already on the client or is requested twice), or if
    /// [positions are missing](Self::missing_positions). Also if the array has
    /// [`position_levels`](ArrayFacts::position_levels) and `planned` is not empty, because planned
    /// accesses may move positions.
    fn plan(
        &mut self,
        wanted: &[Want],
        planned: &[&AccessPlan],
        coins: &mut dyn CryptoRng,
    ) -> Result<AccessPlan, Error>;

    /// Decodes a plan from the log, for recovery.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if this scheme did not encode it.
    fn decode_plan(&self, plan: &EncodedPlan) -> Result<AccessPlan, Error>;

    /// The block of each access of a plan; `None` for an access to a position or a dummy.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if another scheme drew the plan.
    fn blocks_of(&self, plan: &AccessPlan) -> Result<Vec<Option<u64>>, Error>;

    /// Makes the accesses of a plan, with one operation for each; a range has one operation per
    /// block. Ignores the operation of an access to a position and of a dummy.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) before anything is touched, if the
    /// [`headroom`](Self::headroom) is too small, operations and accesses do not match, or the plan
    /// does not start from this state; and any error of storage.
    fn carry_out(&mut self, plan: &AccessPlan, ops: &mut [Op<'_>]) -> Result<(), Error>;

    /// Drops the contents of the blocks of a range; they read as zeros from now on. Storage sees
    /// nothing.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the range goes past the end or
    /// [positions are missing](Self::missing_positions).
    fn forget(&mut self, range: Range<u64>) -> Result<(), Error>;

    /// The records of the array, such as anchors and superblocks. Through the result, only trees of
    /// records can be written.
    fn records(&mut self) -> Records<'_>;

    /// Ends the use of the array and returns its store.
    fn into_store(self: Box<Self>) -> AnyStore;

    /// Makes everything in storage durable.
    ///
    /// # Errors
    /// [`MustReopen`](crate::ErrorKind::MustReopen), [`Store`](crate::ErrorKind::Store).
    fn flush(&mut self) -> Result<(), Error> {
        self.records().flush()
    }

    /// Whether any block of the array may have contents. Secret. `true` if the scheme does not
    /// know.
    fn may_hold_contents(&self) -> bool {
        true
    }

    /// The number of blocks in the stash, and its bound. Secret. `None` if the scheme has no stash
    /// or does not report it.
    fn stash_fill(&self) -> Option<StashFill> {
        None
    }

    /// The positions that the client must fetch before the given use, each listed once. After they
    /// are fetched, more may be missing: call this again. If
    /// [`position_levels`](ArrayFacts::position_levels) is 0, returns an empty list and does not
    /// check the addresses.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if an address is past the end.
    fn missing_positions(&self, _usage: PositionUse<'_>) -> Result<Vec<u64>, Error> {
        Ok(Vec::new())
    }

    /// Whether a position is on the client. Secret.
    fn holds_position(&self, _position: u64) -> bool {
        false
    }

    /// Announces to storage what a plan will read, so that storage can prefetch it. Plans are
    /// announced in the order in which they are carried out. [`carry_out`](Self::carry_out)
    /// announces a plan that was not announced before.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if another scheme drew the plan.
    fn announce(&mut self, _plan: &AccessPlan) -> Result<(), Error> {
        Ok(())
    }

    /// Makes the next eviction early, so that the stash shrinks. Storage sees it.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the [`headroom`](Self::headroom) is
    /// too small or the scheme has no stash; and any error of storage.
    fn evict(&mut self) -> Result<(), Error> {
        Err(Error::new(ErrorKind::InvalidRequest, "this scheme has no stash to evict from"))
    }

    /// Applies `op` to a block on the client, if the client finds the block by its address. Returns
    /// whether it did. Makes no access; [`HitPolicy::Serve`](crate::HitPolicy::Serve) describes
    /// what storage learns from the missing access.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest),
    /// [`MustReopen`](crate::ErrorKind::MustReopen).
    fn serve_on_client(&mut self, _address: u64, _op: &mut Op<'_>) -> Result<bool, Error> {
        Ok(false)
    }

    /// Fills an unused array with `contents` without accesses, if the scheme can. Returns whether
    /// it did, which is public. The contents are durable once the caller has flushed the array and
    /// saved its state.
    ///
    /// # Errors
    /// Errors of `contents` and of storage. After an error the array is unusable.
    fn load(
        &mut self,
        _contents: &mut dyn Contents,
        _coins: &mut dyn CryptoRng,
    ) -> Result<bool, Error> {
        Ok(false)
    }

    /// Sets the list of servers that gave wrong answers. A scheme on servers never lets a listed
    /// server deal shares. It adds a server to the list before it uses the server's wrong answer in
    /// any way.
    fn keep_wrong_servers(&mut self, _list: Box<dyn WrongServers>) {}
}
