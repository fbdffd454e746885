//! What a user types, and what comes back.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use serde_json::Value;
use tempfile::TempDir;

use crate::common::{bad, good, oblivio};

fn size(dir: &TempDir, path: impl AsRef<Path>) -> u64 {
    fs::metadata(dir.path().join(path)).unwrap().len()
}

/// A folder with two files, one of them in a folder of its own.
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
    fs::write(dir.path().join("figures.json"), "[]").unwrap();
    fs::write(dir.path().join("other.json"), "{}").unwrap();
    let cases = [
        ("lab draw figures.json", "oblivio lab report figures.json"),
        ("lab draw other.json", "other.json: this is no results file"),
        ("demo --folder nowhere", "check the path"),
        ("demo --folder empty", "name a folder that does"),
        ("view export nowhere", "check the path"),
        ("view export data/large", "not a whole view file"),
        ("lab draw data/large", "give a file that this program wrote"),
        ("lab run stash-study --accesses 5", "too few"),
        ("lab run alloc-search --levels 6 --load 9", "a load is"),
        ("lab run techniques --requests 5", "a run has 1000"),
        ("lab run techniques --trace nowhere", "check the path"),
        ("lab run techniques --trace data/deeper/small", "small, line 1: this is no record"),
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
        "lab run techniques --levels 7",
        "lab run techniques --levels 21",
        "lab run techniques --trace",
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
    // Runs that are recorded are not made again, and those of another seed are.
    let runs = || fs::read_to_string(dir.path().join("results/stash-study.jsonl")).unwrap();
    let once = runs();
    let command_line = "lab run stash-study --quick --accesses 8000 --output results";
    assert_eq!(good(&dir, command_line).lines().next(), table.lines().next());
    assert_eq!(runs(), once);
    good(&dir, &format!("{command_line} --seed 2"));
    assert_eq!(runs().lines().count(), 2 * once.lines().count());
    let of_raw =
        good(&dir, "lab run stash-study --quick --accesses 8000 --scheme raw --output raw");
    assert!(of_raw.contains("RAW Z5A5") && !of_raw.contains("Path Z4"), "{of_raw}");
    let json = good(&dir, "lab run stash-study --quick --accesses 8000 --json");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], "stash-study");
}

#[test]
fn the_lab_searches_bucket_sizes_and_draws_again() {
    let dir = TempDir::new().unwrap();
    assert!(good(&dir, "lab list").contains("alloc-search"));
    let search = "lab run alloc-search --quick --levels 6 --accesses 4000 --output results";
    let text = good(&dir, search);
    assert!(text.contains("IR-Alloc 4") && text.contains("found: "), "{text}");
    let again = good(&dir, "lab draw results/alloc-search.json --output pictures");
    assert_eq!(text.lines().next(), again.lines().next());
    let json = good(&dir, &format!("{search} --json"));
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], "alloc-search");
    assert_eq!(results["profile"].as_array().unwrap().len(), 7);
}

#[test]
fn the_lab_searches_bucket_sizes_by_time_and_goes_on_where_it_was() {
    let dir = TempDir::new().unwrap();
    let search = "lab run alloc-search --judge time --ir-stash --quick --levels 10 --accesses 1000 --output results";
    let (code, text, remarks) = oblivio(&dir, search);
    assert!(code == 0 && remarks.contains("profiles to compare with"), "{remarks}");
    assert!(text.contains("cycles/record") && text.contains("% less time"), "{text}");
    assert!(!text.contains("plot"), "{text}");
    let runs = || std::fs::read_to_string(dir.path().join("results/alloc-search.jsonl")).unwrap();
    let made = runs();
    assert!(made.lines().count() > 6 && made.contains("\"tree_top_ways\":4"), "{made}");
    let json = good(&dir, &format!("{search} --json"));
    assert_eq!(runs(), made, "nothing is run again");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["plan"]["judge"]["time"]["ir_stash"], true);
    assert!(results["baseline"]["cycles_per_record"].as_f64().unwrap() > 1.0);
    let again = good(&dir, "lab draw results/alloc-search.json --output pictures");
    assert_eq!(text.lines().next(), again.lines().next());
    let of_slots = bad(&dir, "lab run alloc-search --quick --ir-stash", 2);
    assert!(of_slots.contains("add --judge time"), "{of_slots}");
    assert!(bad(&dir, "lab run alloc-search --judge time --levels 5", 3).contains("level 8 to 25"));
}

