//! Detects a memory cgroup whose limit could make a mount hang.
//!
//! Reclaim within a cgroup of version 1 waits until pages have been written back. Version 2, and
//! global reclaim, throttle the writers instead (`writeback_throttling_sane` in Linux's
//! `mm/vmscan.c`).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::mountinfo;

/// A memory cgroup of version 1 whose limit is below the machine's memory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitedGroup {
    /// The mount point of the hierarchy.
    pub(super) root: PathBuf,
    /// The lowest limit of the group and its ancestors, in bytes.
    pub(super) bytes: u64,
}

/// Returns the memory cgroup of this process, if it is limited. `None` if the group cannot be
/// determined.
pub(super) fn limited_group() -> Option<LimitedGroup> {
    let group = memory_group_in(&fs::read_to_string("/proc/self/cgroup").ok()?)?;
    let hierarchy = mountinfo::memory_hierarchy()?;
    let place = place_of(&group, &hierarchy.root, &hierarchy.directory)?;
    let bytes = limit_in(&fs::read_to_string(place.join("memory.stat")).ok()?)?;
    let memory_bytes = memory_in(&fs::read_to_string("/proc/meminfo").ok()?)?;
    (bytes < memory_bytes).then_some(LimitedGroup { root: hierarchy.directory, bytes })
}

/// Parses the path of the memory group from `/proc/self/cgroup` (lines of number, controllers,
/// path). Version 2 lists no controllers.
fn memory_group_in(groups: &str) -> Option<PathBuf> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let controllers = fields.nth(1)?;
        controllers.split(',').any(|it| it == "memory").then_some(fields.next()?.into())
    })
}

/// Returns the directory of `group`, if `directory` shows the hierarchy from `root` on.
fn place_of(group: &Path, root: &OsString, directory: &Path) -> Option<PathBuf> {
    Some(directory.join(group.strip_prefix(root).ok()?))
}

/// Parses the machine's memory in bytes from `/proc/meminfo`.
fn memory_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Parses the effective limit of a group from its `memory.stat`.
fn limit_in(stat: &str) -> Option<u64> {
    stat.lines().find_map(|line| line.strip_prefix("hierarchical_memory_limit ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_version_1_is_found() {
        let both = "5:blkio:/\n4:cpu,memory:/docker/abc:d\n0::/init.scope\n";
        assert_eq!(memory_group_in(both), Some("/docker/abc:d".into()));
        assert_eq!(memory_group_in("0::/memory\n"), None);
        assert_eq!(memory_group_in("nonsense\n4\n"), None);
    }

    #[test]
    fn a_group_lies_below_what_is_mounted() {
        let shown = Path::new("/sys/fs/cgroup/memory");
        for (group, root, place) in [
            ("/", "/", Some("/sys/fs/cgroup/memory")),
            ("/a/b", "/", Some("/sys/fs/cgroup/memory/a/b")),
            // A container without a cgroup namespace.
            ("/docker/abc/b", "/docker/abc", Some("/sys/fs/cgroup/memory/b")),
            ("/other", "/docker/abc", None),
        ] {
            let found = place_of(Path::new(group), &root.into(), shown);
            assert_eq!(found, place.map(PathBuf::from), "{group}");
        }
    }

    #[test]
    fn the_hierarchical_limit_and_the_memory_are_parsed() {
        assert_eq!(memory_in("MemTotal:        2048 kB\nMemFree: 1 kB\n"), Some(2 << 20));
        assert_eq!(memory_in("MemFree: 1 kB\nMemTotal: x\n"), None);
        let stat = "cache 0\nhierarchical_memory_limit 104857600\ntotal_cache 0\n";
        assert_eq!(limit_in(stat), Some(100 << 20));
        assert_eq!(limit_in("cache 0\nhierarchical_memory_limit x\n"), None);
    }
}
