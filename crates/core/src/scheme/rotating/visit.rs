//! A visit to every block of a tree.

use super::super::Location;
use super::{ClientLocation, VersionedTree};
use crate::error::Error;
use crate::geometry::{BucketId, Leaf};
use crate::store::BucketStore;

/// A function that is called for each block of a tree, with its location, address, leaf and bytes.
type VisitBlocks<'v> = dyn FnMut(Location, u64, Leaf, &[u8]) + 'v;

impl<S: BucketStore> VersionedTree<S> {
    /// Reads the whole tree, and calls `visit` for each copy of a block that is not known to be
    /// taken: first on the client, then from the root down. Passes the number of buckets read so
    /// far to `progress`; the last number is [`Self::buckets_written`]. Storage sees a scan. Calls
    /// `damaged` for each bucket, and for each page of marks, that cannot be read or is not
    /// authentic. For a page, passes a bucket of the level that the page covers.
    ///
    /// # Errors
    /// [`ErrorKind::MustReopen`](crate::ErrorKind::MustReopen), and errors of `damaged`, which end
    /// the visit and leave the client broken.
    pub(crate) fn visit_blocks(
        &mut self,
        visit: &mut VisitBlocks<'_>,
        damaged: &mut dyn FnMut(BucketId, Error) -> Result<(), Error>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<(), Error> {
        self.client.begin()?;
        for (client_location, address, leaf, bytes) in self.client_blocks() {
            let location = match client_location {
                ClientLocation::TreeTop(bucket) => Location::Bucket(bucket),
                ClientLocation::Stash | ClientLocation::Frontend => Location::Stash,
            };
            visit(location, address, leaf, bytes);
        }
        let Self { io, store, client, taken, evictions, .. } = self;
        io.over(store).visit_blocks(
            *evictions,
            &mut client.blocks,
            taken.as_ref(),
            &mut |bucket, entry, bytes| {
                visit(Location::Bucket(bucket), entry.address, entry.leaf, bytes);
            },
            damaged,
            progress,
        )?;
        self.client.end();
        Ok(())
    }

    /// Number of buckets on the levels in storage, without spare places. Public.
    pub fn buckets_in_storage(&self) -> u64 {
        self.io.places.buckets()
    }

    /// Number of buckets that were ever written. Public.
    pub fn buckets_written(&self) -> u64 {
        self.io.places.buckets_written(self.evictions)
    }
}
