//! Tests of `oblivio-lab run evaluation` from the command line: recorded runs, figures, and
//! continuing after an interruption.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::{fails_with, oblivio, succeeds};

/// The command, with few records and the smallest tree that the figures of these tests allow.
const SMALL: &str = "run evaluation --quick --records 400 --levels 12 --figure made --output out";

fn file(dir: &TempDir, name: &str) -> PathBuf {
    dir.path().join("out").join(name)
}

fn text(dir: &TempDir, name: &str) -> String {
    fs::read_to_string(file(dir, name)).unwrap()
}

#[test]
fn a_figure_from_the_runs_that_it_needs_and_no_others() {
    let dir = TempDir::new().unwrap();
    let table = succeeds(&dir, SMALL);
    for part in [
        "## Speed of each scheme over Baseline on made traces",
        "| arithmetic mean ",
        "| geometric mean ",
        "IR-ORAM",
        "32 runs",
        "figures.json",
    ] {
        assert!(table.contains(part), "no {part:?} in {table}");
    }
    let runs = text(&dir, "results.jsonl");
    assert_eq!(runs.lines().count(), 32);
    let run: Value = serde_json::from_str(runs.lines().next().unwrap()).unwrap();
    assert_eq!(
        run["scale"],
        serde_json::json!({"leaf_level": 12, "records": 400, "warm_up": 100, "llc_warm_up": 0})
    );
    assert!((300..=400).contains(&run["outcome"]["records"].as_u64().unwrap()), "{run}");
    assert!(run["seconds"].as_f64().unwrap() > 0.0);
    let figures: Value = serde_json::from_str(&text(&dir, "figures.json")).unwrap();
    assert_eq!(figures[0]["id"], "made");
    assert_eq!(figures[0]["plot"]["bars"]["series"].as_array().unwrap().len(), 7);

    // The second time, as JSON: no run is repeated.
    let again: Value = serde_json::from_str(&succeeds(&dir, &format!("{SMALL} --json"))).unwrap();
    assert_eq!(again, figures);
    assert_eq!(text(&dir, "results.jsonl"), runs);
}

#[test]
fn after_an_interruption_only_missing_runs_are_made() {
    let dir = TempDir::new().unwrap();
    succeeds(&dir, SMALL);
    let (runs, figures) = (text(&dir, "results.jsonl"), text(&dir, "figures.json"));
    fs::write(file(&dir, "results.jsonl"), &runs[..runs.len() - 10]).unwrap();
    let (code, _, remark) = oblivio(&dir, SMALL);
    assert_eq!(code, 0, "{remark}");
    assert!(remark.contains("is torn and was dropped"), "{remark}");
    let whole = text(&dir, "results.jsonl");
    let (last, pairs) = (runs.lines().count() - 1, whole.lines().zip(runs.lines()));
    assert_eq!(pairs.take_while(|(now, before)| now == before).count(), last);
    assert_eq!(whole.lines().count(), last + 1);
    assert_eq!(text(&dir, "figures.json"), figures);

    fs::write(file(&dir, "results.jsonl"), whole.replacen('{', "[", 1)).unwrap();
    let message = fails_with(&dir, SMALL, 3);
    assert!(message.contains("line 1 of out/results.jsonl"), "{message}");

    // Only the compressed file exists, as in the repository, and lacks the last run.
    let start = whole.trim_end().rfind('\n').unwrap() + 1;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&whole.as_bytes()[..start]).unwrap();
    let packed = packed.finish().unwrap();
    fs::write(file(&dir, "results.jsonl.gz"), &packed).unwrap();
    fs::remove_file(file(&dir, "results.jsonl")).unwrap();
    let (code, _, remark) = oblivio(&dir, &format!("{SMALL} --recorded"));
    assert_eq!(code, 0, "{remark}");
    assert!(remark.contains("unpacked out/results.jsonl.gz to out/results.jsonl"), "{remark}");
    assert_eq!(text(&dir, "results.jsonl"), whole[..start]);
    succeeds(&dir, SMALL);
    assert_eq!(text(&dir, "results.jsonl").lines().count(), last + 1);
    assert_eq!(text(&dir, "figures.json"), figures);

    fs::write(file(&dir, "results.jsonl.gz"), &packed[..packed.len() / 2]).unwrap();
    fs::remove_file(file(&dir, "results.jsonl")).unwrap();
    let message = fails_with(&dir, SMALL, 3);
    assert!(message.contains("out/results.jsonl.gz cannot be unpacked"), "{message}");
}

