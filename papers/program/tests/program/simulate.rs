//! Tests of `oblivio-lab simulate` from the command line.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{fails_with, oblivio, succeeds};

const SMALL: &str = "simulate --made uniform --levels 12 --records 2000 --llc-kib 32";

fn json(dir: &TempDir, command_line: &str) -> Value {
    serde_json::from_str(&succeeds(dir, &format!("{command_line} --json"))).unwrap()
}

#[test]
fn the_results_of_a_generated_trace_are_consistent() {
    let dir = TempDir::new().unwrap();
    let text = succeeds(&dir, SMALL);
    for part in [
        "baseline, leaves on level 12",
        "position map 2: ",
        " of 51.2 GB/s",
        " nJ a line",
        "paths a second",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let run = json(&dir, SMALL);
    let number = |pointer: &str| run.pointer(pointer).and_then(Value::as_f64).unwrap();
    let [cycles, records] = [number("/outcome/cycles"), number("/outcome/records")];
    assert!((1900.0..=2000.0).contains(&records), "{run}");
    assert!((number("/cycles_per_record") - cycles / records).abs() < 1e-6, "{run}");
    let paths: f64 = ["data", "position_map/0", "position_map/1", "evictions", "dummies"]
        .map(|part| number(&format!("/outcome/memory/controller/{part}")))
        .iter()
        .sum();
    // 13 levels without those on the client, four slots each, read and written.
    let levels = 13.0 - number("/spec/oram/tree_top_levels");
    let dram = number("/outcome/memory/dram/reads") + number("/outcome/memory/dram/writes");
    assert!((dram / (paths * levels * 8.0) - 1.0).abs() < 0.01, "{run}");
    let gb = dram * 64.0 / (cycles / 3200.0) / 1000.0;
    assert!((number("/dram_gb_per_second") - gb).abs() < 1e-6 && gb < 51.2, "{run}");

    let nanojoules = number("/dram_nanojoules") / dram;
    assert!(nanojoules > 5.0 && text.contains(&format!("{nanojoules:.1} nJ a line")), "{text}");

    let same = json(&dir, SMALL);
    assert_eq!(same["outcome"], run["outcome"]);
    assert_ne!(json(&dir, &format!("{SMALL} --seed 2"))["outcome"], run["outcome"]);
    let plain = json(&dir, &format!("{SMALL} --variant none"));
    assert!(plain["outcome"]["cycles"].as_f64().unwrap() * 2.0 < cycles, "{plain}");
    assert!(plain["outcome"]["memory"]["dram"]["reads"].as_u64().unwrap() > 0, "{plain}");
}

#[test]
fn a_program_is_switched_out_now_and_then() {
    let dir = TempDir::new().unwrap();
    let tally =
        |run: &Value, count: &str| run["outcome"]["memory"]["controller"][count].as_u64().unwrap();
    let [alone, switched] =
        ["", " --context-switch 100000"].map(|more| json(&dir, &format!("{SMALL}{more}")));
    assert_eq!(tally(&alone, "context_switches"), 0);
    assert!(tally(&switched, "context_switches") > 5, "{switched}");
    assert!(switched["outcome"]["cycles"].as_u64() > alone["outcome"]["cycles"].as_u64());
    let output = succeeds(&dir, &format!("{SMALL} --context-switch 100000"));
    assert!(
        output.contains("switched out") && !succeeds(&dir, SMALL).contains("switched out"),
        "{output}"
    );
    fails_with(&dir, &format!("{SMALL} --context-switch 10"), 2);
    let refused = fails_with(&dir, &format!("{SMALL} --variant rho --context-switch 100000"), 2);
    assert!(refused.contains("rho cannot run"), "{refused}");
    assert!(refused.contains("leave --context-switch out"), "{refused}");
}

#[test]
fn a_trace_is_repeated_for_more_records() {
    let dir = TempDir::new().unwrap();
    succeeds(&dir, "trace make zipf --records 1000 --lines 4096 --output own.trace");
    let run = |more: &str| {
        let run = json(&dir, &format!("simulate own.trace --levels 12 --llc-kib 32 {more}"));
        run["outcome"]["records"].as_u64().unwrap()
    };
    assert!((750..=800).contains(&run("")), "a fifth is the warm-up");
    assert_eq!(run("--warm-up 0"), 1000);
    assert_eq!(run("--records 2500 --warm-up 0"), 2500);
}

#[test]
fn a_warm_up_of_the_whole_trace_is_reported() {
    let dir = TempDir::new().unwrap();
    succeeds(&dir, "trace make zipf --records 1000 --lines 4096 --output own.trace");
    let run = |warm_up: u32| {
        let run = format!("simulate own.trace --levels 12 --llc-kib 32 --warm-up {warm_up}");
        let (code, text, remarks) = oblivio(&dir, &run);
        assert_eq!(code, 0, "{remarks}");
        (text, remarks)
    };
    assert_eq!(run(999).1, "");
    for warm_up in [1000, 1500] {
        let (text, remarks) = run(warm_up);
        assert!(remarks.contains("the warm-up takes all 1000 records of the trace"), "{remarks}");
        let counted = text.lines().find(|line| line.starts_with("trace")).unwrap();
        assert!(counted.contains(" 1000 records") || counted.contains(" 9"), "{text}");
    }
}

/// Checks that each of these switches changes the outcome of a run.
#[test]
fn each_switch_changes_the_outcome() {
    const BUSY: &str = "--made uniform --records 2000";
    // With long gaps, which leave time for dummies.
    const QUIET: &str = "quiet.trace";
    const IN_ORDER: &str = "--fetch-room 1 --fetch-on-write-miss";
    let dir = TempDir::new().unwrap();
    let made = "--records 1500 --lines 16384 --gap 2000 --writes 0.3";
    succeeds(&dir, &format!("trace make zipf {made} --output quiet.trace"));
    let outcome = |work: &str, typed: &str| {
        let run = format!("simulate {work} --levels 12 --llc-kib 32 {typed}");
        json(&dir, &run)["outcome"].clone()
    };
    let switches = [
        (QUIET, "", "--write-marks 1/0"),
        (QUIET, "", "--pages as-is"),
        (QUIET, "", "--pages in-order"),
        (QUIET, IN_ORDER, "--paths-stop-retirement"),
        (QUIET, "", "--write-queue-answers"),
        (QUIET, "--variant rho --fill-llc 1000", "--fill-small-tree"),
        (BUSY, "", "--fetch-room 1"),
        (BUSY, "", "--fetch-on-write-miss"),
        (BUSY, "", "--plb-ways 4"),
        (BUSY, "--variant ir-stash", "--tree-top-ways 1"),
        (BUSY, "", "--initial empty"),
        (BUSY, "", "--layout heap"),
        (BUSY, "", "--whole-chip"),
    ];
    let is_idle = |(work, with, switch): &(&str, &str, &str)| {
        outcome(work, with) == outcome(work, &format!("{with} {switch}"))
    };
    let idle: Vec<_> = switches.into_iter().filter(is_idle).collect();
    assert_eq!(idle, [("", "", ""); 0]);
    // A working set that fits the LLC never misses after the LLC was filled.
    let misses = |fill: &str| {
        let run = format!("{QUIET} --records 500 --warm-up 0 --levels 12 --llc-kib 1024 {fill}");
        json(&dir, &format!("simulate {run}"))["outcome"]["processor"]["read_misses"].clone()
    };
    assert_ne!(misses(""), 0);
    assert_eq!(misses("--fill-llc 1500"), 0);
    // The switches on requests also apply to a machine from a file.
    let spec = succeeds(&dir, "simulate --levels 12 --llc-kib 32 --print-spec");
    fs::write(dir.path().join("own.toml"), spec).unwrap();
    let run = |more: &str| {
        let run = format!("simulate {BUSY} --spec own.toml {more}");
        json(&dir, &run)["outcome"].clone()
    };
    for switch in ["", "--write-marks 1/0", "--pages as-is"] {
        assert_eq!(run(switch), outcome(BUSY, switch), "{switch}");
    }
}

#[test]
fn switches_that_change_nothing_are_named() {
    let dir = TempDir::new().unwrap();
    let remarks = |more: &str| {
        let (code, _, remarks) = oblivio(&dir, &format!("{SMALL} {more}"));
        assert_eq!(code, 0, "{more}: {remarks}");
        remarks
    };
    for (typed, idle) in [
        (
            "--variant none --plb-ways 4 --pace free --channels 2",
            "this machine: --pace, --plb-ways\n",
        ),
        (
            "--variant none --write-marks 1/0 --initial empty --layout heap",
            "--initial, --write-marks\n",
        ),
        ("--variant baseline --tree-top-ways 8", "this machine: --tree-top-ways\n"),
        ("--variant llc-d --fetch-on-write-miss", "this machine: --fetch-on-write-miss\n"),
        ("--variant tiny-raw --channels 1", "--channels"),
        ("--variant tiny-raw", "leaves on level 16, the possible level nearest to --levels 12"),
        ("--variant rho --fill-small-tree", "this machine: --fill-small-tree\n"),
        ("--fill-llc 1000 --fill-small-tree", "this machine: --fill-small-tree\n"),
    ] {
        let output = remarks(typed);
        assert!(
            output.contains(&format!("without effect on {idle}")) || output.contains(idle),
            "{typed}: {output}"
        );
    }
    for typed in [
        "",
        "--variant none --channels 2 --pages as-is",
        "--variant ir-stash --tree-top-ways 8 --plb-ways 4 --whole-chip",
        "--variant rho --fill-llc 1000 --fill-small-tree",
        // A switch set to its default.
        "--variant none --plb-ways 1 --pace gap:250",
    ] {
        assert_eq!(remarks(typed), "", "{typed}");
    }
    let printed = "--made uniform --records 5 --levels 24 --whole-chip --pages as-is --print-spec";
    let output = oblivio(&dir, &format!("simulate {printed}")).2;
    let idle = "without effect on what is printed: --whole-chip, --pages, --made, --records\n";
    assert!(output.contains(idle), "{output}");
    let unused = "simulate --variant none --pace gap:777 --print-spec";
    let (_, spec, output) = oblivio(&dir, unused);
    assert!(spec.contains("gap = 777") && output.is_empty(), "{output}");
    let spec = succeeds(&dir, "simulate --variant none --print-spec");
    fs::write(dir.path().join("none.toml"), spec).unwrap();
    let run = "simulate --made uniform --records 500 --spec none.toml";
    assert_eq!(oblivio(&dir, run).2, "");
    assert!(oblivio(&dir, &format!("{run} --write-marks 1/0")).2.contains("--write-marks"));
}

#[test]
fn contradicting_switches_are_usage_errors() {
    let dir = TempDir::new().unwrap();
    for (typed, says) in [
        ("--paths-stop-retirement", "set --fetch-room to 1"),
        ("--paths-stop-retirement --fetch-room 1 --pace free", "set a pace of gap"),
        ("--plb-ways 3", "--plb-ways = 3: must divide the 16 blocks of the PLB"),
        ("--channels 3", "power of two"),
        ("--variant rho-delayed --context-switch 100000", "leave --context-switch out"),
    ] {
        for command in [SMALL, "simulate --levels 12 --print-spec"] {
            let message = fails_with(&dir, &format!("{command} {typed}"), 2);
            // The message names no key of a description.
            assert!(message.contains(says) && !message.contains('_'), "{typed}: {message}");
        }
    }
    // With a file, the message names a key.
    let spec = succeeds(&dir, "simulate --levels 12 --print-spec");
    let spec = spec.replace("paths_stop_retirement = false", "paths_stop_retirement = true");
    fs::write(dir.path().join("own.toml"), spec).unwrap();
    let message = fails_with(&dir, "simulate --made uniform --spec own.toml", 3);
    assert!(message.contains("own.toml") && message.contains("set fetch_room to 1"), "{message}");
}

#[test]
fn a_printed_machine_gives_the_same_run() {
    let dir = TempDir::new().unwrap();
    let machine = "--variant ir-oram --levels 12 --llc-kib 32 --pace gap:300";
    let work = "simulate --made scan --records 1000";
    let run = json(&dir, &format!("{work} {machine}"));
    for (file, more) in [("machine.toml", ""), ("machine.json", "--json")] {
        let text = succeeds(&dir, &format!("simulate {machine} --print-spec {more}"));
        fs::write(dir.path().join(file), &text).unwrap();
        let again = json(&dir, &format!("{work} --spec {file}"));
        assert_eq!((&again["spec"], &again["outcome"]), (&run["spec"], &run["outcome"]), "{file}");
        assert_eq!(succeeds(&dir, &format!("simulate --spec {file} --print-spec {more}")), text);
    }
    let text = fs::read_to_string(dir.path().join("machine.toml")).unwrap();
    for (good_part, bad_part, says) in [
        ("channels = 4", "chanels = 4", "chanels"),
        ("channels = 4", "channels = 3", "power of two"),
        ("fan_out = 16", "fan_out = 0", "fan"),
        ("tCAS = 11", "tCAS = -1", "tCAS"),
        ("tree_top_levels = 4", "tree_top_levels = 40", "level"),
        ("llc_ways = 8", "llc_ways = 0", "ways"),
    ] {
        assert!(text.contains(good_part), "{good_part} in {text}");
        fs::write(dir.path().join("bad.toml"), text.replace(good_part, bad_part)).unwrap();
        let message = fails_with(&dir, &format!("{work} --spec bad.toml"), 3);
        assert!(message.contains("bad.toml") && message.contains(says), "{bad_part}: {message}");
    }
    fs::write(dir.path().join("bad.toml"), text.replace("channels = 4", "")).unwrap();
    let message = fails_with(&dir, &format!("{work} --spec bad.toml"), 3);
    assert!(message.contains("bad.toml") && message.contains("channels"), "{message}");
}

#[test]
fn impossible_runs_are_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("no.trace"), "no trace").unwrap();
    succeeds(&dir, "trace make uniform --records 1000 --lines 1000000 --output large.trace");
    for (command_line, says) in [
        ("simulate nowhere", "check the path"),
        ("simulate no.trace", "no.trace, line 1"),
        ("simulate large.trace --levels 10", "touches"),
        ("simulate --made scan --spec nowhere", "check the path"),
    ] {
        let message = fails_with(&dir, command_line, 3);
        assert!(message.contains(says), "{command_line}: {message}");
    }
    for command_line in [
        "simulate",
        "simulate no.trace --made scan",
        "simulate --made sort",
        "simulate --made scan --variant fast",
        "simulate --made scan --spec a.toml --channels 2",
        "simulate --made scan --spec a.toml --levels 12",
        "simulate --made scan --records 0",
    ] {
        fails_with(&dir, command_line, 2);
    }
}
