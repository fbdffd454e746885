//! How near each setting of a figure comes to the means that the paper has.

use super::Maker;
use crate::LabError;
use crate::evaluation::measure::Mean;
use crate::evaluation::setting::Setting;
use crate::report::Series;

/// What the paper has, and what we have.
type Pair = (f64, f64);

impl Maker<'_> {
    /// A series for each mean: how far each setting is from the paper. None, where the figure holds nothing against it.
    pub(super) fn distances(&self) -> Result<Vec<Series<Option<f64>>>, LabError> {
        self.means_held_against_the_paper()
            .into_iter()
            .map(|(name, mean)| {
                let pairs = self.pairs_of_each_setting(mean)?;
                let values = pairs.iter().map(|pairs| pairs.as_deref().map(distance)).collect();
                Ok(Series { name, values })
            })
            .collect()
    }

    /// The setting that is nearest to the paper by each mean, and those in which the machines have the paper's order.
    pub(super) fn nearest(&self) -> Result<Vec<String>, LabError> {
        let settings = &self.manifest.settings;
        let labels = settings.iter().map(|setting| self.setting_label(setting));
        let labels: Vec<String> = labels.collect::<Result<_, _>>()?;
        let mut said = Vec::new();
        for (_, mean) in self.means_held_against_the_paper() {
            let pairs = self.pairs_of_each_setting(mean)?;
            let of_each: Vec<_> = labels
                .iter()
                .zip(&pairs)
                .filter_map(|(label, pairs)| Some((label, pairs.as_deref()?)))
                .collect();
            let distances = of_each.iter().map(|(label, pairs)| (label, distance(pairs)));
            let Some((label, off)) = distances.min_by(|(_, a), (_, b)| a.total_cmp(b)) else {
                continue;
            };
            let in_order = of_each.iter().filter(|(_, pairs)| has_order_of_paper(pairs));
            let in_order: Vec<_> = in_order.map(|(label, _)| label.as_str()).collect();
            said.push(format!(
                "By the {}, {label} is nearest to the paper, {:.0} % off on average. The paper's order is that of {}.",
                mean.name(),
                100.0 * off,
                if in_order.is_empty() { "none".to_owned() } else { in_order.join("; ") }
            ));
        }
        Ok(said)
    }

    fn means_held_against_the_paper(&self) -> Vec<(String, Mean)> {
        match self.manifest.plot.papers.is_empty() {
            true => Vec::new(),
            false => self.names_of_means("off the paper"),
        }
    }

    fn pairs_of_each_setting(&self, mean: Mean) -> Result<Vec<Option<Vec<Pair>>>, LabError> {
        self.manifest.settings.iter().map(|setting| self.pairs_with_paper(setting, mean)).collect()
    }

    /// Nothing, where a run or a trace is missing: a mean of fewer workloads is another one.
    fn pairs_with_paper(
        &self,
        setting: &Setting,
        mean: Mean,
    ) -> Result<Option<Vec<Pair>>, LabError> {
        let (workloads, plot) = (self.manifest.workload_names(), &self.manifest.plot);
        let measure = &plot.measures[0].measure;
        let mut pairs = Vec::new();
        for (variant, paper) in &plot.papers {
            let runs = self.pairs(measure, variant, &workloads, setting)?;
            match measure.of(&runs, mean).filter(|_| runs.len() == workloads.len()) {
                Some(ours) => pairs.push((*paper, ours)),
                None => return Ok(None),
            }
        }
        Ok(Some(pairs))
    }
}

/// By what part of the paper's number ours is off, on average.
fn distance(pairs: &[Pair]) -> f64 {
    let off = pairs.iter().map(|(paper, ours)| (ours / paper - 1.0).abs());
    off.sum::<f64>() / pairs.len() as f64
}

fn has_order_of_paper(pairs: &[Pair]) -> bool {
    let mut pairs = pairs.to_vec();
    pairs.sort_by(|(paper, _), (other, _)| paper.total_cmp(other));
    pairs.is_sorted_by(|(_, ours), (_, next)| ours < next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_is_a_part_of_the_papers_number_and_an_order_is_strict() {
        let pairs = [(2.0, 1.0), (1.0, 1.25), (4.0, 4.0)];
        assert_eq!(distance(&pairs), 0.25);
        assert!(!has_order_of_paper(&pairs));
        assert!(has_order_of_paper(&[(2.0, 1.5), (1.0, 1.25), (4.0, 4.0)]));
        assert!(!has_order_of_paper(&[(2.0, 1.5), (1.0, 1.5)]));
    }
}
