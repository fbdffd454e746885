//! Faults of volumes on a server: who may come, who has a volume, and what is sent again.

use super::{Edit, Leak};
use crate::targets::{SERVE_BUCKET_SESSIONS, STORE_REMOTE_FAULTS, WIRE_TLS};

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
];
