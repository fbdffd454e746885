//! Leaks of rotating RAW ORAM, under which volumes are kept, and of its position map in the tree.

use super::{Edit, Leak};
use crate::targets::PRIVACY;

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "rotating-reads-do-not-remap",
        shows: "a block keeps its leaf until it is written: repeated reads, and which are reads",
        edits: &[Edit {
            file: "core/src/durable/rotating/undivided.rs",
            find: "let steps = self.intend(&addresses)?;
            let mut ops",
            replacement: "let mut steps = self.intend(&addresses)?;
                let mut moved = std::collections::HashMap::new();
                for (step, request) in steps.iter_mut().zip(&*now) {
                    step.from = *moved.get(&step.address).unwrap_or(&step.from);
                    if matches!(request.op, crate::Op::Read(_)) {
                        step.to = step.from;
                    }
                    moved.insert(step.address, step.to);
                }
            let mut ops",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "rotating-dead-blocks-do-not-remap",
        shows: "that a block was never written: there is nothing to move, so its leaf stays",
        edits: &[Edit {
            file: "core/src/durable/rotating/positions.rs",
            find: "let to = self.draw(coins);",
            replacement: "let to = match self.get(address)? {
                Ok(Some(mapping)) if mapping.live => self.draw(coins),
                _ => from,
            };",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "rotating-repeats-in-a-batch-keep-their-leaf",
        shows: "that a batch asks for one block twice: it shows one leaf twice",
        edits: &[Edit {
            file: "core/src/durable/rotating/positions.rs",
            find: "let to = self.draw(coins);",
            replacement: "let to = if moved.contains_key(&address) { from } else { self.draw(coins) };",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "rotating-unmapped-blocks-read-one-path",
        shows: "that a block was never asked for, or was forgotten since",
        edits: &[Edit {
            file: "core/src/durable/rotating/positions.rs",
            find: "(None, Ok(None)) => self.draw(coins),",
            replacement: "(None, Ok(None)) => {
                    self.draw(coins);
                    Leaf(0)
                }",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "rotating-look-ahead-to-a-stale-leaf",
        shows: "that the next request is for the same block: its old path is shown, not its new one",
        edits: &[Edit {
            file: "core/src/durable/rotating/moves.rs",
            find: "self.backend.announce(ahead, step.from);",
            replacement:
                "let mapping = self.positions.get(step.address).ok().and_then(Result::ok).flatten();
                self.backend.announce(ahead, mapping.map_or(step.from, |mapping| mapping.leaf));",
        }],
        found_by: &[PRIVACY.tests(&["leaves::shown_ahead_are_those_read_next"])],
    },
    Leak {
        name: "rotating-evictions-are-announced-if-something-waits",
        shows: "whether the stash is empty",
        edits: &[Edit {
            file: "core/src/scheme/rotating/mod.rs",
            find: "if self.evictions_after(ahead as u64 + 1, 0) > until_then {",
            replacement: "if self.evictions_after(ahead as u64 + 1, 0) > until_then
            && self.stash().blocks() > 0
        {",
        }],
        found_by: &[PRIVACY.tests(&["leaves::shown_ahead_are_those_read_next"])],
    },
    Leak {
        name: "rotating-look-ahead-in-order-of-addresses",
        shows: "which of the accesses of a batch is for which address, by their order",
        edits: &[Edit {
            file: "core/src/durable/rotating/moves.rs",
            find: "for (ahead, step) in (self.announced..).zip(steps).skip(usize::from(is_alone)) {",
            replacement:
                "let mut announced: alloc::vec::Vec<_> = steps.iter().skip(usize::from(is_alone)).collect();
        announced.sort_by_key(|step| step.address);
        for (ahead, step) in (self.announced..).zip(announced) {",
        }],
        found_by: &[PRIVACY.tests(&["leaves::shown_ahead_are_those_read_next"])],
    },
    Leak {
        name: "rotating-no-look-ahead-with-a-full-stash",
        shows: "whether the stash is at its bound",
        edits: &[Edit {
            file: "core/src/durable/rotating/moves.rs",
            find: "self.backend.announce(ahead, step.from);",
            replacement: "if self.backend.stash().blocks() < self.config().stash_blocks_max {
                    self.backend.announce(ahead, step.from);
                }",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::a_stash_that_passes_its_bound_within_a_batch_looks_like_an_empty_one",
        ])],
    },
    Leak {
        name: "rotating-forgetting-is-shown",
        shows: "which blocks are forgotten: their paths are fetched to be cleaned",
        edits: &[Edit {
            file: "core/src/durable/rotating/mod.rs",
            find: "position_map.forget(range);",
            replacement: "let forgotten: Vec<_> = position_map.mapped(range.clone()).collect();
                for (_, mapping) in forgotten {
                    self.backend.announce(0, mapping.leaf);
                }
                position_map.forget(range);",
        }],
        found_by: &[PRIVACY.tests(&[
            "leaves::shown_ahead_are_those_read_next",
            "shape::workloads_of_one_length_look_alike",
        ])],
    },
    Leak {
        name: "rotating-tree-top-hit-reads-nothing",
        shows: "whether a block is near the root, so whether it was asked for lately",
        edits: &[Edit {
            file: "core/src/scheme/rotating/mod.rs",
            find: "        if let Some(entry) = client.top.take(from, address) {
            client.stash.insert(entry);
        }",
            replacement: "        if let Some(entry) = client.top.take(from, address) {
            client.stash.insert(entry);
            if was_live {
                return Ok(());
            }
        }",
        }],
        found_by: &[PRIVACY.tests(&[
            "paths::are_read_and_written_back_as_a_whole",
            "shape::workloads_of_one_length_look_alike",
        ])],
    },
    Leak {
        name: "rotating-client-hit-reads-a-path-of-its-own",
        shows: "whether a block is on the client: such an access reads the path of the next eviction",
        edits: &[Edit {
            file: "core/src/scheme/rotating/mod.rs",
            find: "let found = io.over(store).read_block(*evictions, from, wanted, block)?;",
            replacement: "let path = match client.stash.find(address) {
            Some(_) => reverse_lexicographic(*evictions, client.config.geometry.leaf_level()),
            None => from,
        };
        let found = io.over(store).read_block(*evictions, path, wanted, block)?;",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "rotating-dead-block-reads-nothing",
        shows: "that a block was never written, or was forgotten since",
        edits: &[Edit {
            file: "core/src/scheme/rotating/mod.rs",
            find: "let found = io.over(store).read_block(*evictions, from, wanted, block)?;",
            replacement: "let found = match was_live {
            true => io.over(store).read_block(*evictions, from, wanted, block)?,
            false => None,
        };",
        }],
        found_by: &[PRIVACY.tests(&[
            "paths::are_read_and_written_back_as_a_whole",
            "shape::workloads_of_one_length_look_alike",
        ])],
    },
    Leak {
        name: "rotating-stops-where-the-block-is",
        shows: "in which bucket the block was",
        edits: &[Edit {
            file: "core/src/scheme/rotating/io.rs",
            find: "        let frames = read_checked(*store, pieces, piece_bytes)?;
        let verifier = Verifier { sealer, places, g };
        let path = verifier.verify_all(versions, &frames)?;
        let mut found = None;",
            replacement: "        let verifier = Verifier { sealer, places, g };
        let (depth, mut stop) = (versions.len(), versions.len());
        for level in 0..depth {
            let pair = [pieces[level], pieces[depth + level]];
            let bytes = [piece_bytes[level], piece_bytes[depth + level]];
            let frames = read_checked(*store, &pair, &bytes)?;
            for (version, bucket) in verifier.verify_all(&versions[level..=level], &frames)? {
                bucket.open_table(table);
                for slot in 0..geometry.slots(usize::from(version.level)) {
                    let held = name(format, geometry, version, table, slot)?;
                    if wanted.is_some_and(|address| held == (address, leaf)) {
                        stop = level + 1;
                    }
                }
            }
            if stop == level + 1 {
                break;
            }
        }
        versions.truncate(stop);
        let kept: Vec<_> = (0..stop).chain(depth..depth + stop).collect();
        let pieces: Vec<_> = kept.iter().map(|i| pieces[*i]).collect();
        let piece_bytes: Vec<_> = kept.iter().map(|i| piece_bytes[*i]).collect();
        let frames = read_checked(*store, &pieces, &piece_bytes)?;
        let path = verifier.verify_all(versions, &frames)?;
        let mut found = None;",
        }],
        found_by: &[PRIVACY.tests(&[
            "paths::are_read_and_written_back_as_a_whole",
            "shape::workloads_of_one_length_look_alike",
        ])],
    },
    Leak {
        name: "rotating-no-eviction-of-an-empty-stash",
        shows: "that the stash is empty",
        edits: &[Edit {
            file: "core/src/scheme/rotating/mod.rs",
            find: "            0 => {
                self.evict_only(map)?;",
            replacement:
                "            0 if self.client.stash.len() == 0 => self.accesses_since_eviction = 0,
            0 => {
                self.evict_only(map)?;",
        }],
        found_by: &[PRIVACY.tests(&[
            "leaves::of_evictions_come_in_the_published_order",
            "shape::workloads_of_one_length_look_alike",
        ])],
    },
    Leak {
        name: "rotating-name-without-slot",
        shows: "which slots of a bucket hold the same, dummies above all: a keystream comes twice",
        edits: &[Edit {
            file: "core/src/seal/bucket.rs",
            find: "Self::Slot(slot) => slot + 1,",
            replacement: "Self::Slot(_) => 1,",
        }],
        found_by: &[PRIVACY.tests(&["ciphertext::never_repeats"])],
    },
    Leak {
        name: "rotating-era-goes-on",
        shows: "what changed between an eviction that was lost and the one made in its place",
        edits: &[Edit {
            file: "core/src/seal/era.rs",
            find: "let era = Era::begin(first_eviction, coins);",
            replacement: "let mut era = Era::begin(first_eviction, coins);
        era.salt = self.eras.last().map_or(era.salt, |(last, _)| last.salt);",
        }],
        found_by: &[PRIVACY.tests(&["ciphertext::of_lost_evictions_never_comes_again"])],
    },
    Leak {
        name: "rotating-salt-is-not-drawn",
        shows: "the same, where two recoveries begin at one eviction: their eras have one key",
        edits: &[Edit {
            file: "core/src/seal/era.rs",
            find: "coins.fill_bytes(&mut salt);",
            replacement: "coins.next_u64();
        salt[..8].copy_from_slice(&first_eviction.to_be_bytes());",
        }],
        found_by: &[PRIVACY.tests(&["ciphertext::of_lost_evictions_never_comes_again"])],
    },
    Leak {
        name: "rotating-zeros-in-clear",
        shows: "which slots hold blocks, and which blocks hold zeros",
        edits: &[
            Edit {
                file: "core/src/seal/bucket.rs",
                find: "self.mask(nonce, part, scratch);",
                replacement:
                    "if matches!(part, Part::Table) || plain.iter().any(|byte| *byte != 0) {
                self.mask(nonce, part, scratch);
            }",
            },
            Edit {
                file: "core/src/seal/bucket.rs",
                find: "self.keys.mask(self.nonce, Part::Slot(slot as u16), block);",
                replacement: "if block.iter().any(|byte| *byte != 0) {
            self.keys.mask(self.nonce, Part::Slot(slot as u16), block);
        }",
            },
        ],
        found_by: &[PRIVACY.tests(&["ciphertext::looks_random", "ciphertext::never_repeats"])],
    },
    Leak {
        name: "nested-reads-do-not-use-the-plb",
        shows: "which requests write: what they need stays on the client for longer",
        edits: &[Edit {
            file: "core/src/durable/rotating/moves.rs",
            find: "steps.iter().for_each(|step| map.touch_parent(step.address));",
            replacement: "let writes = steps.iter().zip(&*ops);
            let writes = writes.filter(|(_, op)| !matches!(op, Op::Read(_)));
            writes.for_each(|(step, _)| map.touch_parent(step.address));",
        }],
        found_by: &[PRIVACY.tests(&["grid::of_the_same_addresses_is_the_same"])],
    },
    Leak {
        name: "rotating-one-leaf-in-eight-comes-again",
        shows: "nothing of one access: but which leaves come again, and so which were not drawn",
        edits: &[Edit {
            file: "core/src/posmap/mod.rs",
            find: "Leaf(coins.next_u64() & ((1 << leaf_level) - 1))",
            replacement: "std::thread_local! {
        static PAST: std::cell::RefCell<std::collections::VecDeque<u64>> =
            const { std::cell::RefCell::new(std::collections::VecDeque::new()) };
    }
    let fresh = coins.next_u64();
    PAST.with_borrow_mut(|past| {
        let drawn = if past.len() >= 100 && fresh >> 60 < 2 { past[0] } else { fresh };
        past.push_back(drawn);
        if past.len() > 100 {
            past.pop_front();
        }
        Leaf(drawn & ((1 << leaf_level) - 1))
    })",
        }],
        found_by: &[PRIVACY.tests(&["leaves::are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "rotating-fetch-and-its-data-draw-one-leaf",
        shows: "which fetch of the position map was for which block: their next paths are one",
        edits: &[Edit {
            file: "core/src/durable/rotating/positions.rs",
            find: "let to = self.draw(coins);",
            replacement: "std::thread_local! {
                static LAST: std::cell::Cell<Option<Leaf>> = const { std::cell::Cell::new(None) };
            }
            let mut to = self.draw(coins);
            if self.is_position_map(address) {
                LAST.set(Some(to));
            } else if let Some(last) = LAST.take() {
                to = last;
            }",
        }],
        found_by: &[PRIVACY.tests(&["grid::has_leaves_that_are_uniform_independent_and_fresh"])],
    },
];
