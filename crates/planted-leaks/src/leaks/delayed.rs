//! Leaks of caches in front of an ORAM, and of remapping with a delay.

use super::{Edit, Leak};
use crate::targets::PRIVACY;

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "delayed-remap-keeps-the-leaf",
        shows: "that a block comes back: it was put back on the path it was taken from",
        edits: &[Edit {
            file: "core/src/front/flat.rs",
            find: "let (from, _) = self.position_map.look_up_and_remap(address, &mut self.coins);",
            replacement: "let from = self.position_map.look_up(address, &mut self.coins);",
        }],
        found_by: &[PRIVACY.tests(&["delayed::leaves_are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "delayed-remap-keeps-the-count",
        shows: "that a block comes back: it was put back on the path it was taken from",
        edits: &[Edit {
            file: "core/src/front/recursion/freecursive/front.rs",
            find: "let (from, _) = oram.look_up_and_remap(0, address)?;",
            replacement: "let from = oram.look_up(address);",
        }],
        found_by: &[PRIVACY.tests(&["delayed::leaves_are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "delayed-put-back-is-evicted-at-once",
        shows: "which misses push a block out of the cache",
        edits: &[Edit {
            file: "core/src/front/flat.rs",
            find: "self.scheme.append(address, unseen, block)",
            replacement: "self.scheme.append(address, unseen, block)?;
        self.evict()",
        }],
        found_by: &[PRIVACY.tests(&["delayed::leaves_are_uniform_independent_and_fresh"])],
    },
    Leak {
        name: "delayed-unchanged-victim-takes-an-access",
        shows: "which victims of the cache have changed",
        edits: &[Edit {
            file: "core/src/front/cache.rs",
            find: "|oram, held, block| oram.put_back(held.address, block).map(|()| true);",
            replacement: "|oram, held, block| match held.changed {
                        true => oram.put_back(held.address, block).map(|()| true),
                        false => oram.write(held.address, block).map(|()| true),
                    };",
        }],
        found_by: &[PRIVACY.tests(&["grid::of_the_same_addresses_is_the_same"])],
    },
];
