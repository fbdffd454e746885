//! Finds the last point that enough servers have, even if other servers are lost or rolled back. A
//! salvage reads the data at this point.
//!
//! *t* + 1 servers must claim the point: then one of them is honest, and if all are, their shares
//! recover the data. The other servers may be any number of steps behind, and more than *t* of them
//! may have been rolled back. If some servers lie, the honest ones may be a write or an eviction
//! apart, as after a crash. All honest servers have the point [before](PointFinder::before).

use std::collections::BTreeSet;

use oblivio_core::{BucketId, Error, ErrorKind, StoreError};

use super::participants::Participation;
use super::repair::astray_error;
use super::salvage_reader::OTHERS_ARE_READ;
use super::server_progress::{
    EpochAnswer, IS_FURTHER, ROLLED_BACK, ROLLED_BACK_BEHIND_STATE, before, check_epoch, claim,
    steps,
};
use super::servers::{self, TreeServers};
use crate::message::{Slots, TreePoint};
use crate::sharing::Parties;
use crate::tree::Tree;

/// How later writes affect the written slots of the root, until the next eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RootRule {
    /// The written slots do not change, so a server that is further ahead has them too.
    AppendOnly,
    /// Later writes mark taken slots in the whole tree. A server can return the marks of its
    /// current point and of the point before.
    Marked,
}

/// Finds points that enough servers have in a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct PointFinder {
    pub(super) parties: Parties,
    pub(super) tree: Tree,
    pub(super) roots: RootRule,
    /// The point that all servers had reached when the client's directory recorded it.
    pub(super) durable: TreePoint,
}

/// The point whose data enough servers have, as agreed from their claims.
#[derive(Debug)]
pub(super) struct QuorumPoint {
    pub(super) at: TreePoint,
    /// For each server, the point to use in requests to it; `None` if the server has no data of the
    /// agreed point. A server with a point may still lack the last slots of the root.
    request_points: Vec<Option<TreePoint>>,
}

impl QuorumPoint {
    /// Divides `slots` slots of a bucket into runs, so that each server has all slots of a run or
    /// none. Returns the end of each run.
    pub(super) fn ends(&self, bucket: BucketId, slots: usize) -> BTreeSet<usize> {
        let of_servers = self.request_points.iter().flatten().map(|at| at.written);
        let between = of_servers.filter(|end| bucket == BucketId::ROOT && (1..slots).contains(end));
        between.chain([slots]).collect()
    }

    /// For each server, the point to use in requests for slots `slots`; `None` if the server lacks
    /// these slots.
    pub(super) fn request_points_for(
        &self,
        Slots { bucket, first, count }: Slots,
    ) -> Vec<Option<TreePoint>> {
        let has_it = |at: &TreePoint| bucket != BucketId::ROOT || at.written >= first + count;
        self.request_points.iter().map(|asked| asked.filter(has_it)).collect()
    }
}

impl PointFinder {
    /// Finds the last point whose data enough servers have, or `wanted` if enough servers have its
    /// data. `None` if enough servers have the data of no point. If the point directly follows an
    /// eviction, the point before the eviction is preferred if more servers certainly have it.
    ///
    /// Reports to `damaged` the servers that failed or are [astray](Self::astray), and the error if
    /// no point was found.
    pub(super) fn last(
        &self,
        servers: &mut TreeServers<'_>,
        wanted: Option<TreePoint>,
        damaged: &mut dyn FnMut(&Error),
    ) -> Option<QuorumPoint> {
        let reported = servers.epochs();
        let claims: Vec<_> = reported.iter().map(|reported| claim(self.tree, reported)).collect();
        let found = self.find(&claims, wanted);
        let failed = self.astray(reported, &claims, found);
        if !failed.is_empty() {
            damaged(&servers::failure_error(&**servers, failed, OTHERS_ARE_READ));
        }
        if found.is_none() {
            let message =
                "too few share servers are at the same point: nothing can be read from them";
            damaged(&Error::new(ErrorKind::Corrupt, message));
        }
        let at = found?;
        let request_points = claims.iter().map(|there| self.request_point(at, (*there)?)).collect();
        Some(QuorumPoint { at, request_points })
    }

