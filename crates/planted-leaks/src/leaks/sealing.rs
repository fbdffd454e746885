//! Leaks to storage that lies or keeps old copies, and of clients that are copied.

use super::{Edit, Leak};
use crate::targets::{
    VOLUME_GOING_BACK, VOLUME_LYING_STORAGE, VOLUME_PRIVACY, VOLUME_RESCUE, VOLUME_SUPERBLOCK,
    VOLUME_UNITS,
};

const PARTING_COPIES: &str =
    "volume::tests::copies_of_a_client_draw_other_leaves_and_other_keys_from_a_checkpoint_on";

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
            file: "volume/src/volume/opening.rs",
            find: "            .refuse_if_behind(&mut *live.array, options.after_tampering)
",
            replacement: "            .refuse_if_behind(&mut *live.array, options.after_tampering)
            .or(Ok::<(), VolumeError>(()))
",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["a_directory_that_is_refused_leaves_the_right_one_what_it_needs"])],
    },
    Leak {
        name: "openings-leave-their-anchor-in-a-cache",
        shows: "accesses of a session again, from an old directory that an interrupted recovery has covered up",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "    anchor::write(array.store_mut(), key, checkpoint)?;
    Ok(array.flush()?)",
            replacement: "    anchor::write(array.store_mut(), key, checkpoint)",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["a_recovery_that_is_interrupted_hides_nothing_from_an_old_copy"])],
    },
    Leak {
        name: "openings-make-nothing-durable",
        shows: "accesses of a session again, from an old directory that nobody misses",
        edits: &[
            Edit {
                file: "volume/src/ledger.rs",
                find: "    anchor::write(array.store_mut(), key, checkpoint)?;
    Ok(array.flush()?)",
                replacement: "    anchor::write(array.store_mut(), key, checkpoint)",
            },
            Edit {
                file: "volume/src/volume/opening.rs",
                find: "        live.array.flush()?;
        recovery.superblocks_mended =",
                replacement: "        recovery.superblocks_mended =",
            },
        ],
        found_by: &[VOLUME_GOING_BACK.tests(&["a_session_that_left_anything_in_storage_is_missed"])],
    },
    Leak {
        name: "checkpoints-leave-their-anchor-in-a-cache",
        shows: "the same, from a directory that was copied within the session",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "        write_anchor(&self.keys.anchor, &self.checkpoint, &mut *live.array)?;",
            replacement: "        let store = live.array.store_mut();
        anchor::write(store, &self.keys.anchor, &self.checkpoint)?;",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["a_directory_that_is_refused_leaves_the_right_one_what_it_needs"])],
    },
    Leak {
        name: "openings-announce-nothing",
        shows: "accesses of a session again, from an old directory that an interrupted recovery has covered up",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "    write_anchor(key, &announced, &mut *live.array)?;
    Ok(announced)",
            replacement: "    Ok(announced)",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["a_recovery_that_is_interrupted_hides_nothing_from_an_old_copy"])],
    },
    Leak {
        name: "openings-end-with-what-they-announced",
        shows: "the same, from a directory that was copied within a recovery",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "let checkpoint = CheckpointName { number, name: draw(&mut live.coins) };",
            replacement:
                "let mut checkpoint = CheckpointName { number, name: draw(&mut live.coins) };
        if generation > 0 {
            checkpoint = previous;
        }",
        }],
        found_by: &[VOLUME_GOING_BACK.tests(&["a_copy_from_within_a_recovery_is_refused_after_it"])],
    },
    Leak {
        name: "checkpoints-put-up-no-fence",
        shows: "nothing: two clients overwrite each other's buckets",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "        self.fence_is_due = true;
        Ok(())",
            replacement: "        Ok(())",
        }],
        found_by: &[
            VOLUME_GOING_BACK.tests(&["a_second_client_is_noticed_before_a_bucket_is_overwritten"])
        ],
    },
    Leak {
        name: "checkpoints-keep-the-coins",
        shows: "which accesses of two copies of a client are for one block, however long ago they parted",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "        live.coins.renew()?;
",
            replacement: "",
        }],
        found_by: &[VOLUME_UNITS.tests(&[PARTING_COPIES])],
    },
    Leak {
        name: "checkpoints-keep-the-keys",
        shows: "nothing: a bucket of one copy of a client is good for the other",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "        live.array.begin_era(EraStart::Checkpoint, &mut live.coins);
",
            replacement: "",
        }],
        found_by: &[VOLUME_UNITS.tests(&[PARTING_COPIES])],
    },
    Leak {
        name: "state-files-have-one-key-stream",
        shows: "to whoever sees the client's directory: what was written before and after a backup was restored",
        edits: &[Edit {
            file: "volume/src/state/file.rs",
            find: "Salt::new(HKDF_SHA256, &self.bytes());",
            replacement: "Salt::new(HKDF_SHA256, &self.bytes()[..HEADER_BYTES - SALT_BYTES]);",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["restored::state_files_after_a_restored_backup_have_keys_of_their_own"])],
    },
    Leak {
        name: "openings-forget-tampering-before-they-repeat",
        shows: "what it asks for with each opening that is interrupted: one bucket more of the path that failed",
        edits: &[Edit {
            file: "volume/src/volume/opening.rs",
            find: "tampering::check(&*dir, options.after_tampering)?;",
            replacement: "tampering::check(&*dir, options.after_tampering)?;
        tampering::forget(&mut *dir)?;",
        }],
        found_by: &[VOLUME_LYING_STORAGE
            .tests(&["what_failed_is_not_repeated_after_an_opening_that_did_not_come_to_its_end"])],
    },
    Leak {
        name: "fence-takes-the-checkpoint-before",
        shows: "nothing: storage goes back by a checkpoint while it is in use",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "Known { latest, previous: latest, announced: None }",
            replacement: "Known { latest, previous: self.previous, announced: None }",
        }],
        found_by: &[VOLUME_GOING_BACK.tests(&[
            "storage_that_goes_back_during_a_session_is_named_before_a_bucket_is_overwritten",
        ])],
    },
    Leak {
        name: "keys-are-changed-with-an-old-directory",
        shows: "nothing: what the right directory needs is another superblock then",
        edits: &[Edit {
            file: "volume/src/key_change.rs",
            find: "matched.history.refuse_if_behind(&mut *matched.array, false)?;",
            replacement: "let _ = matched.history.refuse_if_behind(&mut *matched.array, false);",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["keys_are_not_changed_with_a_directory_that_storage_is_ahead_of"])],
    },
    Leak {
        name: "one-damaged-bucket-hides-an-eviction",
        shows: "accesses again, from an old directory that storage has made to pass",
        edits: &[Edit {
            file: "core/src/scheme/rotating/io/sight.rs",
            find: "            if holds_what_was_before {",
            replacement: "            if holds_what_was_before || true {",
        }],
        found_by: &[VOLUME_RESCUE
            .tests(&["with_an_old_directory_is_sure_of_nothing_whichever_bucket_is_damaged"])],
    },
    Leak {
        name: "rescues-are-sure-of-an-old-directory",
        shows: "nothing: old blocks are given out as the latest",
        edits: &[Edit {
            file: "volume/src/rescue.rs",
            find: "is_ahead || sighting == Sighting::Seen;",
            replacement: "is_ahead || sighting == Sighting::Seen && false;",
        }],
        found_by: &[VOLUME_RESCUE
            .tests(&["with_an_old_directory_is_sure_of_nothing_whichever_bucket_is_damaged"])],
    },
    Leak {
        name: "changed-notes-count-as-blank",
        shows: "nothing: copies of blocks that were taken come back",
        edits: &[Edit {
            file: "core/src/scheme/rotating/io.rs",
            find: "        let verified = sealer.verify(of_page(page), sealed, &[]).ok_or_else(|| {",
            replacement: "        if sealer.verify(of_page(page), sealed, &[]).is_none() {
            return Ok(bits);
        }
        let verified = sealer.verify(of_page(page), sealed, &[]).ok_or_else(|| {",
        }],
        found_by: &[VOLUME_LYING_STORAGE.tests(&["changed_notes_on_taken_slots_are_found"])],
    },
    Leak {
        name: "a-medium-that-fails-counts-as-one-that-lies",
        shows: "nothing: its owner is locked out",
        edits: &[Edit {
            file: "volume/src/tampering.rs",
            find: "error.kind() == VolumeErrorKind::Tampered &&",
            replacement: "[VolumeErrorKind::Tampered, VolumeErrorKind::Io].contains(&error.kind()) &&",
        }],
        found_by: &[VOLUME_LYING_STORAGE
            .tests(&["what_could_not_be_read_is_read_again_by_the_next_opening"])],
    },
    Leak {
        name: "evictions-ahead-of-their-time-are-not-counted",
        shows: "nothing: an honest client is refused",
        edits: &[Edit {
            file: "core/src/scheme/rotating/mod.rs",
            find: "        self.evictions + due / u64::from(self.evict_period) + background",
            replacement: "        let _ = background;
        self.evictions + due / u64::from(self.evict_period)",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["an_honest_client_is_not_refused_after_evictions_ahead_of_their_time"])],
    },
    Leak {
        name: "evictions-ahead-of-their-time-pass-the-fence",
        shows: "nothing: two clients overwrite each other's buckets",
        edits: &[Edit {
            file: "volume/src/volume/window.rs",
            find: "                self.ledger.before_accesses(&mut self.live)?;
                self.ledger.log.append(|out| Record::Evict",
            replacement: "                self.ledger.log.append(|out| Record::Evict",
        }],
        found_by: &[VOLUME_GOING_BACK
            .tests(&["a_second_client_is_noticed_before_an_eviction_ahead_of_its_time"])],
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
    Leak {
        name: "superblocks-are-alike-whatever-vouches-for-them",
        shows: "nothing: one copy that storage has forged hides those that are good",
        edits: &[Edit {
            file: "volume/src/superblock/copies.rs",
            find: "if !sound.contains(&copy) {",
            replacement: "if sound.iter().all(|other| other.body != copy.body) {",
        }],
        found_by: &[VOLUME_SUPERBLOCK.tests(&["copies::forged_copies_do_not_hide_a_good_one"])],
    },
];
