//! Slots for each level of a volume (IR-Alloc): searched, saved, and read from a file.

use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;

use indicatif::ProgressBar;
use oblivio_core::durable::rotating::{DurableRaw, RawParams};
use oblivio_core::durable::{DurableScheme, Slots};
use oblivio_models::Error;
use oblivio_models::alloc_search::{self, Allocation, Bench, BySlots, Profile, Run, VolumeTree};
use oblivio_volume::VolumeError;
use oblivio_volume::superblock::VolumeParams;
use serde_json::{Value, json};

use super::plan::VolumePlan;
use crate::args::AllocArgs;
use crate::error::CliError;
use crate::files::{self, FileKind};
use crate::progress;

/// Maximum bytes of a file of slots. No search writes more.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Factor by which the last run of a search is longer than the others.
const LAST_RUN_ACCESSES: u64 = 4;

/// A searched allocation of slots to levels, applied to a plan.
pub(crate) struct SearchedSlots {
    found: Allocation,
    /// The number of slots of each level, fitted to the tree of this volume.
    profile: Profile,
    /// The plan with the same slots on every level.
    uniform: Box<VolumePlan>,
    tree: RawParams,
}

/// `oblivio plan --alloc`: searches the slots of each level, and saves the result if
/// `--alloc-output` is given. Returns the plan with these slots.
pub(super) fn search(uniform: VolumePlan, args: &AllocArgs) -> Result<VolumePlan, CliError> {
    let tree = tree_of(&uniform.params)?;
    let plan = alloc_search::SearchPlan {
        workload: args.alloc_workload.into(),
        space_loss_max: args.space_loss_max,
        extra_evictions_max: args.evictions_max,
        accesses: args.alloc_accesses,
        endurance_accesses: args.alloc_accesses * LAST_RUN_ACCESSES,
        seed: args.seed,
        ..volume_tree(&tree).search(args.alloc_level)
    };
    let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let bench = WatchedBench(progress::bar(0));
    let search = alloc_search::run(&plan, Vec::new(), threads, &bench)?;
    bench.0.finish_and_clear();
    if let Some(path) = &args.alloc_output {
        files::replace(path, FileKind::SLOTS, &search.to_json()?)?;
    }
    let found = Allocation::from_search(&search);
    let profile = found.profile_for(&volume_tree(&tree))?;
    SearchedSlots::plan(uniform, tree, found, profile)
}

/// Runs profiles on the engine, with a progress bar.
struct WatchedBench(ProgressBar);

impl Bench<BySlots> for WatchedBench {
    type Error = Error;

    fn planned(&self, steps: u64) {
        self.0.inc_length(steps);
    }

    fn run(
        &self,
        plan: &alloc_search::SearchPlan,
        profile: &Profile,
        accesses: u64,
        seed: u64,
    ) -> Result<Run, Error> {
        alloc_search::measure(plan, profile, accesses, seed, &|made| self.0.inc(made))
    }
}

/// `oblivio plan --alloc-from`: applies the result of an earlier search.
pub(super) fn from_file(uniform: VolumePlan, path: &Path) -> Result<VolumePlan, CliError> {
    let cannot_use =
        |error: Error| CliError::Input(format!("{} cannot be used: {error}", path.display()));
    let tree = tree_of(&uniform.params)?;
    let text = files::read_text(path, FILE_BYTES_MAX)?;
    let found = Allocation::from_json(&text).map_err(cannot_use)?;
    let profile = found.profile_for(&volume_tree(&tree)).map_err(cannot_use)?;
    SearchedSlots::plan(uniform, tree, found, profile)
}

/// The tree of a volume. Fails if the scheme of the volume has the same slots on every level.
fn tree_of(params: &VolumeParams) -> Result<RawParams, CliError> {
    if params.scheme.as_str() != DurableRaw.name() {
        return Err(CliError::Input(format!(
            "the scheme `{}` has the same slots on every level: leave out --alloc and \
             --alloc-from, or choose --scheme {}",
            params.scheme,
            DurableRaw.name()
        )));
    }
    RawParams::decode(params.blocks, params.block_bytes, &params.scheme_params)
        .map_err(|error| VolumeError::from(error).into())
}

fn volume_tree(tree: &RawParams) -> VolumeTree {
    VolumeTree {
        slots: slots_max(&tree.slots),
        evict_period: tree.evict_period,
        stash_blocks_max: tree.stash_blocks_max as usize,
        leaf_level: tree.leaf_level,
        tree_top_levels: tree.tree_top_levels,
    }
}