#[test]
fn traces_are_read_from_a_directory() {
    let dir = TempDir::new().unwrap();
    let traces = dir.path().join("traces");
    fs::create_dir(&traces).unwrap();
    for (name, kind) in [("mcf", "pointer-chase"), ("lbm", "store-stream"), ("other", "scan")] {
        let made =
            format!("trace make {kind} --records 500 --lines 4096 --output traces/{name}.bin");
        succeeds(&dir, &made);
    }
    let fig11 = SMALL.replace("made", "fig11") + " --traces traces";
    let table = succeeds(&dir, &fig11);
    for part in ["| mcf ", "| lbm ", "6 runs", "there is no trace: gcc, xz"] {
        assert!(table.contains(part), "no {part:?} in {table}");
    }
    assert!(!table.contains("| gcc ") && !table.contains("| other "), "{table}");

    fs::copy(traces.join("mcf.bin"), traces.join("mcf.again")).unwrap();
    assert!(fails_with(&dir, &fig11, 3).contains("a second trace of mcf"));
    fs::write(traces.join("mcf.again"), "no trace").unwrap();
    fs::remove_file(traces.join("mcf.bin")).unwrap();
    assert!(fails_with(&dir, &fig11, 3).contains("mcf.again"));
    fs::remove_dir_all(&traces).unwrap();
    assert!(fails_with(&dir, &fig11, 3).contains("check the path"));
    fs::create_dir(&traces).unwrap();
    assert!(fails_with(&dir, &fig11, 3).contains("no trace of any program"));
}

#[test]
fn figures_are_listed_and_others_refused() {
    let dir = TempDir::new().unwrap();
    let list = succeeds(&dir, "list");
    for part in ["evaluation", "fig10", "fig16"] {
        assert!(list.contains(part), "{list}");
    }
    assert!(fails_with(&dir, "run evaluation --quick --figure fig7", 3).contains("choose from"));
    assert!(fails_with(&dir, "run evaluation --quick --pace soon", 2).contains("as in gap:500"));
    assert!(
        fails_with(&dir, "run evaluation --figure fig16 --levels 25", 3).contains("level 25 +1")
    );
    assert!(fails_with(&dir, "run evaluation --quick --jobs 0", 2).contains("0 is not in 1.."));
    fs::write(dir.path().join("file"), "").unwrap();
    let message = fails_with(&dir, "run evaluation --quick --output file", 4);
    assert!(message.contains("file is a file, not a directory"), "{message}");
}

#[test]
fn a_manifest_may_only_name_existing_figures() {
    let dir = TempDir::new().unwrap();
    let figure = "id = \"mine\"\ntitle = \"x\"\npaper = \"x\"\nvariants = [\"rho\"]\n\
        workloads = [\"uniform\"]\n\
        [plot]\nlabels = \"workloads\"\nvalue = \"x\"\n\
        measures = [{ name = \"x\", measure = { speed-over = \"baseline\" } }]\n\
        [[stated]]\nwhat = \"x\"\nvariant = \"rho\"\n\
        measure = { speed-over = \"baseline\" }\n\
        paper = 9.0\nband = 0.1\nwhy = \"x\"\nshown-by = \"no-such\"\n";
    fs::write(dir.path().join("mine.toml"), figure).unwrap();
    let message = fails_with(&dir, "run evaluation --quick --manifest mine.toml --output out", 3);
    assert!(message.contains("shown-by = \"no-such\" is no figure"), "{message}");
    assert!(!dir.path().join("out").exists());
}

