//! Detects files that a mount would hide from the processes that need them.
//!
//! A process that serves a mount, and the programs that unmount it, access their files by path. A
//! file below the mount point is inaccessible while a file system is mounted there. A file created
//! there would be on the mount itself, which could then never be unmounted.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf, absolute};

use super::MountError;
use crate::fuse::mount_point;

/// The maximum number of symbolic links that the kernel follows in one path.
const LINKS_MAX: u32 = 40;

/// Refuses to mount on `directory` if that would hide one of `paths`, which need not exist yet.
///
/// A path counts as hidden if it leads through `directory` under any name: through a symbolic link,
/// or through a bind mount, to which the kernel may propagate the new mount.
///
/// # Errors
/// [`MountError::Hides`], or an error if `directory` is not a directory.
pub fn refuse_hiding<'a>(
    directory: &Path,
    paths: impl IntoIterator<Item = &'a Path>,
) -> Result<(), MountError> {
    let found = mount_point(directory)?.metadata().map_err(MountError::file(directory))?;
    let is_directory = |path: &Path| {
        fs::metadata(path).is_ok_and(|it| (it.dev(), it.ino()) == (found.dev(), found.ino()))
    };
    match paths.into_iter().find(|path| resolve(path, LINKS_MAX).ancestors().any(is_directory)) {
        Some(path) => {
            Err(MountError::Hides { directory: directory.to_owned(), path: path.to_owned() })
        }
        None => Ok(()),
    }
}

/// Resolves symbolic links in the existing part of the path, including a link to a missing target.
fn resolve(path: &Path, links_max: u32) -> PathBuf {
    if let Ok(canonical) = path.canonicalize() {
        return canonical;
    }
    let path = absolute(path).unwrap_or_else(|_| path.to_owned());
    let Some((parent, name)) = path.parent().zip(path.file_name()) else { return path };
    match fs::read_link(&path) {
        Ok(target) if links_max > 0 => resolve(&parent.join(target), links_max - 1),
        _ => resolve(parent, links_max).join(name),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_mount_hides_what_lies_below_it_under_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("mount/inner")).unwrap();
        fs::create_dir(at("mountain")).unwrap();
        fs::write(at("mount/there"), "").unwrap();
        symlink(at("mount"), at("to-mount")).unwrap();
        symlink("mount/new", at("to-new")).unwrap();
        symlink("to-new", at("to-to-new")).unwrap();
        symlink("loop", at("loop")).unwrap();
        symlink("../mountain/file", at("mount/out")).unwrap();
        for directory in ["mount", "to-mount", "mountain/../mount"] {
            for (name, is_hidden) in [
                ("mount", true),
                ("mount/there", true),
                ("mount/new", true),
                ("mount/inner/new/folder", true),
                ("to-mount/new", true),
                ("mountain/../mount/there", true),
                ("to-new", true),
                ("to-to-new", true),
                ("mountain/new", false),
                ("mount-log", false),
                // The target of the link stays accessible once it is resolved.
                ("mount/inner/../../mountain", false),
                ("mount/out", false),
                ("loop", false),
                ("", false),
            ] {
                let refused = refuse_hiding(&at(directory), [&*at(name)]);
                assert_eq!(refused.is_err(), is_hidden, "{directory}: {name}");
            }
        }
        let refused = refuse_hiding(&at("mount"), [&*at("a"), &*at("to-new")]).unwrap_err();
        assert!(refused.to_string().contains("to-new lies below"), "{refused}");
        refuse_hiding(&at("nowhere"), []).unwrap_err();
    }
}