#[test]
fn the_lab_compares_its_model_of_media_with_arrays_that_hold_data() {
    let dir = TempDir::new().unwrap();
    let table = good(&dir, "lab run range-media --blocks 1024 --output out");
    assert!(table.contains("range     1024 KiB") && table.contains("off by"), "{table}");
    let again = good(&dir, "lab draw out/range-media.json");
    assert!(table.starts_with(again.trim_end()), "{again}");
    assert!(bad(&dir, "lab run range-media --blocks 100 --output out", 3).contains("ask for more"));
}

#[test]
fn the_lab_counts_what_is_left_on_the_client_of_an_oram_of_ranges() {
    let dir = TempDir::new().unwrap();
    let table = good(&dir, "lab run range-stash --blocks 20000 --seeds 2 --output out");
    assert!(table.contains("published Z4 A1") && table.contains("volume Z5 A5"), "{table}");
    let again = good(&dir, "lab draw out/range-stash.json");
    assert!(table.starts_with(again.trim_end()), "{again}");
    assert!(bad(&dir, "lab run range-stash --blocks 100 --output out", 3).contains("ask for more"));
}

#[test]
fn the_lab_puts_ranges_on_models_of_media() {
    let dir = TempDir::new().unwrap();
    assert!(good(&dir, "lab list").contains("\nroram "));
    let tables = good(&dir, "lab run roram --quick --output out");
    for what in ["a hard disk", "an SSD", "a link", "rORAM", "Batched Eviction"] {
        assert!(tables.contains(what), "{tables}");
    }
    let again = good(&dir, "lab draw out/results.json");
    assert!(tables.starts_with(again.trim_end()), "{again}");
    let report = good(&dir, "lab report out/figures.json --output page.html");
    assert!(report.contains("page.html") && size(&dir, "page.html") > 0, "{report}");
    let json = good(&dir, "lab run roram --level 8 --ell 3 --seed 2 --output out --json");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&results["experiment"], &results["level"]), (&"roram".into(), &8.into()));
    let refused = bad(&dir, "lab run roram --level 4 --ell 5 --output out", 3);
    assert!(refused.contains("--ell"), "{refused}");
}

#[test]
fn the_lab_puts_orams_on_links() {
    let dir = TempDir::new().unwrap();
    assert!(good(&dir, "lab list").contains("\nlinks "));
    let tables = good(&dir, "lab run links --output out");
    for what in ["S³ORAM, Table 1", "20.3", "29/5 Mbit/s", "Path ORAM Z4", "default volume"] {
        assert!(tables.contains(what), "{tables}");
    }
    let again = good(&dir, "lab draw out/results.json");
    assert!(tables.starts_with(again.trim_end()), "{again}");
    let report = good(&dir, "lab report out/figures.json --output page.html");
    assert!(report.contains("page.html") && size(&dir, "page.html") > 0, "{report}");
    let json = good(&dir, "lab run links --size 1G --output out --json");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&results["experiment"], &results["disk_bytes"]),
        (&"links".into(), &(1 << 30).into())
    );
    // Five links, eight sizes of blocks, seven forms.
    assert_eq!(results["cells"].as_array().unwrap().len(), 280);
}

#[test]
fn the_lab_puts_what_s3oram_states_beside_a_model() {
    let dir = TempDir::new().unwrap();
    assert!(good(&dir, "lab list").contains("\ns3oram "));
    let tables = good(&dir, "lab run s3oram --quick --output out");
    for what in ["20.3 s", "PoissCDF 0.888", "not stated in the text", "Fig. 8", "numbers agree"] {
        assert!(tables.contains(what), "no {what:?} in {tables}");
    }
    let again = good(&dir, "lab draw out/s3oram.json");
    assert!(tables.starts_with(again.trim_end()), "{again}");
    let json = good(&dir, "lab run s3oram --quick --output out --json");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], "s3oram");
    // Sixty-nine places of six figures, six schemes.
    assert_eq!(results["cells"].as_array().unwrap().len(), 69 * 6);
    assert!(results["measured"].as_array().unwrap().is_empty());
}

