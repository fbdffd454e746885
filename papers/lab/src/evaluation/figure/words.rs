//! What a figure says beside its bars: remarks, and where it comes from.

use super::Maker;
use crate::LabError;
use crate::evaluation::measure::{Mean, Measure};
use crate::evaluation::plan::Plan;
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

    /// What is to be said of a machine from a file, which no size of the evaluation changes.
    fn other_tree(&self, machine: &Variant) -> Option<String> {
        let oram = machine.described()?.oram.as_ref()?;
        let levels = [oram.leaf_level(), self.plan.scale.leaf_level];
        let lines = [oram.lines(), Plan::lines(self.plan.scale.leaf_level)];
        let is_same = |[its, others]: [u64; 2]| its == others;
        (!is_same(levels.map(u64::from)) || !is_same(lines)).then(|| {
            format!(
                "{} has another tree than the rest of this figure: its leaves are on level {} and not {}, and it holds {} \
                 lines and not {}. What is held against it compares trees, too.",
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
            "{records} records of each trace ({}) after {warm_up} to fill the caches{fills_llc}, repeated where a \
             trace is shorter; {}{and_labels}; seed {}; version {}",
            self.programs.words_of(&self.workloads()),
            machines.join("; "),
            self.plan.seed,
            versions.join(", ")
        ))
    }

    /// What `machine` is in all settings of the figure: what only some have, labels say.
    fn common_words(&self, machine: &Variant) -> Vec<String> {
        let of_each = self.manifest.settings.iter().map(|setting| {
            let level = machine
                .leaf_level(self.plan.scale.leaf_level.saturating_add_signed(setting.all_levels()));
            let words = machine.words(&setting.of(&self.plan.switches));
            [format!("leaves on level {level}")].into_iter().chain(words).collect::<Vec<_>>()
        });
        let common = of_each.reduce(|common, words| {
            common.into_iter().filter(|word| words.contains(word)).collect()
        });
        common.unwrap_or_default()
    }

    /// Of stacks that are times over those of another machine, the other mean: their parts add up to one mean
    /// alone.
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

    /// What there is to say of the machines, each thing once.
    fn of_each_machine(&self, say: impl Fn(&Variant) -> Option<String>) -> Vec<String> {
        let machines = self
            .manifest
            .variant_names()
            .into_iter()
            .filter_map(|name| self.manifest.machine(name));
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
}
