//! How far servers are, and which of them are where they have to be.
//!
//! # What follows from what they say
//! An access is over once 2*t* + 1 servers have said that they have its block, of which *t* may lie: *t* + 1 honest ones have it. None is begun before the last is
//! over. So let *W* be the point after the last that is over: *t* + 1 honest servers are there at least, and no honest one is more than a step further. Others may lack any of the blocks
//! since the last eviction, which needs all.
//!
//! *Far* is the point that *t* + 1 servers claim to have reached, and no more do of any further one. One of them does not lie, so there was such a write. If 2*t* + 1 claim it, *t* + 1 honest servers
//! have the block, which gives it back: it is *done*, and need not be done again. If not, the step before it is: the step itself is done again, with the same shares, and changes nothing where it was
//! done already.
//!
//! - **Nothing passes for done that is not**: what 2*t* + 1 say, *t* + 1 say who do not lie.
//! - **An eviction is done if all servers say so**, or if *t* + 1 say that something was written after it: the client writes nothing before all have said that they are through. Or if the client remembers it.
//! - **Whoever claims to be further** is left out, and named: these are *t* at most.
//! - **The directory is old if *t* + 1 say so**, and else it is not said. While servers are missing, each of them counts as one that could say it, if another does: with *t* + 1
//!   honest servers beyond the directory, one of which answers at least, it is not taken for the latest.

use oblivio_core::{Error, ErrorKind, StoreError, StoreErrorKind};

use super::parts::{Part, Parts};
use super::servers::{self, TreeServers};
use crate::message::{HostEpoch, Point, Request};
use crate::servers::ShareServers;
use crate::sharing::Parties;
use crate::tree::Tree;

/// What one server has said of how far it is.
pub(super) type Told = Result<HostEpoch, StoreError>;

/// How far all servers are. Those that are something are told what they should be: it changes nothing, and one that has another number there, or other
/// companions, another tree or field, refuses.
///
/// # Errors
/// [`StoreMismatch`](ErrorKind::StoreMismatch) when they are named in another order than that in which the volume was made.
pub(super) fn tell(
    servers: &mut TreeServers<'_>,
    parties: Parties,
    setups: Vec<Request>,
) -> Result<Vec<Told>, Error> {
    let told = servers.epochs();
    let is_something = |told: &Told| told.as_ref().is_ok_and(|epoch| epoch.is_set_up);
    let asked =
        setups.into_iter().zip(&told).map(|(setup, told)| is_something(told).then_some(setup));
    let agreed = agree(servers, parties, asked.collect())?;
    let agreed = told.into_iter().zip(agreed).map(|(told, agreed)| match agreed {
        Some(agreed) => agreed.and(told),
        None => told,
    });
    Ok(agreed.collect())
}

/// Tells servers what they should be, and answers which of them are. If those that answer refuse all alike, and not all of them may lie, it is their order that is wrong; else it is what is kept where
/// one refuses.
///
/// # Errors
/// As of [`tell`].
pub(super) fn agree(
    servers: &mut TreeServers<'_>,
    parties: Parties,
    setups: Vec<Option<Request>>,
) -> Result<Vec<Option<Result<(), StoreError>>>, Error> {
    let said: Vec<_> =
        servers.ask_some(setups).into_iter().map(|said| said.map(servers::done)).collect();
    let refuses = |said: &Result<(), StoreError>| {
        said.as_ref().is_err_and(|error| error.kind() == StoreErrorKind::Refused)
    };
    let refused = said.iter().flatten().filter(|said| refuses(said)).count();
    if refused > parties.colluding() && !said.iter().flatten().any(Result::is_ok) {
        return Err(Error::new(ErrorKind::StoreMismatch, ANOTHER_ORDER));
    }
    let damaged = |said: Result<(), StoreError>| match said {
        Err(error) if error.kind() == StoreErrorKind::Refused => {
            let message = format!("{error}. {IS_ALONE}");
            Err(StoreError::caused_by(StoreErrorKind::Damaged, message, error))
        }
        said => said,
    };
    Ok(said.into_iter().map(|said| said.map(damaged)).collect())
}

/// What is said where all servers are something else than what they are named as.
const ANOTHER_ORDER: &str = "these are the share servers of another volume, or they are named in another order than that in which this one was made: name them in that order, and their keys in the same";

/// What is said of one that is something else than what it is named as, though others are not.
const IS_ALONE: &str = "Others are where they are named: what it keeps of that is damaged. If it is said to be where the others are, it can be made anew all the same";

/// How far servers are.
pub(super) struct Standing {
    /// The point to which all that are current are through.
    pub(super) done: Point,
    /// Which are.
    pub(super) parts: Parts,
}

/// No server counts so far: numbers from there on are lies.
const COUNT_MAX: u64 = 1 << 62;

