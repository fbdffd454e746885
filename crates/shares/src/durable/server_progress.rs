//! The progress of the servers, and which of them are astray.
//!
//! A server is astray if its progress is invalid, or contradicts the client's state or the other
//! servers.
//!
//! # Conclusions from the servers' claims
//! An access is over once 2*t* + 1 servers have confirmed its block. *t* of them may lie, so *t* +
//! 1 honest ones have it. The next access begins only after that. Let *W* be the point after the
//! last such access. At least *t* + 1 honest servers are at *W*, and no honest server is more than
//! one step ahead. The other servers may lack any blocks that were written since the last eviction.
//! They do not lack the eviction, which needs all servers.
//!
//! Let *far* be the furthest point that *t* + 1 servers claim to have reached. One of them is
//! honest, so the step that led to *far* happened. If 2*t* + 1 claim it, *t* + 1 honest servers
//! have the block and can recover it: the access is *done*. Otherwise only the steps before it are
//! done. The step to *far* is repeated with the same shares, which changes nothing on servers that
//! already have it.
//!
//! - **Only finished accesses count as done**: of 2*t* + 1 claims, *t* + 1 are honest.
//! - **An eviction is done if all servers claim it**, or if *t* + 1 claim a later write: the client
//!   writes only after all servers have finished the eviction. An eviction is also done if the
//!   client's directory has recorded it.
//! - **A server that claims to be further ahead** is excluded and named. There are at most *t* of
//!   them.
//! - **The client's directory is old if *t* + 1 servers are ahead of it.** A missing server counts
//!   as ahead if another one is. So if *t* + 1 honest servers are ahead of the directory and one of
//!   them answers, the directory is not accepted as the latest.

use oblivio_core::{Error, ErrorKind, StoreError, StoreErrorKind};

use super::participants::{Participants, Participation};
use super::servers::{self, TreeServers};
use crate::message::{HostEpoch, Request, TreePoint};
use crate::servers::ShareServers;
use crate::sharing::Parties;
use crate::tree::Tree;

/// A server's progress, or why it did not answer.
pub(super) type EpochAnswer = Result<HostEpoch, StoreError>;

/// Asks all servers for their progress, and then sends each server that is set up its setup again.
/// This changes nothing on a server that has this setup. A server with another number, other peers,
/// or another shape of the tree or its slots refuses. Returns the progress of each server, or its
/// error.
///
/// # Errors
/// [`StoreMismatch`](ErrorKind::StoreMismatch) if the servers belong to another volume, or are
/// named in another order than when the volume was created.
pub(super) fn verify_setups(
    servers: &mut TreeServers<'_>,
    parties: Parties,
    setups: Vec<Request>,
) -> Result<Vec<EpochAnswer>, Error> {
    let reported = servers.epochs();
    let is_something =
        |reported: &EpochAnswer| reported.as_ref().is_ok_and(|epoch| epoch.is_set_up);
    let asked = setups
        .into_iter()
        .zip(&reported)
        .map(|(setup, reported)| is_something(reported).then_some(setup));
    let agreed = send_setups(servers, parties, asked.collect())?;
    let agreed = reported.into_iter().zip(agreed).map(|(reported, agreed)| match agreed {
        Some(agreed) => agreed.and(reported),
        None => reported,
    });
    Ok(agreed.collect())
}

/// Sends the servers their setups. Returns, for each server with a setup in `setups`, whether it
/// accepts. If no server accepts, and more servers refuse than may lie, the order of the servers is
/// wrong. Otherwise the setup file of a server that refuses is damaged.
///
/// # Errors
/// The errors of [`verify_setups`].
pub(super) fn send_setups(
    servers: &mut TreeServers<'_>,
    parties: Parties,
    setups: Vec<Option<Request>>,
) -> Result<Vec<Option<Result<(), StoreError>>>, Error> {
    let results: Vec<_> = servers
        .ask_some(setups)
        .into_iter()
        .map(|result| result.map(servers::expect_done))
        .collect();
    let refuses = |result: &Result<(), StoreError>| {
        result.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Refused)
    };
    let refused = results.iter().flatten().filter(|result| refuses(result)).count();
    if refused > parties.colluding() && !results.iter().flatten().any(Result::is_ok) {
        return Err(Error::new(ErrorKind::StoreMismatch, ANOTHER_ORDER));
    }
    let damaged = |result: Result<(), StoreError>| match result {
        Err(error) if error.kind() == StoreErrorKind::Refused => {
            let message = format!("{error}. {IS_ALONE}");
            Err(StoreError::caused_by(StoreErrorKind::Damaged, message, error))
        }
        result => result,
    };
    Ok(results.into_iter().map(|result| result.map(damaged)).collect())
}

