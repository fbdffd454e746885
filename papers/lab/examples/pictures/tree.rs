//! The positions of a tree's buckets in a picture.

use oblivio_core::{BucketId, Leaf};
use plotters::style::RGBColor;

use super::sheet::{Point, Sheet, Style};

/// A tree with its root at the top.
#[derive(Clone, Copy)]
pub(crate) struct TreeFrame {
    pub(crate) leaf_level: u8,
    /// The vertical centre of the root. The root is in the middle of the width.
    pub(crate) top: f64,
    pub(crate) left: f64,
    pub(crate) width: f64,
    /// The vertical distance between levels.
    pub(crate) row: f64,
}

impl TreeFrame {
    /// All buckets, from the root down.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = BucketId> + use<> {
        (0..(2 << self.leaf_level) - 1).map(BucketId)
    }

    /// The centre of a bucket.
    pub(crate) fn centre(&self, bucket: BucketId) -> Point {
        let level = bucket.level();
        let column = column(Leaf(bucket.index()), level);
        let x = self.left + self.width * (column as f64 + 0.5) / f64::from(1 << level);
        (x, self.top + self.row * f64::from(level))
    }

    /// Draws the line from each bucket to its parent, with the colour and width that `look` gives
    /// for the bucket.
    pub(crate) fn edges(&self, sheet: &mut Sheet, look: impl Fn(BucketId) -> (RGBColor, f64)) {
        for bucket in self.buckets().skip(1) {
            let above = BucketId::on_path(Leaf(bucket.index()), bucket.level() - 1);
            let (colour, width) = look(bucket);
            sheet.line(self.centre(above), self.centre(bucket), colour, width);
        }
    }

    /// Draws the labels of the leaves, `below` pixels under their centres.
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

/// The position of a leaf, counted from the left. The lowest bit of a leaf's label gives the
/// direction of the path at the root.
pub(crate) fn column(leaf: Leaf, leaf_level: u8) -> u64 {
    match leaf_level {
        0 => 0,
        level => leaf.0.reverse_bits() >> (64 - level),
    }
}
