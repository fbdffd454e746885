//! Trips of a path between the client and storage: read and open, seal and write.

use super::{Location, TreeConfig};
use crate::bucket::{BucketFormat, corrupt};
use crate::error::{Error, ErrorKind};
use crate::geometry::{BucketId, Leaf, evictions_of_bucket};
use crate::hint;
use crate::seal::{Opened, SealedRun, Sealer, WriteCounter, stored_counter};
use crate::stash::{BlockRoom, PathPlan};
use crate::store::{BucketStore, Frames, Part, Piece, TreeId};

/// Where the counter that seals the body of a bucket comes from.
#[derive(Clone, Copy)]
pub(super) enum BodyCounters {
    /// It is the one stored in the header (Path ORAM).
    Stored,
    /// It is how many of so many evictions have written the bucket (RAW ORAM's `IV1`).
    Evictions(u64),
}

/// A block in an opened bucket.
pub(super) struct FoundBlock<'a, 'b> {
    pub(super) address: u64,
    pub(super) leaf: Leaf,
    body: &'a mut Opened<'b>,
    block_bytes: usize,
}

impl FoundBlock<'_, '_> {
    /// Opens the block itself.
    #[inline]
    pub(super) fn open_into(self, block: &mut [u8]) {
        self.body.read(block);
    }

    /// Leaves the block sealed.
    pub(super) fn pass_over(self) {
        self.body.skip(self.block_bytes);
    }
}

/// The place of one block in storage.
#[derive(Clone, Copy)]
pub(super) struct SlotOnPath {
    piece: usize,
    slot: usize,
}

/// The untrusted side of one tree, and what is needed to talk to it.
pub(super) struct PathIo<S> {
    tree: TreeId,
    /// The levels above are kept on the client.
    first_level: u8,
    format: BucketFormat,
    store: S,
    sealer: Sealer,
    writes: WriteCounter,
    /// The pieces of the trip under way.
    pieces: Vec<Piece>,
    runs: Vec<SealedRun>,
    /// Opened address tables, one after another, `table_room` bytes each.
    addresses: Vec<u8>,
    leaves: Vec<u8>,
    table_room: usize,
}

impl<S: BucketStore> PathIo<S> {
    /// # Errors
    /// When the configuration contradicts itself, or `store` has no tree of that shape.
    pub(super) fn new(config: &TreeConfig, sealer: Sealer, store: S) -> Result<Self, Error> {
        let format = config.format()?;
        if store.shape(config.tree) != Some(&format.shape()) {
            return Err(Error::new(
                ErrorKind::StoreMismatch,
                format!(
                    "the store's tree {} does not have the shape of this configuration: make the \
                     store with the configuration's shape()",
                    config.tree.0
                ),
            ));
        }
        let table_room = format.table_room();
        Ok(Self {
            tree: config.tree,
            first_level: config.tree_top_levels,
            addresses: vec![0; table_room * format.geometry().levels()],
            leaves: vec![0; table_room],
            table_room,
            format,
            store,
            sealer,
            writes: WriteCounter::new(),
            pieces: Vec::new(),
            runs: Vec::new(),
        })
    }

    pub(super) fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    pub(super) fn aes_blocks(&self) -> u64 {
        self.sealer.aes_blocks()
    }

    /// A counter for the next write, never given before.
    pub(super) fn fresh_counter(&mut self) -> Result<u64, Error> {
        self.writes.advance()
    }

    pub(super) fn prefetch(&mut self, leaf: Leaf) {
        self.aim(leaf, Part::Whole);
        self.store.prefetch(&self.pieces);
    }

    /// Reads the path to `leaf`, opens it, and hands over each block, the root's first.
    #[inline]
    pub(super) fn open_path(
        &mut self,
        leaf: Leaf,
        bodies: BodyCounters,
        each: impl FnMut(FoundBlock<'_, '_>),
    ) -> Result<(), Error> {
        self.aim(leaf, Part::Whole);
        self.open_pieces(bodies, each)
    }

    /// Reads every bucket in storage, one by one, and names each block in it.
    pub(super) fn visit_blocks(
        &mut self,
        bodies: BodyCounters,
        visit: &mut dyn FnMut(Location, u64, Leaf),
    ) -> Result<(), Error> {
        for bucket in (0..self.format.geometry().buckets()).map(BucketId) {
            if bucket.level() >= self.first_level {
                self.pieces.clear();
                self.pieces.push(Piece {
                    tree: self.tree,
                    bucket,
                    part: Part::Whole,
                });
                self.open_pieces(bodies, |block| {
                    visit(Location::Bucket(bucket), block.address, block.leaf);
                    block.pass_over();
                })?;
            }
        }
        Ok(())
    }

