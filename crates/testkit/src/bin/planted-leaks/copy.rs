//! The copy of the workspace that leaks are planted in.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::leaks::Leak;

/// What the tests do not need, at the top of the workspace.
const LEFT_OUT: [&str; 4] = [".git", "bench", "fuzz", "target"];

/// A copy of the workspace.
pub(crate) struct Copy {
    root: PathBuf,
}

impl Copy {
    /// Makes `root` a copy of `workspace`. Files that are the same already stay untouched, so that
    /// they are not built again.
    pub(crate) fn take(workspace: &Path, root: &Path) -> io::Result<Self> {
        mirror(workspace, root, &LEFT_OUT)?;
        Ok(Self { root: root.to_owned() })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Plants `leak`, or says why it cannot be done; then nothing has changed.
    pub(crate) fn plant(&self, leak: &Leak) -> Result<Planted, String> {
        let mut planted = Planted { originals: Vec::new() };
        let mut leaky: Vec<(PathBuf, String)> = Vec::new();
        for edit in leak.edits {
            let path = self.root.join("crates").join(edit.file);
            if !leaky.iter().any(|(known, _)| *known == path) {
                let source = fs::read_to_string(&path)
                    .map_err(|cause| format!("{} cannot be read: {cause}", edit.file))?;
                leaky.push((path.clone(), source.clone()));
                planted.originals.push((path.clone(), source));
            }
            for (_, source) in leaky.iter_mut().filter(|(known, _)| *known == path) {
                match source.matches(edit.find).count() {
                    1 => *source = source.replace(edit.find, edit.replacement),
                    count => {
                        let found = format!("{:?} occurs {count} times", edit.find);
                        return Err(format!("{found} in {}, not once", edit.file));
                    }
                }
            }
        }
        for (path, source) in leaky {
            fs::write(&path, source).map_err(|cause| format!("{}: {cause}", path.display()))?;
        }
        Ok(planted)
    }
}

/// A leak that is in the copy now.
#[must_use = "the next leak needs a sound copy"]
pub(crate) struct Planted {
    originals: Vec<(PathBuf, String)>,
}

impl Planted {
    pub(crate) fn restore(self) -> Result<(), String> {
        self.originals.iter().try_for_each(|(path, source)| {
            fs::write(path, source)
                .map_err(|cause| format!("{} cannot be restored: {cause}", path.display()))
        })
    }
}

/// Makes the directory `to` the same as `from`, but for the entries `left_out`.
fn mirror(from: &Path, to: &Path, left_out: &[&str]) -> io::Result<()> {
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
            mirror(&source, &destination, &[])?;
        } else {
            let contents = fs::read(&source)?;
            if fs::read(&destination).ok().as_ref() != Some(&contents) {
                fs::write(&destination, contents)?;
            }
        }
    }
    Ok(())
}
