//! Leaks of volumes on share servers: what the scheme of volumes adds to S³ORAM.

use super::{Edit, Leak};
use crate::targets::{
    SHARES_DURABLE, SHARES_DURABLE_COPIES, SHARES_DURABLE_DEALERS, SHARES_DURABLE_LOADED,
    SHARES_DURABLE_TRUST, SHARES_DURABLE_VIEW, SHARES_HOST_DAMAGE, SHARES_HOST_SYNCS,
    SHARES_MAILBOX, SHARES_MESSAGES, STORE_REMOTE_SHARED, VOLUME_S3ORAM,
};

const ACCESS: &str = "shares/src/durable/access.rs";
const COINS: &str = "shares/src/durable/coins.rs";
const CLIENT: &str = "shares/src/client/mod.rs";
const ARRAY: &str = "shares/src/durable/array.rs";
const EVICT: &str = "shares/src/durable/evict.rs";
const STANDING: &str = "shares/src/durable/standing.rs";
const MESSAGES: &str = "shares/src/message/bytes.rs";

const SHAPE: &str = "servers_are_asked_the_same_whatever_the_owner_does";
const LEAVES: &str = "leaves_are_uniform_whatever_the_owner_does";
const AGAIN: &str = "nothing_is_shown_twice_but_the_access_that_was_under_way";
const FAILURES: &str = "of_three_servers_one_that_lies_makes_all_accesses_fail_alike";
const SEEDS: &str = "no_seed_is_drawn_twice";
const LOADED: &str = "what_an_array_holds_from_its_beginning_does_not_show";
const LOADED_SEEDS: &str = "no_seed_is_drawn_twice_for_what_is_loaded";
const LOADED_LEAVES: &str = "blocks_go_to_leaves_that_are_drawn";
const COPIES: &str = "copies_of_a_client_that_go_on_differently_share_differently";
const TWO_THINGS: &str = "no_seed_stands_for_two_things_in_copies_of_a_client";
const TWO_SERVERS: &str = "nor_does_one_where_nothing_is_moved";
const SAME_MATRICES: &str = "copies_share_the_same_matrices_differently";
const OLD: &str = "an_old_directory_is_refused";
const WORKS: &str = "a_server_that_says_for_ever_that_it_works_is_gone";
const PATIENCE: &str = "only_what_may_take_long_is_waited_for_long";
const ATTEMPTS: &str = "a_number_of_attempts_that_a_server_makes_up_is_not_gone_on_from";
const LATER: &str = "whoever_has_dealt_for_a_later_attempt_still_deals_for_the_one_that_is_begun";
const REFUSALS: &str = "no_server_says_in_its_answer_that_somebody_else_has_the_volume";
const LEFT: &str = "what_a_program_has_left_is_durable_before_another_tells_of_it";
const FAILED: &str = "after_a_sync_that_has_failed_nothing_is_answered";
const RESCUED: &str = "what_is_left_is_found_without_a_server_that_is_set_back_and_it_is_named";
const LOOKED: &str = "a_server_that_has_lost_its_shares_is_named_before_anything_is_written";

const DEALERS: &str = "a_server_that_has_answered_wrong_does_not_deal_until_it_is_repaired";
const LOSSES: &str = "wrong_shares_of_one_server_of_five_lose_nothing";
const BEGUN: &str = "what_was_found_before_a_crash_counts_in_the_eviction_that_is_begun_again";
const SPOILT: &str = "a_server_whose_disk_has_spoilt_a_share_says_so_and_does_not_deal_it";
const UNDONE: &str = "who_spoils_a_block_and_undoes_it_again_is_not_gone_on_with_unknowingly";
/// The coins of a query.
const QUERY: &str = "let mut coins = salted(sealer, &[&step.salt, &number.to_le_bytes(), &query]);";

