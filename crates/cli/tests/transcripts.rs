//! What a user types, and what comes back.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use common::{bad, good, oblivio};

/// A directory with a file whose last block is not full.
fn dir_with_file() -> TempDir {
    let dir = TempDir::new().unwrap();
    let bytes: Vec<u8> = (0..20_001u32).map(|i| ((i * i) >> 7) as u8).collect();
    fs::write(dir.path().join("data"), bytes).unwrap();
    dir
}

fn size(dir: &TempDir, path: impl AsRef<Path>) -> u64 {
    fs::metadata(dir.path().join(path)).unwrap().len()
}

#[test]
fn a_demonstration_gives_every_byte_back_and_leaves_its_files() {
    let dir = dir_with_file();
    for scheme in ["path", "raw"] {
        let output = format!("out/{scheme}");
        let text = good(
            &dir,
            &format!("demo --file data --block-bytes 128 --scheme {scheme} --output {output}"),
        );
        for part in ["What the owner did", "What storage saw", "read back: identical", "secret"] {
            assert!(text.contains(part), "no {part:?} in {text}");
        }
        for file in ["demo.svg", "demo.view", "demo.csv"] {
            assert!(size(&dir, format!("{output}/{file}")) > 0, "{file}");
        }
    }
}

#[test]
fn a_block_and_a_byte_are_enough() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("data"), b"x").unwrap();
    for scheme in ["path", "raw"] {
        good(&dir, &format!("demo --file data --scheme {scheme}"));
    }
}

#[test]
fn the_figures_are_json_and_the_same_for_the_same_seed() {
    let dir = dir_with_file();
    let demo = || {
        let text = good(&dir, "demo --file data --block-bytes 256 --seed 5 --json --output out");
        let mut report: Value = serde_json::from_str(&text).unwrap();
        report["microseconds_per_access"].take();
        (report, fs::read(dir.path().join("out/demo.view")).unwrap())
    };
    let (report, view) = demo();
    assert_eq!((report.clone(), view), demo());
    assert_eq!(report["identical"], true);
    assert_eq!(report["sha256_written"], report["sha256_read_back"]);
    assert_eq!(report["blocks"], 20_001u64.div_ceil(256));
    assert!(report["seen_by_storage"]["bytes_written"].as_u64().unwrap() > 20_001);
    assert!(report["secret"]["stash_peak_blocks"].is_u64());
}

#[test]
fn a_view_is_exported_to_a_file_and_to_standard_output() {
    let dir = dir_with_file();
    good(&dir, "demo --file data --output out");
    let text = good(&dir, "view export out/demo.view");
    good(&dir, "view export out/demo.view --csv again.csv");
    let written = fs::read_to_string(dir.path().join("again.csv")).unwrap();
    assert_eq!(text, written);
    assert_eq!(text, fs::read_to_string(dir.path().join("out/demo.csv")).unwrap());
    assert!(text.starts_with("order,trip,operation,"));
}

#[test]
fn input_that_cannot_be_used_is_code_3_and_says_what_to_do() {
    let dir = dir_with_file();
    fs::write(dir.path().join("empty"), b"").unwrap();
    let cases = [
        ("demo --file nowhere", "check the path"),
        ("demo --file .", "give a file"),
        ("demo --file empty", "give a file with contents"),
        ("demo --file data --block-bytes 1", "block"),
        ("view export nowhere", "check the path"),
        ("view export data", "not a whole view file"),
        ("lab draw data", "give a file that this program wrote"),
        ("lab run stash-study --accesses 5", "too few"),
    ];
    for (command_line, advice) in cases {
        let message = bad(&dir, command_line, 3);
        assert!(message.contains(advice), "{command_line}: {message}");
    }
}

#[test]
fn a_file_too_large_is_refused_with_advice() {
    let dir = TempDir::new().unwrap();
    fs::File::create(dir.path().join("large")).unwrap().set_len(16 * 32_769).unwrap();
    let message = bad(&dir, "demo --file large --block-bytes 16", 3);
    assert!(message.contains("use larger blocks"), "{message}");
}

#[test]
fn output_that_cannot_be_written_is_code_4() {
    let dir = dir_with_file();
    for command_line in [
        "demo --file data --output data",
        "demo --file data --output data/deeper",
        "lab run stash-study --quick --output data",
        "lab draw data --output data",
    ] {
        let (code, _, message) = oblivio(&dir, command_line);
        let expected = if command_line.starts_with("lab draw") { 3 } else { 4 };
        assert_eq!(code, expected, "{command_line}: {message}");
    }
    good(&dir, "demo --file data --output out");
    let message = bad(&dir, "view export out/demo.view --csv nowhere/view.csv", 4);
    assert!(message.contains("choose another place"), "{message}");
}

#[test]
fn a_command_line_not_understood_is_code_2() {
    let dir = TempDir::new().unwrap();
    for command_line in [
        "",
        "demo --colour",
        "demo --scheme square",
        "demo --block-bytes 0",
        "lab run",
        "lab run stash-study --seeds 1",
    ] {
        let message = bad(&dir, command_line, 2);
        assert!(message.contains("Usage") || message.contains("--help"), "{message}");
    }
    assert!(good(&dir, "--help").contains("Exit codes"));
}

#[test]
fn the_lab_lists_runs_and_draws_again() {
    let dir = TempDir::new().unwrap();
    assert!(good(&dir, "lab list").contains("stash-study"));
    let table =
        good(&dir, "lab run stash-study --quick --accesses 8000 --threads 2 --output results");
    assert!(table.contains("RAW Z5A5"), "{table}");
    let again = good(&dir, "lab draw results/stash-study.json --output pictures");
    assert_eq!(table.lines().next(), again.lines().next());
    let picture = |dir_name| {
        fs::read_to_string(dir.path().join(format!("{dir_name}/stash-study.svg"))).unwrap()
    };
    assert_eq!(picture("results"), picture("pictures"));
    let json = good(&dir, "lab run stash-study --quick --accesses 8000 --json");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], "stash-study");
}

#[test]
fn completions_are_printed() {
    let dir = TempDir::new().unwrap();
    assert!(good(&dir, "completions bash").contains("oblivio"));
}