#[test]
fn switches_are_checked_against_all_machines_of_the_figures() {
    let dir = TempDir::new().unwrap();
    let tiny = "run evaluation --quick --records 100 --levels 12 --figure tiny07 --output out";
    let (code, _, remarks) = oblivio(&dir, &format!("{tiny} --channels 1 --pages as-is"));
    assert_eq!(code, 0, "{remarks}");
    assert!(remarks.contains("without effect on these figures: --channels\n"), "{remarks}");
    let (_, _, remarks) = oblivio(&dir, &format!("{SMALL} --plb-ways 4"));
    assert!(!remarks.contains("without effect"), "{remarks}");
    let message = fails_with(&dir, &format!("{SMALL} --paths-stop-retirement"), 2);
    assert!(message.contains("set --fetch-room to 1"), "{message}");
    // Messages about a manifest name its keys, not switches.
    let figure = "id = \"mine\"\ntitle = \"x\"\npaper = \"x\"\nvariants = [\"rho\"]\n\
        workloads = [\"uniform\"]\n\
        settings = [{ context-switch = 100000 }]\n\
        [plot]\nlabels = \"workloads\"\nvalue = \"x\"\n\
        measures = [{ name = \"x\", measure = \"wait-for-each-read\" }]\n";
    fs::write(dir.path().join("mine.toml"), figure).unwrap();
    let message =
        fails_with(&dir, "run evaluation --quick --levels 12 --manifest mine.toml --output out", 3);
    assert!(message.contains("rho under uniform cannot run"), "{message}");
    assert!(message.contains("leave context-switch out"), "{message}");
}

#[test]
fn initial_trees_are_kept_and_reused() {
    let dir = TempDir::new().unwrap();
    let with_trees = |output: &str| {
        let run = SMALL.replace("--output out", &format!("--output {output} --trees trees"));
        let (code, _, remarks) = oblivio(&dir, &run);
        assert_eq!(code, 0, "{remarks}");
        remarks
    };
    let outcomes = |output: &str| {
        let runs = fs::read_to_string(dir.path().join(output).join("results.jsonl")).unwrap();
        let outcome = |line| {
            let mut run: Value = serde_json::from_str(line).unwrap();
            run["seconds"] = Value::Null;
            (run["key"].to_string(), run)
        };
        runs.lines().map(outcome).collect::<BTreeMap<_, _>>()
    };
    succeeds(&dir, SMALL);
    let expected = outcomes("out");
    for output in ["first", "second"] {
        assert!(!with_trees(output).contains(".tree"));
        assert_eq!(outcomes(output), expected);
    }
    let trees: Vec<_> = fs::read_dir(dir.path().join("trees")).unwrap().collect();
    // Trees of Baseline (shared by the variants with the same ORAM), IR-Alloc 1 and 4, IR-Stash,
    // and IR-ORAM.
    assert_eq!(trees.len(), 5, "{trees:?}");
    for tree in trees {
        fs::write(tree.unwrap().path(), "a tree?").unwrap();
    }
    let remarks = with_trees("third");
    assert!(remarks.contains("is unusable and is made again"), "{remarks}");
    assert_eq!(outcomes("third"), expected);
}

