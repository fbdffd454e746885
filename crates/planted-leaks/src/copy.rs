//! The copy of the workspace in which leaks are planted.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::leaks::{FilePatch, Leak, edited};

/// Entries at the root of the workspace that no test needs. The copy does not contain them.
const LEFT_OUT: [&str; 4] = [".git", "bench", "fuzz", "target"];

/// A copy of the workspace.
pub(crate) struct Copy {
    root: PathBuf,
}

impl Copy {
    /// Makes `root` a copy of `workspace`. `others` maps paths below `crates/` to replacement text.
    /// Leaves identical files untouched, so that cargo does not rebuild them.
    pub(crate) fn take(
        workspace: &Path,
        root: &Path,
        others: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let crates = workspace.join("crates");
        let others = others.iter().map(|(file, text)| (crates.join(file), text.as_bytes()));
        mirror(workspace, root, &LEFT_OUT, &others.collect())
            .map_err(|cause| format!("cannot copy the workspace to {}: {cause}", root.display()))?;
        Ok(Self { root: root.to_owned() })
    }

    /// Plants `leak`. If it does not fit, changes no file and returns the reason.
    pub(crate) fn plant(&self, leak: &Leak) -> Result<Planted, String> {
        let changes = changes(&self.root, leak)?;
        for Change { path, leaky, .. } in &changes {
            fs::write(path, leaky).map_err(|cause| format!("{}: {cause}", path.display()))?;
        }
        Ok(Planted { changes })
    }
}

/// The text of a file before and after a leak is planted in it.
struct Change {
    path: PathBuf,
    sound: String,
    leaky: String,
}

/// The changes that `leak` makes to the workspace in `root`. The error says why the leak no longer
/// fits.
fn changes(root: &Path, leak: &Leak) -> Result<Vec<Change>, String> {
    let change = |patch: &FilePatch| {
        let path = root.join("crates").join(&patch.file);
        let sound = fs::read_to_string(&path)
            .map_err(|cause| format!("cannot read {}: {cause}", patch.file))?;
        let edits = patch.edits(&sound).map_err(|cause| format!("{}: {cause}", patch.file))?;
        Ok(Change { path, leaky: edited(&sound, &edits, 0), sound })
    };
    leak.patches.iter().map(change).collect()
}

/// A leak planted in the copy.
#[must_use = "restore the copy before the next leak is planted"]
pub(crate) struct Planted {
    changes: Vec<Change>,
}

impl Planted {
    pub(crate) fn restore(self) -> Result<(), String> {
        self.changes.iter().try_for_each(|Change { path, sound, .. }| {
            fs::write(path, sound)
                .map_err(|cause| format!("cannot restore {}: {cause}", path.display()))
        })
    }
}

/// Makes the directory `to` a copy of `from` without the entries `left_out`, and removes entries of
/// `to` that `from` lacks. A file in `others` gets the contents given there.
fn mirror(
    from: &Path,
    to: &Path,
    left_out: &[&str],
    others: &BTreeMap<PathBuf, &[u8]>,
) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(to)? {
        let path = entry?.path();
        let is_stale = path.file_name().is_none_or(|name| !from.join(name).exists());
        match (is_stale, path.is_dir()) {
            (true, true) => fs::remove_dir_all(path)?,
            (true, false) => fs::remove_file(path)?,
            (false, _) => {}
        }
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, source) = (entry.file_name(), entry.path());
        let destination = to.join(&name);
        if left_out.iter().any(|left_out| name == *left_out) {
            continue;
        }
        if source.is_dir() {
            mirror(&source, &destination, &[], others)?;
        } else {
            let contents =
                others.get(&source).map_or_else(|| fs::read(&source), |it| Ok(it.to_vec()))?;
            if fs::read(&destination).ok().as_ref() != Some(&contents) {
                fs::write(&destination, contents)?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leaks;

    /// Fails if a source file has changed in lines that a patch quotes.
    #[test]
    fn every_leak_fits_the_workspace_as_it_is() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let leaks = leaks::all().unwrap();
        let outdated: Vec<_> = leaks
            .iter()
            .filter_map(|leak| Some(format!("{}: {}", leak.name, changes(&workspace, leak).err()?)))
            .collect();
        assert!(outdated.is_empty(), "update the patches of these leaks:\n{}", outdated.join("\n"));
    }
}
