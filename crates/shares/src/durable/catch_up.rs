//! What servers lack that were missing: the blocks that came into the root meanwhile, *A* at most. Nobody remembers which these are: servers say how far they are.
//!
//! The share of a block that a server lacks follows from those of the others. They are of degree *t*, so more of them are there than are needed, and wrong ones are noticed; and what they give has to be the
//! block of that access, sealed, whatever block it is.

use oblivio_core::{BucketId, Error};

use super::array::ShareArray;
use super::fetch::{Fetched, fetch};
use super::parts::Part;
use super::servers;
use super::standing::{IS_FURTHER, sound};
use crate::message::{HostEpoch, Point, Request, Slots};
use crate::sharing::Share;

/// A server that lacks blocks.
struct Laggard {
    server: usize,
    /// Blocks of the root that it has.
    written: usize,
}

impl ShareArray {
    /// Servers that were missing or lag, and are back, get what they lack. From then on they take part.
    ///
    /// With the position map in trees, all servers have made each access: none lacks anything.
    pub(super) fn catch_up(&mut self, at: Point) -> Result<(), Error> {
        if self.params.is_in_trees() {
            return Ok(());
        }
        let mut laggards = self.find_laggards(at)?;
        let slots_at_once = Slots::at_once(self.params.slot_bytes());
        while let Some(first) = laggards.iter().map(|laggard| laggard.written).min()
            && first < at.written
        {
            let count = slots_at_once.min(at.written - first);
            let slots = Slots { bucket: BucketId::ROOT, first, count };
            let fetched = self.fetch_from_current(at, slots)?;
            if self.parts[0].count() < self.params.parties.for_product() {
                return Ok(());
            }
            for place in 0..count {
                self.write_to(
                    &mut laggards,
                    Point { written: first + place, ..at },
                    &fetched,
                    place,
                )?;
            }
        }
        laggards.iter().for_each(|laggard| self.parts[0].set(laggard.server, Part::Current));
        Ok(())
    }

    /// Those that say that they are back, and lack something.
    fn find_laggards(&mut self, at: Point) -> Result<Vec<Laggard>, Error> {
        let is_asked = self.parts[0].may_be_back();
        let mut laggards = Vec::new();
        if !is_asked.contains(&true) {
            return Ok(laggards);
        }
        let tree = self.params.tree;
        let requests = is_asked.iter().map(|is_asked| is_asked.then_some(Request::Epoch));
        let said = self.servers(0).ask_some(requests.collect());
        for (server, said) in said.into_iter().enumerate() {
            let epoch = match said.map(servers::epoch) {
                None => continue,
                Some(Err(error)) => {
                    self.fail(0, server, error)?;
                    continue;
                }
                Some(Ok(epoch)) => epoch,
            };
            let part = sound(tree, &epoch).map_or_else(|astray| astray, |there| part_of(there, at));
            if let Part::Lags = part {
                let HostEpoch { at: Point { written, .. }, .. } = epoch;
                laggards.push(Laggard { server, written });
            }
            self.parts[0].set(server, part);
        }
        Ok(laggards)
    }

    fn fetch_from_current(&mut self, at: Point, slots: Slots) -> Result<Fetched, Error> {
        let (is_asked, slot_bytes) = (self.parts[0].current(), self.params.slot_bytes());
        let mut fetched = fetch(&mut self.servers(0), &is_asked, at, slots, slot_bytes);
        for (server, error) in fetched.failed.drain(..) {
            self.fail(0, server, error)?;
        }
        Ok(fetched)
    }

    /// Writes a block to those that lack it. Who does not take it is none of them any more.
    fn write_to(
        &mut self,
        laggards: &mut Vec<Laggard>,
        at: Point,
        fetched: &Fetched,
        place: usize,
    ) -> Result<(), Error> {
        let parties = self.params.parties;
        let Ok(decoded) = fetched.decoded(parties, place) else {
            return Err(
                self.corrupt(0, "shares of a block that a server lacks contradict each other")
            );
        };
        self.found_wrong(&decoded.liars)?;
        let number = self.params.accesses_at(at);
        let opened = self.sealer.open(&decoded.block);
        if opened.is_none_or(|opened| opened.name().number != number) {
            return Err(self.corrupt(0, "a block that a server lacks is not what was written"));
        }
        let request = |(server, number)| {
            laggards.iter().find(|it| it.server == server && it.written == at.written)?;
            let share = fetched.share_of(number, parties, place, &decoded.liars)?;
            Some(Request::Write { at, block: Share::Computed(share) })
        };
        let requests = (0..).zip(parties.numbers()).map(request).collect();
        let said = self.servers(0).ask_some(requests);
        for (server, said) in said.into_iter().enumerate() {
            match said.map(servers::done) {
                Some(Ok(())) => {
                    let laggard = laggards.iter_mut().find(|it| it.server == server);
                    laggard.into_iter().for_each(|laggard| laggard.written += 1);
                }
                Some(Err(error)) => {
                    self.fail(0, server, error)?;
                    laggards.retain(|laggard| laggard.server != server);
                }
                None => (),
            }
        }
        Ok(())
    }
}

/// What part a server takes that is there, where others are at this point.
fn part_of(there: Point, at: Point) -> Part {
    let Point { evictions, written } = there;
    if evictions != at.evictions {
        Part::Astray("is not in the eviction in which the others are")
    } else if written < at.written {
        Part::Lags
    } else if written <= at.written + 1 {
        Part::Current
    } else {
        Part::Astray(IS_FURTHER)
    }
}
