//! Tests of runs that reuse saved trees.

use oblivio_sim::functional::Study;
use serde_json::{Value, json};

use super::*;
use crate::memory_trees::MemoryTrees;

const FIGURE: [&str; 1] = ["fig03"];

/// Makes the run of Fig. 3 with `trees`. Returns its record without the time, and the host.
fn with(
    plan: &BlocksPlan,
    programs: &Programs,
    trees: &MemoryTrees,
) -> (Vec<BlocksRecord>, Counting) {
    let (records, _, host) = made_with(plan, &FIGURE, programs, &[], 1, Some(trees));
    (untimed(&records), host)
}

fn remarks(host: &Counting) -> String {
    host.remarks.lock().unwrap().join("\n")
}

#[test]
fn an_interrupted_run_continues_after_its_last_stretch() {
    let (plan, programs) = two_programs();
    let (without, ..) = made(&plan, &FIGURE, &programs, &[], 1);
    let whole = MemoryTrees::default();
    assert_eq!(with(&plan, &programs, &whole).0, untimed(&without));
    let history = whole.history.into_inner().unwrap();
    let [initial, first, second] = &history[..] else { panic!("gcc, lbm and no third stretch") };
    assert!(initial.0.starts_with("initial-L14-seed1-"));
    let name = "run-baseline-programs-then-uniform-L14-20000-llc32768-seed1.tree";
    assert_eq!([&first.0, &second.0], [name; 2]);

    for (cut_off, paths, left) in [(first, 9250, vec![name.to_owned()]), (second, 18_500, vec![])] {
        // There is no initial tree: a run from the beginning would make one.
        let trees = MemoryTrees::with(std::slice::from_ref(cut_off));
        let (records, host) = with(&plan, &programs, &trees);
        assert_eq!(records, untimed(&without));
        assert_eq!((trees.put(), remarks(&host)), (left, String::new()));
        assert_eq!(host.made_at_once.into_inner(), 2 * (4 << 14) + paths);
        assert!(trees.names().is_empty(), "the state of a recorded run is removed");
        assert_eq!(host.planned.into_inner(), host.made.into_inner());
    }

    // An interruption after the record was written, before the saved run was removed.
    let trees = MemoryTrees::with(std::slice::from_ref(second));
    made_with(&plan, &FIGURE, &programs, &without, 1, Some(&trees));
    assert!(trees.names().is_empty());
}

#[test]
fn an_initial_tree_is_made_once() {
    let (plan, programs) = two_programs();
    let trees = MemoryTrees::default();
    with(&plan, &programs, &trees);
    let initial = trees.names();
    assert_eq!(initial.len(), 1);
    let longer = BlocksPlan { paths: 30_000, ..plan.clone() };
    let (records, host) = with(&longer, &programs, &trees);
    let (without, ..) = made(&longer, &FIGURE, &programs, &[], 1);
    assert_eq!(records, untimed(&without));
    assert_eq!(host.planned.into_inner(), host.made.into_inner());
    assert_eq!(trees.put().iter().filter(|name| **name == initial[0]).count(), 1);
    // Trees that are filled at once are not saved: making them takes no time.
    let placed = MemoryTrees::default();
    with(&BlocksPlan { initial: Initial::Placed, ..plan }, &programs, &placed);
    assert!(placed.put().iter().all(|name| name.starts_with("run-")));
}

#[test]
fn unusable_saved_runs_are_reported_and_made_again() {
    let (plan, programs) = two_programs();
    let plan = BlocksPlan { initial: Initial::Placed, ..plan };
    let whole = MemoryTrees::default();
    let (expected, _) = with(&plan, &programs, &whole);
    let spec = plan.spec(&plan.runs(&[&FIGURES[0]], &programs).unwrap()[0]).unwrap();
    let (name, saved) = whole.history.into_inner().unwrap().remove(1);
    let noted = |change: &dyn Fn(&mut Value)| {
        let (study, note) = Study::resume(&spec, plan.seed, &saved[..]).unwrap();
        let mut note: Value = serde_json::from_str(&note).unwrap();
        change(&mut note);
        let mut bytes = Vec::new();
        study.save(&note.to_string(), &mut bytes).unwrap();
        bytes
    };
    let mut flipped = saved.clone();
    flipped[saved.len() / 2] ^= 1;
    let cases = [
        (flipped, "cannot use"),
        (saved[..1000].to_vec(), "too early"),
        (noted(&|note| note["key"] = json!("another")), "another run"),
        (noted(&|note| note["trace"] = json!(7)), "to other traces"),
        (noted(&|note| note["more"] = json!(7)), "not a saved run"),
        (noted(&|note| note["snapshots"] = json!([])), "match the run"),
        (noted(&|note| note["snapshots"][3]["after"] = json!("lbm")), "match the run"),
        (noted(&|note| drop(note["snapshots"].as_array_mut().unwrap().pop())), "match the run"),
        (
            noted(&|note| note["snapshots"][3]["snapshot"]["paths"]["data"] = json!(1)),
            "match its tree",
        ),
        (noted(&|note| note["snapshots"][8]["snapshot"]["blocks"][3] = json!(1)), "match its tree"),
    ];
    for (bytes, why) in cases {
        let trees = MemoryTrees::with(&[(name.clone(), bytes)]);
        let (records, host) = with(&plan, &programs, &trees);
        assert_eq!(records, expected, "{why}");
        let remarks = remarks(&host);
        assert!(remarks.contains(why) && remarks.starts_with(&name), "{why}: {remarks}");
    }
    let full = MemoryTrees { is_full: true, ..MemoryTrees::default() };
    let (records, host) = with(&plan, &programs, &full);
    assert_eq!(records, expected);
    assert!(remarks(&host).contains(".tree: no space is left"), "{}", remarks(&host));
}
