//! Tests of evaluations on small trees.

mod own;
mod resolved;
mod trees;

use std::num::NonZeroUsize;

use oblivio_sim::trace::{AccessKind, Record, Trace};

mod readings;

use super::*;
use crate::counting::Counting;
use crate::report::{self, Figure, Plot, Verdict, section};
use crate::{KeptRecords, LabError, Trees, unpack};

fn small() -> EvaluationPlan {
    let quick = EvaluationPlan::quick();
    let scale = Scale { leaf_level: 12, records: 2000, warm_up: 500, llc_warm_up: 1000 };
    EvaluationPlan { scale, with_readings: true, ..quick }
}

/// A manifest of a figure with two machines under two synthetic workloads.
fn manifest() -> Manifest {
    let made = Manifest::chosen(&["made".to_owned()]).unwrap().remove(0);
    Manifest {
        variants: vec!["ir-alloc-4".to_owned(), "none".to_owned()],
        workloads: vec!["uniform".to_owned(), "store-stream".to_owned()],
        ..made
    }
}

/// A stated number for the speed of IR-Alloc 4 over Baseline, averaged over all workloads.
fn stated(what: &str, paper: f64, band: f64) -> StatedNumber {
    StatedNumber {
        what: what.to_owned(),
        variant: "ir-alloc-4".to_owned(),
        workload: None,
        measure: Measure::SpeedOver("baseline".to_owned()),
        deviation: false,
        programs: None,
        paper,
        band,
        readings: Vec::new(),
        fitted: false,
        why: None,
        limits: None,
        shown_by: None,
    }
}

fn evaluate(
    plan: &EvaluationPlan,
    figures: &[Manifest],
    kept: &[RunRecord],
    jobs: usize,
) -> (Vec<RunRecord>, Counting) {
    let (records, host) = evaluate_with(plan, figures, kept, jobs, None);
    assert!(host.remarks.lock().unwrap().is_empty());
    (records, host)
}

fn evaluate_with(
    plan: &EvaluationPlan,
    figures: &[Manifest],
    kept: &[RunRecord],
    jobs: usize,
    trees: Option<&dyn Trees>,
) -> (Vec<RunRecord>, Counting) {
    let (programs, host) = (Programs::samples().unwrap(), Counting::default());
    let runs = plan.runs(figures, &programs).unwrap();
    let jobs = NonZeroUsize::new(jobs).unwrap();
    let records = run(plan, &runs, &programs, kept, jobs, &host, trees).unwrap();
    (records, host)
}

fn untimed(records: &[RunRecord]) -> Vec<RunRecord> {
    records.iter().map(|record| RunRecord { seconds: 0.0, ..record.clone() }).collect()
}

fn figure(plan: &EvaluationPlan, manifest: &Manifest, records: &[RunRecord]) -> Figure {
    let programs = Programs::samples().unwrap();
    figures(std::slice::from_ref(manifest), plan, &programs, records).unwrap().remove(0)
}

#[test]
fn a_run_that_several_figures_need_is_made_once() {
    let all = Manifest::chosen(&[]).unwrap();
    let programs = Programs::samples().unwrap();
    let runs = EvaluationPlan::quick().runs(&all, &programs).unwrap();
    for (number, run) in runs.iter().enumerate() {
        assert!(!runs[..number].contains(run), "{run:?}");
    }
    // Machines × workloads × settings. Figures of all 14 workloads: 15 machines, and 3 without a
    // pace. `made`: 8 × 4. `fetches`: 5 × 3 × 5. `pages`: 4 × 3. `depth`: 3 × 4. `tiny07`: 3 × 3.
    assert_eq!(runs.len(), 14 * (15 + 3) + 8 * 4 + 5 * 3 * 5 + 4 * 3 + 3 * 4 + 3 * 3);
    let ids = ["fig14", "fig02"].map(str::to_owned);
    let few = EvaluationPlan::quick().runs(&Manifest::chosen(&ids).unwrap(), &programs).unwrap();
    assert_eq!(few.len(), 14 * 2);
}

