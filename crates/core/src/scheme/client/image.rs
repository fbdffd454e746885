//! Images of clients: first the address and leaf of each block in the stash, then the bucket,
//! address and leaf of each block in the tree top. Blocks have no bytes in simulations, so none are
//! written.

use std::io::{self, Read, Write};

use super::Client;
use crate::geometry::{BucketId, Leaf};
use crate::image::{Image, read_below, read_number, refuse, write_number};
use crate::scheme::ClientLocation;
use crate::stash::Entry;

impl Image for Client {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        self.check_not_broken().map_err(io::Error::other)?;
        write_number(to, self.stash.len() as u64)?;
        for entry in self.stash.entries() {
            write_name(to, entry)?;
        }
        write_number(to, self.top.blocks().count() as u64)?;
        for (bucket, entry) in self.top.blocks() {
            write_number(to, bucket.0)?;
            write_name(to, entry)?;
        }
        Ok(())
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        for _ in 0..read_number(from)? {
            self.read_block(ClientLocation::Stash, from)?;
        }
        let buckets = (1 << self.top.levels()) - 1;
        for _ in 0..read_number(from)? {
            let bucket = read_below(from, buckets, "a bucket past the tree top")?;
            self.read_block(ClientLocation::TreeTop(BucketId(bucket)), from)?;
        }
        Ok(())
    }
}

impl Client {
    fn read_block(&mut self, location: ClientLocation, from: &mut dyn Read) -> io::Result<()> {
        let capacity = self.config.capacity;
        let address = read_below(from, capacity, "a block on the client past the capacity")?;
        let leaves = self.config.geometry.leaves();
        let leaf = Leaf(read_below(from, leaves, "a block on the client outside of the tree")?);
        if self.restore_client_block(location, address, leaf, &[]) {
            Ok(())
        } else if location == ClientLocation::Stash {
            Err(refuse("more blocks than the stash has room for"))
        } else {
            Err(refuse("a block of the tree top off its path, or without room"))
        }
    }
}

fn write_name(to: &mut dyn Write, Entry { address, leaf, .. }: &Entry) -> io::Result<()> {
    write_number(to, *address)?;
    write_number(to, leaf.0)
}
