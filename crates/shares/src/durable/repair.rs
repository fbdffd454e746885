//! Rebuilds the shares of one server from the other servers, if its shares are lost or wrong.
//!
//! This needs no client's directory: the servers' progress, and which slots are in use, are public.
//! The superblock is needed for the shape of the tree. Blocks are recovered only in the memory of
//! the repairing client.

use oblivio_core::error::join_failures;
use oblivio_core::seal::BlockSealer;
use oblivio_core::{Error, ErrorKind, MasterKey, StoreError, StoreErrorKind};

use super::fetch::{Fetched, fetch};
use super::labels::Labels;
use super::opener::Opener;
use super::params::S3OramParams;
use super::server_progress::{
    ServerProgress, before, check_epoch, claim, claims, furthest_first, send_setups, steps,
};
use super::servers::{self, TreeServers};
use super::share_tree::ShareTree;
use super::walk::slots;
use super::{impossible, invalid};
use crate::map_trees::Levels;
use crate::message::{HostEpoch, Request, Slots, TreePoint};
use crate::servers::ShareServers;
use crate::sharing::Share;

/// The advice if too few of the other servers answer for a repair.
const OTHERS_ARE_NEEDED: &str = "Shares are rebuilt from the other servers: bring back at least \
                                 one more of them than may collude";

/// The end of an error message if the check before a repair fails.
const NOTHING_WAS_DONE: &str = "Nothing was removed";

/// The result of a repair. Servers are counted from 0, as in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// The other servers that gave wrong shares.
    pub wrong: Vec<usize>,
    /// The other servers that are one eviction behind. They must be rebuilt too, because the
    /// repaired server cannot roll back to their point.
    pub behind: Vec<usize>,
}

/// The progress that the server to be rebuilt reported in each tree before its shares were removed.
/// From it, the repair determines the same point as the check did.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    was_at: Vec<Option<TreePoint>>,
}

/// What a server needs to catch up with the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The server needs nothing: it is up to date with the others.
    Nothing,
    /// The server lacks only the last writes, and the next access sends them. But if the server was
    /// rolled back, it needs a repair; only the client's directory can tell.
    LastWrites,
    /// The shares of the server must be rebuilt.
    Shares,
}

/// Reads all shares of the other servers before anything is removed. Checks that these servers
/// belong to the volume, in this order, and that their shares recover blocks of the volume. If only
/// *t* + 1 other servers answer, this is the only way to detect a wrong share. `progress` is called
/// with the number of buckets read so far.
///
/// # Errors
/// If too few other servers answer, one belongs to another volume, or one must be repaired first.
/// Also if their shares contradict each other or recover data that the client never wrote.
pub fn check_others(
    servers: &mut dyn ShareServers,
    params: &S3OramParams,
    key: &MasterKey,
    repaired: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Checked, Error> {
    check_place(servers, params, repaired)?;
    let (number, seals, mut done) =
        (repaired as u8 + 1, Seals::new(params, key, "Nothing was removed"), 0);
    let mut checked = Checked::default();
    for tree in &params.trees() {
        let servers = &mut TreeServers { servers, tree: tree.number };
        let point = find_repair_point(servers, tree, repaired, None)?;
        checked.was_at.push(point.was_at);
        let (at, sources) = (point.at, point.source_servers(tree, point.at));
        let keys: Vec<_> = (0..servers.count()).map(|server| servers.key(server)).collect();
        let setups = params.parties.numbers().zip(&sources).map(|(number, is_source)| {
            is_source.then(|| Request::Setup(tree.setup(number, keys.clone())))
        });
        let others = send_setups(servers, tree.parties, setups.collect())?.into_iter().enumerate();
        let others: Vec<_> =
            others.filter_map(|(server, agreed)| Some((server, agreed?.err()?))).collect();
        if !others.is_empty() {
            return Err(servers::failure_error(&**servers, others, NOTHING_WAS_DONE));
        }
        let progress = &mut |buckets| progress(done + buckets);
        each_run(servers, tree, (at, &sources), progress, &mut |_, run, fetched| {
            shares_of(fetched, tree, number, run, &seals, &mut Vec::new()).map(drop)
        })?;
        done += tree.buckets();
    }
    Ok(checked)
}

/// A callback that receives each run of slots, with the shares of the slots.
type EachRun<'e> = dyn FnMut(&mut TreeServers<'_>, Slots, &Fetched) -> Result<(), Error> + 'e;

