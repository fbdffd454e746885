//! Leaks of Path ORAM and RAW ORAM, each with its position map in client memory.

use super::{Edit, Leak};
use crate::targets::{BACKGROUND_EVICTION, PRIVACY};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "no-remap",
        shows: "a block keeps its leaf: accesses to one block read one path",
        edits: &[Edit {
            file: "core/src/posmap/flat.rs",
            find: "let new = draw_leaf(coins, self.leaf_level);",
            replacement: "let new = old;",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "reads-do-not-remap",
        shows: "a block keeps its leaf until it is written: repeated reads, and which are reads",
        edits: &[Edit {
            file: "core/src/front/flat.rs",
            find: "self.position_map.look_up_and_remap(*address, &mut self.coins);",
            replacement: "if matches!(op, Op::Read(_)) {
                    let leaf = self.position_map.look_up(*address, &mut self.coins);
                    (leaf, leaf)
                } else {
                    self.position_map.look_up_and_remap(*address, &mut self.coins)
                };",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "biased-leaf",
        shows: "one leaf is never drawn: which paths belong to blocks and not to chance",
        edits: &[Edit {
            file: "core/src/posmap/mod.rs",
            find: "Leaf(coins.next_u64() & ((1 << leaf_level) - 1))",
            replacement: "Leaf(coins.next_u64() % ((1 << leaf_level) - 1u64).max(1))",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "path-stash-hit-reads-nothing",
        shows: "whether a block is in the stash, so whether it was asked for lately",
        edits: &[Edit {
            file: "core/src/scheme/path.rs",
            find: "self.visit_path(address, from, |client| client.serve(address, to, op))",
            replacement: "if self.client.stash.find(address).is_some() {
            self.client.serve(address, to, op);
            return Ok(());
        }
        self.visit_path(address, from, |client| client.serve(address, to, op))",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ])],
    },
    Leak {
        name: "raw-stash-hit-reads-nothing",
        shows: "whether a block is in the stash, so whether it was asked for lately",
        edits: &[Edit {
            file: "core/src/scheme/raw.rs",
            find: "self.access_only(address, from, to, op)?;",
            replacement: "if self.client.stash.find(address).is_some() {
            self.client.serve(address, to, op);
        } else {
            self.access_only(address, from, to, op)?;
        }",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ])],
    },
    Leak {
        name: "raw-tree-top-hit-reads-nothing",
        shows: "whether a block is near the root, so whether it was asked for lately",
        edits: &[Edit {
            file: "core/src/scheme/raw.rs",
            find: "let counter = io.fresh_counter()?;
        let place = client.blocks.take();",
            replacement: "if let Some(entry) = client.top.take(from, address) {
            client.stash.insert(entry);
            client.serve(address, to, op);
            return Ok(());
        }
        let counter = io.fresh_counter()?;
        let place = client.blocks.take();",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ])],
    },
    Leak {
        name: "repeats-in-a-batch-read-nothing",
        shows: "how often a batch asks for the same block",
        edits: &[
            Edit {
                file: "core/src/front/flat.rs",
                find: "let mut requests = window.iter_mut().peekable();",
                replacement: "let mut served = std::collections::HashSet::new();
            let mut requests = window.iter_mut().peekable();",
            },
            Edit {
                file: "core/src/front/flat.rs",
                find: "while let Some(Access { address, op }) = requests.next() {",
                replacement: "while let Some(Access { address, op }) = requests.next() {
                    if !served.insert(*address) {
                        continue;
                    }",
            },
        ],
        found_by: &[PRIVACY.tests(&["shape::workloads_of_one_length_look_alike"])],
    },
    Leak {
        name: "look-ahead-to-a-stale-leaf",
        shows: "that the next request is for the same block: its old path is shown, not its new one",
        edits: &[
            Edit {
                file: "core/src/front/flat.rs",
                find: "if let Some(next) = requests.peek() {",
                replacement: "if let Some(next) = requests.peek().filter(|_| false) {",
            },
            Edit {
                file: "core/src/front/flat.rs",
                find: "while let Some(Access { address, op }) = requests.next() {",
                replacement: "while let Some(Access { address, op }) = requests.next() {
                    if let Some(next) = requests.peek() {
                        self.look_ahead(next);
                    }",
            },
        ],
        found_by: &[PRIVACY.tests(&["leaves::shown_ahead_are_those_read_next"])],
    },
    Leak {
        name: "no-look-ahead-with-a-full-stash",
        shows: "whether the stash is at its bound",
        edits: &[Edit {
            file: "core/src/front/flat.rs",
            find: "self.scheme.announce(&[leaf]);",
            replacement: "if self.stash().blocks() < self.config().stash_blocks_max {
                self.scheme.announce(&[leaf]);
            }",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::a_stash_that_passes_its_bound_within_a_batch_looks_like_an_empty_one",
        ])],
    },
    Leak {
        name: "raw-dummy-is-an-eviction",
        shows: "which accesses are dummies",
        edits: &[Edit {
            file: "core/src/scheme/raw.rs",
            find: "self.access_nothing(leaf)?;
        self.evict_if_due()?;",
            replacement: "let _ = Self::access_nothing;
        let _ = leaf;
        self.evict_only()?;",
        }],
        found_by: &[PRIVACY
            .tests(&["dummies::have_the_shape_of_requests_and_the_same_evictions_between_them"])],
    },
    Leak {
        name: "raw-dummies-are-not-counted",
        shows: "which accesses are dummies: evictions come after so many requests",
        edits: &[Edit {
            file: "core/src/scheme/raw.rs",
            find: "self.access_nothing(leaf)?;
        self.evict_if_due()?;",
            replacement: "self.access_nothing(leaf)?;",
        }],
        found_by: &[PRIVACY
            .tests(&["dummies::have_the_shape_of_requests_and_the_same_evictions_between_them"])],
    },
    Leak {
        name: "background-eviction-goes-where-a-block-waits",
        shows: "where a block is: one eviction in eight takes the path of an access to come",
        edits: &[Edit {
            file: "core/src/scheme/path.rs",
            find: "self.dummy(coins)",
            replacement: "match self.client.stash.entries().first() {
            Some(&Entry { leaf, .. }) if draw_leaf(coins, 3) == Leaf(0) => {
                self.visit_path(Entry::DUMMY_ADDRESS, leaf, |_| ())
            }
            _ => self.dummy(coins),
        }",
        }],
        found_by: &[BACKGROUND_EVICTION
            .tests(&["evictions_of_path_oram_look_like_accesses_to_random_leaves"])],
    },
    Leak {
        name: "evictions-in-another-order",
        shows: "nothing by itself: but an order that was not published is one nobody has analysed",
        edits: &[
            Edit {
                file: "core/src/geometry/eviction_order.rs",
                find: "Leaf(g & ((1 << leaf_level) - 1))",
                replacement: "Leaf(!g & ((1 << leaf_level) - 1))",
            },
            Edit {
                file: "core/src/geometry/eviction_order.rs",
                find: "u64::from(g & below > leaf.0 & below)",
                replacement: "u64::from(g & below > !leaf.0 & below)",
            },
        ],
        found_by: &[PRIVACY.tests(&["leaves::of_evictions_come_in_the_published_order"])],
    },
    Leak {
        name: "no-eviction-of-an-empty-stash",
        shows: "that the stash is empty",
        edits: &[Edit {
            file: "core/src/scheme/raw.rs",
            find: "            0 => {",
            replacement:
                "            0 if self.client.stash.len() == 0 => self.accesses_since_eviction = 0,
            0 => {",
        }],
        found_by: &[PRIVACY.tests(&[
            "leaves::of_evictions_come_in_the_published_order",
            "shape::workloads_of_one_length_look_alike",
        ])],
    },
    Leak {
        name: "stored-counter-reused",
        shows: "which slots changed since the last write: a keystream comes twice",
        edits: &[Edit {
            file: "core/src/seal/counter.rs",
            find: "self.last = self.last.checked_add(1).ok_or_else(exhausted)?;",
            replacement: "self.last = self.last.max(1);",
        }],
        found_by: &[PRIVACY.tests(&["ciphertext::has_fresh_counters", "ciphertext::never_repeats"])],
    },
    Leak {
        name: "derived-counter-reused",
        shows: "which blocks changed between two evictions: IV1 stays as it is",
        edits: &[Edit {
            file: "core/src/scheme/path_io.rs",
            find: "evictions_of_bucket(g, stop.leaf, stop.sizes.level)",
            replacement: "evictions_of_bucket(g, stop.leaf, stop.sizes.level).min(1)",
        }],
        found_by: &[PRIVACY.tests(&["ciphertext::never_repeats"])],
    },
    Leak {
        name: "dummies-in-clear",
        shows: "which slots hold blocks",
        edits: &[
            Edit {
                file: "core/src/scheme/path_io/whole.rs",
                find: "body.write(blocks.get(entry.place));",
                replacement:
                    "crate::PLANTED_NOTE.set(usize::from(entry.address == Entry::DUMMY_ADDRESS));
                        body.write(blocks.get(entry.place));
                        crate::PLANTED_NOTE.set(0);",
            },
            Edit {
                file: "core/src/seal/blanks.rs",
                find: "        xor(blank, plain, mask);",
                replacement: "        xor(blank, plain, mask);
        if crate::PLANTED_NOTE.get() == 1 {
            blank.fill(0);
        }",
            },
        ],
        found_by: &[PRIVACY.tests(&["ciphertext::never_repeats", "ciphertext::looks_random"])],
    },
    Leak {
        name: "empty-buckets-stay-unwritten",
        shows: "how deep blocks are on a path: empty buckets below them are not sealed anew",
        edits: &[Edit {
            file: "core/src/scheme/path_io/whole.rs",
            find: "write_sealed(store, trip, |mut blanks| {
            let mut batches",
            replacement: "let leaf = trip.stops(format).next().map_or(Leaf(0), |stop| stop.leaf);
        let levels: Vec<u8> = trip.stops(format).map(|stop| stop.sizes.level).collect();
        let real = |address: u64| address != Entry::DUMMY_ADDRESS;
        let filled = trip.stops(format).filter(|stop| {
            let (table, labels) = (addresses.get(stop.i), leaves.get(stop.i));
            format.tags(table, labels, stop.sizes.slots).any(|(address, _)| real(address))
                || planned(stop).iter().any(|entry| real(entry.address))
        });
        let deepest = filled.map(|stop| stop.sizes.level).last().unwrap_or(levels[0]);
        trip.aim(leaf, levels[0]..deepest + 1);
        write_sealed(store, trip, |mut blanks| {
            let mut batches",
        }],
        found_by: &[PRIVACY.tests(&["paths::are_read_and_written_back_as_a_whole"])],
    },
    Leak {
        name: "raw-writes-back-one-header",
        shows: "in which bucket the block was: the paper asks for one header, taken literally",
        edits: &[Edit {
            file: "core/src/scheme/path_io/headers.rs",
            find: "trip.narrow_to_headers();",
            replacement: "let level = stop.sizes.level;
        for _ in 0..i {
            fresh_masks.take(0, stop.sizes.address_table_bytes);
        }
        let table = addresses.get(i).to_vec();
        addresses.get_mut(0).copy_from_slice(&table);
        trip.aim(leaf, level..level + 1);
        trip.narrow_to_headers();",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ])],
    },
    Leak {
        name: "raw-miss-writes-no-headers",
        shows: "that the block was not on its path: it is in the stash, or was never written",
        edits: &[Edit {
            file: "core/src/scheme/path_io/headers.rs",
            find: "trip.narrow_to_headers();",
            replacement: "if found.is_none() {
            return Ok(false);
        }
        trip.narrow_to_headers();",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ])],
    },
    Leak {
        name: "raw-stops-where-the-block-is",
        shows: "in which bucket the block was",
        edits: &[Edit {
            file: "core/src/scheme/path_io/headers.rs",
            find: "let Self { format, store, sealer, trip, addresses, .. } = self;",
            replacement: "let Self { format, store, sealer, trip, addresses, .. } = self;
        let levels: alloc::vec::Vec<u8> = trip.stops(format).map(|stop| stop.sizes.level).collect();
        let mut deepest = format.geometry().leaf_level();
        for &level in &levels {
            trip.aim(leaf, level..level + 1);
            let frames = store.read(trip.pieces())?;
            let stop = trip.stops(format).next().expect(\"one bucket\");
            let stored = stored_counter(frames.get(0));
            let bytes = stop.sizes.address_table_bytes;
            let mut masks = sealer.mask(header_run(&stop, stored));
            Opened::new(&frames.get(0)[COUNTER_BYTES..], masks.take(0, bytes))
                .read(&mut addresses.get_mut(0)[..bytes]);
            if stored != 0 && format.search(addresses.get(0), stop.sizes.slots, address).hits != 0 {
                deepest = level;
                break;
            }
        }
        trip.aim(leaf, levels[0]..deepest + 1);",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ])],
    },
];
