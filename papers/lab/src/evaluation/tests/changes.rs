//! Changes that explain stated numbers: what they name is there, and nothing else differs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::readings::bars;
use super::*;
use crate::report::{Change, Stated};

/// Built-in figures have the bars that changes name, and what is no bar is refused.
#[test]
fn changes_name_bars_that_there_are() {
    let all = Manifest::all().unwrap();
    check_changes(&all).unwrap();
    let of = |spoil: fn(&mut Change)| {
        let mut fig10 = all.iter().find(|figure| figure.id == "fig10").unwrap().clone();
        fig10.id = "own".to_owned();
        let mut changes = fig10.stated.iter_mut().filter_map(|number| number.change.as_mut());
        spoil(changes.next().unwrap());
        check_changes(&[fig10]).map_err(|error| error.to_string())
    };
    assert_eq!(of(|_| ()), Ok(()));
    for (spoil, message) in [
        ((|change| change.figure = "rho".to_owned()) as fn(&mut Change), "no figure \"rho\""),
        (|change| change.to.label = "Rho, late".to_owned(), "no bar \"Rho, late\""),
        (
            |change| change.from.series = "speed".to_owned(),
            "of a series \"speed\": its series are speed over",
        ),
    ] {
        let error = of(spoil).unwrap_err();
        assert!(error.starts_with("own: Rho, mean speed over Baseline: change: "), "{error}");
        assert!(error.contains(message), "{error}");
    }
}

/// Each number that stands there twice names the other.
#[test]
fn numbers_that_are_the_same_are_there() {
    let all = Manifest::all().unwrap();
    let numbers = || all.iter().flat_map(|figure| &figure.stated);
    for number in numbers() {
        let Some(what) = &number.same_as else { continue };
        let is_there = numbers().any(|other| other.what == *what && other.paper == number.paper);
        assert!(is_there, "{}: {what}", number.what);
    }
    assert_eq!(numbers().filter(|number| number.same_as.is_some()).count(), 4);
}

/// The runs of its two bars differ in what a change says that they differ in, and in nothing else.
#[test]
fn the_runs_of_a_change_differ_in_what_it_names() {
    let all = Manifest::all().unwrap();
    let kept: Vec<_> = ["evaluation", "evaluation-why"].map(committed).into();
    let mut checked = 0;
    for number in all.iter().flat_map(|figure| &figure.stated) {
        let Some(change) = &number.change else { continue };
        let figure = all.iter().find(|figure| figure.id == change.figure).unwrap();
        let named: BTreeSet<_> = change.differs_in.iter().cloned().collect();
        let pairs = kept.iter().map(|(records, plan, _)| {
            let runs = |bar| runs_of_bar(figure, plan, records, bar).unwrap().unwrap();
            [runs(&change.from), runs(&change.to)]
        });
        // The recording of which all runs are there.
        let [from, to] = pairs.max_by_key(|[from, to]| from.len().min(to.len())).unwrap();
        assert!(!from.is_empty() && from.len() == to.len(), "{}", number.what);
        let mut found = BTreeSet::new();
        for (from, to) in from.iter().zip(&to) {
            assert_eq!(from.scale, to.scale);
            found.extend(differences(from, to));
        }
        assert_eq!(found, named, "{}: {}", number.what, change.figure);
        checked += 1;
    }
    assert!(checked > 8, "{checked}");
}

/// What is written down of two runs, and differs: the keys of their specification, or what ran.
fn differences(one: &RunRecord, other: &RunRecord) -> Vec<String> {
    let specs = [one, other].map(|run| serde_json::to_value(&run.spec).unwrap());
    let mut keys = Vec::new();
    different_keys("", &specs[0], &specs[1], &mut keys);
    // Memory is as large on any number of channels: rows that each of more has less are no setting of their own.
    let rows = |run: &RunRecord| u128::from(run.spec.dram.rows) * u128::from(run.spec.channels);
    if rows(one) == rows(other) {
        keys.retain(|key| key != "dram.rows");
    }
    if one.workload != other.workload {
        keys.push("workload".to_owned());
    } else if one.trace != other.trace {
        keys.push("trace".to_owned());
    }
    keys
}

/// A key that is not set is none. Tables without a key in common are different choices, and not tables of keys.
fn different_keys(prefix: &str, one: &Value, other: &Value, keys: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(one), Value::Object(other))
            if one.keys().any(|key| other.contains_key(key)) =>
        {
            for key in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
                let dot = if prefix.is_empty() { "" } else { "." };
                let [one, other] = [one, other].map(|table| table.get(key).unwrap_or(&Value::Null));
                different_keys(&format!("{prefix}{dot}{key}"), one, other, keys);
            }
        }
        _ if one != other => keys.push(prefix.to_owned()),
        _ => (),
    }
}

/// A change begins at the number as it stands or at one of its readings, also if that is of the other recording.
#[test]
fn a_change_starts_from_the_number_that_it_explains() {
    let path =
        |results: &str| format!("{}/results/{results}/figures.json", env!("CARGO_MANIFEST_DIR"));
    let read = |results| report::read(&std::fs::read_to_string(path(results)).unwrap()).unwrap();
    let figures: Vec<_> = ["evaluation", "evaluation-why"].into_iter().flat_map(read).collect();
    let mut checked = 0;
    for stated in figures.iter().flat_map(|figure| &figure.stated) {
        let Some(Change { figure, from, .. }) = &stated.change else { continue };
        let figure = figures.iter().find(|other| other.id == *figure).unwrap();
        let series = bars(figure).series.iter().find(|series| series.name == from.series).unwrap();
        let label = bars(figure).labels.iter().position(|label| *label == from.label).unwrap();
        let start = series.values[label].unwrap();
        let Stated { ours, readings, .. } = stated;
        let mut taken = readings.iter().map(|reading| reading.ours).chain([*ours]).flatten();
        let is_taken = taken.any(|ours| (ours / start - 1.0).abs() < 0.01);
        assert!(is_taken, "{}: {start}", stated.what);
        checked += 1;
    }
    assert_eq!(checked, 11);
}
