//! Checks that the documentation shows the committed results, and that these have the plan of
//! `oblivio-lab run`.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use oblivio_lab::alloc_search::{
    self, Allocation, Judge, Profile, SEARCHED_SLOTS, SEARCHED_TREE_TOP_LEVELS, SearchTables,
    TimeJudge, profile_beside_ir_stash, sized_profile,
};
use oblivio_lab::blocks::{self, BlocksRecord};
use oblivio_lab::evaluation::{Manifest, RunRecord};
use oblivio_lab::links;
use oblivio_lab::raw_traffic;
use oblivio_lab::report::{self, Figure, Plot, Verdict};
use oblivio_lab::stash_study::{StashRecord, StashStudyPlan};
use oblivio_lab::techniques::{self, Comparison};
use oblivio_lab::{Experiment, KeptRecords, experiment_of, experiments, unpack};
use oblivio_models::alloc_search::{BySlots, SEARCHED_LEAF_LEVEL, VolumeTree};
use serde::de::DeserializeOwned;

/// Every committed results file can be read by its experiment and survives rewriting. It gives the
/// figures that are committed next to it.
#[test]
fn committed_results_are_readable_and_give_their_figures() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
    let mut seen = 0;
    for path in files(&folder) {
        let text = fs::read_to_string(&path).unwrap();
        let Ok(name) = experiment_of(&text) else { continue };
        seen += 1;
        macro_rules! check {
            ($($_:ident $module:ident::$experiment:ident,)*) => {
                match &*name {
                    $(<oblivio_lab::$module::$experiment as Experiment>::NAME => {
                        assert_is_readable::<oblivio_lab::$module::$experiment>(&path, &text);
                    })*
                    other => panic!("{} has an unknown experiment: {other}", path.display()),
                }
            };
        }
        experiments!(check);
    }
    assert!(seen >= 12, "{seen}");
}

fn assert_is_readable<E: Experiment>(path: &Path, text: &str) {
    let results = E::from_json(text).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let again = E::from_json(&E::to_json(&results).unwrap()).unwrap();
    assert_eq!(E::text(&again), E::text(&results), "{path:?}");
    let drawn = fs::read_to_string(path.with_file_name("figures.json"));
    let drawn = drawn.map_or_else(|_| Vec::new(), |text| report::read(&text).unwrap());
    let sections = |figures: &[Figure]| figures.iter().map(report::section).collect::<Vec<_>>();
    assert_eq!(sections(&E::figures(&results)), sections(&drawn), "{path:?}");
}

/// The JSON files in `folder` and its subfolders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    let is_json = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "json");
    entries.flat_map(of).filter(is_json).collect()
}

#[test]
fn the_documentation_has_the_committed_stash_study() {
    let study = StashStudyPlan::from_json(include_str!("../results/stash-study.json")).unwrap();
    assert_eq!(study.plan, StashStudyPlan::full());
    let documentation = include_str!("../../../docs/stash-study.md");
    assert!(documentation.contains(&study.table()), "expected this table:\n{}", study.table());
}

/// Compares the table with recomputed results, since the costs of links follow from a model without
/// measurements.
#[test]
fn the_documentation_has_the_current_table_of_links() {
    let plan = links::LinksPlan { disk_bytes: links::PAPER_DISK_BYTES };
    let results = plan.run(&[], NonZeroUsize::MIN, &()).unwrap();
    let documentation = include_str!("../../../docs/links.md");
    assert!(documentation.contains(&results.table()), "expected this table:\n{}", results.table());
    let figures = links::LinksPlan::figures(&results);
    assert_eq!(figures.len(), 11);
    assert_eq!(figures[0].verdict(), Verdict::Agrees, "{:?}", figures[0].stated);
    let again = links::LinksPlan::from_json(&links::LinksPlan::to_json(&results).unwrap()).unwrap();
    assert_eq!(again.table(), results.table());
}

