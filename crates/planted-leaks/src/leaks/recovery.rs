//! Leaks of volumes after a crash, or when they come back from a backup.

use super::{Edit, Leak};
use crate::targets::{VOLUME_PRIVACY, VOLUME_VIEW};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "recovery-begins-no-era-after-a-closing",
        shows: "what changed since a backup that was restored: a key stream comes twice",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "oram.begin_era();",
            replacement: "if !history.head.is_clean {
            oram.begin_era();
        }",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["restored::what_comes_after_a_restored_backup_is_sealed_under_another_key"])],
    },
    Leak {
        name: "recovery-begins-no-era-after-a-crash",
        shows: "what changed between an eviction that was lost and the one made in its place",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "oram.begin_era();",
            replacement: "if history.head.is_clean {
            oram.begin_era();
        }",
        }],
        found_by: &[VOLUME_VIEW.tests(&["what_recovery_writes_again_is_sealed_under_another_key"])],
    },
    Leak {
        name: "recovery-skips-dead-blocks",
        shows: "which accesses before the crash were to blocks that were never asked for",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "Record::Batch(accesses) => {",
            replacement: "Record::Batch(mut accesses) => {
            accesses.retain(|access| {
                let is_dead = !access.step.is_of_nothing()
                    && oram.has_flat_map()
                    && oram.table().get(access.step.address).is_none();
                !is_dead || access.data.is_some()
            });",
        }],
        found_by: &[VOLUME_VIEW.tests(&["two_workloads_of_one_length_look_alike_across_crashes"])],
    },
    Leak {
        name: "recovery-skips-dummies",
        shows: "which accesses before the crash were dummies",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "Record::Batch(accesses) => {",
            replacement: "Record::Batch(mut accesses) => {
            accesses.retain(|access| !access.step.is_of_nothing());",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["scheduled_crash::a_recovery_repeats_the_accesses_of_ticks_whoever_asked"])],
    },
    Leak {
        name: "recovery-draws-new-leaves-for-dummies",
        shows: "which accesses before the crash were dummies: they come again on other paths",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "Record::Batch(accesses) => {",
            replacement: "Record::Batch(mut accesses) => {
            for access in accesses.iter_mut().filter(|access| access.step.is_of_nothing()) {
                access.step = oram.intend_nothing(1)[0];
            }",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["scheduled_crash::a_recovery_repeats_the_accesses_of_ticks_whoever_asked"])],
    },
    Leak {
        name: "recovery-flushes-storage-for-trims",
        shows: "how many trims there were since the last checkpoint before an opening",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "Record::Forget { start, end } => oram.forget(start..end).map(|()| 0).map_err(Into::into),",
            replacement: "Record::Forget { start, end } => {
            oram.backend_mut().flush()?;
            oram.forget(start..end).map(|()| 0).map_err(Into::into)
        }",
        }],
        found_by: &[VOLUME_VIEW.tests(&["an_opening_looks_alike_whether_blocks_were_trimmed"])],
    },
    Leak {
        name: "recovery-shows-what-is-not-durable",
        shows: "after a power loss in a recovery, that a block is asked for again: on one leaf",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "past.make_durable(&mut *dir)?;",
            replacement: "",
        }],
        found_by: &[VOLUME_VIEW.tests(&[
            "no_leaf_that_recovery_has_shown_is_forgotten",
            "no_leaf_that_recovery_has_shown_is_forgotten_after_a_failed_sync",
        ])],
    },
];