#[test]
fn every_machine_runs() {
    let every: Vec<_> = VARIANTS.iter().map(|variant| variant.name.to_string()).collect();
    let manifest = Manifest { variants: every, ..manifest() };
    let (records, _) = evaluate(&small(), &[manifest], &[], 2);
    assert_eq!(records.len(), 2 * VARIANTS.len());
    for RunRecord { key, outcome, .. } in &records {
        // The processor is a few records ahead when the warm-up ends.
        assert!((1900..=2000).contains(&outcome.records), "{key}: {}", outcome.records);
        assert!(outcome.cycles > 0, "{key}");
    }
    let find = |variant: &str| {
        let record =
            |record: &&RunRecord| record.variant == variant && record.workload == "uniform";
        records.iter().find(record).unwrap().outcome.clone()
    };
    assert!(find("none").cycles * 2 < find("baseline").cycles);
    assert!(find("ir-alloc-4").cycles < find("baseline").cycles);
    assert!(find("rho").memory.controller.unwrap().small > 0);
}

/// The switch `fills_small_tree` is a property of the warm-up, not of a machine. It must change the
/// outcome of ρ, and not the outcome of Baseline.
#[test]
fn filling_the_small_tree_only_changes_runs_of_rho() {
    let manifest = Manifest { variants: vec!["rho".into(), "baseline".into()], ..manifest() };
    let filled = small();
    let filled = EvaluationPlan {
        switches: Switches { fills_small_tree: true, ..filled.switches.clone() },
        ..filled
    };
    let [without, with] =
        [small(), filled].map(|plan| evaluate(&plan, std::slice::from_ref(&manifest), &[], 2).0);
    for (without, with) in without.iter().zip(&with) {
        let is_same = without.outcome == with.outcome;
        assert_eq!(is_same, without.variant == "baseline", "{} {}", without.key, with.key);
    }
}

#[test]
fn records_depend_on_the_seed_not_on_threads_and_survive_their_file() {
    let (once, host) = evaluate(&small(), &[manifest()], &[], 1);
    let (again, _) = evaluate(&small(), &[manifest()], &[], 3);
    assert_eq!(untimed(&once), untimed(&again));
    assert!(once.iter().all(|record| record.seconds > 0.0 && record.machine == "an abacus"));
    assert_eq!(host.planned.into_inner(), host.made.into_inner());
    let file = host.file.into_inner().unwrap();
    let kept = KeptRecords::read("results.jsonl", file.as_bytes()).unwrap();
    assert_eq!((kept.records, kept.whole_bytes), (once.clone(), file.len()));
    let (other, _) = evaluate(&EvaluationPlan { seed: 2, ..small() }, &[manifest()], &[], 2);
    assert_ne!(once[0].outcome, other[0].outcome);
}

