//! The tests that documents name for what they claim are there.

use std::collections::BTreeSet;
use std::fs;

use crate::workspace;
use crate::workspace::source::all_rust_files;

/// What promises something to its readers.
const DOCUMENTS: [&str; 1] = ["docs/threat-model.md"];

/// So many words are the name of a test, and fewer may be something else.
const WORDS_MIN: usize = 4;

#[test]
fn every_test_that_is_named_exists() {
    let root = workspace::root();
    let sources = workspace::CRATES.iter().flat_map(|folder| all_rust_files(&root.join(folder)));
    let sources: Vec<_> = sources.map(|file| fs::read_to_string(file).unwrap()).collect();
    let there: BTreeSet<_> = sources.iter().flat_map(|source| functions(source)).collect();
    for document in DOCUMENTS {
        let text = fs::read_to_string(root.join(document)).unwrap();
        let named = tests_named(&text);
        assert!(named.len() > 20, "{document} names {} tests", named.len());
        let is_there = |name: &&str| match name.split_once('…') {
            Some((start, end)) => {
                there.iter().any(|test| test.starts_with(start) && test.ends_with(end))
            }
            None => there.contains(*name),
        };
        let missing: Vec<_> = named.iter().filter(|name| !is_there(name)).collect();
        assert!(missing.is_empty(), "{document} names tests that are not there: {missing:?}");
    }
}

#[test]
fn names_are_found_in_sentences() {
    let text = "volume `view`: `a_b_c_d`, `grid::one_two_three_four`, `…_and_three_more_words`, `--cache 0`, `a_b`";
    let expected = ["a_b_c_d", "one_two_three_four", "…_and_three_more_words"];
    assert_eq!(tests_named(text), expected);
    assert_eq!(functions("    fn one() {}\nfn two<T>() {}\nlet fns = 3;"), ["one", "two"]);
}

/// What stands between backquotes, without its modules, and has as many words as names of tests have.
fn tests_named(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let names = quoted.map(|quoted| quoted.rsplit("::").next().expect("there is a last one"));
    let is_test = |name: &&str| {
        name.split('_').count() >= WORDS_MIN
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_…".contains(c))
    };
    names.filter(is_test).collect()
}

/// The functions that are defined in `source`.
fn functions(source: &str) -> Vec<&str> {
    let defined = source.lines().filter_map(|line| line.split_once("fn "));
    let name =
        |(_, rest): (&str, &'_ str)| rest.len() - rest.trim_start_matches(is_of_a_name).len();
    defined.map(|pair| &pair.1[..name(pair)]).filter(|name| !name.is_empty()).collect()
}

fn is_of_a_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
