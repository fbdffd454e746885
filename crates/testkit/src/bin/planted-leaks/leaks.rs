//! The leaks: each a small change of the engine after which it still works, or nearly, and storage
//! learns something it must not.

/// One leak.
pub(crate) struct Leak {
    pub(crate) name: &'static str,
    /// What storage could tell, had it been shipped.
    pub(crate) shows: &'static str,
    pub(crate) edits: &'static [Edit],
    /// The privacy tests that must fail, each.
    pub(crate) found_by: &'static [&'static str],
}

/// A change of one file of `crates/core/src`.
pub(crate) struct Edit {
    pub(crate) file: &'static str,
    /// Occurs exactly once.
    pub(crate) find: &'static str,
    pub(crate) replacement: &'static str,
}

/// All of them.
pub(crate) const LEAKS: &[Leak] = &[
    Leak {
        name: "no-remap",
        shows: "a block keeps its leaf: accesses to one block read one path",
        edits: &[Edit {
            file: "posmap/flat.rs",
            find: "let new = draw_leaf(coins, self.leaf_level);",
            replacement: "let new = old;",
        }],
        found_by: &["leaves::are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "reads-do-not-remap",
        shows: "a block keeps its leaf until it is written: repeated reads, and which are reads",
        edits: &[Edit {
            file: "oram/mod.rs",
            find: "self.position_map.look_up_and_remap(*address, &mut self.coins);",
            replacement: "if matches!(op, Op::Read(_)) {
                    let leaf = self.position_map.look_up(*address, &mut self.coins);
                    (leaf, leaf)
                } else {
                    self.position_map.look_up_and_remap(*address, &mut self.coins)
                };",
        }],
        found_by: &["leaves::are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "biased-leaf",
        shows: "one leaf is never drawn: which paths belong to blocks and not to chance",
        edits: &[Edit {
            file: "posmap/mod.rs",
            find: "Leaf(coins.next_u64() & ((1 << leaf_level) - 1))",
            replacement: "Leaf(coins.next_u64() % ((1 << leaf_level) - 1u64).max(1))",
        }],
        found_by: &["leaves::are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "path-stash-hit-reads-nothing",
        shows: "whether a block is in the stash, so whether it was asked for lately",
        edits: &[Edit {
            file: "scheme/path.rs",
            find: "self.visit_path(from, |client| client.serve(address, to, op))",
            replacement: "if self.client.stash.find(address).is_some() {
            self.client.serve(address, to, op);
            return Ok(());
        }
        self.visit_path(from, |client| client.serve(address, to, op))",
        }],
        found_by: &[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "raw-stash-hit-reads-nothing",
        shows: "whether a block is in the stash, so whether it was asked for lately",
        edits: &[Edit {
            file: "scheme/raw.rs",
            find: "self.access_only(address, from, to, op)?;",
            replacement: "if self.client.stash.find(address).is_some() {
            self.client.serve(address, to, op);
        } else {
            self.access_only(address, from, to, op)?;
        }",
        }],
        found_by: &[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "raw-tree-top-hit-reads-nothing",
        shows: "whether a block is near the root, so whether it was asked for lately",
        edits: &[Edit {
            file: "scheme/raw.rs",
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
        found_by: &[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "repeats-in-a-batch-read-nothing",
        shows: "how often a batch asks for the same block",
        edits: &[
            Edit {
                file: "oram/mod.rs",
                find: "let mut requests = window.iter_mut().peekable();",
                replacement: "let mut served = std::collections::HashSet::new();
            let mut requests = window.iter_mut().peekable();",
            },
            Edit {
                file: "oram/mod.rs",
                find: "while let Some(Access { address, op }) = requests.next() {",
                replacement: "while let Some(Access { address, op }) = requests.next() {
                    if !served.insert(*address) {
                        continue;
                    }",
            },
        ],
        found_by: &["shape::workloads_of_one_length_look_alike"],
    },
    Leak {
        name: "look-ahead-to-a-stale-leaf",
        shows: "that the next request is for the same block: its old path is shown, not its new one",
        edits: &[
            Edit {
                file: "oram/mod.rs",
                find: "if let Some(next) = requests.peek() {",
                replacement: "if let Some(next) = requests.peek().filter(|_| false) {",
            },
            Edit {
                file: "oram/mod.rs",
                find: "while let Some(Access { address, op }) = requests.next() {",
                replacement: "while let Some(Access { address, op }) = requests.next() {
                    if let Some(next) = requests.peek() {
                        self.look_ahead(next);
                    }",
            },
        ],
        found_by: &["leaves::shown_ahead_are_those_read_next"],
    },
    Leak {
        name: "no-look-ahead-with-a-full-stash",
        shows: "whether the stash is at its bound",
        edits: &[Edit {
            file: "oram/mod.rs",
            find: "self.backend.prefetch(leaf);",
            replacement: "if self.stash().blocks() < self.config().stash_blocks_max {
                self.backend.prefetch(leaf);
            }",
        }],
        found_by: &["shape::a_stash_that_passes_its_bound_within_a_batch_looks_like_an_empty_one"],
    },
    Leak {
        name: "evictions-in-another-order",
        shows: "nothing by itself: but an order that was not published is one nobody has analysed",
        edits: &[
            Edit {
                file: "geometry/eviction_order.rs",
                find: "Leaf(g & ((1 << leaf_level) - 1))",
                replacement: "Leaf(!g & ((1 << leaf_level) - 1))",
            },
            Edit {
                file: "geometry/eviction_order.rs",
                find: "u64::from(g & below > leaf.0 & below)",
                replacement: "u64::from(g & below > !leaf.0 & below)",
            },
        ],
        found_by: &["leaves::of_evictions_come_in_the_published_order"],
    },
    Leak {
        name: "no-eviction-of-an-empty-stash",
        shows: "that the stash is empty",
        edits: &[Edit {
            file: "scheme/raw.rs",
            find: "            0 => {",
            replacement:
                "            0 if self.client.stash.len() == 0 => self.accesses_since_eviction = 0,
            0 => {",
        }],
        found_by: &[
            "leaves::of_evictions_come_in_the_published_order",
            "shape::workloads_of_one_length_look_alike",
        ],
    },
    Leak {
        name: "stored-counter-reused",
        shows: "which slots changed since the last write: a keystream comes twice",
        edits: &[Edit {
            file: "seal/counter.rs",
            find: "self.last = self.last.checked_add(1).ok_or_else(exhausted)?;",
            replacement: "self.last = self.last.max(1);",
        }],
        found_by: &["ciphertext::has_fresh_counters", "ciphertext::never_repeats"],
    },
    Leak {
        name: "derived-counter-reused",
        shows: "which blocks changed between two evictions: IV1 stays as it is",
        edits: &[Edit {
            file: "scheme/path_io.rs",
            find: "evictions_of_bucket(g, stop.leaf, stop.sizes.level)",
            replacement: "evictions_of_bucket(g, stop.leaf, stop.sizes.level).min(1)",
        }],
        found_by: &["ciphertext::never_repeats"],
    },
    Leak {
        name: "dummies-in-clear",
        shows: "which slots hold blocks",
        edits: &[
            Edit {
                file: "scheme/path_io.rs",
                find: "body.write(blocks.get(entry.place));",
                replacement: "match entry.address {
                            Entry::DUMMY_ADDRESS => body.leave_clear(format.block_bytes()),
                            _ => body.write(blocks.get(entry.place)),
                        }",
            },
            Edit {
                file: "seal/blanks.rs",
                find: "    /// Seals `plain` into the next bytes.",
                replacement: "    pub(crate) fn leave_clear(&mut self, bytes: usize) {
        let (blank, blank_rest) = std::mem::take(&mut self.blank).split_at_mut(bytes);
        blank.fill(0);
        self.blank = blank_rest;
        self.mask = &self.mask[bytes..];
    }

    /// Seals `plain` into the next bytes.",
            },
        ],
        found_by: &["ciphertext::never_repeats", "ciphertext::looks_random"],
    },
    Leak {
        name: "empty-buckets-stay-unwritten",
        shows: "how deep blocks are on a path: empty buckets below them are not sealed anew",
        edits: &[Edit {
            file: "scheme/path_io.rs",
            find: "write_sealed(store, trip, |mut blanks| {
            let mut batches",
            replacement: "let leaf = trip.stops(format).next().map_or(Leaf(0), |stop| stop.leaf);
        let levels: Vec<u8> = trip.stops(format).map(|stop| stop.sizes.level).collect();
        let real = |address: u64| address != Entry::DUMMY_ADDRESS;
        let filled = trip.stops(format).filter(|stop| {
            let table = addresses.get(stop.i);
            (0..stop.sizes.slots).any(|slot| real(format.address(table, slot)))
                || planned(stop).iter().any(|entry| real(entry.address))
        });
        let deepest = filled.map(|stop| stop.sizes.level).last().unwrap_or(levels[0]);
        trip.aim(leaf, levels[0]..deepest + 1);
        write_sealed(store, trip, |mut blanks| {
            let mut batches",
        }],
        found_by: &["paths::are_read_and_written_back_as_a_whole"],
    },
    Leak {
        name: "raw-writes-back-one-header",
        shows: "in which bucket the block was: the paper asks for one header, taken literally",
        edits: &[Edit {
            file: "scheme/path_io.rs",
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
        found_by: &[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "raw-miss-writes-no-headers",
        shows: "that the block was not on its path: it is in the stash, or was never written",
        edits: &[Edit {
            file: "scheme/path_io.rs",
            find: "trip.narrow_to_headers();",
            replacement: "if found.is_none() {
            return Ok(false);
        }
        trip.narrow_to_headers();",
        }],
        found_by: &[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "raw-stops-where-the-block-is",
        shows: "in which bucket the block was",
        edits: &[Edit {
            file: "scheme/path_io.rs",
            find: "let Self { format, store, sealer, trip, addresses, loaded, .. } = self;",
            replacement: "let Self { format, store, sealer, trip, addresses, loaded, .. } = self;
        let levels: Vec<u8> = trip.stops(format).map(|stop| stop.sizes.level).collect();
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
            if stored != 0 && format.find(addresses.get(0), stop.sizes.slots, address)?.is_some() {
                deepest = level;
                break;
            }
        }
        trip.aim(leaf, levels[0]..deepest + 1);",
        }],
        found_by: &[
            "shape::workloads_of_one_length_look_alike",
            "paths::are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "rotating-reads-do-not-remap",
        shows: "a block keeps its leaf until it is written: repeated reads, and which are reads",
        edits: &[Edit {
            file: "oram/rotating/mod.rs",
            find: "let steps = self.intend(&addresses)?;
            let mut ops",
            replacement: "let mut steps = self.intend(&addresses)?;
                let mut moved = HashMap::new();
                for (step, request) in steps.iter_mut().zip(&*now) {
                    step.from = *moved.get(&step.address).unwrap_or(&step.from);
                    if matches!(request.op, Op::Read(_)) {
                        step.to = step.from;
                    }
                    moved.insert(step.address, step.to);
                }
            let mut ops",
        }],
        found_by: &["leaves::are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "rotating-dead-blocks-do-not-remap",
        shows: "that a block was never written: there is nothing to move, so its leaf stays",
        edits: &[Edit {
            file: "oram/rotating/mod.rs",
            find: "let to = position_map.draw(coins);",
            replacement: "let to = match position_map.get(*address)? {
                Ok(Some(mapping)) if mapping.live => position_map.draw(coins),
                _ => from,
            };",
        }],
        found_by: &["leaves::are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "rotating-repeats-in-a-batch-keep-their-leaf",
        shows: "that a batch asks for one block twice: it shows one leaf twice",
        edits: &[Edit {
            file: "oram/rotating/mod.rs",
            find: "let to = position_map.draw(coins);",
            replacement:
                "let to = match addresses.iter().filter(|other| *other == address).count() {
                1 => position_map.draw(coins),
                _ => from,
            };",
        }],
        found_by: &["leaves::are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "rotating-unmapped-blocks-read-one-path",
        shows: "that a block was never asked for, or was forgotten since",
        edits: &[Edit {
            file: "oram/rotating/mod.rs",
            find: "(None, Ok(None)) => position_map.draw(coins),",
            replacement: "(None, Ok(None)) => {
                    position_map.draw(coins);
                    Leaf(0)
                }",
        }],
        found_by: &["leaves::are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "rotating-look-ahead-to-a-stale-leaf",
        shows: "that the next request is for the same block: its old path is shown, not its new one",
        edits: &[Edit {
            file: "oram/rotating/mod.rs",
            find: "self.backend.prefetch(next.from);",
            replacement: "let mapping = self.positions.get(next.address)?.ok().flatten();
                self.backend.prefetch(mapping.map_or(next.from, |mapping| mapping.leaf));",
        }],
        found_by: &["leaves::shown_ahead_are_those_read_next"],
    },
    Leak {
        name: "rotating-no-look-ahead-with-a-full-stash",
        shows: "whether the stash is at its bound",
        edits: &[Edit {
            file: "oram/rotating/mod.rs",
            find: "self.backend.prefetch(next.from);",
            replacement: "if self.backend.stash().blocks() < self.config().stash_blocks_max {
                    self.backend.prefetch(next.from);
                }",
        }],
        found_by: &["shape::a_stash_that_passes_its_bound_within_a_batch_looks_like_an_empty_one"],
    },
    Leak {
        name: "rotating-forgetting-is-shown",
        shows: "which blocks are forgotten: their paths are fetched to be cleaned",
        edits: &[Edit {
            file: "oram/rotating/mod.rs",
            find: "position_map.forget(range);",
            replacement: "let forgotten: Vec<_> = position_map.mapped(range.clone()).collect();
                for (_, mapping) in forgotten {
                    self.backend.prefetch(mapping.leaf);
                }
                position_map.forget(range);",
        }],
        found_by: &[
            "leaves::shown_ahead_are_those_read_next",
            "shape::workloads_of_one_length_look_alike",
        ],
    },
    Leak {
        name: "rotating-tree-top-hit-reads-nothing",
        shows: "whether a block is near the root, so whether it was asked for lately",
        edits: &[Edit {
            file: "scheme/rotating/mod.rs",
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
        found_by: &[
            "paths::are_read_and_written_back_as_a_whole",
            "shape::workloads_of_one_length_look_alike",
        ],
    },
    Leak {
        name: "rotating-client-hit-reads-a-path-of-its-own",
        shows: "whether a block is on the client: such an access reads the path of the next eviction",
        edits: &[Edit {
            file: "scheme/rotating/mod.rs",
            find: "let found = io.read_block(*evictions, from, is_wanted.then_some(address), block)?;",
            replacement: "let path = match client.stash.find(address) {
            Some(_) => reverse_lexicographic(*evictions, client.config.geometry.leaf_level()),
            None => from,
        };
        let found = io.read_block(*evictions, path, is_wanted.then_some(address), block)?;",
        }],
        found_by: &["leaves::are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "rotating-dead-block-reads-nothing",
        shows: "that a block was never written, or was forgotten since",
        edits: &[Edit {
            file: "scheme/rotating/mod.rs",
            find: "let found = io.read_block(*evictions, from, is_wanted.then_some(address), block)?;",
            replacement: "let found = match was_live {
            true => io.read_block(*evictions, from, is_wanted.then_some(address), block)?,
            false => None,
        };",
        }],
        found_by: &[
            "paths::are_read_and_written_back_as_a_whole",
            "shape::workloads_of_one_length_look_alike",
        ],
    },
    Leak {
        name: "rotating-stops-where-the-block-is",
        shows: "in which bucket the block was",
        edits: &[Edit {
            file: "scheme/rotating/io.rs",
            find: "        self.aim(g, leaf);
        let Self {
            geometry,
            format,
            store,
            sealer,
            pieces,
            piece_bytes,
            versions,
            tables,
            places,
            ..
        } = self;
        let frames = read_checked(store, pieces, piece_bytes)?;
        let opener = Opener { geometry, format, sealer, places, g };
        let mut found = None;",
            replacement: "        self.aim(g, leaf);
        let Self {
            geometry,
            format,
            store,
            sealer,
            pieces,
            piece_bytes,
            versions,
            tables,
            places,
            ..
        } = self;
        let opener = Opener { geometry, format, sealer, places, g };
        let mut levels = 0;
        let mut is_found = false;
        while levels < pieces.len() && !is_found {
            let (piece, version) = (&pieces[levels..=levels], &versions[levels..=levels]);
            let frames = read_checked(store, piece, &piece_bytes[levels..=levels])?;
            levels += 1;
            if version[0].is_written {
                opener.open_header(&version[0], frames.get(0), tables)?;
                for slot in 0..geometry.slots(usize::from(version[0].level)) {
                    let name = opener.name(&version[0], tables, slot)?;
                    is_found |= wanted.is_some_and(|address| name == (address, leaf));
                }
            }
        }
        pieces.truncate(levels);
        piece_bytes.truncate(levels);
        versions.truncate(levels);
        let frames = read_checked(store, pieces, piece_bytes)?;
        let mut found = None;",
        }],
        found_by: &[
            "paths::are_read_and_written_back_as_a_whole",
            "shape::workloads_of_one_length_look_alike",
        ],
    },
    Leak {
        name: "rotating-no-eviction-of-an-empty-stash",
        shows: "that the stash is empty",
        edits: &[Edit {
            file: "scheme/rotating/mod.rs",
            find: "            0 => {
                self.evict_only(map)?;",
            replacement:
                "            0 if self.client.stash.len() == 0 => self.accesses_since_eviction = 0,
            0 => {
                self.evict_only(map)?;",
        }],
        found_by: &[
            "leaves::of_evictions_come_in_the_published_order",
            "shape::workloads_of_one_length_look_alike",
        ],
    },
    Leak {
        name: "rotating-name-without-slot",
        shows: "which slots of a bucket hold the same, dummies above all: a keystream comes twice",
        edits: &[Edit {
            file: "seal/authenticated.rs",
            find: "SealedPart::Slot(slot) => (slot + 1, 0),",
            replacement: "SealedPart::Slot(_) => (1u16, 0),",
        }],
        found_by: &["ciphertext::never_repeats"],
    },
    Leak {
        name: "rotating-era-goes-on",
        shows: "what changed between an eviction that was lost and the one made in its place",
        edits: &[Edit {
            file: "seal/authenticated.rs",
            find: "let era = Era::begin(first_eviction, coins);",
            replacement: "let mut era = Era::begin(first_eviction, coins);
        era.salt = self.eras.last().map_or(era.salt, |(last, _)| last.salt);",
        }],
        found_by: &["ciphertext::of_lost_evictions_never_comes_again"],
    },
    Leak {
        name: "rotating-salt-is-not-drawn",
        shows: "the same, where two recoveries begin at one eviction: their eras have one key",
        edits: &[Edit {
            file: "seal/authenticated.rs",
            find: "coins.fill_bytes(&mut salt);",
            replacement: "coins.next_u64();
        salt[..8].copy_from_slice(&first_eviction.to_be_bytes());",
        }],
        found_by: &["ciphertext::of_lost_evictions_never_comes_again"],
    },
    Leak {
        name: "rotating-zeros-in-clear",
        shows: "which slots hold blocks, and which blocks hold zeros",
        edits: &[
            Edit {
                file: "seal/authenticated.rs",
                find: "scratch.extend_from_slice(tag.as_ref());",
                replacement: "scratch.extend_from_slice(tag.as_ref());
        if plain.iter().all(|byte| *byte == 0) {
            scratch.fill(0);
        }",
            },
            Edit {
                file: "seal/authenticated.rs",
                find: "let (_, key) = &self.eras[self.era_of(sealing.eviction)];",
                replacement: "let (_, key) = &self.eras[self.era_of(sealing.eviction)];
        if sealed.iter().all(|byte| *byte == 0) {
            plain.fill(0);
            return true;
        }",
            },
        ],
        found_by: &["ciphertext::looks_random", "ciphertext::never_repeats"],
    },
    Leak {
        name: "freecursive-leaf-without-counters",
        shows: "a block keeps its leaf: accesses to one block read one path",
        edits: &[Edit {
            file: "frontend/leaf_prf.rs",
            find: "            | u128::from(count.group) << COUNTER_BITS_MAX
            | u128::from(count.individual);",
            replacement: "            | u128::from(count.group.min(0)) << COUNTER_BITS_MAX;",
        }],
        found_by: &["leaves::of_freecursive_are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "freecursive-leaf-without-address",
        shows: "which blocks are in one group, and that it begins anew: all of them have one leaf then",
        edits: &[Edit {
            file: "frontend/leaf_prf.rs",
            find: "let name = u128::from(address) << (u64::BITS + COUNTER_BITS_MAX)",
            replacement: "let name = u128::from(address.min(0)) << (u64::BITS + COUNTER_BITS_MAX)",
        }],
        found_by: &["leaves::of_freecursive_are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "freecursive-biased-leaf",
        shows: "one leaf never comes: which paths belong to blocks and not to chance",
        edits: &[Edit {
            file: "frontend/leaf_prf.rs",
            find: "Leaf(self.value(name) & ((1 << self.leaf_level) - 1))",
            replacement: "Leaf(self.value(name) % ((1 << self.leaf_level) - 1u64).max(1))",
        }],
        found_by: &["leaves::of_freecursive_are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "freecursive-counter-wraps-around",
        shows: "how often a block is asked for: without a remap of its group its leaves come again",
        edits: &[Edit {
            file: "frontend/compressed.rs",
            find: "let group = from.group.checked_add(1).ok_or_else(exhausted)?;",
            replacement: "if from.individual > 0 {
            self.set_individual(block, child, 0);
            return Ok(Advance::Block { from, to: Count { individual: 0, ..from } });
        }
        let group = from.group.checked_add(1).ok_or_else(exhausted)?;",
        }],
        found_by: &["leaves::of_freecursive_are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "freecursive-victim-keeps-its-leaf",
        shows: "that a position-map block is fetched again: it was put back on the path it came from",
        edits: &[Edit {
            file: "frontend/unified.rs",
            find: "let (from, to) = self.look_up_and_remap(level, data)?;
        let address = self.space.address(level, data);",
            replacement: "let address = self.space.address(level, data);
        let count = super::compressed::Count { group: 0, individual: 0 };
        let from = self.prf.position(address, count);
        let to = from;",
        }],
        found_by: &["leaves::of_freecursive_are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "freecursive-plb-hit-is-shown",
        shows: "which requests hit the PLB",
        edits: &[Edit {
            file: "frontend/unified.rs",
            find: "self.tally.plb_hits += 1;",
            replacement: "self.tally.plb_hits += 1;
                self.backend.prefetch(crate::geometry::Leaf(0));",
        }],
        found_by: &["shape::freecursive_looks_like_as_many_single_accesses"],
    },
    Leak {
        name: "freecursive-victim-is-evicted-at-once",
        shows: "which fetches push a block out of the PLB",
        edits: &[Edit {
            file: "frontend/unified.rs",
            find: "self.plb.release(line);",
            replacement: "self.plb.release(line);
            self.backend.background_evict(&mut self.coins)?;",
        }],
        found_by: &[
            "shape::freecursive_looks_like_as_many_single_accesses",
            "paths::of_freecursive_are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "freecursive-stash-hit-fetches-nothing",
        shows: "that a position-map block is in the stash, so whether it was pushed out of the PLB lately",
        edits: &[Edit {
            file: "scheme/path.rs",
            find: "    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {",
            replacement: "    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        if self.client.stash.find(address).is_some() {
            self.client.serve(address, from, &mut Op::Read(block));
            return Ok(self.client.take_out(address));
        }",
        }],
        found_by: &[
            "shape::freecursive_looks_like_as_many_single_accesses",
            "paths::of_freecursive_are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "freecursive-fetches-are-not-counted",
        shows: "which accesses fetch the position map: evictions come after so many data accesses",
        edits: &[Edit {
            file: "scheme/raw.rs",
            find: "let found = self.client.take_out(address);
        self.evict_if_due()?;",
            replacement: "let found = self.client.take_out(address);",
        }],
        found_by: &[
            "shape::freecursive_looks_like_as_many_single_accesses",
            "paths::of_freecursive_are_read_and_written_back_as_a_whole",
        ],
    },
    Leak {
        name: "hits-are-served-unasked",
        shows: "whether a block is in the stash or near the root, so whether it was asked for lately",
        edits: &[Edit {
            file: "oram/mod.rs",
            find: "if self.hits == HitPolicy::Serve && self.backend.serve_on_client(*address, op)? {",
            replacement: "if self.backend.serve_on_client(*address, op)? {",
        }],
        found_by: &[
            "hits::that_are_not_served_are_not_seen",
            "shape::workloads_of_one_length_look_alike",
        ],
    },
    Leak {
        name: "s-stash-hit-reads-nothing",
        shows: "whether a block is near the root, so whether it was asked for lately",
        edits: &[Edit {
            file: "scheme/path.rs",
            find: "self.visit_path(from, |client| client.serve(address, to, op))",
            replacement: "if let Some(entry) = self.client.top.take_found(address) {
            self.client.stash.insert(entry);
            self.client.serve(address, to, op);
            return Ok(());
        }
        self.visit_path(from, |client| client.serve(address, to, op))",
        }],
        found_by: &["hits::that_are_not_served_are_not_seen"],
    },
    Leak {
        name: "served-hit-reads-its-path-without-a-remap",
        shows: "that a block is asked for again after a hit: its path is read twice",
        edits: &[Edit {
            file: "oram/mod.rs",
            find: "self.tally.stash_hits += 1;",
            replacement: "self.tally.stash_hits += 1;
                    let leaf = self.position_map.look_up(*address, &mut self.coins);
                    self.backend.access(*address, leaf, leaf, op)?;",
        }],
        found_by: &["hits::that_are_served_leave_leaves_uniform_and_fresh"],
    },
    Leak {
        name: "served-hit-is-shown-ahead",
        shows: "which requests of a batch were hits: their paths are shown and not read",
        edits: &[Edit {
            file: "oram/mod.rs",
            find: "        if self.hits == HitPolicy::Serve {
            return;
        }",
            replacement: "",
        }],
        found_by: &["hits::that_are_served_are_not_shown_ahead"],
    },
    Leak {
        name: "freecursive-serves-hits-unasked",
        shows: "how often a block is on the client, so how often it was asked for lately",
        edits: &[Edit {
            file: "frontend/unified.rs",
            find: "if self.hits == HitPolicy::Serve && self.backend.serve_on_client(address, op)? {",
            replacement: "if self.backend.serve_on_client(address, op)? {",
        }],
        found_by: &["hits::of_freecursive_that_are_not_served_are_not_seen"],
    },
    Leak {
        name: "freecursive-takes-hits-unasked",
        shows: "how often a position-map block is on the client",
        edits: &[Edit {
            file: "frontend/unified.rs",
            find: "if self.hits == HitPolicy::Serve && self.find_on_client(address)? {",
            replacement: "if self.find_on_client(address)? {",
        }],
        found_by: &["hits::of_freecursive_that_are_not_served_are_not_seen"],
    },
    Leak {
        name: "freecursive-served-hit-keeps-its-leaf",
        shows: "that a position-map block was a hit: it is read on the path it was taken from",
        edits: &[Edit {
            file: "frontend/unified.rs",
            find: "        self.plb.fill(line, Held { address, position });
        Ok(true)",
            replacement: "        self.plb.fill(line, Held { address, position });
        self.backend.access(address, leaf, leaf, &mut Op::Read(&mut self.moved))?;
        Ok(true)",
        }],
        found_by: &["hits::that_are_served_leave_leaves_uniform_and_fresh"],
    },
    Leak {
        name: "pmmac-unwritten-blocks-fetch-nothing",
        shows: "that a block was never asked for: its count says that it is nowhere",
        edits: &[Edit {
            file: "frontend/integrity.rs",
            find: "        let mut verdict = Ok(());",
            replacement: "        if from.count == super::compressed::Count::NEVER_MOVED {
            let mut block = vec![0; backend.config().block_bytes];
            op.apply(data_of(&mut block));
            pmmac.seal(address, to.count, &mut block)?;
            return backend.append(address, to.leaf, &block);
        }
        let mut verdict = Ok(());",
        }],
        found_by: &["shape::freecursive_looks_like_as_many_single_accesses"],
    },
    Leak {
        name: "pmmac-reads-again-what-it-does-not-believe",
        shows: "which access a tampered block was for, while the client goes on: its path is read twice",
        edits: &[Edit {
            file: "frontend/integrity.rs",
            find: "        backend.access(address, from.leaf, to.leaf, &mut Op::Update(&mut open_and_seal))?;
        verdict",
            replacement: "        backend.access(address, from.leaf, to.leaf, &mut Op::Update(&mut open_and_seal))?;
        if verdict.is_err() {
            backend.access(address, from.leaf, to.leaf, &mut Op::Update(&mut |_| ()))?;
        }
        verdict",
        }],
        found_by: &["tampered::paths_are_those_of_an_honest_run_until_it_is_found_out"],
    },
    Leak {
        name: "delayed-remap-keeps-the-leaf",
        shows: "that a block comes back: it was put back on the path it was taken from",
        edits: &[Edit {
            file: "oram/taking.rs",
            find: "let (from, _) = self.position_map.look_up_and_remap(address, &mut self.coins);",
            replacement: "let from = self.position_map.look_up(address, &mut self.coins);",
        }],
        found_by: &["delayed::leaves_are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "delayed-remap-keeps-the-count",
        shows: "that a block comes back: it was put back on the path it was taken from",
        edits: &[Edit {
            file: "frontend/unified/taking.rs",
            find: "let (from, _) = oram.look_up_and_remap(0, address)?;",
            replacement: "let from = oram.look_up(address);",
        }],
        found_by: &["delayed::leaves_are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "delayed-put-back-is-evicted-at-once",
        shows: "which misses push a block out of the cache",
        edits: &[Edit {
            file: "oram/taking.rs",
            find: "self.backend.append(address, unseen, block)",
            replacement: "self.backend.append(address, unseen, block)?;
        self.background_evict()",
        }],
        found_by: &["delayed::leaves_are_uniform_independent_and_fresh"],
    },
    Leak {
        name: "rho-main-dummy-is-skipped",
        shows: "whether a request needs the main tree, so whether its block was written lately",
        edits: &[Edit {
            file: "rho/trees.rs",
            find: "self.main.background_evict(&mut self.coins)",
            replacement: "Ok(())",
        }],
        found_by: &["rho::keeps_to_the_pattern"],
    },
    Leak {
        name: "rho-small-dummy-is-skipped",
        shows: "whether a request needs the small tree, so whether its block was written lately",
        edits: &[Edit {
            file: "rho/trees.rs",
            find: "self.small.background_evict(&mut self.coins)",
            replacement: "Ok(())",
        }],
        found_by: &["rho::keeps_to_the_pattern"],
    },
    Leak {
        name: "rho-dummy-is-not-written-back",
        shows: "which accesses are dummies",
        edits: &[Edit {
            file: "scheme/path.rs",
            find: "self.visit_path(leaf, |_| ())",
            replacement: "self.client.begin()?;
        let Self { io, client } = self;
        io.open_path(leaf, BodyCounters::Stored, &mut client.blocks, |_, _| ())?;
        client.end();
        Ok(())",
        }],
        found_by: &["rho::keeps_to_the_pattern"],
    },
    Leak {
        name: "rho-dummy-reads-the-first-path",
        shows: "which accesses are dummies",
        edits: &[Edit {
            file: "scheme/path.rs",
            find: "self.visit_path(leaf, |_| ())",
            replacement: "self.visit_path(Leaf(leaf.0 & 1), |_| ())",
        }],
        found_by: &["rho::leaves_are_uniform_and_independent"],
    },
    Leak {
        name: "rho-hit-does-not-wait-for-its-turn",
        shows: "which requests hit the array, so whether their blocks were written lately",
        edits: &[Edit {
            file: "rho/oram.rs",
            find: "trees.access_small(|small| small.access(line.number(), from, to, op))?;",
            replacement: "trees.small_mut().access(line.number(), from, to, op)?;",
        }],
        found_by: &["rho::keeps_to_the_pattern"],
    },
    Leak {
        name: "rho-hit-in-the-small-stash-reads-nothing",
        shows: "whether a block is in the stash of the small tree, so whether it was asked for lately",
        edits: &[Edit {
            file: "rho/oram.rs",
            find: "trees.access_small(|small| small.access(line.number(), from, to, op))?;",
            replacement: "if trees.small().stash().addresses().any(|held| held == line.number()) {
            trees.small_mut().access(line.number(), from, to, op)?;
        } else {
            trees.access_small(|small| small.access(line.number(), from, to, op))?;
        }",
        }],
        found_by: &["rho::keeps_to_the_pattern"],
    },
    Leak {
        name: "rho-hit-keeps-its-leaf",
        shows: "a block of the small tree keeps its leaf: hits on one block read one path",
        edits: &[Edit {
            file: "rho/oram.rs",
            find: "trees.access_small(|small| small.access(line.number(), from, to, op))?;",
            replacement: "let to = if to == from { to } else { from };
        trees.access_small(|small| small.access(line.number(), from, to, op))?;",
        }],
        found_by: &["rho::leaves_are_uniform_and_independent"],
    },
    Leak {
        name: "rho-batch-ends-within-a-round",
        shows: "where in the pattern a request was done, so what it needed",
        edits: &[Edit {
            file: "rho/trees.rs",
            find: "if self.small_done == 0 { Ok(()) } else { self.idle_round() }",
            replacement: "Ok(())",
        }],
        found_by: &["rho::keeps_to_the_pattern"],
    },
    Leak {
        name: "rho-insertion-without-a-victim-reads-nothing",
        shows: "whether the array was full",
        edits: &[Edit {
            file: "rho/oram.rs",
            find: ".access_small(|small| small.take(line.number(), from, victim_block))?;",
            replacement: ".access_small(|small| match tag {
                Some(_) => small.take(line.number(), from, victim_block).map(drop),
                None => Ok(()),
            })?;",
        }],
        found_by: &["rho::keeps_to_the_pattern"],
    },
    Leak {
        name: "recursive-unwritten-blocks-read-nothing",
        shows: "whether a block was ever asked for",
        edits: &[
            Edit {
                file: "frontend/recursive.rs",
                find: "for level in (1..=top).rev() {",
                replacement: "let mut known = true;
        for level in (1..=top).rev() {",
            },
            Edit {
                file: "frontend/recursive.rs",
                find: "*label = (fresh.0 as u32 + 1).to_le_bytes();",
                replacement: "known = *label != [0; 4];
                    *label = (fresh.0 as u32 + 1).to_le_bytes();",
            },
            Edit {
                file: "frontend/recursive.rs",
                find: "levels[0].access(data, from, to, op)",
                replacement: "if let (false, Op::Read(buffer)) = (known, &mut *op) {
            buffer.fill(0);
            return Ok(());
        }
        levels[0].access(data, from, to, op)",
            },
        ],
        found_by: &["grid::of_any_addresses_is_the_beginning_of_one_shape"],
    },
    Leak {
        name: "nested-reads-do-not-use-the-plb",
        shows: "which requests write: what they need stays on the client for longer",
        edits: &[Edit {
            file: "oram/rotating/mod.rs",
            find: "steps.iter().for_each(|step| map.touch_parent(step.address));",
            replacement: "let writes = steps.iter().zip(&*ops);
            let writes = writes.filter(|(_, op)| !matches!(op, Op::Read(_)));
            writes.for_each(|(step, _)| map.touch_parent(step.address));",
        }],
        found_by: &["grid::of_the_same_addresses_is_the_same"],
    },
    Leak {
        name: "delayed-unchanged-victim-takes-an-access",
        shows: "which victims of the cache have changed",
        edits: &[Edit {
            file: "oram/cached.rs",
            find: "|oram, held, block| oram.put_back(held.address, block).map(|()| true);",
            replacement: "|oram, held, block| match held.changed {
                        true => oram.put_back(held.address, block).map(|()| true),
                        false => oram.write(held.address, block).map(|()| true),
                    };",
        }],
        found_by: &["grid::of_the_same_addresses_is_the_same"],
    },
];
