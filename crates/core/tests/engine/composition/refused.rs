//! What is refused is refused with the reason.

use oblivio_core::ErrorKind;

use crate::support::grid::{Refusal, all_refused, compose};

#[test]
fn what_does_not_go_together_is_refused_with_what_to_use_instead() {
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
