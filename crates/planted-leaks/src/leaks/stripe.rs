//! Leaks of a store over several others: to one of them, of what is on the others.

use super::{Edit, Leak};
use crate::targets::STORE_STRIPE;

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "stripe-asks-every-member",
        shows: "to each member, when there are trips that have nothing on its levels",
        edits: &[Edit {
            file: "store/src/striped.rs",
            find: "workers.filter(|worker| !worker.share.pieces.is_empty());",
            replacement: "workers;",
        }],
        found_by: &[
            STORE_STRIPE.tests(&["a_member_sees_its_own_levels_and_nothing_of_other_trips"])
        ],
    },
    Leak {
        name: "stripe-announces-to-the-next-member",
        shows: "to each member, what is asked of the one before it",
        edits: &[Edit {
            file: "store/src/striped.rs",
            find: "shares[self.member(piece)].push(*piece);",
            replacement: "let next = (self.member(piece) + 1) % self.members.len();
            shares[next].push(*piece);",
        }],
        found_by: &[
            STORE_STRIPE.tests(&["a_member_sees_its_own_levels_and_nothing_of_other_trips"])
        ],
    },
];
