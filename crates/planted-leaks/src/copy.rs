//! The copy of the workspace that leaks are planted in.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::leaks::{FilePatch, Leak, edited};

/// What the tests do not need, at the top of the workspace.
const LEFT_OUT: [&str; 4] = [".git", "bench", "fuzz", "target"];

/// A copy of the workspace.
pub(crate) struct Copy {
    root: PathBuf,
}

impl Copy {
    /// Makes `root` a copy of `workspace`, with `others` instead of the files of these paths below
    /// `crates/`. Files that are the same already stay untouched, so that they are not built again.
    pub(crate) fn take(
        workspace: &Path,
        root: &Path,
        others: &BTreeMap<String, String>,
    ) -> Result<Self, String> {
        let crates = workspace.join("crates");
        let others = others.iter().map(|(file, text)| (crates.join(file), text.as_bytes()));
        mirror(workspace, root, &LEFT_OUT, &others.collect()).map_err(|cause| {
            format!("the workspace cannot be copied to {}: {cause}", root.display())
        })?;
        Ok(Self { root: root.to_owned() })
    }

    /// Plants `leak`, or says why it cannot be done; then nothing has changed.
    pub(crate) fn plant(&self, leak: &Leak) -> Result<Planted, String> {
        let changes = changes(&self.root, leak)?;
        for Change { path, leaky, .. } in &changes {
            fs::write(path, leaky).map_err(|cause| format!("{}: {cause}", path.display()))?;
        }
        Ok(Planted { changes })
    }
}

/// What a leak makes of a file.
struct Change {
    path: PathBuf,
    sound: String,
    leaky: String,
}

/// What `leak` makes of the workspace in `root`, or why it fits no more.
fn changes(root: &Path, leak: &Leak) -> Result<Vec<Change>, String> {
    let change = |patch: &FilePatch| {
        let path = root.join("crates").join(&patch.file);
        let sound = fs::read_to_string(&path)
            .map_err(|cause| format!("{} cannot be read: {cause}", patch.file))?;
        let edits = patch.edits(&sound).map_err(|cause| format!("{}: {cause}", patch.file))?;
        Ok(Change { path, leaky: edited(&sound, &edits, 0), sound })
    };
    leak.patches.iter().map(change).collect()
}

/// A leak that is in the copy now.
#[must_use = "the next leak needs a sound copy"]
pub(crate) struct Planted {
    changes: Vec<Change>,
}

impl Planted {
    pub(crate) fn restore(self) -> Result<(), String> {
        self.changes.iter().try_for_each(|Change { path, sound, .. }| {
            fs::write(path, sound)
                .map_err(|cause| format!("{} cannot be restored: {cause}", path.display()))
        })
    }
}

/// Makes the directory `to` the same as `from`, but for the entries `left_out`, and with `others` instead of
/// what these files hold.
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

    /// A change of the product that a patch has to follow fails here at once.
    #[test]
    fn every_leak_fits_the_workspace_as_it_is() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let leaks = leaks::all().unwrap();
        let outdated: Vec<_> = leaks
            .iter()
            .filter_map(|leak| Some(format!("{}: {}", leak.name, changes(&workspace, leak).err()?)))
            .collect();
        assert!(outdated.is_empty(), "these no longer fit:\n{}", outdated.join("\n"));
    }
}
