//! The shares of one server, made anew from those of the others: it has lost them, or holds others than it should.
//!
//! No client's directory is needed: how far servers are, and which slots hold something, is public. No block comes out of it either, but in the memory of whoever makes it: it needs the superblock,
//! which says what the tree is.

use oblivio_core::error::join_failures;
use oblivio_core::seal::BlockSealer;
use oblivio_core::{Error, ErrorKind, MasterKey, StoreError, StoreErrorKind};

use super::fetch::{Fetched, fetch};
use super::labels::Labels;
use super::opener::Opener;
use super::params::S3OramParams;
use super::servers::{self, TreeServers};
use super::share_tree::ShareTree;
use super::standing::{Standing, agree, before, claim, claims, furthest_first, sound, steps};
use super::walk::slots;
use super::{impossible, invalid};
use crate::map_trees::Levels;
use crate::message::{HostEpoch, Point, Request, Slots};
use crate::servers::ShareServers;
use crate::sharing::Share;

/// What the others need to be for it.
const OTHERS_ARE_NEEDED: &str = "What a server has to hold follows from the others: bring back as many as may collude and one more";

/// What is said where one of the others is not what it should be.
const NOTHING_WAS_DONE: &str = "Nothing was removed";

/// A server whose shares were made anew. Others are counted from 0, as the servers of a store are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Which others have shares that do not fit.
    pub wrong: Vec<usize>,
    /// Which others are an eviction behind, and have to be made anew, too: the server that was made anew cannot go back to where they are.
    pub behind: Vec<usize>,
}

/// What is known of a server from before its shares are removed: how far it said that it was, in each tree. Where others are then follows from the same as when they were looked at.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    was_at: Vec<Option<Point>>,
}

/// Whether the shares of a server have to be made anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It is where the others are.
    Nothing,
    /// It is behind others, and comes where they are by what the next access does. If it was set back, it does not: the client's directory alone knows.
    LastWrites,
    /// It has to.
    Shares,
}

/// Reads all that the others hold, before anything is removed of a server: whether they are those of the volume, in this order, and whether all that they give back is
/// blocks of it. Of as many servers as may collude and one more that is the only sign of a wrong share. `progress` is told how many buckets are read.
///
/// # Errors
/// When too few of the others are there, one of them is another's, they contradict each other, or what they give back was not written.
pub fn check_others(
    servers: &mut dyn ShareServers,
    params: &S3OramParams,
    key: &MasterKey,
    lost: usize,
    progress: &mut dyn FnMut(u64),
) -> Result<Checked, Error> {
    check_place(servers, params, lost)?;
    let (number, seals, mut done) =
        (lost as u8 + 1, Seals::new(params, key, "Nothing was removed"), 0);
    let mut checked = Checked::default();
    for tree in &params.trees() {
        let servers = &mut TreeServers { servers, tree: tree.number };
        let settled = settle(servers, tree, lost, None)?;
        checked.was_at.push(settled.was_at);
        let (at, sources) = (settled.at, settled.sources(tree, settled.at));
        let keys: Vec<_> = (0..servers.count()).map(|server| servers.key(server)).collect();
        let setups = params.parties.numbers().zip(&sources).map(|(number, is_source)| {
            is_source.then(|| Request::Setup(tree.setup(number, keys.clone())))
        });
        let others = agree(servers, tree.parties, setups.collect())?.into_iter().enumerate();
        let others: Vec<_> =
            others.filter_map(|(server, agreed)| Some((server, agreed?.err()?))).collect();
        if !others.is_empty() {
            return Err(servers::failure(&**servers, others, NOTHING_WAS_DONE));
        }
        let progress = &mut |buckets| progress(done + buckets);
        each_run(servers, tree, (at, &sources), progress, &mut |_, run, fetched| {
            shares_of(fetched, tree, number, run, &seals, &mut Vec::new()).map(drop)
        })?;
        done += tree.buckets();
    }
    Ok(checked)
}

/// What is done with slots that were read.
type EachRun<'e> = dyn FnMut(&mut TreeServers<'_>, Slots, &Fetched) -> Result<(), Error> + 'e;

