//! What a figure draws: part of a [`Manifest`](super::Manifest).

use serde::Deserialize;

use super::measure::Measure;

/// What is drawn of the runs: bars.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plotted {
    /// What stands under the bars.
    pub labels: Axis,
    /// What the values are.
    pub value: String,
    /// Whether the measures are parts of one bar.
    #[serde(default)]
    pub stacked: bool,
    /// Whether the standard deviation over the workloads stands beside their means.
    #[serde(default)]
    pub deviation: bool,
    /// What is taken of each run. With more than one, each is a series.
    pub measures: Vec<NamedMeasure>,
}

/// What stands under the bars. What it is not is a series, or a mean is taken of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Workloads, and their mean if there are more than one.
    Workloads,
    /// Variants, each with its mean over all workloads.
    Variants,
    /// Settings, each with its mean over all workloads.
    Settings,
}

/// A measure and what it is called.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedMeasure {
    /// What it is called.
    pub name: String,
    /// The measure.
    pub measure: Measure,
}
