//! Help texts are wrapped once: by the terminal that shows them.

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use super::Cli;

/// The command line, as it is understood and described. In its help, each paragraph is one line, however it is written in the
/// source: whoever prints it knows how wide it can be.
pub(crate) fn command() -> Command {
    flowing(Cli::command())
}

fn flowing(command: Command) -> Command {
    let after = command.get_after_help().map(joined);
    let command = match after {
        Some(after) => command.after_help(after),
        None => command,
    };
    command.mut_args(flowing_arg).mut_subcommands(flowing)
}

fn flowing_arg(arg: Arg) -> Arg {
    let help = arg.get_help().map(joined);
    let long = arg.get_long_help().map(joined);
    let arg = match help {
        Some(help) => arg.help(help),
        None => arg,
    };
    match long {
        Some(long) => arg.long_help(long),
        None => arg,
    }
}

fn joined(text: &StyledStr) -> String {
    join_paragraphs(&text.to_string())
}

/// Lines of prose that follow each other become one. What is indented stays as it is, and so does what follows a colon.
fn join_paragraphs(text: &str) -> String {
    let is_prose =
        |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.starts_with("- ");
    let mut joined = String::new();
    let mut before = "";
    for line in text.lines() {
        let goes_on = is_prose(before) && is_prose(line) && !before.ends_with(':');
        if !joined.is_empty() || !before.is_empty() {
            joined.push(if goes_on { ' ' } else { '\n' });
        }
        joined += line;
        before = line;
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_are_joined_and_examples_are_not() {
        let text = "Examples:\n  one\n  two\nProse that\ngoes on.\n\nMore\nof it:\nand\nthis";
        let joined = "Examples:\n  one\n  two\nProse that goes on.\n\nMore of it:\nand this";
        assert_eq!(join_paragraphs(text), joined);
    }

    /// All commands, each with its subcommands.
    fn all(command: Command) -> Vec<Command> {
        let below: Vec<_> = command.get_subcommands().cloned().flat_map(all).collect();
        [vec![command], below].concat()
    }

    /// Spaces at the beginning of a line.
    fn indent(line: &str) -> usize {
        line.len() - line.trim_start().len()
    }

    #[test]
    fn no_help_has_a_line_that_ends_before_it_must() {
        let mut pairs = 0;
        for command in all(command()) {
            for width in [70, 80, 100, 140] {
                let mut command = command.clone().term_width(width).disable_help_subcommand(true);
                let help = command.render_long_help().to_string();
                let lines: Vec<_> = help.lines().collect();
                for pair in lines.windows(2) {
                    let [line, next] = pair else { continue };
                    // Lists and examples are indented by a little.
                    let is_prose =
                        |line: &str| !line.trim().is_empty() && !(1..6).contains(&indent(line));
                    let is_item = next.trim_start().starts_with(['-', '[']);
                    if !is_prose(line) || !is_prose(next) || indent(line) != indent(next) || is_item
                    {
                        continue;
                    }
                    let word = next.split_whitespace().next().unwrap_or("");
                    let would_fit = line.chars().count() + 1 + word.chars().count() <= width;
                    let name = command.get_name();
                    assert!(
                        !would_fit || line.ends_with(':'),
                        "{name}, {width}: {line:?}, {next:?}"
                    );
                    pairs += 1;
                }
            }
        }
        assert!(pairs > 1000, "{pairs}");
    }
}
