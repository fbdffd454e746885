//! The planted leaks: small changes that keep the product working, but let storage learn a secret.
//!
//! The folder `leaks` holds a patch for each leak. `leaks.toml` lists what each leak reveals and
//! the tests that must fail with it.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::tests::Test;

/// A change to the product that leaks to storage.
pub(crate) struct Leak {
    pub(crate) name: String,
    /// The secret that storage could learn if the leak were shipped.
    pub(crate) shows: String,
    pub(crate) patches: Vec<FilePatch>,
    /// The tests that must all fail with the leak.
    pub(crate) found_by: Vec<Test>,
}

/// The changes to one file.
pub(crate) struct FilePatch {
    /// The path of the file below `crates/`.
    pub(crate) file: String,
    hunks: Vec<Hunk>,
}

/// The lines before and after a change, including the context lines.
struct Hunk {
    before: String,
    after: String,
}

/// A replacement for a byte range of a text.
pub(crate) struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) replacement: String,
}

/// A row of `leaks.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Row {
    shows: String,
    found_by: Vec<String>,
}

/// Returns all planted leaks, in the order of their names.
///
/// # Errors
/// If the table or a patch is missing or malformed.
pub(crate) fn all() -> Result<Vec<Leak>, String> {
    let folder = folder();
    let table = read(&folder.join("leaks.toml"))?;
    let rows: BTreeMap<String, Row> =
        toml::from_str(&table).map_err(|cause| format!("leaks.toml: {cause}"))?;
    rows.into_iter().map(|(name, row)| leak(&folder, name, row)).collect()
}

fn leak(folder: &Path, name: String, row: Row) -> Result<Leak, String> {
    let text = read(&folder.join(format!("{name}.patch")))?;
    let patches = patches(&text).map_err(|cause| format!("{name}.patch: {cause}"))?;
    let found_by = row.found_by.iter().map(|test| test.parse());
    let found_by =
        found_by.collect::<Result<_, _>>().map_err(|cause| format!("{name}: {cause}"))?;
    Ok(Leak { name, shows: row.shows, patches, found_by })
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("leaks")
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|cause| format!("cannot read {}: {cause}", path.display()))
}

/// Parses a unified diff. Ignores its line numbers, because sources change.
fn patches(diff: &str) -> Result<Vec<FilePatch>, String> {
    let mut patches: Vec<FilePatch> = Vec::new();
    for line in diff.split_inclusive('\n') {
        if let Some(path) = line.strip_prefix("+++ ") {
            let file = path.trim_end().strip_prefix("b/crates/");
            let file = file.ok_or_else(|| format!("{} is not below crates/", path.trim_end()))?;
            patches.push(FilePatch { file: file.to_owned(), hunks: Vec::new() });
        } else if line.starts_with("@@") {
            let patch =
                patches.last_mut().ok_or("a hunk has no file: it needs a line `+++ b/…`")?;
            patch.hunks.push(Hunk { before: String::new(), after: String::new() });
        } else if let Some(hunk) = patches.last_mut().and_then(|patch| patch.hunks.last_mut()) {
            let (sign, text) = line.split_at_checked(1).unwrap_or((line, ""));
            match sign {
                " " | "\n" => {
                    let text = if sign == "\n" { sign } else { text };
                    hunk.before += text;
                    hunk.after += text;
                }
                // The header of another file follows the last hunk of this one.
                "-" if text.starts_with("-- a/") => {}
                "-" => hunk.before += text,
                "+" => hunk.after += text,
                _ if line.starts_with("diff --git ") || line.starts_with("index ") => {}
                _ => return Err(format!("{line:?} is no line of a unified diff")),
            }
        }
    }
    if patches.is_empty() || patches.iter().any(|patch| patch.hunks.is_empty()) {
        return Err("a file has no hunk: write it with `git diff -U1`".to_owned());
    }
    if patches.iter().flat_map(|patch| &patch.hunks).any(|hunk| hunk.before == hunk.after) {
        return Err("a hunk changes nothing: write it with `git diff -U1`".to_owned());
    }
    Ok(patches)
}

impl FilePatch {
    /// The edits to `text`, the current contents of the file, in ascending order.
    ///
    /// # Errors
    /// If a hunk does not match exactly one place, or two hunks change the same place.
    pub(crate) fn edits(&self, text: &str) -> Result<Vec<Edit>, String> {
        let mut edits: Vec<_> =
            self.hunks.iter().map(|hunk| hunk.edit(text)).collect::<Result<_, _>>()?;
        edits.sort_by_key(|edit| edit.range.start);
        let overlap = |pair: &[Edit]| {
            let [one, other] = [&pair[0].range, &pair[1].range];
            other.start < one.end || one.start == other.start
        };
        match edits.windows(2).any(overlap) {
            true => Err("two hunks change the same place: merge them".to_owned()),
            false => Ok(edits),
        }
    }
}

