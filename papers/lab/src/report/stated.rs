//! A number that a paper states, our number, and the verdict on the two.
//!
//! A paper does not state all parameters that determine its number. So our number can be measured
//! under several *readings* of the paper, and a verdict names the reading under which the two
//! numbers agree.

use serde::{Deserialize, Serialize};

/// A number of the paper, and our number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Stated {
    /// A description: "IR-Alloc, mean speed over Baseline".
    pub what: String,
    /// The number that the paper states.
    pub paper: f64,
    /// The maximum difference at which our number agrees.
    pub band: f64,
    /// Our number. `None` if not measured.
    pub ours: Option<f64>,
    /// The number of programs in our mean and in the paper's, if our mean has fewer. The verdict is
    /// then [`Verdict::Open`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<[u32; 2]>,
    /// The method of measuring our number if the paper leaves it open, such as "arithmetic mean".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// Our number under other readings of the paper, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<Reading>,
    /// Whether our number agrees because a parameter was fitted by hand.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fitted: bool,
    /// The reason why our number differs, or the parameter that was fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Limits of the agreement, such as the sizes of trees for which it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<String>,
    /// The id of the figure whose experiment shows the reason or the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_by: Option<String>,
    /// The bar or curve at which the number is drawn. `None` if it is only in the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<MarkPlace>,
}

/// Our number under another reading of the paper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// The assumptions that this reading of the paper makes, such as "one channel, 24 levels".
    pub name: String,
    /// Our number. `None` if not measured.
    pub ours: Option<f64>,
}

/// The bar or curve of a number, by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MarkPlace {
    /// The name of the series. `None` for the whole stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// The label of the group. `None` for the whole series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Whether our number agrees with the paper's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Our number is within the band.
    Agrees,
    /// Our number is within the band under another reading.
    AgreesUnderReading,
    /// Our number is within the band, alone or under another reading, with a parameter fitted by
    /// hand.
    Fitted,
    /// Our number is outside the band, and so is every measured number under another reading.
    Differs,
    /// Our number was not measured, or covers fewer programs than the paper's.
    Open,
}

impl Verdict {
    /// All verdicts, in the order in which reports count them.
    pub const ALL: [Self; 5] =
        [Self::Agrees, Self::AgreesUnderReading, Self::Fitted, Self::Differs, Self::Open];

    /// The verdict in a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::AgreesUnderReading => "agrees under a reading",
            Self::Fitted => "fitted",
            Self::Differs => "differs",
            Self::Open => "open",
        }
    }

    /// The combined verdict on several numbers: the first of differs, open, fitted and
    /// agrees-under-reading that any number has, else agrees.
    pub(super) fn on_all(verdicts: &[Self]) -> Self {
        let order = [Self::Differs, Self::Open, Self::Fitted, Self::AgreesUnderReading];
        order.into_iter().find(|verdict| verdicts.contains(verdict)).unwrap_or(Self::Agrees)
    }
}

impl Stated {
    /// Creates a comparison of a stated number, with the band around it, and our number.
    pub fn new(what: impl Into<String>, paper: f64, band: f64, ours: Option<f64>) -> Self {
        Self {
            what: what.into(),
            paper,
            band,
            ours,
            of: None,
            taken: None,
            readings: Vec::new(),
            fitted: false,
            why: None,
            limits: None,
            shown_by: None,
            place: None,
        }
    }

    /// Draws the number at the bar of this series and label.
    #[must_use]
    pub fn at(self, series: impl Into<String>, label: impl Into<String>) -> Self {
        let place = MarkPlace { series: Some(series.into()), label: Some(label.into()) };
        Self { place: Some(place), ..self }
    }

    /// The verdict on our number.
    pub fn verdict(&self) -> Verdict {
        let agrees_as_it_is = self.is_within(self.ours);
        match self.ours {
            _ if self.of.is_some() => Verdict::Open,
            _ if self.fitted && (agrees_as_it_is || self.reading().is_some()) => Verdict::Fitted,
            _ if agrees_as_it_is => Verdict::Agrees,
            _ if self.reading().is_some() => Verdict::AgreesUnderReading,
            Some(_) => Verdict::Differs,
            None => Verdict::Open,
        }
    }

    /// The reading with the largest margin inside the band, or the first of several equal ones.
    /// `None` if the number agrees under no reading, or covers too few programs.
    pub fn reading(&self) -> Option<&Reading> {
        if self.of.is_some() {
            return None;
        }
        let with_margin = |reading: &Reading| Some(self.margin(reading.ours?));
        let agreeing = self.readings.iter().filter(|reading| self.is_within(reading.ours));
        // `max_by` returns the last of equal elements.
        agreeing.rev().max_by(|one, other| {
            let [one, other] = [one, other].map(|reading| with_margin(reading).unwrap_or(0.0));
            one.total_cmp(&other)
        })
    }

