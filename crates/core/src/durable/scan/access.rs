//! One access: reads everything, and writes one bucket.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use super::impossible;
use super::params::{ScanParams, TRIP_BUCKETS};
use super::state::Head;
use crate::durable::{AnyStore, DurableConfig, SparseAddressSet};
use crate::error::{Error, ErrorKind};
use crate::pieces::TreeId;
use crate::scheme::Op;
use crate::seal::{BucketKind, BucketName, BucketPieces, EraSealer, MasterKey};
use crate::store::BucketStore;

/// The address of an entry without a block.
pub(super) const NO_BLOCK: u64 = u64::MAX;

/// A function that is called for each bucket, with the bucket's number, and its contents or the
/// error that prevents reading them.
type EachBucket<'a> = dyn FnMut(u64, Result<&[u8], Error>) -> Result<(), Error> + 'a;

/// The trivial ORAM over a store.
pub(super) struct ScanArray {
    pub(super) params: ScanParams,
    pub(super) tree: TreeId,
    pub(super) store: AnyStore,
    pub(super) sealer: EraSealer,
    /// The number of accesses (t), which starts at N + W. Public.
    pub(super) accesses: u64,
    /// The value of `accesses` in the last durable state, to which the client may return.
    pub(super) durable_accesses: u64,
    /// The blocks that have contents. Secret.
    pub(super) live: SparseAddressSet,
    /// Whether an access failed halfway.
    pub(super) broken: bool,
}

impl ScanArray {
    pub(super) fn new(
        params: ScanParams,
        key: MasterKey,
        trees: &[TreeId],
        store: AnyStore,
        Head { accesses, eras, live }: Head,
    ) -> Result<Self, Error> {
        let [tree] = *trees else {
            return Err(impossible("the scheme `scan` needs one tree"));
        };
        let shapes = params.shapes()?;
        if store.shape(tree) != shapes.first() {
            return Err(Error::new(
                ErrorKind::StoreMismatch,
                "the store does not have the shape of this configuration: create it with the \
                 shapes of the configuration",
            ));
        }
        let sealer = EraSealer::new(key, tree, eras);
        Ok(Self {
            params,
            tree,
            store,
            sealer,
            accesses,
            durable_accesses: accesses,
            live,
            broken: false,
        })
    }

    /// Reads the last `N` buckets, the latest first, at most `trip_buckets` of them per trip.
    /// Passes the contents of each bucket to `each`, or the error if the bucket is not authentic.
    /// Skips buckets that were never written; which buckets these are is public.
    ///
    /// If a trip fails, passes its error to `each` if the trip has one bucket, and otherwise
    /// returns it.
    pub(super) fn scan(
        &mut self,
        trip_buckets: u64,
        each: &mut EachBucket<'_>,
    ) -> Result<(), Error> {
        let oldest = self.oldest();
        let Self { params, tree, store, sealer, accesses, .. } = self;
        let mut table = Zeroizing::new(Vec::with_capacity(params.table_bytes()));
        let mut end = *accesses;
        while end > oldest {
            let start = end.saturating_sub(trip_buckets).max(oldest);
            let trip: Vec<_> = (start..end).rev().collect();
            let pieces: Vec<_> = trip.iter().map(|number| params.piece(*tree, *number)).collect();
            let frames = match store.read(&pieces) {
                Ok(frames) if frames.len() == trip.len() => Ok(frames),
                Ok(_) => Err(changed(trip[0] % params.ring())),
                Err(error) => Err(error.into()),
            };
            match frames {
                Ok(frames) => {
                    for (i, number) in trip.iter().enumerate() {
                        let sealed = frames.get(i);
                        let fits = sealed.len() == params.bucket_bytes();
                        let bucket = fits.then(|| sealer.verify(name(*number), sealed, &[]));
                        match bucket.flatten() {
                            Some(bucket) => {
                                bucket.open_table(&mut table);
                                each(*number, Ok(&table))?;
                            }
                            None => each(*number, Err(changed(*number % params.ring())))?,
                        }
                    }
                }
                // A caller that reads single buckets may continue without this one.
                Err(error) if trip.len() == 1 => each(trip[0], Err(error))?,
                Err(error) => return Err(error),
            }
            end = start;
        }
        Ok(())
    }

