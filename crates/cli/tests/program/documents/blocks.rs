//! The command blocks of a page.
//!
//! The first words of a fenced block give its kind. `sh`: commands, which are run in order.
//! `console`: commands after a `$`, with their output. `sh understood`: commands that a test cannot
//! run, because they take too long or need other machines; the test checks that the program
//! understands them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variables that pages expect their readers to have set. The values are arbitrary public keys.
const KEYS: [(&str, &str); 3] = [
    ("ONE", "PUVF4tJpzkQyZ2cBS0cD0Bk0y3Wr3LwRkbk4d5m4T2E="),
    ("TWO", "KrNjdHuQUyf3Chh3/ABrhgBFl3xB3djOryRj4dTvuYE="),
    ("THREE", "D5mtpP+yOVd1MTyi1GWg9fTV023ZeWOWRiup4sTcS54="),
];

/// A command, and its output according to the page. `None` if the page shows no output.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) prints: Option<String>,
}

/// The root of the repository. Names of pages are relative to it.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages at the root that show commands, and every page below `docs`.
pub(crate) fn pages() -> Vec<String> {
    let mut pages = ["CONTRIBUTING.md", "README.md"].map(str::to_owned).to_vec();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    pages.sort();
    pages
}

/// The blocks of a page, each as its kind and its text.
pub(crate) fn blocks(page: &str) -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut open: Option<(String, String)> = None;
    // A block in a list is indented.
    let mut indent = 0;
    for line in text.lines() {
        match (&mut open, line.trim_start().strip_prefix("```")) {
            (None, Some(kind)) => {
                indent = line.len() - line.trim_start().len();
                open = Some((kind.to_owned(), String::new()));
            }
            (None, None) => {}
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some((_, block)), None) => {
                block.push_str(line.get(indent..).unwrap_or_default());
                block.push('\n');
            }
        }
    }
    assert!(open.is_none(), "{page}: a block does not end");
    blocks
}

/// The commands of a page that are run, in order.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    for (kind, block) in blocks(page) {
        match kind.as_str() {
            "sh" => steps.push(Step { command: block, prints: None }),
            "console" => steps.extend(transcript(page, &block)),
            _ => {}
        }
    }
    steps
}

/// The commands of a page that the test does not run, each on one line. It only checks that the
/// program knows them.
pub(crate) fn understood(page: &str) -> Vec<String> {
    let of_kind = blocks(page).into_iter().filter(|(kind, _)| kind == "sh understood");
    of_kind
        .flat_map(|(_, block)| {
            let joined = block.replace("\\\n", " ");
            joined.lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        })
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

fn transcript(page: &str, block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.lines() {
        let continues = steps.last().is_some_and(|step: &Step| {
            step.prints.as_deref() == Some("") && step.command.trim_end().ends_with('\\')
        });
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { command: format!("{command}\n"), prints: Some(String::new()) })
            }
            (None, Some(step)) if continues => step.command.push_str(&format!("{line}\n")),
            (None, Some(Step { prints: Some(prints), .. })) => {
                prints.push_str(&format!("{line}\n"))
            }
            (None, _) => panic!("{page}: a transcript begins with {line:?} instead of a command"),
        }
    }
    steps
}

/// Checks that the program knows a command and all its options. The first word is the program's
/// name.
pub(crate) fn assert_understood(page: &str, command: &str) {
    let words = command.split(" #").next().unwrap();
    // Cut the line before other commands and redirections.
    let end = [" -- ", " > ", " | ", " && ", " &"].iter().filter_map(|end| words.find(end)).min();
    let arguments = words[..end.unwrap_or(words.len())].split_once(' ').unwrap_or_default().1;
    let output = Command::new("bash")
        .args(["-c", &format!("{} {arguments} --help", crate::PROGRAM)])
        .envs(KEYS)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{page}: {command}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
