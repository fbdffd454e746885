//! Leaks and losses of volumes on share servers whose position map is in smaller trees: queries that are sent again, marks that have to be durable, and what an access asks of each tree.

use super::{Edit, Leak};
use crate::targets::{
    SHARES_DURABLE_TRUST, SHARES_HOST_METADATA, SHARES_MAPPED, SHARES_MAPPED_VIEW,
};

const ACCESS: &str = "shares/src/durable/mapped/access.rs";
const ARRAY: &str = "shares/src/durable/mapped/array.rs";
const COINS: &str = "shares/src/durable/coins.rs";
const HOST: &str = "shares/src/host/metadata.rs";
const MARKS: &str = "shares/src/host/marks.rs";

const SHAPE: &str = "servers_are_asked_the_same_whatever_the_owner_does";
const LEAVES: &str = "leaves_are_uniform_in_every_tree_whatever_the_owner_does";
const AGAIN: &str = "what_is_done_again_is_sent_again_as_it_was";
const COPIES: &str = "copies_of_a_client_that_go_on_differently_share_differently";
const STOPS: &str = "nothing_is_lost_wherever_the_client_stops";
const STARTS: &str = "a_server_may_be_started_again_between_any_two_messages";
const ANEW: &str = "the_shares_of_a_server_are_made_anew";
const SET_BACK: &str = "a_check_finds_servers_that_are_set_back_alike";
const SAID: &str = "slots_on_files_say_what_those_in_memory_say";
const ANOTHER: &str = "another_write_in_its_place_takes_back_what_the_first_has_marked";

const TORN: &str = "no_mark_of_another_write_is_left_wherever_a_server_dies";
const LIES: &str = "a_disk_that_lies_about_the_last_write_of_any_tree_loses_nothing";
const KNOW: &str = "a_directory_is_old_if_servers_know_more_of_any_tree";
const MATRICES: &str =
    "matrices_that_differ_are_shared_from_other_coins_though_the_plans_are_the_same";
const SAME: &str = "copies_with_other_plans_share_the_same_matrices_differently";
const OLDER: &str = "an_older_version_of_a_block_is_not_taken_for_it_though_all_servers_show_it";
const LABELS: &str = "servers_that_recover_what_slots_say_read_no_addresses";
const RESCUE: &str =
    "what_is_left_of_servers_that_are_set_back_alike_is_never_taken_for_the_latest";
const PATIENCE: &str = "only_what_may_take_long_is_waited_for_long";

