//! What a user types, and what comes back.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

/// Exit code, standard output and standard error of one command line, run in `dir`.
fn oblivio(dir: &TempDir, command_line: &str) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_oblivio"))
        .current_dir(dir)
        .args(command_line.split_whitespace())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Standard output of a command line that must go well.
fn good(dir: &TempDir, command_line: &str) -> String {
    let (code, stdout, stderr) = oblivio(dir, command_line);
    assert_eq!(code, 0, "{command_line}: {stderr}");
    stdout
}

/// Standard error of a command line that must end with `code`.
fn bad(dir: &TempDir, command_line: &str, code: i32) -> String {
    let (actual, _, stderr) = oblivio(dir, command_line);
    assert_eq!(actual, code, "{command_line}: {stderr}");
    stderr
}

fn size(dir: &TempDir, path: impl AsRef<Path>) -> u64 {
    fs::metadata(dir.path().join(path)).unwrap().len()
}

/// A folder with two files, one of them in a folder of its own.
fn dir_with_folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("data/deeper")).unwrap();
    let bytes: Vec<u8> = (0..2_000_001u32).map(|i| ((i * i) >> 7) as u8).collect();
    fs::write(dir.path().join("data/large"), bytes).unwrap();
    fs::write(dir.path().join("data/deeper/small"), b"x").unwrap();
    dir
}

#[test]
fn a_demonstration_loses_nothing_and_leaves_its_pictures() {
    let dir = dir_with_folder();
    let text = good(&dir, "demo --folder data --output out --without-mount");
    for part in ["SIGKILL", "What the owner did", "What storage saw", "all 2 checksums are right"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // Once more in the same place: what it left is no hindrance.
    let json = good(&dir, "demo --folder data --output out --without-mount --json");
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&report["files"], &report["was_mounted"]), (&2.into(), &false.into()));
    assert_eq!((&report["files_lost"], &report["files_changed"]), (&0.into(), &0.into()));
    let (asked, seen) = (&report["requests_of_owner"], &report["seen_by_storage"]["accesses"]);
    assert!(seen.as_u64().unwrap() > asked.as_u64().unwrap() / 2, "{json}");
    assert!(size(&dir, "out/demo.svg") > 0);

    let csv = good(&dir, "view export out/demo.view");
    assert!(csv.starts_with("order,trip,operation,"));
    good(&dir, "view export out/demo.view --csv again.csv");
    assert_eq!(csv, fs::read_to_string(dir.path().join("again.csv")).unwrap());
    let message = bad(&dir, "view export out/demo.view --csv nowhere/view.csv", 4);
    assert!(message.contains("choose another place"), "{message}");
}

#[test]
fn input_that_cannot_be_used_is_code_3_and_says_what_to_do() {
    let dir = dir_with_folder();
    fs::create_dir(dir.path().join("empty")).unwrap();
    let cases = [
        ("demo --folder nowhere", "check the path"),
        ("demo --folder empty", "name a folder that does"),
        ("view export nowhere", "check the path"),
        ("view export data/large", "not a whole view file"),
        ("lab draw data/large", "give a file that this program wrote"),
        ("lab run stash-study --accesses 5", "too few"),
    ];
    for (command_line, advice) in cases {
        let message = bad(&dir, command_line, 3);
        assert!(message.contains(advice), "{command_line}: {message}");
    }
}

#[test]
fn output_that_cannot_be_written_is_code_4() {
    let dir = dir_with_folder();
    for command_line in [
        "demo --folder data --output data/large",
        "demo --folder data --output data/large/deeper",
        "lab run stash-study --quick --output data/large",
        "lab draw data/large --output data/large",
    ] {
        let (code, _, message) = oblivio(&dir, command_line);
        let expected = if command_line.starts_with("lab draw") { 3 } else { 4 };
        assert_eq!(code, expected, "{command_line}: {message}");
    }
}

#[test]
fn a_command_line_not_understood_is_code_2() {
    let dir = TempDir::new().unwrap();
    for command_line in [
        "",
        "demo --colour",
        "demo --without-mount=perhaps",
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
