//! Settings of a figure that differ from the evaluation: parameters that the paper leaves open or
//! varies.

use oblivio_sim::LINE_BYTES;
use oblivio_sim::controller::{Initial, Pace, WriteWatermarks};
use oblivio_sim::system::Layout;
use serde::Deserialize;

use super::named_settings;
use super::plan::EvaluationPlan;
use super::switches::{Pages, Switches};

/// Values for some of the [`Switches`], the size of the tree, and the length of the warm-up. The
/// evaluation provides missing values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct SwitchSetting {
    /// The name in figures. If it is missing, figures show the size of the protected space.
    pub name: Option<String>,
    /// A named setting that provides the values that this setting lacks.
    #[serde(deserialize_with = "named_settings::by_name")]
    pub like: Option<Box<SwitchSetting>>,
    /// The level of the leaves, relative to the evaluation or to `like`.
    pub levels: i8,
    /// A factor for the number of warm-up records.
    pub warm_ups: Option<u32>,
    /// The number of warm-up records, instead of the evaluation's.
    pub warm_up_records: Option<u64>,
    /// The rule for when paths start.
    pub pace: Option<Pace>,
    /// Positions in a position-map block.
    pub fan_out: Option<u64>,
    /// Number of DRAM channels.
    pub channels: Option<u32>,
    /// Number of times that the LLC is halved, in addition to the halvings of `like`.
    pub llc_halvings: u32,
    /// Whether a write that misses the LLC fetches its line first.
    pub fetch_on_write_miss: Option<bool>,
    /// Whether the simulated LLC is also used for programs whose traces were already recorded
    /// behind an LLC.
    pub keeps_llc: bool,
    /// The layout of trees in DRAM.
    pub layout: Option<Layout>,
    /// The contents of the ORAM before the first request.
    pub initial: Option<Initial>,
    /// Instructions fetched per cycle. Also the number retired, if `retire_width` is missing.
    pub width: Option<u64>,
    /// Instructions retired per cycle.
    pub retire_width: Option<u64>,
    /// Maximum number of lines that the processor may have in flight.
    pub fetch_room: Option<u64>,
    /// Whether each path stops retirement until it is read.
    pub paths_stop_retirement: Option<bool>,
    /// Whether DRAM answers the reads of evictions and dummies from its write queue.
    pub write_queue_answers: Option<bool>,
    /// Numbers of waiting write-backs at which write-backs gain or lose priority over reads.
    pub write_marks: Option<WriteWatermarks>,
    /// The placement of the programs' pages.
    pub pages: Option<Pages>,
    /// Ways of the PLB (the cache of position-map blocks), per level of the position map.
    pub plb_ways: Option<u16>,
    /// Blocks in a set of the S-Stash, IR-Stash's tree top on the client.
    pub tree_top_ways: Option<u16>,
    /// Stash bound, in blocks.
    pub stash_blocks: Option<usize>,
    /// Whether on-chip caches other than the LLC shrink with the tree.
    pub shrinks_chip: Option<bool>,
    /// The number of levels that the client keeps, minus the machine's default.
    pub tree_top: Option<i8>,
    /// The number of cycles after which the program is switched out.
    pub context_switch: Option<u64>,
    /// Lines per block, a power of two. With 2^*n* lines, the tree has *n* fewer levels; the
    /// protected space keeps its size.
    pub block_lines: Option<u64>,
    /// Whether all positions are on the chip, and no position map is in the tree.
    pub positions_on_chip: Option<bool>,
    /// Whether the records that fill the LLC also fill the small tree of Rho.
    pub fills_small_tree: Option<bool>,
}

impl SwitchSetting {
    /// Whether this setting only changes properties of a machine.
    pub(super) fn is_of_machine(&self) -> bool {
        let of_machine = Self {
            name: None,
            levels: 0,
            warm_ups: None,
            warm_up_records: None,
            keeps_llc: false,
            ..self.clone()
        };
        // The name of `like` does not matter.
        let like = self.like.as_ref().map(|like| Self { name: None, ..Self::clone(like) });
        of_machine == *self && like.is_none_or(|like| like.is_of_machine())
    }

