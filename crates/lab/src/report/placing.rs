//! Which stated numbers belong to which bar or curve.
//!
//! A stated number is a line of text and a number; nothing says where in the plot it belongs. It is
//! drawn where its text names a series or a label *and* our number is the one drawn there: a number
//! of another unit beside a bar would be worse than none. All of them stand in the table anyway.

use super::number::drawable;
use super::{Bars, Curves, Stated};

/// A stated number with a place in the plot.
#[derive(Debug, PartialEq)]
pub(super) struct Placed<'a> {
    pub(super) stated: &'a Stated,
    /// The series it is of; a whole stack has none.
    pub(super) series: Option<usize>,
    /// The label it is of; without one it is of the whole series.
    pub(super) label: Option<usize>,
}

/// How far apart two of our own numbers may be and still be one, rounded.
const ROUNDING: f64 = 0.01;

/// Stated numbers for bars, stacks and series of bars.
pub(super) fn on_bars<'a>(bars: &Bars, stated: &'a [Stated]) -> Vec<Placed<'a>> {
    stated.iter().filter_map(|stated| on_a_bar(bars, stated)).collect()
}

/// Stated numbers for curves, as heights.
pub(super) fn on_curves<'a>(curves: &Curves, stated: &'a [Stated]) -> Vec<Placed<'a>> {
    let heights = |number: usize| curves.series[number].values.iter().map(|[_, y]| *y).collect();
    let all: Vec<f64> =
        (0..curves.series.len()).flat_map(|number| -> Vec<_> { heights(number) }).collect();
    let place = |stated: &'a Stated| {
        let text = stated.what.to_lowercase();
        let names = curves.series.iter().map(|series| series.name.as_str());
        let (series, _) = named_or_only(names, &text)?;
        fits_among(stated, &heights(series), &all).then_some(Placed {
            stated,
            series: Some(series),
            label: None,
        })
    };
    stated.iter().filter_map(place).collect()
}

fn on_a_bar<'a>(bars: &Bars, stated: &'a Stated) -> Option<Placed<'a>> {
    let text = stated.what.to_lowercase();
    let names = bars.series.iter().map(|series| series.name.as_str());
    let labels = || bars.labels.iter().map(String::as_str);
    let all: Vec<f64> =
        bars.series.iter().flat_map(|series| series.values.iter().copied().flatten()).collect();
    if bars.stacked {
        if named(names, &text).is_some() {
            return None; // A part of a stack has no height of its own to compare with.
        }
        let (label, _) = named_or_only(labels(), &text)?;
        let total = bars.series.iter().filter_map(|series| *series.values.get(label)?).sum();
        return fits_bar(stated, Some(total), &all).then_some(Placed {
            stated,
            series: None,
            label: Some(label),
        });
    }
    let (number, rest) = named_or_only(names, &text)?;
    let series = &bars.series[number];
    let label = named_or_only(labels(), &rest).map(|(label, _)| label);
    let fits = match label {
        Some(label) => fits_bar(stated, series.values.get(label).copied().flatten(), &all),
        None => {
            let values: Vec<_> = series.values.iter().copied().flatten().collect();
            fits_among(stated, &values, &all)
        }
    };
    fits.then_some(Placed { stated, series: Some(number), label })
}

/// Whether it is about a bar of this height.
fn fits_bar(stated: &Stated, bar: Option<f64>, all: &[f64]) -> bool {
    drawable(stated.paper).is_some()
        && match (stated.ours, bar) {
            (Some(ours), Some(bar)) => (ours - bar).abs() <= ROUNDING * ours.abs().max(bar.abs()),
            _ => fits_axis(stated.paper, all),
        }
}

/// Whether it is about some of these values, or a mean of them.
fn fits_among(stated: &Stated, values: &[f64], all: &[f64]) -> bool {
    drawable(stated.paper).is_some()
        && match stated.ours {
            Some(ours) => {
                let room = ROUNDING * ours.abs();
                values.iter().any(|value| *value <= ours + room)
                    && values.iter().any(|value| *value >= ours - room)
            }
            None => fits_axis(stated.paper, all),
        }
}

/// Whether what is drawn would still be seen with it on the axis.
fn fits_axis(paper: f64, all: &[f64]) -> bool {
    let largest = all.iter().copied().filter_map(drawable).map(f64::abs).fold(0.0, f64::max);
    let has_negative = all.iter().any(|value| *value < 0.0);
    all.is_empty() || (paper.abs() <= 3.0 * largest && (paper >= 0.0 || has_negative))
}