impl Hunk {
    /// The smallest edit to `text` that has the effect of the hunk.
    fn edit(&self, text: &str) -> Result<Edit, String> {
        let Self { before, after } = self;
        // A second match may overlap the first.
        let places: Vec<_> = (0..text.len())
            .filter(|start| text.is_char_boundary(*start) && text[*start..].starts_with(before))
            .collect();
        let [start] = places[..] else {
            return Err(format!("{before:?} occurs {} times, not once", places.len()));
        };
        let same = |pair: &(char, char)| pair.0 == pair.1;
        let length = |pair: (char, char)| pair.0.len_utf8();
        let head: usize = before.chars().zip(after.chars()).take_while(same).map(length).sum();
        let (rest, new) = (&before[head..], &after[head..]);
        let tail: usize =
            rest.chars().rev().zip(new.chars().rev()).take_while(same).map(length).sum();
        Ok(Edit {
            range: start + head..start + before.len() - tail,
            replacement: new[..new.len() - tail].to_owned(),
        })
    }
}

/// Returns `text` after `edits`, which are in ascending order and whose ranges count from `offset`.
pub(crate) fn edited(text: &str, edits: &[Edit], offset: usize) -> String {
    let mut text = text.to_owned();
    for Edit { range, replacement } in edits.iter().rev() {
        text.replace_range(range.start - offset..range.end - offset, replacement);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DIFF: &str = "diff --git a/crates/s.rs b/crates/s.rs
index 1..2 100644
--- a/crates/s.rs
+++ b/crates/s.rs
@@ -1,2 +1,2 @@ fn context
 fn one() {
-    two(ä)
+    three(ä)
 }
@@ -9 +9 @@
-last
--- a/crates/t.rs
+++ b/crates/t.rs
@@ @@
+first
 second
";

    #[test]
    fn a_patch_becomes_the_smallest_edits_of_its_files() {
        let patches = patches(DIFF).unwrap();
        let files: Vec<_> = patches.iter().map(|patch| &*patch.file).collect();
        assert_eq!(files, ["s.rs", "t.rs"]);
        let text = "x\nfn one() {\n    two(ä)\n}\nlast\n";
        let edits = patches[0].edits(text).unwrap();
        assert_eq!(&text[edits[0].range.clone()], "wo");
        assert_eq!(edited(text, &edits, 0), "x\nfn one() {\n    three(ä)\n}\n");
        let edits = patches[1].edits("second\n").unwrap();
        assert_eq!(edited("second\n", &edits, 0), "first\nsecond\n");
    }

    #[test]
    fn a_hunk_that_fits_no_place_or_two_is_refused() {
        let patches = patches(DIFF).unwrap();
        let refused = |text| patches[1].edits(text).err().unwrap();
        assert!(refused("other\n").contains("occurs 0 times"));
        assert!(refused("second\nsecond\n").contains("occurs 2 times"));
        let twice = super::patches("+++ b/crates/t.rs\n@@\n a\n-b\n a\n").unwrap();
        assert!(twice[0].edits("a\nb\na\nb\na\n").err().unwrap().contains("occurs 2 times"));
        let same = super::patches("+++ b/crates/t.rs\n@@\n-a\n b\n@@\n-a\n+c\n").unwrap();
        assert!(same[0].edits("a\nb\n").err().unwrap().contains("same place"));
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        for (diff, why) in [
            ("", "no hunk"),
            ("+++ b/crates/s.rs\n", "no hunk"),
            ("+++ b/README.md\n@@\n+x\n", "not below crates/"),
            ("@@ -1 +1 @@\n", "no file"),
            ("+++ b/crates/s.rs\n@@\n*x\n", "no line of a unified diff"),
            ("+++ b/crates/s.rs\n@@\nimpl S {\n+x\n", "no line of a unified diff"),
            ("+++ b/crates/s.rs\n@@\n x\n", "changes nothing"),
        ] {
            let refused = patches(diff).err().unwrap();
            assert!(refused.contains(why), "{diff:?}: {refused}");
        }
    }

    #[test]
    fn every_patch_has_a_row_in_the_table() {
        let known: BTreeSet<_> = all().unwrap().into_iter().map(|leak| leak.name).collect();
        let files = fs::read_dir(folder()).unwrap().map(|file| file.unwrap().path());
        let patches = files.filter(|path| path.extension().is_some_and(|it| it == "patch"));
        let names = patches.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names.collect::<BTreeSet<_>>(), known);
    }
}
