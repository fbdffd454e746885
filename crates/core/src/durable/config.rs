//! Choosing, creating and restoring arrays of a durable scheme.

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

/// A scheme that can plan, create and restore durable arrays.
pub trait DurableScheme: Sync {
    /// The name in options and superblocks: lower-case letters, digits and `-`, at most 16
    /// characters.
    fn name(&self) -> &'static str;

    /// A description of the scheme in one line.
    fn about(&self) -> &'static str;

    /// Whether the store must consist of servers that compute. If so, creating an array on any
    /// other store fails.
    fn needs_servers(&self) -> bool {
        false
    }

    /// The configuration that meets the requirements.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if no configuration meets them and fits
    /// the client's memory, or if the requirements name a setting that this scheme does not have.
    fn plan(&self, requirements: &ArrayRequirements) -> Result<Box<dyn DurableConfig>, Error>;

    /// The configuration that [encodes](DurableConfig::encode) to `params`, which are untrusted.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if no configuration encodes to `params`.
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

    /// Number of blocks (N).
    fn blocks(&self) -> u64;

    /// Bytes of a block.
    fn block_bytes(&self) -> u32;

    /// All other parameters as bytes. There is exactly one encoding of each configuration.
    fn encode(&self) -> Vec<u8>;

    /// The shapes of the trees that the store must hold, in the scheme's order.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if the parameters contradict each other.
    fn shapes(&self) -> Result<Vec<TreeShape>, Error>;

    /// Bytes, trips and client memory that an array costs.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if the parameters contradict each other.
    fn cost(&self) -> Result<Cost, Error>;

    /// Upper bounds on the sizes of saved states and plans.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if the parameters contradict each other.
    fn state_size(&self) -> Result<StateSize, Error>;

    /// Facts about the configuration, readable by humans and programs.
    fn facts(&self) -> Vec<Fact>;

    /// Whether the client of the array ever [serves](super::DurableOram::serve_on_client) a block
    /// without an access.
    fn may_serve_on_client(&self) -> bool {
        false
    }

    /// Whether every plan must be durable in the client's log before storage sees its accesses. If
    /// so, storage keeps no earlier states: a client that lost plans in a power failure would lose
    /// all contents. If not, such a client rolls back to a state that storage still holds.
    fn needs_durable_moves(&self) -> bool {
        false
    }

    /// Creates an empty array on a store that was never written. `trees` are the trees of the store
    /// that have the [`shapes`](Self::shapes).
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig),
    /// [`StoreMismatch`](crate::ErrorKind::StoreMismatch).
    fn create(
        &self,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        coins: &mut dyn CryptoRng,
    ) -> Result<Box<dyn Durable>, Error>;

    /// Begins to restore a saved state. The caller passes the records to the result.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig).
    fn restore(&self) -> Result<Box<dyn Restore>, Error>;
}

/// Restores the latest state from the records since a [whole](super::Save::Whole) state. The caller
/// passes the records in order. Restoring needs no storage, and refuses records that do not fit.
pub trait Restore {
    /// Begins the next state, which replaces the previous one. The parts that the sections of
    /// [`Save::Changes`](super::Save::Changes) leave out stay as they were.
    ///
    /// # Errors
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if memory cannot be allocated.
    fn begin_state(&mut self) -> Result<(), Error>;

    /// Reads a section of the state.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if this scheme did not write it.
    fn section(&mut self, section: &[u8]) -> Result<(), Error>;

    /// Replays a plan that was carried out; `is_written` says which accesses wrote their block.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if this scheme did not encode it.
    fn replay(&mut self, plan: &EncodedPlan, is_written: &[bool]) -> Result<(), Error>;

    /// Replays the forgetting of a range.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the range goes past the end.
    fn replay_forget(&mut self, range: Range<u64>) -> Result<(), Error>;

    /// The array in the latest state, without the blocks on the client, which
    /// [`restore_client_block`](super::Snapshot::restore_client_block) restores. Reads nothing from
    /// `store`. `trees` are the trees that the array was [created](DurableConfig::create) with.
    ///
    /// # Errors
    /// [`InvalidRequest`](crate::ErrorKind::InvalidRequest) if the state is incomplete,
    /// [`InvalidConfig`](crate::ErrorKind::InvalidConfig) if the array was never in such a state,
    /// and [`StoreMismatch`](crate::ErrorKind::StoreMismatch).
    fn finish(
        self: Box<Self>,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
    ) -> Result<Box<dyn Durable>, Error>;
}

/// The costs of an array. Public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Bytes that the array takes in storage once all buckets have been written.
    pub tree_bytes: u64,
    /// Blocks per access: 1, unless all accesses are to ranges. The averages of the other fields
    /// are per access of this size.
    pub blocks_per_access: u64,
    /// Average bytes read per access, including its share of an eviction.
    pub read_bytes_per_access: f64,
    /// Average bytes written per access, including its share of an eviction.
    pub written_bytes_per_access: f64,
    /// Average round trips to storage per access.
    pub trips_per_access: f64,
    /// Levels of the position map that are in the tree. A request for a block whose positions are
    /// not on the client makes up to this number of additional accesses.
    pub position_map_depth: usize,
    /// Bytes of client memory for the position map and its cached blocks, for the bitmap of blocks
    /// with contents, and for the marks of [taken slots](crate::scheme::TakenSlot).
    pub position_map_bytes: u64,
    /// Bytes of client memory for blocks, for example in the tree top and the stash.
    pub blocks_on_client_bytes: u64,
    /// Number of accesses that a client can always make between two checkpoints.
    pub accesses_per_checkpoint: u64,
}

impl Cost {
    /// Total bytes of client memory for position map and blocks. Excludes the cache of a disk.
    pub fn client_bytes(&self) -> u64 {
        self.position_map_bytes + self.blocks_on_client_bytes
    }
}

/// The number and length of sections of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionSize {
    /// Maximum number of sections.
    pub sections: u64,
    /// Maximum number of bytes of a section.
    pub bytes: u64,
}

/// Upper bounds on the sizes of saved states and plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateSize {
    /// The numbers and lengths of the sections of a whole state.
    pub whole: Vec<SectionSize>,
    /// Bytes of the plan of a single access.
    pub plan_bytes_per_access: u64,
    /// Number of accesses between two checkpoints for which the client reserves space.
    pub accesses_per_checkpoint: u64,
    /// Maximum number of early evictions between two checkpoints.
    pub evictions_per_checkpoint: u64,
}

/// A fact about a configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A human-readable fact: a label and a line of text.
    Line(&'static str, String),
    /// A fact for programs: a name and a value.
    Value(&'static str, FactValue),
}

/// The value of the fact `name`, if there is such a fact and its value is a number.
pub fn find_number(facts: &[Fact], name: &str) -> Option<u64> {
    facts.iter().find_map(|fact| match fact {
        Fact::Value(its, FactValue::Number(number)) if *its == name => Some(*number),
        _ => None,
    })
}

/// The value of a fact for programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FactValue {
    /// A value that is one number.
    Number(u64),
    /// A value that is a list of numbers.
    Numbers(Vec<u64>),
    /// A value that is a word.
    Word(&'static str),
}
