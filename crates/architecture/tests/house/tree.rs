//! Rules for every file and every crate of the repository.

use std::fs;
use std::process::Command;

use crate::workspace;

/// Top-level folders of a file system that contain the files of users.
const PRIVATE_FOLDERS: [&str; 4] = ["home", "root", "Users", "work"];

#[test]
fn no_file_contains_a_path_of_a_developers_machine() {
    let root = workspace::root();
    let found: Vec<_> = files()
        .into_iter()
        // `git` also lists a removed file until the removal is committed.
        .filter_map(|name| fs::read(root.join(&name)).ok().map(|bytes| (name, bytes)))
        .flat_map(|(name, bytes)| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let lines = (1..).zip(text.lines()).filter(|(_, line)| names_private_folder(line));
            lines.map(|(line, text)| format!("{name}:{line}: {}", text.trim())).collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "remove these absolute paths:\n{}", found.join("\n"));
}

#[test]
fn every_crate_has_the_lints_of_the_workspace() {
    let metadata = workspace::cargo_metadata().no_deps().exec().unwrap();
    let without: Vec<_> = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| !inherits_lints(&fs::read_to_string(&package.manifest_path).unwrap()))
        .map(|package| package.name.as_str())
        .collect();
    assert!(without.is_empty(), "add `lints.workspace = true` to {without:?}");
}

#[test]
fn planted_faults_are_found() {
    for folder in PRIVATE_FOLDERS {
        for before in ["", "see ", "\"", "file://", "=", "(", "-I"] {
            let line = format!("{before}/{folder}/someone");
            assert_eq!(names_private_folder(&line), before != "-I", "{line}");
        }
        assert!(!names_private_folder(&format!("target/{folder}/x")));
        assert!(!names_private_folder(&format!("{folder}/x")));
    }
    assert!(inherits_lints("[lints]\nworkspace = true\n"));
    assert!(inherits_lints("[package]\n\n[lints]\nworkspace=true"));
    assert!(!inherits_lints("[lints]\nrust.unsafe_code = \"deny\"\n"));
    assert!(!inherits_lints("[package]\nversion.workspace = true\n"));
}

/// Whether `line` contains an absolute path into a private folder. A name before the first slash
/// makes the path relative.
fn names_private_folder(line: &str) -> bool {
    PRIVATE_FOLDERS.iter().any(|folder| {
        let path = format!("/{folder}/");
        line.match_indices(&path).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            !before.is_some_and(|before| before.is_alphanumeric() || "._-*)}".contains(before))
        })
    })
}

fn inherits_lints(manifest: &str) -> bool {
    let lines: Vec<_> = manifest.lines().map(|line| line.replace(' ', "")).collect();
    lines.windows(2).any(|pair| pair == ["[lints]", "workspace=true"])
        || lines.iter().any(|line| line == "lints.workspace=true")
}

/// Returns the files of the repository, including new files that are not ignored.
pub(crate) fn files() -> Vec<String> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(workspace::root())
        .output()
        .expect("this test needs git to list the files");
    assert!(listing.status.success(), "{}", String::from_utf8_lossy(&listing.stderr));
    let names = String::from_utf8(listing.stdout).expect("file names are UTF-8");
    names.split_terminator('\0').map(str::to_owned).collect()
}