#[test]
fn the_documentation_has_the_committed_alloc_search() {
    let search =
        alloc_search::SearchPlan::from_json(include_str!("../results/alloc-search.json")).unwrap();
    assert_eq!(search.plan, alloc_search::full_plan());
    let documentation = include_str!("../../../docs/alloc-search.md");
    let table = search.paper_table();
    assert!(documentation.contains(&table), "expected this table:\n{table}");
    let found = search.found().profile.to_string();
    assert!(documentation.contains(&found), "expected this profile: {found}");
}

#[test]
fn the_evaluation_uses_the_committed_searched_profile() {
    let file = include_str!("../results/alloc-search-evaluation.json");
    let search = alloc_search::SearchPlan::from_json(file).unwrap();
    assert_eq!(search.found().profile.slots(), SEARCHED_SLOTS);
    assert_eq!(search.plan.tree_top_levels, SEARCHED_TREE_TOP_LEVELS);
    let documentation = include_str!("../../../docs/alloc-search.md");
    let table = search.paper_table();
    assert!(documentation.contains(&table), "expected this table:\n{table}");
}

/// The cells of the row that starts with `profile`, without that first cell.
fn cells<'a>(table: &'a str, profile: &str) -> Vec<&'a str> {
    let start = format!("| {profile} ");
    let row = table.lines().find(|row| row.starts_with(start.as_str()));
    row.expect("the table has this profile").split('|').skip(2).map(str::trim).collect()
}

/// Checks that the documentation shows the results of the committed searches by time, and that the
/// evaluation uses the profiles that these searches found.
#[test]
fn the_documentation_has_the_committed_searches_by_time() {
    let documentation = include_str!("../../../docs/alloc-search.md");
    let beside = TimeJudge { ir_stash: true, ..TimeJudge::PAPER };
    for (file, leaf_level, judge) in [
        (include_str!("../results/alloc-time/L18.json"), 18, TimeJudge::PAPER),
        (include_str!("../results/alloc-time/L19.json"), 19, TimeJudge::PAPER),
        (include_str!("../results/alloc-time/L20.json"), 20, TimeJudge::PAPER),
        (include_str!("../results/alloc-time/L23.json"), 23, TimeJudge::PAPER),
        (include_str!("../results/alloc-time/L24.json"), 24, TimeJudge::PAPER),
        (include_str!("../results/alloc-time/L25.json"), 25, TimeJudge::PAPER),
        (include_str!("../results/alloc-time/ir-stash-L20.json"), 20, beside),
    ] {
        let search = alloc_search::SearchPlan::from_json(file).unwrap();
        let plan =
            alloc_search::full_plan().on_tree(leaf_level).by_time(Judge::Time(judge), 20_000);
        assert_eq!(search.plan, plan);
        let table = search.paper_table();
        // Columns of a search by time: 0 is PL, 4 evictions for each access, 7 speed.
        let [first, fourth, best] =
            ["IR-Alloc 1", "IR-Alloc 4", "found"].map(|profile| cells(&table, profile));
        let beside_ir_stash = if judge.ir_stash { ", with IR-Stash" } else { "" };
        let row = format!(
            "| {leaf_level}{beside_ir_stash} | {}, {} | {}, {} | {}, {}, {} |",
            first[7], first[4], fourth[7], fourth[4], best[0], best[7], best[4]
        );
        assert!(documentation.contains(&row), "expected this row: {row}");
        let found = match judge.ir_stash {
            true => profile_beside_ir_stash(leaf_level, plan.tree_top_levels),
            false => sized_profile(leaf_level, plan.tree_top_levels),
        };
        assert_eq!(found, search.found().profile);
        let uniform = &search.baseline.profile;
        let [ours, uniform] = [&found, uniform].map(|it| it.path_slots(plan.tree_top_levels));
        assert!(ours * 5 <= uniform * 4, "{ours} {uniform}");
    }
}

