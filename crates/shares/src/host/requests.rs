//! Client requests to one tree, except evictions and metadata. Each request is checked first, and a
//! refused request changes nothing.

use oblivio_core::StoreErrorKind;

use super::files::{Bucket, Files, LastQuery};
use super::record::Record;
use super::{select, unusable};
use crate::field::Gf256;
use crate::message::{Refusal, Select, Setup, Slots, TreePoint};
use crate::sharing::Share;

impl Files {
    /// Checks that `at` is the server's point, or the point before the last write.
    pub(super) fn check_at(&self, at: TreePoint) -> Result<(), Refusal> {
        let here = self.record.at;
        let is_here = at.evictions == here.evictions
            && (at.written == here.written || at.written + 1 == here.written);
        is_here.then_some(()).ok_or_else(|| self.wrong_point(at))
    }

    /// Checks that `at` is exactly the server's point.
    pub(super) fn check_is(&self, at: TreePoint) -> Result<(), Refusal> {
        (at == self.record.at).then_some(()).ok_or_else(|| self.wrong_point(at))
    }

    /// Checks that `at` is the server's point, or the point before the last write or the last
    /// eviction. The state before the eviction is kept until the next write. Until then the server
    /// can roll back, or be read together with a server that has not finished the eviction.
    fn check_can_be_fetched(&self, at: TreePoint) -> Result<(), Refusal> {
        let Record { at: here, written_before, .. } = self.record;
        let is_just_evicted = here == TreePoint { evictions: at.evictions + 1, written: 0 };
        if is_just_evicted && written_before == Some(at.written) {
            return self.check_marks_before_eviction(at);
        }
        self.check_at(at)
    }

    /// Fails if the marks from before the last eviction are lost: a write after the eviction may
    /// have overwritten them, and a crash may then have undone the write.
    fn check_marks_before_eviction(&self, before: TreePoint) -> Result<(), Refusal> {
        let Some(marks) = self.marks() else { return Ok(()) };
        let has_pages = marks.has_pages_before(before).map_err(unusable)?;
        has_pages.then_some(()).ok_or_else(|| {
            cannot_roll_back("this server no longer has the marks before its last eviction")
        })
    }

    fn wrong_point(&self, at: TreePoint) -> Refusal {
        let TreePoint { evictions, written } = self.record.at;
        Refusal::from(format!(
            "this server is at eviction {evictions}, write {written}, not at eviction {}, write {}",
            at.evictions, at.written
        ))
    }

    pub(super) fn selected(
        &mut self,
        at: TreePoint,
        select: Select<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        self.check_at(at)?;
        let Select { leaf, query } = select;
        let tree = self.setup.tree;
        if leaf.0 >= tree.leaves() {
            return Err("the tree has no such path".into());
        }
        let query = elements(query, tree.path_slots())?;
        let answer = select::select(self, at, leaf, &query).map_err(unusable)?;
        self.last_query = (self.setup.metadata_bytes > 0).then_some(LastQuery { at, leaf, query });
        Ok(answer)
    }

    pub(super) fn write(&mut self, at: TreePoint, block: Share<u8>) -> Result<(), Refusal> {
        self.check_at(at)?;
        if at.written == self.setup.tree.accesses() {
            return Err("the root is full and must be evicted first".into());
        }
        let block = elements(block, self.setup.block_bytes)?;
        let query_sum = self.mark_taken(at)?;
        self.write_block(at, &block, query_sum).map_err(unusable)
    }

    /// Expands a server's shares of matrices to their elements, after checking that all shares are
    /// valid, and that `dealers` are 2*t* + 1 different servers.
    pub(super) fn matrices(
        &self,
        shares: Vec<Share<u8>>,
        dealers: &[u8],
    ) -> Result<Vec<Vec<u8>>, Refusal> {
        let Setup { parties, tree, .. } = self.setup;
        if dealers.len() != parties.for_product() || !parties.are_distinct_servers(dealers) {
            return Err("the dealers must be 2t + 1 different servers".into());
        }
        if shares.len() != usize::from(tree.height()) + 1 {
            return Err(
                "an eviction needs one matrix for each level, and one for the sibling leaf".into(),
            );
        }
        let bytes = 2 * tree.slots() * tree.slots();
        if !shares.iter().all(|share| share.has_length::<Gf256>(bytes)) {
            return Err(wrong_length());
        }
        shares.into_iter().map(|share| elements(share, bytes)).collect()
    }