fn slots_max(slots: &Slots) -> u16 {
    match slots {
        Slots::Same(slots) => *slots,
        Slots::PerLevel(slots) => slots.iter().copied().max().unwrap_or(0),
    }
}

impl SearchedSlots {
    fn plan(
        uniform: VolumePlan,
        tree: RawParams,
        found: Allocation,
        profile: Profile,
    ) -> Result<VolumePlan, CliError> {
        let mut params = tree.clone();
        // Equal slots on all levels are stored as one number.
        if profile != Profile::uniform(params.leaf_level, slots_max(&params.slots)) {
            params.slots = Slots::PerLevel(profile.slots().to_vec());
        }
        let mut plan = VolumePlan::of(VolumeParams::of(&params), uniform.kind)?;
        plan.bytes_requested = uniform.bytes_requested;
        let evictions = found.evictions_per_access().unwrap_or(0.0);
        add_evictions(&mut plan, evictions, params.evict_period);
        plan.allocated = Some(Self { found, profile, uniform: Box::new(uniform), tree });
        Ok(plan)
    }

    /// A line that states how often the stash exceeds its bound.
    pub(super) fn stash_line(&self) -> String {
        format!(
            "stash             {} blocks: exceeded, as measured, {:.4} times per access ({}); \
             costs an eviction, no data",
            self.tree.stash_blocks_max,
            self.evictions(),
            self.found.plan.workload
        )
    }

    /// Lines that compare the plan found by the search with the plan without it.
    pub(super) fn lines(&self) -> Vec<String> {
        let Self { found, profile, uniform, tree } = self;
        let levels = |leaf_level: u8| u32::from(leaf_level) + 1;
        let (path_slots, path_slots_uniform) = self.path_slots();
        vec![
            format!("slots by level    {profile}"),
            format!(
                "searched          on a tree of {} levels, measured on one of {}, {} blocks per \
                 leaf, {}, seed {}",
                levels(found.plan.leaf_level),
                levels(found.plan.endurance_leaf_level),
                found.plan.blocks_per_leaf(),
                found.plan.workload,
                found.plan.seed
            ),
            format!(
                "path              {path_slots} slots in storage; {:.2} % of all slots are lost",
                100.0 * self.space_loss()
            ),
            String::new(),
            format!("with Z = {} on every level:", slots_max(&tree.slots)),
            uniform.storage_line(),
            uniform.access_line(),
            format!("path              {path_slots_uniform} slots in storage"),
        ]
    }

    pub(super) fn json(&self) -> Value {
        let Self { found, uniform, .. } = self;
        let (path_slots, path_slots_uniform) = self.path_slots();
        json!({
            "path_slots": path_slots,
            "path_slots_uniform": path_slots_uniform,
            "space_loss": self.space_loss(),
            "evictions_per_access": self.evictions(),
            "searched_levels": u32::from(found.plan.leaf_level) + 1,
            "measured_levels": u32::from(found.plan.endurance_leaf_level) + 1,
            "blocks_per_leaf": found.plan.blocks_per_leaf(),
            "workload": found.plan.workload.to_string(),
            "seed": found.plan.seed,
            "uniform": uniform.json(),
        })
    }

    fn evictions(&self) -> f64 {
        self.found.evictions_per_access().unwrap_or(0.0)
    }

    /// Slots of a path in storage, first with the searched profile, then with the same slots on
    /// every level.
    fn path_slots(&self) -> (u64, u64) {
        let top = self.tree.tree_top_levels;
        (self.profile.path_slots(top), self.whole().path_slots(top))
    }

    fn space_loss(&self) -> f64 {
        self.profile.space_loss(&self.whole())
    }

    fn whole(&self) -> Profile {
        let RawParams { leaf_level, slots, .. } = &self.tree;
        Profile::uniform(*leaf_level, slots_max(slots))
    }
}

/// Adds early evictions to the costs. Each reads and writes as much as a scheduled one.
fn add_evictions(plan: &mut VolumePlan, per_access: f64, evict_period: u32) {
    let eviction_bytes = plan.cost.written_bytes_per_access * f64::from(evict_period);
    plan.cost.read_bytes_per_access += per_access * eviction_bytes;
    plan.cost.written_bytes_per_access += per_access * eviction_bytes;
    plan.cost.trips_per_access += 2.0 * per_access;
}
