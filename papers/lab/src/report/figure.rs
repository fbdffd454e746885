//! A figure or table of a paper, as it came out here.

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::placing;
use super::{Stated, Verdict};

/// How a remark begins that is a reason.
const WHY_IT_DIFFERS: &str = "Why it differs: ";

/// A figure: what was measured, and what the paper states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is called here: `fig10`.
    pub id: String,
    /// What it shows, in a line.
    pub title: String,
    /// Which figure of which paper it is: "IR-ORAM, Fig. 10".
    pub paper: String,
    /// What is drawn.
    pub plot: Plot,
    /// What the paper says in numbers, beside what came out.
    pub stated: Vec<Stated>,
    /// How it was made, and why it differs where it does: paragraphs of plain text.
    pub remarks: Vec<String>,
    /// Where the data come from: which runs, at which scale, of which version.
    pub origin: String,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// A group of bars for each label.
    Bars(Bars),
    /// A curve over numbers.
    Curves(Curves),
}

/// Groups of bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// What stands under each group: a workload, say.
    pub labels: Vec<String>,
    /// What the values are: "speed over Baseline".
    pub value: String,
    /// Bars of a group are parts of one bar, one on top of the other.
    pub stacked: bool,
    /// A value for each label. `None`: not measured.
    pub series: Vec<Series<Option<f64>>>,
}

/// Curves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// What the axes are.
    pub axes: [String; 2],
    /// Whether the vertical axis is logarithmic.
    pub is_log: bool,
    /// Points from left to right.
    pub series: Vec<Series<[f64; 2]>>,
}

/// A colour of a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series<T> {
    /// What it is called.
    pub name: String,
    /// Its values or points.
    pub values: Vec<T>,
}

impl Figure {
    /// Whether everything that the paper states agrees.
    pub fn verdict(&self) -> Verdict {
        let verdicts: Vec<_> = self.stated.iter().map(Stated::verdict).collect();
        Verdict::on_all(&verdicts)
    }

    /// How many of the stated numbers are drawn.
    #[cfg(test)]
    pub(crate) fn stated_drawn(&self) -> usize {
        match &self.plot {
            Plot::Bars(bars) => placing::on_bars(bars, &self.stated).len(),
            Plot::Curves(curves) => placing::on_curves(curves, &self.stated).len(),
        }
    }

    /// The reasons that it gives for what differs.
    pub(super) fn reasons(&self) -> impl Iterator<Item = &str> {
        self.remarks.iter().filter_map(|remark| remark.strip_prefix(WHY_IT_DIFFERS))
    }

    /// The figure, which says why if it differs from what the paper states.
    pub(crate) fn explained(mut self, reasons: &[impl AsRef<str>]) -> Self {
        if self.verdict() == Verdict::Differs {
            let reasons =
                reasons.iter().map(|reason| format!("{WHY_IT_DIFFERS}{}", reason.as_ref()));
            self.remarks.extend(reasons);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stated(ours: Option<f64>) -> Stated {
        Stated::new("mean", 1.41, 0.1, ours)
    }

    #[test]
    fn a_figure_agrees_if_all_that_is_stated_does() {
        let figure = |stated: Vec<Stated>| Figure {
            id: "f".into(),
            title: "t".into(),
            paper: "p".into(),
            plot: Plot::Bars(Bars {
                labels: Vec::new(),
                value: "v".into(),
                stacked: false,
                series: Vec::new(),
            }),
            stated,
            remarks: Vec::new(),
            origin: "o".into(),
        };
        let [good, bad, open] = [Some(1.5), Some(1.52), None].map(stated);
        let all = |stated: &[&Stated]| {
            let figure = figure(stated.iter().map(|stated| (*stated).clone()).collect());
            let explained = figure.clone().explained(&["it is small"]).remarks;
            assert_eq!(
                explained.concat().contains("it is small"),
                figure.verdict() == Verdict::Differs
            );
            figure.verdict()
        };
        assert_eq!(all(&[&good, &good]), Verdict::Agrees);
        assert_eq!(all(&[&good, &open]), Verdict::Open);
        assert_eq!(all(&[&open, &bad, &good]), Verdict::Differs);
    }
}
