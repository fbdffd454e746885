//! Help texts, man pages and completions of a program.
//!
//! Help texts are wrapped only when they are printed, to the width of the terminal.

use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command};

use crate::error::CliError;
use crate::files::{self, OutputDir};
use crate::output;

/// Writes the man pages of `command` and its subcommands to `directory`, which is created if
/// missing.
pub fn write_man_pages(command: Command, directory: &Path) -> Result<(), CliError> {
    OutputDir::prepare(directory)?;
    clap_mangen::generate_to(command, directory)
        .map_err(|error| files::cannot_write(directory, &error))?;
    output::print(&format!("man pages written to {}", directory.display()))
}

/// Prints a completion script of `command` for a shell.
pub fn print_completions(
    mut command: Command,
    shell: clap_complete::Shell,
) -> Result<(), CliError> {
    let (name, mut script) = (command.get_name().to_owned(), Vec::new());
    clap_complete::generate(shell, &mut command, name, &mut script);
    output::print_bytes(&script)
}

/// Returns `command` with every paragraph of its help texts on one line. The paragraphs are wrapped
/// when they are printed, because only then the width of the terminal is known.
pub fn flowing(command: Command) -> Command {
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

/// Joins consecutive lines of prose. Indented lines and list items stay as they are, and so does a
/// line after a line that ends with a colon.
fn join_paragraphs(text: &str) -> String {
    let is_prose =
        |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.starts_with("- ");
    let mut joined = String::new();
    let mut before = "";
    for line in text.lines() {
        let continues = is_prose(before) && is_prose(line) && !before.ends_with(':');
        if !joined.is_empty() || !before.is_empty() {
            joined.push(if continues { ' ' } else { '\n' });
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
        let text = "Examples:\n  one\n  two\nProse that\ncontinues.\n\nMore\nof it:\nand\nthis";
        let joined = "Examples:\n  one\n  two\nProse that continues.\n\nMore of it:\nand this";
        assert_eq!(join_paragraphs(text), joined);
    }

    #[test]
    fn no_help_has_a_line_that_ends_before_it_must() {
        lines::assert_are_full(crate::args::command(), 1000);
    }
}

#[cfg(test)]
mod lines;
