//! Parses the kernel's list of mounts.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::MountError;

const MOUNTINFO: &str = "/proc/self/mountinfo";

/// An entry in the list of mounts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) number: DeviceNumber,
    pub(crate) directory: PathBuf,
    /// The device, or the name that the file system gives itself.
    pub(crate) source: OsString,
}

/// A mounted cgroup hierarchy.
pub(super) struct Hierarchy {
    /// The path of the group at the root of the mount.
    pub(super) root: OsString,
    pub(super) directory: PathBuf,
}

/// Returns the cgroup hierarchy of version 1 with the memory controller, if it is mounted.
pub(super) fn memory_hierarchy() -> Option<Hierarchy> {
    fs::read(MOUNTINFO).ok()?.split(|byte| *byte == b'\n').find_map(parse_memory_hierarchy)
}

fn parse_memory_hierarchy(line: &[u8]) -> Option<Hierarchy> {
    let mut fields = line.split(|byte| *byte == b' ');
    let root = unescape(fields.nth(3)?);
    let directory = unescape(fields.next()?).into();
    fields.find(|field| field == b"-")?;
    let is_version_1 = fields.next()? == b"cgroup";
    let mut options = fields.nth(1)?.split(|byte| *byte == b',');
    (is_version_1 && options.any(|it| it == b"memory")).then_some(Hierarchy { root, directory })
}

/// The major and minor number of a device, in the kernel's notation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceNumber(pub(crate) String);

/// Returns the topmost mount at `directory`, a canonical path.
pub(crate) fn top_at(directory: &Path) -> Result<Option<Mount>, MountError> {
    let text = fs::read(MOUNTINFO).map_err(MountError::file(Path::new(MOUNTINFO)))?;
    let mut mounts = text.split(|byte| *byte == b'\n').filter_map(parse);
    // Later mounts cover earlier ones.
    Ok(mounts.rfind(|mount| mount.directory == directory))
}

/// Parses a line of the list: ids, device, root, directory, options, optional fields, `-`, type,
/// source, options.
fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let number = String::from_utf8(fields.nth(2)?.to_vec()).ok()?;
    let directory = unescape(fields.nth(1)?);
    fields.find(|field| field == b"-")?;
    let source = unescape(fields.nth(1)?);
    Some(Mount { number: DeviceNumber(number), directory: directory.into(), source })
}

/// Decodes escapes: white space and backslashes are written as a backslash and three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after.first_chunk::<3>().filter(|_| *first == b'\\');
        let byte = code
            .and_then(|code| std::str::from_utf8(code).ok())
            .and_then(|code| u8::from_str_radix(code, 8).ok());
        plain.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    OsString::from_vec(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed() {
        let line = br"36 35 7:12 / /mnt/my\040disk rw,noatime shared:1 - ext4 /dev/loop\134 rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.number, DeviceNumber("7:12".to_owned()));
        assert_eq!(mount.directory, Path::new("/mnt/my disk"));
        assert_eq!(mount.source, OsString::from("/dev/loop\\"));
    }

    #[test]
    fn malformed_lines_are_ignored() {
        for line in ["", "1 2 3", "36 35 7:1 / /mnt rw shared:1 ext4 /dev/x rw", "a b c d e f -"] {
            assert_eq!(parse(line.as_bytes()), None, "{line}");
        }
        assert_eq!(unescape(br"a\04"), OsString::from(r"a\04"));
        assert_eq!(unescape(br"a\999"), OsString::from(r"a\999"));
    }

    #[test]
    fn existing_mounts_are_found() {
        assert!(top_at(Path::new("/proc")).unwrap().is_some());
        assert_eq!(top_at(Path::new("/proc/self")).unwrap(), None);
    }
}
