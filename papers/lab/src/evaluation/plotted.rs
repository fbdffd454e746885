//! What a figure draws: part of a [`Manifest`](super::Manifest).

use std::collections::BTreeMap;

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
    /// The means that the paper has of some of the machines. A series more says how far each setting is from them, and
    /// a remark which one is nearest.
    #[serde(default)]
    pub papers: BTreeMap<String, f64>,
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

impl Plotted {
    /// Refuses means of the paper that no bars of `variants` could be held against.
    pub(super) fn check(&self, variants: &[String]) -> Result<(), String> {
        let Self { labels, measures, papers, .. } = self;
        if papers.is_empty() {
            return Ok(());
        }
        if *labels != Axis::Settings || measures.len() != 1 {
            return Err("papers are for labels = \"settings\" with one measure".to_owned());
        }
        let is_mean = |mean: f64| mean.is_finite() && mean > 0.0;
        match papers.iter().find(|(name, mean)| !variants.contains(name) || !is_mean(**mean)) {
            Some((name, _)) => Err(format!(
                "papers.{name}: name one of `variants`, with a mean that is more than 0"
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Manifest;

    #[test]
    fn papers_are_means_of_what_is_shown_by_setting() {
        let cells = include_str!("../../manifests/cells.toml");
        let papers = "papers = { ir-stash = 1.27 }";
        let with = |text: &str, papers: &str| {
            let start = text.find("papers = ").unwrap_or(text.len());
            Manifest::parse("x.toml", &format!("{}{papers}\n", &text[..start]))
        };
        assert_eq!(with(cells, papers).unwrap().plot.papers["ir-stash"], 1.27);
        for (bad, message) in [
            ("papers = { ir-stash = 0.0 }", "more than 0"),
            ("papers = { ir-stash = nan }", "more than 0"),
            ("papers = { llc-d = 1.2 }", "one of `variants`"),
        ] {
            let error = with(cells, bad).unwrap_err().to_string();
            assert!(error.contains(message), "{bad}: {error}");
        }
        let plb = include_str!("../../manifests/plb.toml");
        let error = with(plb, papers).unwrap_err().to_string();
        assert!(error.contains("labels = \"settings\" with one measure"), "{error}");
    }
}