/// A record states whether its commands were checked, and an unchecked record does not count as
/// checked.
#[test]
fn commands_are_checked_on_request_and_records_state_it() {
    let checking = EvaluationPlan { checks_commands: true, ..small() };
    let (plain, host) = evaluate(&small(), &[manifest()], &[], 1);
    assert!(plain.iter().all(|record| record.checked_commands.is_none()));
    assert!(!host.file.into_inner().unwrap().contains("checked_commands"));
    let (checked, host) = evaluate(&checking, &[manifest()], &plain, 2);
    assert_eq!(host.file.into_inner().unwrap().lines().count(), plain.len());
    assert!(host.foreseen.into_inner().unwrap()[0].starts_with("6 runs, of which 0 are kept"));
    for (plain, checked) in plain.iter().zip(&checked) {
        let dram = checked.outcome.memory.dram;
        assert!(checked.checked_commands.unwrap() > dram.lines() + dram.activates);
        let same = RunRecord { checked_commands: None, ..checked.clone() };
        assert_eq!(untimed(&[same]), untimed(std::slice::from_ref(plain)));
    }
    // The estimate for checked runs ignores unchecked ones: each of these took a hundred seconds.
    let slow = |record: &RunRecord| RunRecord { seconds: 100.0, ..record.clone() };
    let foreseen = |plan: &EvaluationPlan, kept: &[RunRecord]| {
        let (_, host) = evaluate(plan, &[manifest()], kept, 1);
        host.foreseen.into_inner().unwrap().join("")
    };
    let unchecked: Vec<_> = plain.iter().map(slow).collect();
    let text = foreseen(&checking, &unchecked);
    assert!(text.ends_with(" about 10 s"), "{text}");
    let quick = RunRecord { seconds: 1.0, ..checked[0].clone() };
    let one_checked = [unchecked, vec![quick]].concat();
    let text = foreseen(&checking, &one_checked);
    assert!(
        text.starts_with("6 runs, of which 1 is kept") && text.ends_with(" about 5 s"),
        "{text}"
    );
    for plan in [small(), checking] {
        let (again, host) = evaluate(&plan, &[manifest()], &checked, 2);
        assert_eq!((again, host.file.into_inner().unwrap().as_str()), (checked.clone(), ""));
    }
}

/// A figure of recorded runs is the same without traces.
#[test]
fn figures_of_recorded_runs_need_no_traces() {
    // A tree that holds the pages of the samples.
    let scale = Scale { leaf_level: 16, records: 200, ..small().scale };
    let plan = EvaluationPlan { scale, ..small() };
    let workloads = vec!["gcc".to_owned(), MIX.to_owned()];
    let mut manifest = Manifest { workloads, ..manifest() };
    let (records, _) = evaluate(&plan, std::slice::from_ref(&manifest), &[], 2);
    let programs = Programs::of_runs(&records);
    let wanted = plan.runs(std::slice::from_ref(&manifest), &programs).unwrap();
    let (kept, missing) = kept_runs(&plan, &wanted, &records).unwrap();
    assert_eq!((kept.len(), missing), (records.len(), 0));
    let bars = |figure: Figure| figure.plot;
    let of = |programs: &Programs, manifest: &Manifest| {
        bars(figures(std::slice::from_ref(manifest), &plan, programs, &kept).unwrap().remove(0))
    };
    assert_eq!(of(&programs, &manifest), bars(figure(&plan, &manifest, &records)));

    // Missing runs are counted and omitted.
    manifest.variants.push("ir-stash".to_owned());
    let wanted = plan.runs(std::slice::from_ref(&manifest), &programs).unwrap();
    assert_eq!(kept_runs(&plan, &wanted, &records).unwrap().1, 2);
    manifest.workloads = vec!["lbm".to_owned()];
    assert!(plan.runs(&[manifest], &programs).is_err());
    // Runs of two recordings are refused; runs of another model are ignored.
    let with_other = |change: fn(RunRecord) -> RunRecord| {
        let other = change(records[0].clone());
        records.iter().cloned().chain([other]).collect::<Vec<_>>()
    };
    let two = with_other(|record| RunRecord { trace: !record.trace, ..record });
    let error = kept_runs(&plan, &wanted, &two).unwrap_err().to_string();
    assert!(error.contains("more than one trace"), "{error}");
    // The runs of all machines must come from the same recording.
    let mixed: Vec<_> = records
        .iter()
        .map(|record| match record.variant.as_str() {
            "baseline" => RunRecord { trace: !record.trace, ..record.clone() },
            _ => record.clone(),
        })
        .collect();
    let error = kept_runs(&plan, &wanted, &mixed).unwrap_err().to_string();
    assert!(error.contains("has runs of more than one trace, such as "), "{error}");
    let other = with_other(|record| RunRecord { model: 0, trace: 1, ..record });
    assert_eq!(kept_runs(&plan, &wanted, &other).unwrap().0, kept);
}

