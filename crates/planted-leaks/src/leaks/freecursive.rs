//! Leaks of position maps in trees: of Freecursive ORAM, PMMAC and recursive ORAM.

use super::{Edit, Leak};
use crate::targets::PRIVACY;

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "freecursive-leaf-without-counters",
        shows: "a block keeps its leaf: accesses to one block read one path",
        edits: &[Edit {
            file: "core/src/posmap/leaf_prf.rs",
            find: "            | u128::from(count.group) << COUNTER_BITS_MAX
            | u128::from(count.individual);",
            replacement: "            | u128::from(count.group.min(0)) << COUNTER_BITS_MAX;",
        }],
        found_by: &[PRIVACY.tests(&["leaves::of_freecursive_are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "freecursive-leaf-without-address",
        shows: "which blocks are in one group, and that it begins anew: all of them have one leaf then",
        edits: &[Edit {
            file: "core/src/posmap/leaf_prf.rs",
            find: "let name = u128::from(address) << (u64::BITS + COUNTER_BITS_MAX)",
            replacement: "let name = u128::from(address.min(0)) << (u64::BITS + COUNTER_BITS_MAX)",
        }],
        found_by: &[PRIVACY.tests(&["leaves::of_freecursive_are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "freecursive-biased-leaf",
        shows: "one leaf never comes: which paths belong to blocks and not to chance",
        edits: &[Edit {
            file: "core/src/posmap/leaf_prf.rs",
            find: "Leaf(self.value(name) & ((1 << self.leaf_level) - 1))",
            replacement: "Leaf(self.value(name) % ((1 << self.leaf_level) - 1u64).max(1))",
        }],
        found_by: &[PRIVACY.tests(&["leaves::of_freecursive_are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "freecursive-counter-wraps-around",
        shows: "how often a block is asked for: without a remap of its group its leaves come again",
        edits: &[Edit {
            file: "core/src/posmap/compressed.rs",
            find: "let group = from.group.checked_add(1).ok_or_else(exhausted)?;",
            replacement: "if from.individual > 0 {
            self.set_individual(block, child, 0);
            return Ok(Advance::Block { from, to: Count { individual: 0, ..from } });
        }
        let group = from.group.checked_add(1).ok_or_else(exhausted)?;",
        }],
        found_by: &[PRIVACY.tests(&["leaves::of_freecursive_are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "freecursive-victim-keeps-its-leaf",
        shows: "that a position-map block is fetched again: it was put back on the path it came from",
        edits: &[Edit {
            file: "core/src/front/recursion/freecursive.rs",
            find: "let (from, to) = self.look_up_and_remap(level, data)?;
        let address = self.space.address(level, data);",
            replacement: "let address = self.space.address(level, data);
        let count = crate::posmap::compressed::Count { group: 0, individual: 0 };
        let from = self.prf.position(address, count);
        let to = from;",
        }],
        found_by: &[PRIVACY.tests(&["leaves::of_freecursive_are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "freecursive-plb-hit-is-shown",
        shows: "which requests hit the PLB",
        edits: &[Edit {
            file: "core/src/front/recursion/freecursive.rs",
            find: "self.tally.plb_hits += 1;",
            replacement: "self.tally.plb_hits += 1;
                self.scheme.announce(&[crate::geometry::Leaf(0)]);",
        }],
        found_by: &[PRIVACY.tests(&["shape::freecursive_looks_like_as_many_single_accesses"])],
    },
    Leak {
        name: "freecursive-victim-is-evicted-at-once",
        shows: "which fetches push a block out of the PLB",
        edits: &[Edit {
            file: "core/src/front/recursion/freecursive.rs",
            find: "self.plb.release(line);",
            replacement: "self.plb.release(line);
            self.scheme.evict(&mut self.coins)?;",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::freecursive_looks_like_as_many_single_accesses",
            "paths::of_freecursive_are_read_and_written_back_as_a_whole",
        ])],
    },
    Leak {
        name: "freecursive-stash-hit-fetches-nothing",
        shows: "that a position-map block is in the stash, so whether it was pushed out of the PLB lately",
        edits: &[Edit {
            file: "core/src/scheme/path.rs",
            find: "self.visit_path(address, from, |client| {
            client.serve(address, from, &mut Op::Read(block));",
            replacement: "if self.client.stash.find(address).is_some() {
            self.client.serve(address, from, &mut Op::Read(block));
            return Ok(self.client.take_out(address));
        }
        self.visit_path(address, from, |client| {
            client.serve(address, from, &mut Op::Read(block));",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::freecursive_looks_like_as_many_single_accesses",
            "paths::of_freecursive_are_read_and_written_back_as_a_whole",
        ])],
    },
    Leak {
        name: "freecursive-fetches-are-not-counted",
        shows: "which accesses fetch the position map: evictions come after so many data accesses",
        edits: &[Edit {
            file: "core/src/scheme/raw.rs",
            find: "let found = self.client.take_out(address);
        self.evict_if_due()?;",
            replacement: "let found = self.client.take_out(address);",
        }],
        found_by: &[PRIVACY.tests(&[
            "shape::freecursive_looks_like_as_many_single_accesses",
            "paths::of_freecursive_are_read_and_written_back_as_a_whole",
        ])],
    },
    Leak {
        name: "pmmac-unwritten-blocks-fetch-nothing",
        shows: "that a block was never asked for: its count says that it is nowhere",
        edits: &[Edit {
            file: "core/src/front/recursion/integrity.rs",
            find: "        let mut verdict = Ok(());",
            replacement: "        if from.count == crate::posmap::compressed::Count::NEVER_MOVED {
            let mut block = alloc::vec![0; scheme.config().block_bytes];
            op.apply(data_of(&mut block));
            pmmac.seal(address, to.count, &mut block)?;
            return scheme.append(address, to.leaf, &block);
        }
        let mut verdict = Ok(());",
        }],
        found_by: &[PRIVACY.tests(&["shape::freecursive_looks_like_as_many_single_accesses"])],
    },
    Leak {
        name: "pmmac-reads-again-what-it-does-not-believe",
        shows: "which access a tampered block was for, while the client goes on: its path is read twice",
        edits: &[Edit {
            file: "core/src/front/recursion/integrity.rs",
            find: "        scheme.access(address, from.leaf, to.leaf, &mut Op::Update(&mut open_and_seal))?;
        verdict",
            replacement: "        scheme.access(address, from.leaf, to.leaf, &mut Op::Update(&mut open_and_seal))?;
        if verdict.is_err() {
            scheme.access(address, from.leaf, to.leaf, &mut Op::Update(&mut |_| ()))?;
        }
        verdict",
        }],
        found_by: &[PRIVACY.tests(&["tampered::paths_are_those_of_an_honest_run_until_it_is_found_out"])],
    },
    Leak {
        name: "recursive-unwritten-blocks-read-nothing",
        shows: "whether a block was ever asked for",
        edits: &[
            Edit {
                file: "core/src/front/recursion/recursive.rs",
                find: "for level in (1..=top).rev() {",
                replacement: "let mut known = true;
        for level in (1..=top).rev() {",
            },
            Edit {
                file: "core/src/front/recursion/recursive.rs",
                find: "*label = (fresh.0 as u32 + 1).to_le_bytes();",
                replacement: "known = *label != [0; 4];
                    *label = (fresh.0 as u32 + 1).to_le_bytes();",
            },
            Edit {
                file: "core/src/front/recursion/recursive.rs",
                find: "levels[0].access(data, from, to, op)",
                replacement: "if let (false, Op::Read(buffer)) = (known, &mut *op) {
            buffer.fill(0);
            return Ok(());
        }
        levels[0].access(data, from, to, op)",
            },
        ],
        found_by: &[PRIVACY.tests(&["grid::of_any_addresses_is_the_beginning_of_one_shape"])],
    },
];
