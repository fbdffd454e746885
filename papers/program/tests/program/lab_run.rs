//! Tests of `oblivio-lab run` from the command line: figures of several experiments, and one report
//! of all figures.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{fails_with, succeeds};

#[test]
fn figures_of_all_experiments_are_made_and_reported() {
    let dir = TempDir::new().unwrap();
    let run = "run --quick --figure tiny07 fig06 dram roram links";
    let output = succeeds(&dir, run);
    for part in ["stated numbers agree", "9 runs", "1 run,", "lab-results/report.html"] {
        assert!(output.contains(part), "no {part:?} in {output}");
    }
    let text = |name: &str| fs::read_to_string(dir.path().join("lab-results").join(name)).unwrap();
    let page = text("report.html");
    for part in ["Tiny ORAM, Fig. 7", "IR-ORAM, Fig. 6", "USIMM", "S³ORAM, Table 1"] {
        assert!(page.contains(part), "no {part:?} in the page");
    }
    let runs = text("evaluation/results.jsonl");
    assert_eq!(runs.lines().count(), 9);
    assert_eq!(text("blocks/results.jsonl").lines().count(), 1);

    // The second time, as JSON: no run is repeated, and all figures are in one list.
    let figures: Vec<Value> =
        serde_json::from_str(&succeeds(&dir, &format!("{run} --json"))).unwrap();
    let ids: Vec<_> = figures.iter().map(|figure| figure["id"].as_str().unwrap()).collect();
    assert_eq!(ids[..2], ["tiny07", "fig06"]);
    assert_eq!(text("evaluation/results.jsonl"), runs);
}

#[test]
fn unknown_figures_and_options_without_effect_are_refused() {
    let dir = TempDir::new().unwrap();
    assert!(fails_with(&dir, "run --quick --figure fig7", 3).contains("no figure fig7"));
    assert!(fails_with(&dir, "run --quick dram", 2).contains("cannot be used with"));
    assert!(!dir.path().join("lab-results").exists());
}
