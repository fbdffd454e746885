//! Verdicts in words, signs and sums.

use super::number::short;
use super::{Change, ChangeKind, Figure, Stated, Verdict};

/// How a verdict is shown: never by a colour alone.
pub(super) struct Shown {
    /// The word, or a few.
    pub(super) words: &'static str,
    /// The sign before them.
    pub(super) sign: char,
    /// The class of its element.
    pub(super) class: &'static str,
}

const NOTHING_STATED: Shown = Shown { words: "nothing stated", sign: '·', class: "none" };

/// How the verdict on a number is shown.
pub(super) fn shown(verdict: Verdict) -> Shown {
    let (sign, class) = match verdict {
        Verdict::Agrees => ('✓', "agrees"),
        Verdict::AgreesUnderReading => ('≈', "reading"),
        Verdict::Fitted => ('⊙', "fitted"),
        Verdict::Explained(ChangeKind::OneSetting) => ('∴', "setting"),
        Verdict::Explained(ChangeKind::OtherProgram) => ('⇄', "program"),
        Verdict::Explained(ChangeKind::TwoSettings) => ('∷', "settings"),
        Verdict::Differs => ('≠', "differs"),
        Verdict::Open => ('?', "open"),
    };
    Shown { words: verdict.words(), sign, class }
}

/// A line on a verdict, for a cell: under which reading a number agrees, what a change makes of it, or the first sentence of why it
/// does not.
pub(super) fn in_short(stated: &Stated) -> String {
    let reading = || {
        let reading = stated.reading()?;
        let ours = reading.ours.unwrap_or(stated.paper);
        let inside = inside(stated, Some(&reading.name), ours);
        let listed = 1 + stated.readings.len();
        Some(format!("{}: {}, {inside}; one of {listed} listed", reading.name, short(ours)))
    };
    let first = |text: &Option<String>| text.as_deref().map(|text| first_sentence(text).to_owned());
    let said = match stated.verdict() {
        Verdict::Agrees if stated.taken.is_none() && stated.readings.is_empty() => {
            first(&stated.limits)
        }
        Verdict::Agrees => {
            let ours = stated.ours.unwrap_or(stated.paper);
            let taken = stated.taken.clone().into_iter();
            let inside = inside(stated, stated.taken.as_deref(), ours);
            Some(taken.chain([inside]).collect::<Vec<_>>().join(", "))
        }
        Verdict::AgreesUnderReading => reading(),
        Verdict::Open => {
            stated.of.map(|[ours, all]| format!("no verdict: ours is of {ours} of {all} programs"))
        }
        Verdict::Differs if stated.fitted => {
            first(&stated.why).map(|why| format!("in spite of what was fitted: {why}"))
        }
        Verdict::Fitted => first(&stated.why),
        Verdict::Explained(_) => stated.change.as_ref().map(of_change),
        Verdict::Differs => stated.change.as_ref().map(of_change).or_else(|| first(&stated.why)),
    };
    said.unwrap_or_default()
}

/// All that is to be said of a verdict: the line above, where the paper's number stands already, why it differs or for what it
/// holds, and what it is under the other readings.
pub(super) fn note(stated: &Stated) -> String {
    let verdict = stated.verdict();
    let reading = stated.reading().filter(|_| verdict == Verdict::AgreesUnderReading);
    let again =
        stated.same_as.as_ref().map(|other| format!("The same number of the paper: {other}"));
    let more = match verdict {
        Verdict::Agrees | Verdict::AgreesUnderReading => &stated.limits,
        Verdict::Open => &None,
        Verdict::Fitted | Verdict::Explained(_) | Verdict::Differs => &stated.why,
    };
    let line = in_short(stated);
    // A line that is the beginning of the rest is not said twice.
    let line = (!more.as_ref().is_some_and(|more| more.starts_with(&line))).then_some(line);
    let said = sentences(line.into_iter().chain(again).chain(more.clone()));
    let taken = stated.taken.clone().filter(|_| verdict != Verdict::Agrees);
    let others = stated.readings.iter().filter(|other| reading != Some(*other));
    let others = others.map(|other| {
        format!("{}: {}", other.name, other.ours.map_or_else(|| "not run".to_owned(), short))
    });
    let others = taken.into_iter().chain(others).collect::<Vec<_>>().join("; ");
    match (said.as_str(), others.as_str()) {
        (_, "") => said,
        ("", _) => others,
        _ => format!("{said} ({others})"),
    }
}

