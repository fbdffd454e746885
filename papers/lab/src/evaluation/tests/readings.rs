//! Tests of stated numbers under several readings, and of the texts of figures.

use super::*;
use crate::report::{Bars, MarkPlace};

fn reading(name: &str, setting: SwitchSetting) -> NumberReading {
    NumberReading { name: name.to_owned(), setting }
}

fn one_channel() -> SwitchSetting {
    SwitchSetting { channels: Some(1), ..SwitchSetting::default() }
}

pub(super) fn bars(figure: &Figure) -> &Bars {
    let Plot::Bars(bars) = &figure.plot else { panic!("bars") };
    bars
}

/// Returns records in which Baseline takes 1000 cycles, and IR-Alloc 4 takes the given cycles for
/// each workload: on one channel, and on other numbers of channels.
fn with_cycles(records: &[RunRecord], [one, others]: [[u64; 2]; 2]) -> Vec<RunRecord> {
    let mut records = records.to_vec();
    for RunRecord { variant, workload, spec, outcome, .. } in &mut records {
        let cycles = if spec.channels == 1 { one } else { others };
        outcome.records = 2000;
        outcome.cycles = match (variant.as_str(), workload.as_str()) {
            ("ir-alloc-4", "uniform") => cycles[0],
            ("ir-alloc-4", _) => cycles[1],
            _ => 1000,
        };
    }
    records
}

#[test]
fn readings_have_their_own_runs_and_are_tried_in_order() {
    let plan = small();
    let readings = vec![
        reading("one channel", one_channel()),
        reading("other reading", SwitchSetting { fan_out: Some(8), ..SwitchSetting::default() }),
    ];
    let of_one = StatedNumber { workload: Some("uniform".to_owned()), ..stated("one", 2.0, 0.1) };
    let with = |readings: Vec<NumberReading>| Manifest {
        variants: vec!["ir-alloc-4".to_owned()],
        stated: vec![StatedNumber { readings, ..stated("IR-Alloc", 2.0, 0.1) }, of_one.clone()],
        ..manifest()
    };
    let samples = Programs::samples().unwrap();
    let count =
        |manifest: &Manifest| plan.runs(std::slice::from_ref(manifest), &samples).unwrap().len();
    assert_eq!(count(&with(Vec::new())), 2 * 2);
    let manifest = with(readings);
    assert_eq!(count(&manifest), 2 * 2 * 3);
    let mut of_one = manifest.clone();
    of_one.stated[0].workload = Some("uniform".to_owned());
    assert_eq!(count(&of_one), 2 * 2 + 2 * 2, "only the runs of its workload");

    let (records, _) = evaluate(&plan, std::slice::from_ref(&manifest), &[], 2);
    // On one channel, the arithmetic mean of 3 and 1 is 2. On the others, the geometric mean of 4
    // and 1 is 2.
    let cycles = [[333, 1000], [250, 1000]];
    let made = figure(&plan, &manifest, &with_cycles(&records, cycles));
    let number = &made.stated[0];
    assert_eq!(number.taken.as_deref(), Some("arithmetic mean"));
    assert_eq!(number.ours, Some(2.5));
    let names: Vec<_> = number.readings.iter().map(|reading| reading.name.as_str()).collect();
    let expected = [
        "geometric mean",
        "one channel, arithmetic mean",
        "one channel, geometric mean",
        "other reading, arithmetic mean",
        "other reading, geometric mean",
    ];
    assert_eq!(names, expected);
    assert_eq!(number.reading().unwrap().name, "geometric mean");
    assert_eq!(made.verdict(), Verdict::Differs, "the other number is 4");
    assert_eq!((made.stated[1].taken.as_deref(), made.stated[1].ours), (None, Some(4.0)));

    let made = figure(&plan, &manifest, &with_cycles(&records, [[333, 1000], [500, 250]]));
    assert_eq!(made.stated[0].reading().unwrap().name, "one channel, arithmetic mean");
    assert_eq!(made.verdict(), Verdict::AgreesUnderReading);

    // Without the runs of a reading, no reading agrees.
    let records: Vec<_> = records.into_iter().filter(|record| record.spec.channels != 1).collect();
    let made = figure(&plan, &manifest, &with_cycles(&records, [[333, 1000], [500, 250]]));
    assert_eq!(made.stated[0].verdict(), Verdict::Differs);
    assert_eq!(made.stated[0].readings[1].ours, None);
}