impl Standing {
    /// What follows from what servers say, for a client that knows that all have been where it has kept its state.
    pub(super) fn of(parties: Parties, tree: Tree, told: Vec<Told>, kept: Point) -> Self {
        let claims = claims(tree, &told);
        let far = claims.get(parties.colluding()).or(claims.last()).copied().unwrap_or_default();
        // Where more are set back than may collude, these are not where the others should be.
        let far = far.max(kept);
        let have_it = claims.iter().filter(|claim| **claim >= far).count();
        let is_only_evicted = far.written == 0 && far.evictions > kept.evictions;
        let enough = if is_only_evicted { parties.servers() } else { parties.for_product() };
        let done = if have_it >= enough { far } else { before(tree, far) };
        let steps_done = steps(tree, done);
        let place = |told: Told| {
            let at = match told {
                Err(error) => return Part::Failed(error),
                Ok(epoch) => match sound(tree, &epoch) {
                    Ok(at) => at,
                    Err(astray) => return astray,
                },
            };
            let steps = steps(tree, at);
            if steps > steps_done + 1 {
                Part::Astray(IS_FURTHER)
            } else if steps >= steps_done {
                if at < kept { Part::Astray(SET_BACK_BEHIND_KEPT) } else { Part::Current }
            } else if at.evictions == done.evictions {
                Part::Lags
            } else {
                Part::Astray(SET_BACK)
            }
        };
        Self { done, parts: Parts::new(told.into_iter().map(place).collect()) }
    }
}

/// Explains records or blocks that are older than the client's directory: servers were set back, or
/// some do not answer. A volume that is open to read only may be asked.
///
/// Records are on 2*t* + 1 servers, of which *t* may lie. If one more is missing, those that are
/// left may be outvoted by servers that were away when the records were written. So a single
/// missing server may explain it.
///
/// # Errors
/// [`StoreRolledBack`](ErrorKind::StoreRolledBack) names servers that were set back,
/// [`Unreachable`](StoreErrorKind::Unreachable) those that do not answer.
pub(super) fn check_not_set_back(
    servers: &mut TreeServers<'_>,
    parties: Parties,
    tree: Tree,
    kept: Point,
) -> Result<(), Error> {
    let told = servers.epochs();
    let is_missing =
        |told: &Told| told.as_ref().is_err_and(|it| it.kind() == StoreErrorKind::Unreachable);
    let missing: Vec<_> = (0..told.len()).filter(|server| is_missing(&told[*server])).collect();
    let Standing { parts, .. } = Standing::of(parties, tree, told, kept);
    if let Err(error) = parts.check_enough(&**servers, parties)
        && error.kind() == ErrorKind::StoreRolledBack
    {
        return Err(error);
    }
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!(
        "the servers that answer hold older records or blocks than the client's directory names, \
         and {} not answer: bring all servers back and open the volume again. If they all answer, \
         and what they hold is still older, storage was set back",
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

/// What is said of a server that is further than others can be.
pub(super) const IS_FURTHER: &str = "says that it is further than the others";

/// What is said of one that has less than it had.
pub(super) const SET_BACK: &str = "is set back behind the others";

/// The same, where the others do not show it.
pub(super) const SET_BACK_BEHIND_KEPT: &str =
    "is set back behind the client's directory, or a server of another volume";

/// Where a server says that it is, if one can be there.
pub(super) fn sound(tree: Tree, epoch: &HostEpoch) -> Result<Point, Part> {
    let HostEpoch { at, attempt, is_set_up } = *epoch;
    if !is_set_up {
        Err(Part::Astray("holds nothing of this volume"))
    } else if at.written > tree.accesses() || at.evictions > COUNT_MAX || attempt > COUNT_MAX {
        Err(Part::Astray("says that it is where no server can be"))
    } else {
        Ok(at)
    }
}

/// Where servers say that they are, the furthest first.
pub(super) fn claims(tree: Tree, told: &[Told]) -> Vec<Point> {
    furthest_first(told.iter().filter_map(|told| claim(tree, told)))
}

pub(super) fn furthest_first(points: impl Iterator<Item = Point>) -> Vec<Point> {
    let mut points: Vec<_> = points.collect();
    points.sort_unstable_by(|one, other| other.cmp(one));
    points
}

/// Where a server says that it is, if one can be there.
pub(super) fn claim(tree: Tree, told: &Told) -> Option<Point> {
    sound(tree, told.as_ref().ok()?).ok()
}

/// Whether the client's directory is older than the servers.
///
/// # Errors
/// [`Unreachable`](StoreErrorKind::Unreachable) when it may be, and servers are missing that would show it.
pub(super) fn is_old(
    servers: &dyn ShareServers,
    parties: Parties,
    tree: Tree,
    told: &[Told],
    seen_max: Point,
) -> Result<bool, Error> {
    let is_beyond = |told: &Told| claim(tree, told).is_some_and(|at| at > seen_max);
    let beyond: Vec<_> = (0..told.len()).filter(|server| is_beyond(&told[*server])).collect();
    let silent: Vec<_> = (0..told.len()).filter(|server| told[*server].is_err()).collect();
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
        "{} says that it is further than the client's directory knows, and {} does not answer: either the directory is not the latest, or that server is not what it \
         should be. Bring back those that are missing: they show which it is",
        names(&beyond),
        names(&silent)
    );
    Err(StoreError::new(StoreErrorKind::Unreachable, message).into())
}

/// The point a step before another: a write, or an eviction.
pub(super) fn before(tree: Tree, Point { evictions, written }: Point) -> Point {
    match (written.checked_sub(1), evictions.checked_sub(1)) {
        (Some(written), _) => Point { evictions, written },
        (None, Some(evictions)) => Point { evictions, written: tree.accesses() },
        (None, None) => Point::default(),
    }
}

/// How many writes and evictions lead to a point.
pub(super) fn steps(tree: Tree, Point { evictions, written }: Point) -> u128 {
    u128::from(evictions) * (tree.accesses() as u128 + 1) + written as u128
}