#[test]
fn the_profile_for_volumes_is_documented_and_fits_them() {
    let file = include_str!("../../../crates/models/results/alloc-volume.json");
    let search = alloc_search::SearchPlan::from_json(file).unwrap();
    // `oblivio plan --size 1G --alloc`.
    let volume = VolumeTree {
        slots: 5,
        evict_period: 5,
        stash_blocks_max: 64,
        leaf_level: 17,
        tree_top_levels: 10,
    };
    let by_slots = oblivio_models::alloc_search::Search::<BySlots>::from_json(file).unwrap();
    assert_eq!(by_slots.plan, volume.search(SEARCHED_LEAF_LEVEL));
    let documentation = include_str!("../../../docs/alloc-search.md");
    let searched = search.found().profile.to_string();
    assert!(documentation.contains(&searched), "expected this profile: {searched}");

    let found = Allocation::from_json(file).unwrap();
    let uniform = Profile::uniform(17, 5);
    let profile = found.profile_for(&volume).unwrap();
    assert!(profile.path_slots(10) < uniform.path_slots(10));
    assert!(profile.space_loss(&uniform) <= search.plan.space_loss_max);
    for leaf_level in [0, 5, 30, 40] {
        let other = VolumeTree { leaf_level, tree_top_levels: leaf_level.min(10), ..volume };
        found.profile_for(&other).unwrap().geometry().unwrap();
    }
}

#[test]
fn the_documentation_has_the_committed_techniques() {
    let results = Comparison::from_json(include_str!("../results/techniques.json")).unwrap();
    assert_eq!(results.plan, techniques::TechniquesPlan::full());
    let documentation = include_str!("../../../docs/techniques.md");
    for table in [results.gain_table(), results.paper_table()] {
        assert!(documentation.contains(&table), "expected this table:\n{table}");
    }
}

/// Checks that no stated number is open, and that the report has all figures. The report covers two
/// recordings of the programs.
#[test]
fn the_evaluation_is_complete_and_its_report_has_its_figures() {
    let mut figures = figures_of_one_scale(
        include_bytes!("../results/evaluation/results.jsonl.gz"),
        include_str!("../results/evaluation/figures.json"),
    );
    figures.extend(figures_of_one_scale(
        include_bytes!("../results/evaluation-2/results.jsonl.gz"),
        include_str!("../results/evaluation-2/figures.json"),
    ));
    let text = include_str!("../results/evaluation/report.md");
    assert_are_in_the_report(&figures, text);
    assert!(text.contains(&format!("{}.\n", report::summary(&figures))), "it opens with the count");
    assert_stated_in_the_documentation(&figures);
    for id in ["cells", "old"] {
        assert_settings_in_the_documentation(&figures, id);
    }
    for manifest in Manifest::all().unwrap() {
        assert_has_the_reasons(&figures, &manifest.id, &manifest.reasons);
    }
    assert_verdicts_in_the_documentation(&figures);
}

#[test]
fn the_smaller_experiments_are_complete_and_documented() {
    let figures = figures_of_one_scale(
        include_bytes!("../results/evaluation-parts/results.jsonl.gz"),
        include_str!("../results/evaluation-parts/figures.json"),
    );
    assert_are_in_the_report(&figures, include_str!("../results/evaluation-parts/report.md"));
    assert_stated_in_the_documentation(&figures);
    for manifest in Manifest::all().unwrap() {
        assert_has_the_reasons(&figures, &manifest.id, &manifest.reasons);
    }
}

/// Fig. 16 is tested separately, because its trees have different sizes.
#[test]
fn fig_16_is_complete_and_has_a_report() {
    let kept: Vec<RunRecord> = whole(include_bytes!("../results/fig16/results.jsonl.gz"));
    assert_eq!(kept.len(), 3 * 3 * 13);
    let manifest = Manifest::chosen(&["fig16".to_owned()]).unwrap().remove(0);
    let machines = manifest.variant_names();
    assert!(kept.iter().all(|run| machines.contains(&run.variant.as_str())));
    let figures = report::read(include_str!("../results/fig16/figures.json")).unwrap();
    assert_eq!((figures.len(), &*figures[0].id), (1, "fig16"));
    assert_are_in_the_report(&figures, include_str!("../results/fig16/report.md"));
}

