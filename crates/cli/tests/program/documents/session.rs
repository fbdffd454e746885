//! Somebody who types what a page says, in an empty folder that is their home, too.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use tempfile::TempDir;

use super::blocks::Step;
use crate::common::terminal::Terminal;

/// What is typed wherever a passphrase is asked for.
const PASSPHRASE: &str = "Vollmond-Kaktus-7193";

/// Longer than any page takes, on a busy machine too.
const SECONDS_MAX: &str = "300";

/// Stands before what the shell says of a step, and is printed by nothing else.
const MARK: char = '\u{1e}';

/// Every line of a page that asks for a passphrase begins so.
const PROMPTS: [&str; 3] = ["Passphrase: ", "New passphrase: ", "The same again: "];

/// Runs `steps` in one shell, and compares what they print with what the page says. A step that fails fails the test, unless the next one
/// looks at its exit code. `files` are there from the beginning.
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
        let looked_at =
            steps.get(number + 1).is_some_and(|next| next.command.starts_with("echo $?"));
        assert!(*code == 0 || looked_at, "{page}: {command}ends with {code}:\n{text}");
        if let Some(prints) = &step.prints {
            let expected: Vec<&str> = prints.lines().filter(|line| !is_prompt(line)).collect();
            let printed: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
            assert!(fits(&expected, &printed), "{page}: {command}prints\n{text}");
        }
    }
    let next = steps.get(ended.len()).map_or("", |step| &step.command);
    assert_eq!(
        ended.len(),
        steps.len(),
        "{page}: this did not end well:\n{next}{rest}\n{terminal}"
    );
    if steps.iter().all(|step| step.prints.is_some()) {
        let shown =
            steps.iter().flat_map(|step| step.prints.iter().flat_map(|prints| prints.lines()));
        let shown: Vec<&str> = shown.filter(|line| is_prompt(line)).map(str::trim).collect();
        let asked: Vec<&str> =
            terminal.lines().filter(|line| is_prompt(line)).map(str::trim).collect();
        assert_eq!(shown, asked, "{page}: passphrases are asked for otherwise");
    }
}

/// A reader may have volumes already, whose client's directories are in the same home.
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

/// How a session went.
struct Outcome {
    /// What each step printed that came to its end, and its exit code.
    ended: Vec<(String, i32)>,
    /// What the one after them printed.
    rest: String,
    /// What stood on the terminal: questions, as everything else is printed to a file.
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
        let asked = shown.lines().filter(|line| is_prompt(line)).count();
        (asked > answered).then(|| {
            answered = asked;
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

/// Where the program is that is tested comes first.
fn path() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_oblivio"));
    format!("{}:{}:/usr/sbin:/sbin", program.parent().unwrap().display(), env::var("PATH").unwrap())
}

fn is_prompt(line: &str) -> bool {
    PROMPTS.iter().any(|prompt| line.starts_with(prompt.trim_end()))
}

/// Whether lines are as the page says, in which `…` stands for anything: on a line of its own, for any lines.
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
