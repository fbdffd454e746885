//! Finds switches on the command line that have no effect, and names the switches in messages about
//! parameters that contradict each other.

use oblivio_lab::evaluation::Switches;

/// A function that copies the value of a switch from the second set to the first.
type Take = fn(&mut Switches, &Switches);

/// All switches: the name on the command line, and the function that copies the value.
const SWITCHES: [(&str, Take); 18] = [
    ("--pace", |to, from| to.pace = from.pace),
    ("--fan-out", |to, from| to.fan_out = from.fan_out),
    ("--channels", |to, from| to.channels = from.channels),
    ("--llc-kib", |to, from| to.llc_bytes = from.llc_bytes),
    ("--fetch-on-write-miss", |to, from| to.fetch_on_write_miss = from.fetch_on_write_miss),
    ("--layout", |to, from| to.layout = from.layout),
    ("--initial", |to, from| to.initial = from.initial),
    ("--fetch-room", |to, from| to.fetch_room = from.fetch_room),
    ("--paths-stop-retirement", |to, from| to.paths_stop_retirement = from.paths_stop_retirement),
    ("--write-queue-answers", |to, from| to.write_queue_answers = from.write_queue_answers),
    ("--plb-ways", |to, from| to.plb_ways = from.plb_ways),
    ("--tree-top-ways", |to, from| to.tree_top_ways = from.tree_top_ways),
    ("--stash-blocks", |to, from| to.stash_blocks = from.stash_blocks),
    ("--whole-chip", |to, from| to.shrinks_chip = from.shrinks_chip),
    ("--context-switch", |to, from| to.context_switch = from.context_switch),
    ("--write-marks", |to, from| to.write_marks = from.write_marks),
    ("--pages", |to, from| to.pages = from.pages),
    ("--fill-small-tree", |to, from| to.fills_small_tree = from.fills_small_tree),
];

/// Returns the switches in `typed` that differ from `default` but do not change the return value of
/// `made`.
pub(crate) fn without_effect<T: PartialEq>(
    typed: &Switches,
    default: &Switches,
    made: impl Fn(&Switches) -> T,
) -> Vec<&'static str> {
    let with = made(typed);
    let changes_nothing = |take: Take| {
        let mut without = typed.clone();
        take(&mut without, default);
        without != *typed && made(&without) == with
    };
    let idle = SWITCHES.into_iter().filter(|(_, take)| changes_nothing(*take));
    idle.map(|(name, _)| name).collect()
}

/// Keys in the description of a machine, and the switches that set them.
const KEYS: [(&str, &str); 8] = [
    ("fan_out", "--fan-out"),
    ("fetch_room", "--fetch-room"),
    ("fetch_on_write_miss", "--fetch-on-write-miss"),
    ("plb_ways", "--plb-ways"),
    ("tree_top_ways", "--tree-top-ways"),
    ("stash_blocks_max", "--stash-blocks"),
    ("context_switch", "--context-switch"),
    ("llc_bytes", "--llc-kib"),
];

/// Replaces the keys in a message of the simulator with the switches that set them.
pub(crate) fn in_switches(message: &str) -> String {
    let is_of_key = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let mut text = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(is_of_key) {
        let (before, from) = rest.split_at(start);
        let (word, after) =
            from.split_at(from.find(|letter| !is_of_key(letter)).unwrap_or(from.len()));
        let switch = KEYS.iter().find(|(key, _)| *key == word).map_or(word, |(_, switch)| switch);
        text.extend([before, switch]);
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Args, Command};
    use oblivio_sim::controller::Pace;

    use super::super::{RequestArgs, SwitchArgs};
    use super::*;

    /// Checks that the list has all switches. A missing switch would never be reported as without
    /// effect.
    #[test]
    fn every_switch_is_known() {
        let command = RequestArgs::augment_args(SwitchArgs::augment_args(Command::new("test")));
        let typed = command.get_arguments().filter_map(Arg::get_long);
        let typed: Vec<_> = typed.map(|name| format!("--{name}")).collect();
        assert_eq!(typed, SWITCHES.map(|(name, _)| name));
        for (_, switch) in KEYS {
            assert!(typed.iter().any(|name| name == switch), "{switch}");
        }
    }

    #[test]
    fn what_changes_nothing_is_named_and_what_is_as_usual_is_not() {
        let typed = Switches { pace: Pace::Free, plb_ways: 4, channels: 1, ..Switches::PAPER };
        let made = |switches: &Switches| (switches.channels, switches.fan_out);
        assert_eq!(without_effect(&typed, &Switches::PAPER, made), ["--pace", "--plb-ways"]);
        assert_eq!(without_effect(&typed, &typed, made), [""; 0]);
    }

    #[test]
    fn keys_become_switches_and_other_words_stay() {
        for (message, typed) in [
            ("set fetch_room to 1, or", "set --fetch-room to 1, or"),
            ("plb_ways = 3: must divide the 16", "--plb-ways = 3: must divide the 16"),
            ("leave context_switch out", "leave --context-switch out"),
            ("my_fan_out", "my_fan_out"),
            ("", ""),
        ] {
            assert_eq!(in_switches(message), typed);
        }
    }
}
