//! Leaks of ρ.

use super::{Edit, Leak};
use crate::targets::PRIVACY;

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "rho-main-dummy-is-skipped",
        shows: "whether a request needs the main tree, so whether its block was written lately",
        edits: &[Edit {
            file: "core/src/front/rho/trees.rs",
            find: "self.main.dummy(&mut self.coins)",
            replacement: "Ok(())",
        }],
        found_by: &[PRIVACY.tests(&["rho::keeps_to_the_pattern"])],
    },
    Leak {
        name: "rho-small-dummy-is-skipped",
        shows: "whether a request needs the small tree, so whether its block was written lately",
        edits: &[Edit {
            file: "core/src/front/rho/trees.rs",
            find: "self.small.dummy(&mut self.coins)",
            replacement: "Ok(())",
        }],
        found_by: &[PRIVACY.tests(&["rho::keeps_to_the_pattern"])],
    },
    Leak {
        name: "rho-dummy-is-not-written-back",
        shows: "which accesses are dummies",
        edits: &[Edit {
            file: "core/src/scheme/path.rs",
            find: "self.visit_path(Entry::DUMMY_ADDRESS, leaf, |_| ())",
            replacement: "self.client.begin()?;
        let Self { io, client } = self;
        let (slots, zero) = (client.config.geometry.path_slots(), client.blocks.zero());
        let mut dropped = crate::stash::Stash::new(slots, zero);
        io.open_path(leaf, BodyCounters::Stored, &mut client.blocks, &mut dropped)?;
        client.end();
        Ok(())",
        }],
        found_by: &[PRIVACY.tests(&["rho::keeps_to_the_pattern"])],
    },
    Leak {
        name: "rho-dummy-reads-the-first-path",
        shows: "which accesses are dummies",
        edits: &[Edit {
            file: "core/src/scheme/path.rs",
            find: "self.visit_path(Entry::DUMMY_ADDRESS, leaf, |_| ())",
            replacement: "self.visit_path(Entry::DUMMY_ADDRESS, Leaf(leaf.0 & 1), |_| ())",
        }],
        found_by: &[PRIVACY.tests(&["rho::leaves_are_uniform_and_independent"])],
    },
    Leak {
        name: "rho-hit-does-not-wait-for-its-turn",
        shows: "which requests hit the array, so whether their blocks were written lately",
        edits: &[Edit {
            file: "core/src/front/rho/oram.rs",
            find: "trees.access_small(|small| small.access(line.number(), from, to, op))?;",
            replacement: "trees.small_mut().access(line.number(), from, to, op)?;",
        }],
        found_by: &[PRIVACY.tests(&["rho::keeps_to_the_pattern"])],
    },
    Leak {
        name: "rho-hit-in-the-small-stash-reads-nothing",
        shows: "whether a block is in the stash of the small tree, so whether it was asked for lately",
        edits: &[Edit {
            file: "core/src/front/rho/oram.rs",
            find: "trees.access_small(|small| small.access(line.number(), from, to, op))?;",
            replacement: "if trees.small().stash().addresses().any(|held| held == line.number()) {
            trees.small_mut().access(line.number(), from, to, op)?;
        } else {
            trees.access_small(|small| small.access(line.number(), from, to, op))?;
        }",
        }],
        found_by: &[PRIVACY.tests(&["rho::keeps_to_the_pattern"])],
    },
    Leak {
        name: "rho-hit-keeps-its-leaf",
        shows: "a block of the small tree keeps its leaf: hits on one block read one path",
        edits: &[Edit {
            file: "core/src/front/rho/oram.rs",
            find: "trees.access_small(|small| small.access(line.number(), from, to, op))?;",
            replacement: "let to = if to == from { to } else { from };
        trees.access_small(|small| small.access(line.number(), from, to, op))?;",
        }],
        found_by: &[PRIVACY.tests(&["rho::leaves_are_uniform_and_independent"])],
    },
    Leak {
        name: "rho-batch-ends-within-a-round",
        shows: "where in the pattern a request was done, so what it needed",
        edits: &[Edit {
            file: "core/src/front/rho/trees.rs",
            find: "if self.small_done == 0 { Ok(()) } else { self.idle_round() }",
            replacement: "Ok(())",
        }],
        found_by: &[PRIVACY.tests(&["rho::keeps_to_the_pattern"])],
    },
    Leak {
        name: "rho-insertion-without-a-victim-reads-nothing",
        shows: "whether the array was full",
        edits: &[Edit {
            file: "core/src/front/rho/oram.rs",
            find: ".access_small(|small| small.take(line.number(), from, victim_block))?;",
            replacement: ".access_small(|small| match tag {
                Some(_) => small.take(line.number(), from, victim_block).map(drop),
                None => Ok(()),
            })?;",
        }],
        found_by: &[PRIVACY.tests(&["rho::keeps_to_the_pattern"])],
    },
];
