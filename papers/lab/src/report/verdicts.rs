//! Verdicts in words, signs and counts.

use super::number::short;
use super::{Figure, Stated, Verdict};

/// The presentation of a verdict, which never depends on colour alone.
pub(super) struct VerdictStyle {
    /// The verdict in a few words.
    pub(super) words: &'static str,
    /// A sign that precedes the words.
    pub(super) sign: char,
    /// The class of the verdict's HTML element.
    pub(super) class: &'static str,
}

const NOTHING_STATED: VerdictStyle =
    VerdictStyle { words: "nothing stated", sign: '·', class: "none" };

/// The presentation of the verdict on a number.
pub(super) fn shown(verdict: Verdict) -> VerdictStyle {
    let (sign, class) = match verdict {
        Verdict::Agrees => ('✓', "agrees"),
        Verdict::AgreesUnderReading => ('≈', "reading"),
        Verdict::Fitted => ('⊙', "fitted"),
        Verdict::Differs => ('≠', "differs"),
        Verdict::Open => ('?', "open"),
    };
    VerdictStyle { words: verdict.words(), sign, class }
}

/// A short note on a verdict, for a cell. It names the reading under which the number agrees, gives
/// the first sentence of the limits or of the reason, or says that our number covers too few
/// programs. Empty if none of these is known.
pub(super) fn in_short(stated: &Stated) -> String {
    let reading = || {
        let reading = stated.reading()?;
        let ours = reading.ours.unwrap_or(stated.paper);
        let inside = inside(stated, Some(&reading.name), ours);
        let listed = 1 + stated.readings.len();
        Some(format!("{}: {}, {inside}; one of {listed} listed", reading.name, short(ours)))
    };
    let first = |text: &Option<String>| text.as_deref().map(|text| first_sentence(text).to_owned());
    let note = match stated.verdict() {
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
        Verdict::Fitted | Verdict::Differs => first(&stated.why),
    };
    note.unwrap_or_default()
}

/// The complete note on a verdict: the short note, the reason or the limits, and the values under
/// other readings.
pub(super) fn note(stated: &Stated) -> String {
    let verdict = stated.verdict();
    let reading = stated.reading().filter(|_| verdict == Verdict::AgreesUnderReading);
    let more = match verdict {
        Verdict::Agrees | Verdict::AgreesUnderReading => &stated.limits,
        Verdict::Open => &None,
        Verdict::Fitted | Verdict::Differs => &stated.why,
    };
    let line = in_short(stated);
    // Omit a short note with which `more` begins.
    let line = (!more.as_ref().is_some_and(|more| more.starts_with(&line))).then_some(line);
    let text = sentences(line.into_iter().chain(more.clone()));
    let taken = stated.taken.clone().filter(|_| verdict != Verdict::Agrees);
    let others = stated.readings.iter().filter(|other| reading != Some(*other));
    let others = others.map(|other| {
        format!("{}: {}", other.name, other.ours.map_or_else(|| "not run".to_owned(), short))
    });
    let others = taken.into_iter().chain(others).collect::<Vec<_>>().join("; ");
    match (text.as_str(), others.as_str()) {
        (_, "") => text,
        ("", _) => others,
        _ => format!("{text} ({others})"),
    }
}

/// The notes that are longer than their cells, with the descriptions of their numbers.
pub(super) fn longer_notes(stated: &[Stated]) -> impl Iterator<Item = (&str, String)> {
    let notes = stated.iter().map(|stated| (stated, note(stated)));
    let longer = notes.filter(|(stated, note)| *note != in_short(stated));
    longer.map(|(stated, note)| (stated.what.as_str(), note))
}

/// Joins sentences, and adds a full stop where one is missing.
fn sentences(parts: impl Iterator<Item = String>) -> String {
    let joined = parts.reduce(|text, part| {
        let end = if text.ends_with('.') { " " } else { ". " };
        format!("{text}{end}{part}")
    });
    joined.unwrap_or_default()
}

/// The first sentence of a paragraph.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at);
    let mut ends = ends.filter(|at| text[at + 2..].starts_with(char::is_uppercase));
    ends.next().map_or(text, |at| &text[..=at])
}

/// Words for the margin of `ours` inside the band. If `name` is a reading with one kind of mean
/// (it ends in `… mean`) and our number with the other kind is known, also gives that number and
/// whether it agrees.
fn inside(stated: &Stated, name: Option<&str>, ours: f64) -> String {
    let margin = format!("{} inside the band", short(stated.margin(ours)));
    let other = name.and_then(|name| other_mean(stated, name));
    let Some(other) = other else { return margin };
    let which = if stated.agrees(other) { "agrees too" } else { "does not agree" };
    format!("{margin} (the other mean, {}, {which})", short(other))
}

