//! An axis: which numbers stand at it, and where a value lies on it.

use super::number::drawable;

/// An axis from one round number to another.
#[derive(Debug)]
pub(super) struct Axis {
    /// The ends; of a logarithmic axis, their powers of ten.
    ends: [f64; 2],
    is_log: bool,
    /// The round numbers, upward.
    pub(super) ticks: Vec<f64>,
}

/// Steps of a linear axis, about.
const STEPS: f64 = 5.0;

/// Numbered powers of ten on a logarithmic axis, at most.
const POWERS_MAX: i32 = 8;

impl Axis {
    /// An axis of equal steps with all `values` on it that can be drawn. It begins at zero unless
    /// that would squeeze them into less than half of it.
    pub(super) fn linear(values: impl IntoIterator<Item = f64>) -> Self {
        let range = range(values.into_iter().filter_map(drawable));
        let [low, high] = with_zero(widened(range.unwrap_or([0.0, 1.0])));
        let step = nice_step((high - low) / STEPS);
        let [first, last] = [(low / step + 1e-9).floor(), (high / step - 1e-9).ceil()];
        let count = (last - first) as usize;
        let ticks: Vec<_> = (0..=count).map(|number| (first + number as f64) * step).collect();
        Self { ends: [first * step, last * step], is_log: false, ticks }
    }

    /// An axis of equal factors, with all `values` above zero on it.
    pub(super) fn log(values: impl IntoIterator<Item = f64>) -> Self {
        let powers = values.into_iter().filter_map(|value| drawable(value).and_then(power));
        let [low, high] = range(powers).unwrap_or([0.0, 1.0]);
        let first = (low + 1e-9).floor() as i32;
        let last = ((high - 1e-9).ceil() as i32).max(first + 1);
        let stride = (last - first + POWERS_MAX - 1) / POWERS_MAX;
        let last = first + (last - first + stride - 1) / stride * stride;
        let within: &[f64] = if last - first <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers = (first..=last).step_by(usize::try_from(stride).unwrap_or(1));
        let ticks = powers
            .flat_map(|power| within.iter().map(move |factor| factor * 10f64.powi(power)))
            .filter(|tick| *tick <= 10f64.powi(last))
            .collect();
        Self { ends: [first, last].map(f64::from), is_log: true, ticks }
    }

    /// Which part of the axis lies before `value`: 0 at its start, 1 at its end, never beyond.
    /// `None`: it has no place, being no number, or not above zero on a logarithmic axis.
    pub(super) fn part(&self, value: f64) -> Option<f64> {
        let value = drawable(value)?;
        let value = if self.is_log { power(value)? } else { value };
        let [start, end] = self.ends;
        Some(((value - start) / (end - start)).clamp(0.0, 1.0))
    }
}

fn power(value: f64) -> Option<f64> {
    (value > 0.0).then(|| value.log10())
}

fn range(values: impl Iterator<Item = f64>) -> Option<[f64; 2]> {
    values.fold(None, |range, value| {
        let [low, high] = range.unwrap_or([value, value]);
        Some([low.min(value), high.max(value)])
    })
}

/// Values that are one, but for the last digits, get room around them.
fn widened([low, high]: [f64; 2]) -> [f64; 2] {
    let size = low.abs().max(high.abs());
    match size {
        0.0 => [0.0, 1.0],
        _ if high - low > 1e-6 * size => [low, high],
        _ => [low - 0.1 * size, high + 0.1 * size],
    }
}

fn with_zero([low, high]: [f64; 2]) -> [f64; 2] {
    if low > 0.0 && low <= 0.5 * high {
        [0.0, high]
    } else if high < 0.0 && high >= 0.5 * low {
        [low, 0.0]
    } else {
        [low, high]
    }
}

/// The next 1, 2 or 5 with zeros.
fn nice_step(step: f64) -> f64 {
    let unit = 10f64.powf(step.log10().floor());
    let nice = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * unit >= 0.999 * step);
    unit * nice.unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::number::short;
    use super::*;

    fn shown(axis: &Axis) -> String {
        axis.ticks.iter().map(|tick| short(*tick)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn linear_axes_have_round_numbers() {
        for (values, ticks) in [
            (&[][..], "0 0.2 0.4 0.6 0.8 1"),
            (&[0.0], "0 0.2 0.4 0.6 0.8 1"),
            (&[0.0, 1.47], "0 0.5 1 1.5"),
            (&[0.2, 1.0], "0 0.2 0.4 0.6 0.8 1"),
            (&[0.9, 1.0], "0.9 0.92 0.94 0.96 0.98 1"),
            (&[-3.0, 12.0], "-5 0 5 10 15"),
            (&[-30.0, -12.0], "-30 -20 -10 0"),
            (&[7.0], "6 6.5 7 7.5 8"),
            (&[f64::NAN, f64::INFINITY, 4.0, 1.0], "0 1 2 3 4"),
            (&[f64::MIN, f64::MAX], "-1e300 -5e299 0 5e299 1e300"),
        ] {
            assert_eq!(shown(&Axis::linear(values.iter().copied())), ticks, "{values:?}");
        }
    }

    #[test]
    fn logarithmic_axes_have_powers_of_ten() {
        for (values, ticks) in [
            (&[][..], "1 2 5 10"),
            (&[0.0, -1.0], "1 2 5 10"),
            (&[3.0, 0.0, f64::NAN], "1 2 5 10"),
            (&[1.0, 1000.0], "1 10 100 1000"),
            (&[0.04, 3.0], "0.01 0.1 1 10"),
            (&[1e-24, 1.0], "1e-24 1e-21 1e-18 1e-15 1e-12 1e-9 1e-6 0.001 1"),
        ] {
            assert_eq!(shown(&Axis::log(values.iter().copied())), ticks, "{values:?}");
        }
        let axis = Axis::log([1.0, 100.0]);
        assert_eq!([0.0, -1.0, f64::NAN].map(|value| axis.part(value)), [None; 3]);
        assert_eq!(axis.part(10.0), Some(0.5));
    }

    proptest! {
        #[test]
        fn every_value_has_a_place(values in prop::collection::vec(any::<f64>(), 0..9), is_log: bool) {
            let axis = match is_log {
                true => Axis::log(values.iter().copied()),
                false => Axis::linear(values.iter().copied()),
            };
            prop_assert!((2..=14).contains(&axis.ticks.len()), "{:?}", axis);
            prop_assert!(axis.ticks.is_sorted_by(|a, b| a < b), "{:?}", axis);
            prop_assert!(axis.ticks.iter().all(|tick| tick.is_finite()));
            for value in values {
                let place = axis.part(value);
                let has_place = value.is_finite() && (!is_log || value >= 1e-300);
                prop_assert_eq!(place.is_some(), has_place, "{:e} on {:?}", value, &axis);
                prop_assert!(place.is_none_or(|place| (0.0..=1.0).contains(&place)));
            }
        }

        #[test]
        fn places_keep_the_order(values in prop::collection::vec(-1e6..1e6f64, 2..9)) {
            let axis = Axis::linear(values.iter().copied());
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let places: Vec<_> = sorted.iter().filter_map(|value| axis.part(*value)).collect();
            prop_assert!(places.is_sorted());
            prop_assert!(places[places.len() - 1] - places[0] > 0.1 || places[0] == places[places.len() - 1]);
        }
    }
}
