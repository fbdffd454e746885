//! The commands of this program that pages show.

#[allow(dead_code, reason = "the tests of `oblivio` run what other blocks show")]
#[path = "../../../../crates/cli/tests/program/documents/blocks.rs"]
mod blocks;

use blocks::{assert_understood, pages, understood};

/// Experiments take too long to be run here.
#[test]
fn what_pages_show_is_understood() {
    let mut seen = 0;
    for page in pages() {
        for command in understood(&page).iter().filter(|it| it.starts_with("oblivio-lab ")) {
            seen += 1;
            assert_understood(&page, command);
        }
    }
    assert!(seen > 10, "{seen}");
}
