//! The plan: the runs that all chosen figures need.

use oblivio_sim::LINE_BYTES;
use oblivio_sim::controller::OramSpec;
use oblivio_sim::system::SystemSpec;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::manifest::Manifest;
use super::record::Scale;
use super::setting::SwitchSetting;
use super::stated_number::StatedNumber;
use super::switches::Switches;
use super::variants::{Variant, levels_saved};
use super::workloads::{self, Programs, REAL};
use crate::LabError;
use crate::kept_studies::initial_name;

/// The parameters of an evaluation. With the traces, they determine every record except for its
/// seconds, machine and version.
#[derive(Clone, Debug, PartialEq)]
pub struct EvaluationPlan {
    /// The size of the tree, and the number of records.
    pub scale: Scale,
    /// The switches that all machines share.
    pub switches: Switches,
    /// The seed of all random choices.
    pub seed: u64,
    /// Machines that are not built in.
    pub machines: Vec<Variant>,
    /// Whether stated numbers are also measured under other readings of the paper, which needs more
    /// runs.
    pub with_readings: bool,
    /// Whether each DRAM command is checked against the timing rules. Results stay the same; runs
    /// take longer.
    pub checks_commands: bool,
}

/// A machine under a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The name of the machine.
    pub variant: String,
    /// The name of the workload.
    pub workload: String,
    /// The size of the tree, and the number of records.
    pub scale: Scale,
    /// The switches of the run: those of the evaluation, changed by the setting and by the machine.
    pub switches: Switches,
}

/// Allowed leaf levels. A smaller tree cannot hold the pages of a sample. A tree larger than the
/// paper's largest exceeds the memory of usual machines.
const LEAF_LEVELS: std::ops::RangeInclusive<u8> = 10..=25;

/// Allowed numbers of records. Fewer records give no meaningful result. The maximum leaves room in
/// a trace for an equally long warm-up.
const RECORDS: std::ops::RangeInclusive<u64> = 100..=oblivio_sim::trace::RECORDS_MAX as u64 / 2;

impl EvaluationPlan {
    /// The plan of the evaluation in the documentation, with the paper's sizes. Before the warm-up,
    /// 2 million records fill the LLC, as many as a recorded trace has.
    pub fn full() -> Self {
        let full = Self::new(24, 1_000_000);
        Self { scale: Scale { llc_warm_up: 2_000_000, ..full.scale }, ..full }
    }

    /// A plan for rough figures: a small tree, few records, and an LLC small enough for them.
    pub fn quick() -> Self {
        let quick = Self::new(16, 6000);
        let switches = Switches { llc_bytes: 32 << 10, ..quick.switches };
        Self { switches, with_readings: false, ..quick }
    }

    /// A plan for Table I with leaves on `leaf_level`, which measures `records` of each trace. A
    /// quarter of this number precedes them as the warm-up. The LLC is empty at first.
    pub fn new(leaf_level: u8, records: u64) -> Self {
        let scale = Scale { leaf_level, records, warm_up: records / 4, llc_warm_up: 0 };
        let (switches, machines) = (Switches::PAPER, Vec::new());
        Self { scale, switches, seed: 1, machines, with_readings: true, checks_commands: false }
    }

    /// Adds the machines that `figures` define to the plan.
    ///
    /// # Errors
    /// [`LabError::Plan`] if two different machines have the same name.
    pub fn with_machines_of(mut self, figures: &[Manifest]) -> Result<Self, LabError> {
        for (figure, own) in
            figures.iter().flat_map(|figure| figure.own.iter().map(move |own| (figure, own)))
        {
            match self.machines.iter().find(|machine| machine.name == own.name) {
                None => self.machines.push(own.clone()),
                Some(same) if same == own => (),
                Some(_) => {
                    return Err(LabError::Plan(format!(
                        "the machine {} of {} has the name of another figure's machine: rename one",
                        own.name, figure.id
                    )));
                }
            }
        }
        Ok(self)
    }