#[test]
fn an_interrupted_evaluation_continues() {
    let (whole, host) = evaluate(&small(), &[manifest()], &[], 1);
    let file = host.file.into_inner().unwrap();
    let torn = &file.as_bytes()[..file.len() - 100];
    let kept = KeptRecords::read("results.jsonl", torn).unwrap();
    assert_eq!(kept.records.len(), whole.len() - 1);
    let foreseen = host.foreseen.into_inner().unwrap().join("");
    // Two trees and four copies take a second each. The trial's 3500 records took a second, and
    // each run times 2500 records.
    assert_eq!(foreseen, "6 runs, of which 0 are kept; the rest takes about 10 s");
    assert_eq!(file[..kept.whole_bytes].lines().count(), whole.len() - 1);
    let (records, host) = evaluate(&small(), &[manifest()], &kept.records, 2);
    assert_eq!(untimed(&records), untimed(&whole));
    assert_eq!(host.file.into_inner().unwrap().lines().count(), 1);
    // Each of the recorded runs took a second.
    assert_eq!(
        host.foreseen.into_inner().unwrap(),
        ["6 runs, of which 5 are kept; the rest takes about 1 s"]
    );
    let (_, host) = evaluate(&small(), &[manifest()], &whole, 2);
    assert_eq!(host.foreseen.into_inner().unwrap(), ["6 runs, all of which are kept"]);
    assert_eq!(host.planned.into_inner(), host.made.into_inner());
    // Another machine under the same name, other records or another trace is another run.
    let mut plans = vec![small(); 3];
    plans[0].switches.channels = 2;
    plans[1].scale.records += 1;
    plans[2].seed = 2;
    for plan in plans {
        let (_, host) = evaluate(&plan, &[manifest()], &whole, 2);
        assert_eq!(host.file.into_inner().unwrap().lines().count(), whole.len(), "{plan:?}");
    }
    // The same holds for records with another initial tree or another model.
    for change in [
        |record| RunRecord { trace: 0, ..record },
        |record| RunRecord { initial_seed: None, ..record },
        |record| RunRecord { model: 0, ..record },
    ] {
        let other: Vec<_> = whole.iter().cloned().map(change).collect();
        let (_, host) = evaluate(&small(), &[manifest()], &other, 2);
        assert_eq!(host.file.into_inner().unwrap().lines().count(), whole.len());
    }
}

#[test]
fn an_invalid_line_is_named_by_its_number() {
    let (_, host) = evaluate(&small(), &[manifest()], &[], 2);
    let file = host.file.into_inner().unwrap();
    let first = file.lines().next().unwrap();
    for wrong in ["", "{}", "[1", &first.replace("\"seed\"", "\"seeds\""), "\u{0}"] {
        let file = format!("{first}\n{wrong}\n{first}\n");
        let error = KeptRecords::<RunRecord>::read("results.jsonl", file.as_bytes());
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("line 2 of results.jsonl is not a record"), "{wrong}: {error}");
    }
    let torn = KeptRecords::<RunRecord>::read("results.jsonl", b"{\"key\"").unwrap();
    assert_eq!(torn, KeptRecords { records: Vec::new(), whole_bytes: 0 });
}