/// The notes that say more than their cells do, and of which number.
pub(super) fn longer_notes(stated: &[Stated]) -> impl Iterator<Item = (&str, String)> {
    let notes = stated.iter().map(|stated| (stated, note(stated)));
    let longer = notes.filter(|(stated, note)| *note != in_short(stated));
    longer.map(|(stated, note)| (stated.what.as_str(), note))
}

/// What a change makes of a number, or which figure would show it.
fn of_change(change: &Change) -> String {
    let keys = change.differs_in.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>();
    let what = match change.kind() {
        ChangeKind::OneSetting => format!("One setting ({})", keys.concat()),
        ChangeKind::OtherProgram => {
            format!("Another program ({} for {})", change.to.label, change.from.label)
        }
        ChangeKind::TwoSettings => format!("Two settings ({})", keys.join(", ")),
    };
    match change.found {
        Some([from, to]) => format!("{what}: {} becomes {}", short(from), short(to)),
        None => format!("{what}: no values here, the figure `{}` would show it", change.figure),
    }
}

/// One after the other, each with its end.
fn sentences(parts: impl Iterator<Item = String>) -> String {
    let joined = parts.reduce(|said, part| {
        let end = if said.ends_with('.') { " " } else { ". " };
        format!("{said}{end}{part}")
    });
    joined.unwrap_or_default()
}

/// Of a paragraph.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at);
    let mut ends = ends.filter(|at| text[at + 2..].starts_with(char::is_uppercase));
    ends.next().map_or(text, |at| &text[..=at])
}

/// How far inside the band `ours` is, which is the mean that `name` ends with; and whether the other mean agrees.
fn inside(stated: &Stated, name: Option<&str>, ours: f64) -> String {
    let margin = format!("{} inside the band", short(stated.margin(ours)));
    let other = name.and_then(|name| other_mean(stated, name));
    let Some(other) = other else { return margin };
    let which = if stated.agrees(other) { "agrees too" } else { "does not agree" };
    format!("{margin} (the other mean, {}, {which})", short(other))
}

/// The same number as the reading called `name` has it, by the other mean.
fn other_mean(stated: &Stated, name: &str) -> Option<f64> {
    let setting = setting_of_mean(name)?;
    let is_other = |other: &str| other != name && setting_of_mean(other) == Some(setting);
    let first = stated.taken.as_deref().filter(|taken| is_other(taken)).and(stated.ours);
    let reading = || stated.readings.iter().find(|reading| is_other(&reading.name))?.ours;
    first.or_else(reading)
}

/// What stands before "arithmetic mean", or whichever mean it is that `name` ends with.
fn setting_of_mean(name: &str) -> Option<&str> {
    let kind = name.strip_suffix(" mean")?;
    Some(kind.rsplit_once(' ').map_or("", |(setting, _)| setting))
}

/// How the verdict on a figure is shown. One of which a paper says nothing in numbers has none.
pub(super) fn of_figure(figure: &Figure) -> Shown {
    if figure.stated.is_empty() { NOTHING_STATED } else { shown(figure.verdict()) }
}

/// How much of what is stated agrees, in a line: "12 of 20 stated numbers agree (under a reading: 2, not explained: 3, open: 3)",
/// and how many of them the papers state, if some stand there twice.
pub fn summary(figures: &[Figure]) -> String {
    let stated = || figures.iter().flat_map(|figure| &figure.stated);
    let sentence = sentence(stated());
    match stated_again(figures).len() {
        0 => sentence,
        again => format!("{sentence}. The papers state {} of them", stated().count() - again),
    }
}

/// The numbers that are another one of the papers again.
pub(super) fn stated_again(figures: &[Figure]) -> Vec<&str> {
    let stated = || figures.iter().flat_map(|figure| &figure.stated);
    let stands_there = |what: &str, number: &Stated| {
        stated().any(|other| other.what == what && other.paper == number.paper)
    };
    let is_again =
        |number: &&Stated| number.same_as.as_ref().is_some_and(|what| stands_there(what, number));
    stated().filter(is_again).map(|number| number.what.as_str()).collect()
}