    /// The runs that `figures` need, without duplicates. Runs with the same initial tree are
    /// adjacent, so that the tree is read once. Among these, runs with the same workload are
    /// adjacent. Workloads that need a trace that `programs` lacks are omitted.
    ///
    /// # Errors
    /// [`LabError::Plan`] if no run remains, or the plan is invalid.
    pub fn runs(&self, figures: &[Manifest], programs: &Programs) -> Result<Vec<Run>, LabError> {
        self.check()?;
        let mut runs: Vec<Run> = Vec::new();
        for figure in figures {
            for run in self.runs_of(figure)? {
                if programs.has(&run.workload) && !runs.contains(&run) {
                    runs.push(run);
                }
            }
        }
        if runs.is_empty() {
            let message = "there is no trace of any program of these figures: name files as \
                           `oblivio-lab trace record-set` does, or omit --traces to use the \
                           samples";
            return Err(LabError::Plan(message.to_owned()));
        }
        self.in_order(runs)
    }

    /// Sorts runs by leaf level, initial tree and workload. Within a leaf level, runs without a
    /// shared initial tree come last.
    fn in_order(&self, runs: Vec<Run>) -> Result<Vec<Run>, LabError> {
        let place = |name: &str| workloads::names().position(|workload| workload == name);
        let placed = |run: Run| {
            let tree = self.initial_tree(&run)?;
            Ok(((run.scale.leaf_level, tree.is_none(), tree, place(&run.workload)), run))
        };
        let mut placed: Vec<_> = runs.into_iter().map(placed).collect::<Result<_, LabError>>()?;
        placed.sort_by(|(place, _), (other, _)| place.cmp(other));
        Ok(placed.into_iter().map(|(_, run)| run).collect())
    }

    /// The name of the initial tree of `run`, if runs share it.
    pub(super) fn initial_tree(&self, run: &Run) -> Result<Option<String>, LabError> {
        let oram = self.spec(run)?.oram;
        let main = oram.as_ref().and_then(OramSpec::studied);
        main.map(|main| initial_name(&main, self.seed)).transpose()
    }

    pub(super) fn runs_of(&self, figure: &Manifest) -> Result<Vec<Run>, LabError> {
        let mut runs = Vec::new();
        for setting in &figure.settings {
            for workload in figure.workload_names() {
                for variant in figure.variant_names() {
                    runs.push(self.run(variant, workload, setting)?);
                }
            }
        }
        for number in figure.stated.iter().filter(|_| self.with_readings) {
            runs.extend(self.runs_of_readings(number, &figure.workload_names())?);
        }
        Ok(runs)
    }

    fn runs_of_readings(
        &self,
        number: &StatedNumber,
        workloads: &[&str],
    ) -> Result<Vec<Run>, LabError> {
        let mut runs = Vec::new();
        for reading in &number.readings {
            for workload in number.workloads(workloads) {
                for variant in number.variant_names() {
                    runs.push(self.run(variant, workload, &reading.setting)?);
                }
            }
        }
        Ok(runs)
    }

    /// The run of a machine under a workload.
    pub(super) fn run(
        &self,
        variant: &str,
        workload: &str,
        setting: &SwitchSetting,
    ) -> Result<Run, LabError> {
        let machine = self.machine(variant)?;
        let mut switches = setting.apply_to(&self.switches);
        let lower = levels_lower(machine.switches(&switches).block_lines)?;
        let mut scale = Scale {
            leaf_level: machine
                .leaf_level(self.leaf_level(setting.all_levels().saturating_sub(lower))?),
            warm_up: self.warm_up(setting)?,
            ..self.scale
        };
        if REAL.contains(&workload) && !setting.has_llc_for_all() {
            // The workload's trace was recorded behind an LLC: it consists of read misses and
            // write-backs.
            switches.llc_bytes = LINE_BYTES;
            switches.fetch_on_write_miss = false;
            scale.llc_warm_up = 0;
        }
        Ok(Run {
            variant: variant.to_owned(),
            workload: workload.to_owned(),
            scale,
            switches: machine.switches(&switches),
        })
    }

