//! Leaks between share servers: what one deals to the others, which shows to them alone or to some of them together.

use super::{Edit, Leak};
use crate::targets::{SHARES_DURABLE_PEERS, SHARES_HOST_EVICT};

const EVICT: &str = "shares/src/host/evict.rs";

const SHAPE: &str = "what_passes_a_server_has_one_shape_whatever_the_owner_does";
const UNIFORM: &str = "what_others_deal_to_a_server_is_uniform";
const SEEDS: &str = "no_seed_is_dealt_twice";
const TOGETHER: &str = "what_is_dealt_to_a_coalition_is_uniform_together";
const GUESSED: &str = "what_a_coalition_guesses_of_a_round_is_uniform";
const AFTERWARDS: &str =
    "what_a_coalition_has_after_a_round_is_uniform_together_and_one_more_has_all";

const PARTS: &str = "no_two_parts_are_dealt_from_one_seed";
const SET_BACK: &str = "a_server_that_is_set_back_deals_nothing_else_from_the_same_seeds";

/// The coins for one product.
const DEALT_FROM: &str =
    "ChaCha20Rng::from_seed(*derive_seed(self.eviction.seed, &[&place, product]))";

const DEALT: &str = "let shares = reshare::<Gf256>(parties, own, product, coins);";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "peers-two-are-dealt-one-seed",
        shows: "to two servers that compare: one unknown of each polynomial is gone",
        edits: &[Edit {
            file: EVICT,
            find: DEALT,
            replacement: "let mut shares = reshare::<Gf256>(parties, own, product, coins);
            let drawn: Vec<u8> = parties.numbers().zip(&shares)
                .filter(|(_, share)| matches!(share, Share::Drawn(_))).map(|(number, _)| number).collect();
            if let [one, other] = drawn[..] {
                let seed = shares[usize::from(one) - 1].clone();
                let value = seed.clone().into_elements::<Gf256>(product.len()).unwrap_or_default();
                let known: [&[u8]; 3] = [product, &value, &value];
                for number in parties.numbers().filter(|number| *number != one) {
                    shares[usize::from(number) - 1] = if number == other {
                        seed.clone()
                    } else {
                        let value = crate::sharing::value::<Gf256>(&[0, one, other], &known, number);
                        Share::Computed(value.unwrap_or_default())
                    };
                }
            }",
        }],
        found_by: &[SHARES_DURABLE_PEERS.tests(&[TOGETHER, SEEDS])],
    },
    Leak {
        name: "peers-are-dealt-polynomials-of-a-lower-degree",
        shows: "all blocks of an eviction, to as many servers as may collude: the last coefficient is zero",
        edits: &[Edit {
            file: EVICT,
            find: DEALT,
            replacement: "let mut shares = reshare::<Gf256>(parties, own, product, coins);
            let drawn = parties.numbers().zip(&shares).filter(|(_, share)| matches!(share, Share::Drawn(_)));
            let drawn: Vec<u8> = drawn.map(|(number, _)| number).take(parties.colluding() - 1).collect();
            let values: Vec<Vec<u8>> = drawn.iter().map(|number| {
                shares[usize::from(*number) - 1].clone().into_elements::<Gf256>(product.len()).unwrap_or_default()
            }).collect();
            let places: Vec<u8> = std::iter::once(0).chain(drawn.iter().copied()).collect();
            let known: Vec<&[u8]> = std::iter::once(&product[..]).chain(values.iter().map(|it| &it[..])).collect();
            for number in parties.numbers().filter(|number| !drawn.contains(number)) {
                let value = crate::sharing::value::<Gf256>(&places, &known, number);
                shares[usize::from(number) - 1] = Share::Computed(value.unwrap_or_default());
            }",
        }],
        found_by: &[SHARES_DURABLE_PEERS.tests(&[GUESSED, AFTERWARDS])],
    },
    Leak {
        name: "peers-are-dealt-products-as-they-are",
        shows: "all blocks of an eviction, to every server: nobody has shared his product anew",
        edits: &[Edit {
            file: EVICT,
            find: DEALT,
            replacement: "let mut shares = reshare::<Gf256>(parties, own, product, coins);
            shares.iter_mut().for_each(|share| *share = Share::Computed(product.clone()));",
        }],
        found_by: &[SHARES_DURABLE_PEERS.tests(&[GUESSED, TOGETHER, AFTERWARDS])],
    },
    Leak {
        name: "peers-are-dealt-what-was-dealt-before",
        shows: "by how much what is in a part of two evictions differs: coins of a part are always the same",
        edits: &[Edit {
            file: EVICT,
            find: DEALT_FROM,
            replacement: "let _ = (place, product);
        ChaCha20Rng::from_seed([self.eviction.files.setup.number ^ self.tile as u8; 32])",
        }],
        found_by: &[SHARES_DURABLE_PEERS.tests(&[SEEDS])],
    },
    Leak {
        name: "peers-are-dealt-all-parts-from-one-seed",
        shows: "by how much products of a dealer differ between two parts of a bucket",
        edits: &[Edit {
            file: EVICT,
            find: DEALT_FROM,
            replacement: "let place = &place[..16];
        let _ = product;
        ChaCha20Rng::from_seed(*derive_seed(self.eviction.seed, &[place, &[level, child]]))",
        }],
        found_by: &[SHARES_HOST_EVICT.tests(&[PARTS])],
    },
    Leak {
        name: "peers-are-dealt-like-parts-from-one-seed",
        shows: "which parts of a bucket are alike on a dealer",
        edits: &[Edit {
            file: EVICT,
            find: "[number, attempt, self.tile.into(), level.into(), child.into()]",
            replacement: "[number, attempt, level.into(), child.into()]",
        }],
        found_by: &[SHARES_HOST_EVICT.tests(&[PARTS])],
    },
    Leak {
        name: "peers-are-dealt-other-products-by-a-server-that-is-set-back",
        shows: "by how much products of a dealer differ that is set back within an attempt, to \
                all it deals to",
        edits: &[Edit {
            file: EVICT,
            find: DEALT_FROM,
            replacement: "let _ = product;
        ChaCha20Rng::from_seed(*derive_seed(self.eviction.seed, &[&place]))",
        }],
        found_by: &[SHARES_HOST_EVICT.tests(&[SET_BACK])],
    },
    Leak {
        name: "peers-are-dealt-zeros-as-they-are",
        shows: "where a dealer's product is zero: it takes no coins there",
        edits: &[Edit {
            file: EVICT,
            find: DEALT,
            replacement: "let mut shares = reshare::<Gf256>(parties, own, product, coins);
            for share in &mut shares {
                if let Some(mut bytes) = share.clone().into_elements::<Gf256>(product.len()) {
                    let zeros = bytes.iter_mut().zip(product).filter(|(_, of_product)| **of_product == 0);
                    zeros.for_each(|(byte, _)| *byte = 0);
                    *share = Share::Computed(bytes);
                }
            }",
        }],
        found_by: &[SHARES_DURABLE_PEERS.tests(&[UNIFORM])],
    },
    Leak {
        name: "peers-dealers-follow-from-what-is-accessed",
        shows: "that the last access before an eviction was for nothing: others deal then, where there are more servers than are needed",
        edits: &[
            Edit {
                file: "shares/src/durable/array.rs",
                find: "let leaf = address.and_then(|address| moves.leaf(address));",
                replacement: "let leaf = address.and_then(|address| moves.leaf(address));
            crate::PLANTED_NOTE.set(usize::from(address.is_none()));",
            },
            Edit {
                file: "shares/src/durable/evict.rs",
                find: "let dealers = trust.dealers(servers, parties)?;",
                replacement: "let _ = (servers, trust);
        let spare = parties.servers() - parties.for_product();
        let dealers = parties.numbers().skip(if crate::PLANTED_NOTE.get() == 1 { spare } else { 0 });
        let dealers: Vec<_> = dealers.take(parties.for_product()).collect();",
            },
        ],
        found_by: &[SHARES_DURABLE_PEERS.tests(&[SHAPE])],
    },
    Leak {
        name: "peers-are-told-nothing-at-the-end-if-nothing-was-taken",
        shows: "whether the last access before an eviction was for nothing, to whoever counts messages of other servers",
        edits: &[
            Edit {
                file: "shares/src/durable/array.rs",
                find: "let leaf = address.and_then(|address| moves.leaf(address));",
                replacement: "let leaf = address.and_then(|address| moves.leaf(address));
            crate::PLANTED_NOTE.set(usize::from(address.is_none()));",
            },
            Edit {
                file: "shares/src/durable/evict.rs",
                find: "        let attempt = epochs.iter().map(|epoch| epoch.attempt).max().unwrap_or(0) + 1;",
                replacement: "        let next = epochs.iter().map(|epoch| epoch.attempt).max().unwrap_or(0) + 1;
        let attempt = if (next % 2 == 1) == (crate::PLANTED_NOTE.get() == 1) { next } else { next + 1 };",
            },
            Edit {
                file: EVICT,
                find: "let end = Dealt { number, attempt, tile, level: 0, shares: Vec::new() }.encode();",
                replacement: "if attempt % 2 == 1 {
            return;
        }
        let end = Dealt { number, attempt, tile, level: 0, shares: Vec::new() }.encode();",
            },
        ],
        found_by: &[SHARES_DURABLE_PEERS.tests(&[SHAPE])],
    },
];
