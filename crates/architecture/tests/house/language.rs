//! Plain English: line widths and banned phrases. CONTRIBUTING.md has the rules that no test can
//! check.

use std::fs;

use crate::tree::files;
use crate::workspace;

/// Maximum columns in a line of Rust, including comments.
const RUST_COLUMNS_MAX: usize = 100;

/// Maximum columns in a line of Markdown. Tables and code blocks may be wider.
const MARKDOWN_COLUMNS_MAX: usize = 120;

/// Phrases that hide the actor or the object of a sentence.
const BANNED_PHRASES: [&str; 13] = [
    "whoever",
    "nobody",
    "somebody",
    "so many",
    "it is told",
    "what there is",
    "what is to be",
    "that there are not",
    "is to be",
    "are to be",
    "anew",
    "be it",
    "none of it",
];

/// Endings of the names of files that people write.
const TEXT_ENDINGS: [&str; 8] = [".rs", ".md", ".py", ".sv", ".toml", ".yml", "Makefile", ".sh"];

/// Exempt files: generated files, and this list of phrases.
const EXEMPT: [&str; 2] = ["papers/lab/results/", "crates/architecture/tests/house/language.rs"];

#[test]
fn no_line_is_too_wide() {
    let wide: Vec<_> = texts()
        .into_iter()
        .flat_map(|(name, text)| {
            let lines = if name.ends_with(".rs") {
                wide_lines(&text, RUST_COLUMNS_MAX)
            } else if name.ends_with(".md") {
                wide_lines(&prose(&text), MARKDOWN_COLUMNS_MAX)
            } else {
                Vec::new()
            };
            lines
                .into_iter()
                .map(move |(line, columns)| format!("{name}:{line}: {columns} columns"))
        })
        .collect();
    assert!(wide.is_empty(), "wrap these lines:\n{}", wide.join("\n"));
}

#[test]
fn no_text_has_a_banned_phrase() {
    let found: Vec<_> = texts()
        .into_iter()
        .flat_map(|(name, text)| {
            let found = banned(&text).into_iter();
            found.map(move |(line, phrase)| format!("{name}:{line}: {phrase}")).collect::<Vec<_>>()
        })
        .collect();
    assert!(found.is_empty(), "rewrite these sentences:\n{}", found.join("\n"));
}

#[test]
fn planted_faults_are_found() {
    assert_eq!(wide_lines("123\n12345\näöüß", 4), [(2, 5)]);
    assert_eq!(prose("| a table |\n```\ncode\n```\nprose"), "\n\n\n\nprose");

    let whoever = [(1, "whoever".to_owned())];
    for text in ["/// Whoever asks.", "fn whoever_asks() {}", "\"for whoever asks\""] {
        assert_eq!(banned(text), whoever, "{text}");
    }
    assert_eq!(banned("/// for so\n    /// many blocks"), [(1, "so many".to_owned())]);
    assert_eq!(banned("/// for so\n    /// manyfold blocks"), []);
    for text in ["/// One.\n/// Of two.", "//! One.\n//!\n//! Of", "-\n- Of x", "x;\n// Of y"] {
        let found: Vec<_> = banned(text).into_iter().map(|(_, phrase)| phrase).collect();
        assert_eq!(found, ["a sentence that starts with \"Of\""], "{text}");
    }
    assert_eq!(banned("/// One. Of two.").len(), 1);
    assert_eq!(banned("/// the paper by\n/// Of Counsel"), []);
}

/// Returns the texts of the repository that are not exempt, with their names.
fn texts() -> Vec<(String, String)> {
    let root = workspace::root();
    let is_text = |name: &String| {
        TEXT_ENDINGS.iter().any(|ending| name.ends_with(ending))
            && !EXEMPT.iter().any(|exempt| name.starts_with(exempt))
    };
    let texts: Vec<_> = files()
        .into_iter()
        .filter(is_text)
        // `git` also lists a removed file until the removal is committed.
        .filter_map(|name| fs::read_to_string(root.join(&name)).ok().map(|text| (name, text)))
        .collect();
    assert!(texts.len() > 500, "{} texts", texts.len());
    texts
}

/// The lines of `text` wider than `columns_max`: line number and number of columns.
fn wide_lines(text: &str, columns_max: usize) -> Vec<(usize, usize)> {
    let lines = (1..).zip(text.lines().map(|line| line.chars().count()));
    lines.filter(|(_, columns)| *columns > columns_max).collect()
}

/// Returns `markdown` with tables and code blocks replaced with empty lines.
fn prose(markdown: &str) -> String {
    let mut in_code = false;
    let lines = markdown.lines().map(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence || line.trim_start().starts_with('|') { "" } else { line }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The banned phrases in `text`, each with the line where it begins.
fn banned(text: &str) -> Vec<(usize, String)> {
    let words = words(text);
    let mut found = Vec::new();
    for phrase in BANNED_PHRASES {
        let phrase_words: Vec<_> = phrase.split(' ').collect();
        for window in words.windows(phrase_words.len()) {
            if window.iter().map(|(_, word)| word.as_str()).eq(phrase_words.iter().copied()) {
                found.push((window[0].0, phrase.to_owned()));
            }
        }
    }
    for line in lines_starting_sentences_with_of(text) {
        found.push((line, "a sentence that starts with \"Of\"".to_owned()));
    }
    found.sort();
    found
}

/// The words of `text` in lower case, each with its line number. Names are split at `_`.
fn words(text: &str) -> Vec<(usize, String)> {
    let lines = (1..).zip(text.lines());
    lines
        .flat_map(|(number, line)| {
            let words = line.split(|c: char| !c.is_alphanumeric() && c != '\'');
            let words = words.filter(|word| !word.is_empty());
            words.map(move |word| (number, word.to_lowercase()))
        })
        .collect()
}

/// The numbers of lines with a sentence whose first word is "Of".
fn lines_starting_sentences_with_of(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    // Whether the previous line ended a sentence.
    let mut is_start = true;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start_matches([' ', '/', '!', '-', '*', '#', '>', '|']);
        let within = [". Of ", "! Of ", "? Of ", ": Of ", "| Of ", "\"Of "];
        if is_start && (line.starts_with("Of ") || line == "Of")
            || within.iter().any(|start| line.contains(start))
        {
            found.push(number);
        }
        is_start = !line.ends_with(|c: char| c.is_alphanumeric() || c == ',');
    }
    found
}