/// Our number under the reading `name`, but with the other mean.
fn other_mean(stated: &Stated, name: &str) -> Option<f64> {
    let setting = setting_of_mean(name)?;
    let is_other = |other: &str| other != name && setting_of_mean(other) == Some(setting);
    let first = stated.taken.as_deref().filter(|taken| is_other(taken)).and(stated.ours);
    let reading = || stated.readings.iter().find(|reading| is_other(&reading.name))?.ours;
    first.or_else(reading)
}

/// The part of `name` before the kind of mean, if it ends with a mean.
fn setting_of_mean(name: &str) -> Option<&str> {
    let kind = name.strip_suffix(" mean")?;
    Some(kind.rsplit_once(' ').map_or("", |(setting, _)| setting))
}

/// The presentation of the verdict on a figure. A figure without stated numbers has no verdict.
pub(super) fn of_figure(figure: &Figure) -> VerdictStyle {
    if figure.stated.is_empty() { NOTHING_STATED } else { shown(figure.verdict()) }
}

/// A line that counts the stated numbers by verdict: "12 of 20 stated numbers agree (under a
/// reading: 2, differ: 3, open: 3)".
pub fn summary(figures: &[Figure]) -> String {
    sentence(figures.iter().flat_map(|figure| &figure.stated))
}

/// Like [`summary`], for the numbers `stated`.
pub(super) fn sentence<'a>(stated: impl IntoIterator<Item = &'a Stated>) -> String {
    let verdicts: Vec<_> = stated.into_iter().map(Stated::verdict).collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let rest = [
        ("under a reading", Verdict::AgreesUnderReading),
        ("fitted", Verdict::Fitted),
        ("differ", Verdict::Differs),
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
        let reading = under_a_reading();
        for (stated, text) in [
            (&[][..], "No numbers are stated"),
            (&[&good, &good], "2 of 2 stated numbers agree"),
            (&[&good, &bad], "1 of 2 stated numbers agree (differ: 1)"),
            (&[&good, &open, &bad], "1 of 3 stated numbers agree (differ: 1, open: 1)"),
            (&[&open], "0 of 1 stated numbers agree (open: 1)"),
            (
                &[&fitted, &reading, &good, &fitted],
                "1 of 4 stated numbers agree (under a reading: 1, fitted: 2)",
            ),
        ] {
            assert_eq!(sentence(stated.iter().copied()), text);
        }
    }

    #[test]
    fn a_note_names_the_reading_or_the_reason() {
        let reading = under_a_reading();
        assert_eq!(in_short(&reading), "one channel: 1.05, 0.05 inside the band; one of 4 listed");
        assert_eq!(
            note(&reading),
            "one channel: 1.05, 0.05 inside the band; one of 4 listed \
             (arithmetic mean; geometric mean: 1.2; two channels: not run)"
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
            "arithmetic mean, 0.1 inside the band (the other mean, 1.2, does not agree). \
             For young trees ("
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
            "no verdict: ours is of 1 of 14 programs \
             (arithmetic mean; geometric mean: 1.2; one channel: 1.05; two channels: not run)"
        );
        let open = Stated { why: Some("a reason to differ".to_owned()), ..stated(None) };
        assert_eq!(note(&open), "", "a number that was not measured does not differ");
    }

    #[test]
    fn a_note_on_a_mean_includes_the_other_mean() {
        let reading = |name: &str, ours| Reading { name: name.to_owned(), ours: Some(ours) };
        let of = |readings: &[Reading]| {
            let taken = Some("arithmetic mean".to_owned());
            note(&Stated { taken, readings: readings.to_vec(), ..stated(Some(1.2)) })
        };
        let geometric = reading("geometric mean", 1.09);
        let expected = "geometric mean: 1.09, 0.01 inside the band (the other mean, 1.2, does not \
                        agree); one of 2 listed";
        assert!(of(&[geometric]).starts_with(expected));
        let means = ["one, arithmetic mean", "one, geometric mean"];
        let one =
            [reading(means[0], 1.08), reading("two, geometric mean", 9.0), reading(means[1], 0.91)];
        let expected = "one, arithmetic mean: 1.08, 0.02 inside the band (the other mean, 0.91, \
                        agrees too); one of 4 listed";
        assert!(of(&one).starts_with(expected), "{}", of(&one));
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