    /// Refuses values that no machine can have, even if a machine does not use them.
    pub(super) fn check(&self) -> Result<(), String> {
        let none = [
            (
                self.tree_top_ways == Some(0),
                "tree-top-ways = 0: a set of the S-Stash has at least one block",
            ),
            (
                self.context_switch == Some(0),
                "context-switch = 0: a program that never runs is never switched out; remove it \
                 for a program that runs to its end",
            ),
        ];
        let wrong = none.into_iter().find(|(is_none, _)| *is_none);
        wrong.map_or(Ok(()), |(_, message)| Err(message.to_owned()))
    }

    /// The level of the leaves relative to the evaluation, including the levels from `like`.
    pub(super) fn all_levels(&self) -> i8 {
        self.levels.saturating_add(self.like.as_ref().map_or(0, |like| like.all_levels()))
    }

    /// Whether the simulated LLC is also used for programs whose traces were already recorded
    /// behind an LLC, by this setting or by `like`.
    pub(super) fn has_llc_for_all(&self) -> bool {
        self.keeps_llc || self.like.as_ref().is_some_and(|like| like.has_llc_for_all())
    }

    /// The factor for the number of warm-up records.
    pub(super) fn warm_up_times(&self) -> u32 {
        let like = || self.like.as_ref().map(|like| like.warm_up_times());
        self.warm_ups.or_else(like).unwrap_or(1)
    }

    /// The number of warm-up records, if it is set and not replaced by a factor.
    pub(super) fn own_warm_up_records(&self) -> Option<u64> {
        let like = self.like.as_ref().filter(|_| self.warm_ups.is_none());
        self.warm_up_records.or_else(|| like.and_then(|like| like.own_warm_up_records()))
    }

    /// Returns the switches of an evaluation with the values of this setting.
    pub(super) fn apply_to(&self, switches: &Switches) -> Switches {
        let liked = self.like.as_ref().map(|like| like.apply_to(switches));
        let switches = liked.as_ref().unwrap_or(switches);
        Switches {
            pace: self.pace.unwrap_or(switches.pace),
            fan_out: self.fan_out.unwrap_or(switches.fan_out),
            channels: self.channels.unwrap_or(switches.channels),
            llc_bytes: switches.llc_bytes.checked_shr(self.llc_halvings).unwrap_or(0),
            fetch_on_write_miss: self.fetch_on_write_miss.unwrap_or(switches.fetch_on_write_miss),
            layout: self.layout.unwrap_or(switches.layout),
            initial: self.initial.unwrap_or(switches.initial),
            width: self.width.unwrap_or(switches.width),
            retire_width: self.retire_width.or(switches.retire_width),
            fetch_room: self.fetch_room.unwrap_or(switches.fetch_room),
            paths_stop_retirement: self
                .paths_stop_retirement
                .unwrap_or(switches.paths_stop_retirement),
            write_queue_answers: self.write_queue_answers.unwrap_or(switches.write_queue_answers),
            write_marks: self.write_marks.unwrap_or(switches.write_marks),
            pages: self.pages.unwrap_or(switches.pages),
            plb_ways: self.plb_ways.unwrap_or(switches.plb_ways),
            tree_top_ways: self.tree_top_ways.unwrap_or(switches.tree_top_ways),
            stash_blocks: self.stash_blocks.unwrap_or(switches.stash_blocks),
            shrinks_chip: self.shrinks_chip.unwrap_or(switches.shrinks_chip),
            tree_top: self.tree_top.unwrap_or(switches.tree_top),
            context_switch: self.context_switch.or(switches.context_switch),
            block_lines: self.block_lines.unwrap_or(switches.block_lines),
            positions_on_chip: self.positions_on_chip.unwrap_or(switches.positions_on_chip),
            fills_small_tree: self.fills_small_tree.unwrap_or(switches.fills_small_tree),
        }
    }

    /// The label under the bars, for a tree with leaves on `leaf_level`.
    pub(super) fn label(&self, leaf_level: u8) -> String {
        let size = || bytes(EvaluationPlan::lines(leaf_level) * LINE_BYTES);
        self.name.clone().unwrap_or_else(size)
    }
}