/// Which those are. Nothing, if there are none.
pub(super) fn which_again(figures: &[Figure]) -> Option<String> {
    let again = stated_again(figures);
    let which = again.join("; ");
    (!again.is_empty())
        .then(|| format!("Held against a second machine, or in a second figure: {which}."))
}

/// The same for some of it.
pub(super) fn sentence<'a>(stated: impl IntoIterator<Item = &'a Stated>) -> String {
    let verdicts: Vec<_> = stated.into_iter().map(Stated::verdict).collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let rest = [
        ("under a reading", Verdict::AgreesUnderReading),
        ("fitted", Verdict::Fitted),
        ("explained by one setting", Verdict::Explained(ChangeKind::OneSetting)),
        ("by another program", Verdict::Explained(ChangeKind::OtherProgram)),
        ("by two settings", Verdict::Explained(ChangeKind::TwoSettings)),
        ("not explained", Verdict::Differs),
        ("open", Verdict::Open),
    ];
    let rest = rest.into_iter().map(|(what, verdict)| (what, count(verdict)));
    let rest: Vec<_> = rest
        .filter(|(_, count)| *count > 0)
        .map(|(what, count)| format!("{what}: {count}"))
        .collect();
    let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
    match verdicts.len() {
        0 => "No numbers are stated".to_owned(),
        all => format!("{} of {all} stated numbers agree{rest}", count(Verdict::Agrees)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Reading;
    use super::super::change::tests::change;
    use super::*;

    fn stated(ours: Option<f64>) -> Stated {
        Stated::new("mean", 1.0, 0.1, ours)
    }

    fn under_a_reading() -> Stated {
        let reading = |name: &str, ours| Reading { name: name.to_owned(), ours };
        Stated {
            taken: Some("arithmetic mean".to_owned()),
            readings: vec![
                reading("geometric mean", Some(1.2)),
                reading("one channel", Some(1.05)),
                reading("two channels", None),
            ],
            why: Some("four channels hide it".to_owned()),
            ..stated(Some(2.0))
        }
    }

    #[test]
    fn verdicts_are_counted() {
        let [good, bad, open] = [Some(1.0), Some(2.0), None].map(stated);
        let fitted = Stated { fitted: true, ..good.clone() };
        let by = |keys: &[&str]| Stated { change: Some(change(keys, Some(1.0))), ..bad.clone() };
        let [setting, program, two] =
            [by(&["oram.remap"]), by(&["workload"]), by(&["trace", "oram.fan_out"])];
        let reading = under_a_reading();
        for (stated, text) in [
            (&[][..], "No numbers are stated"),
            (&[&good, &good], "2 of 2 stated numbers agree"),
            (&[&good, &bad], "1 of 2 stated numbers agree (not explained: 1)"),
            (&[&good, &open, &bad], "1 of 3 stated numbers agree (not explained: 1, open: 1)"),
            (&[&open], "0 of 1 stated numbers agree (open: 1)"),
            (
                &[&setting, &program, &two, &bad, &good, &setting],
                "1 of 6 stated numbers agree (explained by one setting: 2, by another program: 1, by two settings: 1, \
                 not explained: 1)",
            ),
            (
                &[&fitted, &reading, &good, &fitted],
                "1 of 4 stated numbers agree (under a reading: 1, fitted: 2)",
            ),
        ] {
            assert_eq!(sentence(stated.iter().copied()), text);
        }
    }

    #[test]
    fn a_note_names_the_reading_or_says_why() {
        let reading = under_a_reading();
        assert_eq!(in_short(&reading), "one channel: 1.05, 0.05 inside the band; one of 4 listed");
        assert_eq!(
            note(&reading),
            "one channel: 1.05, 0.05 inside the band; one of 4 listed (arithmetic mean; geometric mean: 1.2; two channels: not run)"
        );
        let young = Stated { limits: Some("For young trees".to_owned()), ..reading.clone() };
        assert!(note(&young).starts_with(
            "one channel: 1.05, 0.05 inside the band; one of 4 listed. For young trees ("
        ));
        let bad = Stated { paper: 7.0, limits: young.limits.clone(), ..reading.clone() };
        let others =
            "(arithmetic mean; geometric mean: 1.2; one channel: 1.05; two channels: not run)";
        assert_eq!(note(&bad), format!("four channels hide it {others}"));
        let limited = Stated { ours: Some(1.0), ..young };
        assert!(note(&limited).starts_with(
            "arithmetic mean, 0.1 inside the band (the other mean, 1.2, does not agree). For young trees ("
        ));
        let good = Stated { ours: Some(1.0), ..reading };
        assert_eq!(
            note(&good),
            "arithmetic mean, 0.1 inside the band (the other mean, 1.2, does not agree) \
             (geometric mean: 1.2; one channel: 1.05; two channels: not run)"
        );
        let fitted = Stated { fitted: true, why: Some("by hand".to_owned()), ..stated(Some(1.0)) };
        assert_eq!(note(&fitted), "by hand");
        let in_vain = Stated { ours: Some(2.0), ..fitted };
        assert_eq!(in_short(&in_vain), "in spite of what was fitted: by hand");
        let part = Stated { of: Some([1, 14]), ours: Some(1.0), ..under_a_reading() };
        assert_eq!(
            note(&part),
            "no verdict: ours is of 1 of 14 programs (arithmetic mean; geometric mean: 1.2; one channel: 1.05; two channels: not run)"
        );
        let open = Stated { why: Some("a reason to differ".to_owned()), ..stated(None) };
        assert_eq!(note(&open), "", "what was not measured does not differ");
    }

    #[test]
    fn a_note_says_what_a_change_makes_of_a_number_or_where_that_is_shown() {
        let why = Some("Rho. It differs, by Fig. 10 too".to_owned());
        let with = |keys: &[&str], found| Stated {
            change: Some(change(keys, found)),
            why: why.clone(),
            ..stated(Some(2.0))
        };
        let setting = with(&["oram.remap"], Some(1.02));
        let line = "One setting (`oram.remap`): 0.5 becomes 1.02";
        assert_eq!(in_short(&setting), line);
        assert_eq!(note(&setting), format!("{line}. Rho. It differs, by Fig. 10 too"));
        for (keys, found, line) in [
            (&["workload"][..], Some(1.02), "Another program (after for before): 0.5 becomes 1.02"),
            (&["trace", "a"], Some(1.02), "Two settings (`trace`, `a`): 0.5 becomes 1.02"),
            (&["a"], Some(3.0), "One setting (`a`): 0.5 becomes 3"),
            (&["a"], None, "One setting (`a`): no values here, the figure `why` would show it"),
        ] {
            assert_eq!(in_short(&with(keys, found)), line);
        }
        let plain = Stated { change: None, same_as: Some("Fig. 2".to_owned()), ..setting };
        assert_eq!(in_short(&plain), "Rho.");
        let said = "The same number of the paper: Fig. 2. Rho. It differs, by Fig. 10 too";
        assert_eq!(note(&plain), said);
    }

    #[test]
    fn beside_a_mean_that_agrees_stands_the_other() {
        let reading = |name: &str, ours| Reading { name: name.to_owned(), ours: Some(ours) };
        let of = |readings: &[Reading]| {
            let taken = Some("arithmetic mean".to_owned());
            note(&Stated { taken, readings: readings.to_vec(), ..stated(Some(1.2)) })
        };
        let geometric = reading("geometric mean", 1.09);
        let said = "geometric mean: 1.09, 0.01 inside the band (the other mean, 1.2, does not agree); one of 2 listed";
        assert!(of(&[geometric]).starts_with(said));
        let means = ["one, arithmetic mean", "one, geometric mean"];
        let one =
            [reading(means[0], 1.08), reading("two, geometric mean", 9.0), reading(means[1], 0.91)];
        let said = "one, arithmetic mean: 1.08, 0.02 inside the band (the other mean, 0.91, agrees too); one of 4 listed";
        assert!(of(&one).starts_with(said), "{}", of(&one));
    }

    #[test]
    fn no_two_verdicts_look_the_same() {
        for (number, verdict) in Verdict::ALL.into_iter().enumerate() {
            let shown = super::shown(verdict);
            for other in Verdict::ALL.into_iter().take(number).map(super::shown) {
                assert!(shown.sign != other.sign && shown.words != other.words);
            }
        }
    }
}
