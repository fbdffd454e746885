//! What a power loss takes that it must not: the note of something, or the last good copy of it.

use super::{Edit, Leak};
use crate::targets::{
    VOLUME_CRASH, VOLUME_DISK, VOLUME_KEYS, VOLUME_LYING_STORAGE, VOLUME_TORN_ANCHOR,
};

const TORN_AFTER_A_TORN_ONE: &str =
    "an_anchor_that_is_torn_in_the_opening_after_a_torn_one_costs_nothing";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "tampering-is-noted-in-a-cache",
        shows: "with each power loss, what another change of bytes does to the access that failed",
        edits: &[Edit {
            file: "volume/src/tampering.rs",
            find: "let _ = dir.sync_names();",
            replacement: "",
        }],
        found_by: &[VOLUME_LYING_STORAGE.tests(&["what_failed_is_not_repeated_after_a_power_loss"])],
    },
    Leak {
        name: "openings-announce-in-a-cache",
        shows: "nothing: the directory does not know what storage shows, and its owner is locked out",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "    announced::write(dir, key, &announced)?;",
            replacement: "    if known.announced.is_none() {
        announced::write(dir, key, &announced)?;
    }",
        }],
        found_by: &[VOLUME_CRASH
            .tests(&["a_failed_operation_and_a_power_loss_in_the_next_opening_lock_nobody_out"])],
    },
    Leak {
        name: "openings-go-on-from-a-state-in-a-cache",
        shows: "nothing: the directory does not know what storage shows, and its owner is locked out",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "            state_dir::write_again(dir, &name)?;",
            replacement: "            dir.sync(&name)?;",
        }],
        found_by: &[VOLUME_CRASH
            .tests(&["a_failed_operation_and_a_power_loss_in_the_next_opening_lock_nobody_out"])],
    },
    Leak {
        name: "announcements-replace-the-only-anchor",
        shows: "nothing: if it is torn, no anchor is left, and the owner is locked out",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "known.latest.number + if *shown == known.latest { 1 } else { 2 };",
            replacement: "known.latest.number + 1;",
        }],
        found_by: &[VOLUME_TORN_ANCHOR.tests(&[TORN_AFTER_A_TORN_ONE])],
    },
    Leak {
        name: "openings-leave-an-anchor-in-a-cache",
        shows: "nothing: if the one after it is torn, none is left, and the owner is locked out",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "    write_anchor(key, shown, &mut *live.array)?;
    let announced",
            replacement: "    let announced",
        }],
        found_by: &[VOLUME_TORN_ANCHOR
            .tests(&["an_anchor_that_is_torn_in_the_opening_after_a_failed_sync_costs_nothing"])],
    },
    Leak {
        name: "anchors-have-one-place",
        shows: "nothing: if one is torn, none is left, and the owner is locked out",
        edits: &[Edit {
            file: "volume/src/anchor.rs",
            find: "let place = place(checkpoint.number % records::PAIR);",
            replacement: "let place = place(0);",
        }],
        found_by: &[VOLUME_TORN_ANCHOR
            .tests(&["a_torn_anchor_costs_nothing_whichever_it_is", TORN_AFTER_A_TORN_ONE])],
    },
    Leak {
        name: "keys-are-changed-on-a-superblock-in-a-cache",
        shows: "nothing: if the change dies, no copy is whole, and the owner is locked out",
        edits: &[Edit {
            file: "volume/src/key_change.rs",
            find: "    newest::adopt(&mut store, dir, owner)?;
",
            replacement: "",
        }],
        found_by: &[VOLUME_KEYS.tests(&[
            "a_key_change_on_a_superblock_in_a_cache_alone_locks_nobody_out_wherever_it_dies",
        ])],
    },
    Leak {
        name: "the-newest-superblock-is-noted-in-a-cache",
        shows: "nothing: a key that was removed opens the volume again",
        edits: &[Edit {
            file: "volume/src/newest.rs",
            find: "    record(dir, owner)?;
    Ok(mended)",
            replacement: "    if age(dir, owner)? == Age::Newer {
        record(dir, owner)?;
    }
    Ok(mended)",
        }],
        found_by: &[VOLUME_KEYS.tests(&[
            "what_an_opening_has_seen_is_not_undone_by_a_power_loss_after_a_failed_sync",
        ])],
    },
    Leak {
        name: "disk-answers-before-a-failure-count-as-durable",
        shows: "nothing: what was said to survive a power loss is gone after one",
        edits: &[Edit {
            file: "volume/src/disk/worker.rs",
            find: "let done = self.wait_for_flush.drain(..);",
            replacement: "self.wait_for_flush.drain(..).for_each(|pending| pending.answer(None));
            let done = self.wait_for_flush.drain(..);",
        }],
        found_by: &[VOLUME_DISK.tests(&["what_could_not_be_made_durable_is_not_said_to_be"])],
    },
];
