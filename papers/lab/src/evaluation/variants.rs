//! The machines by name: IR-ORAM's Baseline, the variants that section VI compares with it, and the
//! machines of Tiny ORAM.

use std::borrow::Cow;
use std::sync::Arc;

use oblivio_sim::LINE_BYTES;
use oblivio_sim::controller::{OldCopyPolicy, OramSpec, Remap, RhoSpec};
use oblivio_sim::system::SystemSpec;

use super::setting::SwitchSetting;
use super::switches::Switches;
use super::tiny::{self, Design};
use crate::LabError;
use crate::alloc_search::{
    PAPER_PROFILES, profile_beside_ir_stash, searched_profile, sized_profile,
};
use oblivio_models::paper::{PAPER_LEAF_LEVEL, PAPER_SLOTS, PAPER_TREE_TOP_LEVELS};

/// A machine of the evaluation.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The name in manifests.
    pub name: Cow<'static, str>,
    /// The name in figures.
    pub title: Cow<'static, str>,
    pub(super) kind: VariantKind,
}

/// The definition of a machine.
#[derive(Clone, Debug)]
pub(super) enum VariantKind {
    /// Table I without an ORAM: the LLC is connected to DRAM.
    Plain,
    /// Baseline, changed by a function.
    Changed(fn(&mut SystemSpec, &mut OramSpec)),
    /// A machine of Tiny ORAM.
    Tiny(Design),
    /// A machine described by a file.
    Described(Arc<SystemSpec>),
    /// A built-in machine with changed settings.
    Set(&'static Variant, Arc<SwitchSetting>),
}

/// Machines are equal if their names and titles are equal. Machines of a manifest must also have
/// equal definitions.
impl PartialEq for Variant {
    fn eq(&self, other: &Self) -> bool {
        let is_made_alike = match (&self.kind, &other.kind) {
            (VariantKind::Described(ours), VariantKind::Described(theirs)) => ours == theirs,
            (VariantKind::Set(of, set), VariantKind::Set(others, theirs)) => {
                of == others && set == theirs
            }
            (VariantKind::Described(_) | VariantKind::Set(..), _)
            | (_, VariantKind::Described(_) | VariantKind::Set(..)) => false,
            _ => true,
        };
        is_made_alike && self.name == other.name && self.title == other.title
    }
}

/// Minimum number of levels that the client keeps by default, in trees with leaves on level 8 or
/// deeper. With fewer levels, IR-Stash has no effect.
const TREE_TOP_LEVELS_MIN: u8 = 4;

/// All built-in machines.
pub const VARIANTS: &[Variant] = &[
    variant("none", "no ORAM", VariantKind::Plain),
    oram("baseline", "Baseline", |_, _| ()),
    oram("rho", "Rho", |_, oram| rho(oram)),
    oram("rho-delayed", "Rho, delayed remapping", |system, oram| {
        rho(oram);
        delayed(system, oram);
    }),
    oram("rho-one-small", "Rho, one small path for each main one", |_, oram| {
        rho(oram);
        oram.rho.iter_mut().for_each(|rho| rho.small_per_main = 1);
    }),
    oram("rho-left-behind", "Rho, old copies left behind (no ORAM)", |_, oram| {
        rho(oram);
        oram.rho.iter_mut().for_each(|rho| rho.old_copy = OldCopyPolicy::LeftBehind);
    }),
    oram("ir-alloc-1", "IR-Alloc 1", |_, oram| alloc(oram, 1)),
    oram("ir-alloc-2", "IR-Alloc 2", |_, oram| alloc(oram, 2)),
    oram("ir-alloc-3", "IR-Alloc 3", |_, oram| alloc(oram, 3)),
    oram("ir-alloc-4", "IR-Alloc 4", |_, oram| alloc(oram, 4)),
    oram("ir-alloc-4-two", "IR-Alloc 4, two slots in place of one", |_, oram| {
        alloc(oram, 4);
        oram.slots.iter_mut().for_each(|slots| *slots = (*slots).max(2));
    }),
    oram("ir-alloc-searched", "IR-Alloc, searched", |_, oram| {
        oram.slots = searched_profile(oram.leaf_level(), oram.tree_top_levels).slots().to_vec();
    }),
    oram("ir-alloc-sized", "IR-Alloc, searched for its size", |_, oram| {
        oram.slots = sized_profile(oram.leaf_level(), oram.tree_top_levels).slots().to_vec();
    }),
    oram("ir-stash", "IR-Stash", |_, oram| stash(oram)),
    oram("ir-stash-ir-alloc-1", "IR-Stash, IR-Alloc 1", |_, oram| {
        stash(oram);
        alloc(oram, 1);
    }),
    oram("ir-stash-ir-alloc-4", "IR-Stash, IR-Alloc 4", |_, oram| {
        stash(oram);
        alloc(oram, 4);
    }),
    oram("ir-stash-ir-alloc-searched", "IR-Stash, IR-Alloc searched with it", |_, oram| {
        stash(oram);
        let profile = profile_beside_ir_stash(oram.leaf_level(), oram.tree_top_levels);
        oram.slots = profile.slots().to_vec();
    }),
    oram("plb-4", "Baseline, PLB of 4 ways", |_, oram| oram.plb_ways = 4),
    oram("ir-stash-plb-4", "IR-Stash, PLB of 4 ways", |_, oram| {
        stash(oram);
        oram.plb_ways = 4;
    }),
    oram("ir-dwb", "IR-DWB", |system, _| early_write_backs(system)),
    oram("ir-oram", "IR-ORAM", |system, oram| {
        alloc(oram, 1);
        stash(oram);
        early_write_backs(system);
    }),
    oram("llc-d", "LLC-D", delayed),
    oram("llc-d-ir-stash-ir-alloc-1", "LLC-D, IR-Stash, IR-Alloc 1", |system, oram| {
        delayed_with(system, oram, 1);
    }),
    oram("llc-d-ir-stash-ir-alloc-4", "LLC-D, IR-Stash, IR-Alloc 4", |system, oram| {
        delayed_with(system, oram, 4);
    }),
    variant(
        "tiny-recursive",
        "Recursive Path ORAM of Tiny ORAM",
        VariantKind::Tiny(Design::Recursive),
    ),
    variant("tiny-path", "Path ORAM of Tiny ORAM", VariantKind::Tiny(Design::Path)),
    variant("tiny-raw", "RAW ORAM of Tiny ORAM", VariantKind::Tiny(Design::Raw)),
];

const fn oram(
    name: &'static str,
    title: &'static str,
    build: fn(&mut SystemSpec, &mut OramSpec),
) -> Variant {
    variant(name, title, VariantKind::Changed(build))
}

const fn variant(name: &'static str, title: &'static str, kind: VariantKind) -> Variant {
    Variant { name: Cow::Borrowed(name), title: Cow::Borrowed(title), kind }
}

impl Variant {
    /// The built-in machine called `name`.
    pub fn named(name: &str) -> Option<&'static Self> {
        VARIANTS.iter().find(|variant| variant.name == name)
    }

