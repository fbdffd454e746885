//! Faults of volumes on a server: who may come, who has a volume, and what is sent again.

use super::{Edit, Leak};
use crate::targets::{
    CLI_VOLUME, SERVE_BUCKET_GUESTS, SERVE_BUCKET_SESSIONS, SERVE_BUCKET_UNITS,
    STORE_REMOTE_FAULTS, STORE_REMOTE_LIES, WIRE_TLS,
};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "remote-any-key-is-known",
        shows: "a server to anybody, and to a client any server",
        edits: &[Edit {
            file: "wire/src/tls.rs",
            find: "PublicKey::of_spki(spki).is_some_and(|key| self.keys.contains(&key));",
            replacement: "PublicKey::of_spki(spki).is_some();",
        }],
        found_by: &[WIRE_TLS.tests(&["those_who_know_each_other_meet_and_nobody_else"])],
    },
    Leak {
        name: "remote-old-sessions-go-on",
        shows: "two clients with copies of one directory what the other writes, which links their accesses",
        edits: &[Edit {
            file: "serve/src/buckets/volume.rs",
            find: "if session == NO_SESSION || self.session()? != Some(session) {",
            replacement: "if self.session()?.is_none() {",
        }],
        found_by: &[
            SERVE_BUCKET_SESSIONS.tests(&["whoever_opens_to_write_fences_off_whoever_did_before"])
        ],
    },
    Leak {
        name: "remote-forgets-what-a-new-start-has-lost",
        shows: "nothing, and loses what was not flushed",
        edits: &[Edit {
            file: "store/src/remote/session.rs",
            find: "self.desk.to_send_again(has_forgotten);",
            replacement: "self.desk.to_send_again(has_forgotten && false);",
        }],
        found_by: &[STORE_REMOTE_FAULTS.tests(&[
            "what_was_not_answered_is_sent_again_and_after_a_new_start_all_that_was_not_durable",
        ])],
    },
    Leak {
        name: "remote-takes-a-new-start-for-an-older-one",
        shows: "nothing, and loses what was not flushed after half of all new starts",
        edits: &[Edit {
            file: "store/src/remote/session.rs",
            find: "let has_forgotten = opened.incarnation != self.incarnation;",
            replacement: "let has_forgotten = opened.incarnation > self.incarnation;",
        }],
        found_by: &[STORE_REMOTE_FAULTS.tests(&[
            "what_was_not_answered_is_sent_again_and_after_a_new_start_all_that_was_not_durable",
        ])],
    },
    Leak {
        name: "remote-goes-on-with-any-session",
        shows: "a server that lies two clients who write at once, whose accesses it can tell apart",
        edits: &[Edit {
            file: "store/src/remote/session.rs",
            find: "if self.reads.is_none() && opened.session != self.session {",
            replacement: "if self.reads.is_none() && opened.session > u64::MAX - 1 {",
        }],
        found_by: &[
            STORE_REMOTE_LIES.tests(&["a_volume_that_is_another_after_the_line_broke_is_refused"])
        ],
    },
    Leak {
        name: "remote-goes-on-with-any-trees",
        shows: "which piece of other trees a client asks for at the place of its own",
        edits: &[Edit {
            file: "store/src/remote/session.rs",
            find: "if opened.shapes != self.shapes {",
            replacement: "if opened.shapes.len() > self.shapes.len() {",
        }],
        found_by: &[
            STORE_REMOTE_LIES.tests(&["a_volume_that_is_another_after_the_line_broke_is_refused"])
        ],
    },
    Leak {
        name: "remote-servers-steer-terminals",
        shows: "whoever reads a message what the server likes",
        edits: &[Edit {
            file: "core/src/error.rs",
            find: "if is_plain(c) { c } else { ' ' }",
            replacement: "if is_plain(c) || c.is_control() { c } else { ' ' }",
        }],
        found_by: &[STORE_REMOTE_FAULTS.tests(&["whoever_is_fenced_off_tries_nothing_more"])],
    },
    Leak {
        name: "remote-takes-answers-of-any-length",
        shows: "nothing, and lets a server end its clients",
        edits: &[Edit {
            file: "store/src/remote/desk.rs",
            find: "Some(Awaited::Data { bytes: expected }) if bytes.len() == expected => {",
            replacement: "Some(Awaited::Data { bytes: expected }) if bytes.len() <= expected => {",
        }],
        found_by: &[STORE_REMOTE_LIES.tests(&["answers_that_do_not_fit_are_the_last"])],
    },
    Leak {
        name: "remote-asks-again-for-what-was-announced",
        shows: "when an access begins, and which announcement it belongs to",
        edits: &[Edit {
            file: "store/src/remote/mod.rs",
            find: "self.kept.has(piece) || self.prefetched.request(piece).is_some();",
            replacement: "self.kept.has(piece) || self.prefetched.find(piece).is_some();",
        }],
        found_by: &[STORE_REMOTE_FAULTS
            .tests(&["announced_pieces_are_asked_for_once_and_the_rest_in_one_request"])],
    },
    Leak {
        name: "remote-readers-go-on-beside-an-owner",
        shows: "nothing, and lets whoever was forgotten read what is half written",
        edits: &[Edit {
            file: "serve/src/buckets/volume.rs",
            find: "        metrics.fenced.add(u64::from(self.writer.is_some()));\n        self.readers.clear();",
            replacement: "        metrics.fenced.add(u64::from(self.writer.is_some()));",
        }],
        found_by: &[SERVE_BUCKET_SESSIONS
            .tests(&["readers_come_while_nobody_writes_and_never_keep_out_an_owner"])],
    },
    Leak {
        name: "remote-refused-commands-take-the-volume",
        shows: "nothing, and ends a disk that is in use because somebody mistyped a command",
        edits: &[Edit {
            file: "oblivio/src/opening.rs",
            find: "Volume::check_before_opening(found.store, &dir, &owner).map_err(of)?;",
            replacement: "drop(found.store);",
        }],
        found_by: &[CLI_VOLUME
            .tests(&["remote::a_second_client_takes_the_volume_over_and_the_first_says_so"])],
    },
    Leak {
        name: "remote-numbers-of-sessions-are-not-synced",
        shows: "nothing, and keeps everybody out of a volume whose server has lost its power",
        edits: &[Edit {
            file: "serve/src/buckets/session.rs",
            find: "    disk.sync(&file)?;\n",
            replacement: "",
        }],
        found_by: &[SERVE_BUCKET_UNITS.tests(&[
            "session::tests::a_number_that_is_told_outlives_a_loss_of_power_and_is_whole_at_any_other",
        ])],
    },
    Leak {
        name: "remote-names-of-sessions-are-not-synced",
        shows: "two clients with copies of one directory what the other writes, once the server has lost its power",
        edits: &[Edit {
            file: "serve/src/buckets/session.rs",
            find: "    disk.rename(&next, &folder.join(NAME))?;\n    sync_folder(disk, folder)",
            replacement: "    disk.rename(&next, &folder.join(NAME))",
        }],
        found_by: &[SERVE_BUCKET_UNITS.tests(&[
            "session::tests::a_number_that_is_told_outlives_a_loss_of_power_and_is_whole_at_any_other",
        ])],
    },
    Leak {
        name: "remote-goes-on-with-what-a-panic-has-left",
        shows: "nothing, and lets a client go on with a store that may be half written",
        edits: &[Edit {
            file: "serve/src/buckets/volume.rs",
            find: "            let mut state = poisoned.into_inner();\n            state.open = None;\n            state",
            replacement: "            poisoned.into_inner()",
        }],
        found_by: &[SERVE_BUCKET_UNITS.tests(&[
            "volume::tests::what_somebody_who_panicked_has_left_is_opened_again_before_it_is_used",
        ])],
    },
    Leak {
        name: "remote-answers-take-memory-that-others-have",
        shows: "nothing, and lets a few clients use up the server's memory",
        edits: &[Edit {
            file: "serve/src/buckets/connection.rs",
            find: "let grow = |bytes| grant.change(parsed + bytes, until);",
            replacement: "let grow = |bytes: u64| grant.change(parsed + bytes.min(0), until);",
        }],
        found_by: &[SERVE_BUCKET_GUESTS.tests(&[
            "an_answer_is_not_made_while_others_that_nobody_takes_have_the_memory",
        ])],
    },
    Leak {
        name: "remote-clients-take-memory-without-an-end",
        shows: "nothing, and lets a few clients use up the server's memory",
        edits: &[Edit {
            file: "serve/src/buckets/memory.rs",
            find: "more == 0 || 2 * held + 3 * more <= self.left",
            replacement: "more == 0 || (held < u64::MAX && more <= self.left)",
        }],
        found_by: &[SERVE_BUCKET_UNITS.tests(&[
            "memory::tests::clients_that_take_all_they_can_get_leave_a_part_for_the_next",
        ])],
    },
];