/// The error if no server accepts its setup, and more servers refuse than may lie.
const ANOTHER_ORDER: &str = "these are the share servers of another volume, or they are named in \
                             another order than when this volume was created: name the servers and \
                             their keys in that order";

/// The advice if a server refuses its setup, but the servers are in the right order.
const IS_ALONE: &str = "The other servers are in the right order, so the setup file of this one is \
                        damaged. If it is reported as up to date with the others, it can be \
                        rebuilt anyway";

/// The progress of all servers in a tree, as derived from their claims.
pub(super) struct ServerProgress {
    /// The point that all participating servers have finished.
    pub(super) done: TreePoint,
    /// Which servers are current, and why the others are not.
    pub(super) participants: Participants,
}

/// Upper bound on the counts in an honest server's progress. A server that reports a greater number
/// lies.
const COUNT_MAX: u64 = 1 << 62;

impl ServerProgress {
    /// Derives the servers' progress from their claims. All servers had reached `durable`, the
    /// point of the client's last durable state.
    pub(super) fn from_claims(
        parties: Parties,
        tree: Tree,
        reported: Vec<EpochAnswer>,
        durable: TreePoint,
    ) -> Self {
        let claims = claims(tree, &reported);
        let far = claims.get(parties.colluding()).or(claims.last()).copied().unwrap_or_default();
        // If more than *t* servers were rolled back, they must not define the point.
        let far = far.max(durable);
        let have_it = claims.iter().filter(|claim| **claim >= far).count();
        let is_only_evicted = far.written == 0 && far.evictions > durable.evictions;
        let enough = if is_only_evicted { parties.servers() } else { parties.for_product() };
        let done = if have_it >= enough { far } else { before(tree, far) };
        let steps_done = steps(tree, done);
        let place = |reported: EpochAnswer| {
            let at = match reported {
                Err(error) => return Participation::Failed(error),
                Ok(epoch) => match check_epoch(tree, &epoch) {
                    Ok(at) => at,
                    Err(astray) => return astray,
                },
            };
            let steps = steps(tree, at);
            if steps > steps_done + 1 {
                Participation::Astray(IS_FURTHER)
            } else if steps >= steps_done {
                if at < durable {
                    Participation::Astray(ROLLED_BACK_BEHIND_STATE)
                } else {
                    Participation::Current
                }
            } else if at.evictions == done.evictions {
                Participation::Lagging
            } else {
                Participation::Astray(ROLLED_BACK)
            }
        };
        Self { done, participants: Participants::new(reported.into_iter().map(place).collect()) }
    }
}

/// Checks whether old records or blocks (older than the client's directory) have a known cause: too
/// few servers remain that were not rolled back, or some do not answer. Succeeds if neither is the
/// case. Works on a read-only volume.
///
/// Records are on 2*t* + 1 servers, of which *t* may lie. If an honest one of these does not
/// answer, the remaining honest ones may be outvoted by liars and by servers that were unreachable
/// when the records were written. So a single missing server may explain old records.
///
/// # Errors
/// [`StoreRolledBack`](ErrorKind::StoreRolledBack) names servers that were rolled back, and
/// [`Unreachable`](StoreErrorKind::Unreachable) servers that do not answer.
pub(super) fn check_not_rolled_back(
    servers: &mut TreeServers<'_>,
    parties: Parties,
    tree: Tree,
    durable: TreePoint,
) -> Result<(), Error> {
    let reported = servers.epochs();
    let is_missing = |reported: &EpochAnswer| {
        reported.as_ref().is_err_and(|it| it.kind() == StoreErrorKind::Unreachable)
    };
    let missing: Vec<_> =
        (0..reported.len()).filter(|server| is_missing(&reported[*server])).collect();
    let ServerProgress { participants, .. } =
        ServerProgress::from_claims(parties, tree, reported, durable);
    if let Err(error) = participants.check_enough(&**servers, parties)
        && error.kind() == ErrorKind::StoreRolledBack
    {
        return Err(error);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the servers that answer hold older records or blocks than the client's directory names, \
         and {} not answer: bring all servers back and open the volume again. If all of them \
         answer and still hold older data, storage was rolled back",
        match &missing[..] {
            [one] => format!("{} does", servers.name(*one)),
            _ => {
                let names: Vec<_> = missing.iter().map(|server| servers.name(*server)).collect();
                format!("{} do", names.join(", "))
            }
        }
    );
    Err(StoreError::new(StoreErrorKind::Unreachable, message).into())
}

