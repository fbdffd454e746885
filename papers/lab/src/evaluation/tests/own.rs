//! Tests of figures from files that define their own machines.

use super::*;
use crate::evaluation::Switches;

const FIGURE: &str = r#"
id = "mine"
title = "Two machines"
paper = "none"
variants = ["narrow", "file"]
workloads = ["uniform", "store-stream"]

[machines.narrow]
title = "One channel"
of = "ir-alloc-1"
set = { channels = 1, fan-out = 8 }

[machines.file]
title = "From a file"
spec = "machine.toml"

[plot]
labels = "workloads"
value = "speed over Baseline"
measures = [{ name = "speed", measure = { speed-over = "baseline" } }]
"#;

/// LLC size in bytes of the machine that a file describes. No other machine has this size.
const LLC_BYTES: u64 = 64 << 10;

fn machine() -> String {
    let ir_stash = Variant::named("ir-stash").unwrap();
    ir_stash
        .spec(12, &Switches { llc_bytes: LLC_BYTES, ..Switches::PAPER })
        .unwrap()
        .to_toml()
        .unwrap()
}

fn read(text: &str) -> Result<Manifest, LabError> {
    Manifest::read("mine.toml", text, &|name| match name {
        "machine.toml" => Ok(machine()),
        _ => Err(LabError::Input(format!("cannot read {name}"))),
    })
}

#[test]
fn machines_of_a_manifest_run_as_they_are_described() {
    let manifest = read(FIGURE).unwrap();
    let plan = small().with_machines_of(std::slice::from_ref(&manifest)).unwrap();
    let (records, _) = evaluate(&plan, std::slice::from_ref(&manifest), &[], 2);
    assert_eq!(records.len(), 3 * 2);
    let spec =
        |variant: &str| &records.iter().find(|record| record.variant == variant).unwrap().spec;
    let set = Switches { channels: 1, fan_out: 8, ..plan.switches.clone() };
    let narrow = Variant::named("ir-alloc-1").unwrap().spec(12, &set).unwrap();
    assert_eq!(*spec("narrow"), narrow);
    assert_eq!(spec("file").to_toml().unwrap(), machine());
    assert_eq!(spec("baseline").channels, 4);
    let keys = records.iter().filter(|record| record.key.contains(&format!(",{LLC_BYTES}b,")));
    assert_eq!(keys.map(|record| &*record.variant).collect::<Vec<_>>(), ["file"; 2]);

    let made = figure(&plan, &manifest, &records);
    let Plot::Bars(bars) = &made.plot else { panic!("bars") };
    let names: Vec<_> = bars.series.iter().map(|series| series.name.as_str()).collect();
    assert!(
        names[0].starts_with("One channel") && names.last().unwrap().starts_with("From a file")
    );
    assert!(bars.series.iter().flat_map(|series| &series.values).all(Option::is_some), "{bars:?}");
    // These runs are recorded like any others.
    let (_, host) = evaluate(&plan, &[manifest], &records, 2);
    assert_eq!(host.file.into_inner().unwrap(), "");
}

#[test]
fn an_invalid_machine_is_refused_with_its_file_and_line() {
    for (good, bad, line, message) in [
        ("machine.toml", "other.toml", 15, "cannot read other.toml"),
        ("spec = \"machine.toml\"", "", 14, "give its origin"),
        ("spec = \"machine.toml\"", "spec = \"machine.toml\"\nof = \"rho\"", 14, "give its origin"),
        ("spec = \"machine.toml\"", "set = {}", 15, "name that machine with of"),
        ("of = \"ir-alloc-1\"", "of = \"ir-alloc-9\"", 10, "no built-in machine ir-alloc-9"),
        ("channels = 1", "levels = 1", 11, "move them to the settings"),
        ("channels = 1", "chanels = 1", 11, "unknown field `chanels`"),
        ("[machines.file]", "[machines.rho]", 14, "is built in: choose another"),
        ("[machines.file]", "[machines.\"My file\"]", 14, "lowercase letters"),
        ("\"file\"]", "\"fill\"]", 0, "describe it in [machines.fill]"),
        ("From a file", "One channel", 0, "titles of variants: \"One channel\" occurs twice"),
    ] {
        assert!(FIGURE.contains(good), "{good}");
        let error = read(&FIGURE.replace(good, bad)).unwrap_err().to_string();
        let place = if line == 0 { "mine.toml".to_owned() } else { format!("line {line}") };
        assert!(
            error.starts_with("mine.toml") && error.contains(&place) && error.contains(message),
            "{bad}: {error}"
        );
    }
    let error = Manifest::parse("mine.toml", FIGURE).unwrap_err().to_string();
    assert!(error.contains("there is no file machine.toml next to it"), "{error}");
}

