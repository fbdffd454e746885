//! Verdicts in words, signs and sums.

use super::number::short;
use super::{Figure, Stated, Verdict};

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
        Verdict::Differs => ('≠', "differs"),
        Verdict::Open => ('?', "open"),
    };
    Shown { words: verdict.words(), sign, class }
}

/// Under which reading a number agrees, or why it does not; and what it is under the others.
pub(super) fn note(stated: &Stated) -> String {
    let verdict = stated.verdict();
    let reading = stated.reading().filter(|_| verdict == Verdict::AgreesUnderReading);
    let said = match (verdict, reading) {
        (Verdict::Agrees, _) => with_limits(stated, stated.taken.clone()),
        (Verdict::Open, _) => {
            stated.of.map(|[ours, all]| format!("no verdict: ours is of {ours} of {all} programs"))
        }
        (Verdict::Differs, _) if stated.fitted => {
            stated.why.as_ref().map(|why| format!("in spite of what was fitted: {why}"))
        }
        (_, Some(reading)) => {
            let ours = reading.ours.map_or_else(String::new, short);
            let tried = 1 + stated.readings.len();
            let agrees = format!("{}: {ours}, one of {tried} that were tried", reading.name);
            with_limits(stated, Some(agrees))
        }
        _ => stated.why.clone(),
    };
    let taken = stated.taken.clone().filter(|_| verdict != Verdict::Agrees);
    let others = stated.readings.iter().filter(|other| reading != Some(*other));
    let others = others.map(|other| {
        format!("{}: {}", other.name, other.ours.map_or_else(|| "not run".to_owned(), short))
    });
    let others = taken.into_iter().chain(others).collect::<Vec<_>>().join("; ");
    match (said, others.as_str()) {
        (Some(said), "") => said,
        (None, _) => others,
        (Some(said), _) => format!("{said} ({others})"),
    }
}

/// What is said of a number that agrees, and for what it holds.
fn with_limits(stated: &Stated, said: Option<String>) -> Option<String> {
    let parts: Vec<_> = said.into_iter().chain(stated.limits.clone()).collect();
    (!parts.is_empty()).then(|| parts.join(". "))
}

/// How the verdict on a figure is shown. One of which a paper says nothing in numbers has none.
pub(super) fn of_figure(figure: &Figure) -> Shown {
    if figure.stated.is_empty() { NOTHING_STATED } else { shown(figure.verdict()) }
}

/// How much of what is stated agrees, in a line: "12 of 20 stated numbers agree (under a reading: 2,
/// differing: 3, open: 3)".
pub fn summary(figures: &[Figure]) -> String {
    sentence(figures.iter().flat_map(|figure| &figure.stated))
}

/// The same for some of it.
pub(super) fn sentence<'a>(stated: impl IntoIterator<Item = &'a Stated>) -> String {
    let verdicts: Vec<_> = stated.into_iter().map(Stated::verdict).collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let rest = [
        ("under a reading", count(Verdict::AgreesUnderReading)),
        ("fitted", count(Verdict::Fitted)),
        ("differing", count(Verdict::Differs)),
        ("open", count(Verdict::Open)),
    ];
    let rest: Vec<_> = rest
        .iter()
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
            (&[&good, &bad], "1 of 2 stated numbers agree (differing: 1)"),
            (&[&good, &open, &bad], "1 of 3 stated numbers agree (differing: 1, open: 1)"),
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
    fn a_note_names_the_reading_or_says_why() {
        let reading = under_a_reading();
        assert_eq!(
            note(&reading),
            "one channel: 1.05, one of 4 that were tried (arithmetic mean; geometric mean: 1.2; two channels: not run)"
        );
        let young = Stated { limits: Some("For young trees".to_owned()), ..reading.clone() };
        assert!(
            note(&young)
                .starts_with("one channel: 1.05, one of 4 that were tried. For young trees (")
        );
        let bad = Stated { paper: 7.0, limits: young.limits.clone(), ..reading.clone() };
        let others =
            "(arithmetic mean; geometric mean: 1.2; one channel: 1.05; two channels: not run)";
        assert_eq!(note(&bad), format!("four channels hide it {others}"));
        let limited = Stated { ours: Some(1.0), ..young };
        assert!(note(&limited).starts_with("arithmetic mean. For young trees ("));
        let good = Stated { ours: Some(1.0), ..reading };
        assert_eq!(
            note(&good),
            "arithmetic mean (geometric mean: 1.2; one channel: 1.05; two channels: not run)"
        );
        let fitted = Stated { fitted: true, why: Some("by hand".to_owned()), ..stated(Some(1.0)) };
        assert_eq!(note(&fitted), "by hand");
        let in_vain = Stated { ours: Some(2.0), ..fitted };
        assert_eq!(note(&in_vain), "in spite of what was fitted: by hand");
        let part = Stated { of: Some([1, 14]), ours: Some(1.0), ..under_a_reading() };
        assert_eq!(
            note(&part),
            "no verdict: ours is of 1 of 14 programs (arithmetic mean; geometric mean: 1.2; one channel: 1.05; two channels: not run)"
        );
        let open = Stated { why: Some("a reason to differ".to_owned()), ..stated(None) };
        assert_eq!(note(&open), "", "what was not measured does not differ");
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
