//! Leaks and losses of volumes on share servers whose position map is in smaller trees: queries that are sent again, marks that have to be durable, and what an access asks of each tree.

use super::{Edit, Leak};
use crate::targets::{SHARES_HOST_METADATA, SHARES_MAPPED};

const ACCESS: &str = "shares/src/durable/mapped/access.rs";
const ARRAY: &str = "shares/src/durable/mapped/array.rs";
const HOST: &str = "shares/src/host/metadata.rs";
const MARKS: &str = "shares/src/host/marks.rs";

const SHAPE: &str = "servers_are_asked_the_same_whatever_the_owner_does";
const LEAVES: &str = "leaves_are_uniform_in_every_tree_whatever_the_owner_does";
const AGAIN: &str = "what_is_done_again_is_sent_again_as_it_was";
const COPIES: &str = "copies_of_a_client_that_go_on_differently_share_differently";
const STOPS: &str = "nothing_is_lost_wherever_the_client_stops";
const DIES: &str = "nothing_is_lost_wherever_a_server_dies";
const STARTS: &str = "a_server_may_be_started_again_between_any_two_messages";
const ANEW: &str = "the_shares_of_a_server_are_made_anew";
const SET_BACK: &str = "a_check_finds_servers_that_are_set_back_alike";
const SAID: &str = "slots_on_files_say_what_those_in_memory_say";
const ANOTHER: &str = "another_write_in_its_place_takes_back_what_the_first_has_marked";

const QUERY: &str = "let mut coins = self.coins_of(step, tree, &query_as_bytes(position, shown));";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "mapped-query-is-drawn-anew-when-it-is-sent-again",
        shows: "nothing, and makes a mark of two sharings, which is none",
        edits: &[Edit {
            file: ACCESS,
            find: QUERY,
            replacement: "let mut coins = {
            use rand_core::Rng;
            let _ = query_as_bytes(position, shown);
            let mut seed = [0; 32];
            super::super::access::drawn(&mut self.coins)?.fill_bytes(&mut seed);
            ChaCha20Rng::from_seed(seed)
        };",
        }],
        found_by: &[SHARES_MAPPED.tests(&[AGAIN])],
    },
    Leak {
        name: "mapped-salt-is-not-used",
        shows: "of copies of a client, which of their accesses are the same",
        edits: &[Edit {
            file: ACCESS,
            find: "[&step.salt[..], &[tree as u8], shared].concat()",
            replacement: "[&[step.number as u8, tree as u8], shared].concat()",
        }],
        found_by: &[SHARES_MAPPED.tests(&[COPIES])],
    },
    Leak {
        name: "mapped-asks-twice-where-nothing-is",
        shows: "which accesses are for no block, or for one that was never accessed before",
        edits: &[Edit {
            file: ACCESS,
            find: "let position = self.found(visit, &said).map_err(|error| self.wrong(error))?;",
            replacement:
                "let position = self.found(visit, &said).map_err(|error| self.wrong(error))?;
        if position.is_none() {
            let again = vec![Request::Metadata { at, leaf: shown }; self.params.parties.servers()];
            self.answers(tree, again, bytes)?;
        }",
        }],
        found_by: &[SHARES_MAPPED.tests(&[SHAPE])],
    },
    Leak {
        name: "mapped-path-of-nothing-is-one-of-few",
        shows: "which accesses are for no block, or for one that was never accessed before",
        edits: &[Edit {
            file: ARRAY,
            find: "Draw { instead, to }",
            replacement: "Draw { instead: oblivio_core::Leaf(instead.0 & !1), to }",
        }],
        found_by: &[SHARES_MAPPED.tests(&[LEAVES])],
    },
    Leak {
        name: "mapped-blocks-go-to-half-of-the-paths",
        shows: "where blocks are not, and so whether a path was drawn for one",
        edits: &[Edit {
            file: ARRAY,
            find: "Draw { instead, to }",
            replacement: "Draw { instead, to: oblivio_core::Leaf(to.0 & !1) }",
        }],
        found_by: &[SHARES_MAPPED.tests(&[LEAVES])],
    },
    Leak {
        name: "mapped-marks-are-not-kept",
        shows: "nothing, and loses blocks: those that were taken still count",
        edits: &[Edit {
            file: "shares/src/host/requests.rs",
            find: "self.mark_what_was_taken(at)?;",
            replacement: "",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[SAID])],
    },
    Leak {
        name: "mapped-metadata-are-those-of-after-the-write",
        shows: "nothing, and loses blocks: a client that comes back in the middle of an access does not find them again",
        edits: &[Edit {
            file: HOST,
            find: "let marks = marks.of(bucket, at).map_err(unusable)?;
            let slots",
            replacement: "let marks = marks.of(bucket, self.record.at).map_err(unusable)?;
            let slots",
        }],
        found_by: &[SHARES_MAPPED.tests(&[STOPS])],
    },
    Leak {
        name: "mapped-marks-of-a-torn-write-count",
        shows: "nothing, and loses blocks with the power of a server",
        edits: &[Edit {
            file: "shares/src/host/files.rs",
            find: "if is_torn || !has_all_marks {",
            replacement: "if is_torn || !has_all_marks && false {",
        }],
        found_by: &[SHARES_MAPPED.tests(&[DIES])],
    },
    Leak {
        name: "mapped-marks-of-before-are-overwritten",
        shows: "nothing, and loses blocks: no server can answer as it did before",
        edits: &[Edit {
            file: MARKS,
            find: "let place = kept.map_or(0, |kept| 1 - kept);",
            replacement: "let place = kept.unwrap_or(0);",
        }],
        found_by: &[SHARES_MAPPED.tests(&[STOPS])],
    },
    Leak {
        name: "mapped-root-that-is-copied-loses-its-marks",
        shows: "nothing, and loses blocks: copies of those that were taken from the root count again",
        edits: &[Edit {
            file: MARKS,
            find: "page(self.of(BucketId::ROOT, before)?)",
            replacement: "page(vec![0; self.tree.slots()])",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[SAID])],
    },
    Leak {
        name: "mapped-slots-that-hold-nothing-yet-are-marked",
        shows: "nothing, and spoils what comes into them once a server was made anew",
        edits: &[Edit {
            file: MARKS,
            find: "let held = if bucket == BucketId::ROOT { at.written } else { taken.len() };",
            replacement: "let held = taken.len();",
        }],
        found_by: &[SHARES_MAPPED.tests(&[ANEW])],
    },
    Leak {
        name: "mapped-another-write-adds-to-the-marks-of-the-first",
        shows: "nothing, and spoils what a directory that was set back goes on with",
        edits: &[Edit {
            file: MARKS,
            find: "self.take_back_another(after, leaf)?;",
            replacement: "",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[ANOTHER])],
    },
    Leak {
        name: "mapped-server-that-was-started-again-is-not-asked-again",
        shows: "nothing, and ends a volume with each start of a server",
        edits: &[Edit {
            file: ACCESS,
            find: "if again.contains(&true) {",
            replacement: "if again.contains(&true) && again.is_empty() {",
        }],
        found_by: &[SHARES_MAPPED.tests(&[STARTS])],
    },
    Leak {
        name: "mapped-check-does-not-compare-trees",
        shows: "nothing, and takes older blocks for the last if all servers show them",
        edits: &[Edit {
            file: "shares/src/durable/mapped/walk.rs",
            find: "if found != expected {",
            replacement: "if found.blocks > expected.blocks + self.params.blocks {",
        }],
        found_by: &[SHARES_MAPPED.tests(&[SET_BACK])],
    },
];
