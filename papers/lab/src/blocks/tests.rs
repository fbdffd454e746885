//! Tests of the experiment on small trees, with the sample traces.

mod trees;

use std::num::NonZeroUsize;

use oblivio_sim::controller::Initial;

use super::*;
use crate::counting::Counting;
use crate::evaluation::{PROGRAMS, Programs};
use crate::report::{self, Curves, Figure, Plot, Stated, section};
use crate::{KeptRecords, Trees, unpack};

fn small() -> BlocksPlan {
    BlocksPlan { paths: 20_000, initial: Initial::Placed, ..BlocksPlan::quick() }
}

/// A plan and the traces of `gcc` and `lbm` only, whose pages fit a smaller tree.
fn two_programs() -> (BlocksPlan, Programs) {
    let samples = Programs::samples().unwrap();
    let named = |name: &str| (name.to_owned(), samples.program(name).unwrap().clone());
    let plan = BlocksPlan { leaf_level: 14, initial: Initial::EachOnce, ..small() };
    (plan, Programs::recorded([named("gcc"), named("lbm")]))
}

fn made(
    plan: &BlocksPlan,
    ids: &[&str],
    programs: &Programs,
    kept: &[BlocksRecord],
    jobs: usize,
) -> (Vec<BlocksRecord>, Vec<Figure>, Counting) {
    let made = made_with(plan, ids, programs, kept, jobs, None);
    assert!(made.2.remarks.lock().unwrap().is_empty());
    made
}

fn made_with(
    plan: &BlocksPlan,
    ids: &[&str],
    programs: &Programs,
    kept: &[BlocksRecord],
    jobs: usize,
    trees: Option<&dyn Trees>,
) -> (Vec<BlocksRecord>, Vec<Figure>, Counting) {
    let ids: Vec<_> = ids.iter().map(|id| (*id).to_owned()).collect();
    let (chosen, host) = (BlocksFigure::chosen(&ids).unwrap(), Counting::default());
    let runs = plan.runs(&chosen, programs).unwrap();
    let jobs = NonZeroUsize::new(jobs).unwrap();
    let records = run(plan, &runs, programs, kept, jobs, &host, trees).unwrap();
    let figures = figures(&chosen, plan, programs, &records).unwrap();
    (records, figures, host)
}

fn curves(figure: &Figure) -> &Curves {
    let Plot::Curves(curves) = &figure.plot else { panic!("curves") };
    curves
}

fn untimed(records: &[BlocksRecord]) -> Vec<BlocksRecord> {
    records.iter().map(|record| BlocksRecord { seconds: 0.0, ..record.clone() }).collect()
}

#[test]
fn every_figure_is_made_of_the_samples() {
    let samples = Programs::samples().unwrap();
    let (records, figures, host) = made(&small(), &[], &samples, &[], 2);
    assert_eq!(records.len(), 2 + 3 + 2 + 3, "each run once");
    assert_eq!(figures.len(), FIGURES.len());
    assert_eq!(host.planned.into_inner(), host.made.into_inner());
    for (figure, known) in figures.iter().zip(FIGURES) {
        assert_eq!(figure.id, known.id);
        let is_measured = |stated: &Stated| stated.ours.is_some() && stated.of.is_none();
        assert!(figure.stated.iter().all(is_measured), "{figure:?}");
    }
    let json = serde_json::to_string(&figures).unwrap();
    assert_eq!(crate::report::read(&json).unwrap().len(), figures.len());
}

#[test]
fn a_course_is_37_parts_of_programs_and_3_of_chance() {
    let (plan, programs) = two_programs();
    let (records, figures, _) = made(&plan, &["fig03", "fig06"], &programs, &[], 1);
    let [record] = &records[..] else { panic!("one run for both") };
    // Two programs are fewer than the paper's course has.
    let stated = figures.iter().flat_map(|figure| &figure.stated);
    assert!(stated.clone().count() > 4 && stated.clone().all(|it| it.of == Some([2, 13])));
    let after: Vec<_> = record.snapshots.iter().map(|taken| taken.after.as_str()).collect();
    let [gcc, lbm, uniform] = ["gcc", "lbm", "uniform"].map(|name| [name; 4]);
    assert_eq!(after, [&["start"][..], &gcc, &lbm, &uniform].concat());
    for (number, paths) in [(0, 0), (4, 9250), (8, 18_500), (12, 20_000)] {
        let there = record.snapshots[number].snapshot.paths.paths();
        assert!((paths..paths + 12).contains(&there), "{number}: {there}");
    }

    let curves = curves(&figures[0]);
    assert_eq!(curves.series.len(), 1 + 3 + 2 + 1);
    assert_eq!(curves.series[0].name, "start");
    let last = record.snapshots[12].snapshot.utilisation();
    let drawn: Vec<_> = curves.series[5].values.iter().map(|[_, part]| *part).collect();
    assert_eq!(drawn, last);
    // Random requests lower the utilisation of the last level after programs. The mean is below the
    // fuller one of the start and the end of programs.
    let [programs, chance, mean] = [4, 5, 6].map(|series| curves.series[series].values[14][1]);
    assert!(chance < programs && mean < programs.max(curves.series[0].values[14][1]), "{curves:?}");

    let Plot::Bars(bars) = &figures[1].plot else { panic!("bars") };
    assert_eq!(bars.labels.len(), 16);
    for series in &bars.series {
        let sum: f64 = series.values.iter().flatten().sum();
        assert!((sum - 1.0).abs() < 1e-9, "{}: {sum}", series.name);
    }
    let last_level = |series: usize| bars.series[series].values[15].unwrap();
    assert!(
        last_level(0) + 0.1 < last_level(1),
        "programs find blocks nearer to the root: \
                                                  {bars:?}"
    );
}

