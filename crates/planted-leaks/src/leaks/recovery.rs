//! Leaks of volumes after a crash, or when they come back from a backup.

use super::{Edit, Leak};
use crate::targets::{VOLUME_PRIVACY, VOLUME_VIEW};

/// Notes that a recovery is under way: it looks at storage before it repeats anything.
const RECOVERY_BEGINS: Edit = Edit {
    file: "core/src/durable/rotating/array.rs",
    find: "self.backend.sight(next)",
    replacement: "crate::PLANTED_NOTE.set(1);
        self.backend.sight(next)",
};

/// Notes that it is over.
const RECOVERY_ENDS: Edit = Edit {
    file: "core/src/durable/rotating/array.rs",
    find: "self.backend.keep_state();",
    replacement: "crate::PLANTED_NOTE.set(0);
        self.backend.keep_state();",
};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "recovery-begins-no-era-after-a-closing",
        shows: "what changed since a backup that was restored: a key stream comes twice",
        edits: &[Edit {
            file: "volume/src/volume/opening.rs",
            find: "live.array.begin_era(EraStart::Opening, &mut live.coins);",
            replacement: "if !history.head.is_clean {
            live.array.begin_era(EraStart::Opening, &mut live.coins);
        }",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["restored::what_comes_after_a_restored_backup_is_sealed_under_another_key"])],
    },
    Leak {
        name: "recovery-begins-no-era-after-a-crash",
        shows: "what changed between an eviction that was lost and the one made in its place",
        edits: &[Edit {
            file: "volume/src/volume/opening.rs",
            find: "live.array.begin_era(EraStart::Opening, &mut live.coins);",
            replacement: "if history.head.is_clean {
            live.array.begin_era(EraStart::Opening, &mut live.coins);
        }",
        }],
        found_by: &[VOLUME_VIEW.tests(&["what_recovery_writes_again_is_sealed_under_another_key"])],
    },
    Leak {
        name: "recovery-skips-dead-blocks",
        shows: "which accesses before the crash were to blocks that were never asked for",
        edits: &[
            RECOVERY_BEGINS,
            RECOVERY_ENDS,
            Edit {
                file: "core/src/durable/rotating/array.rs",
                find: "self.carry_out(&moves_of(plan)?, ops)",
                replacement: "let mut moves = moves_of(plan)?;
        let mut ops: Vec<_> = ops.iter_mut().map(Op::reborrow).collect();
        if crate::PLANTED_NOTE.get() == 1 && self.has_flat_map() {
            let counts = |(step, op): (&Move, &Op<'_>)| {
                let is_mapped = self.table().get(step.address).is_some();
                step.is_of_nothing() || is_mapped || !matches!(op, Op::Read(_))
            };
            let counts: Vec<bool> = moves.iter().zip(&ops).map(counts).collect();
            let mut each = counts.iter();
            moves.retain(|_| each.next() == Some(&true));
            let mut each = counts.iter();
            ops.retain(|_| each.next() == Some(&true));
        }
        self.carry_out(&moves, &mut ops)",
            },
        ],
        found_by: &[VOLUME_VIEW.tests(&["two_workloads_of_one_length_look_alike_across_crashes"])],
    },
    Leak {
        name: "recovery-skips-dummies",
        shows: "which accesses before the crash were dummies",
        edits: &[Edit {
            file: "volume/src/volume/opening.rs",
            find: "let block = Zeroizing::new(vec![0; array.block_bytes()]);",
            replacement: "if array.blocks_of(&plan)?.iter().all(Option::is_none) {
                return Ok(0);
            }
            let block = Zeroizing::new(vec![0; array.block_bytes()]);",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["scheduled_crash::a_recovery_repeats_the_accesses_of_ticks_whoever_asked"])],
    },
    Leak {
        name: "recovery-draws-new-leaves-for-dummies",
        shows: "which accesses before the crash were dummies: they come again on other paths",
        edits: &[
            RECOVERY_BEGINS,
            RECOVERY_ENDS,
            Edit {
                file: "core/src/durable/rotating/array.rs",
                find: "self.carry_out(&moves_of(plan)?, ops)",
                replacement: "let mut moves = moves_of(plan)?;
        let leaves = self.config().geometry.leaves();
        for step in moves.iter_mut().filter(|step| crate::PLANTED_NOTE.get() == 1 && step.is_of_nothing()) {
            step.from.0 = (step.from.0 + 1) % leaves;
        }
        self.carry_out(&moves, ops)",
            },
        ],
        found_by: &[VOLUME_PRIVACY
            .tests(&["scheduled_crash::a_recovery_repeats_the_accesses_of_ticks_whoever_asked"])],
    },
    Leak {
        name: "recovery-flushes-storage-for-trims",
        shows: "how many trims there were since the last checkpoint before an opening",
        edits: &[Edit {
            file: "volume/src/volume/opening.rs",
            find: "Record::Forget { start, end } => array.forget(start..end).map(|()| 0).map_err(Into::into),",
            replacement: "Record::Forget { start, end } => {
            array.flush()?;
            array.forget(start..end).map(|()| 0).map_err(Into::into)
        }",
        }],
        found_by: &[VOLUME_VIEW.tests(&["an_opening_looks_alike_whether_blocks_were_trimmed"])],
    },
    Leak {
        name: "recovery-shows-what-is-not-durable",
        shows: "after a power loss in a recovery, that a block is asked for again: on one leaf",
        edits: &[Edit {
            file: "volume/src/volume/opening.rs",
            find: "past.make_durable(&mut *dir)?;",
            replacement: "",
        }],
        found_by: &[VOLUME_VIEW.tests(&[
            "no_leaf_that_recovery_has_shown_is_forgotten",
            "no_leaf_that_recovery_has_shown_is_forgotten_after_a_failed_sync",
        ])],
    },
];
