//! A number that a paper states, and how our number is computed: part of a
//! [`Manifest`](super::Manifest).

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::measure::Measure;
use super::named_settings::named;
use super::setting::SwitchSetting;

/// A number of the paper, and how our number is computed.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StatedNumber {
    /// A description of the number.
    pub what: String,
    /// The name of the machine.
    pub variant: String,
    /// The workload. If it is missing, the number is the mean over all workloads of the figure.
    pub workload: Option<String>,
    /// The measure that computes the number from a run.
    pub measure: Measure,
    /// Whether the number is the standard deviation over all workloads of the figure, not a mean.
    #[serde(default)]
    pub deviation: bool,
    /// The number of programs in the paper's mean, if the figure has fewer.
    pub programs: Option<u32>,
    /// The number that the paper states.
    pub paper: f64,
    /// The maximum difference at which our number agrees. It must be smaller than the effect that
    /// the number describes.
    pub band: f64,
    /// Other settings that the paper might have used, the likeliest first.
    #[serde(default)]
    pub readings: Vec<NumberReading>,
    /// Whether our number agrees because a parameter was fitted by hand. `why` names it.
    #[serde(default)]
    pub fitted: bool,
    /// The reason why our number differs, or the parameter that was fitted.
    pub why: Option<String>,
    /// Limits of the agreement, such as the sizes of trees for which it holds.
    pub limits: Option<String>,
    /// The id of the figure whose experiment shows the reason or the limits.
    pub shown_by: Option<String>,
}

/// Another setting for the same number. In a manifest it is a table, or the name of a shared
/// setting.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberReading {
    /// The name of the setting in verdicts, such as "one channel, 24 levels".
    pub name: String,
    /// The setting, which replaces the first setting of the figure.
    pub setting: SwitchSetting,
}

impl<'de> Deserialize<'de> for NumberReading {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NameOrTable)
    }
}

/// Deserializes a reading from a name or a table.
struct NameOrTable;

impl<'de> Visitor<'de> for NameOrTable {
    type Value = NumberReading;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a setting, or a table of name and setting")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<NumberReading, E> {
        let mut setting = named(text).map_err(E::custom)?;
        Ok(NumberReading { name: setting.name.take().unwrap_or_default(), setting })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<NumberReading, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Table {
            name: String,
            setting: SwitchSetting,
        }
        let Table { name, setting } = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(NumberReading { name, setting })
    }
}

impl StatedNumber {
    /// The machines that the number needs: its own, and the machine to compare it with.
    pub(super) fn variant_names(&self) -> impl Iterator<Item = &str> {
        let reference = self.measure.reference().filter(|reference| *reference != self.variant);
        [self.variant.as_str()].into_iter().chain(reference)
    }

    /// The workloads that the number needs. `of_figure` are the workloads of the figure.
    pub(super) fn workloads<'a>(&'a self, of_figure: &[&'a str]) -> Vec<&'a str> {
        self.workload.as_ref().map_or_else(|| of_figure.to_vec(), |name| vec![name])
    }

    /// The number of workloads over which our mean must be taken to be comparable with the paper's.
    /// `of_figure` is the number of workloads of the figure.
    pub(super) fn workloads_wanted(&self, of_figure: usize) -> usize {
        let shown = if self.workload.is_some() { 1 } else { of_figure };
        self.programs.map_or(shown, |programs| shown.max(programs as usize))
    }

    /// Refuses an invalid stated number, in a figure with the workloads `of_figure`.
    pub(super) fn check(&self, of_figure: &[&str]) -> Result<(), String> {
        let Self { what, workload, deviation, paper, band, readings, .. } = self;
        if workload.as_ref().is_some_and(|name| !of_figure.contains(&name.as_str())) {
            return Err(format!("{what}: its workload is not one of this figure"));
        }
        if *deviation && workload.is_some() {
            return Err(format!("{what}: a deviation is over all workloads: remove the workload"));
        }
        if !paper.is_finite() || !(0.0..f64::INFINITY).contains(band) {
            return Err(format!("{what}: paper and band must be finite, and a band is 0 or more"));
        }
        if self.fitted && self.why.is_none() {
            return Err(format!("{what}: name in `why` what was fitted"));
        }
        for (number, NumberReading { name, setting }) in readings.iter().enumerate() {
            if name.is_empty() || readings[..number].iter().any(|other| other.name == *name) {
                return Err(format!("{what}: give each reading a different name"));
            }
            setting.check().map_err(|message| format!("{what}: {message}"))?;
            if setting.name.is_some() {
                return Err(format!(
                    "{what}: a reading has its own name: remove the name of its setting"
                ));
            }
        }
        Ok(())
    }
}