/// Reads what the sources hold at a point, run by run.
fn each_run(
    servers: &mut TreeServers<'_>,
    tree: &ShareTree,
    (at, sources): (Point, &[bool]),
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
                return Err(servers::failure(&**servers, failed, OTHERS_ARE_NEEDED));
            }
            each(servers, run, &fetched)?;
        }
        progress(done);
    }
    Ok(())
}

/// Makes the shares of the server at this place, which has none, from those of the others, after they were [checked](check_others). An interrupted repair is begun again with a server that has none.
/// `progress` is told how many buckets are done.
///
/// # Errors
/// When too few of the others are there, they contradict each other, what they give back was not written, or the server is not new.
pub fn repair(
    servers: &mut dyn ShareServers,
    params: &S3OramParams,
    key: &MasterKey,
    (lost, checked): (usize, &Checked),
    progress: &mut dyn FnMut(u64),
) -> Result<Repaired, Error> {
    check_place(servers, params, lost)?;
    // Once more: what was read before may have been answered otherwise.
    let seals = Seals::new(
        params,
        key,
        "The one that is made anew is not whole: do it once more, without the other",
    );
    let (number, mut done) = (lost as u8 + 1, 0);
    let Repaired { mut wrong, behind: mut all_behind } = Repaired::default();
    // The data are written last: if some lack a write there, an access is under way, and is done again in all trees.
    let mut last_access = None;
    for (i, tree) in params.trees().iter().enumerate() {
        let servers = &mut TreeServers { servers, tree: tree.number };
        let was_at = checked.was_at.get(i).copied().flatten();
        let settled = settle(servers, tree, lost, was_at)?;
        let keys = (0..servers.count()).map(|server| servers.key(server)).collect();
        tell(servers, lost, Request::Setup(tree.setup(number, keys)))?;
        let at = settled.at;
        let again = *last_access.get_or_insert(settled.least);
        // Only where slots say whose they are does it matter what was there before.
        let is_ahead = again.evictions == at.evictions && again.written < at.written;
        let before = (is_ahead && tree.metadata_bytes > 0).then_some(again);
        for at in before.into_iter().chain([at]) {
            let sources = settled.sources(tree, at);
            let progress = &mut |buckets| progress(done + buckets);
            each_run(servers, tree, (at, &sources), progress, &mut |servers, run, fetched| {
                let share = shares_of(fetched, tree, number, run, &seals, &mut wrong)?;
                let share = Share::Computed(share);
                tell(servers, lost, Request::Put { at, slots: run, share })
            })?;
        }
        all_behind.extend(settled.behind);
        tell(servers, lost, Request::Adopt { at })?;
        done += tree.buckets();
    }
    for named in [&mut wrong, &mut all_behind] {
        named.sort_unstable();
        named.dedup();
    }
    Ok(Repaired { wrong, behind: all_behind })
}

/// Where the server at this place is, beside the others. Its shares are not looked at.
///
/// # Errors
/// When too few of the others are there, or the server is further than all of them: then it may be the only one that has what was written last.
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