/// An access, as it is drawn.
const STEP: &str = "let step = Step { address, from: leaf.unwrap_or(drawn), to, salt };";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "share-records-of-too-few-servers-count",
        shows: "nothing, and takes what servers that were away say for the newest record",
        edits: &[Edit {
            file: "store/src/shares/mod.rs",
            find: "let has_enough = self.votes.voters() >= enough;",
            replacement: "let has_enough = self.votes.voters() >= enough.min(agreed);",
        }],
        found_by: &[STORE_REMOTE_SHARED.tests(&[
            "a_record_that_too_few_servers_answer_is_not_the_value_of_those_that_were_away",
        ])],
    },
    Leak {
        name: "share-records-are-what-most-servers-say",
        shows: "nothing, and takes servers that were away for a rollback",
        edits: &[Edit {
            file: "store/src/shares/votes.rs",
            find: "counted.into_iter().map(|(value, _)| value).collect()",
            replacement: "counted.into_iter().map(|(value, _)| value).take(1).collect()",
        }],
        found_by: &[STORE_REMOTE_SHARED
            .tests(&["every_value_with_an_honest_witness_is_a_candidate"])],
    },
    Leak {
        name: "share-servers-count-without-records-that-they-missed",
        shows: "nothing, and keeps records on fewer servers than a flush promises",
        edits: &[Edit {
            file: "store/src/shares/mod.rs",
            find: "self.servers[i].receive(&self.written);",
            replacement: "if self.is_repair {
                    self.servers[i].receive(&self.written);
                }",
        }],
        found_by: &[STORE_REMOTE_SHARED
            .tests(&["a_server_that_comes_back_gets_what_it_has_missed_before_it_counts"])],
    },
    Leak {
        name: "share-records-are-flushed-by-too-few-servers",
        shows: "nothing, and loses records that a flush has promised",
        edits: &[Edit {
            file: "store/src/shares/mod.rs",
            find: "if there >= enough {",
            replacement: "if there >= enough - 1 {",
        }],
        found_by: &[STORE_REMOTE_SHARED
            .tests(&["a_flush_is_done_by_enough_servers_that_have_all_or_not_at_all"])],
    },
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
            find: "let queries = known.client.queries_at(position, step.from, &mut coins);",
            replacement: "let drawn = crate::PLANTED_NOTE.get() + 1;
        crate::PLANTED_NOTE.set(drawn);
        let drawn = drawn as u64 & (self.params.tree.leaves() - 1);
        let leaf = if address.is_some() { step.from } else { oblivio_core::Leaf(drawn) };
        let queries = known.client.queries_at(position, leaf, &mut coins);",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[AGAIN])],
    },
    Leak {
        name: "s3oram-blocks-are-shared-from-one-seed",
        shows: "all that is written: each share is the block plus what every server can compute",
        edits: &[Edit {
            file: ACCESS,
            find: "let mut coins = salted(&self.sealer, &[&step.salt, &sealed]);",
            replacement: "let mut coins = salted(&self.sealer, &[]);",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[SEEDS])],
    },
    Leak {
        name: "s3oram-queries-are-shared-from-one-seed",
        shows: "which slot is asked for",
        edits: &[Edit {
            file: ACCESS,
            find: QUERY,
            replacement: "let _ = (number, query);
        let mut coins = salted(sealer, &[]);",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[SEEDS])],
    },
    Leak {
        name: "s3oram-matrices-are-shared-from-one-seed",
        shows: "by how much any two evictions differ: which slots hold blocks, and where each goes",
        edits: &[Edit {
            file: EVICT,
            find: "known.client.eviction_shares(next, attempt, coins)",
            replacement: "{
                let _ = coins;
                let mut same = <chacha20::ChaCha20Rng as rand_core::SeedableRng>::from_seed([0; 32]);
                known.client.eviction_shares(next, attempt, &mut same)
            }",
        }],
        found_by: &[SHARES_DURABLE_VIEW.tests(&[SEEDS])],
    },
    Leak {
        name: "s3oram-copies-share-alike",
        shows: "whether two copies of a running client move the same in an eviction",
        edits: &[Edit {
            file: ARRAY,
            find: "self.coins.mix_in(&self.sealer, plan.section())?;",
            replacement: "self.coins.mix_in(&self.sealer, &[])?;",
        }],
        found_by: &[SHARES_DURABLE_COPIES.tests(&[SAME_MATRICES])],
    },
    Leak {
        name: "s3oram-copies-share-alike-after-one-forgets",
        shows: "whether one of two copies of a running client has forgotten a block that the \
                other has not",
        edits: &[Edit {
            file: ARRAY,
            find: ".mix_in(&self.sealer, &[range.start, range.end].map(u64::to_le_bytes).concat())?;",
            replacement: ".mix_in(&self.sealer, &[])?;",
        }],
        found_by: &[SHARES_DURABLE_COPIES.tests(&[SAME_MATRICES])],
    },
    Leak {
        name: "s3oram-queries-follow-from-the-salt-alone",
        shows: "by how much the queries of two copies of a running client differ",
        edits: &[Edit {
            file: ACCESS,
            find: QUERY,
            replacement: "let _ = (number, query);
        let mut coins = salted(sealer, &[&step.salt]);",
        }],
        found_by: &[
            SHARES_DURABLE_VIEW.tests(&[COPIES]),
            SHARES_DURABLE_COPIES.tests(&[TWO_THINGS]),
        ],
    },
    Leak {
        name: "s3oram-queries-are-drawn-from-the-coins-of-the-era",
        shows: "to one server, the slot that one copy of a client asks for, if another copy has \
                been answered otherwise",
        edits: &[
            Edit {
                file: ACCESS,
                find: "let Self { known, sealer, .. } = self;",
                replacement: "let Self { known, sealer, coins: era, .. } = self;",
            },
            Edit {
                file: ACCESS,
                find: QUERY,
                replacement: "let _ = (sealer, number, query);
        let mut coins = era.drawn()?;",
            },
        ],
        found_by: &[SHARES_DURABLE_COPIES.tests(&[TWO_THINGS])],
    },
    Leak {
        name: "s3oram-attempts-are-not-mixed-in",
        shows: "to one server, what one copy of a client moves in an eviction, if an attempt of \
                another copy has failed",
        edits: &[Edit {
            file: COINS,
            find: "        self.mix_in_all(sealer, &parts)?;\n        self.drawn()",
            replacement: "        let _ = (sealer, parts);\n        self.drawn()",
        }],
        found_by: &[SHARES_DURABLE_COPIES.tests(&[TWO_THINGS])],
    },
    Leak {
        name: "s3oram-names-of-attempts-are-not-mixed-in",
        shows: "to one server, that nothing is moved in an eviction, if an attempt of another \
                copy of the client has failed",
        edits: &[Edit {
            file: COINS,
            find: "[tree as u64, at.evictions, attempt].map(u64::to_le_bytes)",
            replacement: "[0 & (tree as u64 | at.evictions | attempt)].map(u64::to_le_bytes)",
        }],
        found_by: &[SHARES_DURABLE_COPIES.tests(&[TWO_SERVERS])],
    },
    Leak {
        name: "s3oram-turns-of-matrices-follow-from-what-was-asked",
        shows: "to one server, what is moved in an eviction, if another copy of the client did \
                not ask for what servers had done",
        edits: &[Edit {
            file: EVICT,
            find: "known.client.go_to_turn(eviction_turn(known.accesses()));",
            replacement: "let _ = eviction_turn(known.accesses());",
        }],
        found_by: &[SHARES_DURABLE_COPIES.tests(&[TWO_THINGS])],
    },
    Leak {
        name: "s3oram-checkpoints-draw-no-coins",
        shows: "what is moved in evictions, to an attacker who has read the memory of the client \
                once, for as long as it runs",
        edits: &[Edit {
            file: COINS,
            find: "if let Some(era) = &mut self.0 {\n            era",
            replacement: "if let Some(era) = &mut self.0 {
            return;
            #[allow(unreachable_code)]
            era",
        }],
        found_by: &[SHARES_DURABLE_COPIES.tests(&[SAME_MATRICES])],
    },
    Leak {
        name: "s3oram-checkpoints-forget-the-coins-before",
        shows: "whether copies of a client that were apart move the same, if their systems give \
                them the same coins",
        edits: &[Edit {
            file: COINS,
            find: "era.fill_bytes(before);",
            replacement: "let _ = (era, &before);",
        }],
        found_by: &[SHARES_DURABLE_COPIES.tests(&[SAME_MATRICES])],
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
    Leak {
        name: "s3oram-servers-work-for-ever",
        shows: "nothing, and lets one server hold each access for as long as it likes",
        edits: &[Edit {
            file: "store/src/remote/desk.rs",
            find: "if since.after(works_within).left().is_some() {",
            replacement: "if since.after(works_within).left().is_some() || true {",
        }],
        found_by: &[STORE_REMOTE_SHARED.tests(&[WORKS])],
    },
    Leak {
        name: "s3oram-selects-are-waited-for-as-evictions",
        shows: "nothing, and lets one server hold each access for 20 minutes",
        edits: &[Edit {
            file: "shares/src/durable/servers.rs",
            find: "matches!(request, Request::Evict { .. } |",
            replacement: "matches!(request, Request::Evict { .. } | Request::Select { .. } |",
        }],
        found_by: &[SHARES_DURABLE_TRUST.tests(&[PATIENCE])],
    },
    Leak {
        name: "s3oram-attempts-are-used-up",
        shows: "nothing, and lets one server end all evictions for good by one number",
        edits: &[Edit {
            file: EVICT,
            find: "Ok(_) if epoch.attempt > attempt_max => {",
            replacement: "Ok(_) if epoch.attempt > attempt_max && attempt_max == 0 => {",
        }],
        found_by: &[SHARES_DURABLE_TRUST.tests(&[ATTEMPTS])],
    },
    Leak {
        name: "s3oram-a-later-attempt-silences-a-server",
        shows: "nothing, and keeps a server that has lied once from all evictions to come",
        edits: &[Edit {
            file: "shares/src/host/mailbox.rs",
            find: "if attempt != begun && attempt < begun.max(own.attempt) {",
            replacement: "if attempt < begun.max(own.attempt) {",
        }],
        found_by: &[SHARES_MAILBOX.tests(&[LATER])],
    },
    Leak {
        name: "s3oram-servers-say-who-has-the-volume",
        shows: "nothing, and lets one of five servers end a volume in use, which goes on without one",
        edits: &[Edit {
            file: MESSAGES,
            find: "let kind = *KINDS.get(usize::from(fields.u8()?)).ok_or_else(strange)?;",
            replacement: "let kind = match fields.u8()? {
                    5 => StoreErrorKind::Fenced,
                    kind => *KINDS.get(usize::from(kind)).ok_or_else(strange)?,
                };",
        }],
        found_by: &[SHARES_MESSAGES.tests(&[REFUSALS])],
    },
    Leak {
        name: "s3oram-servers-tell-of-what-a-failed-sync-has-lost",
        shows: "nothing, and loses shares with the next power loss of a server that was believed",
        edits: &[Edit {
            file: "shares/src/host/files.rs",
            find: "self.root_after(at.evictions).write(last, &block)?;",
            replacement: "let _ = block;",
        }],
        found_by: &[SHARES_HOST_SYNCS.tests(&[LEFT])],
    },
    Leak {
        name: "s3oram-servers-go-on-after-leaves-were-not-synced",
        shows: "nothing, and loses shares with the next power loss of a server that was believed",
        edits: &[Edit {
            file: "shares/src/host/files.rs",
            find: "self.is_doubtful |= synced.is_err();",
            replacement: "self.is_doubtful |= synced.is_err() && file != File::Leaves;",
        }],
        found_by: &[SHARES_HOST_SYNCS.tests(&[FAILED])],
    },
    Leak {
        name: "s3oram-rescues-pass-over-servers-that-are-set-back",
        shows: "nothing, and hides from whoever rescues a volume that a server shows an older one",
        edits: &[Edit {
            file: "shares/src/durable/agreed.rs",
            find: "Ok(Ok(at)) => why(at).why().map(elsewhere),",
            replacement: "Ok(Ok(at)) => why(at).why().map(elsewhere).filter(|_| false),",
        }],
        found_by: &[SHARES_DURABLE.tests(&[RESCUED])],
    },
    Leak {
        name: "s3oram-servers-are-looked-at-when-it-is-too-late",
        shows: "that an opening was begun which fails, in records and in the client's directory",
        edits: &[Edit {
            file: "volume/src/volume/opening.rs",
            find: "        live.array.check_storage()?;\n        let announced = ledger::announce(&mut *dir, &keys.anchor, &known, &shown, &mut live)?;",
            replacement: "        let announced = ledger::announce(&mut *dir, &keys.anchor, &known, &shown, &mut live)?;\n        live.array.check_storage()?;",
        }],
        found_by: &[VOLUME_S3ORAM.tests(&[LOOKED])],
    },
    Leak {
        name: "s3oram-servers-that-answered-wrong-deal",
        shows: "nothing, and makes wrong shares of one server wrong blocks on all",
        edits: &[Edit {
            file: "shares/src/durable/trust.rs",
            find: "numbers.filter(|(_, is_wrong)| !**is_wrong)",
            replacement: "numbers.filter(|(_, is_wrong)| !**is_wrong || true)",
        }],
        found_by: &[SHARES_DURABLE_DEALERS.tests(&[DEALERS, LOSSES])],
    },
    Leak {
        name: "s3oram-wrong-servers-are-forgotten-in-a-crash",
        shows: "nothing, and makes wrong shares of one server wrong blocks on all after a crash",
        edits: &[Edit {
            file: "shares/src/durable/trust.rs",
            find: "if self.is_wrong[server] && !*is_listed {",
            replacement: "if self.is_wrong[server] && !*is_listed && self.answers[server] > 9 {",
        }],
        found_by: &[SHARES_DURABLE_DEALERS.tests(&[BEGUN])],
    },
    Leak {
        name: "s3oram-servers-deal-what-their-disk-has-spoilt",
        shows: "nothing, and makes damage on one server damage on all",
        edits: &[Edit {
            file: "shares/src/host/evict.rs",
            find: "Some(child) => child.read_checked(self.part).map_err(unusable)?,",
            replacement: "Some(child) => child.read_part(self.part).map_err(unusable)?,",
        }],
        found_by: &[SHARES_HOST_DAMAGE.tests(&[SPOILT])],
    },
    Leak {
        name: "s3oram-damage-that-is-copied-gets-a-right-checksum",
        shows: "nothing, and makes damage on one server damage on all",
        edits: &[Edit {
            file: "shares/src/host/evict.rs",
            find: "let sums = sums_of_root.take();",
            replacement: "let sums = sums_of_root.take().filter(|_| false);",
        }],
        found_by: &[SHARES_HOST_DAMAGE.tests(&["damage_that_is_copied_is_found_when_it_is_dealt"])],
    },
    Leak {
        name: "s3oram-server-that-lacks-a-block-deals",
        shows: "nothing, and loses the block on all servers",
        edits: &[Edit {
            file: "shares/src/host/mod.rs",
            find: "files.check_is(Point { evictions: number, \
                   written: files.setup.tree.accesses() })?;",
            replacement: "let _ = files.check_is(Point { evictions: number, \
                          written: files.setup.tree.accesses() });",
        }],
        found_by: &[SHARES_HOST_DAMAGE.tests(&["a_server_that_lacks_a_block_does_not_deal"])],
    },
    Leak {
        name: "s3oram-goes-on-after-tampering-without-a-word",
        shows: "a server that deals wrong, again and again, which accesses are for blocks",
        edits: &[Edit {
            file: "volume/src/volume/opening.rs",
            find: "if tampering::is_noted(&*ledger.dir)? && \
                   live.array.store_mut().servers().is_some() {",
            replacement: "if false {",
        }],
        found_by: &[VOLUME_S3ORAM.tests(&[UNDONE])],
    },
];
