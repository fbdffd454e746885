//! Descriptions of switches, for the origin of a figure.

use oblivio_sim::controller::{Initial, Pace, WriteWatermarks};
use oblivio_sim::system::Layout;

use super::switches::{Pages, Switches};

impl Switches {
    /// Describes the switches that no paper states, and the switches that differ from Table I.
    pub(super) fn words(&self) -> Vec<String> {
        let timing = [
            pace(self.pace),
            write_misses(self.fetch_on_write_miss),
            format!("fetches at once: {}", self.fetch_room),
            layout(self.layout).to_owned(),
        ];
        let all = timing.into_iter().chain(self.of_any_oram());
        all.chain(self.unusual_rules()).chain(self.unlike_table_1()).collect()
    }

    /// Describes the switches that the machine's own paper leaves open.
    pub(super) fn words_of_any_oram(&self) -> Vec<String> {
        self.of_any_oram().to_vec()
    }

    fn of_any_oram(&self) -> [String; 3] {
        let WriteWatermarks { high, low } = self.write_marks;
        [
            format!("write-backs come before reads from {high} on, down to {low}"),
            pages(self.pages).to_owned(),
            initial_words(self.initial),
        ]
    }

    /// Describes the unusual rules that the switches select.
    fn unusual_rules(&self) -> impl Iterator<Item = String> {
        let rules = [
            (self.paths_stop_retirement, "each path stops retirement until it is read"),
            (
                self.write_queue_answers,
                "reads of evictions and dummies are answered from the queue of their writes",
            ),
            (!self.shrinks_chip, "caches on the chip have the sizes of the paper's tree"),
            (self.positions_on_chip, "all positions are on the chip"),
            (self.fills_small_tree, "what fills the LLC fills the small tree of Rho too"),
        ];
        let rules = rules.into_iter().filter(|(holds, _)| *holds).map(|(_, rule)| rule.to_owned());
        rules.chain(self.rules_with_numbers())
    }

    fn rules_with_numbers(&self) -> impl Iterator<Item = String> {
        let tree_top =
            (self.tree_top != 0).then(|| format!("{:+} levels on the chip", self.tree_top));
        let switched = self
            .context_switch
            .map(|cycles| format!("the program is switched out after {cycles} cycles"));
        tree_top.into_iter().chain(switched)
    }

    fn unlike_table_1(&self) -> impl Iterator<Item = String> {
        let paper = Self::PAPER;
        let numbers = [
            ("positions in a block", self.fan_out, paper.fan_out),
            ("channels of DRAM", self.channels.into(), paper.channels.into()),
            ("KiB of LLC", self.llc_bytes >> 10, paper.llc_bytes >> 10),
            ("ways of the PLB", self.plb_ways.into(), paper.plb_ways.into()),
            (
                "blocks in a set of the S-Stash",
                self.tree_top_ways.into(),
                paper.tree_top_ways.into(),
            ),
            ("instructions in a cycle", self.width, paper.width),
            (
                "instructions that retire in a cycle",
                self.retire_width.unwrap_or(self.width),
                self.width,
            ),
            ("blocks in the stash", self.stash_blocks as u64, paper.stash_blocks as u64),
            ("lines of a block", self.block_lines, paper.block_lines),
        ];
        let unlike = numbers.into_iter().filter(|(_, here, there)| here != there);
        unlike.map(|(what, here, there)| format!("{what}: {here} and not {there}"))
    }
}

fn pace(pace: Pace) -> String {
    match pace {
        Pace::Free => "a path starts as soon as there is something to do".to_owned(),
        Pace::StartToStart(cycles) => format!("a path starts every {cycles} cycles"),
        Pace::Gap(cycles) => format!("a path starts {cycles} cycles after the one before it ended"),
        Pace::WhenIdle(cycles) => {
            format!("a dummy path starts after {cycles} cycles without a request")
        }
    }
}

fn write_misses(fetch: bool) -> String {
    let fetches = if fetch { "fetches" } else { "does not fetch" };
    format!("a write that misses the LLC {fetches} its line")
}