    /// The level of the leaves of this machine's tree, in an evaluation whose trees have leaves on
    /// `leaf_level`.
    pub fn leaf_level(&self, leaf_level: u8) -> u8 {
        match &self.kind {
            VariantKind::Plain | VariantKind::Changed(_) => leaf_level,
            VariantKind::Tiny(_) => tiny::leaf_level(leaf_level),
            VariantKind::Described(spec) => {
                spec.oram.as_ref().map_or(leaf_level, OramSpec::leaf_level)
            }
            VariantKind::Set(of, _) => of.leaf_level(leaf_level),
        }
    }

    /// The level of the leaves in the machine's paper, or in its file.
    pub fn paper_leaf_level(&self) -> u8 {
        match &self.kind {
            VariantKind::Plain | VariantKind::Changed(_) => PAPER_LEAF_LEVEL,
            VariantKind::Tiny(_) => tiny::PAPER_LEAF_LEVEL,
            VariantKind::Described(_) => self.leaf_level(PAPER_LEAF_LEVEL),
            VariantKind::Set(of, _) => of.paper_leaf_level(),
        }
    }

    /// The switches of this machine: those of the evaluation, with the values that the machine
    /// fixes.
    pub fn switches(&self, switches: &Switches) -> Switches {
        match &self.kind {
            VariantKind::Plain | VariantKind::Changed(_) => switches.clone(),
            VariantKind::Tiny(design) => design.switches(switches),
            // The placement of pages and the untimed warm-up are not part of the machine.
            VariantKind::Described(spec) => Switches {
                llc_bytes: spec.processor.llc_bytes,
                pages: switches.pages,
                fills_small_tree: switches.fills_small_tree,
                ..Switches::PAPER
            },
            VariantKind::Set(of, set) => of.switches(&set.apply_to(switches)),
        }
    }