/// Reads all slots from the servers that have the data of a point, one run after the other.
fn each_run(
    servers: &mut TreeServers<'_>,
    tree: &ShareTree,
    (at, sources): (TreePoint, &[bool]),
    progress: &mut dyn FnMut(u64),
    each: &mut EachRun<'_>,
) -> Result<(), Error> {
    let slot_bytes = tree.fetched_bytes();
    let at_once = Slots::at_once(slot_bytes);
    for (done, bucket) in (1..).zip(tree.tree.buckets()) {
        for run in Slots::runs(bucket, slots(tree.tree, at, bucket), at_once) {
            let mut fetched = fetch(servers, sources, at, run, slot_bytes);
            let failed = std::mem::take(&mut fetched.failed);
            if !failed.is_empty() {
                return Err(servers::failure_error(&**servers, failed, OTHERS_ARE_NEEDED));
            }
            each(servers, run, &fetched)?;
        }
        progress(done);
    }
    Ok(())
}

/// Rebuilds the shares of a server that has none, from the other servers, after they were
/// [checked](check_others). After an interruption, begin again with an empty server. `progress` is
/// called with the number of buckets rebuilt so far.
///
/// # Errors
/// If too few other servers answer, one must be repaired first, or the server is not new. Also if
/// shares contradict each other or recover data that the client never wrote.
pub fn repair(
    servers: &mut dyn ShareServers,
    params: &S3OramParams,
    key: &MasterKey,
    (repaired, checked): (usize, &Checked),
    progress: &mut dyn FnMut(u64),
) -> Result<Repaired, Error> {
    check_place(servers, params, repaired)?;
    // Check again: servers may answer differently than before.
    let seals = Seals::new(
        params,
        key,
        "The rebuilt server is incomplete: repeat the repair without the damaged server",
    );
    let (number, mut done) = (repaired as u8 + 1, 0);
    let Repaired { mut wrong, behind: mut all_behind } = Repaired::default();
    // The data is written last. If servers lack a write of the data tree, an access is in progress,
    // and will be repeated in all trees.
    let mut last_access = None;
    for (i, tree) in params.trees().iter().enumerate() {
        let servers = &mut TreeServers { servers, tree: tree.number };
        let was_at = checked.was_at.get(i).copied().flatten();
        let point = find_repair_point(servers, tree, repaired, was_at)?;
        let keys = (0..servers.count()).map(|server| servers.key(server)).collect();
        send_to(servers, repaired, Request::Setup(tree.setup(number, keys)))?;
        let at = point.at;
        let again = *last_access.get_or_insert(point.least);
        // The marks before that access matter, but only if slots have metadata.
        let is_ahead = again.evictions == at.evictions && again.written < at.written;
        let before = (is_ahead && tree.metadata_bytes > 0).then_some(again);
        for at in before.into_iter().chain([at]) {
            let sources = point.source_servers(tree, at);
            let progress = &mut |buckets| progress(done + buckets);
            each_run(servers, tree, (at, &sources), progress, &mut |servers, run, fetched| {
                let share = shares_of(fetched, tree, number, run, &seals, &mut wrong)?;
                let share = Share::Computed(share);
                send_to(servers, repaired, Request::Put { at, slots: run, share })
            })?;
        }
        all_behind.extend(point.behind);
        send_to(servers, repaired, Request::SetPoint { at })?;
        done += tree.buckets();
    }
    for named in [&mut wrong, &mut all_behind] {
        named.sort_unstable();
        named.dedup();
    }
    Ok(Repaired { wrong, behind: all_behind })
}