fn layout(layout: Layout) -> &'static str {
    match layout {
        Layout::Heap => "the tree lies in DRAM level after level",
        Layout::Subtrees => "the tree lies in DRAM in subtrees",
        Layout::Balanced => {
            "the tree lies in DRAM in subtrees, each path spread evenly over the channels"
        }
    }
}

fn pages(pages: Pages) -> &'static str {
    match pages {
        Pages::Scattered => "pages lie at random places",
        Pages::InOrder => "pages lie in the order of their first use",
        Pages::AsIs => "pages lie where their addresses say",
    }
}

/// Describes the initial contents of an ORAM.
pub(crate) fn initial_words(initial: Initial) -> String {
    match initial {
        Initial::Empty => "the tree is empty at first".to_owned(),
        Initial::Placed => "every block is placed in the tree at first".to_owned(),
        Initial::EachOnce => "every block is accessed once at first".to_owned(),
        Initial::Aged(requests) => format!(
            "every block is placed in the tree at first, and {requests} random requests follow \
             for each thousand blocks"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_omit_table_1_and_include_open_switches() {
        let words = Switches::PAPER.words().join("; ");
        for part in [
            "a path starts 250 cycles after",
            "fetches at once: 16",
            "from 40 on",
            "pages lie at random",
        ] {
            assert!(words.contains(part), "no {part} in {words}");
        }
        assert!(!words.contains(" and not "), "{words}");
        let other = Switches {
            pace: Pace::Free,
            channels: 1,
            llc_bytes: 64 << 10,
            fetch_on_write_miss: true,
            fetch_room: 1,
            ..Switches::PAPER
        };
        let words = other.words().join("; ");
        for part in [
            "as soon as there is something to do",
            "LLC fetches its line; fetches at once: 1",
            "channels of DRAM: 1 and not 4",
            "KiB of LLC: 64 and not 2048",
        ] {
            assert!(words.contains(part), "no {part} in {words}");
        }
    }

    #[test]
    fn no_two_settings_have_the_same_words() {
        let paper = || Switches::PAPER;
        let all = [
            paper(),
            Switches { pace: Pace::Free, ..paper() },
            Switches { pace: Pace::Gap(7), ..paper() },
            Switches { pace: Pace::StartToStart(7), ..paper() },
            Switches { pace: Pace::WhenIdle(7), ..paper() },
            Switches { fan_out: 32, ..paper() },
            Switches { channels: 1, ..paper() },
            Switches { llc_bytes: 1024, ..paper() },
            Switches { fetch_on_write_miss: true, ..paper() },
            Switches { width: 2, ..paper() },
            Switches { retire_width: Some(2), ..paper() },
            Switches { fetch_room: 3, ..paper() },
            Switches { paths_stop_retirement: true, ..paper() },
            Switches { write_queue_answers: true, ..paper() },
            Switches { shrinks_chip: false, ..paper() },
            Switches { layout: Layout::Heap, ..paper() },
            Switches { layout: Layout::Subtrees, ..paper() },
            Switches { initial: Initial::Empty, ..paper() },
            Switches { initial: Initial::EachOnce, ..paper() },
            Switches { initial: Initial::Aged(10), ..paper() },
            Switches { initial: Initial::Aged(20), ..paper() },
            Switches { write_marks: WriteWatermarks { high: 1, low: 0 }, ..paper() },
            Switches { pages: Pages::AsIs, ..paper() },
            Switches { pages: Pages::InOrder, ..paper() },
            Switches { plb_ways: 4, ..paper() },
            Switches { tree_top_ways: 16, ..paper() },
            Switches { stash_blocks: 300, ..paper() },
            Switches { tree_top: -2, ..paper() },
            Switches { tree_top: 2, ..paper() },
            Switches { context_switch: Some(1000), ..paper() },
            Switches { block_lines: 2, ..paper() },
            Switches { positions_on_chip: true, ..paper() },
            Switches { fills_small_tree: true, ..paper() },
        ];
        let words: std::collections::HashSet<_> = all.iter().map(Switches::words).collect();
        assert_eq!(words.len(), all.len());
    }
}
