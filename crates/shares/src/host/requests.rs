//! What a client asks of one tree, but for evictions and what slots say: checked first, and refused whole.

use oblivio_core::StoreErrorKind;

use super::files::{Asked, Bucket, Files};
use super::record::Record;
use super::{select, unusable};
use crate::field::Gf256;
use crate::message::{Point, Refusal, Select, Setup, Slots};
use crate::sharing::Share;

impl Files {
    /// The state is the server's, or the one before the write that came last.
    pub(super) fn check_at(&self, at: Point) -> Result<(), Refusal> {
        let here = self.record.at;
        let is_here = at.evictions == here.evictions
            && (at.written == here.written || at.written + 1 == here.written);
        is_here.then_some(()).ok_or_else(|| self.is_elsewhere(at))
    }

    /// The state is the server's.
    pub(super) fn check_is(&self, at: Point) -> Result<(), Refusal> {
        (at == self.record.at).then_some(()).ok_or_else(|| self.is_elsewhere(at))
    }

    /// The state is the server's, the one before the write that came last, or the one before the
    /// eviction that came last. All of that is kept until something is written: so that the server
    /// can go back, and another that is not through with the eviction can be read together with it.
    fn check_can_be_fetched(&self, at: Point) -> Result<(), Refusal> {
        let Record { at: here, written_before, .. } = self.record;
        let is_just_evicted = here == Point { evictions: at.evictions + 1, written: 0 };
        if is_just_evicted && written_before == Some(at.written) {
            return self.check_marks_before_eviction(at);
        }
        self.check_at(at)
    }

    /// A write may have been begun after the eviction, and been lost with a crash: then it has taken the place of marks that are older.
    fn check_marks_before_eviction(&self, before: Point) -> Result<(), Refusal> {
        let Some(marks) = self.marks() else { return Ok(()) };
        let are_kept = marks.are_kept(before).map_err(unusable)?;
        are_kept.then_some(()).ok_or_else(|| {
            has_nothing_before(
                "this server does not have any more what was marked before its last eviction",
            )
        })
    }

    fn is_elsewhere(&self, at: Point) -> Refusal {
        let Point { evictions, written } = self.record.at;
        Refusal::from(format!(
            "this server is at eviction {evictions}, write {written}, and not at eviction {}, write {}",
            at.evictions, at.written
        ))
    }

    pub(super) fn selected(&mut self, at: Point, select: Select<u8>) -> Result<Vec<u8>, Refusal> {
        self.check_at(at)?;
        let Select { leaf, query } = select;
        let tree = self.setup.tree;
        if leaf.0 >= tree.leaves() {
            return Err("the tree has no such path".into());
        }
        let query = elements(query, tree.path_slots())?;
        let answer = select::select(self, at, leaf, &query).map_err(unusable)?;
        self.asked = (self.setup.metadata_bytes > 0).then_some(Asked { at, leaf, query });
        Ok(answer)
    }

    pub(super) fn write(&mut self, at: Point, block: Share<u8>) -> Result<(), Refusal> {
        self.check_at(at)?;
        if at.written == self.setup.tree.accesses() {
            return Err("the root is full, and has to be evicted first".into());
        }
        let block = elements(block, self.setup.block_bytes)?;
        let query_sum = self.mark_what_was_taken(at)?;
        self.write_block(at, &block, query_sum).map_err(unusable)
    }

    /// Expanded, once all are found to be sound.
    pub(super) fn matrices(
        &self,
        shares: Vec<Share<u8>>,
        dealers: &[u8],
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let Setup { parties, tree, .. } = self.setup;
        if dealers.len() != parties.for_product() || !parties.are_some(dealers) {
            return Err("so many servers have to deal as give back a product".into());
        }
        if shares.len() != usize::from(tree.height()) + 1 {
            return Err(
                "an eviction has a matrix for each level, and one for the last sibling".into()
            );
        }
        let bytes = 2 * tree.slots() * tree.slots();
        if !shares.iter().all(|share| share.is_of::<Gf256>(bytes)) {
            return Err(wrong_length());
        }
        shares.into_iter().map(|share| elements(share, bytes)).collect()
    }