/// Compares the progress of a server with the others. Does not check its shares.
///
/// # Errors
/// If the server cannot open its files, because its shares may be intact. Also if it is more than
/// one step ahead of all other servers that answer: then it may be the only server with the last
/// writes. Also if another client has taken the volume over.
pub fn needs_repair(
    servers: &mut dyn ShareServers,
    params: &S3OramParams,
    server: usize,
) -> Result<Need, Error> {
    check_place(servers, params, server)?;
    let mut all = Need::Nothing;
    for tree in &params.trees() {
        match needs_repair_in(&mut TreeServers { servers, tree: tree.number }, tree, server)? {
            Need::Shares => return Ok(Need::Shares),
            Need::LastWrites => all = Need::LastWrites,
            Need::Nothing => (),
        }
    }
    Ok(all)
}

/// Compares the server's progress with that of the others as [`needs_repair`] does, for one tree.
fn needs_repair_in(
    servers: &mut TreeServers<'_>,
    tree: &ShareTree,
    server: usize,
) -> Result<Need, Error> {
    let ShareTree { parties, tree, .. } = *tree;
    let reported = servers.epochs();
    servers::check_not_fenced(&**servers, &reported)?;
    check_can_open(&**servers, &reported, server)?;
    let there = claim(tree, &reported[server]);
    let others = reported.iter().enumerate().filter(|(i, _)| *i != server);
    let others = others.filter_map(|(_, reported)| claim(tree, reported)).max();
    // Up to *t* servers that claim to be ahead may lie. But silent servers may be ahead as well.
    let claims = claims(tree, &reported);
    let silent = reported.len() - claims.len();
    let far = claims.get(parties.colluding().saturating_sub(silent)).copied();
    let is_behind = there < far;
    if let (Some(there), Some(others)) = (there, others)
        && steps(tree, there) > steps(tree, others) + 1
    {
        let name = servers.name(server);
        let silent = reported.iter().enumerate().filter_map(|(i, reported)| {
            let error =
                reported.as_ref().err().filter(|it| it.kind() == StoreErrorKind::Unreachable)?;
            Some((servers.name(i), error.to_string()))
        });
        let silent = join_failures(silent);
        if !silent.is_empty() {
            let message = format!(
                "{name} claims to be ahead of all other servers that answer, and some do not \
                 answer: {silent}. Bring them back, and repeat the repair"
            );
            return Err(StoreError::new(StoreErrorKind::Unreachable, message).into());
        }
        let message = format!(
            "{name} claims to be ahead of all other servers: if they were rolled back, only it has \
             the last writes. Restore the others to their latest state. If {name} lies, \
             it can be rebuilt anyway"
        );
        return Err(Error::new(ErrorKind::StoreRolledBack, message));
    }
    let ServerProgress { participants, .. } =
        ServerProgress::from_claims(parties, tree, reported, TreePoint::default());
    let catches_up =
        participants.is_lagging(server) && participants.count() >= parties.for_product();
    Ok(match participants.current()[server] || catches_up {
        false => Need::Shares,
        true if is_behind => Need::LastWrites,
        true => Need::Nothing,
    })
}

/// Refuses to rebuild a server that cannot open its files: its shares may be intact.
fn check_can_open(
    servers: &dyn ShareServers,
    reported: &[Result<HostEpoch, StoreError>],
    server: usize,
) -> Result<(), Error> {
    use StoreErrorKind::{Failed, Full, Refused};
    match &reported[server] {
        Err(error) if matches!(error.kind(), Failed | Full | Refused) => {
            let message = format!(
                "{}: {error}. Fix that first: its shares may be intact. If they are damaged, \
                 it can be rebuilt anyway",
                servers.name(server)
            );
            Err(StoreError::new(error.kind(), message).into())
        }
        _ => Ok(()),
    }
}

fn check_place(
    servers: &dyn ShareServers,
    params: &S3OramParams,
    server: usize,
) -> Result<(), Error> {
    let count = params.parties.servers();
    if servers.count() != count {
        return Err(impossible(format!("the volume has {count} share servers: name all of them")));
    }
    if server >= count {
        return Err(impossible(format!("the volume has only servers 1 to {count}")));
    }
    Ok(())
}

