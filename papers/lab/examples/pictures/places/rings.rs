//! Determines which places of a volume a rollback to the last checkpoint needs.

use std::collections::BTreeMap;

use super::diary::{BucketSlot, LEAF_LEVEL, TREE_TOP_LEVELS, VolumeStep};

/// The role of a place in a rollback to the last checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The checkpoint needs the contents of the place.
    Needed,
    /// The place has the latest contents of a bucket, written since the checkpoint.
    Newer,
    /// The place has old contents of a bucket that the checkpoint does not need.
    Free,
}

/// A place, the eviction that wrote it last, and its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SlotContents {
    pub(super) place: BucketSlot,
    pub(super) eviction: u64,
    pub(super) role: Role,
}

/// The levels in storage.
pub(super) fn levels() -> impl Iterator<Item = u8> {
    TREE_TOP_LEVELS..=LEAF_LEVEL
}

/// The latest contents of each bucket, after some of the writes. The key is the level, and the
/// number of the bucket in the order in which evictions write the level.
type Versions = BTreeMap<(u8, u64), SlotContents>;

/// Returns all places that `steps` wrote, and the number of the next eviction.
///
/// The result only depends on the view of storage: the order of writes, and the checkpoint.
pub(super) fn slot_contents(steps: &[VolumeStep]) -> (Vec<SlotContents>, u64) {
    let mut checkpoint = Versions::new();
    let mut versions = Versions::new();
    let mut places: BTreeMap<BucketSlot, SlotContents> = BTreeMap::new();
    // A new tree counts as if each path had been written once.
    let mut next = 1 << LEAF_LEVEL;
    for step in steps {
        match step {
            VolumeStep::WriteAnchor => checkpoint.clone_from(&versions),
            VolumeStep::WritePath(written) => {
                for place in written {
                    let held = SlotContents { place: *place, eviction: next, role: Role::Newer };
                    let bucket = next % (1 << place.level);
                    places.insert(*place, held);
                    versions.insert((place.level, bucket), held);
                }
                next += 1;
            }
            _ => {}
        }
    }
    let is_of = |versions: &Versions, held: &SlotContents| versions.values().any(|it| it == held);
    let judged = places.into_values().map(|held| SlotContents {
        role: match () {
            () if is_of(&checkpoint, &held) => Role::Needed,
            () if is_of(&versions, &held) => Role::Newer,
            () => Role::Free,
        },
        ..held
    });
    (judged.collect(), next)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "all of this is tests")]

    use std::collections::BTreeSet;

    use super::super::diary;
    use super::*;

    #[test]
    fn evictions_rotate_in_each_ring_and_spare_the_checkpoint() {
        let steps = diary::record().unwrap();
        let mut needed = BTreeSet::new();
        let mut evictions = 0;
        for (i, step) in steps.iter().enumerate() {
            match step {
                VolumeStep::WriteAnchor => {
                    let (places, _) = slot_contents(&steps[..=i]);
                    let of_checkpoint = places.iter().filter(|held| held.role == Role::Needed);
                    needed = of_checkpoint.map(|held| held.place).collect();
                }
                VolumeStep::WritePath(written) => {
                    let eviction = (1 << LEAF_LEVEL) + evictions;
                    evictions += 1;
                    for place in written {
                        let ring = (1 << place.level) + (1 << TREE_TOP_LEVELS);
                        assert_eq!(place.index, eviction % ring, "eviction {eviction}, {place:?}");
                        assert!(!needed.contains(place), "eviction {eviction}, {place:?}");
                    }
                }
                _ => {}
            }
        }
        assert!(evictions > 40, "{evictions}");
    }

    #[test]
    fn each_level_has_spare_places_and_some_of_each_kind() {
        let (places, _) = slot_contents(&diary::record().unwrap());
        for level in levels() {
            let count = |role| {
                places.iter().filter(|it| it.place.level == level && it.role == role).count()
            };
            assert_eq!(count(Role::Needed), 1 << level);
            assert_eq!(count(Role::Newer) + count(Role::Free), 1 << TREE_TOP_LEVELS);
            assert!(count(Role::Newer) > 0 && count(Role::Free) > 0);
        }
    }
}
