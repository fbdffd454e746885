//! Leaks of blocks that the client finds without an access.

use super::{Edit, Leak};
use crate::targets::PRIVACY;

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "hits-are-served-unasked",
        shows: "whether a block is in the stash or near the root, so whether it was asked for lately",
        edits: &[Edit {
            file: "core/src/front/flat.rs",
            find: "if self.hits == HitPolicy::Serve && self.scheme.serve_on_client(*address, op)? {",
            replacement: "if self.scheme.serve_on_client(*address, op)? {",
        }],
        found_by: &[PRIVACY.tests(&[
            "hits::that_are_not_served_are_not_seen",
            "shape::workloads_of_one_length_look_alike",
        ])],
    },
    Leak {
        name: "s-stash-hit-reads-nothing",
        shows: "whether a block is near the root, so whether it was asked for lately",
        edits: &[Edit {
            file: "core/src/scheme/path.rs",
            find: "self.visit_path(address, from, |client| client.serve(address, to, op))",
            replacement: "if let Some(entry) = self.client.top.take_found(address) {
            self.client.stash.insert(entry);
            self.client.serve(address, to, op);
            return Ok(());
        }
        self.visit_path(address, from, |client| client.serve(address, to, op))",
        }],
        found_by: &[PRIVACY.tests(&["hits::that_are_not_served_are_not_seen"])],
    },
    Leak {
        name: "served-hit-reads-its-path-without-a-remap",
        shows: "that a block is asked for again after a hit: its path is read twice",
        edits: &[Edit {
            file: "core/src/front/flat.rs",
            find: "self.tally.stash_hits += 1;",
            replacement: "self.tally.stash_hits += 1;
                    let leaf = self.position_map.look_up(*address, &mut self.coins);
                    self.scheme.access(*address, leaf, leaf, op)?;",
        }],
        found_by: &[PRIVACY.tests(&["hits::that_are_served_leave_leaves_uniform_and_fresh"])],
    },
    Leak {
        name: "served-hit-is-shown-ahead",
        shows: "which requests of a batch were hits: their paths are shown and not read",
        edits: &[Edit {
            file: "core/src/front/flat.rs",
            find: "        if self.hits == HitPolicy::Serve {
            return;
        }",
            replacement: "",
        }],
        found_by: &[PRIVACY.tests(&["hits::that_are_served_are_not_shown_ahead"])],
    },
    Leak {
        name: "freecursive-serves-hits-unasked",
        shows: "how often a block is on the client, so how often it was asked for lately",
        edits: &[Edit {
            file: "core/src/front/recursion/freecursive.rs",
            find: "if self.hits == HitPolicy::Serve && self.scheme.serve_on_client(address, op)? {",
            replacement: "if self.scheme.serve_on_client(address, op)? {",
        }],
        found_by: &[PRIVACY.tests(&["hits::of_freecursive_that_are_not_served_are_not_seen"])],
    },
    Leak {
        name: "freecursive-takes-hits-unasked",
        shows: "how often a position-map block is on the client",
        edits: &[Edit {
            file: "core/src/front/recursion/freecursive.rs",
            find: "if self.hits == HitPolicy::Serve && self.find_on_client(address)? {",
            replacement: "if self.find_on_client(address)? {",
        }],
        found_by: &[PRIVACY.tests(&["hits::of_freecursive_that_are_not_served_are_not_seen"])],
    },
    Leak {
        name: "freecursive-served-hit-keeps-its-leaf",
        shows: "that a position-map block was a hit: it is read on the path it was taken from",
        edits: &[Edit {
            file: "core/src/front/recursion/freecursive.rs",
            find: "        self.plb.fill(line, Held { address, position });
        Ok(true)",
            replacement: "        self.plb.fill(line, Held { address, position });
        self.scheme.access(address, leaf, leaf, &mut Op::Read(&mut self.moved))?;
        Ok(true)",
        }],
        found_by: &[PRIVACY.tests(&["hits::that_are_served_leave_leaves_uniform_and_fresh"])],
    },
];
