//! A number that a paper states, and how ours is made: part of a [`Manifest`](super::Manifest).

use serde::Deserialize;

use super::measure::Measure;
use super::setting::Setting;

/// A number of the paper, and how ours is made.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StatedNumber {
    /// What it is.
    pub what: String,
    /// Of which machine.
    pub variant: String,
    /// Under which workload. Nothing: the mean over all of the figure.
    pub workload: Option<String>,
    /// What is taken of the run.
    pub measure: Measure,
    /// Whether it is the standard deviation over all workloads of the figure, and not a mean of them.
    #[serde(default)]
    pub deviation: bool,
    /// The paper's number.
    pub paper: f64,
    /// How far ours may be from it: less than the effect that it shows.
    pub band: f64,
    /// What the paper may have meant as well: the likeliest first.
    #[serde(default)]
    pub readings: Vec<NumberReading>,
    /// Whether ours agrees because something was fitted by hand; `why` says what.
    #[serde(default)]
    pub fitted: bool,
    /// Why ours differs, or what was fitted.
    pub why: Option<String>,
    /// The id of the figure whose experiment shows why.
    pub shown_by: Option<String>,
}

/// Another setting under which the same number is taken.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberReading {
    /// What verdicts call it: "one channel, 24 levels".
    pub name: String,
    /// What is set otherwise than the evaluation says, in place of the first setting of the figure.
    pub setting: Setting,
}

impl StatedNumber {
    /// The machines that it is made of: its own, and the one that it is held against.
    pub(super) fn variant_names(&self) -> impl Iterator<Item = &str> {
        let reference = self.measure.reference().filter(|reference| *reference != self.variant);
        [self.variant.as_str()].into_iter().chain(reference)
    }

    /// Its workloads, of a figure that has these.
    pub(super) fn workloads<'a>(&'a self, of_figure: &[&'a str]) -> Vec<&'a str> {
        self.workload.as_ref().map_or_else(|| of_figure.to_vec(), |name| vec![name])
    }

    /// Refuses what cannot be a number of a figure with these workloads.
    pub(super) fn check(&self, of_figure: &[&str]) -> Result<(), String> {
        let Self { what, workload, deviation, paper, band, readings, .. } = self;
        if workload.as_ref().is_some_and(|name| !of_figure.contains(&name.as_str())) {
            return Err(format!("{what}: its workload is not one of this figure"));
        }
        if *deviation && workload.is_some() {
            return Err(format!(
                "{what}: a deviation is over all workloads: leave the workload out"
            ));
        }
        if !paper.is_finite() || !(0.0..f64::INFINITY).contains(band) {
            return Err(format!("{what}: paper and band are numbers, and a band is 0 or more"));
        }
        if self.fitted && self.why.is_none() {
            return Err(format!("{what}: say in `why` what was fitted"));
        }
        for (number, NumberReading { name, setting }) in readings.iter().enumerate() {
            if name.is_empty() || readings[..number].iter().any(|other| other.name == *name) {
                return Err(format!("{what}: give each reading a name of its own"));
            }
            if setting.name.is_some() {
                return Err(format!(
                    "{what}: a reading is called by its own name: leave that of its setting out"
                ));
            }
        }
        Ok(())
    }
}
