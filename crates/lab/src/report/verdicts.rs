//! Verdicts in words, signs and sums.

use super::{Figure, Stated, Verdict};

/// How a verdict is shown: never by a colour alone.
pub(super) struct Shown {
    /// The word.
    pub(super) word: &'static str,
    /// The sign before it.
    pub(super) sign: char,
    /// The class of its element.
    pub(super) class: &'static str,
}

const NOTHING_STATED: Shown = Shown { word: "nothing stated", sign: '·', class: "none" };

/// How the verdict on a number is shown.
pub(super) fn shown(verdict: Verdict) -> Shown {
    let (word, sign) = match verdict {
        Verdict::Agrees => ("agrees", '✓'),
        Verdict::Differs => ("differs", '≠'),
        Verdict::Open => ("open", '?'),
    };
    Shown { word, sign, class: word }
}

/// How the verdict on a figure is shown. One of which a paper says nothing in numbers has none.
pub(super) fn of_figure(figure: &Figure) -> Shown {
    if figure.stated.is_empty() { NOTHING_STATED } else { shown(figure.verdict()) }
}

/// How much of what is stated agrees, in a line: "12 of 20 stated numbers agree (differing: 5, open:
/// 3)".
pub fn summary(figures: &[Figure]) -> String {
    sentence(figures.iter().flat_map(|figure| &figure.stated))
}

/// The same for some of it.
pub(super) fn sentence<'a>(stated: impl IntoIterator<Item = &'a Stated>) -> String {
    let verdicts: Vec<_> = stated.into_iter().map(Stated::verdict).collect();
    let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
    let rest = [("differing", count(Verdict::Differs)), ("open", count(Verdict::Open))];
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
    use super::*;

    #[test]
    fn verdicts_are_counted() {
        let stated = |ours| Stated { what: String::new(), paper: 1.0, band: 0.1, ours };
        let [good, bad, open] = [Some(1.0), Some(2.0), None].map(stated);
        for (stated, text) in [
            (&[][..], "No numbers are stated"),
            (&[&good, &good], "2 of 2 stated numbers agree"),
            (&[&good, &bad], "1 of 2 stated numbers agree (differing: 1)"),
            (&[&good, &open, &bad], "1 of 3 stated numbers agree (differing: 1, open: 1)"),
            (&[&open], "0 of 1 stated numbers agree (open: 1)"),
        ] {
            assert_eq!(sentence(stated.iter().copied()), text);
        }
    }
}
