//! S³ORAM for storage that outlives the client: a scheme of [`oblivio_core::durable`], on [share
//! servers](crate::servers::ShareServers).
//!
//! An access selects a block, reseals it and writes it to the root. If the position map is on the
//! client, every access takes two round trips, for a block or a dummy. Every *A*-th access also
//! evicts a path. The client keeps the position and the last write number of each block. The log of
//! a volume records the path of each access and the new leaf of its block before any server sees
//! the access.
//!
//! ```text
//! after n accesses, the servers' point is: n / A evictions, n mod A blocks in the root
//! access:    select ─► check ─► seal ─► write
//! full root: epochs ─► roll back ─► evict
//! ```
//!
//! # Recovery
//! A server cannot roll back to an earlier checkpoint of the client. Instead, a restarted client
//! asks each server for its exact progress: the number of evictions and of writes since. From its
//! log it replays the accesses that enough servers have finished (`server_progress`). This needs no
//! server, because the plan alone determines how an access changes the client's state. The client
//! then repeats the first access that too few servers have finished, with the same path. Servers
//! that already have the write of this access answer as they did before the write (ADR 16 in the
//! repository). So the log must hold a block's new leaf durably before a server sees the access.
//!
//! When a write is repeated, some servers may keep their share from the first attempt, so each
//! attempt must send the same shares. The shares are drawn from a seed derived from the plan's salt
//! and from the sealed block, whose seal is deterministic. The salt ensures that after a rollback
//! of the client no server can tell which accesses of its two histories are equal.
//!
//! # Dishonest servers
//! A slot holds zeros or a block [sealed](oblivio_core::seal::BlockSealer) with its address and
//! write number. Every access, for a block or a dummy, checks the recovered slot in the same steps,
//! so a failure reveals nothing about its purpose. *t* lying servers are detected. With more than
//! 2*t* + 1 servers, wrong answers are attributed to their servers, and corrected if they are few
//! ([`answers`](crate::answers)). A server that deals wrong shares in an eviction damages blocks,
//! which is detected when they are read.
//!
//! # The position map in trees
//! Positions have two sources (`client_state::Positions`). A client without memory for the position
//! map keeps it in smaller trees on the same servers ([`map_trees`](crate::map_trees), ADR 17).
//!
//! ```text
//! for each tree, from the last of the map to the data
//!   metadata of the path named by the previous tree ─► find ─► select ─► check ─► seal ─► write
//! and if the roots are full, for each tree:  epochs ─► roll back ─► metadata of two paths ─► evict
//! ```
//!
//! The client keeps the leaf and the last write number of each block of the last tree. It also
//! keeps which data blocks have contents. Map blocks hold the rest. Each block is sealed with its
//! address, its tree and its write number. So an entry is as authentic and fresh as its map block,
//! which is verified with its own entry in the tree accessed before.
//!
//! A plan holds the random choices for each tree: the block's new leaf, and the leaf to show if the
//! block has no position. The log holds no contents of map blocks. An access is complete once all
//! servers have it in all trees. Until then the client repeats it, from the last map tree down to
//! the lowest-numbered tree in which a server lacks it. That tree is the data tree (number 0),
//! because the data tree is written last, unless a disk lied about a sync. Servers that already
//! have the repeated write answer as they did before it, so a repeated access sends and receives
//! the same messages. Queries must repeat their shares as well, because servers add these shares to
//! the marks of taken blocks. The shares of a query are drawn from a seed derived from the plan's
//! salt and from the query. If a server lies the second time, so that the client selects another
//! slot, no share equals a share of the first query.
//!
//! All trees have the same number of accesses, and are evicted after the same access, once all of
//! them have it. With map trees an access needs all servers, because a missing server would not
//! receive the marks.
//!
//! | module | contents |
//! |---|---|
//! | `params` | the parameters of an array |
//! | `config` | costs, creation and restoration |
//! | `share_tree` | one tree of an array |
//! | `client_state` | the client's state, and how accesses change it |
//! | `client_map` | the position map on the client |
//! | `tree_map` | the position map in trees |
//! | `labels` | secret labels of blocks in slots |
//! | `opener` | opening slots with metadata |
//! | `load` | loading the initial contents |
//! | `sections` | head and map sections of a state |
//! | `state` | encoding of states and plans |
//! | `servers` | requests to all servers, and errors about failed ones |
//! | `server_progress` | the servers' progress, and which servers are astray |
//! | `participants` | which servers participate, and why others do not |
//! | `fetch` | fetching shares of slots |
//! | `setup` | setting up servers, and asking for their progress |
//! | `access` | one access |
//! | `coins` | the randomness of shares |
//! | `catch_up` | sending missed blocks to servers that return |
//! | `evict` | an eviction, until all servers have finished it |
//! | `suspicion` | which servers may have damaged a block |
//! | `trust` | which servers deal in evictions |
//! | `walk` | checking all slots on all servers |
//! | `salvage` | reading the remaining data of a damaged volume |
//! | `quorum_point` | the last point that enough servers have, for a salvage |
//! | `salvage_reader` | reading a tree with damaged or missing shares |
//! | `repair` | rebuilding the shares of one server from the others |
//! | `array` | the array as volumes use it |

mod access;
mod array;
mod catch_up;
mod client_map;
mod client_state;
mod coins;
mod config;
mod evict;
mod fetch;
mod labels;
mod load;
mod opener;
mod params;
mod participants;
mod quorum_point;
mod repair;
mod salvage;
mod salvage_reader;
mod sections;
mod server_progress;
mod servers;
mod setup;
mod share_tree;
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

/// The scheme S³ORAM on share servers.
pub struct DurableS3Oram;

const NAME: &str = "s3oram";

/// The default number of servers of an array.
const SERVERS: u8 = 3;

impl DurableScheme for DurableS3Oram {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "S3ORAM on three or more share servers that compute: little traffic, and no server sees a \
         block"
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
        if let Some((_, setting)) = refused.iter().find(|(is_given, _)| *is_given) {
            return Err(impossible(format!(
                "the scheme `{NAME}` has no {setting}: omit the setting, or choose another scheme"
            )));
        }
        let slots = match requirements.slots {
            None => Preset::LARGE.slots,
            Some(Slots::Same(slots)) => slots,
            Some(Slots::PerLevel(_)) => {
                return Err(impossible(format!(
                    "the scheme `{NAME}` has the same number of slots on every level: give one \
                     number"
                )));
            }
        };
        let accesses = requirements.evict_period.unwrap_or(Preset::LARGE.accesses.into());
        let accesses = u16::try_from(accesses)
            .map_err(|_| impossible("the eviction period is at most 4096 accesses"))?;
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

/// If the position map does not fit on the client, moves it into smaller trees on the servers.
///
/// # Errors
/// `InvalidConfig` if even the smallest part of the map that a client must keep does not fit, or if
/// the map cannot be in trees.
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
    // Begin with the most entries, because each extra tree makes accesses slower.
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
    // If map trees are impossible, for example because some servers may be missing, return the
    // reason.
    if least.client_bytes() == whole {
        in_trees(1)?;
    }
    Err(impossible(format!(
        "such a volume takes at least {} bytes of client memory: {} for a block and the matrices \
         of an eviction, and {} for the position map: allow more client memory, or choose fewer \
         slots per bucket or a smaller disk",
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
