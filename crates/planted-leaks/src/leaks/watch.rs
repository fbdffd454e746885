//! Leaks of the page that watches a disk: to storage, and to whoever finds the page.

use super::{Edit, Leak};
use crate::targets::{CLI_VOLUME, SERVE_WATCH};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "watch-reads-with-each-request",
        shows: "that a disk is watched, and how many requests there are: the beginning of the disk is read with each",
        edits: &[Edit {
            file: "volume/src/device/watched.rs",
            find: "(self.tell)(&request.op);",
            replacement: "(self.tell)(&request.op);
        let op = DiskOp::Read { offset: 0, bytes: 1 };
        self.disk.submit(Request { op, done: Box::new(drop) });",
        }],
        found_by: &[
            SERVE_WATCH.tests(&["unchanged::storage_sees_the_same_of_a_disk_that_is_watched"])
        ],
    },
    Leak {
        name: "watch-shows-the-owner-unasked",
        shows: "to whoever sees the page or the screen, what the owner does",
        edits: &[Edit {
            file: "cli/src/volume/watching.rs",
            find: "shows_secrets.then(|| OwnerSide::new(insight, bound.limits()));",
            replacement: "(shows_secrets || true).then(|| OwnerSide::new(insight, bound.limits()));",
        }],
        found_by: &[
            CLI_VOLUME.tests(&["watch::a_page_shows_what_storage_sees_and_nothing_of_the_owner"])
        ],
    },
    Leak {
        name: "watch-asks-for-no-token",
        shows: "to every user of the machine, what the page shows",
        edits: &[Edit {
            file: "serve/src/watch/door.rs",
            find: "\"events\" if tokens.page.is(said) => Ok(Admitted::Events),",
            replacement: "\"events\" => Ok(Admitted::Events),",
        }],
        found_by: &[SERVE_WATCH.tests(&["strangers::without_the_token_there_is_nothing"])],
    },
    Leak {
        name: "watch-tickets-are-good-for-ever",
        shows: "to every user of the machine who reads the list of processes, what the page shows",
        edits: &[Edit {
            file: "serve/src/watch/token.rs",
            find: "self.is_used.swap(true, Ordering::Relaxed)",
            replacement: "self.is_used.swap(false, Ordering::Relaxed)",
        }],
        found_by: &[
            SERVE_WATCH.tests(&["strangers::the_address_that_is_told_leads_to_the_page_once"])
        ],
    },
    Leak {
        name: "watch-answers-to-any-name",
        shows: "to a page on the net whose name points at this machine, that the page is there",
        edits: &[Edit {
            file: "serve/src/watch/door.rs",
            find: ".filter(|name| is_own_name(name, address))",
            replacement: ".filter(|name| is_own_name(name, address) || !name.is_empty())",
        }],
        found_by: &[SERVE_WATCH
            .tests(&["strangers::other_names_and_other_pages_are_refused_even_with_the_token"])],
    },
];
