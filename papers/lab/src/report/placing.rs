//! Finds the bar or curve that a number stated by the paper (`Stated`) belongs to.
//!
//! A stated number may have a [`MarkPlace`](super::MarkPlace), which names a series, a label or
//! both. A number without a place is shown only in the table. So is a number with an unknown series
//! or label, which is not an error, because figures are read from untrusted files.

use super::number::drawable;
use super::{Bars, Curves, Stated};

/// A stated number that is drawn in the plot, with its series and label.
#[derive(Debug, PartialEq)]
pub(super) struct Placed<'a> {
    pub(super) stated: &'a Stated,
    /// The index of the number's series; `None` for a whole stack.
    pub(super) series: Option<usize>,
    /// The index of the number's label; `None` for a whole series.
    pub(super) label: Option<usize>,
}

/// The stated numbers that belong to bars, stacks and series of bars.
pub(super) fn on_bars<'a>(bars: &Bars, stated: &'a [Stated]) -> Vec<Placed<'a>> {
    let series: Vec<_> = bars.series.iter().map(|series| series.name.as_str()).collect();
    let labels: Vec<_> = bars.labels.iter().map(String::as_str).collect();
    let is_there = |placed: &Placed<'_>| match bars.stacked {
        // A part of a stack starts at the end of another, so its height cannot be compared.
        true => placed.series.is_none() && placed.label.is_some(),
        false => placed.series.is_some(),
    };
    let placed = stated.iter().filter_map(|stated| placed(stated, &series, &labels));
    placed.filter(is_there).collect()
}

/// The stated numbers that belong to curves, drawn as horizontal lines.
pub(super) fn on_curves<'a>(curves: &Curves, stated: &'a [Stated]) -> Vec<Placed<'a>> {
    let series: Vec<_> = curves.series.iter().map(|series| series.name.as_str()).collect();
    let placed = stated.iter().filter_map(|stated| placed(stated, &series, &[]));
    placed.filter(|placed| placed.series.is_some()).collect()
}

fn placed<'a>(stated: &'a Stated, series: &[&str], labels: &[&str]) -> Option<Placed<'a>> {
    drawable(stated.paper)?;
    let place = stated.place.as_ref()?;
    Some(Placed {
        stated,
        series: number(series, place.series.as_deref())?,
        label: number(labels, place.label.as_deref())?,
    })
}

/// The index of `wanted` in `names`, or `Some(None)` if `wanted` is `None`. Returns `None` if the
/// name is unknown.
fn number(names: &[&str], wanted: Option<&str>) -> Option<Option<usize>> {
    match wanted {
        None => Some(None),
        Some(wanted) => names.iter().position(|name| *name == wanted).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MarkPlace, Series};
    use super::*;

    fn bars(stacked: bool) -> Bars {
        let series =
            |name: &str| Series { name: name.to_owned(), values: vec![Some(1.2), None, Some(1.4)] };
        Bars {
            labels: ["gcc", "mcf", "mean"].map(str::to_owned).to_vec(),
            value: "speed".into(),
            stacked,
            series: ["IR-Alloc", "IR-Alloc+IR-Stash"].map(series).into(),
        }
    }

    fn stated(paper: f64, series: Option<&str>, label: Option<&str>) -> Stated {
        let place =
            MarkPlace { series: series.map(str::to_owned), label: label.map(str::to_owned) };
        Stated { place: Some(place), ..Stated::new("IR-Alloc, mean", paper, 0.1, Some(1.4)) }
    }

    type Numbers = (Option<usize>, Option<usize>);

    fn place(bars: &Bars, stated: &Stated) -> Option<Numbers> {
        let placed = on_bars(bars, std::slice::from_ref(stated));
        placed.first().map(|placed| (placed.series, placed.label))
    }

    #[test]
    fn a_number_is_drawn_at_its_place() {
        for (series, label, expected) in [
            (Some("IR-Alloc"), Some("mean"), Some((Some(0), Some(2)))),
            (Some("IR-Alloc+IR-Stash"), Some("mcf"), Some((Some(1), Some(1)))),
            (Some("IR-Alloc"), None, Some((Some(0), None))),
            (Some("ir-alloc"), Some("mean"), None),
            (Some("IR-Alloc"), Some("lbm"), None),
            (None, Some("mean"), None),
            (None, None, None),
        ] {
            assert_eq!(place(&bars(false), &stated(1.4, series, label)), expected, "{series:?}");
        }
        let no_number = stated(f64::NAN, Some("IR-Alloc"), Some("mean"));
        assert_eq!(place(&bars(false), &no_number), None);
    }

    #[test]
    fn a_number_without_a_place_is_only_in_the_table() {
        let stated = Stated::new("IR-Alloc, mean", 1.4, 0.1, Some(1.4));
        assert_eq!(place(&bars(false), &stated), None);
    }

    #[test]
    fn a_stack_is_one_bar() {
        let place = |series, label| place(&bars(true), &stated(2.4, series, label));
        assert_eq!(place(None, Some("gcc")), Some((None, Some(0))));
        assert_eq!(place(Some("IR-Alloc"), Some("gcc")), None);
        assert_eq!(place(None, None), None);
    }

    #[test]
    fn a_number_is_drawn_at_its_own_curve() {
        let curves = Curves {
            axes: ["level".into(), "use".into()],
            is_log: false,
            series: vec![Series { name: "Path ORAM".into(), values: vec![[0.0, 0.2], [9.0, 0.8]] }],
        };
        let stated = [
            stated(0.5, Some("Path ORAM"), None),
            stated(0.5, Some("Ring ORAM"), None),
            stated(0.5, Some("Path ORAM"), Some("9")),
            stated(0.5, None, None),
        ];
        let placed = on_curves(&curves, &stated);
        assert_eq!(placed, [Placed { stated: &stated[0], series: Some(0), label: None }]);
    }
}