/// Runs the example of `docs/add-a-figure.md`: the figure and its machine must be read from two
/// files. A missing machine, a duplicate figure and an oversized file must be refused.
#[test]
fn a_figure_and_its_machines_come_from_files() {
    const PAGE: &str = include_str!("../../../../docs/add-a-figure.md");
    let (_, figure) = PAGE.split_once("```toml\n").unwrap();
    let (figure, _) = figure.split_once("```").unwrap();
    let dir = TempDir::new().unwrap();
    let printed = PAGE.lines().find(|line| line.contains("--print-spec > my-machine.toml"));
    let (printed, _) = printed.unwrap().split_once(" > ").unwrap();
    let spec = succeeds(&dir, printed.strip_prefix("oblivio-lab ").unwrap());
    assert!(spec.contains("\nplb_ways = 1\n"), "{spec}");
    let spec = spec.replace("\nplb_ways = 1\n", "\nplb_ways = 4\n");
    fs::write(dir.path().join("my-machine.toml"), spec).unwrap();
    fs::write(dir.path().join("my-figure.toml"), figure).unwrap();

    const RUN: &str = "run evaluation --quick --records 400 --output out --manifest my-figure.toml";
    let (code, table, remarks) = oblivio(&dir, RUN);
    assert_eq!(code, 0, "{remarks}");
    assert!(remarks.contains("8 runs, of which 0 are kept; the rest takes about "), "{remarks}");
    for part in ["Wider sets of the PLB", "Baseline, PLB of 4 ways, from a file", "8 runs"] {
        assert!(table.contains(part), "no {part:?} in {table}");
    }
    let (_, _, remarks) = oblivio(&dir, RUN);
    assert!(remarks.contains("8 runs, all of which are kept"), "{remarks}");

    assert!(
        fails_with(&dir, &format!("{RUN} --figure fig10"), 3).contains("choose from my-figure")
    );
    let twice = format!("{RUN} my-figure.toml");
    assert!(fails_with(&dir, &twice, 3).contains("two manifests have the id my-figure"));
    fs::remove_file(dir.path().join("my-machine.toml")).unwrap();
    let message = fails_with(&dir, RUN, 3);
    assert!(message.contains("my-figure.toml, line 15: machine wide-file"), "{message}");
    fs::write(dir.path().join("my-figure.toml"), " ".repeat((1 << 20) + 1)).unwrap();
    assert!(fails_with(&dir, RUN, 3).contains("more than 1048576 bytes"));
}

#[test]
fn recorded_figures_are_drawn_without_traces_and_without_runs() {
    let dir = TempDir::new().unwrap();
    let fig11 = SMALL.replace("made", "fig11").replace("12", "16");
    succeeds(&dir, &fig11);
    let (runs, figures) = (text(&dir, "results.jsonl"), text(&dir, "figures.json"));
    let recorded = format!("{fig11} --recorded");
    let output = succeeds(&dir, &recorded);
    assert!(output.contains("| mcf ") && output.contains("42 runs"), "{output}");
    let again = text(&dir, "figures.json");
    // The origin of the figures names the samples.
    assert!(figures.contains("(the samples, the first 3000 records"), "{figures}");
    assert_eq!(again, figures);
    assert_eq!(text(&dir, "results.jsonl"), runs);

    let some: String = runs.lines().skip(1).map(|line| format!("{line}\n")).collect();
    fs::write(file(&dir, "results.jsonl"), &some).unwrap();
    let remark = oblivio(&dir, &recorded).2;
    assert!(remark.contains("1 run of these figures is not recorded"), "{remark}");
    assert_eq!(text(&dir, "results.jsonl"), some);
    assert!(fails_with(&dir, &format!("{recorded} --traces out"), 2).contains("--traces"));
    // If no run is recorded, none is made, and existing figures stay.
    let before = text(&dir, "figures.json");
    let output = fails_with(&dir, &format!("{recorded} --channels 1"), 3);
    assert!(output.contains("figures is recorded in --output"), "{output}");
    assert_eq!(text(&dir, "figures.json"), before);
    let output = fails_with(&dir, &recorded.replace("--output out", "--output oot"), 3);
    assert!(output.contains("there are no recorded runs in oot: name the directory"), "{output}");
    assert!(!dir.path().join("oot").exists());
}

#[test]
fn dram_commands_are_checked_on_request() {
    let dir = TempDir::new().unwrap();
    let fig14 = SMALL.replace("made", "fig14").replace("12", "16");
    succeeds(&dir, &fig14);
    let runs = text(&dir, "results.jsonl");
    assert!(!runs.contains("checked_commands"));
    succeeds(&dir, &format!("{fig14} --check-commands"));
    let with_checked = text(&dir, "results.jsonl");
    let checked: Vec<Value> = with_checked
        .lines()
        .skip(runs.lines().count())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(checked.len(), runs.lines().count());
    let commands: Vec<_> =
        checked.iter().map(|run| run["checked_commands"].as_u64().unwrap()).collect();
    // A single program may fit its caches and make few requests.
    assert!(commands.iter().sum::<u64>() > 100_000, "{commands:?}");
}
