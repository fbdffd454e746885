//! Leaks to storage that lies or keeps old copies, and of clients that are copied.

use super::{Edit, Leak};
use crate::targets::{VOLUME_GOING_BACK, VOLUME_LYING_STORAGE};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "sealed-dummies-skip-a-bucket",
        shows: "by whether an access fails, whether it is for a block in the tree",
        edits: &[Edit {
            file: "core/src/scheme/rotating/io.rs",
            find: "        let path = verifier.verify_all(versions, &frames)?;
        let mut found = None;",
            replacement: "        if wanted.is_none() {
            versions[0].is_written = false;
        }
        let path = verifier.verify_all(versions, &frames)?;
        let mut found = None;",
        }],
        found_by: &[VOLUME_LYING_STORAGE
            .tests(&["whether_a_tick_fails_does_not_depend_on_whether_somebody_asks"])],
    },
    Leak {
        name: "sealed-buckets-above-the-block-are-not-verified",
        shows: "by whether an access fails, on which level its block lies",
        edits: &[Edit {
            file: "core/src/scheme/rotating/io.rs",
            find: "        let path = verifier.verify_all(versions, &frames)?;
        let mut found = None;",
            replacement: "        if wanted.is_some_and(|address| address % 2 == 0) {
            versions[0].is_written = false;
        }
        let path = verifier.verify_all(versions, &frames)?;
        let mut found = None;",
        }],
        found_by: &[VOLUME_LYING_STORAGE
            .tests(&["whether_an_access_fails_does_not_depend_on_what_it_is_for"])],
    },
    Leak {
        name: "sealed-nonces-follow-from-names-alone",
        shows: "the XOR of what two copies of a client have written",
        edits: &[
            Edit {
                file: "core/src/seal/bucket.rs",
                find: "        nonce_mac.update(table);
",
                replacement: "",
            },
            Edit {
                file: "core/src/seal/bucket.rs",
                find: "        blocks.clone().for_each(|block| nonce_mac.update(block));
",
                replacement: "",
            },
        ],
        found_by: &[VOLUME_GOING_BACK.tests(&["a_client_that_was_cloned_gives_away_no_plaintext"])],
    },
    Leak {
        name: "openings-repeat-what-found-tampering",
        shows: "what it asks for with each opening: one bucket more of the path that failed",
        edits: &[Edit {
            file: "volume/src/tampering.rs",
            find: "if after_tampering || !is_noted(dir)? {",
            replacement: "if after_tampering || !is_noted(dir)? || true {",
        }],
        found_by: &[
            VOLUME_LYING_STORAGE.tests(&["what_failed_is_not_repeated_until_the_owner_says_so"])
        ],
    },
    Leak {
        name: "openings-repeat-the-log-before-they-look",
        shows: "nothing: an old directory destroys what the right one needs",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "        if history.is_behind_storage(&mut oram)? {",
            replacement: "        if false && history.is_behind_storage(&mut oram)? {",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["a_directory_that_is_refused_leaves_the_right_one_what_it_needs"])],
    },
    Leak {
        name: "openings-leave-their-anchor-in-a-cache",
        shows: "accesses of a session again, from an old directory that nobody misses",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "    anchor::write(oram.backend_mut().store_mut(), key, checkpoint)?;
    Ok(oram.backend_mut().flush()?)",
            replacement: "    anchor::write(oram.backend_mut().store_mut(), key, checkpoint)",
        }],
        found_by: &[VOLUME_GOING_BACK.tests(&["a_session_that_left_anything_in_storage_is_missed"])],
    },
    Leak {
        name: "checkpoints-leave-their-anchor-in-a-cache",
        shows: "the same, from a directory that was copied within the session",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "        write_anchor(&self.keys.anchor, &self.checkpoint, oram)?;",
            replacement: "        let store = oram.backend_mut().store_mut();
        anchor::write(store, &self.keys.anchor, &self.checkpoint)?;",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["a_directory_that_is_refused_leaves_the_right_one_what_it_needs"])],
    },
    Leak {
        name: "evictions-pass-the-fence",
        shows: "nothing: two clients overwrite each other's buckets",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "        if self.fence_is_due {",
            replacement: "        if false {",
        }],
        found_by: &[
            VOLUME_GOING_BACK.tests(&["a_second_client_is_noticed_before_a_bucket_is_overwritten"])
        ],
    },
];
