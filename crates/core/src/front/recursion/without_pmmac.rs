//! Placeholder for PMMAC if the feature `pmmac` is disabled.

use crate::error::Error;
use crate::posmap::compressed::Count;

/// Stands for PMMAC if the feature is disabled. The type has no values.
pub(super) enum Pmmac {}

impl Pmmac {
    pub(super) fn seal(&self, _: u64, _: Count, _: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }

    pub(super) fn open(&self, _: u64, _: Count, _: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }
}

/// The data of a block. Without PMMAC, this is the whole block.
pub(super) fn data_of(block: &mut [u8]) -> &mut [u8] {
    block
}
