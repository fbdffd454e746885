//! Runs every command that a page shows, as its reader would type it.

mod blocks;
mod session;

use std::collections::BTreeSet;
use std::fs;

use self::blocks::{Step, assert_understood, blocks, pages, root, steps, understood};
use crate::volume::needs::can_mount;

/// Pages whose commands are run, each by a test below.
const RUN: [&str; 10] = [
    "README.md",
    "docs/backup.md",
    "docs/bucket-server.md",
    "docs/choosing.md",
    "docs/exit-codes.md",
    "docs/formats/walk.md",
    "docs/recovery.md",
    "docs/s3oram.md",
    "docs/tutorial.md",
    "docs/watch.md",
];

#[test]
fn every_page_with_commands_has_its_test_and_every_block_says_what_it_is() {
    let mut with_commands = BTreeSet::new();
    for page in pages() {
        if !steps(&page).is_empty() {
            with_commands.insert(page.clone());
        }
        for (kind, block) in blocks(&page) {
            let is_known = ["sh", "console", "sh understood"].contains(&kind.as_str());
            let commands = ["oblivio ", "oblivio-lab ", "make ", "cargo ", "$ "];
            let command =
                block.lines().find(|line| commands.iter().any(|command| line.starts_with(command)));
            assert!(
                is_known || command.is_none(),
                "{page}: {command:?} is in a block of kind {kind:?}"
            );
        }
    }
    let run = RUN.iter().map(|page| (*page).to_owned()).collect();
    assert_eq!(with_commands, run);
}

/// Checks the commands that take too long or need other machines. The program must know each
/// command with its options, and the Makefile each target.
#[test]
fn what_no_test_can_run_is_understood() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let mut seen = 0;
    for page in pages() {
        for command in understood(&page) {
            seen += 1;
            match command.split_whitespace().next().unwrap() {
                "oblivio" => assert_understood(&page, &command),
                "make" => {
                    let target = command.split_whitespace().nth(1).unwrap();
                    assert!(
                        makefile.contains(&format!("\n{target}:")),
                        "{page}: make has no {target}"
                    );
                }
                _ => {}
            }
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn the_readme_can_be_pasted() {
    if can_mount() {
        let image = vec![7; 3 << 20];
        run("README.md", &[("photos/a", b"a photo"), ("photo.img", &image)]);
    }
}

#[test]
fn the_tutorial_ends_with_the_disk_as_it_was() {
    if can_mount() {
        run("docs/tutorial.md", &[]);
    }
}

#[test]
fn a_bucket_server_on_one_machine_does_what_its_page_says() {
    run("docs/bucket-server.md", &[]);
}

#[test]
fn share_servers_on_one_machine_do_what_their_page_says() {
    run("docs/s3oram.md", &[]);
}

#[test]
fn at_each_exit_code_it_prints_what_the_page_says() {
    run("docs/exit-codes.md", &[]);
}

#[test]
fn a_volume_recovers_as_the_page_says() {
    run("docs/recovery.md", &[]);
}

#[test]
fn a_backup_comes_back_as_the_page_says() {
    run("docs/backup.md", &[]);
}

/// A Python program that follows the description of the formats finds the written data in the files
/// of the volume.
#[test]
fn a_volume_has_the_bytes_that_the_walk_shows() {
    let page = "docs/formats/walk.md";
    let reader = root().join("target/tools/reader");
    let python = reader.join("bin/python3");
    assert!(reader.join("installed").exists(), "this test needs what `make test-tools` installs");
    let program = fs::read(root().join("docs/formats/walk.py")).unwrap();
    let mut steps = steps(page);
    // Run the reader once the volume exists, and before its bytes are changed.
    let read = Step {
        command: format!("{} walk.py walk.obl walk.state/state-* key\n", python.display()),
        prints: Some(READ.into()),
    };
    steps.insert(1, read);
    session::run(page, &steps, &[("walk.py", &program)]);
}

/// The output of the Python program, with `…` for text that depends on random leaves.
const READ: &str = "superblock: sequence number 1 and the right HMAC
anchor in place 0 of checkpoint … right
anchor in place 1 of checkpoint … right
state: the next eviction is 33, after 3 accesses; eras begin at [0, 32, 33]
…
eviction 32, level 0, place 0: the tag is right; table …
…
…block 0, leaf …, b'the quick brown fox jumps over the lazy dog'
…
";

#[test]
fn plans_print_what_the_page_shows() {
    run("docs/choosing.md", &[]);
}

#[test]
fn a_watch_page_is_served_as_its_page_shows() {
    run("docs/watch.md", &[]);
}

/// Runs the commands of a page in order, in a folder that holds `files`.
fn run(page: &str, files: &[(&str, &[u8])]) {
    session::run(page, &steps(page), files);
}
