//! Checks the commands of this program in the documentation.

#[allow(dead_code, reason = "the tests of `oblivio` run what other blocks show")]
#[path = "../../../../crates/cli/tests/program/documents/blocks.rs"]
mod blocks;

use blocks::{assert_understood, pages, understood};

/// Parses the commands without running them: experiments take too long.
#[test]
fn commands_in_the_documentation_are_valid() {
    let mut seen = 0;
    for page in pages() {
        for command in understood(&page).iter().filter(|it| it.starts_with("oblivio-lab ")) {
            seen += 1;
            assert_understood(&page, command);
        }
    }
    assert!(seen > 10, "{seen}");
}