#[test]
fn a_figure_has_its_values_means_and_stated_numbers() {
    let (plan, mut manifest) = (small(), manifest());
    manifest.stated.push(StatedNumber {
        workload: Some("uniform".to_owned()),
        ..stated("IR-Alloc", 1.4, 0.0)
    });
    let (mut records, _) = evaluate(&plan, &[manifest.clone()], &[], 2);
    for record in &mut records {
        record.outcome.records = 2000;
        record.outcome.cycles = match (record.variant.as_str(), record.workload.as_str()) {
            ("baseline", _) => 700,
            ("ir-alloc-4", "uniform") => 500,
            ("ir-alloc-4", _) => 350,
            _ => 100,
        };
    }
    let made = figure(&plan, &manifest, &records);
    let Plot::Bars(bars) = &made.plot else { panic!("bars") };
    assert_eq!(bars.labels, ["uniform", "store-stream", "arithmetic mean", "geometric mean"]);
    assert_eq!(bars.series[0].name, "IR-Alloc 4");
    assert_eq!(bars.series[0].values[..3], [1.4, 2.0, 1.7].map(Some));
    assert!((bars.series[0].values[3].unwrap() - 2.8f64.sqrt()).abs() < 1e-12, "{bars:?}");
    assert_eq!(bars.series[1].values[..3], [7.0; 3].map(Some));
    assert_eq!(made.verdict(), Verdict::Agrees);
    assert_eq!(made.stated_drawn(), 1);
    let table = section(&made);
    assert!(table.contains("| IR-Alloc |   1.4 |      0 |  1.4 | ✓ agrees |"), "{table}");
    assert!(table.contains("| arithmetic mean |        1.7 |       7 |"), "{table}");

    // Values of missing runs are open, and do not count in means.
    records.retain(|record| record.workload != "uniform");
    let made = figure(&plan, &manifest, &records);
    let Plot::Bars(bars) = &made.plot else { panic!("bars") };
    assert_eq!(bars.series[0].values[..3], [None, Some(2.0), Some(2.0)]);
    assert_eq!(made.verdict(), Verdict::Open);
}

#[test]
fn parts_add_up_and_settings_are_labels() {
    let plan = small();
    let mut parts = Manifest::chosen(&["fig02".to_owned()]).unwrap().remove(0);
    parts.workloads = vec!["uniform".to_owned(), "scan".to_owned()];
    let sizes = Manifest {
        workloads: vec!["random-1".to_owned(), "random-2".to_owned()],
        ..Manifest::chosen(&["fig16".to_owned()]).unwrap().remove(0)
    };
    let configurations = Manifest {
        workloads: parts.workloads.clone(),
        ..Manifest::chosen(&["fig12".to_owned()]).unwrap().remove(0)
    };
    let manifests = [parts, sizes, configurations];
    let (records, _) = evaluate(&plan, &manifests, &[], 2);
    let [parts, sizes, configurations] =
        manifests.map(|manifest| figure(&plan, &manifest, &records));
    let Plot::Bars(bars) = &parts.plot else { panic!("bars") };
    for (place, label) in bars.labels.iter().enumerate() {
        let sum: f64 = bars.series.iter().filter_map(|series| series.values[place]).sum();
        assert!((sum - 1.0).abs() < 1e-12, "{label}: {sum}");
    }
    let Plot::Bars(bars) = &sizes.plot else { panic!("bars") };
    assert_eq!(bars.labels, ["0 MiB", "1 MiB", "2 MiB"]);
    // The smallest tree has hardly any level that could be narrower.
    let speeds: Vec<_> = bars.series[0].values.iter().map(|value| value.unwrap()).collect();
    assert!(speeds[0] > 0.999 && speeds[1..].iter().all(|speed| *speed > 1.0), "{bars:?}");
    // Two traces with different seeds give close but different speeds.
    let deviations = bars.series[2].values.iter().map(|value| value.unwrap());
    assert!(bars.series[2].name.ends_with("(standard deviation)"), "{bars:?}");
    assert!(deviations.clone().all(|by| by < 0.1) && deviations.sum::<f64>() > 0.0, "{bars:?}");
    let stated = &sizes.stated[0];
    assert_eq!((stated.ours, stated.place.is_none()), (bars.series[2].values[0], true));
    let Plot::Bars(bars) = &configurations.plot else { panic!("bars") };
    assert_eq!(bars.labels[3], "IR-Alloc 4");
    assert!(bars.stacked && bars.series.len() == 2);
    assert!(bars.series[0].values.iter().all(|value| value.unwrap() < 1.0), "{bars:?}");
}

