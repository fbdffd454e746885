//! Compares the numbers that the paper states with ours: our value under each reading
//! (interpretation) of the paper, and the bar that shows the number.

use super::Maker;
use crate::LabError;
use crate::evaluation::measure::Mean;
use crate::evaluation::plotted::Axis;
use crate::evaluation::setting::SwitchSetting;
use crate::evaluation::stated_number::{NumberReading, StatedNumber};
use crate::report::{MarkPlace, Reading, Stated};

impl Maker<'_> {
    pub(super) fn stated(&self, number: &StatedNumber) -> Result<Stated, LabError> {
        let StatedNumber { what, paper, band, fitted, why, limits, .. } = number;
        let first_setting = self.first_setting();
        let as_it_is = self.readings(number, None, first_setting)?;
        let programs = self.programs_of(number, first_setting)?;
        let mut others = Vec::new();
        for NumberReading { name, setting } in &number.readings {
            // A mean over other programs would not be a reading of the same number.
            let is_alike = self.programs_of(number, setting)? == programs;
            let readings = self.readings(number, Some(name), setting)?.into_iter();
            others.extend(readings.map(|it| Reading { ours: it.ours.filter(|_| is_alike), ..it }));
        }
        let wanted = number.workloads_wanted(self.manifest.workload_names().len());
        let mut readings = as_it_is.into_iter().chain(others);
        let first = readings.next();
        let (name, ours) = first.map_or((String::new(), None), |first| (first.name, first.ours));
        Ok(Stated {
            of: (0 < programs && programs < wanted).then_some([programs as u32, wanted as u32]),
            taken: (!name.is_empty()).then_some(name),
            readings: readings.collect(),
            fitted: *fitted,
            why: why.clone(),
            limits: limits.clone(),
            shown_by: number.shown_by.clone(),
            place: self.place(number)?,
            ..Stated::new(what, *paper, *band, ours)
        })
    }

    /// Our values of the number under `setting`: one for each kind of mean that the paper might
    /// have used.
    fn readings(
        &self,
        number: &StatedNumber,
        name: Option<&str>,
        setting: &SwitchSetting,
    ) -> Result<Vec<Reading>, LabError> {
        let shown = self.workloads();
        let workloads = number.workloads(&shown);
        let has_both = workloads.len() > 1 && number.measure.is_ratio() && !number.deviation;
        let means = match (number.deviation, has_both) {
            (true, _) => &[Mean::Deviation][..],
            (false, true) => &Mean::ALL[..],
            (false, false) => &Mean::ALL[..1],
        };
        let reading = |mean: &Mean| {
            let which = has_both.then(|| mean.name());
            let name = name.map(str::to_owned).into_iter().chain(which).collect::<Vec<_>>();
            let (measure, variant) = (&number.measure, &number.variant);
            let ours = self.value(measure, variant, &workloads, setting, *mean)?;
            Ok(Reading { name: name.join(", "), ours })
        };
        means.iter().map(reading).collect()
    }

    /// The number of workloads in our mean for `number` under `setting`.
    fn programs_of(
        &self,
        number: &StatedNumber,
        setting: &SwitchSetting,
    ) -> Result<usize, LabError> {
        let (measure, shown) = (&number.measure, self.workloads());
        Ok(self.pairs(measure, &number.variant, &number.workloads(&shown), setting)?.len())
    }

    /// The bar that shows the number, or `None` if no bar does.
    fn place(&self, number: &StatedNumber) -> Result<Option<MarkPlace>, LabError> {
        let plot = &self.manifest.plot;
        let named = plot.measures.iter().find(|named| named.measure == number.measure);
        let is_a_bar = !plot.stacked && !number.deviation;
        let is_shown = self.manifest.variants.contains(&number.variant) && is_a_bar;
        let Some(named) = named.filter(|_| is_shown) else { return Ok(None) };
        let shown = self.workloads();
        let is_of_all = number.workloads(&shown) == shown;
        let variant = number.variant.as_str();
        let of_mean = |name: String| self.names_of_means(&name)[0].0.clone();
        let (series, label) = match plot.labels {
            Axis::Workloads => {
                let means = self.means_over_workloads();
                let mean = means.first().map(|(name, _)| name.clone()).filter(|_| is_of_all);
                let one = number.workloads(&shown).first().map(|name| (*name).to_owned());
                (self.name(variant, named), mean.or(one))
            }
            Axis::Variants => {
                (of_mean(named.name.clone()), is_of_all.then(|| self.title(variant).to_owned()))
            }
            Axis::Settings => {
                let label = self.setting_label(self.first_setting())?;
                (of_mean(self.name(variant, named)), is_of_all.then_some(label))
            }
        };
        Ok(label.map(|label| MarkPlace { series: Some(series), label: Some(label) }))
    }
}
