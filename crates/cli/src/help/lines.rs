//! Checks of a program's help texts.

use clap::Command;

/// A command and all its subcommands, recursively.
fn all(command: Command) -> Vec<Command> {
    let below: Vec<_> = command.get_subcommands().cloned().flat_map(all).collect();
    [vec![command], below].concat()
}

/// Number of spaces at the beginning of a line.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Checks at several widths that every line of prose in all help texts is as full as possible: the
/// first word of the next line would not fit. Also checks that this compared more than `pairs_min`
/// pairs of lines.
pub(crate) fn assert_are_full(command: Command, pairs_min: usize) {
    let mut pairs = 0;
    for command in all(command) {
        for width in [70, 80, 100, 140] {
            let mut command = command.clone().term_width(width).disable_help_subcommand(true);
            let help = command.render_long_help().to_string();
            let lines: Vec<_> = help.lines().collect();
            for pair in lines.windows(2) {
                let [line, next] = pair else { continue };
                // Lists and examples have a small indentation.
                let is_prose =
                    |line: &str| !line.trim().is_empty() && !(1..6).contains(&indent(line));
                let is_item = next.trim_start().starts_with(['-', '[']);
                if !is_prose(line) || !is_prose(next) || indent(line) != indent(next) || is_item {
                    continue;
                }
                let word = next.split_whitespace().next().unwrap_or("");
                let would_fit = line.chars().count() + 1 + word.chars().count() <= width;
                let name = command.get_name();
                assert!(!would_fit || line.ends_with(':'), "{name}, {width}: {line:?}, {next:?}");
                pairs += 1;
            }
        }
    }
    assert!(pairs > pairs_min, "{pairs}");
}