    pub(super) fn leaf_level(&self, offset: i8) -> Result<u8, LabError> {
        let level = self.scale.leaf_level.checked_add_signed(offset);
        level.filter(|level| LEAF_LEVELS.contains(level)).ok_or_else(|| {
            let (least, most) = (LEAF_LEVELS.start(), LEAF_LEVELS.end());
            LabError::Plan(format!(
                "a figure needs a tree with leaves on level {} {offset:+}, but the range is \
                 {least} to {most}: choose other --levels, or omit that --figure",
                self.scale.leaf_level
            ))
        })
    }

    /// The number of warm-up records under `setting`. They fill the caches.
    pub(super) fn warm_up(&self, setting: &SwitchSetting) -> Result<u64, LabError> {
        let warm_ups = setting.warm_up_times();
        let records = match setting.own_warm_up_records() {
            Some(records) => Some(records),
            None => self.scale.warm_up.checked_mul(warm_ups.into()),
        };
        records.filter(|records| records <= RECORDS.end()).ok_or_else(|| {
            LabError::Plan(format!(
                "a figure needs {warm_ups} times the records to fill the caches, which is more \
                 than {}: choose fewer --records, or omit that --figure",
                RECORDS.end()
            ))
        })
    }

    /// The specification of the machine of `run`.
    ///
    /// # Errors
    /// [`LabError::Plan`] for an unknown variant, and the errors of [`Variant::spec`].
    pub fn spec(&self, run: &Run) -> Result<SystemSpec, LabError> {
        self.machine(&run.variant)?.spec(run.scale.leaf_level, &run.switches)
    }

    /// The machine called `name`.
    pub(super) fn machine(&self, name: &str) -> Result<&Variant, LabError> {
        let own = self.machines.iter().find(|machine| machine.name == name);
        own.or_else(|| Variant::named(name))
            .ok_or_else(|| LabError::Plan(format!("there is no variant {name}")))
    }

    /// The name of `run` in results. Two runs give the same result if their keys, traces and
    /// specifications are equal.
    pub fn key(&self, run: &Run) -> String {
        let Run { variant, workload, scale, switches } = run;
        let Scale { leaf_level, records, warm_up, llc_warm_up } = scale;
        let (switches, seed) = (switches.key(), self.seed);
        let llc = if *llc_warm_up > 0 { format!("{llc_warm_up}+") } else { String::new() };
        format!("{variant}/{workload}/L{leaf_level}/{switches}/{llc}{warm_up}+{records}/seed{seed}")
    }

    /// The seed of a workload. It is the same for all machines.
    pub(super) fn seed_of(&self, workload: &str) -> u64 {
        let place = workloads::names().position(|name| name == workload).unwrap_or_default();
        let mut seeds = StdRng::seed_from_u64(self.seed);
        std::iter::repeat_with(|| seeds.next_u64()).nth(place).unwrap_or(self.seed)
    }

    /// The number of lines in the protected space of a tree with leaves on `leaf_level`.
    pub fn lines(leaf_level: u8) -> u64 {
        OramSpec::paper(leaf_level).data_blocks
    }

    fn check(&self) -> Result<(), LabError> {
        if RECORDS.contains(&self.scale.records) {
            return Ok(());
        }
        let (least, most) = (RECORDS.start(), RECORDS.end());
        Err(LabError::Plan(format!(
            "a run needs {least} to {most} records: choose other \
                                    --records"
        )))
    }
}

/// The number of levels that a tree loses because its blocks have `block_lines` lines.
fn levels_lower(block_lines: u64) -> Result<i8, LabError> {
    if block_lines.is_power_of_two() {
        return Ok(levels_saved(block_lines) as i8);
    }
    Err(LabError::Plan(format!(
        "block-lines = {block_lines} must be a power of two, since each doubling removes a level \
         of the tree"
    )))
}