/// The same of one of its trees.
fn needs_repair_in(
    servers: &mut TreeServers<'_>,
    tree: &ShareTree,
    server: usize,
) -> Result<Need, Error> {
    let ShareTree { parties, tree, .. } = *tree;
    let told = servers.epochs();
    servers::check_not_fenced(&**servers, &told)?;
    check_can_open(&**servers, &told, server)?;
    let there = claim(tree, &told[server]);
    let others = told.iter().enumerate().filter(|(i, _)| *i != server);
    let others = others.filter_map(|(_, told)| claim(tree, told)).max();
    // A few that say that they are further may lie. But whoever does not answer may be there as well.
    let claims = claims(tree, &told);
    let silent = told.len() - claims.len();
    let far = claims.get(parties.colluding().saturating_sub(silent)).copied();
    let is_behind = there < far;
    if let (Some(there), Some(others)) = (there, others)
        && steps(tree, there) > steps(tree, others) + 1
    {
        let name = servers.name(server);
        let silent = told.iter().enumerate().filter_map(|(i, told)| {
            let error =
                told.as_ref().err().filter(|it| it.kind() == StoreErrorKind::Unreachable)?;
            Some((servers.name(i), error.to_string()))
        });
        let silent = join_failures(silent);
        if !silent.is_empty() {
            let message = format!(
                "{name} says that it is further than all others that answer, and some do not \
                 answer: {silent}. Bring them back, and repeat the repair"
            );
            return Err(StoreError::new(StoreErrorKind::Unreachable, message).into());
        }
        let message = format!(
            "{name} says that it is further than all others: if they were set back, it alone has \
             what was written last. Bring them back as they were. If it lies, it can be made anew \
             all the same"
        );
        return Err(Error::new(ErrorKind::StoreRolledBack, message));
    }
    let Standing { parts, .. } = Standing::of(parties, tree, told, Point::default());
    let catches_up = parts.lags(server) && parts.count() >= parties.for_product();
    Ok(match parts.current()[server] || catches_up {
        false => Need::Shares,
        true if is_behind => Need::LastWrites,
        true => Need::Nothing,
    })
}

