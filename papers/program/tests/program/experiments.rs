//! Tests of the experiments from the command line: arguments, output and errors.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{fails_with, oblivio, succeeds};

fn size(dir: &TempDir, path: impl AsRef<Path>) -> u64 {
    fs::metadata(dir.path().join(path)).unwrap().len()
}

#[test]
fn input_that_cannot_be_used_is_code_3_and_says_what_to_do() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("figures.json"), "[]").unwrap();
    fs::write(dir.path().join("other.json"), "{}").unwrap();
    fs::write(dir.path().join("bytes"), [0xff; 100]).unwrap();
    fs::write(dir.path().join("small"), "x").unwrap();
    let cases = [
        ("draw figures.json", "oblivio-lab report figures.json"),
        ("draw other.json", "other.json: not a results file"),
        ("draw bytes", "give a file that this program wrote"),
        ("run stash-study --accesses 5", "too few"),
        ("run alloc-search --levels 6 --load 9", "the load must be"),
        ("run techniques --requests 5", "a run needs 1000"),
        ("run techniques --trace nowhere", "check the path"),
        ("run techniques --trace small", "small, line 1: not a trace record"),
    ];
    for (command_line, advice) in cases {
        let message = fails_with(&dir, command_line, 3);
        assert!(message.starts_with("oblivio-lab: "), "{message}");
        assert!(message.contains(advice), "{command_line}: {message}");
    }
}

#[test]
fn output_that_cannot_be_written_is_code_4() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), [0xff; 100]).unwrap();
    fails_with(&dir, "run stash-study --quick --output file", 4);
    // The input is checked before the output.
    fails_with(&dir, "draw file --output file", 3);
}

#[test]
fn a_command_line_not_understood_is_code_2() {
    let dir = TempDir::new().unwrap();
    for command_line in [
        "",
        "run",
        "run stash-study --seeds 1",
        "run techniques --levels 7",
        "run techniques --levels 21",
        "run techniques --trace",
    ] {
        let message = fails_with(&dir, command_line, 2);
        assert!(message.contains("Usage") || message.contains("--help"), "{message}");
    }
    assert!(succeeds(&dir, "--help").contains("Exit codes"));
}

#[test]
fn completions_and_man_pages_name_this_program() {
    let dir = TempDir::new().unwrap();
    assert!(succeeds(&dir, "completions bash").contains("oblivio-lab"));
    succeeds(&dir, "man pages");
    assert!(size(&dir, "pages/oblivio-lab-run-evaluation.1") > 0);
}

#[test]
fn the_lab_lists_runs_and_draws_again() {
    let dir = TempDir::new().unwrap();
    assert!(succeeds(&dir, "list").contains("stash-study"));
    let table =
        succeeds(&dir, "run stash-study --quick --accesses 8000 --threads 2 --output results");
    assert!(table.contains("RAW Z5A5"), "{table}");
    let again = succeeds(&dir, "draw results/stash-study.json --output pictures");
    assert_eq!(table.lines().next(), again.lines().next());
    let picture = |dir_name| {
        fs::read_to_string(dir.path().join(format!("{dir_name}/stash-study.svg"))).unwrap()
    };
    assert_eq!(picture("results"), picture("pictures"));
    // Recorded runs are not repeated; another seed makes new ones.
    let runs = || fs::read_to_string(dir.path().join("results/stash-study.jsonl")).unwrap();
    let once = runs();
    let command_line = "run stash-study --quick --accesses 8000 --output results";
    assert_eq!(succeeds(&dir, command_line).lines().next(), table.lines().next());
    assert_eq!(runs(), once);
    succeeds(&dir, &format!("{command_line} --seed 2"));
    assert_eq!(runs().lines().count(), 2 * once.lines().count());
    let of_raw =
        succeeds(&dir, "run stash-study --quick --accesses 8000 --scheme raw --output raw");
    assert!(of_raw.contains("RAW Z5A5") && !of_raw.contains("Path Z4"), "{of_raw}");
    let json = succeeds(&dir, "run stash-study --quick --accesses 8000 --json");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], "stash-study");
}

#[test]
fn the_lab_searches_bucket_sizes_and_draws_again() {
    let dir = TempDir::new().unwrap();
    assert!(succeeds(&dir, "list").contains("alloc-search"));
    let search = "run alloc-search --quick --levels 6 --accesses 4000 --output results";
    let text = succeeds(&dir, search);
    assert!(text.contains("IR-Alloc 4") && text.contains("found: "), "{text}");
    let again = succeeds(&dir, "draw results/alloc-search.json --output pictures");
    assert_eq!(text.lines().next(), again.lines().next());
    let json = succeeds(&dir, &format!("{search} --json"));
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], "alloc-search");
    assert_eq!(results["profile"].as_array().unwrap().len(), 7);
}

#[test]
fn a_search_of_bucket_sizes_by_time_continues() {
    let dir = TempDir::new().unwrap();
    let search = "run alloc-search --judge time --ir-stash --quick --levels 10 --accesses 1000 \
        --output results";
    let (code, text, remarks) = oblivio(&dir, search);
    assert!(code == 0 && remarks.contains("profiles to compare with"), "{remarks}");
    assert!(text.contains("cycles/record") && text.contains("% less time"), "{text}");
    assert!(!text.contains("plot"), "{text}");
    let runs = || std::fs::read_to_string(dir.path().join("results/alloc-search.jsonl")).unwrap();
    let made = runs();
    assert!(made.lines().count() > 6 && made.contains("\"tree_top_ways\":4"), "{made}");
    let json = succeeds(&dir, &format!("{search} --json"));
    assert_eq!(runs(), made, "nothing is run again");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["plan"]["judge"]["time"]["ir_stash"], true);
    assert!(results["baseline"]["cycles_per_record"].as_f64().unwrap() > 1.0);
    let again = succeeds(&dir, "draw results/alloc-search.json --output pictures");
    assert_eq!(text.lines().next(), again.lines().next());
    let of_slots = fails_with(&dir, "run alloc-search --quick --ir-stash", 2);
    assert!(of_slots.contains("add --judge time"), "{of_slots}");
    assert!(
        fails_with(&dir, "run alloc-search --judge time --levels 5", 3).contains("must be 8 to 25")
    );
}

