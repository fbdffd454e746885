//! The fixed order of eviction-only accesses, and the bucket counters that follow from it.

use super::Leaf;

/// The leaf of eviction number `g` (counted from 0): reverse-lexicographic order.
///
/// Because a leaf label is read from its least significant bit, the order is simply
/// `g mod 2^L` (Tiny ORAM, section IV-A and Fig. 5; first proposed by Gentry et al.).
#[inline]
pub fn reverse_lexicographic(g: u64, leaf_level: u8) -> Leaf {
    Leaf(g & ((1 << leaf_level) - 1))
}

/// The number of evictions among the first `g` that wrote the bucket on `level` of the path to
/// `leaf` (path eviction predictability).
///
/// Tiny ORAM, section IV-D, gives the recurrence `g_(i+1) = (g_i + 1 - l_i) >> 1` down a path to
/// leaf `l`. Unrolled, the bucket on level `j` was written once for every `t < g` with `t ≡ l`
/// modulo `2^j`. The code computes the number of these `t` in closed form, and a test below checks
/// the result against the recurrence.
#[inline]
pub fn evictions_of_bucket(g: u64, leaf: Leaf, level: u8) -> u64 {
    let below = (1 << level) - 1;
    (g >> level) + u64::from(g & below > leaf.0 & below)
}

/// The last of the evictions `0..g` that wrote the bucket on `level` of the path to `leaf`.
///
/// At least one of them must have written the bucket, which is certain if `g` is at least
/// `2^level`.
#[inline]
pub fn last_eviction_of_bucket(g: u64, leaf: Leaf, level: u8) -> u64 {
    let below = (1 << level) - 1;
    debug_assert!(evictions_of_bucket(g, leaf, level) > 0);
    g - 1 - ((g - 1).wrapping_sub(leaf.0) & below)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::BucketId;

    /// The recurrence of section IV-D, in its literal form.
    fn recurrence(g: u64, leaf: Leaf, level: u8) -> u64 {
        (0..level).fold(g, |g_i, i| (g_i + (!(leaf.0 >> i) & 1)) >> 1)
    }

    #[test]
    fn figure_5_order_of_a_tree_with_four_leaves() {
        let order: Vec<_> = (0..5).map(|g| reverse_lexicographic(g, 2).0).collect();
        assert_eq!(order, [0, 1, 2, 3, 0]);
    }

    #[test]
    fn closed_form_equals_recurrence_and_counting() {
        const LEAF_LEVEL: u8 = 5;
        let mut written = vec![0u64; (1 << (LEAF_LEVEL + 1)) - 1];
        for g in 0..200 {
            for leaf in (0..1 << LEAF_LEVEL).map(Leaf) {
                for level in 0..=LEAF_LEVEL {
                    let bucket = BucketId::on_path(leaf, level);
                    let count = evictions_of_bucket(g, leaf, level);
                    assert_eq!(count, written[bucket.0 as usize], "g {g}, bucket {bucket}");
                    assert_eq!(count, recurrence(g, leaf, level), "g {g}, bucket {bucket}");
                }
            }
            let leaf = reverse_lexicographic(g, LEAF_LEVEL);
            for level in 0..=LEAF_LEVEL {
                written[BucketId::on_path(leaf, level).0 as usize] += 1;
            }
        }
    }

    #[test]
    fn the_last_eviction_of_a_bucket_is_the_last_one_counted() {
        const LEAF_LEVEL: u8 = 5;
        let mut last = vec![None; (1 << (LEAF_LEVEL + 1)) - 1];
        for g in 0..200 {
            for (leaf, level) in
                (0..1 << LEAF_LEVEL).flat_map(|leaf| (0..=LEAF_LEVEL).map(move |j| (Leaf(leaf), j)))
            {
                if g >= 1 << level {
                    let known = last[BucketId::on_path(leaf, level).0 as usize];
                    assert_eq!(Some(last_eviction_of_bucket(g, leaf, level)), known);
                }
            }
            let leaf = reverse_lexicographic(g, LEAF_LEVEL);
            for level in 0..=LEAF_LEVEL {
                last[BucketId::on_path(leaf, level).0 as usize] = Some(g);
            }
        }
    }

    #[test]
    fn no_overflow_at_the_end_of_the_counter() {
        let last = Leaf((1 << 40) - 1);
        assert_eq!(evictions_of_bucket(u64::MAX, last, 0), u64::MAX);
        assert_eq!(evictions_of_bucket(u64::MAX, last, 40), u64::MAX >> 40);
    }
}