    /// The distance of `ours` from the edge of the band; negative if it is outside.
    pub(super) fn margin(&self, ours: f64) -> f64 {
        self.band - (ours - self.paper).abs()
    }

    /// Whether `ours` is within the band around the paper's number.
    pub(super) fn agrees(&self, ours: f64) -> bool {
        self.is_within(Some(ours))
    }

    fn is_within(&self, ours: Option<f64>) -> bool {
        ours.is_some_and(|ours| (ours - self.paper).abs() <= self.band)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(ours: Option<f64>, readings: &[Option<f64>]) -> Stated {
        let names = ["one channel", "23 levels"].into_iter();
        let readings = names.zip(readings);
        Stated {
            readings: readings
                .map(|(name, ours)| Reading { name: name.to_owned(), ours: *ours })
                .collect(),
            ..Stated::new("mean", 1.41, 0.1, ours)
        }
    }

    #[test]
    fn a_reading_counts_if_the_number_itself_does_not_agree() {
        let [good, bad] = [Some(1.5), Some(1.52)];
        for (ours, readings, verdict, reading) in [
            (good, &[][..], Verdict::Agrees, None),
            (bad, &[], Verdict::Differs, None),
            (None, &[], Verdict::Open, None),
            (good, &[bad, None], Verdict::Agrees, None),
            (bad, &[bad, None], Verdict::Differs, None),
            (None, &[bad], Verdict::Open, None),
            (bad, &[bad, good], Verdict::AgreesUnderReading, Some("23 levels")),
            (bad, &[good, good], Verdict::AgreesUnderReading, Some("one channel")),
            (None, &[None, good], Verdict::AgreesUnderReading, Some("23 levels")),
        ] {
            let stated = stated(ours, readings);
            let found = stated.reading().map(|reading| reading.name.as_str());
            assert_eq!((stated.verdict(), found), (verdict, reading), "{stated:?}");
        }
    }

    #[test]
    fn the_reading_with_the_largest_margin_is_named() {
        let number = stated(Some(2.0), &[Some(1.5), Some(1.45)]);
        assert_eq!(number.reading().unwrap().name, "23 levels");
        let number = stated(Some(2.0), &[Some(1.45), Some(1.5)]);
        assert_eq!(number.reading().unwrap().name, "one channel");
    }

    #[test]
    fn a_mean_over_fewer_programs_has_no_verdict() {
        for (ours, readings) in [(1.41, None), (9.0, None), (9.0, Some(1.41))] {
            for fitted in [false, true] {
                let whole = Stated { fitted, ..stated(Some(ours), &[readings]) };
                assert_ne!(whole.verdict(), Verdict::Open);
                let part = Stated { of: Some([3, 14]), ..whole };
                assert_eq!((part.verdict(), part.reading()), (Verdict::Open, None));
                let text = serde_json::to_string(&part).unwrap();
                assert!(text.contains(r#""of":[3,14]"#), "{text}");
                assert_eq!(serde_json::from_str::<Stated>(&text).unwrap(), part);
            }
        }
    }

    #[test]
    fn fitted_numbers_never_count_as_agreement() {
        for (ours, readings, verdict) in [
            (Some(1.41), None, Verdict::Fitted),
            (Some(2.0), Some(1.41), Verdict::Fitted),
            (Some(2.0), Some(2.0), Verdict::Differs),
            (None, None, Verdict::Open),
        ] {
            let stated = Stated { fitted: true, ..stated(ours, &[readings]) };
            assert_eq!(stated.verdict(), verdict, "{stated:?}");
        }
    }

    #[test]
    fn the_worst_verdict_is_the_verdict_on_all() {
        use Verdict::{Agrees, AgreesUnderReading, Differs, Fitted, Open};
        for (all, verdict) in [
            (&[][..], Agrees),
            (&[Agrees, Agrees], Agrees),
            (&[Agrees, AgreesUnderReading], AgreesUnderReading),
            (&[AgreesUnderReading, Fitted], Fitted),
            (&[Fitted, Open, Agrees], Open),
            (&[Open, Differs], Differs),
        ] {
            assert_eq!(Verdict::on_all(all), verdict, "{all:?}");
        }
    }

    #[test]
    fn a_number_in_an_older_file_has_no_place_and_no_readings() {
        let old = r#"{"what": "mean", "paper": 1.41, "band": 0.1, "ours": 1.5}"#;
        let read: Stated = serde_json::from_str(old).unwrap();
        assert_eq!(read, Stated::new("mean", 1.41, 0.1, Some(1.5)));
        let new = Stated { shown_by: Some("requests".into()), ..read.at("IR-Alloc", "mean") };
        let text = serde_json::to_string(&new).unwrap();
        assert!(text.contains(r#""shown-by":"requests""#), "{text}");
        assert_eq!(serde_json::from_str::<Stated>(&text).unwrap(), new);
    }
}
