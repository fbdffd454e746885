//! A shell session that types the commands of a page, in an empty folder that is also the home
//! directory.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

use super::blocks::Step;
use crate::common::terminal::Terminal;

/// The passphrase typed at every prompt.
const PASSPHRASE: &str = "Vollmond-Kaktus-7193";

/// Time limit of a session in seconds. It is longer than any page takes, even on a busy machine.
const SECONDS_MAX: &str = "300";

/// Encloses the exit code that the shell prints after each step. No program prints this character.
const MARK: char = '\u{1e}';

/// The beginnings of all prompts for a passphrase.
const PROMPTS: [&str; 3] = ["Passphrase: ", "New passphrase: ", "The same again: "];

/// Runs `steps` in one shell, and compares their output with the page. A failing step fails the
/// test, unless the next step prints its exit code. `files` exist from the beginning.
pub(super) fn run(page: &str, steps: &[Step], files: &[(&str, &[u8])]) {
    let dir = TempDir::new().unwrap();
    for (name, contents) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    make_another_volume(dir.path());
    let Outcome { ended, rest, terminal } = type_in(dir.path(), steps);
    for (number, (step, (text, code))) in steps.iter().zip(&ended).enumerate() {
        let command = &step.command;
        let code_is_shown =
            steps.get(number + 1).is_some_and(|next| next.command.starts_with("echo $?"));
        assert!(*code == 0 || code_is_shown, "{page}: {command}ends with {code}:\n{text}");
        if let Some(prints) = &step.prints {
            let expected: Vec<&str> = prints.lines().filter(|line| !is_prompt(line)).collect();
            let printed: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            assert!(fits(&expected, &printed), "{page}: {command}prints\n{text}");
        }
    }
    let next = steps.get(ended.len()).map_or("", |step| &step.command);
    assert_eq!(ended.len(), steps.len(), "{page}: this failed:\n{next}{rest}\n{terminal}");
    if steps.iter().all(|step| step.prints.is_some()) {
        let shown =
            steps.iter().flat_map(|step| step.prints.iter().flat_map(|prints| prints.lines()));
        let shown: Vec<&str> = shown.filter(|line| is_prompt(line)).map(str::trim).collect();
        let prompts: Vec<&str> =
            terminal.lines().filter(|line| is_prompt(line)).map(str::trim).collect();
        assert_eq!(shown, prompts, "{page}: the passphrase prompts differ");
    }
}

/// Creates another volume, whose client's directory is also below the home directory. The commands
/// of the page must still work, because a reader may already have volumes.
fn make_another_volume(home: &Path) {
    let folder = home.join(".other");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("key"), [7; 32]).unwrap();
    let mut create = Command::new(env!("CARGO_BIN_EXE_oblivio"));
    create.args(["create", "other.obl", "--size", "64K", "--key-file", "key"]);
    create.current_dir(&folder).env("HOME", home).env_remove("XDG_STATE_HOME");
    let made = create.output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// The result of a session.
struct Outcome {
    /// The output and exit code of each completed step.
    ended: Vec<(String, i32)>,
    /// The output of the step after the completed ones.
    rest: String,
    /// The text that the terminal showed: prompts. All other output goes to a file.
    terminal: String,
}

fn type_in(dir: &Path, steps: &[Step]) -> Outcome {
    let mut script = format!("exec > '{}' 2>&1\n", dir.join(".printed").display());
    for step in steps {
        let stops = if step.prints.is_none() { ("set -e\n", "set +e\n") } else { ("", "") };
        script.push_str(&format!("{}{}code=$?; {}", stops.0, step.command, stops.1));
        script.push_str(&format!("printf '{MARK}%s{MARK}' $code; (exit $code)\n"));
    }
    fs::write(dir.join(".script"), script).unwrap();
    let mut shell = Command::new("timeout");
    shell.args(["--foreground", SECONDS_MAX, "bash", ".script"]).current_dir(dir);
    shell.env("HOME", dir).env("PATH", path());
    let terminal = Terminal::new();
    let mut child = terminal.run(&shell).env_remove("XDG_STATE_HOME").spawn().unwrap();
    let mut answered = 0;
    let terminal = terminal.type_secrets(|shown| {
        let prompts = shown.lines().filter(|line| is_prompt(line)).count();
        (prompts > answered).then(|| {
            answered = prompts;
            PASSPHRASE.to_owned()
        })
    });
    child.wait().unwrap();
    let printed = fs::read_to_string(dir.join(".printed")).unwrap();
    let mut parts = printed.split(MARK).map(str::to_owned);
    let mut outcome = Outcome { ended: Vec::new(), rest: String::new(), terminal };
    while let Some(text) = parts.next() {
        match parts.next() {
            Some(code) => outcome.ended.push((text, code.parse().unwrap())),
            None => outcome.rest = text,
        }
    }
    outcome
}

/// A search path that begins with the folder of the tested program.
fn path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_oblivio"));
    format!("{}:{}:/usr/sbin:/sbin", program.parent().unwrap().display(), env::var("PATH").unwrap())
}

fn is_prompt(line: &str) -> bool {
    PROMPTS.iter().any(|prompt| line.starts_with(prompt.trim_end()))
}

/// Whether lines match the page. There, `…` matches any text within a line, or any lines if it is
/// alone.
fn fits(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => (0..=printed.len()).any(|from| fits(rest, &printed[from..])),
        Some((&"", rest)) => fits(rest, printed),
        Some((line, rest)) => {
            printed.first().is_some_and(|first| fits_line(line.trim_end(), first.trim_end()))
                && fits(rest, &printed[1..])
        }
    }
}

fn fits_line(expected: &str, printed: &str) -> bool {
    let Some((before, after)) = expected.split_once('…') else { return expected == printed };
    let Some(rest) = printed.strip_prefix(before) else { return false };
    let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
    ends.into_iter().any(|at| fits_line(after, &rest[at..]))
}