/// The name that stands in `text`, or else the only one there is; and the text without it.
fn named_or_only<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    text: &str,
) -> Option<(usize, String)> {
    named(names.clone(), text).or_else(|| (names.count() == 1).then(|| (0, text.to_owned())))
}

/// The longest name that stands in `text` as words of its own, and the text without it.
fn named<'a>(names: impl Iterator<Item = &'a str>, text: &str) -> Option<(usize, String)> {
    let found = names.enumerate().filter_map(|(number, name)| {
        let name = name.trim().to_lowercase();
        let at = position(&name, text)?;
        let rest = format!("{} , {}", &text[..at], &text[at + name.len()..]);
        Some((name.len(), number, rest))
    });
    // Of equals, the first.
    let longest = found.reduce(|best, next| if next.0 > best.0 { next } else { best });
    longest.map(|(_, number, rest)| (number, rest))
}

fn position(name: &str, text: &str) -> Option<usize> {
    if !name.contains(char::is_alphanumeric) {
        return None;
    }
    let joins = |character: char| character.is_alphanumeric() || "+-_".contains(character);
    text.match_indices(name).map(|(at, _)| at).find(|at| {
        let (before, after) =
            (text[..*at].chars().next_back(), text[at + name.len()..].chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Series;
    use super::*;

    fn bars(stacked: bool) -> Bars {
        let series = |name: &str, values: [Option<f64>; 3]| Series {
            name: name.to_owned(),
            values: values.to_vec(),
        };
        Bars {
            labels: ["gcc", "mcf", "mean"].map(str::to_owned).to_vec(),
            value: "speed".into(),
            stacked,
            series: vec![
                series("IR-Alloc", [Some(1.2), Some(1.6), Some(1.4)]),
                series("IR-Alloc+IR-Stash", [Some(1.3), None, Some(1.5)]),
            ],
        }
    }

    /// Series and label of one stated number.
    fn place(
        bars: &Bars,
        what: &str,
        paper: f64,
        ours: Option<f64>,
    ) -> Option<(Option<usize>, Option<usize>)> {
        let stated = [Stated { what: what.into(), paper, band: 0.1, ours }];
        on_bars(bars, &stated).first().map(|placed| (placed.series, placed.label))
    }

    #[test]
    fn names_and_numbers_must_both_fit() {
        let place = |what, paper, ours| place(&bars(false), what, paper, ours);
        assert_eq!(place("IR-Alloc, mean speed", 1.41, Some(1.4)), Some((Some(0), Some(2))));
        assert_eq!(place("mean of ir-alloc+ir-stash", 1.6, Some(1.504)), Some((Some(1), Some(2))));
        assert_eq!(place("IR-Alloc+IR-Stash: mcf", 1.6, None), Some((Some(1), Some(1))));
        assert_eq!(place("IR-Alloc, all programs", 1.3, Some(1.39)), Some((Some(0), None)));
        assert_eq!(place("IR-Alloc, mean evictions", 0.2, Some(0.3)), None, "another quantity");
        assert_eq!(place("IR-Alloc, misses", 30.0, Some(31.0)), None, "another quantity");
        assert_eq!(place("IR-Alloc, misses", 30.0, None), None, "it would squeeze the bars");
        assert_eq!(place("IR-DWB, mean", 1.4, Some(1.4)), None, "no series");
        assert_eq!(place("IR-Allocation, mean", 1.4, Some(1.4)), None, "a part of a word");
        assert_eq!(place("IR-Alloc, mean", f64::NAN, Some(1.4)), None, "no number");
        assert_eq!(place("İR-Alloc, mean ẞ", 1.0, Some(1.4)), None, "letters that grow");
    }

    #[test]
    fn a_stack_is_one_bar() {
        let place = |what, ours| place(&bars(true), what, 2.4, ours);
        assert_eq!(place("total of gcc", Some(2.5)), Some((None, Some(0))));
        assert_eq!(place("IR-Alloc of gcc", Some(1.2)), None);
        assert_eq!(place("total", Some(2.5)), None);
    }

    #[test]
    fn a_curve_gets_the_heights_it_reaches() {
        let curves = Curves {
            axes: ["level".into(), "use".into()],
            is_log: false,
            series: vec![Series { name: "Path ORAM".into(), values: vec![[0.0, 0.2], [9.0, 0.8]] }],
        };
        let stated = [0.5, 0.9].map(|ours| Stated {
            what: "use at half the levels".into(),
            paper: 0.55,
            band: 0.1,
            ours: Some(ours),
        });
        let placed = on_curves(&curves, &stated);
        assert_eq!(placed, [Placed { stated: &stated[0], series: Some(0), label: None }]);
    }
}