const QUERY: &str = "let mut coins = self.coins_of(step, tree, &query_bytes(position, shown));";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "mapped-query-is-drawn-anew-when-it-is-sent-again",
        shows: "nothing, and makes a mark of two sharings, which is none",
        edits: &[Edit {
            file: ACCESS,
            find: QUERY,
            replacement: "let _ = query_bytes(position, shown);
        crate::PLANTED_NOTE.set(crate::PLANTED_NOTE.get() + 1);
        let mut coins = self.coins_of(step, tree, &crate::PLANTED_NOTE.get().to_le_bytes());",
        }],
        found_by: &[SHARES_MAPPED_VIEW.tests(&[AGAIN])],
    },
    Leak {
        name: "mapped-salt-is-not-used",
        shows: "of copies of a client, which of their accesses are the same",
        edits: &[Edit {
            file: ACCESS,
            find: "&[&step.salt, &[tree as u8], &number, shared]",
            replacement: "&[&[step.number as u8, tree as u8], &number, shared]",
        }],
        found_by: &[SHARES_MAPPED_VIEW.tests(&[COPIES])],
    },
    Leak {
        name: "mapped-asks-twice-where-nothing-is",
        shows: "which accesses are for no block, or for one that was never accessed before",
        edits: &[Edit {
            file: ACCESS,
            find: "self.found(visit, &said).map_err(|error| self.wrong(visit, \
                   &error.to_string()))?;",
            replacement:
                "self.found(visit, &said).map_err(|error| self.wrong(visit, &error.to_string()))?;
        if position.is_none() {
            let again = vec![Request::Metadata { at, leaf: shown }; self.params.parties.servers()];
            self.answers(tree, again, bytes)?;
        }",
        }],
        found_by: &[SHARES_MAPPED_VIEW.tests(&[SHAPE])],
    },
    Leak {
        name: "mapped-path-of-nothing-is-one-of-few",
        shows: "which accesses are for no block, or for one that was never accessed before",
        edits: &[Edit {
            file: ARRAY,
            find: "Draw { instead, to }",
            replacement: "Draw { instead: oblivio_core::Leaf(instead.0 & !1), to }",
        }],
        found_by: &[SHARES_MAPPED_VIEW.tests(&[LEAVES])],
    },
    Leak {
        name: "mapped-blocks-go-to-half-of-the-paths",
        shows: "where blocks are not, and so whether a path was drawn for one",
        edits: &[Edit {
            file: ARRAY,
            find: "Draw { instead, to }",
            replacement: "Draw { instead, to: oblivio_core::Leaf(to.0 & !1) }",
        }],
        found_by: &[SHARES_MAPPED_VIEW.tests(&[LEAVES])],
    },
    Leak {
        name: "mapped-marks-are-not-kept",
        shows: "nothing, and loses blocks: those that were taken still count",
        edits: &[Edit {
            file: "shares/src/host/requests.rs",
            find: "self.mark_what_was_taken(at)?",
            replacement: "0",
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
        name: "mapped-write-marks-what-was-selected-at-another-point",
        shows: "nothing, and makes marks of two points if a client breaks the protocol",
        edits: &[Edit {
            file: "shares/src/host/metadata.rs",
            find: "self.asked.as_ref().filter(|it| it.at == at) else",
            replacement: "self.asked.as_ref() else",
        }],
        found_by: &[SHARES_HOST_METADATA
            .tests(&["a_write_marks_nothing_that_was_selected_at_another_point"])],
    },
    Leak {
        name: "mapped-marks-of-a-torn-write-count",
        shows: "nothing, and loses blocks with the power of a server",
        edits: &[Edit {
            file: "shares/src/host/files.rs",
            find: "if is_torn || !has_all_marks {",
            replacement: "if is_torn || !has_all_marks && false {",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[TORN])],
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
            file: HOST,
            find: "if marks.take_back_another(at, write).map_err(unusable)? {",
            replacement: "if false {
            marks.take_back_another(at, write).map_err(unusable)?;",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[ANOTHER])],
    },
    Leak {
        name: "mapped-marks-of-the-first-are-removed-with-the-second-write",
        shows: "nothing, and spoils what a directory that was set back goes on with, if a server loses its power just then",
        edits: &[Edit {
            file: HOST,
            find: "self.sync_bucket(BucketId::ROOT).map_err(unusable)?;
        }
        if let",
            replacement: "}
        if let",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[TORN])],
    },
    Leak {
        name: "mapped-marks-of-what-was-forgotten-are-left",
        shows: "nothing, and spoils what a directory that was set back goes on with, if a server has lost its power before",
        edits: &[Edit {
            file: "shares/src/host/files.rs",
            find: "marks.remove_later(at)?;",
            replacement: "let _ = marks;",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[TORN])],
    },
    Leak {
        name: "mapped-marks-of-another-query-are-taken-for-those-of-this",
        shows: "nothing, and makes marks of two sharings where two writes are to one path and a server loses its power",
        edits: &[Edit {
            file: MARKS,
            find: "Self { leaf, query_sum: sum(query) }",
            replacement: "Self { leaf, query_sum: query.len() as u32 }",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[TORN])],
    },
    Leak {
        name: "mapped-record-does-not-say-which-marks-are-its",
        shows: "nothing, and takes the marks of one write for those of another where a server loses its power",
        edits: &[Edit {
            file: MARKS,
            find: "write.query_sum == query_sum && ",
            replacement: "(write.query_sum == query_sum || true) && ",
        }],
        found_by: &[SHARES_HOST_METADATA.tests(&[TORN])],
    },
    Leak {
        name: "mapped-server-that-was-started-again-is-not-asked-again",
        shows: "nothing, and ends a volume with each start of a server",
        edits: &[Edit {
            file: ACCESS,
            find: "if !again.contains(&true) || failed > 0 && !waits(&mut servers) {",
            replacement: "if !again.is_empty() || failed > 0 && !waits(&mut servers) {",
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
    Leak {
        name: "mapped-access-counts-once-the-data-have-it",
        shows: "nothing, and ends a volume if a disk says too early that a block of the map is durable",
        edits: &[Edit {
            file: ACCESS,
            find: "done.iter().position(|done| at >= *done)",
            replacement: "done.iter().take(1).position(|done| at >= *done)",
        }],
        found_by: &[SHARES_MAPPED.tests(&[LIES])],
    },
    Leak {
        name: "mapped-access-is-made-again-in-all-trees",
        shows: "nothing, and ends a volume if a disk says too early that a block of the map is durable, and the data are evicted",
        edits: &[Edit {
            file: ACCESS,
            find: "self.access_on_servers(lacking, step, op)?;",
            replacement: "let _ = lacking;
            self.access_on_servers(0, step, op)?;",
        }],
        found_by: &[SHARES_MAPPED.tests(&[LIES])],
    },
    Leak {
        name: "mapped-directory-is-old-by-the-data-alone",
        shows: "paths of the map again, for another access, if a directory was set back by one that was cut off",
        edits: &[Edit {
            file: "shares/src/durable/mapped/look.rs",
            find: "is_any_old |= is_old(",
            replacement: "is_any_old |= tree == 0 && is_old(",
        }],
        found_by: &[SHARES_MAPPED.tests(&[KNOW])],
    },
    Leak {
        name: "mapped-matrices-are-shared-from-the-plan-alone",
        shows: "by how much the matrices of two copies of a client differ, if servers tell them different things",
        edits: &[Edit {
            file: COINS,
            find: "std::iter::once(&name[..]).chain(matrices).collect();",
            replacement: "std::iter::once(&name[..]).chain(matrices.take(0)).collect();",
        }],
        found_by: &[SHARES_MAPPED_VIEW.tests(&[MATRICES])],
    },
    Leak {
        name: "mapped-plans-are-not-mixed-in",
        shows: "whether two copies of a client move the same in an eviction",
        edits: &[Edit {
            file: ARRAY,
            find: "self.coins.mix_in(&self.sealer, plan.section())?;",
            replacement: "",
        }],
        found_by: &[SHARES_MAPPED_VIEW.tests(&[SAME])],
    },
    Leak {
        name: "mapped-rescue-takes-what-is-not-told-for-the-latest",
        shows: "nothing, and hands out older blocks as the latest if all servers are set back",
        edits: &[Edit {
            file: "shares/src/durable/mapped/salvage.rs",
            find: "untold.insert_all(0..blocks);",
            replacement: "untold.remove_all(0..blocks);",
        }],
        found_by: &[SHARES_MAPPED.tests(&[RESCUE])],
    },
    Leak {
        name: "mapped-slots-say-addresses",
        shows: "to servers that recover shares together, which blocks of the disk are accessed",
        edits: &[Edit {
            file: "shares/src/durable/mapped/labels.rs",
            find: "(if numbered == 0 { zeros } else { numbered }) - 1",
            replacement: "{
            let _ = (zeros, numbered);
            address
        }",
        }],
        found_by: &[SHARES_MAPPED_VIEW.tests(&[LABELS])],
    },
    Leak {
        name: "mapped-older-versions-count",
        shows: "nothing, and takes an older block for the last if all servers show it",
        edits: &[Edit {
            file: ACCESS,
            find: "opened.name() == name(tree, Some(address), mapped.write)",
            replacement: "opened.name() == name(tree, Some(address), opened.name().number) || mapped.write == u64::MAX",
        }],
        found_by: &[SHARES_DURABLE_TRUST.tests(&[OLDER])],
    },
    Leak {
        name: "mapped-what-slots-say-is-waited-for-as-evictions",
        shows: "nothing, and lets one server hold each access for 20 minutes",
        edits: &[Edit {
            file: "shares/src/durable/servers.rs",
            find: "matches!(request, Request::Evict { .. } |",
            replacement: "matches!(request, Request::Evict { .. } | Request::Metadata { .. } |",
        }],
        found_by: &[SHARES_DURABLE_TRUST.tests(&[PATIENCE])],
    },
];