#[test]
fn fitted_numbers_are_distinguished_from_agreeing_ones() {
    let manifest = Manifest {
        stated: vec![StatedNumber {
            fitted: true,
            why: Some("by hand".to_owned()),
            shown_by: Some("cells".to_owned()),
            workload: Some("uniform".to_owned()),
            ..stated("IR-Alloc", 2.0, 0.1)
        }],
        ..manifest()
    };
    let (records, _) = evaluate(&small(), std::slice::from_ref(&manifest), &[], 2);
    let made = figure(&small(), &manifest, &with_cycles(&records, [[500, 500]; 2]));
    assert_eq!(made.verdict(), Verdict::Fitted);
    assert_eq!(made.stated[0].why.as_deref(), Some("by hand"));
    assert_eq!(made.stated[0].shown_by.as_deref(), Some("cells"));
    for number in &Manifest::chosen(&["tiny07".to_owned()]).unwrap()[0].stated {
        assert!(number.fitted, "{}: 41 cycles are added by hand", number.what);
    }
}

#[test]
fn a_number_is_drawn_at_the_bar_that_shows_it() {
    let plan = small();
    let of_uniform = |what: &str| StatedNumber {
        workload: Some("uniform".to_owned()),
        ..stated(what, 1.4, 0.1)
    };
    let share =
        StatedNumber { measure: Measure::Share(PathPart::Data), ..stated("share", 0.5, 0.1) };
    let hidden = StatedNumber { variant: "baseline".to_owned(), ..stated("hidden", 1.0, 0.1) };
    let by = |labels, settings, stacked| Manifest {
        settings,
        plot: Plotted { labels, stacked, ..manifest().plot },
        stated: vec![stated("mean", 1.4, 0.1), of_uniform("one"), share.clone(), hidden.clone()],
        ..manifest()
    };
    let place = |series: &str, label: &str| {
        Some(MarkPlace { series: Some(series.to_owned()), label: Some(label.to_owned()) })
    };
    let named =
        |name: &str| SwitchSetting { name: Some(name.to_owned()), ..SwitchSetting::default() };
    let as_it_is = || vec![SwitchSetting::default()];
    for (manifest, expected) in [
        (
            by(Axis::Workloads, as_it_is(), false),
            [place("IR-Alloc 4", "arithmetic mean"), place("IR-Alloc 4", "uniform")],
        ),
        (by(Axis::Workloads, as_it_is(), true), [None, None]),
        (by(Axis::Variants, as_it_is(), false), [place("speed (arithmetic)", "IR-Alloc 4"), None]),
        (
            by(Axis::Settings, vec![named("a"), named("b")], false),
            [place("IR-Alloc 4 (arithmetic)", "a"), None],
        ),
    ] {
        let made = figure(&plan, &manifest, &[]);
        let places: Vec<_> = made.stated.iter().map(|stated| stated.place.clone()).collect();
        assert_eq!(places, [expected.as_slice(), &[None, None]].concat());
        let drawn = expected.iter().filter(|place| place.is_some()).count();
        assert_eq!(made.stated_drawn(), drawn, "{:?}: {:?}", bars(&made).labels, places);
    }
}

#[test]
fn ratios_have_both_means_and_parts_of_a_whole_have_one() {
    let series = |id: &str| {
        let made = figure(&small(), &Manifest::chosen(&[id.to_owned()]).unwrap()[0], &[]);
        let names = bars(&made).series.iter().map(|series| series.name.clone());
        (bars(&made).labels.clone(), names.collect::<Vec<_>>())
    };
    let (labels, _) = series("fig10");
    assert_eq!(labels[14..], ["arithmetic mean", "geometric mean"]);
    let (labels, names) = series("fig02");
    assert_eq!((&labels[14..], names.len()), (&["mean".to_owned()][..], 5));
    let (_, names) = series("cells");
    assert_eq!(names[..2], ["Rho (arithmetic)", "Rho (geometric)"]);
    let (_, names) = series("fig16");
    let kinds = ["arithmetic", "geometric", "standard deviation"];
    let of = |name: &str| kinds.map(|kind| format!("{name} ({kind})"));
    assert_eq!(names, [of("IR-Alloc, searched for its size"), of("IR-Alloc 1")].concat());
    let fig16 = Manifest::chosen(&["fig16".to_owned()]).unwrap().remove(0);
    let one = Manifest { workloads: vec!["uniform".to_owned()], ..fig16 };
    let made = figure(&small(), &one, &[]);
    let names: Vec<_> = bars(&made).series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["IR-Alloc, searched for its size", "IR-Alloc 1"], "one has no mean");
    let (_, names) = series("fig12");
    assert_eq!(names, ["requests and dummies", "background eviction"]);
}

