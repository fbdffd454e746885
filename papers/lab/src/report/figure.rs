//! Figures: measured data compared with a figure or table of a paper.

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::placing;
use super::{Stated, Verdict};

/// The prefix of remarks that give a reason for a difference.
const WHY_IT_DIFFERS: &str = "Why it differs: ";

/// A figure: measured data, and the numbers that the paper states.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name of the figure, such as `fig10`.
    pub id: String,
    /// The title of the figure, in one line.
    pub title: String,
    /// The reproduced figure, and its paper, such as "IR-ORAM, Fig. 10".
    pub paper: String,
    /// The plot of the figure.
    pub plot: Plot,
    /// The numbers that the paper states, with our numbers.
    pub stated: Vec<Stated>,
    /// Paragraphs of plain text: methods, and reasons for differences.
    pub remarks: Vec<String>,
    /// The origin of the data: runs, scale and version.
    pub origin: String,
}

/// The data of a plot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Plot {
    /// Bars in groups, one group per label.
    Bars(Bars),
    /// Curves of points.
    Curves(Curves),
}

/// The data of a plot with groups of bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// The label of each group, such as a workload.
    pub labels: Vec<String>,
    /// The name of the values, such as "speed over Baseline".
    pub value: String,
    /// Whether the bars of a group are stacked.
    pub stacked: bool,
    /// The series of bars. Each has a value per label; `None` if not measured.
    pub series: Vec<Series<Option<f64>>>,
}

/// The data of a plot of curves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curves {
    /// The names of the axes.
    pub axes: [String; 2],
    /// Whether the vertical axis is logarithmic.
    pub is_log: bool,
    /// The curves, each with its points from left to right.
    pub series: Vec<Series<[f64; 2]>>,
}

/// The values that are drawn in one colour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series<T> {
    /// The name of the series.
    pub name: String,
    /// The values or points of the series.
    pub values: Vec<T>,
}

impl Figure {
    /// The verdict on all stated numbers together.
    pub fn verdict(&self) -> Verdict {
        let verdicts: Vec<_> = self.stated.iter().map(Stated::verdict).collect();
        Verdict::on_all(&verdicts)
    }

    /// The number of stated numbers that are drawn.
    #[cfg(test)]
    pub(crate) fn stated_drawn(&self) -> usize {
        match &self.plot {
            Plot::Bars(bars) => placing::on_bars(bars, &self.stated).len(),
            Plot::Curves(curves) => placing::on_curves(curves, &self.stated).len(),
        }
    }

    /// The reasons for differences.
    pub(super) fn reasons(&self) -> impl Iterator<Item = &str> {
        self.remarks.iter().filter_map(|remark| remark.strip_prefix(WHY_IT_DIFFERS))
    }

    /// Adds `reasons` as remarks if the figure differs from the paper.
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
