//! The documentation shows what the committed results say, and those are of the plan that
//! `oblivio-lab run` follows.

use oblivio_lab::Kept;
use oblivio_lab::alloc_search::{
    self, Allocation, Judge, Profile, SEARCHED_SLOTS, SEARCHED_TREE_TOP_LEVELS, Search,
    SearchTables, TimeJudge, profile_beside_ir_stash, sized_profile,
};
use oblivio_lab::blocks::{self, BlocksRecord};
use oblivio_lab::evaluation::{Manifest, RunRecord};
use oblivio_lab::links;
use oblivio_lab::raw_traffic;
use oblivio_lab::report::{self, ChangeKind, Figure, Plot, Verdict};
use oblivio_lab::stash_study::{Plan, StashRecord, Study};
use oblivio_lab::techniques::{self, Results};
use oblivio_models::alloc_search::{BySlots, SEARCHED_LEAF_LEVEL, VolumeTree};
use serde::de::DeserializeOwned;

#[test]
fn the_stash_study_in_the_documentation_is_the_committed_one() {
    let study = Study::from_json(include_str!("../results/stash-study.json")).unwrap();
    assert_eq!(study.plan, Plan::full());
    let documentation = include_str!("../../../docs/stash-study.md");
    assert!(documentation.contains(&study.table()), "expected this table:\n{}", study.table());
}

/// A model, so it is made again.
#[test]
fn the_table_of_links_in_the_documentation_is_that_of_the_lab() {
    let results = links::run(links::PAPER_DISK_BYTES).unwrap();
    let documentation = include_str!("../../../docs/links.md");
    assert!(documentation.contains(&results.table()), "expected this table:\n{}", results.table());
    let figures = links::figures(&results);
    assert_eq!(figures.len(), 11);
    assert_eq!(figures[0].verdict(), Verdict::Agrees, "{:?}", figures[0].stated);
    let again = links::Results::from_json(&results.to_json().unwrap()).unwrap();
    assert_eq!(again.table(), results.table());
}

#[test]
fn the_alloc_search_in_the_documentation_is_the_committed_one() {
    let search = Search::from_json(include_str!("../results/alloc-search.json")).unwrap();
    assert_eq!(search.plan, alloc_search::full_plan());
    let documentation = include_str!("../../../docs/alloc-search.md");
    for table in [search.table(), search.paper_table()] {
        assert!(documentation.contains(&table), "expected this table:\n{table}");
    }
}

#[test]
fn the_searched_profile_of_the_evaluation_is_the_committed_one() {
    let file = include_str!("../results/alloc-search-evaluation.json");
    let search = Search::from_json(file).unwrap();
    assert_eq!(search.found().profile.slots(), SEARCHED_SLOTS);
    assert_eq!(search.plan.tree_top_levels, SEARCHED_TREE_TOP_LEVELS);
    let documentation = include_str!("../../../docs/alloc-search.md");
    let table = search.paper_table();
    assert!(documentation.contains(&table), "expected this table:\n{table}");
}

/// And the evaluation has what they found.
#[test]
fn the_searches_by_time_in_the_documentation_are_the_committed_ones() {
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
        let search = Search::from_json(file).unwrap();
        let plan =
            alloc_search::full_plan().on_tree(leaf_level).by_time(Judge::Time(judge), 20_000);
        assert_eq!(search.plan, plan);
        let table = search.paper_table();
        assert!(documentation.contains(&table), "expected this table:\n{table}");
        let found = match judge.ir_stash {
            true => profile_beside_ir_stash(leaf_level, plan.tree_top_levels),
            false => sized_profile(leaf_level, plan.tree_top_levels),
        };
        assert_eq!(found, search.found().profile);
        let uniform = &search.baseline.profile;
        let [ours, uniform] = [&found, uniform].map(|it| it.path_slots(plan.tree_top_levels));
        assert!(ours * 5 <= uniform * 4, "{ours} {uniform}");
    }
    let search = Search::from_json(include_str!("../results/alloc-time/ir-stash-L20.json"));
    let table = search.unwrap().table();
    assert!(documentation.contains(&table), "expected this table:\n{table}");
}