    /// The machine as described in a file, for a variant that comes from a file.
    pub(super) fn described(&self) -> Option<&SystemSpec> {
        match &self.kind {
            VariantKind::Described(spec) => Some(&**spec),
            VariantKind::Plain
            | VariantKind::Changed(_)
            | VariantKind::Tiny(_)
            | VariantKind::Set(..) => None,
        }
    }

    /// Describes the switches of the machine, for readers of figures.
    pub(super) fn words(&self, switches: &Switches) -> Vec<String> {
        match &self.kind {
            VariantKind::Plain | VariantKind::Changed(_) => switches.words(),
            VariantKind::Tiny(_) => switches.words_of_any_oram(),
            VariantKind::Described(_) => vec![format!("{} as its file says", self.title)],
            VariantKind::Set(of, set) => of.words(&set.apply_to(switches)),
        }
    }

    /// The specification of the machine, with leaves on the level that [`Self::leaf_level`] gives
    /// for `leaf_level`. IR-ORAM's level is 24. If `switches.shrinks_chip` is set, on-chip caches
    /// shrink with the tree. The LLC always has the size in `switches`.
    ///
    /// # Errors
    /// [`LabError::Plan`] if `switches.tree_top` is out of range for the tree, and
    /// [`LabError::Simulation`] if the built-in description of DRAM is invalid.
    pub fn spec(&self, leaf_level: u8, switches: &Switches) -> Result<SystemSpec, LabError> {
        let changed = match &self.kind {
            VariantKind::Plain => None,
            VariantKind::Changed(change) => Some(change),
            VariantKind::Tiny(design) => return design.spec(self.leaf_level(leaf_level), switches),
            VariantKind::Described(spec) => return Ok(SystemSpec::clone(spec)),
            VariantKind::Set(of, _) => return of.spec(leaf_level, switches),
        };
        let mut system = SystemSpec::paper(leaf_level)?;
        system.channels = switches.channels;
        // Keep the total memory, so that the tree fits.
        system.dram.rows *= (Switches::PAPER.channels / switches.channels.max(1)).max(1);
        system.layout = switches.layout;
        system.controller.pace = switches.pace;
        system.controller.write_marks = switches.write_marks;
        system.controller.context_switch = switches.context_switch;
        system.processor.llc_bytes = switches.llc_bytes;
        // An LLC smaller than one set becomes a set of fewer lines.
        let lines = (switches.llc_bytes / LINE_BYTES).max(1) as usize;
        system.processor.llc_ways = system.processor.llc_ways.min(lines);
        system.processor.fetch_on_write_miss = switches.fetch_on_write_miss;
        system.processor.width = switches.width;
        system.processor.retire_width = switches.retire_width;
        system.processor.fetch_room = switches.fetch_room;
        system.processor.paths_stop_retirement = switches.paths_stop_retirement;
        system.controller.write_queue_answers = switches.write_queue_answers;
        let oram = changed.map(|change| {
            let mut oram = baseline(leaf_level, switches)?;
            change(&mut system, &mut oram);
            oram.tree_top_ways = oram.tree_top_ways.map(|_| switches.tree_top_ways);
            Ok::<_, LabError>(oram)
        });
        system.oram = oram.transpose()?;
        Ok(system)
    }
}