#[test]
fn records_are_reproducible_and_recorded_runs_are_not_repeated() {
    let (plan, programs) = two_programs();
    let plan = BlocksPlan { initial: Initial::Placed, ..plan };
    let ids = ["fig04", "fig13"];
    let (once, figures, host) = made(&plan, &ids, &programs, &[], 1);
    let (again, ..) = made(&plan, &ids, &programs, &[], 3);
    assert_eq!(untimed(&once), untimed(&again));
    let file = host.file.into_inner().unwrap();
    let torn = &file.as_bytes()[..file.len() - 10];
    let kept = KeptRecords::<BlocksRecord>::read("results.jsonl", torn).unwrap();
    assert_eq!(kept.records, once[..3]);
    let (resumed, same_figures, host) = made(&plan, &ids, &programs, &kept.records, 2);
    assert_eq!((untimed(&resumed), same_figures), (untimed(&once), figures));
    assert_eq!(host.file.into_inner().unwrap().lines().count(), 1);
    assert_eq!(host.planned.into_inner(), host.made.into_inner());

    // Records of another model are not reused.
    let model = once[0].model + 1;
    let older: Vec<_> =
        once.iter().map(|record| BlocksRecord { model, ..record.clone() }).collect();
    let (_, _, host) = made(&plan, &["fig13"], &programs, &older, 1);
    assert_eq!(host.file.into_inner().unwrap().lines().count(), 1);

    // Another tree, seed, cache or initial state is another run.
    let others = [
        BlocksPlan { leaf_level: 13, ..plan.clone() },
        BlocksPlan { seed: 2, ..plan.clone() },
        BlocksPlan { llc_bytes: 64 << 10, ..plan.clone() },
        BlocksPlan { initial: Initial::EachOnce, ..plan.clone() },
    ];
    for other in others {
        let (_, _, host) = made(&other, &["fig13"], &programs, &once, 1);
        assert_eq!(host.file.into_inner().unwrap().lines().count(), 1, "{other:?}");
    }
}

#[test]
fn impossible_plans_are_refused() {
    let (plan, programs) = two_programs();
    let all: Vec<_> = FIGURES.iter().collect();
    let refused = |plan: &BlocksPlan| plan.runs(&all, &programs).unwrap_err().to_string();
    assert!(
        refused(&BlocksPlan { leaf_level: 9, ..plan.clone() }).contains("choose other --levels")
    );
    assert!(refused(&BlocksPlan { paths: 10, ..plan.clone() }).contains("choose other --paths"));
    let none = Programs::recorded([]);
    let fig03 = BlocksFigure::chosen(&["fig03".to_owned()]).unwrap();
    assert!(plan.runs(&fig03, &none).unwrap_err().to_string().contains("no trace of any program"));
    let error = BlocksFigure::chosen(&["fig7".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no figure fig7: choose from fig03, fig04"), "{error}");
}

/// Makes the figures again from the committed runs. Their text must equal that of the committed
/// figures.
#[test]
fn the_committed_figures_follow_from_the_committed_runs() {
    let gcc = Programs::samples().unwrap().program("gcc").unwrap().clone();
    let traces = PROGRAMS.iter().map(|name| ((*name).to_owned(), gcc.clone()));
    let programs = Programs::recorded(traces.collect::<Vec<_>>());
    for results in ["blocks", "blocks-client"] {
        let path = |file| format!("{}/results/{results}/{file}", env!("CARGO_MANIFEST_DIR"));
        let runs = std::fs::File::open(path("results.jsonl.gz")).unwrap();
        let kept =
            KeptRecords::<BlocksRecord>::read(results, &unpack(results, runs).unwrap()).unwrap();
        let drawn = std::fs::read_to_string(path("figures.json")).unwrap();
        let drawn = report::read(&drawn).unwrap();
        let ids: Vec<_> = drawn.iter().map(|figure| figure.id.clone()).collect();
        let chosen = BlocksFigure::chosen(&ids).unwrap();
        let made = figures(&chosen, &BlocksPlan::full(), &programs, &kept.records).unwrap();
        let sections = |figures: &[Figure]| figures.iter().map(section).collect::<Vec<_>>();
        assert_eq!(sections(&made), sections(&drawn), "{results}");
    }
}
