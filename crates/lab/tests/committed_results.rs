//! The documentation shows what the committed results say, and those are of the plan that
//! `oblivio lab run` follows.

use oblivio_lab::alloc_search::{self, Search};
use oblivio_lab::stash_study::{Plan, Study};
use oblivio_lab::techniques::{self, Results};

#[test]
fn the_stash_study_in_the_documentation_is_the_committed_one() {
    let study = Study::from_json(include_str!("../results/stash-study.json")).unwrap();
    assert_eq!(study.plan, Plan::full());
    let documentation = include_str!("../../../docs/stash-study.md");
    assert!(documentation.contains(&study.table()), "expected this table:\n{}", study.table());
}

#[test]
fn the_alloc_search_in_the_documentation_is_the_committed_one() {
    let search = Search::from_json(include_str!("../results/alloc-search.json")).unwrap();
    assert_eq!(search.plan, alloc_search::Plan::full());
    let documentation = include_str!("../../../docs/alloc-search.md");
    for table in [search.table(), search.paper_table()] {
        assert!(documentation.contains(&table), "expected this table:\n{table}");
    }
}

#[test]
fn the_techniques_in_the_documentation_are_the_committed_ones() {
    let results = Results::from_json(include_str!("../results/techniques.json")).unwrap();
    assert_eq!(results.plan, techniques::Plan::full());
    let documentation = include_str!("../../../docs/techniques.md");
    let details = (0..results.workloads().count()).map(|number| results.detail_table(number));
    for table in details.chain([results.gain_table(), results.paper_table()]) {
        assert!(documentation.contains(&table), "expected this table:\n{table}");
    }
}
