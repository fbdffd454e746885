//! Leaks of the trivial ORAM, which has nothing to show.

use super::{Edit, Leak};
use crate::targets::{VOLUME_PRIVACY, VOLUME_SCAN, VOLUME_VIEW};

const FILE: &str = "core/src/durable/scan/access.rs";
const ARRAY: &str = "core/src/durable/scan/array.rs";

const VIEW: &str = "what_storage_sees_follows_from_the_number_of_accesses_alone";
const FAILURES: &str = "whether_and_when_an_access_fails_does_not_depend_on_what_it_is_for";
const LOST_ACCESS: &str = "a_directory_that_lost_its_last_access_is_refused";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "scan-announces-writes-of-what-is-alive",
        shows: "whether the block of an access was ever written",
        edits: &[Edit {
            file: FILE,
            find: "let mut block = Zeroizing::new(vec![0; block_bytes]);",
            replacement: "if was_live {
            let piece = self.params.piece(self.tree, number);
            self.store.prefetch(&[piece]);
        }
        let mut block = Zeroizing::new(vec![0; block_bytes]);",
        }],
        found_by: &[VOLUME_SCAN.tests(&[VIEW, FAILURES])],
    },
    Leak {
        name: "scan-announces-writes-of-what-it-carries",
        shows: "which blocks have contents, one with each access",
        edits: &[Edit {
            file: FILE,
            find: "let mut block = Zeroizing::new(vec![0; block_bytes]);",
            replacement: "if is_carried {
            let piece = self.params.piece(self.tree, number);
            self.store.prefetch(&[piece]);
        }
        let mut block = Zeroizing::new(vec![0; block_bytes]);",
        }],
        found_by: &[VOLUME_SCAN.tests(&[VIEW])],
    },
    Leak {
        name: "scan-ends-where-its-blocks-are",
        shows: "how long ago a block was written; and within a trip, by which changed bytes it notices",
        edits: &[
            Edit {
                file: FILE,
                find: "            for (address, bytes) in entries(table?, block_bytes) {",
                replacement: "            if found == was_live && found_other == is_carried {
                return Err(Error::new(ErrorKind::MustReopen, \"\"));
            }
            for (address, bytes) in entries(table?, block_bytes) {",
            },
            Edit {
                file: FILE,
                find: "        })?;
        if found != was_live",
                replacement: "        })
        .or_else(|error| match error.kind() {
            ErrorKind::MustReopen => Ok(()),
            _ => Err(error),
        })?;
        if found != was_live",
            },
        ],
        found_by: &[VOLUME_SCAN.tests(&[VIEW, FAILURES])],
    },
    Leak {
        name: "scan-fails-only-for-what-it-needs",
        shows: "in which bucket a block is, to storage that changes one: the access fails or it does not",
        edits: &[Edit {
            file: FILE,
            find: "entries(table?, block_bytes) {",
            replacement: "entries(table.unwrap_or_default(), block_bytes) {",
        }],
        found_by: &[VOLUME_SCAN.tests(&[FAILURES])],
    },
    Leak {
        name: "scan-makes-writes-durable",
        shows: "which accesses are for blocks that were written",
        edits: &[Edit {
            file: FILE,
            find: "        self.accesses += 1;
        Ok(())",
            replacement: "        self.accesses += 1;
        if is_live {
            self.store.flush()?;
        }
        Ok(())",
        }],
        found_by: &[VOLUME_SCAN.tests(&[VIEW, FAILURES])],
    },
    Leak {
        name: "scan-openings-begin-no-era",
        shows: "what changed between a bucket that was lost and the one made in its place",
        edits: &[Edit {
            file: ARRAY,
            find: "        match start {
            EraStart::Opening => self.sealer",
            replacement: "        if self.accesses <= self.kept {
            return;
        }
        match start {
            EraStart::Opening => self.sealer",
        }],
        found_by: &[
            VOLUME_VIEW.tests(&["what_recovery_writes_again_is_sealed_under_another_key"]),
            VOLUME_PRIVACY.tests(&[
                "restored::what_comes_after_a_restored_backup_is_sealed_under_another_key",
            ]),
        ],
    },
    Leak {
        name: "scan-does-not-know-what-it-missed",
        shows: "nothing: an old directory goes on, and overwrites what the right one needs",
        edits: &[Edit {
            file: ARRAY,
            find: "Ok(Sighting::Seen)",
            replacement: "Ok(Sighting::NotYet)",
        }],
        found_by: &[VOLUME_SCAN.tests(&[LOST_ACCESS])],
    },
    Leak {
        name: "scan-takes-damage-for-what-was-before",
        shows: "the same, if storage damages one bucket",
        edits: &[Edit {
            file: ARRAY,
            find: "Ok(Sighting::Unclear)",
            replacement: "Ok(Sighting::NotYet)",
        }],
        found_by: &[VOLUME_SCAN.tests(&[LOST_ACCESS])],
    },
    Leak {
        name: "scan-rescues-are-sure-of-older-copies",
        shows: "nothing: a rescue takes what storage left over for the latest",
        edits: &[Edit {
            file: ARRAY,
            find: "if is_any_damaged {",
            replacement: "if is_any_damaged && live.contains(blocks) {",
        }],
        found_by: &[VOLUME_SCAN.tests(&["a_rescue_gives_back_what_authenticates_and_never_lies"])],
    },
];
