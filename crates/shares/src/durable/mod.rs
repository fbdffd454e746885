//! S³ORAM for storage that outlives the client: a scheme of [`oblivio_core::durable`], on
//! [servers](crate::servers::ShareServers).
//!
//! An access selects a block, seals it anew and writes it to the root: two trips, whatever it is
//! for. After *A* of them a path is evicted, as part of the last. The client keeps where each block
//! is and which write was its last; the log of a volume keeps, before any server sees an access,
//! which path it shows and to which the block goes.
//!
//! ```text
//! count of accesses  n      what servers are asked at     n / A evictions, n mod A blocks in the root
//!            select ─► check ─► seal ─► write     and if the root is full:  epochs ─► go back ─► evict
//! ```
//!
//! # Going back
//! Servers keep no state to which a client could go back: they know how far they are, to the write,
//! and a client that comes back asks them. All accesses of its log that enough servers are through
//! with (`standing`) are done on the client alone, because what they change there follows from the
//! plan. The first that is not is done again, with the same path: servers that are ahead by its
//! write take it as if they were not (ADR 16 of the repository). So moves have to be durable before
//! a server sees them.
//!
//! When a write is repeated, some servers may keep their share of the first attempt, so each attempt
//! must send the same shares. They are drawn from a seed that follows from the sealed block, whose
//! seal is deterministic, and from the salt of the plan. So if a client was rolled back, no server
//! sees which accesses of its two histories are equal.
//!
//! # What servers cannot do
//! A slot holds a block that is [sealed](oblivio_core::seal::BlockSealer) with its address and the
//! number of its write, or nothing but zeros. Each access checks that what it has recovered is the
//! one or the other, whatever it is for: so whether it fails does not depend on that. *t* servers
//! that lie are noticed; with more than 2*t* + 1 servers those that answer wrong are named, and
//! corrected as far as they are few ([`answers`](crate::answers)). A server that deals wrong in an
//! eviction spoils blocks, which is noticed when they are read.
//!
//! # The position map in trees
//! Positions have two sources (`known::Positions`). A client without memory for the map has it in
//! smaller trees on the same servers ([`map_trees`](crate::map_trees), ADR 17).
//!
//! ```text
//! for each tree, from the last of the map to the data
//!   metadata of the path that the tree before has told ─► find ─► select ─► check ─► seal ─► write
//! and if the roots are full, for each tree:  epochs ─► go back ─► metadata of two paths ─► evict
//! ```
//!
//! For each block of the last tree, the client keeps its leaf and the number of its last write. For
//! each block of the data, it keeps whether the block has contents. Blocks of the map hold the rest.
//! Each block is sealed with its address, its tree and the number of its write, so an entry is as
//! authentic and fresh as its block, which the entry in the next tree verifies.
//!
//! A plan says what was drawn for each tree: the leaf that the block goes to, and the leaf that is
//! shown if the block is nowhere. No log holds what a block of the map says. An access counts once
//! all servers have it in all trees. Until then it is made again from its beginning to the first
//! tree that lacks it. That is the data, which are written last, unless a disk has lied about a
//! sync. Servers that are a write further answer as if they were not, so their answers and what
//! they are sent are the same. Queries have the same shares each time as well, because servers add
//! them to the marks of what was taken. They follow from the salt of the plan and from the query:
//! if a server lies the second time, and the client asks for another slot, no share equals one that
//! the first query had.
//!
//! All trees count accesses alike, and are evicted after the same access, when all of them have it.
//! An access needs all servers then: one that was missing would lack marks.
//!
//! | module | what it holds |
//! |---|---|
//! | `params` | what shapes an array |
//! | `config` | what it costs, and how it is made |
//! | `share_tree` | one of the trees of an array |
//! | `known` | what the client knows, and what an access changes of it |
//! | `client_map` | positions, if the client keeps all of them |
//! | `tree_map` | positions, if they are in trees |
//! | `labels` | what slots say in place of addresses |
//! | `opener` | slots that say which block they hold, opened |
//! | `load` | what an array holds from its beginning |
//! | `sections` | a head and a map, as sections of a state |
//! | `state` | states and plans as bytes |
//! | `servers` | asking all servers, and what is said of one that fails |
//! | `standing` | how far servers are, and which of them are not where they have to be |
//! | `parts` | which servers take part, and why others do not |
//! | `fetch` | shares of slots, as servers hold them |
//! | `look` | how far servers are, and what they are told to be |
//! | `access` | one access |
//! | `coins` | what shares are drawn from |
//! | `catch_up` | what servers lack that were missing |
//! | `evict` | an eviction, until all servers are through with it |
//! | `suspicion` | who may have spoilt what shares give back |
//! | `trust` | which servers deal in evictions: none that has answered wrong |
//! | `walk` | all slots of all servers, checked |
//! | `salvage` | what is left of the data |
//! | `agreed` | the last point that enough servers have: what is left is read there |
//! | `left` | what is left of a tree whose shares may be damaged, or missing |
//! | `repair` | the shares of one server, made anew from those of the others |
//! | `array` | the array as volumes use it |