    /// Seals what `plan` holds for the storage levels of the path to `leaf`, and writes it.
    #[inline]
    pub(super) fn seal_path(
        &mut self,
        leaf: Leaf,
        counter: u64,
        bodies: BodyCounters,
        plan: &PathPlan,
        blocks: &BlockRoom,
    ) -> Result<(), Error> {
        self.aim(leaf, Part::Whole);
        let Self {
            format,
            store,
            sealer,
            pieces,
            runs,
            addresses,
            leaves,
            ..
        } = self;
        let geometry = format.geometry();
        runs.clear();
        for (i, Piece { bucket, .. }) in pieces.iter().enumerate() {
            let body_counter = match bodies {
                BodyCounters::Stored => counter,
                BodyCounters::Evictions(g) => evictions_of_bucket(g, *bucket),
            };
            push_bucket_runs(runs, format, i, *bucket, counter, body_counter);
        }
        store.write(pieces, &mut |blanks| {
            sealer.seal(blanks, runs, |run, sealing| {
                let level = usize::from(pieces[run / 2].bucket.level());
                let planned = plan.bucket(level, geometry);
                if run % 2 == 0 {
                    let table = &mut addresses[..format.address_table_bytes(level)];
                    table.fill(0);
                    for slot in 0..geometry.slots(level) {
                        let address = planned.get(slot).map(|entry| entry.address);
                        format.put_address(table, slot, address);
                    }
                    sealing.write(table);
                } else {
                    let table = &mut leaves[..format.leaf_table_bytes(level)];
                    table.fill(0);
                    for (slot, entry) in planned.iter().enumerate() {
                        format.put_leaf(table, slot, entry.leaf);
                    }
                    sealing.write(table);
                    for entry in planned {
                        sealing.write(blocks.get(entry.place));
                    }
                }
            })
        })?;
        Ok(())
    }

    /// The first half of an access-only access: reads the whole path to `leaf`, opens the headers
    /// alone, finds `address`, and opens that one block into `block`.
    ///
    /// The headers stay opened for [`Self::seal_headers`]. Without the block on the path, some
    /// other block is opened and forgotten, so that the work is the same.
    pub(super) fn open_block(
        &mut self,
        leaf: Leaf,
        address: u64,
        evictions: u64,
        block: &mut [u8],
    ) -> Result<Option<SlotOnPath>, Error> {
        self.aim(leaf, Part::Whole);
        let Self {
            format,
            store,
            sealer,
            pieces,
            runs,
            addresses,
            table_room,
            ..
        } = self;
        let frames = read_checked(store, pieces, format)?;

        runs.clear();
        for (i, Piece { bucket, .. }) in pieces.iter().enumerate() {
            let bytes = format.address_table_bytes(usize::from(bucket.level()));
            runs.push(SealedRun::header(
                i,
                *bucket,
                stored_counter(frames.get(i)),
                bytes,
            ));
        }
        sealer.open(frames, runs, |i, mut header| {
            let bytes = runs[i].mask.bytes;
            header.read(&mut addresses[i * *table_room..][..bytes]);
        });

        let mut found = None;
        for (i, Piece { bucket, .. }) in pieces.iter().enumerate() {
            let slots = format.geometry().slots(usize::from(bucket.level()));
            let table = &mut addresses[i * *table_room..][..*table_room];
            if runs[i].mask.counter == 0 {
                check_absent(evictions_of_bucket(evictions, *bucket))?;
                (0..slots).for_each(|slot| format.put_address(table, slot, None));
            }
            for slot in 0..slots {
                if format.address(table, slot)? == Some(address)
                    && found.replace(SlotOnPath { piece: i, slot }).is_some()
                {
                    return Err(corrupt("a block that is on the path twice"));
                }
            }
        }

        // Storage shows which bytes it was made to load: all of them, whatever is opened.
        (0..pieces.len()).for_each(|i| hint::load(frames.get(i)));

        let opened = found.unwrap_or(SlotOnPath { piece: 0, slot: 0 });
        let bucket = pieces[opened.piece].bucket;
        let level = usize::from(bucket.level());
        let counter = evictions_of_bucket(evictions, bucket);
        if found.is_some() && counter == 0 {
            return Err(corrupt("a block that no eviction can have put there"));
        }
        let body = SealedRun::body(
            opened.piece,
            bucket,
            counter,
            format.body_offset(level),
            format.slot_in_body(level, opened.slot),
            format.block_bytes(),
        );
        sealer.open(frames, &[body], |_, mut body| body.read(block));
        Ok(found)
    }

