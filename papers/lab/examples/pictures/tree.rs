//! Where the buckets of a tree stand in a picture.

use oblivio_core::{BucketId, Leaf};
use plotters::style::RGBColor;

use super::sheet::{Point, Sheet, Style};

/// A tree with its root at the top.
#[derive(Clone, Copy)]
pub(crate) struct TreeFrame {
    pub(crate) leaf_level: u8,
    /// The middle of the root is below this, and in the middle of the width.
    pub(crate) top: f64,
    pub(crate) left: f64,
    pub(crate) width: f64,
    /// From level to level.
    pub(crate) row: f64,
}

impl TreeFrame {
    /// All of them, from the root down.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = BucketId> + use<> {
        (0..(2 << self.leaf_level) - 1).map(BucketId)
    }

    /// The middle of a bucket.
    pub(crate) fn centre(&self, bucket: BucketId) -> Point {
        let level = bucket.level();
        let column = column(Leaf(bucket.index()), level);
        let x = self.left + self.width * (column as f64 + 0.5) / f64::from(1 << level);
        (x, self.top + self.row * f64::from(level))
    }

    /// The lines from each bucket to the one above, as `look` has those of a bucket.
    pub(crate) fn edges(&self, sheet: &mut Sheet, look: impl Fn(BucketId) -> (RGBColor, f64)) {
        for bucket in self.buckets().skip(1) {
            let above = BucketId::on_path(Leaf(bucket.index()), bucket.level() - 1);
            let (colour, width) = look(bucket);
            sheet.line(self.centre(above), self.centre(bucket), colour, width);
        }
    }

    /// The labels of the leaves, so far below them.
    pub(crate) fn leaf_labels(
        &self,
        sheet: &mut Sheet,
        below: f64,
        style_of: impl Fn(Leaf) -> Style,
    ) {
        for leaf in (0..1 << self.leaf_level).map(Leaf) {
            let (x, y) = self.centre(BucketId::on_path(leaf, self.leaf_level));
            sheet.words((x, y + below), &leaf.0.to_string(), style_of(leaf).middle());
        }
    }
}

/// Where a leaf stands, counted from the left. A label is read from its lowest bit, which says whether the path turns left
/// or right at the root.
pub(crate) fn column(leaf: Leaf, leaf_level: u8) -> u64 {
    match leaf_level {
        0 => 0,
        level => leaf.0.reverse_bits() >> (64 - level),
    }
}
