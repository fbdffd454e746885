//! Formats numbers for readers.

/// The text for a missing number.
pub(super) const MISSING: &str = "\u{2013}";

/// Formats a number with four significant digits without trailing zeros, or as a whole number:
/// `1.5`, `0.0123`, `1,234,567`, `1.2e-9`. A value that is not finite gives [`MISSING`].
pub(super) fn short(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let rounded = format!("{value:.3e}");
    let Some((digits, exponent)) = rounded.split_once('e') else { return rounded };
    match exponent.parse::<i32>() {
        Ok(exponent @ -4..=14) => {
            let decimals = usize::try_from(3 - exponent).unwrap_or(0);
            grouped(without_zeros(&format!("{value:.decimals$}")))
        }
        _ => format!("{}e{exponent}", without_zeros(digits)),
    }
}

/// Returns `value` if it can be drawn: it is finite, and small enough for the steps of a scale.
/// Values very close to zero become zero.
pub(super) fn drawable(value: f64) -> Option<f64> {
    let value = Some(value).filter(|value| value.abs() <= 1e15)?;
    Some(if value.abs() < 1e-30 { 0.0 } else { value })
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// Separates thousands by commas, in numbers of at least five digits.
fn grouped(number: &str) -> String {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut text = sign.to_owned();
    for (at, digit) in whole.char_indices() {
        if at > 0 && whole.len() > 4 && (whole.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if !part.is_empty() {
        text.push('.');
        text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (0.1 + 0.2, "0.3"),
            (100.0, "100"),
            (-1_234.4, "-1234"),
            (-12_345.678, "-12,346"),
            (1_234_567.0, "1,234,567"),
            (999_999.96, "1,000,000"),
            (1e14, "100,000,000,000,000"),
            (1e15, "1e15"),
            (0.000_123_456_78, "0.0001235"),
            (1.25e-9, "1.25e-9"),
            (-1.7976931348623157e308, "-1.798e308"),
            (5e-324, "4.941e-324"),
            (f64::NAN, MISSING),
            (f64::NEG_INFINITY, MISSING),
        ] {
            assert_eq!(short(value), text, "{value:e}");
        }
    }

    #[test]
    fn values_too_large_for_a_scale_are_not_drawn() {
        for value in [f64::NAN, f64::INFINITY, f64::MIN, 1.1e15] {
            assert_eq!(drawable(value), None, "{value}");
        }
        assert_eq!([5e-324, -2.0, 1e15].map(drawable), [0.0, -2.0, 1e15].map(Some));
    }
}