#[test]
fn the_lab_counts_what_raw_oram_moves_beside_the_formulas() {
    let dir = TempDir::new().unwrap();
    let command_line = "lab run raw-traffic --quick --accesses 20000 --output out";
    let tables = good(&dir, command_line);
    for part in ["Memory traffic of RAW ORAM", "Z5 A5, memory traffic", "Z16 A20", "analysis holds"]
    {
        assert!(tables.contains(part), "no {part:?} in {tables}");
    }
    let again = good(&dir, "lab draw out/results.json");
    assert!(
        again.contains("Encryption of RAW ORAM") && tables.contains(again.trim_end()),
        "{again}"
    );
    let json: Value = serde_json::from_str(&good(&dir, &format!("{command_line} --json"))).unwrap();
    assert_eq!(json["experiment"], "raw-traffic");
    good(&dir, "lab report out/figures.json --output report.html");
    bad(&dir, "lab run raw-traffic --seeds 1", 2);
}

#[test]
fn the_lab_puts_its_dram_beside_others_and_the_report_draws_it() {
    let dir = TempDir::new().unwrap();
    assert!(good(&dir, "lab list").contains("\ndram "));
    let tables = good(&dir, "lab run dram --seed 2 --output out");
    for part in ["| path-like, 4 channels ", "| read anywhere, 1 channel ", "out/figures.json"] {
        assert!(tables.contains(part), "no {part:?} in {tables}");
    }
    assert!(!tables.contains("differs"), "{tables}");
    let again = good(&dir, "lab draw out/results.json");
    assert!(tables.starts_with(again.trim_end()), "{again}");
    let report = good(&dir, "lab report out/figures.json --output page.html");
    assert!(report.contains("page.html") && size(&dir, "page.html") > 0, "{report}");
    let json = good(&dir, "lab run dram --seed 2 --output out --json");
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&results["experiment"], &results["seed"]), (&"dram".into(), &2.into()));
}

#[test]
fn the_lab_compares_techniques_and_shows_the_table_again() {
    let dir = TempDir::new().unwrap();
    assert!(good(&dir, "lab list").contains("techniques"));
    let lines: Vec<_> = (0..500).map(|i| format!("1 {} {}", i * 64, i * 6400)).collect();
    fs::write(dir.path().join("own.trace"), lines.join("\n")).unwrap();
    let run = "lab run techniques --quick --levels 8 --requests 1000 --trace own.trace";
    let text = good(&dir, &format!("{run} --threads 2 --output results"));
    assert!(text.contains("| IR-Stash ") && text.contains("own.trace, per request"), "{text}");
    let again = good(&dir, "lab draw results/techniques.json");
    assert!(text.starts_with(again.trim_end()), "{again}");
    let json = good(&dir, &format!("{run} --json"));
    let results: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(results["experiment"], "techniques");
    assert_eq!(results["plan"]["seed"], 1);
}

#[test]
fn a_benchmark_reports_every_load_and_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("place")).unwrap();
    let options = "--size 2M --seconds 0.05 --queue-depth 4";
    let report: Value =
        serde_json::from_str(&good(&dir, &format!("bench place {options} --json"))).unwrap();
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
        // What the thread still did after the load before is counted with this one: it shows where there are two requests.
        // Where others have the processor at that moment it is some milliseconds.
        let left_over = f64::max(50.0, 20_000.0 / figure("requests"));
        assert!((parts - all).abs() <= all / 100.0 + left_over, "{load}");
        assert!(spent("processors") > 0.0, "{load}");
        let writes = load["name"].as_str().unwrap().contains("write");
        assert_eq!(load["write_amplification"].as_f64().is_some_and(|x| x > 0.0), writes, "{load}");
    }
    assert_eq!(loads[0]["requests"], 2);
    assert!(good(&dir, &format!("bench place {options}")).contains("random read"));
    assert_eq!(fs::read_dir(dir.path().join("place")).unwrap().count(), 0);
    let message = bad(&dir, "bench nowhere --size 2M", 4);
    assert!(message.contains("nowhere"), "{message}");
    for wrong in ["--seconds 0", "--seconds inf", "--queue-depth 0", "--size 1X"] {
        bad(&dir, &format!("bench {wrong}"), 2);
    }
}

#[test]
fn a_benchmark_that_is_stopped_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_oblivio"))
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
    assert!(good(&dir, "completions bash").contains("oblivio"));
}
