//! Tests of `oblivio-lab run blocks` from the command line: recorded runs, figures and a report.

use std::fs;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{command, fails_with, oblivio, succeeds};

const SMALL: &str = "run blocks --quick --initial placed --paths 10000 --output out";

#[test]
fn figures_runs_that_are_kept_and_a_report() {
    let dir = TempDir::new().unwrap();
    let table = succeeds(&dir, SMALL);
    let titles = ["Utilisation of the levels under programs", "Where requested blocks are found"];
    for part in titles.into_iter().chain(["last level after chance", "10 runs"]) {
        assert!(table.contains(part), "no {part:?} in {table}");
    }
    let file = |name: &str| fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    let runs = file("results.jsonl");
    assert_eq!(runs.lines().count(), 10);
    let run: Value = serde_json::from_str(runs.lines().next().unwrap()).unwrap();
    assert_eq!(run["spec"]["initial"], "placed");
    let figures: Value = serde_json::from_str(&file("figures.json")).unwrap();
    assert_eq!(figures.as_array().unwrap().len(), 12);

    // The second time, as JSON: no run is repeated.
    let again: Value = serde_json::from_str(&succeeds(&dir, &format!("{SMALL} --json"))).unwrap();
    assert_eq!(again, figures);
    assert_eq!(file("results.jsonl"), runs);

    succeeds(&dir, "report out/figures.json --output report.html");
    let page = fs::read_to_string(dir.path().join("report.html")).unwrap();
    assert!(page.contains("IR-ORAM, Fig. 13"));
}

#[test]
fn figures_are_listed_and_impossible_ones_refused() {
    let dir = TempDir::new().unwrap();
    let list = succeeds(&dir, "list");
    for part in ["blocks", "fig03", "fig13", "fig13-evictions"] {
        assert!(list.contains(part), "{list}");
    }
    assert!(fails_with(&dir, "run blocks --quick --figure fig7", 3).contains("choose from fig03"));
    let too_small = fails_with(&dir, "run blocks --quick --levels 10 --initial placed", 3);
    assert!(too_small.contains("give it at least"), "{too_small}");
    fs::create_dir(dir.path().join("empty")).unwrap();
    let empty = fails_with(&dir, &format!("{SMALL} --figure fig03 --traces empty"), 3);
    assert!(empty.contains("no trace of any program"), "{empty}");
}

/// Reads the records of runs without the seconds, which differ between runs.
fn untimed(runs: &Path) -> Vec<Value> {
    let text = fs::read_to_string(runs).unwrap();
    let record = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["seconds"] = Value::Null;
        record
    };
    text.lines().map(record).collect()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_killed_run_continues_and_initial_trees_are_reused() {
    const RUN: &str =
        "run blocks --quick --levels 14 --traces traces --figure fig03 fig13 --jobs 1";
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("traces")).unwrap();
    for name in ["gcc.trace.gz", "lbm.trace.gz"] {
        let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/samples");
        fs::copy(Path::new(sample).join(name), dir.path().join("traces").join(name)).unwrap();
    }
    let (trees, at) = (dir.path().join("trees"), |name: &str| dir.path().join(name));
    let with_trees = format!("{RUN} --trees trees --output out");
    let mut killed = command(dir.path(), &with_trees).spawn().unwrap();
    let is_run = |name: &String| name.starts_with("run-");
    while !names(&trees).iter().any(is_run) {
        assert!(killed.try_wait().unwrap().is_none(), "the command ended before it saved a run");
        std::thread::sleep(Duration::from_millis(2));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(names(&trees).iter().any(is_run));

    let (code, _, remarks) = oblivio(&dir, &with_trees);
    assert_eq!((code, remarks.as_str()), (0, ""));
    let initial = names(&trees);
    assert!(!initial.iter().any(is_run), "{initial:?}");
    succeeds(&dir, &format!("{RUN} --output without"));
    let expected = untimed(&at("without/results.jsonl"));
    assert_eq!(expected.len(), 2);
    assert_eq!(untimed(&at("out/results.jsonl")), expected);

    // The file of a tree may be damaged.
    let name = initial.iter().find(|name| name.starts_with("initial-L14-seed1-")).unwrap();
    fs::write(trees.join(name), "a tree?").unwrap();
    let (code, _, remarks) = oblivio(&dir, &format!("{RUN} --trees trees --output again"));
    assert_eq!(code, 0, "{remarks}");
    assert!(remarks.contains(&format!("{name} is unusable and is made again")), "{remarks}");
    assert_eq!(untimed(&at("again/results.jsonl")), expected);
    fails_with(&dir, &format!("{RUN} --trees out/results.jsonl"), 4);
}
