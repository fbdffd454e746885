//! Figures, from the records of runs.

use oblivio_sim::system::Outcome;

use super::manifest::{Axis, Manifest, NamedMeasure, StatedNumber};
use super::measure::Measure;
use super::plan::Plan;
use super::record::RunRecord;
use super::setting::Setting;
use super::variants::Variant;
use super::workloads::Programs;
use crate::LabError;
use crate::report::{Bars, Figure, Plot, Series, Stated};

/// What stands under the bars of a mean over workloads.
const MEAN: &str = "mean";

/// The figures of `manifests`, from what [`run`](super::run) gave for `plan`. What a figure lacks is left
/// open.
///
/// # Errors
/// [`LabError::Plan`] when a figure has a size that there is no tree for.
pub fn figures(
    manifests: &[Manifest],
    plan: &Plan,
    programs: &Programs,
    records: &[RunRecord],
) -> Result<Vec<Figure>, LabError> {
    let figure = |manifest| Maker { manifest, plan, programs, records }.figure();
    manifests.iter().map(figure).collect()
}

struct Maker<'a> {
    manifest: &'a Manifest,
    plan: &'a Plan,
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
        let series = self.shown().map(|(variant, named)| {
            let value = |workloads: &[&str]| self.value(&named.measure, variant, workloads, first);
            let mut values: Vec<_> =
                workloads.iter().map(|name| value(&[name])).collect::<Result<_, _>>()?;
            if workloads.len() > 1 {
                values.push(value(&workloads)?);
            }
            Ok(Series { name: self.name(variant, named), values })
        });
        let mean = (workloads.len() > 1).then_some(MEAN);
        let labels = workloads.iter().copied().chain(mean).map(str::to_owned).collect();
        Ok((labels, series.collect::<Result<_, LabError>>()?))
    }

    fn by_variant(&self) -> Result<LabelsAndSeries, LabError> {
        let (workloads, first) = (self.workloads(), self.first_setting());
        let series = self.manifest.plot.measures.iter().map(|NamedMeasure { name, measure }| {
            let variants = self.manifest.variants.iter();
            let values = variants.map(|variant| self.value(measure, variant, &workloads, first));
            Ok(Series { name: name.clone(), values: values.collect::<Result<_, LabError>>()? })
        });
        let labels = self.manifest.variants.iter().map(|variant| title(variant).to_owned());
        Ok((labels.collect(), series.collect::<Result<_, LabError>>()?))
    }

    fn by_setting(&self) -> Result<LabelsAndSeries, LabError> {
        let (workloads, settings) = (self.workloads(), &self.manifest.settings);
        let series = self.shown().map(|(variant, named)| {
            let value = |setting| self.value(&named.measure, variant, &workloads, setting);
            let values = settings.iter().map(value).collect::<Result<_, LabError>>()?;
            Ok(Series { name: self.name(variant, named), values })
        });
        let label = |setting: &Setting| Ok(setting.label(self.plan.leaf_level(setting.levels)?));
        let labels = settings.iter().map(label).collect::<Result<_, LabError>>()?;
        Ok((labels, series.collect::<Result<_, LabError>>()?))
    }

    /// Each variant with each measure.
    fn shown(&self) -> impl Iterator<Item = (&str, &NamedMeasure)> {
        let variants = self.manifest.variants.iter();
        variants.flat_map(|variant| {
            self.manifest.plot.measures.iter().map(move |named| (variant.as_str(), named))
        })
    }

    /// What a series is called: whatever not all have in common.
    fn name(&self, variant: &str, named: &NamedMeasure) -> String {
        match (self.manifest.variants.len(), self.manifest.plot.measures.len()) {
            (_, 1) => title(variant).to_owned(),
            (1, _) => named.name.clone(),
            _ => format!("{}, {}", title(variant), named.name),
        }
    }

    fn stated(&self, number: &StatedNumber) -> Result<Stated, LabError> {
        let StatedNumber { what, variant, workload, measure, paper, band } = number;
        let workloads = workload.as_ref().map_or_else(|| self.workloads(), |name| vec![name]);
        let ours = self.value(measure, variant, &workloads, self.first_setting())?;
        Ok(Stated { what: what.clone(), paper: *paper, band: *band, ours })
    }

    fn value(
        &self,
        measure: &Measure,
        variant: &str,
        workloads: &[&str],
        setting: &Setting,
    ) -> Result<Option<f64>, LabError> {
        Ok(measure.of(&self.pairs(measure, variant, workloads, setting)?))
    }

    /// What came out for `variant`, and for what the measure holds it against, where both ran.
    fn pairs(
        &self,
        measure: &Measure,
        variant: &str,
        workloads: &[&str],
        setting: &Setting,
    ) -> Result<Vec<(&Outcome, &Outcome)>, LabError> {
        let reference = measure.reference().unwrap_or(variant);
        let mut pairs = Vec::new();
        for workload in workloads {
            let run = self.outcome(variant, workload, setting)?;
            pairs.extend(run.zip(self.outcome(reference, workload, setting)?));
        }
        Ok(pairs)
    }

    fn outcome(
        &self,
        variant: &str,
        workload: &str,
        setting: &Setting,
    ) -> Result<Option<&Outcome>, LabError> {
        let key = self.plan.key(&self.plan.run(variant, workload, setting)?);
        let record = self.records.iter().find(|record| record.key == key);
        Ok(record.map(|record| &record.outcome))
    }

    /// That of the stated numbers, and of all bars whose labels are not settings.
    fn first_setting(&self) -> &Setting {
        &self.manifest.settings[0]
    }

    /// Those that could run.
    fn workloads(&self) -> Vec<&str> {
        let names = self.manifest.workload_names();
        names.into_iter().filter(|name| self.programs.has(name)).collect()
    }

    fn remarks(&self) -> Result<Vec<String>, LabError> {
        let mut remarks = self.manifest.remarks.clone();
        remarks.extend(self.geometric_means()?);
        let is_missing = |name: &&str| !self.programs.has(name);
        let missing: Vec<_> =
            self.manifest.workload_names().into_iter().filter(is_missing).collect();
        if !missing.is_empty() {
            remarks.push(format!(
                "Left out of this figure and its means, since there is no trace: {}.",
                missing.join(", ")
            ));
        }
        remarks.extend(self.of_each_machine(|machine| {
            let (leaf_level, papers) = (self.leaf_level(machine), machine.paper_leaf_level());
            let text = format!(
                "On a tree with leaves on level {leaf_level}; the paper's are on level {papers}."
            );
            (leaf_level != papers).then_some(text)
        }));
        Ok(remarks)
    }

    /// What there is to say of the machines, each thing once.
    fn of_each_machine(&self, say: impl Fn(&Variant) -> Option<String>) -> Vec<String> {
        let machines = self.manifest.variant_names().into_iter().filter_map(Variant::named);
        let mut said = Vec::new();
        for text in machines.filter_map(say) {
            if !said.contains(&text) {
                said.push(text);
            }
        }
        said
    }

    fn leaf_level(&self, machine: &Variant) -> u8 {
        machine.leaf_level(self.plan.scale.leaf_level)
    }

    /// Of speeds, the other mean.
    fn geometric_means(&self) -> Result<Option<String>, LabError> {
        let workloads = self.workloads();
        let mut means = Vec::new();
        for (variant, NamedMeasure { measure, .. }) in self.shown() {
            if matches!(measure, Measure::SpeedOver(_)) && workloads.len() > 1 {
                let pairs = self.pairs(measure, variant, &workloads, self.first_setting())?;
                let mean = measure.geometric_mean(&pairs);
                means.extend(mean.map(|mean| format!("{} {mean:.3}", title(variant))));
            }
        }
        let text = || format!("Means are arithmetic. The geometric ones: {}.", means.join(", "));
        Ok((!means.is_empty()).then(text))
    }

    fn origin(&self) -> Result<String, LabError> {
        let records = self.plan.scale.records;
        let warm_up = self.plan.warm_up(self.first_setting())?;
        let machines = self.of_each_machine(|machine| {
            let switches = machine.switches(&self.plan.switches);
            Some(format!("leaves on level {}; {switches:?}", self.leaf_level(machine)))
        });
        let mut versions: Vec<_> =
            self.records.iter().map(|record| record.version.as_str()).collect();
        versions.sort_unstable();
        versions.dedup();
        Ok(format!(
            "{records} records of each trace ({}) after {warm_up} to fill the caches, repeated where a \
             trace is shorter; {}; seed {}; version {}",
            self.programs.what,
            machines.join("; "),
            self.plan.seed,
            versions.join(", ")
        ))
    }
}

type LabelsAndSeries = (Vec<String>, Vec<Series<Option<f64>>>);

fn title(variant: &str) -> &str {
    Variant::named(variant).map_or(variant, |variant| variant.title)
}
