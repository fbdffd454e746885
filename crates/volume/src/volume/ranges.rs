//! Accesses to ranges of blocks, for schemes that have them.

use std::ops::Range;

use oblivio_core::Op;
use oblivio_core::durable::{RangePolicy, Want};
use oblivio_core::wiped::WipedBytes;

use super::Volume;
use crate::error::{VolumeError, VolumeErrorKind};

/// An aligned range of `2^class` blocks that is accessed at once. A single block is a range of
/// class 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// The first block of the range.
    pub first: u64,
    /// The class of the range. Storage sees it.
    pub class: u8,
}

impl Extent {
    /// The range of a single block, of class 0.
    pub fn of_block(block: u64) -> Self {
        Self { first: block, class: 0 }
    }

    /// The longest range that begins with `first`, has only blocks below `end`, and has one of
    /// `classes`, which ascend. If there is none, the range of the single block `first`.
    pub fn longest(classes: &[u8], first: u64, end: u64) -> Self {
        let of_class = classes.iter().map(|class| Self { first, class: *class });
        of_class.rev().find(|extent| extent.is_within(end)).unwrap_or(Self::of_block(first))
    }

    /// Whether the range is aligned and has only blocks below `end`.
    fn is_within(self, end: u64) -> bool {
        let blocks = 1 << self.class;
        self.first.is_multiple_of(blocks)
            && self.first.checked_add(blocks).is_some_and(|behind| behind <= end)
    }

    /// The range of a class that contains a block.
    pub fn around(block: u64, class: u8) -> Self {
        Self { first: block >> class << class, class }
    }

    /// The ranges of a request for `blocks` with [`RangePolicy::Exact`]: the range in which the
    /// request begins, and the next. Both have the shortest of `classes`, which ascend, that is
    /// long enough for the request, or else the longest. After the last range of the disk comes the
    /// first. If the class is 0, or the disk has a single range, there is no second range.
    pub fn exactly(classes: &[u8], blocks: Range<u64>, disk_blocks: u64) -> Vec<Self> {
        let class = RangePolicy::exact_class(classes, blocks.end - blocks.start);
        let first = Self::around(blocks.start, class);
        let next = Self { first: first.blocks().end % disk_blocks.max(1), class };
        if class == 0 || next == first { vec![first] } else { vec![first, next] }
    }

    /// The blocks of the range.
    pub fn blocks(self) -> Range<u64> {
        self.first..self.first + (1 << self.class)
    }

    /// The number of blocks of the range.
    pub fn count(self) -> usize {
        1 << self.class
    }

    pub(super) fn want(self) -> Want {
        match self.class {
            0 => Want::Block(self.first),
            class => Want::Range { first: self.first, class },
        }
    }
}

impl Volume {
    /// The classes `i` for which aligned ranges of `2^i` blocks can be accessed at once, in
    /// ascending order. The first is 0. Public.
    pub fn range_classes(&self) -> &[u8] {
        &self.facts.range_classes
    }

    /// The rule by which a [`Disk`](crate::Disk) chooses the ranges to access. Public.
    pub fn range_policy(&self) -> RangePolicy {
        self.facts.range_policy
    }

    /// Accesses a range at once, with an operation for each of its blocks, in order. Storage sees
    /// the class.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] before anything is touched; any other breaks the volume.
    pub fn access_range(&mut self, extent: Extent, ops: &mut [Op<'_>]) -> Result<(), VolumeError> {
        self.check_not_broken()?;
        self.check_nothing_begun()?;
        self.check_range_access(extent, ops)?;
        self.unless_broken(|volume| {
            volume.make_room_for(extent.count())?;
            volume.carry_out(&[extent.want()], ops)
        })
    }

    /// Accesses ranges, one after the other. `op` returns the operation for a block. Blocks without
    /// an operation are read, and their contents dropped.
    ///
    /// # Errors
    /// As [`Self::access_range`].
    pub(crate) fn access_ranges<'a>(
        &mut self,
        extents: &[Extent],
        mut op: impl FnMut(u64) -> Option<Op<'a>>,
    ) -> Result<(), VolumeError> {
        for extent in extents {
            let mut given: Vec<_> = extent.blocks().map(&mut op).collect();
            let mut rest = self.room_for(extent.class);
            self.access_range(*extent, &mut with_rest(&mut given, &mut rest))?;
        }
        Ok(())
    }