#[test]
fn the_blocks_are_complete_and_documented() {
    assert_blocks_in_the_documentation(
        24,
        include_bytes!("../results/blocks/results.jsonl.gz"),
        include_str!("../results/blocks/figures.json"),
    );
}

#[test]
fn the_blocks_with_positions_on_the_client_are_complete_and_documented() {
    let (kept, figures) = assert_blocks_in_the_documentation(
        24,
        include_bytes!("../results/blocks-client/results.jsonl.gz"),
        include_str!("../results/blocks-client/figures.json"),
    );
    assert_eq!(kept.len(), 5);
    assert!(kept.iter().all(|run| run.spec.client_entries_max == run.spec.data_blocks));
    let ids: Vec<&str> = figures.iter().map(|figure| &*figure.id).collect();
    let expected =
        ["fig03-client", "fig04-client", "fig05", "fig05-path", "fig06-client", "fig13-client"];
    assert_eq!(ids, expected);
}

#[test]
fn the_documentation_has_the_committed_traffic_of_raw_oram() {
    let file = include_str!("../results/raw-traffic/results.json");
    let results = raw_traffic::RawTrafficPlan::from_json(file).unwrap();
    assert_eq!(results.plan, raw_traffic::RawTrafficPlan::full());
    let documentation = include_str!("../../../docs/stash-study.md");
    assert!(documentation.contains(&results.table()), "expected this table:\n{}", results.table());
}

#[test]
fn the_documentation_has_the_committed_deep_stash_study() {
    let study =
        StashStudyPlan::from_json(include_str!("../results/stash-study-deep/stash-study.json"))
            .unwrap();
    let runs = include_bytes!("../results/stash-study-deep/stash-study.jsonl.gz");
    let kept: Vec<StashRecord> = whole(runs);
    let made: usize = study.results.iter().map(|result| result.runs.len()).sum();
    assert_eq!(kept.len(), made);
    assert_eq!(study.plan, StashStudyPlan::deep());
    let documentation = include_str!("../../../docs/stash-study.md");
    assert!(documentation.contains(&study.table()), "expected this table:\n{}", study.table());
}

/// Reads the records in a compressed file that ends with a complete line. Its gzip header has no
/// name and no time.
fn whole<R: DeserializeOwned>(packed: &[u8]) -> Vec<R> {
    assert_eq!(packed[3..8], [0; 5], "pack it with gzip --no-name");
    let text = unpack("results.jsonl.gz", packed).expect("it is gzip");
    assert_eq!(text.last(), Some(&b'\n'));
    KeptRecords::read("results.jsonl", &text).expect("all lines are runs").records
}

/// Checks that each of `runs` measures 40,000 records, and reads the figures from the text
/// `figures`.
fn figures_of_one_scale(runs: &[u8], figures: &str) -> Vec<Figure> {
    let kept: Vec<RunRecord> = whole(runs);
    assert!(kept.iter().all(|run| run.scale.records == 40_000), "one scale");
    report::read(figures).expect("they are figures")
}

fn assert_are_in_the_report(figures: &[Figure], text: &str) {
    for figure in figures {
        assert!(text.contains(&report::section(figure)), "expected {}", figure.id);
    }
}