    /// The second half of an access-only access: takes the block in `removed` out of its header,
    /// and writes all headers of the path back under a fresh counter.
    pub(super) fn seal_headers(
        &mut self,
        counter: u64,
        removed: Option<SlotOnPath>,
    ) -> Result<(), Error> {
        let Self {
            format,
            store,
            sealer,
            pieces,
            runs,
            addresses,
            table_room,
            ..
        } = self;
        if let Some(SlotOnPath { piece, slot }) = removed {
            format.put_address(&mut addresses[piece * *table_room..], slot, None);
        }
        runs.clear();
        for (i, piece) in pieces.iter_mut().enumerate() {
            piece.part = Part::Header;
            let bytes = format.address_table_bytes(usize::from(piece.bucket.level()));
            runs.push(SealedRun::header(i, piece.bucket, counter, bytes));
        }
        store.write(pieces, &mut |blanks| {
            sealer.seal(blanks, runs, |i, header| {
                header.write(&addresses[i * *table_room..][..runs[i].mask.bytes]);
            })
        })?;
        Ok(())
    }

    /// Sets the pieces of the next trip to the storage levels of the path to `leaf`.
    #[inline]
    fn aim(&mut self, leaf: Leaf, part: Part) {
        let (tree, leaf_level) = (self.tree, self.format.geometry().leaf_level());
        self.pieces.clear();
        self.pieces
            .extend((self.first_level..=leaf_level).map(|level| Piece {
                tree,
                bucket: BucketId::on_path(leaf, level),
                part,
            }));
    }

    #[inline]
    fn open_pieces(
        &mut self,
        bodies: BodyCounters,
        mut each: impl FnMut(FoundBlock<'_, '_>),
    ) -> Result<(), Error> {
        let Self {
            format,
            store,
            sealer,
            pieces,
            runs,
            addresses,
            leaves,
            ..
        } = self;
        let frames = read_checked(store, pieces, format)?;
        runs.clear();
        for (i, Piece { bucket, .. }) in pieces.iter().enumerate() {
            let stored = stored_counter(frames.get(i));
            let body_counter = match bodies {
                BodyCounters::Stored => stored,
                BodyCounters::Evictions(g) => evictions_of_bucket(g, *bucket),
            };
            if stored == 0 {
                check_absent(body_counter)?;
            }
            push_bucket_runs(runs, format, i, *bucket, stored, body_counter);
        }
        let mut outcome = Ok(());
        sealer.open(frames, runs, |run, mut opened| {
            let bucket = pieces[run / 2].bucket;
            let level = usize::from(bucket.level());
            let absent = runs[run & !1].mask.counter == 0;
            if outcome.is_err() || absent {
                return;
            }
            if run % 2 == 0 {
                opened.read(&mut addresses[..format.address_table_bytes(level)]);
            } else {
                opened.read(&mut leaves[..format.leaf_table_bytes(level)]);
                let written = runs[run].mask.counter != 0;
                outcome = (0..format.geometry().slots(level)).try_for_each(|slot| {
                    match format.address(addresses, slot)? {
                        None => opened.skip(format.block_bytes()),
                        Some(_) if !written => {
                            return Err(corrupt("a block that no eviction can have put there"));
                        }
                        Some(address) => each(FoundBlock {
                            address,
                            leaf: format.leaf(leaves, slot, bucket)?,
                            body: &mut opened,
                            block_bytes: format.block_bytes(),
                        }),
                    }
                    Ok(())
                });
            }
        });
        outcome
    }
}

/// Reads `pieces`, each a whole bucket, and checks that the store returned what was asked for.
#[inline]
fn read_checked<'s, S: BucketStore>(
    store: &'s mut S,
    pieces: &[Piece],
    format: &BucketFormat,
) -> Result<Frames<'s>, Error> {
    let frames = store.read(pieces)?;
    let fits = frames.len() == pieces.len()
        && pieces.iter().enumerate().all(|(i, piece)| {
            let level = usize::from(piece.bucket.level());
            frames.get(i).len() == format.body_offset(level) + format.body_bytes(level)
        });
    if fits {
        Ok(frames)
    } else {
        Err(corrupt("more or fewer bytes than its shape"))
    }
}

/// A bucket whose header was never written cannot have been evicted to.
fn check_absent(body_counter: u64) -> Result<(), Error> {
    if body_counter == 0 {
        Ok(())
    } else {
        Err(corrupt("nothing, although it has been written"))
    }
}

/// The two runs of a whole bucket: header, then body.
#[inline]
fn push_bucket_runs(
    runs: &mut Vec<SealedRun>,
    format: &BucketFormat,
    piece: usize,
    bucket: BucketId,
    header_counter: u64,
    body_counter: u64,
) {
    let level = usize::from(bucket.level());
    let header_bytes = format.address_table_bytes(level);
    runs.push(SealedRun::header(
        piece,
        bucket,
        header_counter,
        header_bytes,
    ));
    let (offset, bytes) = (format.body_offset(level), format.body_bytes(level));
    runs.push(SealedRun::body(
        piece,
        bucket,
        body_counter,
        offset,
        0,
        bytes,
    ));
}