    /// Makes exactly `accesses` accesses to ranges of a class: first to `extents`, in order, with
    /// the operation that `op` returns for a block, then dummies. Returns the old contents of
    /// `extents`, block by block; blocks with an operation are returned as zeros.
    ///
    /// Room is made for one access at a time, dummy or not. So the first trip waits only for the
    /// first access.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidRequest`] before anything is touched; any other breaks the volume.
    pub(crate) fn access_ranges_exactly<'a>(
        &mut self,
        extents: &[Extent],
        class: u8,
        accesses: usize,
        op: impl Fn(u64) -> Option<Op<'a>>,
    ) -> Result<Vec<Vec<WipedBytes>>, VolumeError> {
        self.check_not_broken()?;
        self.check_nothing_begun()?;
        extents.iter().try_for_each(|extent| self.check_extent(*extent))?;
        if extents.len() > accesses || extents.iter().any(|extent| extent.class != class) {
            let message = "there are more ranges than accesses, or a range of another class";
            return Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message));
        }
        self.unless_broken(|volume| {
            let mut read = Vec::with_capacity(accesses);
            for access in 0..accesses {
                let extent = extents.get(access);
                let mut rest = volume.room_for(class);
                let blocks = extent.map_or(0..0, |extent| extent.blocks());
                let mut given: Vec<_> = blocks.map(&op).collect();
                given.resize_with(rest.len(), || None);
                volume.make_room_for(rest.len())?;
                let want = extent.map_or(Want::DummyRange { class }, |extent| extent.want());
                volume.carry_out(&[want], &mut with_rest(&mut given, &mut rest))?;
                read.push(rest);
            }
            read.truncate(extents.len());
            Ok(read)
        })
    }

    /// Zeroed buffers for the blocks of a range.
    fn room_for(&self, class: u8) -> Vec<WipedBytes> {
        (0..1u64 << class).map(|_| WipedBytes::zeros(self.facts.block_bytes)).collect()
    }

    fn check_range_access(&self, extent: Extent, ops: &[Op<'_>]) -> Result<(), VolumeError> {
        self.check_extent(extent)?;
        if ops.len() == extent.count() && ops.iter().all(|op| self.is_of_one_block(op)) {
            return Ok(());
        }
        let message = "a range access needs one operation for each block, and no updates";
        Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message))
    }

    /// Checks that a range has one of the volume's classes, is aligned and ends within the volume.
    pub(super) fn check_extent(&self, extent: Extent) -> Result<(), VolumeError> {
        if self.range_classes().contains(&extent.class) && extent.is_within(self.blocks()) {
            return Ok(());
        }
        let message = "no such range: its class is not one of the volume's, or it is not aligned, \
                       or it goes past the end";
        Err(VolumeError::new(VolumeErrorKind::InvalidRequest, message))
    }
}

/// The given operations, with reads into `rest` for the blocks that have none.
fn with_rest<'r>(given: &'r mut [Option<Op<'_>>], rest: &'r mut [WipedBytes]) -> Vec<Op<'r>> {
    let ops = given.iter_mut().zip(rest).map(|(given, rest)| match given {
        Some(op) => op.reborrow(),
        None => Op::Read(rest),
    });
    ops.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_takes_two_ranges_that_are_as_long() {
        let of_request = |blocks| Extent::exactly(&[0, 2, 4], blocks, 64);
        for (blocks, class, first) in [
            (5..6, 0, &[5][..]),
            (5..7, 2, &[4, 8]),
            (4..8, 2, &[4, 8]),
            (3..8, 4, &[0, 16]),
            (47..63, 4, &[32, 48]),
            (60..64, 2, &[60, 0]),
        ] {
            let expected: Vec<_> =
                first.iter().map(|first| Extent { first: *first, class }).collect();
            assert_eq!(of_request(blocks.clone()), expected, "{blocks:?}");
        }
        assert_eq!(Extent::exactly(&[0, 6], 3..9, 64), [Extent { first: 0, class: 6 }]);
    }

    #[test]
    fn the_longest_range_is_aligned_and_ends_in_time() {
        let classes = [0, 2, 4];
        for (first, end, class) in [
            (0, 16, 4),
            (0, 15, 2),
            (4, 32, 2),
            (16, 32, 4),
            (3, 32, 0),
            (12, 15, 0),
            (0, 3, 0),
            (u64::MAX - 15, u64::MAX, 2),
        ] {
            assert_eq!(Extent::longest(&classes, first, end), Extent { first, class }, "{end}");
        }
        assert_eq!(Extent::longest(&[0], 0, 1 << 40), Extent::of_block(0));
        assert_eq!(Extent::around(23, 4).blocks(), 16..32);
    }
}