/// Refuses to make a server anew that cannot open its files: it may have them all.
fn check_can_open(
    servers: &dyn ShareServers,
    told: &[Result<HostEpoch, StoreError>],
    server: usize,
) -> Result<(), Error> {
    use StoreErrorKind::{Failed, Full, Refused};
    match &told[server] {
        Err(error) if matches!(error.kind(), Failed | Full | Refused) => {
            let message = format!(
                "{}: {error}. Mend that first: its shares may be whole. If they are damaged, it \
                 can be made anew all the same",
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
        return Err(impossible(format!("the volume is for {count} share servers: name all")));
    }
    if server >= count {
        return Err(impossible(format!("there are servers 1 to {count}")));
    }
    Ok(())
}

/// Asks one server, which has to do it.
fn tell(servers: &mut TreeServers<'_>, server: usize, request: Request) -> Result<(), Error> {
    let mut requests: Vec<_> = (0..servers.count()).map(|_| None).collect();
    requests[server] = Some(request);
    let said = servers.ask_some(requests).swap_remove(server);
    match said.map(servers::done) {
        Some(Ok(())) => Ok(()),
        Some(Err(error)) => {
            let advice = "Its shares are not made anew: begin again";
            Err(servers::failure(&**servers, vec![(server, error)], advice))
        }
        None => Err(invalid("the server was not asked")),
    }
}

/// Where a server has to be that is made anew.
struct Settled {
    at: Point,
    /// Where the last of the others are that count: an access under way is done again from there.
    least: Point,
    /// Where others are, as far as they say.
    claims: Vec<Option<Point>>,
    /// Who is an eviction behind, and has to be made anew, too.
    behind: Vec<usize>,
    /// Where it is, or was before its shares were removed, as far as it says.
    was_at: Option<Point>,
}

impl Settled {
    /// Who answers what was held at a point: who is there, or a step further.
    fn sources(&self, tree: &ShareTree, at: Point) -> Vec<bool> {
        let answers = |there: Point| there == at || before(tree.tree, there) == at;
        self.claims.iter().map(|claim| claim.is_some_and(answers)).collect()
    }
}

/// Which point the server has to be at, and where the others are.
///
/// - **After a write** it is the furthest that *t* + 1 of the others claim: one of them does not lie. Whoever lacks that write gets it by the next access. From fewer steps it would lack with them what
///   may have been acknowledged: each of those who have it could be lost one after the other.
/// - **After an eviction** it is that, too, if *t* at most say that they are an eviction behind: they may lie, and nobody goes back for them. They have to be made anew as well.
///   If more are, an honest one is: then the eviction is not over. Others that are through with it keep what was before, and go back when the client begins it anew.
fn settle(
    servers: &mut TreeServers<'_>,
    tree: &ShareTree,
    lost: usize,
    was_at: Option<Point>,
) -> Result<Settled, Error> {
    let parties = tree.parties;
    let told = servers.epochs();
    servers::check_not_fenced(&**servers, &told)?;
    let was_at = was_at.max(claim(tree.tree, &told[lost]));
    let mut failed = Vec::new();
    let mut claims = vec![None; told.len()];
    for (server, told) in told.into_iter().enumerate().filter(|(server, _)| *server != lost) {
        match told.map(|epoch| sound(tree.tree, &epoch)) {
            Ok(Ok(at)) => claims[server] = Some(at),
            Ok(Err(astray)) => failed.extend(astray.why().map(|why| (server, elsewhere(why)))),
            Err(error) => failed.push((server, error)),
        }
    }
    let sorted = furthest_first(claims.iter().flatten().copied());
    let Some(far) = sorted.get(parties.colluding()).copied() else {
        return Err(servers::failure(&**servers, failed, OTHERS_ARE_NEEDED));
    };
    let first = steps(tree.tree, before(tree.tree, far));
    let counts = |at: &Point| (first..=steps(tree.tree, far) + 1).contains(&steps(tree.tree, *at));
    let least = sorted.iter().copied().filter(counts).min().unwrap_or(far);
    let is_behind = |claim: &Option<Point>| {
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
        return Err(lacks_what_others_have(&**servers, lacks_it, lost));
    }
    let is_further = |claim: &Option<Point>| {
        claim.is_some_and(|there| {
            !counts(&there) && there > far || there.evictions > at.evictions && there.written > 0
        })
    };
    if let Some(server) = claims.iter().position(is_further) {
        let message = format!(
            "{} says that it is further than the others: while it does, nobody knows what the lost server had. Bring back others, or repair that one first; if it is wrong, stop it, and begin again",
            servers.name(server)
        );
        return Err(Error::new(ErrorKind::StoreMismatch, message));
    }
    Ok(Settled { at, least, claims, behind, was_at })
}

/// What the lost server says that it has, and others have, may have been acknowledged: without it, and with one that lacks it, nobody would have it any more.
fn lacks_what_others_have(servers: &dyn ShareServers, behind: usize, lost: usize) -> Error {
    let [behind, lost] = [behind, lost].map(|server| servers.name(server));
    let message = format!(
        "{behind} lacks what was written last, and {lost} says that it has it: repair {behind} first. If that is refused because shares of {lost} are wrong, \
         do not open the volume, whose evictions would spread them: remove its folder of this volume, which gives up what was written last"
    );
    Error::new(ErrorKind::StoreMismatch, message)
}

/// What is wrong with a server that is not where it has to be.
pub(super) fn elsewhere(why: String) -> StoreError {
    StoreError::new(StoreErrorKind::Failed, why)
}

/// What tells a slot that was written from one that wrong shares give back.
struct Seals {
    sealer: BlockSealer,
    /// None if slots do not say whose they are.
    of_map: Option<(Levels, Labels)>,
    /// What is so, where one was not.
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
            "what the other servers give back was never written: one of them is damaged, and another one than that which was to be made anew. {}",
            self.then
        );
        Err(Error::new(ErrorKind::Corrupt, message))
    }
}

/// What a server has to hold of these slots, one after the other.
fn shares_of(
    fetched: &Fetched,
    tree: &ShareTree,
    number: u8,
    run: Slots,
    seals: &Seals,
    wrong: &mut Vec<usize>,
) -> Result<Vec<u8>, Error> {
    let contradict = || {
        let message = "shares of the other servers contradict each other, and there are too few to tell which are wrong: nothing is made of them";
        Error::new(ErrorKind::Corrupt, message)
    };
    let mut shares = Vec::with_capacity(run.count * tree.fetched_bytes());
    for place in 0..run.count {
        let decoded = fetched.decoded(tree.parties, place).map_err(|_| contradict())?;
        seals.check(tree, &decoded.block)?;
        let liars = decoded.liars.iter().map(|liar| usize::from(*liar) - 1);
        for liar in liars {
            if !wrong.contains(&liar) {
                wrong.push(liar);
            }
        }
        let share = fetched.share_of(number, tree.parties, place, &decoded.liars);
        shares.extend(share.ok_or_else(contradict)?);
    }
    Ok(shares)
}