    /// Finds the point one step before `agreed`. `None` if too few servers have the data of that
    /// point, or `agreed` is the first point of a tree.
    pub(super) fn before(
        &self,
        agreed: &QuorumPoint,
        servers: &mut TreeServers<'_>,
    ) -> Option<QuorumPoint> {
        let at = before(self.tree, agreed.at);
        // Problems with servers were already reported.
        let earlier = self.last(servers, Some(at), &mut |_| ())?;
        (earlier.at == at && at < agreed.at).then_some(earlier)
    }

    fn find(&self, claims: &[Option<TreePoint>], wanted: Option<TreePoint>) -> Option<TreePoint> {
        let enough = self.parties.colluding() + 1;
        let claims = || claims.iter().flatten().copied();
        let have = |at: TreePoint| claims().filter(|there| self.has(at, *there)).count();
        let is_enough = |at: &TreePoint| have(*at) >= enough;
        let points = || claims().flat_map(|there| [there, before(self.tree, there)]);
        let last = wanted.filter(is_enough).or_else(|| points().filter(is_enough).max())?;
        // An eviction neither loses nor creates blocks. So prefer the point before or after it that
        // more servers certainly have.
        let before_it = before(self.tree, last);
        let have_not_evicted = claims().filter(|there| *there == before_it).count();
        let is_just_evicted = last.written == 0 && last.evictions > 0;
        let is_sure = have_not_evicted >= enough && have_not_evicted > have(last);
        Some(if is_just_evicted && is_sure { before_it } else { last })
    }

    /// The point to name when requesting the data of point `at` from a server that is at point
    /// `there`. `None` if that server does not have the data. A server that is one eviction ahead
    /// of `at` still has the state before that eviction.
    fn request_point(&self, at: TreePoint, there: TreePoint) -> Option<TreePoint> {
        let before = before(self.tree, there);
        match self.roots {
            RootRule::AppendOnly => {
                [there, before].into_iter().find(|it| it.evictions == at.evictions)
            }
            RootRule::Marked => [there, before].contains(&at).then_some(at),
        }
    }

    /// Whether a server at `there` has all the data of point `at`.
    fn has(&self, at: TreePoint, there: TreePoint) -> bool {
        self.request_point(at, there).is_some_and(|asked| asked.written >= at.written)
    }

    /// The servers that reported no valid point, or a point that neither a crash nor an absence can
    /// explain, each with the reason.
    fn astray(
        &self,
        reported: Vec<EpochAnswer>,
        claims: &[Option<TreePoint>],
        found: Option<TreePoint>,
    ) -> Vec<(usize, StoreError)> {
        let steps = |at: TreePoint| steps(self.tree, at);
        let is_behind = |at: TreePoint| found.is_some_and(|found| steps(at) + 1 < steps(found));
        let is_further = |at: TreePoint| found.is_some_and(|found| steps(at) > steps(found) + 1);
        let evictions = found.unwrap_or_default().evictions;
        // At most this many servers may have missed a write. Evictions need all servers.
        let missing_max = self.parties.servers() - self.parties.for_product();
        let lacks_some = |at: &&TreePoint| **at < self.durable || is_behind(**at);
        let were_missing = claims.iter().flatten().filter(lacks_some).count() <= missing_max;
        let why = |at: TreePoint| {
            if is_further(at) {
                Participation::Astray(IS_FURTHER)
            } else if at.evictions < self.durable.evictions || at < self.durable && !were_missing {
                Participation::Astray(ROLLED_BACK_BEHIND_STATE)
            } else if is_behind(at) && (at.evictions < evictions || !were_missing) {
                Participation::Astray(ROLLED_BACK)
            } else {
                Participation::Current
            }
        };
        let wrong =
            |reported: EpochAnswer| match reported.map(|epoch| check_epoch(self.tree, &epoch)) {
                Err(error) => Some(error),
                Ok(Ok(at)) => why(at).why().map(astray_error),
                Ok(Err(astray)) => astray.why().map(astray_error),
            };
        let reported = reported.into_iter().enumerate();
        reported.filter_map(|(server, reported)| Some((server, wrong(reported)?))).collect()
    }
}
