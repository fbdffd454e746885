//! The claims of the threat model: each is cited, and its tests exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use oblivio_architecture::claims::Claims;
use oblivio_architecture::sources::rust_files;

use crate::workspace;

/// The pages that cite claims.
const THREAT_MODEL: [&str; 2] = ["docs/threat-model.md", "docs/threat-model-shares.md"];

/// Minimum number of words in the name of a test. A shorter name in backquotes may be the name of
/// something other than a test.
const WORDS_MIN: usize = 4;

/// The sources of all crates, by path from the root.
type Sources = BTreeMap<PathBuf, String>;

#[test]
fn every_test_of_a_claim_exists() {
    let root = workspace::root();
    let sources = sources(&root);
    let fuzz_target =
        |name: &str| root.join("fuzz/fuzz_targets").join(name).with_extension("rs").exists();
    let mut missing = Vec::new();
    for claim in claims().claims {
        assert!(!claim.tests.is_empty(), "{} has no test", claim.id);
        for test in claim.tests {
            let exists = match test.strip_prefix("fuzz ") {
                Some(name) => fuzz_target(name),
                None => is_test(&sources, &test),
            };
            if !exists {
                missing.push(format!("{}: {test}", claim.id));
            }
        }
    }
    assert!(missing.is_empty(), "docs/claims.toml names missing tests:\n{}", missing.join("\n"));
}

#[test]
fn the_page_of_claims_is_up_to_date() {
    let page = read("docs/claims.md");
    assert!(page == claims().to_markdown(), "docs/claims.md is out of date: run `make claims`");
}

#[test]
fn the_threat_model_cites_every_claim_and_no_other() {
    let ids: Vec<_> = claims().claims.into_iter().map(|claim| (claim.anchor(), claim.id)).collect();
    let known: BTreeSet<_> =
        ids.iter().map(|(anchor, id)| (id.as_str(), anchor.as_str())).collect();
    assert_eq!(known.len(), ids.len(), "two claims have one id");
    let pages = THREAT_MODEL.map(read);
    let cited: BTreeSet<_> = pages.iter().flat_map(|page| cited(page)).collect();
    assert_eq!(cited, known);
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    let sources = sources(&workspace::root());
    let functions: BTreeSet<_> = sources.values().flat_map(|source| functions(source)).collect();
    for page in THREAT_MODEL {
        let text = read(page);
        let missing: Vec<_> =
            tests_named(&text).into_iter().filter(|name| !functions.contains(name)).collect();
        assert!(missing.is_empty(), "{page} names missing tests: {missing:?}");
    }
}

#[test]
fn planted_faults_are_found() {
    let text = "one ([C1](claims.md#c1), [C20](claims.md#c2)), [a page](claims.md), [b](c.md#c3)";
    assert_eq!(cited(text), BTreeSet::from([("C1", "c1"), ("C20", "c2")]));

    let files = [
        ("crates/a/tests/run/one/two.rs", "fn there() {}"),
        ("crates/a/src/lib.rs", "mod tests {\n    fn inside() {}\n}"),
    ];
    let sources = files.map(|(path, source)| (PathBuf::from(path), source.to_owned()));
    let sources = Sources::from(sources);
    for test in ["a/run one::two::there", "a/run two::there", "a/lib tests::inside"] {
        assert!(is_test(&sources, test), "{test}");
    }
    let missing =
        ["a/run one::two::the", "a/run three::there", "a/lib one::there", "b/lib inside", "there"];
    for test in missing {
        assert!(!is_test(&sources, test), "{test}");
    }

    let text = "`view`: `a_b_c_d`, `grid::one_two_three_four`, `--cache 0`, `a_b`";
    assert_eq!(tests_named(text), ["a_b_c_d", "one_two_three_four"]);
    assert_eq!(functions("    fn one() {}\nfn two<T>() {}\nlet fns = 3;"), ["one", "two"]);
}

fn read(path: &str) -> String {
    fs::read_to_string(workspace::root().join(path)).unwrap()
}

fn claims() -> Claims {
    Claims::parse(&read("docs/claims.toml")).unwrap()
}

fn sources(root: &Path) -> Sources {
    let files = workspace::CRATES.iter().flat_map(|folder| rust_files(&root.join(folder)).unwrap());
    let read = |file: PathBuf| {
        let source = fs::read_to_string(&file).unwrap();
        (file.strip_prefix(root).unwrap().to_owned(), source)
    };
    files.map(read).collect()
}

/// Whether `test` is written as `CRATE/TARGET MODULE::…::FUNCTION` and names a function in a file
/// of that target. Each module must be part of the file's path, or be defined in the file.
fn is_test(sources: &Sources, test: &str) -> bool {
    let Some((target, path)) = test.split_once(' ') else { return false };
    let Some((package, target)) = target.split_once('/') else { return false };
    let (modules, function) = path.rsplit_once("::").unwrap_or(("", path));
    let modules: Vec<_> = modules.split("::").filter(|module| !module.is_empty()).collect();
    sources.iter().any(|(file, source)| {
        let file = file.with_extension("");
        let parts: Vec<_> = file.iter().filter_map(|part| part.to_str()).collect();
        let is_in_target = match parts[..] {
            [_, in_package, "src", ..] => in_package == package && target == "lib",
            [_, in_package, "tests", in_target, ..] => in_package == package && in_target == target,
            _ => false,
        };
        is_in_target
            && functions(source).contains(&function)
            && modules.iter().all(|module| {
                parts.contains(module) || source.contains(&format!("mod {module} {{"))
            })
    })
}

/// The links from `text` to claims: the words of each link, and its anchor.
fn cited(text: &str) -> BTreeSet<(&str, &str)> {
    let links = text.match_indices("](claims.md#");
    let link = |(at, mark): (usize, &str)| {
        let words = text[..at].rsplit_once('[')?.1;
        let anchor = text[at + mark.len()..].split_once(')')?.0;
        Some((words, anchor))
    };
    links.filter_map(link).collect()
}

/// Returns the names of tests in `text`: the names between backquotes that have at least
/// [`WORDS_MIN`] words and the form of function names. Omits the modules before a name.
fn tests_named(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let names = quoted.map(|quoted| quoted.rsplit("::").next().expect("there is a last one"));
    let is_test = |name: &&str| {
        name.split('_').count() >= WORDS_MIN
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
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