mod access;
mod agreed;
mod array;
mod catch_up;
mod client_map;
mod coins;
mod config;
mod evict;
mod fetch;
mod known;
mod labels;
mod left;
mod load;
mod look;
mod opener;
mod params;
mod parts;
mod repair;
mod salvage;
mod sections;
mod servers;
mod share_tree;
mod standing;
mod state;
mod suspicion;
mod tree_map;
mod trust;
mod walk;

pub use params::S3OramParams;
pub use repair::{Checked, Need, Repaired, check_others, needs_repair, repair};

use oblivio_core::durable::{ArrayRequirements, DurableConfig, DurableScheme, Slots};
use oblivio_core::{Error, ErrorKind};

use crate::map_trees::MapShape;
use crate::sharing::Parties;
use crate::tree::Preset;

/// S³ORAM on share servers.
pub struct DurableS3Oram;

const NAME: &str = "s3oram";

/// Servers, unless others are asked for.
const SERVERS: u8 = 3;

impl DurableScheme for DurableS3Oram {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "S3ORAM on three or more share servers that compute: little goes over the link, and no server sees a block"
    }

    fn needs_servers(&self) -> bool {
        true
    }

    fn plan(&self, requirements: &ArrayRequirements) -> Result<Box<dyn DurableConfig>, Error> {
        let refused = [
            (requirements.stash_blocks_max.is_some(), "bound on the stash (C)"),
            (requirements.tree_top_bytes_max.is_some(), "tree top"),
            (requirements.tree_top_ways.is_some(), "ways of a tree top"),
            (requirements.range_bytes.is_some() || requirements.range_policy.is_some(), "ranges"),
        ];
        if let Some((_, said)) = refused.iter().find(|(is_said, _)| *is_said) {
            return Err(impossible(format!(
                "the scheme `{NAME}` has no {said}: leave it out, or choose another scheme"
            )));
        }
        let slots = match requirements.slots {
            None => Preset::LARGE.slots,
            Some(Slots::Same(slots)) => slots,
            Some(Slots::PerLevel(_)) => {
                return Err(impossible(format!(
                    "the scheme `{NAME}` has as many slots on every level: give one number"
                )));
            }
        };
        let accesses = requirements.evict_period.unwrap_or(Preset::LARGE.accesses.into());
        let accesses = u16::try_from(accesses)
            .map_err(|_| impossible("an eviction comes after 4096 accesses at the latest"))?;
        let servers = requirements.servers.unwrap_or(SERVERS);
        let colluding = requirements.colluding.unwrap_or(servers.saturating_sub(1) / 2);
        let parties = Parties::new(servers, colluding).map_err(|it| impossible(it.to_string()))?;
        let preset = Preset { slots, accesses };
        let params =
            S3OramParams::new(requirements.blocks(), requirements.block_bytes, parties, preset)?;
        Ok(Box::new(fit(params, requirements.client_bytes_max)?))
    }

    fn decode(
        &self,
        blocks: u64,
        block_bytes: u32,
        params: &[u8],
    ) -> Result<Box<dyn DurableConfig>, Error> {
        Ok(Box::new(S3OramParams::decode(blocks, block_bytes, params)?))
    }
}

/// With the position map in smaller trees, if it does not fit on the client.
fn fit(params: S3OramParams, client_bytes_max: u64) -> Result<S3OramParams, Error> {
    let mut least = params.cost()?;
    let whole = least.client_bytes();
    if whole <= client_bytes_max {
        return Ok(params);
    }
    let in_trees = |client_entries_max| {
        let shape = MapShape { client_entries_max, ..MapShape::default() };
        params.clone().with_map_in_trees(shape)
    };
    let most = MapShape::default().client_entries_max;
    // Half as many, as long as it is too much: one tree more takes time.
    for entries in std::iter::successors(Some(most), |it| Some(it / 2)).take_while(|it| *it > 0) {
        let Ok(params) = in_trees(entries) else { continue };
        let cost = params.cost()?;
        if cost.client_bytes() <= client_bytes_max {
            return Ok(params);
        }
        if cost.client_bytes() < least.client_bytes() {
            least = cost;
        }
    }
    // Servers of which some may be missing have no such trees, and say so.
    if least.client_bytes() == whole {
        in_trees(1)?;
    }
    Err(impossible(format!(
        "such a volume takes {} bytes of client memory at least, {} of them for the matrices of an eviction with a block, whatever its position map takes, and {} for that: allow as many, or choose fewer slots a bucket or a smaller disk",
        least.client_bytes(),
        least.blocks_on_client_bytes,
        least.position_map_bytes
    )))
}

fn impossible(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, problem)
}

fn invalid(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidRequest, problem)
}
