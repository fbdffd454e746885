//! Commands that a user types, and their output.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{fails_with, succeeds};

fn size(dir: &TempDir, path: impl AsRef<Path>) -> u64 {
    fs::metadata(dir.path().join(path)).unwrap().len()
}

/// A folder with two files, one of them in a subfolder.
fn dir_with_folder() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join("data/deeper")).unwrap();
    let bytes: Vec<u8> = (0..2_000_001u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    fs::write(dir.path().join("data/large"), bytes).unwrap();
    fs::write(dir.path().join("data/deeper/small"), b"x").unwrap();
    dir
}

#[test]
fn a_demonstration_loses_nothing_and_leaves_its_pictures() {
    let dir = dir_with_folder();
    let text = succeeds(&dir, "demo --folder data --output out --without-mount");
    for part in ["SIGKILL", "What the owner did", "What storage saw", "all 2 checksums are right"] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    // Again in the same place: the files of the first run are no obstacle.
    let json = succeeds(&dir, "demo --folder data --output out --without-mount --json");
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&report["files"], &report["was_mounted"]), (&2.into(), &false.into()));
    assert_eq!((&report["files_lost"], &report["files_changed"]), (&0.into(), &0.into()));
    let (requests, seen) = (&report["requests_of_owner"], &report["seen_by_storage"]["accesses"]);
    assert!(seen.as_u64().unwrap() > requests.as_u64().unwrap() / 2, "{json}");
    assert!(size(&dir, "out/demo.svg") > 0);

    let csv = succeeds(&dir, "view export out/demo.view");
    assert!(csv.starts_with("order,trip,operation,"));
    succeeds(&dir, "view export out/demo.view --csv again.csv");
    assert_eq!(csv, fs::read_to_string(dir.path().join("again.csv")).unwrap());
    let message = fails_with(&dir, "view export out/demo.view --csv nowhere/view.csv", 4);
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
        ("view export data/large", "not a complete view file"),
    ];
    for (command_line, advice) in cases {
        let message = fails_with(&dir, command_line, 3);
        assert!(message.contains(advice), "{command_line}: {message}");
    }
}

#[test]
fn output_that_cannot_be_written_is_code_4() {
    let dir = dir_with_folder();
    for command_line in
        ["demo --folder data --output data/large", "demo --folder data --output data/large/deeper"]
    {
        fails_with(&dir, command_line, 4);
    }
}

#[test]
fn a_command_line_not_understood_is_code_2() {
    let dir = TempDir::new().unwrap();
    for command_line in ["", "demo --colour", "demo --without-mount=perhaps"] {
        let message = fails_with(&dir, command_line, 2);
        assert!(message.contains("Usage") || message.contains("--help"), "{message}");
    }
    assert!(succeeds(&dir, "--help").contains("Exit codes"));
}

#[test]
fn a_benchmark_reports_every_load_and_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("place")).unwrap();
    let options = "--size 2M --seconds 0.05 --queue-depth 4";
    let report: Value =
        serde_json::from_str(&succeeds(&dir, &format!("bench place {options} --json"))).unwrap();
    let loads = report["loads"].as_array().unwrap();
    assert_eq!(loads.len(), 6);
    for load in loads {
        let figure = |name: &str| load[name].as_f64().unwrap();
        assert!(figure("requests_per_second") > 0.0, "{load}");
        let latency = |name: &str| load["latency_microseconds"][name].as_f64().unwrap();
        assert!(0.0 < latency("p50") && latency("p50") <= latency("max"), "{load}");
        let trips = figure("storage_trips_per_request");
        if load["name"] == "trim" {
            assert_eq!(trips, 0.0, "{load}");
        } else {
            assert!(trips > 0.0 && figure("storage_bytes_read_per_request") > 0.0, "{load}");
        }
        let spent = |on: &str| load["microseconds_per_request"][on].as_f64().unwrap();
        let parts = ["client", "storage_read", "storage_write", "storage_flush", "log", "waiting"];
        let (parts, all) = (parts.map(spent).iter().sum::<f64>(), spent("all"));
        // Work left over from the previous load also counts here: up to 20 ms in all on a busy
        // machine, which matters for a load of two requests.
        let left_over = f64::max(50.0, 20_000.0 / figure("requests"));
        assert!((parts - all).abs() <= all / 100.0 + left_over, "{load}");
        assert!(spent("processors") > 0.0, "{load}");
        let writes = load["name"].as_str().unwrap().contains("write");
        assert_eq!(load["write_amplification"].as_f64().is_some_and(|x| x > 0.0), writes, "{load}");
    }
    assert_eq!(loads[0]["requests"], 2);
    assert!(succeeds(&dir, &format!("bench place {options}")).contains("random read"));
    assert_eq!(fs::read_dir(dir.path().join("place")).unwrap().count(), 0);
    let message = fails_with(&dir, "bench nowhere --size 2M", 4);
    assert!(message.contains("nowhere"), "{message}");
    for wrong in ["--seconds 0", "--seconds inf", "--queue-depth 0", "--size 1X"] {
        fails_with(&dir, &format!("bench {wrong}"), 2);
    }
}

#[test]
fn a_benchmark_that_is_stopped_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let mut child = Command::new(crate::PROGRAM)
        .args(["bench", "--size", "2M", "--seconds", "3600"])
        .arg(dir.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while fs::read_dir(dir.path()).unwrap().count() == 0 {
        sleep(Duration::from_millis(10));
    }
    let stopped = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success());
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let message = io::read_to_string(child.stderr.take().unwrap()).unwrap();
    assert!(message.contains("stopped before the end"), "{message}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn completions_are_printed() {
    let dir = TempDir::new().unwrap();
    assert!(succeeds(&dir, "completions bash").contains("oblivio"));
}
