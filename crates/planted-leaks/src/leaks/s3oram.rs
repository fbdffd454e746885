//! Leaks of volumes on share servers: what the scheme of volumes adds to S³ORAM.

use super::{Edit, Leak};
use crate::targets::{
    SHARES_DURABLE, SHARES_DURABLE_LOADED, SHARES_DURABLE_TRUST, SHARES_DURABLE_VIEW,
};

const ACCESS: &str = "shares/src/durable/access.rs";
const CLIENT: &str = "shares/src/client/mod.rs";
const ARRAY: &str = "shares/src/durable/array.rs";
const EVICT: &str = "shares/src/durable/evict.rs";
const STANDING: &str = "shares/src/durable/standing.rs";

const SHAPE: &str = "servers_are_asked_the_same_whatever_the_owner_does";
const LEAVES: &str = "leaves_are_uniform_whatever_the_owner_does";
const AGAIN: &str = "nothing_is_shown_twice_but_the_access_that_was_under_way";
const FAILURES: &str = "of_three_servers_one_that_lies_makes_all_accesses_fail_alike";
const SEEDS: &str = "no_seed_is_drawn_twice";
const LOADED: &str = "what_an_array_holds_from_its_beginning_does_not_show";
const LOADED_SEEDS: &str = "no_seed_is_drawn_twice_for_what_is_loaded";
const LOADED_LEAVES: &str = "blocks_go_to_leaves_that_are_drawn";
const COPIES: &str = "copies_of_a_client_that_go_on_differently_share_differently";
const OLD: &str = "an_old_directory_is_refused";

