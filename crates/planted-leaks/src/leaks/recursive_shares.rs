//! Leaks of S³ORAM with its position map in smaller trees: what servers learn from going through several trees, and from what slots say.

use super::{Edit, Leak};
use crate::targets::SHARES_RECURSIVE_VIEW;

const CLIENT: &str = "shares/src/recursive/mod.rs";
const TREE: &str = "shares/src/recursive/mapped_tree.rs";

const SHAPE: &str = "what_servers_get_has_one_shape_whatever_the_owner_does";
const ALONE: &str = "the_shares_of_one_server_are_uniform";
const SAID: &str = "what_slots_say_is_uniform";
const PATHS: &str = "paths_are_drawn_in_every_tree_whatever_the_owner_does";
const FIRST: &str = "a_block_that_was_never_accessed_is_looked_for_anywhere";
const SAME: &str =
    "the_path_of_metadata_is_that_of_the_query_after_it_and_those_of_evictions_are_counted";
const SEEDS: &str = "no_seed_comes_twice";

const REMAPPED: &str = "let to = self.trees[below].draw_leaf(coins);";
const SHOWN: &str = "let shown = mapped.unwrap_or(drawn);";
const ASKED: &str = "asked.push(Asked { tree, ask: Ask::Metadata(shown) });";
const FOUND: &str = "let position = at.find(address, mapped, shown, &answers)?;";
const WRITES: &str = "let writes = self.client.writes(self.client.at().written, slot, coins);";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "recursive-map-block-goes-to-a-leaf-of-its-address",
        shows: "which blocks are accessed, to some hundreds: the path to their map block",
        edits: &[Edit {
            file: CLIENT,
            find: REMAPPED,
            replacement: "let to = self.trees[below].draw_leaf(coins);
                    let to = if below == 1 { Leaf(address as u64 & 7) } else { to };",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[PATHS])],
    },
    Leak {
        name: "recursive-leaf-is-that-of-the-map-block",
        shows: "that a block and its map block were accessed together the last time",
        edits: &[Edit {
            file: CLIENT,
            find: REMAPPED,
            replacement: "let to = Leaf(self.trees[below].draw_leaf(coins).0 & !1 | visit.to.0 & 1);",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[PATHS])],
    },
    Leak {
        name: "recursive-leaf-is-above-where-the-map-block-is",
        shows: "the same, in the highest bit of the two leaves",
        edits: &[Edit {
            file: CLIENT,
            find: REMAPPED,
            replacement: "let to = Leaf(self.trees[below].draw_leaf(coins).0 & !16 | (visit.to.0 & 4) << 2);",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[PATHS])],
    },
    Leak {
        name: "recursive-last-map-block-stays-on-its-path",
        shows: "that the same part of the position map is accessed again",
        edits: &[Edit {
            file: CLIENT,
            find: "let before = mem::replace(&mut self.client_map[address], to.0 as u32 + 1);",
            replacement: "let before = self.client_map[address];
        let to = before.checked_sub(1).map_or(to, |leaf| Leaf(leaf.into()));
        self.client_map[address] = to.0 as u32 + 1;",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[PATHS])],
    },
    Leak {
        name: "recursive-path-of-nothing-follows-from-the-address",
        shows: "which block, or which part of the position map, it is that was never accessed",
        edits: &[Edit {
            file: CLIENT,
            find: SHOWN,
            replacement: "let shown = mapped.unwrap_or(Leaf(drawn.0 & !1 | address as u64 & 1));",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[FIRST])],
    },
    Leak {
        name: "recursive-nobody-asks-where-nothing-is",
        shows: "which accesses are for blocks that were never accessed before",
        edits: &[
            Edit {
                file: CLIENT,
                find: ASKED,
                replacement: "if mapped.is_some() { asked.push(Asked { tree, ask: Ask::Metadata(shown) }); }",
            },
            Edit {
                file: CLIENT,
                find: FOUND,
                replacement: "let position = if mapped.is_some() { at.find(address, mapped, shown, &answers)? } else { None };",
            },
        ],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[SHAPE])],
    },
    Leak {
        name: "recursive-asks-twice-where-nothing-is",
        shows: "the same, by a trip more",
        edits: &[Edit {
            file: CLIENT,
            find: FOUND,
            replacement: "let position = at.find(address, mapped, shown, &answers)?;
        if position.is_none() {
            servers.trip(vec![Asked { tree, ask: Ask::Metadata(shown) }])?;
        }",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[SHAPE, SAME])],
    },
    Leak {
        name: "recursive-selects-from-another-path-where-nothing-is",
        shows: "the same: the path that is selected from is not the one whose slots were asked",
        edits: &[Edit {
            file: CLIENT,
            find: "let ask = Ask::Select(at.queries(position, shown, coins));",
            replacement: "let ask = Ask::Select(at.queries(position, if position.is_some() { shown } else { Leaf(shown.0 ^ 1) }, coins));",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[SAME])],
    },
    Leak {
        name: "recursive-what-slots-say-is-not-shared",
        shows: "the address and the leaf of every block that is written, to all servers",
        edits: &[Edit {
            file: TREE,
            find: WRITES,
            replacement: "let writes = self.client.writes(self.client.at().written, slot, coins);
        let elements = self.format.elements();
        let in_the_clear = |write: RootWrite<F::Element>| {
            let mut all = write.block.into_elements::<F>(slot.len()).unwrap_or_default();
            all[..elements].copy_from_slice(&slot[..elements]);
            RootWrite { slot: write.slot, block: crate::sharing::Share::Computed(all) }
        };
        let writes: Vec<_> = writes.into_iter().map(in_the_clear).collect();",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[SAID])],
    },
    Leak {
        name: "recursive-trees-share-their-coins",
        shows: "by how much what is written to one tree differs from what is written to the next",
        edits: &[Edit {
            file: TREE,
            find: WRITES,
            replacement: "let writes = {
            use rand_core::SeedableRng;
            let seed = [self.client.at().written as u8 ^ 7; 32];
            coins.next_u64();
            self.client.writes(self.client.at().written, slot, &mut chacha20::ChaCha20Rng::from_seed(seed))
        };",
        }],
        found_by: &[SHARES_RECURSIVE_VIEW.tests(&[SEEDS, ALONE])],
    },
];
