//! The texts of a figure: remarks, and the origin of its numbers.

use super::Maker;
use crate::LabError;
use crate::evaluation::measure::{Mean, Measure};
use crate::evaluation::plan::EvaluationPlan;
use crate::evaluation::variants::Variant;

impl Maker<'_> {
    pub(super) fn remarks(&self) -> Result<Vec<String>, LabError> {
        let mut remarks = self.manifest.remarks.clone();
        remarks.extend(self.mean_of_stacks()?);
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
        remarks.extend(self.of_each_machine(|machine| self.other_tree(machine)));
        Ok(remarks)
    }

    /// Returns a remark if `machine` comes from a file, and its tree has another size than the
    /// trees of the evaluation.
    fn other_tree(&self, machine: &Variant) -> Option<String> {
        let oram = machine.described()?.oram.as_ref()?;
        let levels = [oram.leaf_level(), self.plan.scale.leaf_level];
        let lines = [oram.lines(), EvaluationPlan::lines(self.plan.scale.leaf_level)];
        let is_same = |[its, others]: [u64; 2]| its == others;
        (!is_same(levels.map(u64::from)) || !is_same(lines)).then(|| {
            format!(
                "{} has another tree than the rest of this figure: its leaves are on level {} and \
                 not {}, and it holds {} lines and not {}. Comparisons with it also compare trees.",
                machine.title, levels[0], levels[1], lines[0], lines[1]
            )
        })
    }

    pub(super) fn origin(&self) -> Result<String, LabError> {
        let records = self.plan.scale.records;
        let warm_up = self.plan.warm_up(self.first_setting())?;
        let machines = self.of_each_machine(|machine| Some(self.common_words(machine).join("; ")));
        let fills_llc = match self.plan.scale.llc_warm_up {
            0 => String::new(),
            records => format!(" ({records} before them fill the LLC alone)"),
        };
        let and_labels =
            if self.manifest.settings.len() > 1 { "; the rest is as labels say" } else { "" };
        let mut versions: Vec<_> =
            self.records.iter().map(|record| record.version.as_str()).collect();
        versions.sort_unstable();
        versions.dedup();
        Ok(format!(
            "{records} records of each trace ({}) after {warm_up} to fill the caches{fills_llc}, \
             repeated where a trace is shorter; {}{and_labels}; seed {}; version {}",
            self.programs.words_of(&self.workloads()),
            machines.join("; "),
            self.plan.seed,
            versions.join(", ")
        ))
    }

    /// Descriptions of `machine` that hold in all settings of the figure. Labels show the other
    /// descriptions.
    fn common_words(&self, machine: &Variant) -> Vec<String> {
        let of_each = self.manifest.settings.iter().map(|setting| {
            let level = machine
                .leaf_level(self.plan.scale.leaf_level.saturating_add_signed(setting.all_levels()));
            let words = machine.words(&setting.apply_to(&self.plan.switches));
            [format!("leaves on level {level}")].into_iter().chain(words).collect::<Vec<_>>()
        });
        let common = of_each.reduce(|common, words| {
            common.into_iter().filter(|word| words.contains(word)).collect()
        });
        common.unwrap_or_default()
    }

    /// Describes the geometric mean of times that are drawn as stacks. Parts of a stack only add up
    /// to the arithmetic mean.
    fn mean_of_stacks(&self) -> Result<Option<String>, LabError> {
        let plot = &self.manifest.plot;
        let reference = plot.measures.first().and_then(|named| named.measure.reference());
        let workloads = self.workloads();
        let Some(reference) = reference.filter(|_| plot.stacked && workloads.len() > 1) else {
            return Ok(None);
        };
        let speed = Measure::SpeedOver(reference.to_owned());
        let mut times = Vec::new();
        for variant in &self.manifest.variants {
            let of = self.value(&speed, variant, &workloads, self.first_setting(), Mean::Geometric);
            times.extend(of?.map(|speed| format!("{} {:.3}", self.title(variant), speed.recip())));
        }
        let text = format!(
            "The parts add up to the arithmetic mean of the time. The geometric mean: {}.",
            times.join(", ")
        );
        Ok((!times.is_empty()).then_some(text))
    }

    /// The results of `describe` for all machines, without duplicates.
    fn of_each_machine(&self, describe: impl Fn(&Variant) -> Option<String>) -> Vec<String> {
        let machines = self
            .manifest
            .variant_names()
            .into_iter()
            .filter_map(|name| self.manifest.machine(name));
        let mut texts = Vec::new();
        for text in machines.filter_map(describe) {
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        texts
    }

    fn leaf_level(&self, machine: &Variant) -> u8 {
        machine.leaf_level(self.plan.scale.leaf_level)
    }
}
