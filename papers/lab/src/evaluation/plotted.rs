//! The plot of a [`Manifest`](super::Manifest).

use serde::Deserialize;

use super::measure::Measure;

/// The bar chart of a figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plotted {
    /// The labels of the bars.
    pub labels: Axis,
    /// The name of the values.
    pub value: String,
    /// Whether the measures are stacked in one bar.
    #[serde(default)]
    pub stacked: bool,
    /// Whether the standard deviation over workloads is drawn next to their means.
    #[serde(default)]
    pub deviation: bool,
    /// The measures. If there are several, each has its own series.
    pub measures: Vec<NamedMeasure>,
}

/// The labels of the bars. Other dimensions become series, or are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axis {
    /// Workloads, and their means if there is more than one workload.
    Workloads,
    /// Variants, each with its mean over all workloads.
    Variants,
    /// Settings, each with its mean over all workloads.
    Settings,
}

/// A measure with its name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedMeasure {
    /// The name of the measure in the figure.
    pub name: String,
    /// The measure that gives the values.
    pub measure: Measure,
}
