//! Leaks of S³ORAM: what servers that hold shares learn of blocks, of the owner's accesses, or of each other's shares.

use super::{Edit, Leak};
use crate::targets::{SHARES_COINS, SHARES_SHARING, SHARES_VIEW};

const SHARING: &str = "shares/src/sharing.rs";
const CLIENT: &str = "shares/src/client/mod.rs";
const MULTIPLICATION: &str = "shares/src/multiplication.rs";
const SERVER: &str = "shares/src/server/mod.rs";

const SHAPE: &str = "what_servers_get_has_one_shape_whatever_the_owner_does";
const SEEDS: &str = "no_seed_comes_twice";
const ALONE: &str = "the_shares_of_one_server_are_uniform";
const TOGETHER: &str = "the_shares_of_as_many_servers_as_may_collude_are_uniform_together";
const MADE: &str = "what_comes_of_a_round_is_uniform";
const PATHS: &str = "paths_are_drawn_whatever_the_owner_does";
const FIRST: &str = "a_block_that_was_never_accessed_is_looked_for_anywhere";
const DRAWN_ONCE: &str = "paths_and_seeds_are_what_was_drawn";
const DEGREE: &str = "every_place_is_on_a_polynomial_of_degree_t";
const LOADED: &str = "what_is_put_into_a_tree_does_not_show";
const EVICTIONS: &str = "evictions_are_counted";

const QUERY: &str = "let shares = share::<F>(self.parties, &query, self.next_turn(), coins);";
const BLOCK: &str = "let shares = share::<F>(self.parties, block, self.next_turn(), coins);";
const MATRIX: &str = "let shares = share::<F>(self.parties, matrix, self.next_turn(), coins);";