/// Sends a request to one server. Any answer but `Done` is an error.
fn send_to(servers: &mut TreeServers<'_>, server: usize, request: Request) -> Result<(), Error> {
    let mut requests: Vec<_> = (0..servers.count()).map(|_| None).collect();
    requests[server] = Some(request);
    let result = servers.ask_some(requests).swap_remove(server);
    match result.map(servers::expect_done) {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => {
            let advice = "Its shares are not rebuilt: start the repair again";
            Err(servers::failure_error(&**servers, vec![(server, error)], advice))
        }
        None => Err(invalid("the server was not asked")),
    }
}

/// The point that a repair gives the rebuilt server, and the progress of the other servers.
struct RepairPoint {
    at: TreePoint,
    /// The earliest of the other servers' plausible points. An access in progress is repeated from
    /// there.
    least: TreePoint,
    /// For each server except the one to rebuild, the point that it claims.
    claims: Vec<Option<TreePoint>>,
    /// The other servers that are one eviction behind, and must be rebuilt as well.
    behind: Vec<usize>,
    /// The point that the server to be rebuilt claims, or claimed before its shares were removed.
    was_at: Option<TreePoint>,
}

impl RepairPoint {
    /// For each server, whether it has the data of point `at`: it is at that point, or one step
    /// ahead.
    fn source_servers(&self, tree: &ShareTree, at: TreePoint) -> Vec<bool> {
        let answers = |there: TreePoint| there == at || before(tree.tree, there) == at;
        self.claims.iter().map(|claim| claim.is_some_and(answers)).collect()
    }
}

/// Determines the point for the rebuilt server, and the progress of the others.
///
/// - **After a write** the point is the furthest that *t* + 1 of the others claim: one of them is
///   honest. The next access sends the write to servers that lack it. An earlier point would be
///   unsafe: the write may have been acknowledged, and the servers that have it could be lost one
///   after the other.
/// - **After an eviction** the point is chosen in the same way in two cases: if at most *t* servers
///   claim to be one eviction behind (they may lie, and no server rolls back for them), or if the
///   server to rebuild had finished the eviction. The servers that are behind must then be rebuilt
///   as well. Otherwise more than *t* servers are behind, so one of them is honest, and the
///   eviction is not over. Servers that finished it keep the state before it, and roll back when
///   the client repeats the eviction.
fn find_repair_point(
    servers: &mut TreeServers<'_>,
    tree: &ShareTree,
    repaired: usize,
    was_at: Option<TreePoint>,
) -> Result<RepairPoint, Error> {
    let parties = tree.parties;
    let reported = servers.epochs();
    servers::check_not_fenced(&**servers, &reported)?;
    let was_at = was_at.max(claim(tree.tree, &reported[repaired]));
    let mut failed = Vec::new();
    let mut claims = vec![None; reported.len()];
    for (server, reported) in
        reported.into_iter().enumerate().filter(|(server, _)| *server != repaired)
    {
        match reported.map(|epoch| check_epoch(tree.tree, &epoch)) {
            Ok(Ok(at)) => claims[server] = Some(at),
            Ok(Err(astray)) => failed.extend(astray.why().map(|why| (server, astray_error(why)))),
            Err(error) => failed.push((server, error)),
        }
    }
    let sorted = furthest_first(claims.iter().flatten().copied());
    let Some(far) = sorted.get(parties.colluding()).copied() else {
        return Err(servers::failure_error(&**servers, failed, OTHERS_ARE_NEEDED));
    };
    let first = steps(tree.tree, before(tree.tree, far));
    let counts =
        |at: &TreePoint| (first..=steps(tree.tree, far) + 1).contains(&steps(tree.tree, *at));
    let least = sorted.iter().copied().filter(counts).min().unwrap_or(far);
    let is_behind = |claim: &Option<TreePoint>| {
        claim.is_some_and(|there| counts(&there) && there.evictions < far.evictions)
    };
    let mut behind: Vec<_> = (0..claims.len()).filter(|i| is_behind(&claims[*i])).collect();
    let is_over = behind.len() <= parties.colluding() || was_at >= Some(far);
    let at = if is_over { far } else { least };
    if !is_over {
        behind.clear();
    }
    let are_further = sorted.iter().filter(|claim| **claim > at).count();
    let lacks_it = claims.iter().position(|claim| claim.is_some_and(|there| there <= at));
    if was_at > Some(at)
        && are_further + 1 > parties.colluding()
        && let Some(lacks_it) = lacks_it
    {
        return Err(lacks_what_others_have(&**servers, lacks_it, repaired));
    }
    let is_further = |claim: &Option<TreePoint>| {
        claim.is_some_and(|there| {
            !counts(&there) && there > far || there.evictions > at.evictions && there.written > 0
        })
    };
    if let Some(server) = claims.iter().position(is_further) {
        let message = format!(
            "{} claims to be ahead of the others, so the state of the lost server is unknown. \
             Bring back other servers, or repair that server first; if it is wrong, stop it and \
             start the repair again",
            servers.name(server)
        );
        return Err(Error::new(ErrorKind::StoreMismatch, message));
    }
    Ok(RepairPoint { at, least, claims, behind, was_at })
}

