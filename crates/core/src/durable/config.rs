//! How a durable scheme is chosen, made and brought back.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

use rand_core::CryptoRng;

use super::{AnyStore, ArrayRequirements, Durable, EncodedPlan};
use crate::error::Error;
use crate::pieces::{TreeId, TreeShape};
use crate::seal::MasterKey;

/// A scheme that durable arrays can stand on.
pub trait DurableScheme: Sync {
    /// What it is called where it is chosen, and in superblocks: lower-case letters, digits and `-`, 16 at most.
    fn name(&self) -> &'static str;

    /// What it is, in a line.
    fn about(&self) -> &'static str;

    /// Whether its store has to be several servers that compute. An array on any other is refused
    /// when it is made.
    fn needs_servers(&self) -> bool {
        false
    }

    /// The configuration that meets the requirements.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if there is none, none fits the client's
    /// memory, or the requirements name a setting that this scheme does not have.
    fn plan(&self, requirements: &ArrayRequirements) -> Result<Box<dyn DurableConfig>, Error>;

    /// The configuration that [encodes](DurableConfig::encode) to `params`. They may come from anyone.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) when there is none.
    fn decode(
        &self,
        blocks: u64,
        block_bytes: u32,
        params: &[u8],
    ) -> Result<Box<dyn DurableConfig>, Error>;
}

/// A scheme with its parameters. Public.
pub trait DurableConfig: fmt::Debug {
    /// The [name](DurableScheme::name) of the scheme.
    fn scheme(&self) -> &'static str;

    /// How many blocks (N).
    fn blocks(&self) -> u64;

    /// Bytes of a block.
    fn block_bytes(&self) -> u32;

    /// All other parameters as bytes. There is exactly one encoding of each configuration.
    fn encode(&self) -> Vec<u8>;

    /// What a store must have room for: the scheme's trees, in its order.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) when the parameters contradict each other.
    fn shapes(&self) -> Result<Vec<TreeShape>, Error>;

    /// What it costs.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) when the parameters contradict each other.
    fn cost(&self) -> Result<Cost, Error>;

    /// How large saved states are.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) when the parameters contradict each other.
    fn state_size(&self) -> Result<StateSize, Error>;

    /// What it is, for people and programs.
    fn facts(&self) -> Vec<Fact>;

    /// Whether its client ever [serves](super::DurableOram::serve_on_client) a block without an
    /// access.
    fn may_serve_on_client(&self) -> bool {
        false
    }

    /// Whether all moves have to be durable before storage sees them. Elsewhere a client that lost some in a power loss goes back to a state that storage
    /// still has; here storage has moved on, and all would be lost.
    fn needs_durable_moves(&self) -> bool {
        false
    }

    /// An empty array on a store that was never written. `trees` are those of the store that have [`Self::shapes`].
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig), [`StoreMismatch`](crate::ErrorKind::StoreMismatch).
    fn create(
        &self,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        coins: &mut dyn CryptoRng,
    ) -> Result<Box<dyn Durable>, Error>;

    /// Begins to bring back a state that was saved.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig).
    fn restore(&self) -> Result<Box<dyn Restore>, Error>;
}

/// Restores a state from the records since a [whole](super::Save::Whole) state, in order, up to the
/// latest state. Needs no storage, and refuses what does not fit.
pub trait Restore {
    /// Begins a state, which replaces the previous one, but for what follows from it.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) when there is no memory for it.
    fn begin_state(&mut self) -> Result<(), Error>;

    /// Reads a section of the state.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when this scheme did not write it.
    fn section(&mut self, section: &[u8]) -> Result<(), Error>;

    /// Replays a plan that was carried out; `is_written` says which accesses wrote their block.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if this scheme did not encode it.
    fn replay(&mut self, plan: &EncodedPlan, is_written: &[bool]) -> Result<(), Error>;

    /// Replays that a range was forgotten.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the range goes past the end.
    fn replay_forget(&mut self, range: Range<u64>) -> Result<(), Error>;

    /// The array in the latest state, without the blocks on the client, which
    /// [`restore_client_block`](super::Snapshot::restore_client_block) restores. Reads nothing from
    /// `store`. `trees` are those that the array was [created](DurableConfig::create) with.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) when the state is not whole,
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) when there was no such state, and
    /// [`StoreMismatch`](crate::ErrorKind::StoreMismatch).
    fn finish(
        self: Box<Self>,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, Error>;
}

/// What an array costs. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes in storage, when all buckets have been written.
    pub tree_bytes: u64,
    /// Blocks that an access is to: one, unless all are to ranges. The averages below are of such accesses.
    pub blocks_per_access: u64,
    /// Bytes that an access reads, on average: what it is for, and its share of an eviction.
    pub read_bytes_per_access: f64,
    /// Bytes that an access writes, on average.
    pub written_bytes_per_access: f64,
    /// Trips to storage an access, on average.
    pub trips_per_access: f64,
    /// Levels of the position map that lie in the tree. A request for a block whose positions are not
    /// on the client makes as many accesses more.
    pub position_map_depth: usize,
    /// Bytes of client memory for the position map, blocks of it and notes on taken slots included.
    pub position_map_bytes: u64,
    /// Bytes of client memory for tree top and stash, or whatever else a scheme has of blocks there.
    pub blocks_on_client_bytes: u64,
    /// Accesses between checkpoints, at most.
    pub accesses_per_checkpoint: u64,
}

impl Cost {
    /// Bytes of client memory, without a disk's cache.
    pub fn client_bytes(&self) -> u64 {
        self.position_map_bytes + self.blocks_on_client_bytes
    }
}

/// Sections of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionSize {
    /// How many there are at most.
    pub sections: u64,
    /// Bytes of each.
    pub bytes: u64,
}

/// How large saved states and plans are at most.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSize {
    /// A whole state.
    pub whole: Vec<SectionSize>,
    /// Bytes of the plan of one access alone.
    pub plan_bytes_per_access: u64,
    /// Accesses between two checkpoints.
    pub accesses_per_checkpoint: u64,
    /// Evictions ahead of their time between two checkpoints.
    pub evictions_per_checkpoint: u64,
}

/// Something that is told of a configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// For people: what it is about, and a line.
    Line(&'static str, String),
    /// For programs: a name and a value.
    Value(&'static str, FactValue),
}

/// A number that an array says of itself, if it has one of this name.
pub fn number_of(facts: &[Fact], name: &str) -> Option<u64> {
    facts.iter().find_map(|fact| match fact {
        Fact::Value(its, FactValue::Number(number)) if *its == name => Some(*number),
        _ => None,
    })
}

/// A value for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactValue {
    /// One number.
    Number(u64),
    /// Several.
    Numbers(Vec<u64>),
    /// A word.
    Word(&'static str),
}