    pub(super) fn go_back(&mut self, evictions: u64) -> Result<(), Refusal> {
        let Record { at, written_before, .. } = self.record;
        if at.evictions == evictions {
            return Ok(());
        }
        if at != (Point { evictions: evictions + 1, written: 0 }) {
            return Err("this server is further, or was never there".into());
        }
        let Some(written) = written_before else {
            return Err(has_nothing_before(
                "the shares of this server were put where they are: it was never before that",
            ));
        };
        let before = Point { evictions, written };
        self.check_marks_before_eviction(before)?;
        let record = Record { at: before, ..self.record };
        let record = self.with_sums(record).map_err(unusable)?;
        self.keep(record).map_err(unusable)
    }

    pub(super) fn check_slots(&self, Slots { bucket, first, count }: Slots) -> Result<(), Refusal> {
        let Setup { tree, block_bytes, .. } = self.setup;
        if bucket.level() > tree.height() || first + count > tree.slots() {
            return Err("the tree has no such slot".into());
        }
        let is_short = count <= Slots::at_once(block_bytes);
        is_short.then_some(()).ok_or_else(|| "so many slots are too long for a message".into())
    }

    pub(super) fn fetched(&self, at: Point, slots: Slots) -> Result<Vec<u8>, Refusal> {
        self.check_slots(slots)?;
        self.check_can_be_fetched(at)?;
        let block_bytes = self.setup.block_bytes;
        let mut shares = vec![0; slots.count * block_bytes];
        if let Some(bucket) = self.bucket(slots.bucket, at)
            && slots.first < bucket.slots
        {
            let held = (bucket.slots - slots.first).min(slots.count);
            bucket.read(slots.first, &mut shares[..held * block_bytes]).map_err(unusable)?;
        }
        self.with_marks(at, slots, shares)
    }

    /// Before anything else was done.
    pub(super) fn check_new(&self) -> Result<(), Refusal> {
        self.is_new()
            .then_some(())
            .ok_or_else(|| "the tree has been used: shares can only be put into a new one".into())
    }

    pub(super) fn put(&mut self, at: Point, slots: Slots, share: Share<u8>) -> Result<(), Refusal> {
        self.check_slots(slots)?;
        self.check_new()?;
        if at.written > self.setup.tree.accesses() {
            return Err("no root holds so many blocks".into());
        }
        let share = elements(share, slots.count * self.setup.fetched_bytes())?;
        let holds = |bucket: &Bucket<'_>| slots.first + slots.count <= bucket.slots;
        let is_held = self.bucket(slots.bucket, at).as_ref().is_some_and(holds);
        let share = if is_held { self.without_marks(at, slots, share)? } else { share };
        let bucket = self.bucket(slots.bucket, at).filter(holds);
        let bucket = bucket.ok_or("at this point the slot is zeros everywhere")?;
        bucket.write(slots.first, &share).map_err(unusable)?;
        // It is not asked for again, if the server starts again before all is there.
        self.sync_bucket(slots.bucket).map_err(unusable)
    }

    pub(super) fn adopt(&mut self, at: Point) -> Result<(), Refusal> {
        if self.record.at == at {
            return Ok(());
        }
        self.check_new()?;
        if at.written > self.setup.tree.accesses() {
            return Err("no root holds so many blocks".into());
        }
        self.sync_buckets().map_err(unusable)?;
        let record = Record { at, written_before: None, ..self.record };
        let record = self.with_sums(record).map_err(unusable)?;
        self.keep(record).map_err(unusable)
    }
}

/// It cannot go back to where others are: its shares have to be made anew.
pub(super) fn has_nothing_before(why: &str) -> Refusal {
    Refusal { kind: StoreErrorKind::Damaged, why: why.into() }
}

fn elements(share: Share<u8>, count: usize) -> Result<Vec<u8>, Refusal> {
    share.into_elements::<Gf256>(count).ok_or_else(wrong_length)
}

fn wrong_length() -> Refusal {
    "a share has another length than what is shared".into()
}
