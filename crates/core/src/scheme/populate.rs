//! Fills an empty tree at once, without an access for each block.
//!
//! Each block goes into the deepest bucket of its path that has room. So buckets near the leaves
//! are fuller, and buckets near the root emptier, than in a tree in use. Accesses correct this:
//! after about one access per bucket of a level, the level is as full as in a tree in use. So
//! before a measurement on a level, make as many accesses as the level has buckets.

use alloc::vec;

use super::client::Client;
use super::path_io::{PathTree, PathTrips};
use super::tag_tree::TagTree;
use super::{ClientLocation, PathScheme};
use crate::error::{Error, ErrorKind};
use crate::geometry::{BucketId, Leaf};

impl<S: PathTree> PathScheme<S> {
    /// Fills the tree with blocks of zeros: see [`Scheme::populate`](super::Scheme::populate).
    pub(super) fn fill(
        &mut self,
        blocks: &mut dyn Iterator<Item = (u64, Leaf)>,
    ) -> Result<(), Error> {
        self.client.begin()?;
        let config = self.client.config.clone();
        let (mut tree, mut rest) = TagTree::filled(&config, blocks)?;
        for bucket in (0..(1 << config.tree_top_levels) - 1).map(BucketId) {
            let location = ClientLocation::TreeTop(bucket);
            let tags = tree.drain(bucket).into_iter();
            rest.extend(tags.filter(|tag| !restore_zeros(&mut self.client, location, *tag)));
        }
        self.io.fill(tree, &self.client)?;
        for tag in rest {
            let within_bound = self.client.stash.len() < config.stash_blocks_max;
            if !(within_bound && restore_zeros(&mut self.client, ClientLocation::Stash, tag)) {
                let message =
                    "more blocks than the stash may hold found no bucket: use a larger tree";
                return Err(Error::new(ErrorKind::StashFull, message));
            }
        }
        self.client.end();
        Ok(())
    }
}

fn restore_zeros(
    client: &mut Client,
    location: ClientLocation,
    (address, leaf): (u64, Leaf),
) -> bool {
    let zeros = vec![0; client.config.block_bytes];
    client.restore_client_block(location, address, leaf, &zeros)
}
