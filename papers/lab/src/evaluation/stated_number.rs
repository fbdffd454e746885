//! A number that a paper states, and how ours is made: part of a [`Manifest`](super::Manifest).

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::measure::Measure;
use super::named_settings::named;
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
    /// Over how many programs the paper's number is a mean, where the figure has fewer.
    pub programs: Option<u32>,
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
    /// What a reader must know where ours agrees: for which trees that holds, say.
    pub limits: Option<String>,
    /// The id of the figure whose experiment shows why, or shows the limits.
    pub shown_by: Option<String>,
}

/// Another setting under which the same number is taken. In a manifest it is a table, or the name of a setting that many
/// figures have.
#[derive(Clone, Debug, PartialEq)]
pub struct NumberReading {
    /// What verdicts call it: "one channel, 24 levels".
    pub name: String,
    /// What is set otherwise than the evaluation says, in place of the first setting of the figure.
    pub setting: Setting,
}

impl<'de> Deserialize<'de> for NumberReading {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(NameOrTable)
    }
}

/// Reads what a manifest says of a reading.
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
            setting: Setting,
        }
        let Table { name, setting } = Table::deserialize(MapAccessDeserializer::new(map))?;
        Ok(NumberReading { name, setting })
    }
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

    /// Of how many workloads it has to be a mean, in a figure of so many, to be held against the paper's.
    pub(super) fn workloads_wanted(&self, of_figure: usize) -> usize {
        let shown = if self.workload.is_some() { 1 } else { of_figure };
        self.programs.map_or(shown, |programs| shown.max(programs as usize))
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
            setting.check().map_err(|message| format!("{what}: {message}"))?;
            if setting.name.is_some() {
                return Err(format!(
                    "{what}: a reading is called by its own name: leave that of its setting out"
                ));
            }
        }
        Ok(())
    }
}