fn bytes(bytes: u64) -> String {
    match bytes >> 30 {
        0 => format!("{} MiB", bytes >> 20),
        gib => format!("{gib} GiB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_those_of_the_evaluation() {
        assert_eq!(SwitchSetting::default().apply_to(&Switches::PAPER), Switches::PAPER);
        let one = SwitchSetting {
            channels: Some(1),
            llc_halvings: 5,
            initial: Some(Initial::Empty),
            ..SwitchSetting::default()
        };
        let expected = Switches {
            channels: 1,
            llc_bytes: 64 << 10,
            initial: Initial::Empty,
            ..Switches::PAPER
        };
        assert_eq!(one.apply_to(&Switches::PAPER), expected);
    }

    #[test]
    fn own_values_replace_those_of_like() {
        let setting = |text: &str| toml::from_str::<SwitchSetting>(text).unwrap();
        let like = setting("like = \"two-levels-lower\"\nlevels = -1\nchannels = 2\nplb-ways = 4");
        let expected = Switches {
            pace: Pace::Free,
            fetch_on_write_miss: true,
            fetch_room: 1,
            write_marks: WriteWatermarks { high: 1, low: 0 },
            pages: Pages::AsIs,
            shrinks_chip: false,
            channels: 2,
            plb_ways: 4,
            ..Switches::PAPER
        };
        assert_eq!((like.apply_to(&Switches::PAPER), like.all_levels()), (expected, -3));
        let back = setting("like = \"one-channel\"\nfetch-on-write-miss = false\nchannels = 4");
        let back = back.apply_to(&Switches::PAPER);
        assert!(!back.fetch_on_write_miss && back.channels == 4 && back.fetch_room == 1);
        // The same rule holds for warm-up records and factors.
        let base = SwitchSetting { warm_ups: Some(3), llc_halvings: 2, ..SwitchSetting::default() };
        let like =
            SwitchSetting { like: Some(base.into()), llc_halvings: 1, ..SwitchSetting::default() };
        assert_eq!((like.warm_up_times(), like.own_warm_up_records()), (3, None));
        assert_eq!(like.apply_to(&Switches::PAPER).llc_bytes, Switches::PAPER.llc_bytes >> 3);
        let records = SwitchSetting { warm_up_records: Some(9), ..like };
        assert_eq!(records.own_warm_up_records(), Some(9));
        let times = SwitchSetting {
            like: Some(records.into()),
            warm_ups: Some(2),
            ..SwitchSetting::default()
        };
        assert_eq!((times.warm_up_times(), times.own_warm_up_records()), (2, None));
    }

    #[test]
    fn a_machine_has_no_size_and_no_warm_up() {
        let is_of_machine =
            |text: &str| toml::from_str::<SwitchSetting>(text).unwrap().is_of_machine();
        assert!(is_of_machine("like = \"one-channel\"\nplb-ways = 4"));
        for text in [
            "levels = 1",
            "warm-ups = 2",
            "name = \"x\"",
            "keeps-llc = true",
            "like = \"two-levels-lower\"",
        ] {
            assert!(!is_of_machine(text), "{text}");
        }
    }

    #[test]
    fn impossible_machines_are_refused() {
        let check = |text: &str| toml::from_str::<SwitchSetting>(text).unwrap().check();
        assert_eq!(check("tree-top-ways = 1\ncontext-switch = 1"), Ok(()));
        for key in ["tree-top-ways", "context-switch"] {
            let message = check(&format!("{key} = 0")).unwrap_err();
            assert!(message.starts_with(&format!("{key} = 0: ")), "{message}");
        }
    }

    #[test]
    fn a_setting_without_a_name_is_labelled_by_size() {
        let named =
            SwitchSetting { name: Some("one channel".to_owned()), ..SwitchSetting::default() };
        assert_eq!(named.label(24), "one channel");
        assert_eq!(
            [24, 17].map(|level| SwitchSetting::default().label(level)),
            ["4 GiB", "32 MiB"]
        );
    }
}