/// Checks that docs/simulator.md gives the count of stated numbers for each verdict.
fn assert_verdicts_in_the_documentation(figures: &[Figure]) {
    let stated: Vec<_> = figures.iter().flat_map(|figure| &figure.stated).collect();
    let count = |wanted| stated.iter().filter(|stated| stated.verdict() == wanted).count();
    let [agree, under, fitted, differ] =
        [Verdict::Agrees, Verdict::AgreesUnderReading, Verdict::Fitted, Verdict::Differs]
            .map(count);
    assert_eq!(agree + under + fitted + differ, stated.len(), "none is open");
    let under_reading = stated.iter().filter(|it| it.verdict() == Verdict::AgreesUnderReading);
    let readings = under_reading.filter_map(|stated| stated.reading());
    let leaky = readings.filter(|reading| reading.name.contains("not oblivious")).count();
    let sentences = [
        format!(
            "figures state {} numbers: {agree} agrees as it stands, {under} agree under another \
             reading of the paper, {fitted} are fitted, and {differ} differ",
            stated.len()
        ),
        format!("The readings of {leaky} of the {under} need a machine that is not oblivious."),
    ];
    let text = include_str!("../../../docs/simulator.md");
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in &sentences {
        assert!(text.contains(sentence), "expected: {sentence}");
    }
}

/// Checks that the committed figure `id` gives exactly the reasons `reasons`, if it differs from
/// the paper.
fn assert_has_the_reasons(figures: &[Figure], id: &str, reasons: &[impl AsRef<str>]) {
    let figure = figures.iter().find(|figure| figure.id == id);
    for figure in figure.into_iter().filter(|figure| figure.verdict() == Verdict::Differs) {
        let given = figure.remarks.iter().filter_map(|it| it.strip_prefix("Why it differs: "));
        assert!(given.eq(reasons.iter().map(AsRef::as_ref)), "{id} gives different reasons");
    }
}

/// Checks that all runs have trees with leaves on `leaf_level`, and that their figures are in
/// docs/simulator.md, with reasons.
fn assert_blocks_in_the_documentation(
    leaf_level: u8,
    runs: &[u8],
    figures: &str,
) -> (Vec<BlocksRecord>, Vec<Figure>) {
    let kept: Vec<BlocksRecord> = whole(runs);
    assert!(kept.iter().all(|run| run.spec.leaf_level() == leaf_level));
    let figures = report::read(figures).expect("they are figures");
    assert_stated_in_the_documentation(&figures);
    for figure in blocks::FIGURES {
        assert_has_the_reasons(&figures, figure.id, figure.reasons);
    }
    (kept, figures)
}

/// Checks that each setting of the figure `id` is a row of docs/simulator.md, with its arithmetic
/// means.
fn assert_settings_in_the_documentation(figures: &[Figure], id: &str) {
    let figure = figures.iter().find(|figure| figure.id == id).expect("it has such a figure");
    let Plot::Bars(bars) = &figure.plot else { panic!("{id} has bars") };
    let is_shown = |name: &str| !name.ends_with("(geometric)");
    let series: Vec<_> = bars.series.iter().filter(|series| is_shown(&series.name)).collect();
    let documentation = include_str!("../../../docs/simulator.md");
    for (place, label) in bars.labels.iter().enumerate() {
        let values = series.iter().map(|series| {
            let mean = series.values[place].expect("each setting has a mean");
            format!("{mean:.2}")
        });
        let row = format!("| {label} | {} |", values.collect::<Vec<_>>().join(" | "));
        assert!(documentation.contains(&row), "expected this row: {row}");
    }
}

/// Checks that each stated number of a figure is a row of docs/simulator.md with our number and the
/// verdict. Also checks that a figure that differs gives a reason.
fn assert_stated_in_the_documentation(figures: &[Figure]) {
    for figure in figures.iter().filter(|figure| figure.verdict() == Verdict::Differs) {
        let says_why = figure.remarks.iter().any(|remark| remark.starts_with("Why it differs"));
        assert!(says_why, "{} differs from the paper, and gives no reason", figure.id);
    }
    let documentation = include_str!("../../../docs/simulator.md");
    for stated in figures.iter().flat_map(|figure| &figure.stated) {
        let ours = stated.ours.map_or_else(|| "–".to_owned(), |ours| format!("{ours:.2}"));
        let verdict = stated.verdict().words();
        let row = format!("| {} | {:.2} | {ours} | {verdict}", stated.what, stated.paper);
        assert!(documentation.contains(&row), "expected this row: {row}");
    }
}
