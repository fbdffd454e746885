//! Makes figures from the records of runs.

mod numbers;
mod words;

use super::manifest::Manifest;
use super::measure::{Mean, Measure};
use super::plan::EvaluationPlan;
use super::plotted::{Axis, NamedMeasure};
use super::record::RunRecord;
use super::setting::SwitchSetting;
use super::workloads::Programs;
use crate::LabError;
use crate::report::{Bars, Figure, Plot, Series};

/// Makes the figures of `manifests` from the records that [`run`](super::run) returned for `plan`.
/// Values of missing runs are left open.
///
/// # Errors
/// [`LabError::Plan`] if a figure needs an impossible size of tree, or a machine that `plan` lacks.
pub fn figures(
    manifests: &[Manifest],
    plan: &EvaluationPlan,
    programs: &Programs,
    records: &[RunRecord],
) -> Result<Vec<Figure>, LabError> {
    let figure = |manifest| Maker { manifest, plan, programs, records }.figure();
    manifests.iter().map(figure).collect()
}

struct Maker<'a> {
    manifest: &'a Manifest,
    plan: &'a EvaluationPlan,
    programs: &'a Programs,
    records: &'a [RunRecord],
}

impl Maker<'_> {
    fn figure(&self) -> Result<Figure, LabError> {
        let stated = self.manifest.stated.iter().map(|number| self.stated(number));
        Ok(Figure {
            id: self.manifest.id.clone(),
            title: self.manifest.title.clone(),
            paper: self.manifest.paper.clone(),
            plot: Plot::Bars(self.bars()?),
            stated: stated.collect::<Result<_, _>>()?,
            remarks: self.remarks()?,
            origin: self.origin()?,
        }
        .explained(&self.manifest.reasons))
    }

    fn bars(&self) -> Result<Bars, LabError> {
        let (labels, series) = match self.manifest.plot.labels {
            Axis::Workloads => self.by_workload()?,
            Axis::Variants => self.by_variant()?,
            Axis::Settings => self.by_setting()?,
        };
        let plot = &self.manifest.plot;
        Ok(Bars { labels, value: plot.value.clone(), stacked: plot.stacked, series })
    }

    fn by_workload(&self) -> Result<LabelsAndSeries, LabError> {
        let (workloads, first) = (self.workloads(), self.first_setting());
        let means = self.means_over_workloads();
        let series = self.shown().map(|(variant, named)| {
            let value = |workloads: &[&str], mean| {
                self.value(&named.measure, variant, workloads, first, mean)
            };
            let each = workloads.iter().map(|name| value(&[name], Mean::Arithmetic));
            let means = means.iter().map(|(_, mean)| value(&workloads, *mean));
            let values = each.chain(means).collect::<Result<_, LabError>>()?;
            Ok(Series { name: self.name(variant, named), values })
        });
        let series = series.collect::<Result<_, LabError>>()?;
        let names = means.iter().map(|(name, _)| name.as_str());
        Ok((workloads.iter().copied().chain(names).map(str::to_owned).collect(), series))
    }

    fn by_variant(&self) -> Result<LabelsAndSeries, LabError> {
        let (workloads, first) = (self.workloads(), self.first_setting());
        let measures =
            self.manifest.plot.measures.iter().flat_map(|NamedMeasure { name, measure }| {
                self.names_of_means(name).into_iter().map(move |(name, mean)| (name, measure, mean))
            });
        let series = measures.map(|(name, measure, mean)| {
            let variants = self.manifest.variants.iter();
            let values =
                variants.map(|variant| self.value(measure, variant, &workloads, first, mean));
            Ok(Series { name, values: values.collect::<Result<_, LabError>>()? })
        });
        let labels = self.manifest.variants.iter().map(|variant| self.title(variant).to_owned());
        Ok((labels.collect(), series.collect::<Result<_, LabError>>()?))
    }

    fn by_setting(&self) -> Result<LabelsAndSeries, LabError> {
        let (workloads, settings) = (self.workloads(), &self.manifest.settings);
        let shown = self.shown().flat_map(|(variant, named)| {
            let names = self.names_of_means(&self.name(variant, named));
            names.into_iter().map(move |(name, mean)| (name, variant, &named.measure, mean))
        });
        let series = shown.map(|(name, variant, measure, mean)| {
            let value = |setting| self.value(measure, variant, &workloads, setting, mean);
            let values = settings.iter().map(value).collect::<Result<_, LabError>>()?;
            Ok(Series { name, values })
        });
        let series = series.collect::<Result<_, LabError>>()?;
        let labels = settings.iter().map(|setting| self.setting_label(setting));
        Ok((labels.collect::<Result<_, LabError>>()?, series))
    }

    /// The label under the bars of a setting.
    fn setting_label(&self, setting: &SwitchSetting) -> Result<String, LabError> {
        Ok(setting.label(self.plan.leaf_level(setting.all_levels())?))
    }

    /// The means over workloads that are drawn next to the workloads, with their names.
    fn means_over_workloads(&self) -> Vec<(String, Mean)> {
        match (self.workloads().len(), self.has_both_means()) {
            (0..=1, _) => Vec::new(),
            (_, true) => self.means().map(|mean| (mean.name(), mean)).collect(),
            (_, false) => vec![("mean".to_owned(), Mean::Arithmetic)],
        }
    }

    /// For each series that shows the means of `name` over workloads: its name and its kind of
    /// mean.
    fn names_of_means(&self, name: &str) -> Vec<(String, Mean)> {
        if self.workloads().len() > 1 && self.has_both_means() {
            self.means().map(|mean| (format!("{name} ({})", mean.kind()), mean)).collect()
        } else {
            vec![(name.to_owned(), Mean::Arithmetic)]
        }
    }

    /// The arithmetic and geometric means, and the deviation if the figure shows it.
    fn means(&self) -> impl Iterator<Item = Mean> + use<> {
        let deviation = self.manifest.plot.deviation.then_some(Mean::Deviation);
        Mean::ALL.into_iter().chain(deviation)
    }

    /// Whether values are ratios, for which both kinds of mean make sense. Parts of a stacked bar
    /// only add up in the arithmetic mean.
    fn has_both_means(&self) -> bool {
        let plot = &self.manifest.plot;
        !plot.stacked && plot.measures.iter().all(|named| named.measure.is_ratio())
    }

    /// Each pair of a variant and a measure.
    fn shown(&self) -> impl Iterator<Item = (&str, &NamedMeasure)> {
        let variants = self.manifest.variants.iter();
        variants.flat_map(|variant| {
            self.manifest.plot.measures.iter().map(move |named| (variant.as_str(), named))
        })
    }

    /// The name of a series: the variant, the measure, or both, without the parts that all series
    /// share.
    fn name(&self, variant: &str, named: &NamedMeasure) -> String {
        match (self.manifest.variants.len(), self.manifest.plot.measures.len()) {
            (_, 1) => self.title(variant).to_owned(),
            (1, _) => named.name.clone(),
            _ => format!("{}, {}", self.title(variant), named.name),
        }
    }

    fn value(
        &self,
        measure: &Measure,
        variant: &str,
        workloads: &[&str],
        setting: &SwitchSetting,
        mean: Mean,
    ) -> Result<Option<f64>, LabError> {
        Ok(measure.evaluate(&self.pairs(measure, variant, workloads, setting)?, mean))
    }

    /// The runs of `variant`, each paired with the run that the measure compares it with. Workloads
    /// that lack one of the two runs are omitted.
    fn pairs(
        &self,
        measure: &Measure,
        variant: &str,
        workloads: &[&str],
        setting: &SwitchSetting,
    ) -> Result<Vec<(&RunRecord, &RunRecord)>, LabError> {
        let reference = measure.reference().unwrap_or(variant);
        let mut pairs = Vec::new();
        for workload in workloads {
            let run = self.record(variant, workload, setting)?;
            pairs.extend(run.zip(self.record(reference, workload, setting)?));
        }
        Ok(pairs)
    }

    fn record(
        &self,
        variant: &str,
        workload: &str,
        setting: &SwitchSetting,
    ) -> Result<Option<&RunRecord>, LabError> {
        let key = self.plan.key(&self.plan.run(variant, workload, setting)?);
        Ok(self.records.iter().find(|record| record.key == key))
    }

    /// The setting of the stated numbers, and of all bars that are not labelled by settings.
    fn first_setting(&self) -> &SwitchSetting {
        &self.manifest.settings[0]
    }

    /// The workloads of the figure that need no trace, whose traces are available, or whose runs
    /// were recorded.
    fn workloads(&self) -> Vec<&str> {
        let names = self.manifest.workload_names();
        names.into_iter().filter(|name| self.programs.has(name)).collect()
    }

    fn title<'a>(&'a self, variant: &'a str) -> &'a str {
        self.manifest.machine(variant).map_or(variant, |machine| &machine.title)
    }
}

type LabelsAndSeries = (Vec<String>, Vec<Series<Option<f64>>>);