/// Baseline's ORAM. Longer blocks make a tree of fewer levels. If on-chip caches do not shrink with
/// the tree, they have the sizes for the paper's tree with blocks of this length, so they hold
/// fewer but longer blocks. A position takes the same bytes in a block of any size, so a longer
/// block holds more positions.
fn baseline(leaf_level: u8, switches: &Switches) -> Result<OramSpec, LabError> {
    let Switches { block_lines, .. } = *switches;
    let paper = OramSpec::paper(leaf_level);
    let chip = match switches.shrinks_chip {
        true => paper.clone(),
        false => OramSpec::paper(PAPER_LEAF_LEVEL - levels_saved(block_lines)),
    };
    let tree_top_levels = chip.tree_top_levels.max(TREE_TOP_LEVELS_MIN).min(leaf_level / 2);
    let on_chip = tree_top_levels.checked_add_signed(switches.tree_top);
    let on_chip = on_chip.filter(|levels| (1..=leaf_level).contains(levels)).ok_or_else(|| {
        LabError::Plan(format!(
            "tree-top = {}: the client keeps {tree_top_levels} of {} levels by default, and must \
             keep at least the root but not the leaves: choose another tree-top, or other --levels",
            switches.tree_top,
            leaf_level + 1
        ))
    })?;
    // A deeper tree keeps two levels of position map in the tree, like all others.
    let deeper = (leaf_level + levels_saved(block_lines)).saturating_sub(PAPER_LEAF_LEVEL);
    let client_entries = (chip.client_entries_max * block_lines) << deeper;
    Ok(OramSpec {
        plb_blocks: chip.plb_blocks,
        fan_out: switches.fan_out.saturating_mul(block_lines),
        initial: switches.initial,
        stash_blocks_max: switches.stash_blocks,
        plb_ways: switches.plb_ways.into(),
        tree_top_levels: on_chip,
        client_entries_max: match switches.positions_on_chip {
            true => paper.data_blocks,
            false => client_entries,
        },
        block_lines,
        ..paper
    })
}

/// The number of levels that a tree loses because its blocks have `block_lines` lines.
pub(super) fn levels_saved(block_lines: u64) -> u8 {
    block_lines.max(1).ilog2() as u8
}

/// Adds Rho's small tree. It has 19 levels (L = 19) with Z = 2; the main tree has 25 with Z = 4
/// (section VI). So the small tree has a 64th of the main tree's leaves, and one block per leaf.
fn rho(oram: &mut OramSpec) {
    let blocks = oram.data_blocks >> 8;
    oram.rho = Some(RhoSpec { blocks, small_per_main: 2, old_copy: OldCopyPolicy::TakenOut });
}

/// Applies the bucket sizes of IR-Alloc `number`, aligned at the leaves.
fn alloc(oram: &mut OramSpec, number: u8) {
    let paper = PAPER_PROFILES.iter().find(|profile| profile.number == number);
    let here = paper.map(|paper| {
        let whole = paper.scaled_to(PAPER_LEAF_LEVEL);
        let (leaf_level, top) = (oram.leaf_level(), oram.tree_top_levels);
        whole.carried(PAPER_TREE_TOP_LEVELS, PAPER_SLOTS, leaf_level, top)
    });
    oram.slots = here.map_or_else(|| oram.slots.clone(), |profile| profile.slots().to_vec());
}