/// Drawn seeds, as they are made.
const DRAWN: &str = "let seeds: Vec<Seed> = drawn.iter().map(|_| fresh_seed(coins)).collect();";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "shares-have-one-seed",
        shows: "by how much any two secrets differ: all lie on polynomials with one coefficient",
        edits: &[Edit {
            file: SHARING,
            find: DRAWN,
            replacement: "let seeds: Vec<Seed> = drawn.iter().map(|_| { fresh_seed(coins); [7; 32] }).collect();",
        }],
        found_by: &[SHARES_VIEW.tests(&[SEEDS, ALONE]), SHARES_SHARING.tests(&["each_sharing_has_coins_of_its_own_and_seeds_go_round"])],
    },
    Leak {
        name: "shares-have-one-seed-for-all-colluding",
        shows: "the secret to two servers that compare what they drew: a coefficient is zero, as good as known",
        edits: &[Edit {
            file: SHARING,
            find: DRAWN,
            replacement: "let seeds: Vec<Seed> = vec![fresh_seed(coins); drawn.len()];",
        }],
        found_by: &[SHARES_VIEW.tests(&[SEEDS, TOGETHER])],
    },
    Leak {
        name: "shares-seed-follows-from-the-turn",
        shows: "every share of everybody to whoever can count",
        edits: &[Edit {
            file: SHARING,
            find: DRAWN,
            replacement: "let seeds: Vec<Seed> = drawn.iter().map(|number| { fresh_seed(coins); let mut seed = [*number; 32]; seed[..8].copy_from_slice(&turn.to_le_bytes()); seed }).collect();",
        }],
        found_by: &[SHARES_VIEW.tests(&[SEEDS])],
    },
    Leak {
        name: "shares-are-of-degree-zero",
        shows: "the secret to each server that got a share",
        edits: &[Edit {
            file: SHARING,
            find: "let known: Vec<_> = seeds.iter().map(|seed| draw::<F>(seed, secret.len())).collect();",
            replacement: "let known: Vec<_> = seeds.iter().map(|_| secret.to_vec()).collect();",
        },
        Edit {
            file: SHARING,
            find: "Some(i) => Share::Drawn(seeds[i]),",
            replacement: "Some(i) => Share::Computed(known[i].clone()),",
        }],
        found_by: &[SHARES_VIEW.tests(&[ALONE]), SHARES_SHARING.tests(&["few_shares_say_nothing"])],
    },
    Leak {
        name: "shares-draw-only-half",
        shows: "half of each secret: it lies on a polynomial of degree zero",
        edits: &[Edit {
            file: SHARING,
            find: "    F::draw(&mut ChaCha20Rng::from_seed(*seed), &mut elements);",
            replacement: "    let half = count / 2;
    F::draw(&mut ChaCha20Rng::from_seed(*seed), &mut elements[half..]);",
        }],
        found_by: &[SHARES_VIEW.tests(&[ALONE]), SHARES_SHARING.tests(&["few_shares_say_nothing"])],
    },
    Leak {
        name: "shares-of-nothing-are-zeros",
        shows: "which blocks were never written",
        edits: &[Edit {
            file: CLIENT,
            find: QUERY,
            replacement: "let shares = match position {
            Some(_) => share::<F>(self.parties, &query, self.next_turn(), coins),
            None => {
                let real = share::<F>(self.parties, &query, self.next_turn(), coins);
                let zeros = |it| match it {
                    crate::sharing::Share::Drawn(seed) => crate::sharing::Share::Drawn(seed),
                    crate::sharing::Share::Computed(_) => crate::sharing::Share::Computed(query.to_vec()),
                };
                real.into_iter().map(zeros).collect()
            }
        };",
        }],
        found_by: &[SHARES_VIEW.tests(&[ALONE])],
    },
    Leak {
        name: "shares-of-nothing-are-not-sent",
        shows: "which blocks were never written",
        edits: &[
            Edit {
                file: CLIENT,
                find: QUERY,
                replacement: "if position.is_none() { query.clear(); }
        let shares = share::<F>(self.parties, &query, self.next_turn(), coins);",
            },
            Edit {
                file: SERVER,
                find: "        let query = query.into_elements::<F>(self.tree.path_slots()).ok_or(WRONG_LENGTH)?;",
                replacement: "        let query = match query {
            crate::sharing::Share::Computed(elements) if elements.is_empty() => vec![F::ZERO; self.tree.path_slots()],
            query => query.into_elements::<F>(self.tree.path_slots()).ok_or(WRONG_LENGTH)?,
        };",
            },
        ],
        found_by: &[SHARES_VIEW.tests(&[SHAPE])],
    },
    Leak {
        name: "shares-path-of-nothing-follows-from-the-address",
        shows: "which block it is that was never written",
        edits: &[Edit {
            file: CLIENT,
            find: "let leaf = position.map_or(drawn, |position| position.leaf);",
            replacement: "let leaf = position.map_or(Leaf((drawn.0 & 1) | (address as u64 & (self.tree.leaves() - 1))), |position| position.leaf);",
        }],
        found_by: &[SHARES_VIEW.tests(&[FIRST])],
    },
    Leak {
        name: "shares-block-stays-on-its-path",
        shows: "that the same block is accessed again",
        edits: &[Edit {
            file: CLIENT,
            find: "let (leaf, slot) = (self.draw_leaf(coins), self.written);",
            replacement: "let (drawn, slot) = (self.draw_leaf(coins), self.written);
        let leaf = self.positions.get(selected.address).map_or(drawn, |before| before.leaf);",
        }],
        found_by: &[SHARES_VIEW.tests(&[PATHS])],
    },
    Leak {
        name: "shares-paths-are-dealt",
        shows: "whether a block was accessed lately: its path is not among those that were",
        edits: &[Edit {
            file: CLIENT,
            find: "Leaf(coins.next_u64() & (self.tree.leaves() - 1))",
            replacement: "Leaf((coins.next_u64() & 1) * 0 + (self.turns & (self.tree.leaves() - 1)))",
        }],
        found_by: &[SHARES_VIEW.tests(&[PATHS])],
    },
    Leak {
        name: "shares-leaves-on-the-right-are-spared",
        shows: "where blocks are not",
        edits: &[Edit {
            file: CLIENT,
            find: "Leaf(coins.next_u64() & (self.tree.leaves() - 1))",
            replacement: "Leaf(coins.next_u64() % (self.tree.leaves() - 1))",
        }],
        found_by: &[SHARES_VIEW.tests(&[PATHS])],
    },
    Leak {
        name: "shares-block-is-not-shared",
        shows: "every block that is written, to all servers",
        edits: &[Edit {
            file: CLIENT,
            find: BLOCK,
            replacement: "let shares = share::<F>(self.parties, block, self.next_turn(), coins);
        let shares: Vec<_> = shares.iter().map(|_| crate::sharing::Share::Computed(block.to_vec())).collect();",
        }],
        found_by: &[SHARES_VIEW.tests(&[ALONE])],
    },
    Leak {
        name: "shares-matrices-are-not-shared",
        shows: "which slots hold blocks, and where each goes",
        edits: &[Edit {
            file: CLIENT,
            find: MATRIX,
            replacement: "let shares = share::<F>(self.parties, matrix, self.next_turn(), coins);
            let shares: Vec<_> = shares.iter().map(|_| crate::sharing::Share::Computed(matrix.to_vec())).collect();",
        }],
        found_by: &[SHARES_VIEW.tests(&[ALONE])],
    },
    Leak {
        name: "shares-matrices-of-no-moves-are-not-shared",
        shows: "that a bucket and its child are empty",
        edits: &[Edit {
            file: CLIENT,
            find: MATRIX,
            replacement: "let shares = share::<F>(self.parties, matrix, self.next_turn(), coins);
            let moves = matrix.iter().any(|it| *it != F::ZERO);
            let shares: Vec<_> = shares.into_iter().map(|it| match it {
                crate::sharing::Share::Computed(_) if !moves => crate::sharing::Share::Computed(matrix.to_vec()),
                it => it,
            }).collect();",
        }],
        found_by: &[SHARES_VIEW.tests(&[ALONE])],
    },
    Leak {
        name: "shares-blocks-have-one-polynomial",
        shows: "by how much any two blocks differ",
        edits: &[Edit {
            file: CLIENT,
            find: BLOCK,
            replacement: "use rand_core::SeedableRng;
        coins.next_u64();
        let mut of_blocks = chacha20::ChaCha20Rng::from_seed([5; 32]);
        let shares = share::<F>(self.parties, block, self.next_turn(), &mut of_blocks);",
        }],
        found_by: &[SHARES_VIEW.tests(&[SEEDS, ALONE])],
    },
    Leak {
        name: "shares-are-dealt-as-they-are",
        shows: "all blocks of an eviction, to every server: what is dealt adds up to them",
        edits: &[Edit {
            file: MULTIPLICATION,
            find: "    share::<F>(parties, product, dealer.into(), coins)",
            replacement: "    let shares = share::<F>(parties, product, dealer.into(), coins);
    shares.iter().map(|_| Share::Computed(product.to_vec())).collect()",
        }],
        found_by: &[SHARES_VIEW.tests(&[MADE])],
    },
    Leak {
        name: "shares-are-dealt-with-coins-of-the-number",
        shows: "of what a server deals, all: its coins are known",
        edits: &[Edit {
            file: MULTIPLICATION,
            find: "    share::<F>(parties, product, dealer.into(), coins)",
            replacement: "    let mut coins_of_dealer = {
        use rand_core::SeedableRng;
        coins.next_u64();
        chacha20::ChaCha20Rng::from_seed([dealer; 32])
    };
    share::<F>(parties, product, dealer.into(), &mut coins_of_dealer)",
        }],
        found_by: &[SHARES_VIEW.tests(&[SEEDS])],
    },
    Leak {
        name: "shares-evict-once-more-after-writes-of-nothing-new",
        shows: "when a block that was never written is accessed",
        edits: &[Edit {
            file: CLIENT,
            find: "self.written >= self.tree.accesses()",
            replacement: "let alive = (0..self.positions.blocks())
            .filter(|it| self.positions.get(*it).is_some())
            .count();
        self.written == self.tree.accesses() || (self.written == 2 && alive < 3)",
        }],
        found_by: &[SHARES_VIEW.tests(&[SHAPE, EVICTIONS])],
    },
    Leak {
        name: "shares-second-seed-follows-from-the-first",
        shows: "every share to two servers: one of them can draw what the other has",
        edits: &[Edit {
            file: SHARING,
            find: DRAWN,
            replacement: "let mut seeds: Vec<Seed> = drawn.iter().map(|_| fresh_seed(coins)).collect();
    if let [first, second, ..] = &mut seeds[..] {
        *second = *first;
        second[0] ^= 1;
    }",
        }],
        found_by: &[SHARES_COINS.tests(&[DRAWN_ONCE])],
    },
    Leak {
        name: "shares-are-drawn-from-two-bytes-of-a-seed",
        shows: "all secrets to whoever tries 65,536 seeds",
        edits: &[Edit {
            file: SHARING,
            find: "    F::draw(&mut ChaCha20Rng::from_seed(*seed), &mut elements);",
            replacement: "    let mut short = Seed::default();
    short[..2].copy_from_slice(&seed[..2]);
    F::draw(&mut ChaCha20Rng::from_seed(short), &mut elements);",
        }],
        found_by: &[SHARES_COINS.tests(&["every_bit_of_a_seed_counts"])],
    },
    Leak {
        name: "shares-leaf-follows-from-the-data",
        shows: "that a block begins with a zero, half of the time",
        edits: &[Edit {
            file: CLIENT,
            find: "let (leaf, slot) = (self.draw_leaf(coins), self.written);",
            replacement: "let (drawn, slot) = (self.draw_leaf(coins), self.written);
        let is_zero = block.first() == Some(&F::ZERO);
        let leaf = if is_zero { Leaf(drawn.0 & !1) } else { drawn };",
        }],
        found_by: &[SHARES_COINS.tests(&[DRAWN_ONCE])],
    },
    Leak {
        name: "shares-are-dealt-as-they-are-if-there-are-more-servers",
        shows: "all blocks of an eviction, to every server, if there are more than 2t + 1",
        edits: &[Edit {
            file: MULTIPLICATION,
            find: "    share::<F>(parties, product, dealer.into(), coins)",
            replacement: "    let shares = share::<F>(parties, product, dealer.into(), coins);
    if parties.servers() == parties.for_product() {
        return shares;
    }
    shares.iter().map(|_| Share::Computed(product.to_vec())).collect()",
        }],
        found_by: &[SHARES_COINS.tests(&[DRAWN_ONCE, DEGREE])],
    },
    Leak {
        name: "shares-last-element-dealt-is-of-degree-zero",
        shows: "the last byte of each bucket that is made",
        edits: &[Edit {
            file: MULTIPLICATION,
            find: "    share::<F>(parties, product, dealer.into(), coins)",
            replacement: "    let mut shares = share::<F>(parties, product, dealer.into(), coins);
    for share in &mut shares {
        let share_of_all = share.clone().into_elements::<F>(product.len());
        if let (Some(mut elements), Some(last)) = (share_of_all, product.last()) {
            *elements.last_mut().unwrap_or(&mut F::ZERO.clone()) = *last;
            *share = Share::Computed(elements);
        }
    }
    shares",
        }],
        found_by: &[SHARES_COINS.tests(&[DRAWN_ONCE, DEGREE])],
    },
    Leak {
        name: "shares-dealer-stretches-eight-bytes",
        shows: "all that is dealt, to whoever tries 2^64 seeds",
        edits: &[Edit {
            file: MULTIPLICATION,
            find: "    share::<F>(parties, product, dealer.into(), coins)",
            replacement: "    use rand_core::SeedableRng;
    let mut seed = [0; 32];
    coins.fill_bytes(&mut seed[..8]);
    let mut stretched = chacha20::ChaCha20Rng::from_seed(seed);
    share::<F>(parties, product, dealer.into(), &mut stretched)",
        }],
        found_by: &[SHARES_COINS.tests(&[DRAWN_ONCE])],
    },
    Leak {
        name: "shares-empty-leaves-are-not-loaded",
        shows: "to which leaves no block is mapped",
        edits: &[Edit {
            file: CLIENT,
            find: "send(slots, share::<F>(self.parties, data, self.next_turn(), coins))?;",
            replacement: "if data.iter().any(|it| *it != F::ZERO) {
                    send(slots, share::<F>(self.parties, data, self.next_turn(), coins))?;
                }",
        }],
        found_by: &[SHARES_VIEW.tests(&[LOADED])],
    },
    Leak {
        name: "shares-leaves-are-loaded-as-they-are",
        shows: "all data that is put into a tree",
        edits: &[Edit {
            file: CLIENT,
            find: "send(slots, share::<F>(self.parties, data, self.next_turn(), coins))?;",
            replacement: "let shares = share::<F>(self.parties, data, self.next_turn(), coins);
                send(slots, shares.iter().map(|_| Share::Computed(data.to_vec())).collect())?;",
        }],
        found_by: &[SHARES_VIEW.tests(&[LOADED])],
    },
];
