//! Bars by their names: which runs one is made of.

use super::Maker;
use crate::LabError;
use crate::evaluation::manifest::Manifest;
use crate::evaluation::measure::Measure;
use crate::evaluation::plan::Plan;
use crate::evaluation::plotted::Axis;
use crate::evaluation::record::RunRecord;
use crate::evaluation::setting::Setting;
use crate::evaluation::workloads::Programs;
use crate::report::{BarName, Change};

/// What a bar is made of.
struct Source<'a> {
    measure: &'a Measure,
    variant: &'a str,
    workloads: Vec<&'a str>,
    setting: &'a Setting,
}

/// Refuses a change of `manifests` that names no bar: its figure is one of them, or of the evaluation.
///
/// # Errors
/// [`LabError::Input`], which names the manifest and the number.
pub fn check_changes(manifests: &[Manifest]) -> Result<(), LabError> {
    let built_in = Manifest::all()?;
    let (plan, programs) = (Plan::full(), Programs::every());
    for manifest in manifests {
        for number in &manifest.stated {
            let Some(change) = &number.change else { continue };
            let all = manifests.iter().chain(&built_in);
            let wrong = wrong_in(change, all, &plan, &programs)?;
            if let Some(wrong) = wrong {
                let message = format!("{}: {}: change: {wrong}", manifest.id, number.what);
                return Err(LabError::Input(message));
            }
        }
    }
    Ok(())
}

fn wrong_in<'a>(
    change: &Change,
    mut manifests: impl Iterator<Item = &'a Manifest>,
    plan: &Plan,
    programs: &Programs,
) -> Result<Option<String>, LabError> {
    let Some(manifest) = manifests.find(|manifest| manifest.id == change.figure) else {
        return Ok(Some(format!("there is no figure {:?}", change.figure)));
    };
    let maker = Maker { manifest, plan, programs, records: &[] };
    for bar in [&change.from, &change.to] {
        if maker.source(bar)?.is_none() {
            let bars = maker.bars()?;
            let series = bars.series.iter().map(|series| series.name.as_str()).collect::<Vec<_>>();
            return Ok(Some(format!(
                "the figure {} has no bar {:?} of a series {:?}: its series are {}; its labels {}",
                change.figure,
                bar.label,
                bar.series,
                series.join("; "),
                bars.labels.join("; ")
            )));
        }
    }
    Ok(None)
}

/// The runs of `records` that a bar of the figure is made of, and after them those that they are held against. Nothing, if there is no
/// such bar.
///
/// # Errors
/// [`LabError::Plan`] when a figure has a size that there is no tree for.
pub fn runs_of_bar<'a>(
    manifest: &Manifest,
    plan: &Plan,
    records: &'a [RunRecord],
    bar: &BarName,
) -> Result<Option<Vec<&'a RunRecord>>, LabError> {
    let programs = Programs::every();
    let maker = Maker { manifest, plan, programs: &programs, records };
    let Some(Source { measure, variant, workloads, setting }) = maker.source(bar)? else {
        return Ok(None);
    };
    let machines = [Some(variant), measure.reference()].into_iter().flatten();
    let mut runs = Vec::new();
    for (machine, workload) in
        machines.flat_map(|machine| workloads.iter().map(move |workload| (machine, workload)))
    {
        let key = plan.key(&plan.run(machine, workload, setting)?);
        runs.extend(records.iter().find(|record| record.key == key));
    }
    Ok(Some(runs))
}

impl Maker<'_> {
    /// What the bar of this name is made of.
    fn source(&self, BarName { series, label }: &BarName) -> Result<Option<Source<'_>>, LabError> {
        let workloads = self.workloads();
        let is_mean = |name: &str| self.names_of_means(name).iter().any(|(name, _)| name == series);
        let mut of_series =
            self.shown().filter(|(variant, named)| match self.manifest.plot.labels {
                Axis::Workloads => self.name(variant, named) == *series,
                Axis::Variants => self.title(variant) == label && is_mean(&named.name),
                Axis::Settings => is_mean(&self.name(variant, named)),
            });
        let Some((variant, named)) = of_series.next() else { return Ok(None) };
        let mut setting = self.first_setting();
        let workloads = match self.manifest.plot.labels {
            Axis::Variants => workloads,
            Axis::Workloads if workloads.contains(&label.as_str()) => {
                workloads.into_iter().filter(|name| name == label).collect()
            }
            Axis::Workloads
                if self.means_over_workloads().iter().any(|(name, _)| name == label) =>
            {
                workloads
            }
            Axis::Workloads => return Ok(None),
            Axis::Settings => {
                let mut found = None;
                for other in &self.manifest.settings {
                    if self.setting_label(other)? == *label {
                        found = Some(other);
                    }
                }
                let Some(found) = found else { return Ok(None) };
                setting = found;
                workloads
            }
        };
        Ok(Some(Source { measure: &named.measure, variant, workloads, setting }))
    }
}