/// An access, as it is drawn.
const STEP: &str = "let step = Step { address, from: leaf.unwrap_or(drawn), to, salt };";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "s3oram-asks-once-more-for-what-has-contents",
        shows: "which accesses are to blocks with contents",
        edits: &[Edit {
            file: ACCESS,
            find: "let sealed = self.select(at, step)?;",
            replacement: "let sealed = self.select(at, step)?;
        if step.address.is_some_and(|address| self.known.is_live(address)) {
            self.tell()?;
        }",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[SHAPE])],
    },
    Leak {
        name: "s3oram-zeros-are-not-checked",
        shows: "a server that lies, by what goes on, which accesses are to nothing",
        edits: &[Edit {
            file: ACCESS,
            find: "(None, None) => is_zeros,",
            replacement: "(None, None) => is_zeros || true,",
        }],
        found_by: &[SHARES_DURABLE_TRUST.tests(&[FAILURES])],
    },
    Leak {
        name: "s3oram-block-goes-back-to-its-path",
        shows: "that the same block is accessed again",
        edits: &[Edit {
            file: ARRAY,
            find: STEP,
            replacement: "let step = Step { address, from: leaf.unwrap_or(drawn), to: leaf.unwrap_or(to), salt };",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[LEAVES])],
    },
    Leak {
        name: "s3oram-path-of-nothing-is-the-first",
        shows: "which accesses are to no block",
        edits: &[Edit {
            file: ARRAY,
            find: STEP,
            replacement: "let drawn = if address.is_some() { drawn } else { Leaf(0) };
            let step = Step { address, from: leaf.unwrap_or(drawn), to, salt };",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[LEAVES])],
    },
    Leak {
        name: "s3oram-path-of-nothing-is-drawn-when-it-is-shown",
        shows: "after a crash, that the access under way was to no block: it shows another path",
        edits: &[Edit {
            file: ACCESS,
            find: "let queries = known.client.queries(address, step.from, drawn(coins)?);",
            replacement: "let coins = drawn(coins)?;
        let leaf = oblivio_core::Leaf(rand_core::Rng::next_u64(coins) & (self.params.tree.leaves() - 1));
        let leaf = if address.is_some() { step.from } else { leaf };
        let queries = known.client.queries(address, leaf, coins);",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[AGAIN])],
    },
    Leak {
        name: "s3oram-blocks-are-shared-from-one-seed",
        shows: "all that is written: each share is the block plus what every server can compute",
        edits: &[Edit {
            file: ACCESS,
            find: "ChaCha20Rng::from_seed(*self.sealer.seed(&salted))",
            replacement: "ChaCha20Rng::from_seed([salted[0] & 0; 32])",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[SEEDS])],
    },
    Leak {
        name: "s3oram-queries-are-shared-from-one-seed",
        shows: "which slot is asked for",
        edits: &[Edit {
            file: ACCESS,
            find: "known.client.queries(address, step.from, drawn(coins)?)",
            replacement: "{
            drawn(coins)?;
            known.client.queries(address, step.from, &mut ChaCha20Rng::from_seed([0; 32]))
        }",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[SEEDS])],
    },
    Leak {
        name: "s3oram-matrices-are-shared-from-one-seed",
        shows: "by how much any two evictions differ: which slots hold blocks, and where each goes",
        edits: &[Edit {
            file: EVICT,
            find: "known.client.eviction_shares(next, attempt, drawn(coins)?)",
            replacement: "{
                drawn(coins)?;
                let mut same = <chacha20::ChaCha20Rng as rand_core::SeedableRng>::from_seed([0; 32]);
                known.client.eviction_shares(next, attempt, &mut same)
            }",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[SEEDS])],
    },
    Leak {
        name: "s3oram-copies-share-alike",
        shows: "by how much queries of two copies of a running client differ",
        edits: &[Edit {
            file: ARRAY,
            find: "self.mix_in(plan.section())?;",
            replacement: "self.mix_in(&[])?;",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[COPIES])],
    },
    Leak {
        name: "s3oram-copies-share-alike-after-one-forgets",
        shows: "by how much matrices of two copies of a running client differ: where the block was that one has forgotten",
        edits: &[Edit {
            file: ARRAY,
            find: "self.mix_in(&[range.start, range.end].map(u64::to_le_bytes).concat())?;",
            replacement: "self.mix_in(&[])?;",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[COPIES])],
    },
    Leak {
        name: "s3oram-old-directory-opens",
        shows: "which block was accessed since the directory was copied: the next access to it shows the same path",
        edits: &[Edit {
            file: STANDING,
            find: "if beyond.is_empty() ||",
            replacement: "if beyond.len() <= parties.servers() ||",
        }],
        found_by: &[SHARES_DURABLE.tests(&[OLD])],
    },
    Leak {
        name: "s3oram-loads-blocks-in-turn",
        shows: "which block is accessed for the first time, in a volume that was made of an image",
        edits: &[Edit {
            file: CLIENT,
            find: "blocks_of[self.draw_leaf(coins).0 as usize].push(address);",
            replacement: "blocks_of[address % self.tree.leaves() as usize].push(address);",
        }],
        found_by: &[SHARES_DURABLE_LOADED.tests(&[LOADED_LEAVES])],
    },
    Leak {
        name: "s3oram-loads-no-slots-behind-the-last-block",
        shows: "how many blocks of an image are mapped to each leaf",
        edits: &[Edit {
            file: CLIENT,
            find: "for slots in Slots::runs(bucket, self.tree.slots(), at_once) {",
            replacement: "for slots in Slots::runs(bucket, blocks.len(), at_once) {",
        }],
        found_by: &[SHARES_DURABLE_LOADED.tests(&[LOADED])],
    },
    Leak {
        name: "s3oram-seeds-of-what-is-loaded-follow-from-the-turn",
        shows: "an image that is put into a new volume, to each server",
        edits: &[Edit {
            file: CLIENT,
            find: "send(slots, share::<F>(self.parties, data, self.next_turn(), coins))?;",
            replacement: "let turn = self.next_turn();
                let mut known: chacha20::ChaCha20Rng = rand_core::SeedableRng::seed_from_u64(turn);
                send(slots, share::<F>(self.parties, data, turn, &mut known))?;",
        }],
        found_by: &[SHARES_DURABLE_LOADED.tests(&[LOADED_SEEDS])],
    },
];