#[test]
fn a_stacked_figure_remarks_on_the_geometric_mean() {
    let fig12 = Manifest::chosen(&["fig12".to_owned()]).unwrap().remove(0);
    let manifest = Manifest {
        variants: vec!["ir-alloc-4".to_owned()],
        workloads: vec!["uniform".to_owned(), "scan".to_owned()],
        ..fig12
    };
    let (records, _) = evaluate(&small(), std::slice::from_ref(&manifest), &[], 2);
    let made = figure(&small(), &manifest, &with_cycles(&records, [[250, 1000]; 2]));
    let expected = "The geometric mean: IR-Alloc 4 0.500.";
    assert!(made.remarks.iter().any(|remark| remark.ends_with(expected)), "{:?}", made.remarks);
}

#[test]
fn the_origin_of_a_figure_describes_its_switches() {
    let origin = |id: &str| {
        let manifest = Manifest::chosen(&[id.to_owned()]).unwrap().remove(0);
        let manifests = std::slice::from_ref(&manifest);
        let plan = EvaluationPlan::full().with_machines_of(manifests).unwrap();
        figure(&plan, &manifest, &[]).origin
    };
    for manifest in Manifest::all().unwrap() {
        let origin = origin(&manifest.id);
        let is_code = |part: &str| origin.contains(part);
        assert!(!["{", "Switches", "_", "Some", "None"].into_iter().any(is_code), "{origin}");
    }
    assert!(origin("fig10").contains("a path starts 250 cycles after"));
    assert!(origin("unpaced").contains("as soon as there is something to do"));
    // The origin has the properties that all settings share, including those from `like`, and no
    // others.
    let cells = origin("cells");
    assert!(cells.contains("the rest is as labels say") && cells.contains("from 1 on"), "{cells}");
    assert!(!cells.contains("250 cycles after"), "{cells}");
    let old = origin("old");
    for part in [
        "leaves on level 24",
        "250 cycles after",
        "channels of DRAM: 1 and not 4",
        "fetches at once: 1;",
    ] {
        assert!(old.contains(part), "no {part} in {old}");
    }
    assert!(!old.contains("random places"), "{old}");
    let initial = origin("initial");
    assert!(initial.contains("leaves on level 22") && !initial.contains("at first"), "{initial}");
    assert!(!origin("depth").contains("leaves on level"));
}

#[test]
fn a_mean_over_fewer_programs_than_the_papers_has_no_verdict() {
    let number = |workload: Option<&str>, programs| StatedNumber {
        workload: workload.map(str::to_owned),
        programs,
        readings: vec![reading("one channel", one_channel())],
        ..stated("IR-Alloc", 2.0, 0.1)
    };
    let manifest = |number, workloads: &[&str]| Manifest {
        variants: vec!["ir-alloc-4".to_owned()],
        workloads: workloads.iter().map(|name| (*name).to_owned()).collect(),
        stated: vec![number],
        ..manifest()
    };
    let whole = manifest(number(None, None), &["uniform", "store-stream"]);
    let (records, _) = evaluate(&small(), std::slice::from_ref(&whole), &[], 2);
    let records = with_cycles(&records, [[500, 500]; 2]);
    let of = |manifest: &Manifest, records: &[RunRecord]| {
        let made = figure(&small(), manifest, records);
        let number = &made.stated[0];
        let others = number.readings.iter().filter(|reading| reading.ours.is_some()).count();
        (made.verdict(), number.of, number.ours, others)
    };
    assert_eq!(of(&whole, &records), (Verdict::Agrees, None, Some(2.0), 3));
    // One of its programs has no trace: there is no sample of it.
    let lacks = manifest(number(None, None), &["uniform", "store-stream", "403.gcc"]);
    assert_eq!(of(&lacks, &records), (Verdict::Open, Some([2, 3]), Some(2.0), 3));
    let text = section(&figure(&small(), &lacks, &records));
    assert!(text.contains("ours is of 2 of 3 programs"), "{text}");
    // A run is missing.
    let fewer: Vec<_> = records.iter().filter(|run| run.key != records[0].key).cloned().collect();
    let (verdict, programs, _, others) = of(&whole, &fewer);
    assert_eq!(
        (verdict, programs, others),
        (Verdict::Open, Some([1, 2]), 1),
        "the other setting has two"
    );
    // The paper's set is larger than the figure's.
    let small_set = manifest(number(None, Some(14)), &["uniform", "store-stream"]);
    assert_eq!(of(&small_set, &records).1, Some([2, 14]));
    // A number of a single program is complete with that program.
    let one = manifest(number(Some("uniform"), None), &["uniform", "403.gcc"]);
    assert_eq!(of(&one, &records), (Verdict::Agrees, None, Some(2.0), 1));
    assert_eq!(of(&whole, &[]), (Verdict::Open, None, None, 0));
}
