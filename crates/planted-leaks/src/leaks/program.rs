//! Leaks of what stands before volumes: the server, and the program that opens them.

use super::{Edit, Leak};
use crate::targets::{CLI_VOLUME, SERVE_NBD};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "nbd-portions-divide-blocks",
        shows: "whether requests read or write, where there is no cache and blocks are longer than portions",
        edits: &[Edit {
            file: "serve/src/nbd/portions.rs",
            find: "portion_bytes: bytes * (PORTION_BYTES_MAX / bytes).max(1),",
            replacement: "portion_bytes: PORTION_BYTES_MAX.max(bytes.min(1)),",
        }],
        found_by: &[SERVE_NBD.tests(&["portions::no_portion_divides_a_block"])],
    },
    Leak {
        name: "nbd-flush-when-a-client-leaves",
        shows: "when clients leave",
        edits: &[Edit {
            file: "serve/src/nbd/service.rs",
            find: "// Requests in flight hold the other end of the queue.",
            replacement: "let (op, done) = (oblivio_volume::device::DiskOp::Flush, Box::new(drop));
        self.device.submit(oblivio_volume::device::Request { op, done });",
        }],
        found_by: &[
            SERVE_NBD.tests(&["unasked::clients_that_come_and_go_ask_the_disk_for_nothing"])
        ],
    },
    Leak {
        name: "nbd-read-when-a-client-comes",
        shows: "when clients come: the beginning of the disk is fetched for them",
        edits: &[Edit {
            file: "serve/src/nbd/service.rs",
            find: "let (reader, writer) = stream.into_halves();",
            replacement: "let (reader, writer) = stream.into_halves();
        let op = oblivio_volume::device::DiskOp::Read { offset: 0, bytes: 1 };
        let done = Box::new(drop);
        self.device.submit(oblivio_volume::device::Request { op, done });",
        }],
        found_by: &[SERVE_NBD.tests(&[
            "unasked::clients_that_come_and_go_ask_the_disk_for_nothing",
            "unasked::each_request_reaches_the_disk_once",
        ])],
    },
    Leak {
        name: "opening-draws-the-same-coins",
        shows: "all leaves and salts of a volume: they are those of every other opening",
        edits: &[Edit {
            file: "cli/src/volume/opening.rs",
            find: "Ok(Coins::from_system()?)",
            replacement: "use rand::SeedableRng;
    Ok(rand::rngs::StdRng::seed_from_u64(7).into())",
        }],
        found_by: &[CLI_VOLUME.tests(&[
            "coins::two_openings_of_one_volume_draw_other_leaves_and_salts",
            "coins::openings_of_two_volumes_draw_other_leaves_and_salts",
        ])],
    },
];