#[test]
fn impossible_plans_are_refused() {
    let all = Manifest::all().unwrap();
    let samples = Programs::samples().unwrap();
    let refused = |plan: &EvaluationPlan, programs: &Programs, figures: &[Manifest]| {
        let error = plan.runs(figures, programs).unwrap_err();
        assert!(matches!(error, LabError::Plan(_)), "{error}");
        error.to_string()
    };
    let mut plans = vec![small(); 3];
    plans[0].scale.leaf_level = 26;
    plans[1].scale.leaf_level = 25; // One of Fig. 16 would be on level 26.
    plans[2].scale.records = 0;
    for plan in plans {
        refused(&plan, &samples, &all);
    }
    let fig14 = Manifest::chosen(&["fig14".to_owned()]).unwrap();
    assert!(refused(&small(), &Programs::recorded([]), &fig14).contains("no trace of any program"));
}

#[test]
fn a_trace_that_does_not_fit_is_refused_before_the_first_run() {
    let (plan, pages) = (small(), EvaluationPlan::lines(12) / 64);
    let record = |page| Record { gap: 1, kind: AccessKind::Read, line: page * 64 };
    let wide = Trace::new(SJENG, (0..=pages).map(record).collect()).unwrap();
    let programs = Programs::recorded([(SJENG.to_owned(), wide)]);
    let workloads = ["uniform", SJENG].map(str::to_owned).to_vec();
    // The workload that fits would run first.
    let runs = plan.runs(&[Manifest { workloads, ..manifest() }], &programs).unwrap();
    assert_eq!((&*runs[0].workload, &*runs[runs.len() - 1].workload), ("uniform", SJENG));
    let host = Counting::default();
    let error = run(&plan, &runs, &programs, &[], NonZeroUsize::MIN, &host, None).unwrap_err();
    assert!(error.to_string().contains("sjeng touches 257 pages"), "{error}");
    assert_eq!(host.file.into_inner().unwrap(), "");
}

/// Reads the committed runs in `results`. Returns them with their plan, and with a stand-in trace
/// for each program: the sample of gcc.
fn committed(results: &str) -> (Vec<RunRecord>, EvaluationPlan, Programs) {
    let path = format!("{}/results/{results}/results.jsonl.gz", env!("CARGO_MANIFEST_DIR"));
    let text = unpack(&path, std::fs::File::open(&path).unwrap()).unwrap();
    let kept = KeptRecords::<RunRecord>::read(&path, &text).unwrap().records;
    let plan = EvaluationPlan::full();
    let scale = Scale { records: 40_000, warm_up: 10_000, ..plan.scale };
    let plan =
        EvaluationPlan { scale, ..plan }.with_machines_of(&Manifest::all().unwrap()).unwrap();
    let trace = Programs::samples().unwrap().program("gcc").unwrap().clone();
    let named = |name: &str| (name.to_owned(), trace.clone());
    let programs =
        Programs::recorded(PROGRAMS.iter().chain(&REAL).chain([&SJENG]).map(|name| named(name)));
    (kept, plan, programs)
}

#[test]
fn recorded_programs_run_behind_our_llc_only_on_request() {
    let plan = EvaluationPlan::full();
    let run = |setting: &str| {
        let setting = toml::from_str(setting).unwrap();
        plan.run("baseline", "403.gcc", &setting).unwrap()
    };
    let without = run("");
    assert_eq!((without.switches.llc_bytes, without.scale.llc_warm_up), (64, 0));
    let with = run("keeps-llc = true");
    assert_eq!((with.switches, with.scale), (Switches::PAPER, plan.scale));
}