fn stash(oram: &mut OramSpec) {
    oram.tree_top_ways = Some(Switches::PAPER.tree_top_ways);
}

fn early_write_backs(system: &mut SystemSpec) {
    system.controller.early_write_backs = true;
}

/// Applies LLC-D (delayed remapping). A block in the LLC is not in the ORAM, so a write that misses
/// must fetch it.
fn delayed(system: &mut SystemSpec, oram: &mut OramSpec) {
    system.processor.fetch_on_write_miss = true;
    oram.remap = Remap::Delayed;
}

/// Applies LLC-D, IR-Stash and IR-Alloc `number`.
fn delayed_with(system: &mut SystemSpec, oram: &mut OramSpec, number: u8) {
    delayed(system, oram);
    stash(oram);
    alloc(oram, number);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn oram(name: &str, leaf_level: u8) -> OramSpec {
        let spec = Variant::named(name).unwrap().spec(leaf_level, &Switches::PAPER).unwrap();
        spec.oram.unwrap()
    }

    #[test]
    fn baseline_is_table_1() {
        let baseline = Variant::named("baseline").unwrap().spec(24, &Switches::PAPER).unwrap();
        assert_eq!(baseline, SystemSpec::paper(24).unwrap());
        assert_eq!(oram("rho", 24).rho.unwrap().blocks, 1 << 18);
    }

    #[test]
    fn a_tree_fits_the_memory_of_any_number_of_channels() {
        for channels in [1, 2, 4, 8] {
            let switches = Switches { channels, ..Switches::PAPER };
            Variant::named("baseline").unwrap().spec(24, &switches).unwrap().check().unwrap();
        }
    }

    #[test]
    fn tree_top_sets_the_levels_that_the_client_keeps() {
        let levels = |tree_top| {
            let switches = Switches { tree_top, ..Switches::PAPER };
            let spec = Variant::named("ir-stash").unwrap().spec(24, &switches);
            spec.map(|spec| spec.oram.unwrap().tree_top_levels)
        };
        assert_eq!([-9, -2, 0, 2, 14].map(|by| levels(by).unwrap()), [1, 8, 10, 12, 24]);
        for tree_top in [-128, -10, 15, 127] {
            let error = levels(tree_top).unwrap_err().to_string();
            assert!(error.starts_with(&format!("tree-top = {tree_top}: ")), "{error}");
        }
    }

    #[test]
    fn paths_are_as_long_as_the_paper_says() {
        let in_memory =
            |oram: OramSpec| -> u16 { oram.slots.iter().skip(oram.tree_top_levels.into()).sum() };
        for (name, slots) in
            [("baseline", 60), ("ir-alloc-1", 43), ("ir-alloc-2", 42), ("ir-alloc-3", 37)]
        {
            assert_eq!(in_memory(oram(name, 24)), slots, "{name}");
        }
        assert_eq!(in_memory(oram("ir-alloc-4", 24)), 36);
        assert_eq!(in_memory(oram("ir-oram", 24)), 43);
        assert_eq!(in_memory(oram("ir-alloc-searched", 24)), 43);
        assert_eq!(in_memory(oram("llc-d-ir-stash-ir-alloc-1", 24)), 43);
        assert_eq!(in_memory(oram("llc-d-ir-stash-ir-alloc-4", 18)), 36);
        // The client keeps the same levels as Baseline, in trees of every size.
        for leaf_level in [12, 18, 25] {
            let oram = oram("ir-alloc-4", leaf_level);
            assert!(oram.slots[..oram.tree_top_levels.into()].iter().all(|slots| *slots == 4));
        }
    }

    #[test]
    fn each_machine_has_one_name() {
        for variant in VARIANTS {
            let same = VARIANTS
                .iter()
                .filter(|other| other.name == variant.name || other.title == variant.title);
            assert_eq!(same.count(), 1, "{}", variant.name);
        }
    }
}
