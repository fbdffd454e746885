//! Tests that impossible combinations are refused with a reason.

use oblivio_core::ErrorKind;

use crate::support::grid::{Refusal, all_refused, compose};

#[test]
fn impossible_combinations_are_refused_with_an_alternative() {
    let mut refused = 0;
    for (combination, words) in all_refused().filter_map(|(combination, refusal)| match refusal {
        Refusal::InvalidConfig(words) => Some((combination, words)),
        Refusal::ByTypes(_) => None,
    }) {
        let error = compose(&combination, 1).err().unwrap_or_else(|| {
            panic!("the engine does not refuse {combination:?}");
        });
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{combination:?}");
        assert!(error.to_string().contains(words), "{error}, {combination:?}");
        refused += 1;
    }
    assert!(refused > 100, "{refused}");
}