#[test]
fn committed_runs_are_still_the_runs_of_the_figures() {
    for results in ["evaluation", "evaluation-parts", "evaluation-2"] {
        let (kept, plan, programs) = committed(results);
        let runs = plan.runs(&Manifest::all().unwrap(), &programs).unwrap();
        let mut found = 0;
        for run in &runs {
            let key = plan.key(run);
            for record in kept.iter().filter(|record| record.key == key) {
                let spec = plan.spec(run).unwrap();
                assert_eq!(record.spec, spec, "{key}");
                assert!(record.is_same_run(&key, record.trace, plan.seed, &spec), "{key}");
                assert_eq!(record.seed, plan.seed_of(&run.workload), "{key}");
                found += 1;
            }
        }
        assert_eq!(found, kept.len(), "{results}");
    }
}

/// Makes the figures again from the committed runs. Their text must equal that of the committed
/// figures.
#[test]
fn the_committed_figures_follow_from_the_committed_runs() {
    let path = |file: &str| format!("{}/results/{file}", env!("CARGO_MANIFEST_DIR"));
    for results in ["evaluation", "evaluation-2"] {
        let (kept, plan, _) = committed(results);
        let drawn = std::fs::read_to_string(path(&format!("{results}/figures.json"))).unwrap();
        let drawn = report::read(&drawn).unwrap();
        let ids: Vec<_> = drawn.iter().map(|figure| figure.id.clone()).collect();
        let manifests = Manifest::chosen(&ids).unwrap();
        let programs = Programs::of_runs(&kept);
        let wanted = plan.runs(&manifests, &programs).unwrap();
        let (records, missing) = kept_runs(&plan, &wanted, &kept).unwrap();
        assert_eq!(missing, 0, "{results}");
        let made = figures(&manifests, &plan, &programs, &records).unwrap();
        for made in &made {
            let drawn = drawn.iter().find(|figure| figure.id == made.id).unwrap();
            assert_eq!(section(made), section(drawn), "{results}");
        }
    }
    // Energies need no additional runs.
    let (kept, plan, programs) = committed("evaluation");
    let energy = Manifest::chosen(&["energy".to_owned()]).unwrap();
    let made = figures(&energy, &plan, &programs, &kept).unwrap().remove(0);
    let drawn = std::fs::read_to_string(path("evaluation-parts/figures.json")).unwrap();
    let drawn = report::read(&drawn).unwrap();
    let drawn = drawn.iter().find(|figure| figure.id == "energy").unwrap();
    assert_eq!(section(&made), section(drawn));
}

#[test]
fn machines_of_another_paper_have_its_tree_and_switches() {
    let tiny = Manifest::chosen(&["tiny07".to_owned()]).unwrap().remove(0);
    let samples = Programs::samples().unwrap();
    let paced = Switches { channels: 2, fan_out: 8, ..Switches::PAPER };
    let other = EvaluationPlan { switches: paced, ..EvaluationPlan::full() };
    let tiny = std::slice::from_ref(&tiny);
    let runs = [EvaluationPlan::full(), other].map(|plan| plan.runs(tiny, &samples).unwrap());
    assert_eq!(runs[0], runs[1]);
    assert!(runs[0].iter().all(|run| run.scale.leaf_level == 20));

    let full = figure(&EvaluationPlan::full(), &tiny[0], &[]);
    let words =
        "leaves on level 20; write-backs come before reads from 40 on, down to 20; pages lie";
    assert!(full.origin.contains(words), "{}", full.origin);
    assert!(!full.origin.contains("level 24") && !full.origin.contains("channels"));
    let of_trees = |figure: Figure| {
        let remarks = figure.remarks.into_iter();
        remarks.filter(|remark| remark.starts_with("On a tree")).collect::<Vec<_>>()
    };
    assert_eq!(of_trees(full), [""; 0]);
    let quick = of_trees(figure(&EvaluationPlan::quick(), &tiny[0], &[]));
    assert_eq!(quick, ["On a tree with leaves on level 16; the paper's are on level 20."]);
    let both = vec!["none".to_owned(), "tiny-raw".to_owned()];
    let both = Manifest { variants: both, ..tiny[0].clone() };
    assert_eq!(of_trees(figure(&EvaluationPlan::quick(), &both, &[])).len(), 2);
}
