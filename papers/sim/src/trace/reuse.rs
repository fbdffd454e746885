//! Reuse distances of lines.
//!
//! The *distance* of a use is the number of different lines used since the previous use of the same
//! line, that line included. An LRU cache with this number of lines still holds the line, and a
//! smaller one does not (Mattson et al., 1970). Each line counts once, at the time of its last use
//! so far. So the distance is the number of last uses at or after the previous use of the line. A
//! Fenwick tree (1994) counts them in logarithmic time.

use std::collections::HashMap;

/// Counts the uses in `lines` by distance. Element `k` is the number of uses with a distance above
/// 2^(k-1) and up to 2^k. The first use of a line has no distance, and is not counted.
pub(super) fn distances(lines: impl ExactSizeIterator<Item = u64>) -> Vec<u64> {
    let mut last_uses = LastUses { sums: vec![0; lines.len() + 1] };
    let mut last_use: HashMap<u64, usize> = HashMap::new();
    let mut counts = Vec::new();
    for (now, line) in lines.enumerate() {
        let known = last_use.len();
        if let Some(before) = last_use.insert(line, now) {
            let distance = known - last_uses.count_before(before);
            last_uses.remove(before);
            let power = distance.next_power_of_two().trailing_zeros() as usize;
            if counts.len() <= power {
                counts.resize(power + 1, 0);
            }
            counts[power] += 1;
        }
        last_uses.add(now);
    }
    counts
}

/// The times that are the last use of some line, as a Fenwick tree. Element `i`, counted from 1,
/// covers `b` times, of which the `i`-th time is the last; `b` is the lowest set bit of `i`. The
/// element is the number of last uses among them.
struct LastUses {
    sums: Vec<u32>,
}

impl LastUses {
    fn add(&mut self, time: usize) {
        self.change(time, |sum| *sum += 1);
    }

    fn remove(&mut self, time: usize) {
        self.change(time, |sum| *sum -= 1);
    }

    fn change(&mut self, time: usize, change: impl Fn(&mut u32)) {
        let mut i = time + 1;
        while i < self.sums.len() {
            change(&mut self.sums[i]);
            i += i & i.wrapping_neg();
        }
    }

    /// The number of last uses before `time`.
    fn count_before(&self, time: usize) -> usize {
        let (mut i, mut sum) = (time, 0);
        while i > 0 {
            sum += self.sums[i] as usize;
            i &= i - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn distances_by_hand() {
        // Distances 1; 3 and 3, which count as up to 4; and 2.
        assert_eq!(distances([7, 7, 8, 9, 7, 8, 7].into_iter()), [1, 1, 2]);
        assert!(distances([1, 2, 3].into_iter()).is_empty());
    }

    proptest! {
        /// Compares with a list of all lines in the order of their last use.
        #[test]
        fn distances_match_positions_in_a_list(lines in prop::collection::vec(0u64..40, 0..300)) {
            let mut list: Vec<u64> = Vec::new();
            let mut counts = vec![0; 10];
            for line in &lines {
                if let Some(place) = list.iter().position(|listed| listed == line) {
                    list.remove(place);
                    counts[(0..).find(|power| place < 1 << power).unwrap()] += 1;
                }
                list.insert(0, *line);
            }
            let mut found = distances(lines.into_iter());
            found.resize(10, 0);
            prop_assert_eq!(found, counts);
        }
    }
}
