//! The last point that enough servers have, whatever has become of the others: what is left is read there.
//!
//! As many as may collude and one more have to say that they have it: then one of them does not lie, and if none does, their shares give back what was there. How many others are further
//! back does not matter, nor how many those are: more may have been set back than may collude. Where some of them lie, those that do not may be a write or an eviction apart, as a crash
//! leaves them. They all have what was held [before](Points::before) it.

use std::collections::BTreeSet;

use oblivio_core::{BucketId, Error, ErrorKind, StoreError};

use super::left::OTHERS_ARE_READ;
use super::parts::Part;
use super::repair::elsewhere;
use super::servers::{self, TreeServers};
use super::standing::{
    IS_FURTHER, SET_BACK, SET_BACK_BEHIND_KEPT, Told, before, claim, sound, steps,
};
use crate::message::{Point, Slots};
use crate::sharing::Parties;
use crate::tree::Tree;

/// What becomes of slots of the root as more are written, until the next eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Roots {
    /// All that were written stay as they are: whoever is further has them, too.
    Grow,
    /// Writes mark slots, in all of the tree: what is marked holds at one point, and is known there and a step further.
    AreMarked,
}

/// Where servers may be in a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Points {
    pub(super) parties: Parties,
    pub(super) tree: Tree,
    pub(super) roots: Roots,
    /// Where all have been, as the client's directory says.
    pub(super) kept: Point,
}

/// A point that enough servers have.
#[derive(Debug)]
pub(super) struct Agreed {
    pub(super) at: Point,
    /// At which point each server is asked, none if it has nothing of that. It may lack the last slots of the root.
    asked: Vec<Option<Point>>,
}

impl Agreed {
    /// Where slots of a bucket end that the same servers have, of so many.
    pub(super) fn ends(&self, bucket: BucketId, slots: usize) -> BTreeSet<usize> {
        let of_servers = self.asked.iter().flatten().map(|at| at.written);
        let between = of_servers.filter(|end| bucket == BucketId::ROOT && (1..slots).contains(end));
        between.chain([slots]).collect()
    }

    /// At which point each server is asked for these slots.
    pub(super) fn asked_for(&self, Slots { bucket, first, count }: Slots) -> Vec<Option<Point>> {
        let has_it = |at: &Point| bucket != BucketId::ROOT || at.written >= first + count;
        self.asked.iter().map(|asked| asked.filter(has_it)).collect()
    }
}

impl Points {
    /// The last point that enough servers have, or the one that is `wanted`, if they have that; none if they are too few. Whoever is not where a crash, or having been missing, may have left him is named to
    /// `damaged`.
    pub(super) fn last(
        &self,
        servers: &mut TreeServers<'_>,
        wanted: Option<Point>,
        damaged: &mut dyn FnMut(&Error),
    ) -> Option<Agreed> {
        let told = servers.epochs();
        let claims: Vec<_> = told.iter().map(|told| claim(self.tree, told)).collect();
        let found = self.found(&claims, wanted);
        let failed = self.astray(told, &claims, found);
        if !failed.is_empty() {
            damaged(&servers::failure(&**servers, failed, OTHERS_ARE_READ));
        }
        if found.is_none() {
            let message = "too few share servers are where others are: nothing is read from them";
            damaged(&Error::new(ErrorKind::Corrupt, message));
        }
        let at = found?;
        let asked = claims.iter().map(|there| self.asked(at, (*there)?)).collect();
        Some(Agreed { at, asked })
    }

    /// The point before one that enough servers said they have, if enough have that, too.
    pub(super) fn before(&self, agreed: &Agreed, servers: &mut TreeServers<'_>) -> Option<Agreed> {
        let at = before(self.tree, agreed.at);
        // What is wrong with servers was said.
        let earlier = self.last(servers, Some(at), &mut |_| ())?;
        (earlier.at == at && at < agreed.at).then_some(earlier)
    }

    fn found(&self, claims: &[Option<Point>], wanted: Option<Point>) -> Option<Point> {
        let enough = self.parties.colluding() + 1;
        let claims = || claims.iter().flatten().copied();
        let have = |at: Point| claims().filter(|there| self.has(at, *there)).count();
        let is_enough = |at: &Point| have(*at) >= enough;
        let points = || claims().flat_map(|there| [there, before(self.tree, there)]);
        let last = wanted.filter(is_enough).or_else(|| points().filter(is_enough).max())?;
        // An eviction loses and makes nothing: of before and after it, that is taken which more are sure to have.
        let before_it = before(self.tree, last);
        let have_not_evicted = claims().filter(|there| *there == before_it).count();
        let is_just_evicted = last.written == 0 && last.evictions > 0;
        let is_sure = have_not_evicted >= enough && have_not_evicted > have(last);
        Some(if is_just_evicted && is_sure { before_it } else { last })
    }

    /// At which point a server that is there is asked for what was held at another; none if it has nothing of that any more, or not yet. Whoever is an eviction further still has all that was before.
    fn asked(&self, at: Point, there: Point) -> Option<Point> {
        let before = before(self.tree, there);
        match self.roots {
            Roots::Grow => [there, before].into_iter().find(|it| it.evictions == at.evictions),
            Roots::AreMarked => [there, before].contains(&at).then_some(at),
        }
    }

    /// Whether a server that is there has all that was held at a point.
    fn has(&self, at: Point, there: Point) -> bool {
        self.asked(at, there).is_some_and(|asked| asked.written >= at.written)
    }

    /// Who is not where a crash, or having been missing, may have left him, and why.
    fn astray(
        &self,
        told: Vec<Told>,
        claims: &[Option<Point>],
        found: Option<Point>,
    ) -> Vec<(usize, StoreError)> {
        let steps = |at: Point| steps(self.tree, at);
        let is_behind = |at: Point| found.is_some_and(|found| steps(at) + 1 < steps(found));
        let is_further = |at: Point| found.is_some_and(|found| steps(at) > steps(found) + 1);
        let evictions = found.unwrap_or_default().evictions;
        // So many may have been missing when it was written. Evictions need all.
        let missing_max = self.parties.servers() - self.parties.for_product();
        let lacks_some = |at: &&Point| **at < self.kept || is_behind(**at);
        let were_missing = claims.iter().flatten().filter(lacks_some).count() <= missing_max;
        let why = |at: Point| {
            if is_further(at) {
                Part::Astray(IS_FURTHER)
            } else if at.evictions < self.kept.evictions || at < self.kept && !were_missing {
                Part::Astray(SET_BACK_BEHIND_KEPT)
            } else if is_behind(at) && (at.evictions < evictions || !were_missing) {
                Part::Astray(SET_BACK)
            } else {
                Part::Current
            }
        };
        let wrong = |told: Told| match told.map(|epoch| sound(self.tree, &epoch)) {
            Err(error) => Some(error),
            Ok(Ok(at)) => why(at).why().map(elsewhere),
            Ok(Err(astray)) => astray.why().map(elsewhere),
        };
        let told = told.into_iter().enumerate();
        told.filter_map(|(server, told)| Some((server, wrong(told)?))).collect()
    }
}