/// The error if server `behind` lacks a write that `repaired` and at least *t* other servers claim
/// to have. The write may have been acknowledged. The other servers may lie, so a repair of
/// `repaired` could remove its last copy.
fn lacks_what_others_have(servers: &dyn ShareServers, behind: usize, repaired: usize) -> Error {
    let [behind, repaired] = [behind, repaired].map(|server| servers.name(server));
    let message = format!(
        "{behind} lacks the last writes, and {repaired} claims to have them: repair {behind} \
         first. If that repair is refused because shares of {repaired} are wrong, do not open the \
         volume, because an eviction would spread them: remove the volume's folder on {repaired}, \
         which gives up the last writes"
    );
    Error::new(ErrorKind::StoreMismatch, message)
}

/// The error for a server that is astray.
pub(super) fn astray_error(why: String) -> StoreError {
    StoreError::new(StoreErrorKind::Failed, why)
}

/// Checks that a recovered slot was written by a client. Wrong shares would recover other data.
struct Seals {
    sealer: BlockSealer,
    /// The levels and labels for opening slots with metadata; `None` if slots have no metadata.
    of_map: Option<(Levels, Labels)>,
    /// The end of the error message, which tells the user in which state the repair is.
    then: &'static str,
}

impl Seals {
    fn new(params: &S3OramParams, key: &MasterKey, then: &'static str) -> Self {
        let sealer = BlockSealer::new(key);
        let of_map =
            params.levels().map(|levels| (levels.clone(), Labels::new(&sealer, Some(levels))));
        Self { sealer, of_map, then }
    }

    fn check(&self, tree: &ShareTree, slot: &[u8]) -> Result<(), Error> {
        let was_written = match &self.of_map {
            Some((levels, labels)) => {
                let opener = Opener { levels, sealer: &self.sealer, labels };
                opener.was_written(tree.number.into(), slot)
            }
            None => slot.iter().all(|byte| *byte == 0) || self.sealer.open(slot).is_some(),
        };
        if was_written {
            return Ok(());
        }
        let message = format!(
            "the shares of the other servers recover data that was never written: a server other \
             than the one to be repaired is damaged. {}",
            self.then
        );
        Err(Error::new(ErrorKind::Corrupt, message))
    }
}

/// Computes a server's shares of the slots in `run`, one after the other.
fn shares_of(
    fetched: &Fetched,
    tree: &ShareTree,
    number: u8,
    run: Slots,
    seals: &Seals,
    wrong: &mut Vec<usize>,
) -> Result<Vec<u8>, Error> {
    let contradict = || {
        let message = "shares of the other servers contradict each other, and too few servers \
                       answer to tell which are wrong: no share was rebuilt from them";
        Error::new(ErrorKind::Corrupt, message)
    };
    let mut shares = Vec::with_capacity(run.count * tree.fetched_bytes());
    for place in 0..run.count {
        let decoded = fetched.decoded(tree.parties, place).map_err(|_| contradict())?;
        seals.check(tree, &decoded.block)?;
        let liars = decoded.wrong_servers.iter().map(|liar| usize::from(*liar) - 1);
        for liar in liars {
            if !wrong.contains(&liar) {
                wrong.push(liar);
            }
        }
        let share = fetched.share_of(number, tree.parties, place, &decoded.wrong_servers);
        shares.extend(share.ok_or_else(contradict)?);
    }
    Ok(shares)
}