/// Runs an experiment into `out`, draws its results again, and returns the results. The tables of
/// the run must contain all `parts`, and the drawing must repeat the tables.
fn assert_is_drawn_again(dir: &TempDir, command: &str, results: &str, parts: &[&str]) -> Value {
    let name = command.split(' ').next().unwrap();
    // Remove the files of the previous experiment.
    let _ = fs::remove_dir_all(dir.path().join("out"));
    assert!(succeeds(dir, "list").contains(&format!("\n{name} ")), "{name}");
    let tables = succeeds(dir, &format!("run {command} --output out"));
    for part in parts {
        assert!(tables.contains(part), "no {part:?} in {tables}");
    }
    let again = succeeds(dir, &format!("draw out/{results}"));
    assert!(tables.starts_with(again.trim_end()), "{again}");
    if ["dram", "links", "raw-traffic", "roram"].contains(&name) {
        let report = succeeds(dir, "report out/figures.json --output page.html");
        assert!(report.contains("page.html") && size(dir, "page.html") > 0, "{report}");
    }
    let json = succeeds(dir, &format!("run {command} --output out --json"));
    let stored = fs::read_to_string(dir.path().join("out").join(results)).unwrap();
    assert_eq!(json.trim_end(), stored.trim_end());
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], name);
    results
}

#[test]
fn experiments_on_models_are_run_and_drawn_again() {
    let dir = TempDir::new().unwrap();
    let parts = ["range     1024 KiB", "off by"];
    assert_is_drawn_again(&dir, "range-media --blocks 1024", "range-media.json", &parts);
    let parts = ["published Z4 A1", "volume Z5 A5"];
    let command = "range-stash --blocks 20000 --seeds 2";
    assert_is_drawn_again(&dir, command, "range-stash.json", &parts);
    for command in ["range-media --blocks 100", "range-stash --blocks 100"] {
        assert!(
            fails_with(&dir, &format!("run {command} --output out"), 3)
                .contains("use more --blocks")
        );
    }

    let parts = ["20.3 s", "PoissCDF 0.888", "not stated in the text", "Fig. 8", "numbers agree"];
    let results = assert_is_drawn_again(&dir, "s3oram --quick", "s3oram.json", &parts);
    // Sixty-nine points of six figures, six schemes.
    assert_eq!(results["cells"].as_array().unwrap().len(), 69 * 6);
    assert!(results["measured"].as_array().unwrap().is_empty());
}

#[test]
fn experiments_with_figures_are_run_drawn_again_and_reported() {
    let dir = TempDir::new().unwrap();
    let parts = ["a hard disk", "an SSD", "a link", "rORAM", "Batched Eviction"];
    let command = "roram --quick --level 8 --ell 3 --seed 2";
    let results = assert_is_drawn_again(&dir, command, "results.json", &parts);
    assert_eq!(results["level"], 8);
    assert!(fails_with(&dir, "run roram --level 4 --ell 5 --output out", 3).contains("--ell"));

    let parts = ["S³ORAM, Table 1", "20.3", "29/5 Mbit/s", "Path ORAM Z4", "default volume"];
    let results = assert_is_drawn_again(&dir, "links --size 1G", "results.json", &parts);
    assert_eq!(results["disk_bytes"], 1 << 30);
    // Five links, eight sizes of blocks, seven forms.
    assert_eq!(results["cells"].as_array().unwrap().len(), 280);

    let parts =
        ["Memory traffic of RAW ORAM", "Z5 A5, memory traffic", "Z16 A20", "analysis holds"];
    let command = "raw-traffic --quick --accesses 20000";
    assert_is_drawn_again(&dir, command, "results.json", &parts);
    fails_with(&dir, "run raw-traffic --seeds 1", 2);

    let parts = ["| path-like, 4 channels ", "| read anywhere, 1 channel ", "out/figures.json"];
    let results = assert_is_drawn_again(&dir, "dram --seed 2", "results.json", &parts);
    assert_eq!(results["seed"], 2);
    assert!(!succeeds(&dir, "draw out/results.json").contains("differs"));
}

#[test]
fn the_lab_compares_techniques_and_shows_the_table_again() {
    let dir = TempDir::new().unwrap();
    assert!(succeeds(&dir, "list").contains("techniques"));
    let lines: Vec<_> = (0..500).map(|i| format!("1 {} {}", i * 64, i * 6400)).collect();
    fs::write(dir.path().join("own.trace"), lines.join("\n")).unwrap();
    let run = "run techniques --quick --levels 8 --requests 1000 --trace own.trace";
    let text = succeeds(&dir, &format!("{run} --threads 2 --output results"));
    assert!(text.contains("| IR-Stash ") && text.contains("own.trace, per request"), "{text}");
    let again = succeeds(&dir, "draw results/techniques.json");
    assert!(text.starts_with(again.trim_end()), "{again}");
    let json = succeeds(&dir, &format!("{run} --json"));
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], "techniques");
    assert_eq!(results["plan"]["seed"], 1);
}
