//! Metadata of slots on a server with its shares in files: stored before each block, with the
//! [marks](super::marks) of taken blocks.
//!
//! In the stored slots, all marks are shares of zero. When the server reads metadata, it adds the
//! marks of blocks that were taken since the slots were written.

use oblivio_core::{BucketId, Leaf};

use super::evict;
use super::files::{BlockPart, Files, LastQuery};
use super::marks::WriteIdentity;
use super::requests::cannot_roll_back;
use super::unusable;
use crate::field::{Field, Gf256};
use crate::message::{Refusal, Setup, Slots, TreePoint};

impl Files {
    /// The metadata of a path, beginning with the root's slots, as shares of degree *t*. See
    /// [`Request::Metadata`](crate::message::Request::Metadata).
    pub(super) fn metadata(&self, at: TreePoint, leaf: Leaf) -> Result<Vec<u8>, Refusal> {
        self.check_at(at)?;
        let Setup { tree, metadata_bytes, .. } = self.setup;
        let Some(marks) = self.marks() else {
            return Err("slots of this tree have no metadata".into());
        };
        if leaf.0 >= tree.leaves() {
            return Err("the tree has no such path".into());
        }
        let part = BlockPart { first: 0, bytes: metadata_bytes };
        let mut out = vec![0; tree.path_slots() * metadata_bytes];
        for (bucket, out) in tree.path(leaf).zip(out.chunks_mut(tree.slots() * metadata_bytes)) {
            let Some(held) = self.bucket(bucket, at) else { continue };
            let read = held.read_part(part).map_err(unusable)?;
            out[..read.len()].copy_from_slice(&read);
            self.check_marks_are_known(bucket, at)?;
            let marks = marks.of(bucket, at).map_err(unusable)?;
            let slots = out[..read.len()].chunks_exact_mut(metadata_bytes);
            for (held, mark) in slots.filter_map(<[u8]>::last_mut).zip(&marks) {
                *held = Gf256::add(*held, *mark);
            }
        }
        Ok(out)
    }

    /// Marks the block that was selected before the write after `at` as taken. The marks become
    /// durable with the record of the write. Returns the checksum of the query, for the record; 0
    /// if slots have no metadata. Fails if this server has no query for this write, for example
    /// after a restart.
    pub(super) fn mark_taken(&mut self, at: TreePoint) -> Result<u32, Refusal> {
        let Some(marks) = self.marks() else { return Ok(0) };
        let Some(LastQuery { leaf, query, .. }) = self.last_query.as_ref().filter(|it| it.at == at)
        else {
            // Either the client broke the protocol, or this server was restarted since the select.
            return Err(evict::of_another(
                "this server has no query for this write: select the block again".into(),
            ));
        };
        let write = WriteIdentity::new(*leaf, query);
        if marks.remove_other_write(at, write).map_err(unusable)? {
            self.sync_bucket(BucketId::ROOT).map_err(unusable)?;
        }
        if let (Some(marks), Some(LastQuery { leaf, query, .. })) = (self.marks(), &self.last_query)
        {
            marks.add(at, *leaf, query).map_err(unusable)?;
        }
        Ok(write.query_sum())
    }

    /// Fails if the client asks for an earlier point `at`, and the marks of that point are lost. An
    /// eviction that was rolled back may have overwritten them, or the server was rebuilt and never
    /// had them.
    fn check_marks_are_known(&self, bucket: BucketId, at: TreePoint) -> Result<(), Refusal> {
        let Some(marks) = self.marks().filter(|_| at != self.record.at) else { return Ok(()) };
        let are_known = marks.are_known(bucket, at).map_err(unusable)?;
        are_known.then_some(()).ok_or_else(|| {
            cannot_roll_back("this server no longer has the marks before its last write")
        })
    }

    /// Appends to each slot its mark, if slots have metadata. Fetches and puts transfer slots in
    /// this form.
    pub(super) fn with_marks(
        &self,
        at: TreePoint,
        Slots { bucket, first, .. }: Slots,
        slots: Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        let Some(marks) = self.marks() else { return Ok(slots) };
        self.check_marks_are_known(bucket, at)?;
        let marks = match self.bucket(bucket, at) {
            Some(_) => marks.of(bucket, at).map_err(unusable)?,
            None => vec![0; self.setup.tree.slots()],
        };
        let each = slots.chunks_exact(self.setup.block_bytes).zip(&marks[first..]);
        Ok(each.flat_map(|(slot, mark)| [slot, &[*mark]].concat()).collect())
    }

    /// Removes the marks from slots that a client puts onto a new server, and stores the marks.
    /// Returns the slots without marks.
    pub(super) fn without_marks(
        &mut self,
        at: TreePoint,
        Slots { bucket, first, .. }: Slots,
        slots: Vec<u8>,
    ) -> Result<Vec<u8>, Refusal> {
        let Some(marks) = self.marks() else { return Ok(slots) };
        let (mut alone, mut taken) = (Vec::with_capacity(slots.len()), Vec::new());
        for slot in slots.chunks_exact(self.setup.block_bytes + 1) {
            if let [slot @ .., mark] = slot {
                alone.extend(slot);
                taken.push(*mark);
            }
        }
        marks.load(bucket, at, first, &taken).map_err(unusable)?;
        self.sync_bucket(BucketId::ROOT).map_err(unusable)?;
        Ok(alone)
    }
}