#[test]
fn machines_with_equal_names_must_be_equal() {
    let mine = read(FIGURE).unwrap();
    let again = read(&FIGURE.replace("\"mine\"", "\"again\"")).unwrap();
    let plan = small().with_machines_of(&[mine.clone(), again.clone()]).unwrap();
    assert_eq!(plan.machines.len(), 2);
    let other = read(&FIGURE.replace("fan-out = 8", "fan-out = 32")).unwrap();
    let error = small().with_machines_of(&[again.clone(), other.clone()]).unwrap_err();
    assert!(error.to_string().contains("narrow of mine has the name"), "{error}");

    let chosen = Manifest::chosen_of(vec![mine.clone(), again.clone()], &["again".to_owned()]);
    assert_eq!(chosen.unwrap(), [again]);
    let error = Manifest::chosen_of(vec![mine, other], &[]).unwrap_err();
    assert!(error.to_string().contains("the id mine"), "{error}");
}

#[test]
fn a_figure_remarks_on_a_machine_with_another_tree() {
    let manifest = read(FIGURE).unwrap();
    let remarks = |leaf_level| {
        let scale = Scale { leaf_level, ..small().scale };
        let plan =
            EvaluationPlan { scale, ..small() }.with_machines_of(std::slice::from_ref(&manifest));
        figure(&plan.unwrap(), &manifest, &[]).remarks
    };
    let has_remark = |remarks: &[String]| remarks.iter().any(|it| it.contains("another tree"));
    assert!(!has_remark(&remarks(12)));
    let other = remarks(13);
    let expected = "From a file has another tree than the rest of this figure: its leaves are on \
                    level 12 and not 13, and it holds 16384 lines and not 32768. Comparisons with \
                    it also compare trees.";
    assert!(has_remark(&other) && other.iter().any(|remark| remark == expected), "{other:?}");
}

#[test]
fn a_set_that_changes_nothing_is_refused_with_its_line() {
    let with = |of: &str, set: &str| {
        let text = FIGURE.replace("of = \"ir-alloc-1\"", &format!("of = \"{of}\""));
        read(&text.replace("set = { channels = 1, fan-out = 8 }", &format!("set = {set}")))
    };
    for (of, set) in [
        ("baseline", "{ tree-top-ways = 8 }"),
        ("none", "{ pace = \"free\", layout = \"heap\", plb-ways = 4 }"),
        ("ir-stash", "{ fills-small-tree = true }"),
        ("llc-d", "{ fetch-on-write-miss = true }"),
        ("baseline", "{}"),
    ] {
        let error = with(of, set).unwrap_err().to_string();
        let expected = format!("mine.toml, line 11: machine narrow: set changes nothing of {of}");
        assert!(error.starts_with(&expected), "{error}");
    }
    // The values of the evaluation do not matter: another evaluation has others.
    for (of, set) in [
        ("ir-stash", "{ tree-top-ways = 4 }"),
        ("baseline", "{ channels = 4 }"),
        ("baseline", "{ width = 2 }"),
        ("none", "{ width = 4 }"),
        ("baseline", "{ retire-width = 2 }"),
        ("baseline", "{ pages = \"scattered\" }"),
        ("rho", "{ fills-small-tree = true }"),
        ("none", "{ channels = 1, plb-ways = 4 }"),
    ] {
        assert!(with(of, set).is_ok(), "{of} {set}");
    }
    let error = with("baseline", "{ context-switch = 0 }").unwrap_err().to_string();
    assert!(error.starts_with("mine.toml, line 11: machine narrow: context-switch = 0"), "{error}");
}
