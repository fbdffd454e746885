//! Claims: numbers of the paper, compared with our numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::report::Verdict;

/// A statement of a paper about a number, or a target.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Statement {
    /// Equal to this value, within a relative tolerance.
    About(f64, f64),
    /// Inside this range, within a relative tolerance.
    Between(f64, f64, f64),
    /// This value or more.
    AtLeast(f64),
    /// This value or less.
    AtMost(f64),
    /// More than this value.
    Above(f64),
    /// Less than this value.
    Below(f64),
}

/// A number of the paper, with our number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The location of the number in the paper.
    pub place: String,
    /// A description of the number.
    pub what: String,
    /// The unit of the number.
    pub unit: String,
    /// The paper's statement. `None` if the text states nothing.
    pub says: Option<Statement>,
    /// Our number. `None` if it was neither measured nor modelled here.
    pub ours: Option<f64>,
    /// The method of computing our number, or the reason why it differs.
    pub remark: String,
}

impl Statement {
    /// Whether `ours` satisfies the statement.
    pub fn holds(self, ours: f64) -> bool {
        match self {
            Self::About(value, part) => (ours - value).abs() <= part * value,
            Self::Between(least, most, part) => {
                (least * (1.0 - part)..=most * (1.0 + part)).contains(&ours)
            }
            Self::AtLeast(value) => ours >= value,
            Self::AtMost(value) => ours <= value,
            Self::Above(value) => ours > value,
            Self::Below(value) => ours < value,
        }
    }

    /// The paper's number, by which our number is divided. For a range, this is the end nearer to
    /// our number, or our number itself if it lies inside the range.
    fn reference(self, ours: f64) -> f64 {
        match self {
            Self::Between(least, most, _) => ours.clamp(least, most),
            Self::About(value, _)
            | Self::AtLeast(value)
            | Self::AtMost(value)
            | Self::Above(value)
            | Self::Below(value) => value,
        }
    }
}

impl Claim {
    /// The verdict on our number.
    pub fn verdict(&self) -> Verdict {
        match (self.says, self.ours) {
            (Some(says), Some(ours)) if says.holds(ours) => Verdict::Agrees,
            (Some(_), Some(_)) => Verdict::Differs,
            (None, _) | (_, None) => Verdict::Open,
        }
    }

    /// Our number relative to the paper's.
    pub fn ratio(&self) -> Option<f64> {
        let (says, ours) = (self.says?, self.ours?);
        Some(ours / says.reference(ours))
    }
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::About(value, _) => write!(f, "{value}"),
            Self::Between(least, most, _) => write!(f, "{least} to {most}"),
            Self::AtLeast(value) => write!(f, "{value} or more"),
            Self::AtMost(value) => write!(f, "{value} or less"),
            Self::Above(value) => write!(f, "more than {value}"),
            Self::Below(value) => write!(f, "less than {value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_claim_can_hold_and_can_fail() {
        for (says, right, wrong) in [
            (Statement::About(2.5, 0.1), 2.7, 2.8),
            (Statement::About(2.5, 0.1), 2.3, 2.2),
            (Statement::Between(5.0, 8.0, 0.0), 5.0, 4.9),
            (Statement::Between(5.0, 8.0, 0.0), 8.0, 8.1),
            (Statement::Between(6.0, 7.0, 0.1), 7.6, 7.8),
            (Statement::AtLeast(2.0), 2.0, 1.9),
            (Statement::AtMost(1.0), 1.0, 1.1),
            (Statement::Above(90.0), 91.0, 90.0),
            (Statement::Below(5.0), 4.0, 5.0),
        ] {
            let of = |ours: Option<f64>| Claim {
                place: String::new(),
                what: String::new(),
                unit: String::new(),
                says: Some(says),
                ours,
                remark: String::new(),
            };
            assert_eq!(of(Some(right)).verdict(), Verdict::Agrees, "{says}: {right}");
            assert_eq!(of(Some(wrong)).verdict(), Verdict::Differs, "{says}: {wrong}");
            assert_eq!(of(None).verdict(), Verdict::Open);
        }
        let within = Statement::Between(5.0, 8.0, 0.0);
        assert_eq!([4.0, 6.0, 16.0].map(|ours| ours / within.reference(ours)), [0.8, 1.0, 2.0]);
    }
}