    /// Makes one access to the block `wanted`, or a dummy access if `wanted` is `None`.
    pub(super) fn access(&mut self, wanted: Option<u64>, op: &mut Op<'_>) -> Result<(), Error> {
        let (number, block_bytes) = (self.accesses, self.params.block_bytes as usize);
        // Besides the wanted block, the bucket carries on block `t mod N`.
        let carried = number % self.params.blocks;
        let is_carried = self.live.contains(carried);
        let was_live = wanted.is_some_and(|address| self.live.contains(address));
        let mut block = Zeroizing::new(vec![0; block_bytes]);
        let mut other = Zeroizing::new(vec![0; block_bytes]);
        let (mut found, mut found_other) = (false, false);
        self.scan(TRIP_BUCKETS, &mut |_, table| {
            for (address, bytes) in entries(table?, block_bytes) {
                // The latest comes first.
                if was_live && !found && Some(address) == wanted {
                    block.copy_from_slice(bytes);
                    found = true;
                }
                if is_carried && !found_other && address == carried {
                    other.copy_from_slice(bytes);
                    found_other = true;
                }
            }
            Ok(())
        })?;
        if found != was_live || found_other != is_carried {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "a block was not found: the client's state does not belong to this storage",
            ));
        }
        let mut is_live = was_live;
        if let Some(address) = wanted {
            op.apply(&mut block);
            if !matches!(op, Op::Read(_)) {
                is_live = true;
                self.live.insert(address);
            }
            if address == carried {
                other.copy_from_slice(&block);
            }
        }
        let mut table = Zeroizing::new(Vec::with_capacity(self.params.table_bytes()));
        for (address, bytes) in [
            (wanted.filter(|_| is_live), &block),
            (Some(carried).filter(|carried| self.live.contains(*carried)), &other),
        ] {
            table.extend_from_slice(&address.unwrap_or(NO_BLOCK).to_le_bytes());
            table.extend_from_slice(bytes);
        }
        let Self { params, tree, store, sealer, .. } = self;
        store.write(&[params.piece(*tree, number)], &mut |mut blanks| {
            let pieces = BucketPieces { head: 0, slots: None };
            sealer.seal(name(number), &table, core::iter::empty(), &mut blanks, pieces);
            blanks.sealed()
        })?;
        self.accesses += 1;
        Ok(())
    }

    /// The number of the oldest bucket that is read. Older buckets hold no latest copy, or do not
    /// exist.
    pub(super) fn oldest(&self) -> u64 {
        self.accesses.saturating_sub(self.params.blocks).max(self.params.first())
    }

    pub(super) fn accesses_left(&self) -> u64 {
        self.params.spare - (self.accesses - self.durable_accesses)
    }
}

/// The name of a bucket under the seal.
pub(super) fn name(number: u64) -> BucketName {
    BucketName { eviction: number, level: 0, kind: BucketKind::Blocks }
}

/// The entries of an opened bucket, each an address and a block. The address is [`NO_BLOCK`] if the
/// entry has no block.
pub(super) fn entries(table: &[u8], block_bytes: usize) -> impl Iterator<Item = (u64, &[u8])> {
    table.chunks(8 + block_bytes).filter_map(|entry| {
        let (address, block) = entry.split_first_chunk()?;
        Some((u64::from_le_bytes(*address), block))
    })
}

fn changed(place: u64) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!(
            "bucket {place} of storage holds changed bytes, or an older version. The storage is \
             damaged or was tampered with. The bucket was not used"
        ),
    )
}
