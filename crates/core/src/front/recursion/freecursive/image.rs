//! Images of Freecursive ORAM over a scheme that has images.
//!
//! An image does not contain the keys, which follow from the coins that the ORAM is made with. It
//! contains a fingerprint of the keys, so that reading can verify that the coins were the same.

use alloc::string::ToString;
use std::io::{self, Read, Write};

use rand_core::CryptoRng;

use super::FreecursiveOram;
use crate::error::check_not_broken;
use crate::front::{Front, FrontTally};
use crate::image::{Image, read_count, read_number, refuse, write_number};
use crate::scheme::Scheme;

impl<S: Scheme + Image, R: CryptoRng + Image> Image for FreecursiveOram<S, R> {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        check_not_broken(self.broken).map_err(io::Error::other)?;
        write_number(to, self.prf.fingerprint())?;
        write_tally(to, &self.tally)?;
        self.table.write_image(to)?;
        self.plb.write_image(to)?;
        self.coins.write_image(to)?;
        self.scheme.write_image(to)
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.broken = true;
        if read_number(from)? != self.prf.fingerprint() {
            return Err(refuse(
                "the state of an ORAM with other keys: use the seed it was made with",
            ));
        }
        self.tally = read_tally(from)?;
        self.table.read_image(from)?;
        self.plb.read_image(from)?;
        self.check_plb()?;
        self.coins.read_image(from)?;
        self.scheme.read_image(from)?;
        self.broken = false;
        Ok(())
    }

    fn check_image(&mut self) -> io::Result<()> {
        self.scheme.check_image()?;
        self.check_invariants().map_err(|error| refuse(&error.to_string()))
    }
}

impl<S: Scheme, R: CryptoRng> FreecursiveOram<S, R> {
    /// Checks that every block in the PLB is a block of the position map, and that its leaf is in
    /// the tree.
    fn check_plb(&self) -> io::Result<()> {
        let first = match self.space.depth() {
            0 => self.space.blocks(),
            _ => self.space.block(1, 0),
        };
        let geometry = &self.config().geometry;
        self.plb.blocks().try_for_each(|(_, held)| {
            let is_of_position_map = (first..self.space.blocks()).contains(&held.address);
            if is_of_position_map && geometry.contains_leaf(held.position.leaf) {
                Ok(())
            } else {
                Err(refuse("a block in the PLB that does not belong to the position map"))
            }
        })
    }
}

fn write_tally(to: &mut dyn Write, tally: &FrontTally) -> io::Result<()> {
    let FrontTally {
        data_accesses,
        position_map_accesses,
        remap_accesses,
        plb_hits,
        stash_hits,
        position_map_stash_hits,
    } = *tally;
    [data_accesses, position_map_accesses, remap_accesses]
        .into_iter()
        .chain([plb_hits, stash_hits, position_map_stash_hits])
        .try_for_each(|count| write_number(to, count))
}

fn read_tally(from: &mut dyn Read) -> io::Result<FrontTally> {
    Ok(FrontTally {
        data_accesses: read_count(from)?,
        position_map_accesses: read_count(from)?,
        remap_accesses: read_count(from)?,
        plb_hits: read_count(from)?,
        stash_hits: read_count(from)?,
        position_map_stash_hits: read_count(from)?,
    })
}
