//! Tests of valid and invalid manifests.

use super::*;

const GOOD: &str = include_str!("../../../manifests/fig11.toml");

/// The text of the manifest without its readings.
fn without_readings() -> String {
    let lines = GOOD.lines().filter(|line| !line.starts_with("readings = "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn all_manifests_are_valid_and_named_after_their_files() {
    let all = Manifest::all().unwrap();
    for (manifest, (file, _)) in all.iter().zip(FILES) {
        assert_eq!(format!("{}.toml", manifest.id), file);
    }
    assert_eq!(Manifest::chosen(&["fig12".to_owned()]).unwrap(), [all[8].clone()]);
    let unasked = Manifest::chosen(&[]).unwrap();
    assert!(unasked.len() > 10 && unasked.iter().all(|figure| !figure.overnight));
    assert!(Manifest::chosen(&["cells".to_owned()]).unwrap()[0].overnight);
    let error = Manifest::chosen(&["fig7".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("no figure fig7: choose from slowdown, slowdown-real"), "{error}");
}

#[test]
fn variants_of_comparisons_run_too() {
    let fig11 = Manifest::parse("fig11.toml", GOOD).unwrap();
    let both = ["llc-d-ir-stash-ir-alloc-1", "llc-d-ir-stash-ir-alloc-4"];
    assert_eq!(fig11.variant_names(), [both[0], both[1], "llc-d"]);
    assert_eq!(fig11.workload_names().len(), 14);
}

#[test]
fn an_invalid_manifest_is_refused_with_its_file_and_line() {
    let text = without_readings();
    for (good, bad, message) in [
        ("title", "titel", "line 2"),
        ("id = \"fig11\"", "id = \"\"", "id is empty"),
        ("[plot]", "[plot]\ncolour = \"red\"", "unknown field `colour`"),
        ("\"llc-d\"", "\"llc-e\"", "no variant llc-e"),
        ("\"programs\"", "\"games\"", "no workload games"),
        ("workload = \"mcf\"", "workload = \"uniform\"", "not one of this figure"),
        ("band = 0.1", "band = -0.1", "a band is 0 or more"),
        ("speed-over", "speed-under", "unknown variant"),
        (
            "variants = [\"llc-d-ir-stash-ir-alloc-1\", \"llc-d-ir-stash-ir-alloc-4\"]",
            "variants = []",
            "variants is empty",
        ),
        ("band = 0.1", "band = 0.1\nreading = []", "unknown field `reading`"),
        ("band = 0.1\nwhy", "band = 0.1\nfitted = true\n#", "what was fitted"),
        ("band = 0.1", "band = 0.1\nchange = 1.7", "unknown field `change`"),
        (
            "band = 0.1",
            "band = 0.1\nreadings = [{ name = \"a\", setting = {} }, { name = \"a\", setting = {} \
             }]",
            "a different name",
        ),
        (
            "band = 0.1",
            "band = 0.1\nreadings = [{ name = \"\", setting = {} }]",
            "a different name",
        ),
        (
            "band = 0.1",
            "band = 0.1\nreadings = [{ name = \"a\", setting = { name = \"b\" } }]",
            "remove the name of its setting",
        ),
        ("band = 0.1", "band = 0.1\nreadings = [{ name = \"a\" }]", "missing field `setting`"),
        ("[plot]", "settings = [{}, { levels = 1 }]\n[plot]", "labels = \"settings\""),
        ("[plot]", "settings = [{ speed = 1 }]\n[plot]", "unknown field `speed`"),
        ("[plot]", "settings = [{ like = \"fast\" }]\n[plot]", "choose from in-order"),
        ("band = 0.1", "band = 0.1\nreadings = [\"fast\"]", "choose from in-order"),
        ("band = 0.1", "band = 0.1\nreadings = [\"in-order\", \"in-order\"]", "a different name"),
        ("\"llc-d-ir-stash-ir-alloc-4\"]", "\"llc-d-ir-stash-ir-alloc-1\"]", "variants: \"llc-d"),
        ("\"mix\"", "\"gcc\"", "workloads: \"gcc\" occurs twice"),
        ("\"mix\"", "\"programs\"", "occurs twice"),
        (
            "IR-Stash and IR-Alloc, speed over LLC-D of mcf",
            "IR-Stash and IR-Alloc, mean speed over LLC-D",
            "stated numbers: \"IR-Stash",
        ),
        (
            "[plot]",
            "settings = [{ name = \"a\" }, { name = \"a\" }]\n[plot]",
            "settings: \"a\" occurs",
        ),
        (
            "measures = [",
            "measures = [{ name = \"speed\", measure = \"eviction-energy\" }, ",
            "measures: \"speed\"",
        ),
    ] {
        assert!(text.contains(good), "{good}");
        let error = Manifest::parse("x.toml", &text.replace(good, bad)).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("x.toml: ") && error.contains(message), "{bad}: {error}");
    }
}

#[test]
fn shown_by_must_name_an_existing_figure() {
    let fig11 = |id: &str| {
        let text =
            without_readings().replace("band = 0.1", &format!("band = 0.1\nshown-by = {id:?}"));
        Manifest::parse("fig11.toml", &text).unwrap()
    };
    for id in ["plb", "fig03", "fig11"] {
        Manifest::check_shown_by(&[fig11(id)]).unwrap();
    }
    // A figure that is given with the manifest, and is not one of the evaluation.
    let own = Manifest { id: "own".to_owned(), ..fig11("own") };
    Manifest::check_shown_by(std::slice::from_ref(&own)).unwrap();
    Manifest::check_shown_by(&[fig11("own"), own]).unwrap();
    let error = Manifest::check_shown_by(&[fig11("own")]).unwrap_err().to_string();
    assert!(error.contains("fig11: IR-Stash and IR-Alloc, mean"), "{error}");
    assert!(error.contains("\"own\" is no figure: choose from slowdown, slowdown-real"), "{error}");
}