#[test]
fn the_profile_for_volumes_is_the_one_of_the_documentation_and_fits_them() {
    let file = include_str!("../results/alloc-volume.json");
    let search = Search::from_json(file).unwrap();
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
    assert!(documentation.contains(&search.table()), "expected this table:\n{}", search.table());

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
fn the_techniques_in_the_documentation_are_the_committed_ones() {
    let results = Results::from_json(include_str!("../results/techniques.json")).unwrap();
    assert_eq!(results.plan, techniques::Plan::full());
    let documentation = include_str!("../../../docs/techniques.md");
    let details = (0..results.workloads().count()).map(|number| results.detail_table(number));
    for table in details.chain([results.gain_table(), results.paper_table()]) {
        assert!(documentation.contains(&table), "expected this table:\n{table}");
    }
}

/// The experiments that say why are of a second recording of the programs, so they are in files of their own. One report has both.
#[test]
fn the_evaluation_has_its_runs_and_its_report_has_its_figures() {
    let mut figures = figures_of_one_scale(
        include_bytes!("../results/evaluation/results.jsonl"),
        include_str!("../results/evaluation/figures.json"),
    );
    figures.extend(figures_of_one_scale(
        include_bytes!("../results/evaluation-why/results.jsonl"),
        include_str!("../results/evaluation-why/figures.json"),
    ));
    report::look_up(&mut figures).unwrap();
    let text = include_str!("../results/evaluation/report.md");
    assert_are_in_the_report(&figures, text);
    assert!(text.contains(&format!("{}.\n", report::summary(&figures))), "it opens with the count");
    assert_stated_in_the_documentation(&figures);
    assert_verdicts_in_the_documentation(&figures);
    for (id, decimals) in [
        ("cells", 2),
        ("rho-rules-queue", 2),
        ("old", 2),
        ("old-rho", 2),
        ("old-unpaced", 2),
        ("age", 2),
        ("slowdown-requests", 2),
        ("rho-small-tree", 2),
        ("fig02-pages", 2),
        ("fig15-pace", 2),
        ("fig11-mcf-size", 2),
        ("dummies", 3),
        ("dummies-speed", 3),
        ("two-retire", 3),
        ("real-llc", 2),
        ("real-llc-paths", 2),
    ] {
        assert_settings_in_the_documentation(&figures, id, decimals);
    }
    for manifest in Manifest::all().unwrap() {
        assert_has_the_reasons(&figures, &manifest.id, &manifest.reasons);
    }
    // What is named as a change explains, and nothing else does.
    for stated in figures.iter().flat_map(|figure| &figure.stated) {
        let is_explained = matches!(stated.verdict(), Verdict::Explained(_));
        assert_eq!(stated.change.is_some(), is_explained, "{}", stated.what);
    }
}

#[test]
fn the_smaller_experiments_have_their_runs_and_their_numbers_are_in_the_documentation() {
    let figures = figures_of_one_scale(
        include_bytes!("../results/evaluation-parts/results.jsonl"),
        include_str!("../results/evaluation-parts/figures.json"),
    );
    assert_are_in_the_report(&figures, include_str!("../results/evaluation-parts/report.md"));
    assert_stated_in_the_documentation(&figures);
    for manifest in Manifest::all().unwrap() {
        assert_has_the_reasons(&figures, &manifest.id, &manifest.reasons);
    }
}

/// They are beside the evaluation, at sizes of their own.
#[test]
fn fig_16_and_the_figure_of_tiny_oram_have_their_runs_and_their_reports() {
    for (id, runs, figures, text, count) in [
        (
            "fig16",
            &include_bytes!("../results/fig16/results.jsonl")[..],
            include_str!("../results/fig16/figures.json"),
            include_str!("../results/fig16/report.md"),
            3 * 3 * 13,
        ),
        (
            "tiny07",
            include_bytes!("../results/tiny07/results.jsonl"),
            include_str!("../results/tiny07/figures.json"),
            include_str!("../results/tiny07/report.md"),
            3 * 7,
        ),
    ] {
        let kept: Vec<RunRecord> = whole(runs);
        assert_eq!(kept.len(), count);
        let manifest = Manifest::chosen(&[id.to_owned()]).unwrap().remove(0);
        let machines = manifest.variant_names();
        assert!(kept.iter().all(|run| machines.contains(&run.variant.as_str())));
        let figures = report::read(figures).unwrap();
        assert_eq!((figures.len(), &*figures[0].id), (1, id));
        assert!(text.contains(&report::section(&figures[0])), "expected {id}");
    }
}

#[test]
fn the_blocks_have_their_runs_and_their_numbers_are_in_the_documentation() {
    assert_blocks_in_the_documentation(
        24,
        include_bytes!("../results/blocks/results.jsonl"),
        include_str!("../results/blocks/figures.json"),
    );
}

/// With all positions on the client, Figs. 3, 4 and 13 are of the paper's tree.
#[test]
fn the_blocks_with_all_positions_on_the_client_have_their_runs_and_their_numbers_are_in_the_documentation()
 {
    let (kept, figures) = assert_blocks_in_the_documentation(
        24,
        include_bytes!("../results/blocks-client/results.jsonl"),
        include_str!("../results/blocks-client/figures.json"),
    );
    assert_eq!(kept.len(), 5);
    assert!(kept.iter().all(|run| run.spec.client_entries_max == run.spec.data_blocks));
    let ids: Vec<&str> = figures.iter().map(|figure| &*figure.id).collect();
    assert_eq!(ids, ["fig03-client", "fig04-client", "fig13-client"]);
}

/// The other settings have a smaller tree.
#[test]
fn the_blocks_in_other_settings_have_their_runs_and_their_numbers_are_in_the_documentation() {
    assert_blocks_in_the_documentation(
        20,
        include_bytes!("../results/blocks-settings/results.jsonl"),
        include_str!("../results/blocks-settings/figures.json"),
    );
}

#[test]
fn the_traffic_of_raw_oram_in_the_documentation_is_the_committed_one() {
    let file = include_str!("../results/raw-traffic/results.json");
    let results = raw_traffic::Results::from_json(file).unwrap();
    assert_eq!(results.plan, raw_traffic::Plan::full());
    let sections = |figures: &[Figure]| figures.iter().map(report::section).collect::<Vec<_>>();
    let drawn = report::read(include_str!("../results/raw-traffic/figures.json")).unwrap();
    assert_eq!(sections(&raw_traffic::figures(&results)), sections(&drawn));
    let documentation = include_str!("../../../docs/stash-study.md");
    assert!(documentation.contains(&results.table()), "expected this table:\n{}", results.table());
}

#[test]
fn the_deep_stash_study_in_the_documentation_is_the_committed_one() {
    let study =
        Study::from_json(include_str!("../results/stash-study-deep/stash-study.json")).unwrap();
    let runs = include_bytes!("../results/stash-study-deep/stash-study.jsonl");
    let kept: Vec<StashRecord> = whole(runs);
    let made: usize = study.results.iter().map(|result| result.runs.len()).sum();
    assert_eq!(kept.len(), made);
    assert_eq!(study.plan, Plan::deep());
    let documentation = include_str!("../../../docs/stash-study.md");
    assert!(documentation.contains(&study.table()), "expected this table:\n{}", study.table());
}

/// The runs that a file of them has. It ends with a whole one.
fn whole<R: DeserializeOwned>(runs: &[u8]) -> Vec<R> {
    let kept = Kept::read("results.jsonl", runs).expect("all lines are runs");
    assert_eq!(kept.whole_bytes, runs.len());
    kept.records
}

/// The figures of an evaluation whose runs are all of one scale.
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

/// A committed figure that differs gives the reasons that a new run would give.
fn assert_has_the_reasons(figures: &[Figure], id: &str, reasons: &[impl AsRef<str>]) {
    let figure = figures.iter().find(|figure| figure.id == id);
    for figure in figure.into_iter().filter(|figure| figure.verdict().is_outside()) {
        let said = figure.remarks.iter().filter_map(|said| said.strip_prefix("Why it differs: "));
        assert!(said.eq(reasons.iter().map(AsRef::as_ref)), "{id} gives other reasons");
    }
}

/// All runs have trees with leaves on `leaf_level`, and their figures are in docs/simulator.md, with reasons.
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

/// Each setting of the figure `id`, or each workload, is a row of docs/simulator.md, with its arithmetic means to so
/// many decimals.
fn assert_settings_in_the_documentation(figures: &[Figure], id: &str, decimals: usize) {
    let figure = figures.iter().find(|figure| figure.id == id).expect("it has such a figure");
    let Plot::Bars(bars) = &figure.plot else { panic!("{id} has bars") };
    let is_shown = |name: &str| !name.ends_with("(geometric)");
    let series: Vec<_> = bars.series.iter().filter(|series| is_shown(&series.name)).collect();
    let documentation = include_str!("../../../docs/simulator.md");
    // Where labels are workloads, their means stand beside them.
    let of_one = |label: &str| !label.ends_with(" mean");
    for (place, label) in bars.labels.iter().enumerate().filter(|(_, label)| of_one(label)) {
        let values = series.iter().map(|series| {
            let mean = series.values[place].expect("each setting has a mean");
            format!("{mean:.decimals$}")
        });
        let row = format!("| {label} | {} |", values.collect::<Vec<_>>().join(" | "));
        assert!(documentation.contains(&row), "expected this row: {row}");
    }
}

/// README and docs/simulator.md say how many of the stated numbers have which verdict, and how many of them the papers state.
fn assert_verdicts_in_the_documentation(figures: &[Figure]) {
    let stated = || figures.iter().flat_map(|figure| &figure.stated);
    let count = |wanted| stated().filter(|stated| stated.verdict() == wanted).count();
    let by = |kind| count(Verdict::Explained(kind));
    // What there is none of is not named.
    let named = [
        (count(Verdict::Agrees), "agrees as it stands"),
        (count(Verdict::AgreesUnderReading), "agree under a reading"),
        (count(Verdict::Fitted), "are fitted"),
        (by(ChangeKind::OneSetting), "come into their bands by one setting"),
        (by(ChangeKind::OtherProgram), "by another program"),
        (by(ChangeKind::TwoSettings), "by two settings"),
        (count(Verdict::Differs), "are not explained"),
    ];
    let counts: Vec<_> = named.iter().filter(|(count, _)| *count > 0).collect();
    let counts: Vec<_> = counts.iter().map(|(count, what)| format!("{count} {what}")).collect();
    let [most @ .., last] = &counts[..] else { panic!("there are numbers") };
    let counts = format!("{}, and {last}", most.join(", "));
    assert_eq!(count(Verdict::Open), 0);
    let once = stated().filter(|stated| stated.same_as.is_none()).count();
    assert!(report::summary(figures).contains(&format!("The papers state {once} of them")));
    let distinct = format!("The {} numbers are {once} of the papers", stated().count());
    for text in [include_str!("../../../README.md"), include_str!("../../../docs/simulator.md")] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for said in [&counts, &distinct] {
            assert!(text.contains(said), "expected: {said}");
        }
    }
}

/// Each stated number of a figure is a row of docs/simulator.md, beside ours, and a figure that differs says
/// why.
fn assert_stated_in_the_documentation(figures: &[Figure]) {
    for figure in figures.iter().filter(|figure| figure.verdict().is_outside()) {
        let says_why = figure.remarks.iter().any(|remark| remark.starts_with("Why it differs"));
        assert!(says_why, "{} differs from the paper, and does not say why", figure.id);
    }
    let documentation = include_str!("../../../docs/simulator.md");
    for stated in figures.iter().flat_map(|figure| &figure.stated) {
        let ours = stated.ours.map_or_else(|| "–".to_owned(), |ours| format!("{ours:.2}"));
        let row = format!("| {} | {:.2} | {ours} |", stated.what, stated.paper);
        assert!(documentation.contains(&row), "expected this row: {row}");
    }
}
