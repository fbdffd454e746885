//! Tests that the covering sets of combinations contain every pair and triple of factor levels
//! (choices of techniques) that can occur together, and that the sizes of these sets do not change
//! unnoticed.

use std::collections::HashSet;

use crate::support::grid::{all_allowed, allowed_together, covering_set, refusal, together};

#[test]
fn compatible_levels_occur_together_in_some_combination() {
    let combinations = all_allowed().len();
    // A fixed number, so that new refusals do not go unnoticed.
    assert_eq!(combinations, 2136);
    for (strength, expected) in [(2, (25, 288)), (3, (82, 1667))] {
        let set = covering_set(strength);
        for combination in &set {
            assert_eq!(refusal(combination), None, "{combination:?}");
        }
        let covered: HashSet<_> =
            set.iter().flat_map(|combination| together(&combination.choice(), strength)).collect();
        let allowed = allowed_together(strength);
        assert_eq!(covered, allowed);
        let place = format!("{strength} at a time");
        assert_eq!((set.len(), allowed.len()), expected, "{place}: combinations, levels together");
    }
}
