//! The PosMap Lookaside Buffer (PLB): position-map blocks on the client (Freecursive ORAM).
//!
//! It is *exclusive*: a block in it is not in the ORAM. It has to be, because a block in the ORAM is
//! moved by each access to it, and this one is used without any.

use zeroize::Zeroizing;

use super::leaf_prf::Position;
use crate::error::{Error, ErrorKind};
use crate::memory::zeros;

/// A set-associative cache: an address has `ways` places, and the one unused for longest goes first.
pub(super) struct Plb {
    sets: u64,
    ways: usize,
    lines: Vec<Line>,
    /// The bytes of the blocks, in the order of `lines`.
    bytes: Zeroizing<Vec<u8>>,
    block_bytes: usize,
    /// Uses so far.
    clock: u64,
}

/// A place of the PLB. It may be empty.
#[derive(Clone, Copy)]
struct Line {
    held: Option<Held>,
    last_use: u64,
}

/// A block in the PLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) address: u64,
    /// Where it is mapped to: no path that storage has seen for it.
    pub(super) position: Position,
}

/// Which place of the PLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineId(usize);

impl Plb {
    /// # Errors
    /// [`ErrorKind::InvalidConfig`] when the system has no memory for it.
    pub(super) fn new(blocks: usize, ways: usize, block_bytes: usize) -> Result<Self, Error> {
        let bytes = blocks.checked_mul(block_bytes).and_then(zeros).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidConfig,
                format!("no memory for a PLB of {blocks} blocks of {block_bytes} bytes: use a smaller one"),
            )
        })?;
        Ok(Self {
            sets: (blocks / ways) as u64,
            ways,
            lines: vec![Line { held: None, last_use: 0 }; blocks],
            bytes: Zeroizing::new(bytes),
            block_bytes,
            clock: 0,
        })
    }

    /// Client memory for blocks and their names.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + size_of_val(self.lines.as_slice())
    }

    /// Where a block is, if it is here.
    pub(super) fn find(&self, address: u64) -> Option<LineId> {
        self.set(address).find(|line| self.held(*line).is_some_and(|held| held.address == address))
    }

    /// As [`Self::find`], for a block that is used.
    pub(super) fn find_for_use(&mut self, address: u64) -> Option<LineId> {
        let line = self.find(address)?;
        self.clock += 1;
        self.lines[line.0].last_use = self.clock;
        Some(line)
    }

    /// The line that a block which is not here would take. Whatever it holds is the victim.
    pub(super) fn line_for(&self, address: u64) -> LineId {
        self.set(address)
            .min_by_key(|line| (self.held(*line).is_some(), self.lines[line.0].last_use))
            .expect("a set has at least one way")
    }

    /// Fills a line whose block [has been taken out](Self::release).
    pub(super) fn fill(&mut self, line: LineId, held: Held) {
        self.clock += 1;
        self.lines[line.0] = Line { held: Some(held), last_use: self.clock };
    }

    pub(super) fn held(&self, line: LineId) -> Option<Held> {
        self.lines[line.0].held
    }

    /// Maps the block of a line, if there is one.
    pub(super) fn remap(&mut self, LineId(line): LineId, position: Position) {
        if let Some(held) = &mut self.lines[line].held {
            held.position = position;
        }
    }

    /// Forgets the block of a line; its bytes stay until another's replace them.
    pub(super) fn release(&mut self, line: LineId) {
        self.lines[line.0].held = None;
    }

    pub(super) fn block(&self, line: LineId) -> &[u8] {
        &self.bytes[line.0 * self.block_bytes..][..self.block_bytes]
    }

    pub(super) fn block_mut(&mut self, line: LineId) -> &mut [u8] {
        &mut self.bytes[line.0 * self.block_bytes..][..self.block_bytes]
    }

    /// Every block that is here.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (LineId, Held)> {
        let lines = self.lines.iter().enumerate();
        lines.filter_map(|(i, line)| Some((LineId(i), line.held?)))
    }

    /// The lines that may hold `address`.
    fn set(&self, address: u64) -> impl Iterator<Item = LineId> + use<> {
        let first = (address % self.sets) as usize * self.ways;
        (first..first + self.ways).map(LineId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::compressed::Count;
    use crate::geometry::Leaf;

    fn at(leaf: u64) -> Position {
        Position { leaf: Leaf(leaf), count: Count::of_moves(leaf) }
    }

    fn put(plb: &mut Plb, address: u64) -> Option<u64> {
        let line = plb.line_for(address);
        let victim = plb.held(line);
        plb.release(line);
        plb.fill(line, Held { address, position: at(address) });
        plb.block_mut(line).fill(address as u8);
        victim.map(|held| held.address)
    }

    #[test]
    fn a_direct_mapped_one_has_one_place_for_each_address() {
        let mut plb = Plb::new(4, 1, 16).unwrap();
        assert_eq!([0, 1, 6].map(|address| put(&mut plb, address)), [None; 3]);
        assert_eq!(put(&mut plb, 5), Some(1));
        assert_eq!([1, 2].map(|address| plb.find(address)), [None; 2]);
        let line = plb.find(5).unwrap();
        assert_eq!((plb.block(line), plb.blocks().count()), (&[5; 16][..], 3));
    }

    #[test]
    fn the_block_unused_for_longest_goes_first() {
        let mut plb = Plb::new(6, 3, 16).unwrap();
        assert_eq!([0, 2, 4].map(|address| put(&mut plb, address)), [None; 3]);
        plb.find_for_use(0).unwrap();
        plb.find(2).unwrap();
        assert_eq!(put(&mut plb, 6), Some(2), "a mere look is no use");
        assert_eq!(put(&mut plb, 8), Some(4));
        assert_eq!(put(&mut plb, 1), None, "that is another set");
    }

    #[test]
    fn a_block_is_remapped_where_it_is() {
        let mut plb = Plb::new(2, 2, 16).unwrap();
        put(&mut plb, 3);
        let line = plb.find(3).unwrap();
        plb.remap(line, at(9));
        let held: Vec<_> = plb.blocks().map(|(_, held)| held).collect();
        assert_eq!(held, [Held { address: 3, position: at(9) }]);
    }
}