/// The reason why a server is astray: it claims to be further ahead than it can be.
pub(super) const IS_FURTHER: &str = "claims to be ahead of the others";

/// The reason why a server is astray: it is behind a point that it must have reached.
pub(super) const ROLLED_BACK: &str = "was rolled back behind the others";

/// The reason why a server is astray: it is behind the durable state in the client's directory.
pub(super) const ROLLED_BACK_BEHIND_STATE: &str =
    "was rolled back behind the client's directory, or belongs to another volume";

/// The point that a server claims; an error if the server is not set up, or if no server can reach
/// such a point.
pub(super) fn check_epoch(tree: Tree, epoch: &HostEpoch) -> Result<TreePoint, Participation> {
    let HostEpoch { at, attempt, is_set_up } = *epoch;
    if !is_set_up {
        Err(Participation::Astray("holds nothing of this volume"))
    } else if at.written > tree.accesses() || at.evictions > COUNT_MAX || attempt > COUNT_MAX {
        Err(Participation::Astray("claims an impossible point"))
    } else {
        Ok(at)
    }
}

/// The possible points that servers claim, the furthest first.
pub(super) fn claims(tree: Tree, reported: &[EpochAnswer]) -> Vec<TreePoint> {
    furthest_first(reported.iter().filter_map(|reported| claim(tree, reported)))
}

pub(super) fn furthest_first(points: impl Iterator<Item = TreePoint>) -> Vec<TreePoint> {
    let mut points: Vec<_> = points.collect();
    points.sort_unstable_by(|one, other| other.cmp(one));
    points
}

/// The point that a server claims; `None` if it did not answer or the point is impossible.
pub(super) fn claim(tree: Tree, reported: &EpochAnswer) -> Option<TreePoint> {
    check_epoch(tree, reported.as_ref().ok()?).ok()
}

/// Whether the client's directory is older than the servers' state: whether more than *t* servers
/// are past `seen_max`, the last point that the directory allows.
///
/// # Errors
/// [`Unreachable`](StoreErrorKind::Unreachable) if the directory may be older, and the answers of
/// missing servers would decide.
pub(super) fn is_old(
    servers: &dyn ShareServers,
    parties: Parties,
    tree: Tree,
    reported: &[EpochAnswer],
    seen_max: TreePoint,
) -> Result<bool, Error> {
    let is_beyond = |reported: &EpochAnswer| claim(tree, reported).is_some_and(|at| at > seen_max);
    let beyond: Vec<_> =
        (0..reported.len()).filter(|server| is_beyond(&reported[*server])).collect();
    let silent: Vec<_> = (0..reported.len()).filter(|server| reported[*server].is_err()).collect();
    if beyond.is_empty() || beyond.len() + silent.len() <= parties.colluding() {
        return Ok(false);
    }
    if beyond.len() > parties.colluding() {
        return Ok(true);
    }
    let names = |of: &[usize]| {
        let names: Vec<_> = of.iter().map(|server| servers.name(*server)).collect();
        names.join(", ")
    };
    let message = format!(
        "ahead of the client's directory: {}. Not answering: {}. Either the directory is not the \
         latest, or the servers that claim to be ahead are wrong. Bring back the servers that do \
         not answer, to decide which",
        names(&beyond),
        names(&silent)
    );
    Err(StoreError::new(StoreErrorKind::Unreachable, message).into())
}

/// The point one step before a point. A step is a write or an eviction.
pub(super) fn before(tree: Tree, TreePoint { evictions, written }: TreePoint) -> TreePoint {
    match (written.checked_sub(1), evictions.checked_sub(1)) {
        (Some(written), _) => TreePoint { evictions, written },
        (None, Some(evictions)) => TreePoint { evictions, written: tree.accesses() },
        (None, None) => TreePoint::default(),
    }
}

/// The number of steps (writes and evictions) that lead to a point.
pub(super) fn steps(tree: Tree, TreePoint { evictions, written }: TreePoint) -> u128 {
    u128::from(evictions) * (tree.accesses() as u128 + 1) + written as u128
}