    pub(super) fn roll_back(&mut self, evictions: u64) -> Result<(), Refusal> {
        let Record { at, written_before, .. } = self.record;
        if at.evictions == evictions {
            return Ok(());
        }
        if at != (TreePoint { evictions: evictions + 1, written: 0 }) {
            return Err(
                "this server cannot roll back to this eviction: it is at another point".into()
            );
        }
        let Some(written) = written_before else {
            return Err(cannot_roll_back(
                "the shares of this server were rebuilt: it has no state before them",
            ));
        };
        let before = TreePoint { evictions, written };
        self.check_marks_before_eviction(before)?;
        let record = Record { at: before, ..self.record };
        let record = self.with_sums(record).map_err(unusable)?;
        self.store_record(record).map_err(unusable)
    }

    pub(super) fn check_slots(&self, Slots { bucket, first, count }: Slots) -> Result<(), Refusal> {
        let Setup { tree, block_bytes, .. } = self.setup;
        if bucket.level() > tree.height() || first + count > tree.slots() {
            return Err("the tree has no such slot".into());
        }
        let is_short = count <= Slots::at_once(block_bytes);
        is_short.then_some(()).ok_or_else(|| "too many slots for one message".into())
    }

    pub(super) fn fetched(&self, at: TreePoint, slots: Slots) -> Result<Vec<u8>, Refusal> {
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

    /// Checks that the tree is new.
    pub(super) fn check_new(&self) -> Result<(), Refusal> {
        self.is_new()
            .then_some(())
            .ok_or_else(|| "the tree was used before: put shares into a new tree".into())
    }

    pub(super) fn put(
        &mut self,
        at: TreePoint,
        slots: Slots,
        share: Share<u8>,
    ) -> Result<(), Refusal> {
        self.check_slots(slots)?;
        self.check_new()?;
        if at.written > self.setup.tree.accesses() {
            return Err("the root cannot hold this many blocks".into());
        }
        let share = elements(share, slots.count * self.setup.fetched_bytes())?;
        let holds = |bucket: &Bucket<'_>| slots.first + slots.count <= bucket.slots;
        let is_held = self.bucket(slots.bucket, at).as_ref().is_some_and(holds);
        let share = if is_held { self.without_marks(at, slots, share)? } else { share };
        let bucket = self.bucket(slots.bucket, at).filter(holds);
        let bucket = bucket.ok_or("at this point the slot is empty on all servers")?;
        bucket.write(slots.first, &share).map_err(unusable)?;
        // The client does not put these slots again if the server restarts, so make them durable.
        self.sync_bucket(slots.bucket).map_err(unusable)
    }

    pub(super) fn set_point(&mut self, at: TreePoint) -> Result<(), Refusal> {
        if self.record.at == at {
            return Ok(());
        }
        self.check_new()?;
        if at.written > self.setup.tree.accesses() {
            return Err("the root cannot hold this many blocks".into());
        }
        self.sync_buckets().map_err(unusable)?;
        let record = Record { at, written_before: None, ..self.record };
        let record = self.with_sums(record).map_err(unusable)?;
        self.store_record(record).map_err(unusable)
    }
}

/// The refusal of a server that cannot roll back: its shares must be rebuilt.
pub(super) fn cannot_roll_back(why: &str) -> Refusal {
    Refusal { kind: StoreErrorKind::Damaged, why: why.into() }
}

fn elements(share: Share<u8>, count: usize) -> Result<Vec<u8>, Refusal> {
    share.into_elements::<Gf256>(count).ok_or_else(wrong_length)
}

fn wrong_length() -> Refusal {
    "a share has the wrong length".into()
}
