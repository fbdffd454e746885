//! Leaks of volumes: of the commit protocol, and of what makes a trip.

use super::{Edit, Leak};
use crate::targets::{VOLUME_OVERLAP, VOLUME_PRIVACY, VOLUME_READS, VOLUME_SCHEDULE, VOLUME_VIEW};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "volume-fetches-are-not-synced",
        shows: "after a power loss, that a block of the position map is fetched again: on one leaf",
        edits: &[Edit {
            file: "volume/src/volume/window.rs",
            find: "self.carry_out(&wanted, &mut nothing_to_do(wanted.len()))",
            replacement: "let plan = self.live.array.plan(&wanted, &[], &mut self.live.coins)?;
        let none = wanted.iter().map(|_| None);
        self.ledger.log.append(|out| record::put_accesses(out, &plan, none))?;
        Ok(self.live.array.carry_out(&plan, &mut nothing_to_do(wanted.len()))?)",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["fetches::a_leaf_that_one_has_shown_is_never_shown_again_after_a_crash"])],
    },
    Leak {
        name: "volume-storage-is-flushed-before-a-fetch",
        shows: "which accesses fetch blocks of the position map",
        edits: &[Edit {
            file: "volume/src/volume/window.rs",
            find: "let wanted: Vec<_> = needed",
            replacement: "self.live.array.flush()?;
        let wanted: Vec<_> = needed",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["fetches::workloads_that_need_more_of_them_show_more_of_the_same_trips"])],
    },
    Leak {
        name: "volume-fetches-are-announced",
        shows: "which accesses fetch blocks of the position map",
        edits: &[Edit {
            file: "core/src/durable/rotating/array.rs",
            find: "Ok(plan_of(&self.positions.draw_moves(&planned, blocks, &mut coins)?))",
            replacement: "let moves = self.positions.draw_moves(&planned, blocks, &mut coins)?;
        if wanted.iter().any(|want| matches!(want, Want::Position(_))) {
            self.backend.announce(0, moves[0].from);
        }
        Ok(plan_of(&moves))",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["fetches::workloads_that_need_more_of_them_show_more_of_the_same_trips"])],
    },
    Leak {
        name: "volume-log-is-synced-after-the-read",
        shows: "after a power loss, that a block is asked for again: on one leaf",
        edits: &[Edit {
            file: "volume/src/volume/window.rs",
            find: "self.sync_moves()?;
        self.live.array.carry_out(&plan, ops)?;",
            replacement: "self.live.array.carry_out(&plan, ops)?;
        self.sync_moves()?;",
        }],
        found_by: &[
            VOLUME_VIEW.tests(&["a_leaf_is_shown_twice_only_where_a_sequence_is_repeated"])
        ],
    },
    Leak {
        name: "volume-begun-reads-do-not-wait-for-the-log",
        shows: "after a power loss, that a block is asked for again: on one leaf",
        edits: &[Edit {
            file: "volume/src/volume/reads.rs",
            find: "volume.ledger.log.sync_up_to(*records)?;",
            replacement: "volume.ledger.log.sync_up_to(records.saturating_sub(1))?;",
        }],
        found_by: &[VOLUME_VIEW.tests(&[
            "a_leaf_is_shown_twice_only_where_a_sequence_is_repeated_if_reads_overlap",
        ])],
    },
    Leak {
        name: "volume-begun-reads-are-announced-before-the-log",
        shows: "after a power loss, that a block is asked for again: on a leaf that was announced",
        edits: &[Edit {
            file: "volume/src/volume/reads.rs",
            find: "SyncMoves::BeforeReads => reads.records <= synced,",
            replacement: "SyncMoves::BeforeReads => reads.records <= synced + 1,",
        }],
        found_by: &[VOLUME_VIEW.tests(&["no_leaf_that_was_announced_is_forgotten"])],
    },
    Leak {
        name: "volume-a-sync-makes-durable-what-came-after-it",
        shows: "after a power loss, that a block is asked for again: on one leaf",
        edits: &[Edit {
            file: "volume/src/state/file.rs",
            find: "self.synced = coming;",
            replacement: "self.synced = self.records.max(coming);",
        }],
        found_by: &[VOLUME_VIEW.tests(&[
            "a_leaf_is_shown_twice_only_where_a_sequence_is_repeated_if_reads_overlap",
        ])],
    },
    Leak {
        name: "volume-begun-reads-go-on-after-a-failed-sync",
        shows: "after a power loss, that a block is asked for again: on one leaf",
        edits: &[Edit {
            file: "volume/src/volume/reads.rs",
            find: "volume.ledger.log.sync_up_to(*records)?;
                volume.ledger.log.keep_syncing()?;",
            replacement: "let _ = volume.ledger.log.sync_up_to(*records);
                let _ = volume.ledger.log.keep_syncing();",
        }],
        found_by: &[VOLUME_OVERLAP
            .tests(&["what_is_done_depends_on_counts_alone_and_everybody_is_answered"])],
    },
    Leak {
        name: "volume-reads-are-begun-as-the-stash-is",
        shows: "whether the stash was over its bound for a moment, between two evictions",
        edits: &[Edit {
            file: "volume/src/volume/window.rs",
            find: "let must_evict = must_evict || self.owes_eviction;",
            replacement: "self.owes_eviction = false;",
        }],
        found_by: &[
            VOLUME_READS.tests(&["reads_are_put_off_only_with_an_eviction_ahead_of_its_time"])
        ],
    },
    Leak {
        name: "volume-the-next-batch-is-begun-when-nothing-is-dirty",
        shows: "whether anything was written since the last flush",
        edits: &[Edit {
            file: "volume/src/disk/worker.rs",
            find: "if !self.is_closing && self.wait_for_flush.is_empty() {",
            replacement: "if !self.is_closing && self.blocks.cache.dirty_blocks() == 0 {",
        }],
        found_by: &[VOLUME_OVERLAP
            .tests(&["what_is_done_depends_on_counts_alone_and_everybody_is_answered"])],
    },
    Leak {
        name: "volume-write-backs-overtake-reads",
        shows: "whether anything was written since the last flush",
        edits: &[Edit {
            file: "volume/src/disk/worker.rs",
            find: "needed.all(|block| self.blocks.cache.contains(block))",
            replacement: "self.blocks.cache.dirty_blocks() > 0
                || needed.all(|block| self.blocks.cache.contains(block))",
        }],
        found_by: &[VOLUME_OVERLAP
            .tests(&["what_is_done_depends_on_counts_alone_and_everybody_is_answered"])],
    },
    Leak {
        name: "volume-a-sync-under-way-counts-as-over",
        shows: "after a power loss, that a block is asked for again: on one leaf",
        edits: &[Edit {
            file: "volume/src/state/file.rs",
            find: "if self.being_synced.is_some() && self.file.is_sync_over() {
            self.finish_sync()?;
        }",
            replacement: "self.synced = self.being_synced.unwrap_or(self.synced);",
        }],
        found_by: &[VOLUME_VIEW.tests(&[
            "a_leaf_is_shown_twice_only_where_a_sequence_is_repeated_if_reads_overlap",
        ])],
    },
    Leak {
        name: "volume-a-trim-ends-what-was-begun",
        shows: "that the owner trims, while others read",
        edits: &[Edit {
            file: "volume/src/disk/blocks.rs",
            find: "if !self.volume.has_room_to_forget() {
            self.finish_all_windows()?;
        }",
            replacement: "self.finish_all_windows()?;",
        }],
        found_by: &[VOLUME_OVERLAP.tests(&["a_trim_does_not_wait_for_what_was_begun"])],
    },
    Leak {
        name: "volume-a-block-on-its-way-is-read-again",
        shows: "that two who wait ask for one block",
        edits: &[Edit {
            file: "volume/src/disk/worker.rs",
            find: "&& !blocks.is_coming(block)",
            replacement: "",
        }],
        found_by: &[VOLUME_OVERLAP.tests(&["no_block_on_its_way_is_read_twice"])],
    },
    Leak {
        name: "volume-paths-are-announced-when-they-are-planned",
        shows: "after a power loss, that a block is asked for again: on a leaf that was announced",
        edits: &[Edit {
            file: "core/src/durable/rotating/array.rs",
            find: "Ok(plan_of(&self.positions.draw_moves(&planned, blocks, &mut coins)?))",
            replacement: "let moves = self.positions.draw_moves(&planned, blocks, &mut coins)?;
        if planned.is_empty() {
            self.announce(&moves);
        }
        Ok(plan_of(&moves))",
        }],
        found_by: &[VOLUME_VIEW.tests(&["no_leaf_that_was_announced_is_forgotten"])],
    },
    Leak {
        name: "volume-dummies-are-not-synced",
        shows: "after a power loss, which accesses were dummies: they are not made again",
        edits: &[Edit {
            file: "volume/src/volume/window.rs",
            find: "self.sync_moves()?;
        self.live.array.carry_out(&plan, ops)?;",
            replacement: "if !wanted.iter().all(|want| *want == Want::Nothing) {
            self.sync_moves()?;
        }
        self.live.array.carry_out(&plan, ops)?;",
        }],
        found_by: &[VOLUME_PRIVACY.tests(&[
            "scheduled_crash::a_recovery_repeats_the_accesses_of_ticks_whoever_asked",
        ])],
    },
    Leak {
        name: "volume-checkpoint-when-the-log-is-long",
        shows: "how many accesses write: the log grows by a block for each",
        edits: &[
            Edit {
                file: "volume/src/volume/window.rs",
                find: "if accesses < least ||",
                replacement: "let is_long = self.ledger.has_many_forgets(self.options.state_file_bytes_max);
            if is_long || accesses < least ||",
            },
            Edit {
                file: "volume/src/ledger.rs",
                find: "self.forgets_bytes > bytes_max",
                replacement: "self.log.bytes() > 2 * self.snapshot_bytes + bytes_max",
            },
        ],
        found_by: &[
            VOLUME_VIEW.tests(&["two_workloads_of_one_length_look_alike_across_crashes"]),
            VOLUME_SCHEDULE.tests(&["all_clients_look_alike"]),
        ],
    },
    Leak {
        name: "volume-anchor-before-the-log",
        shows: "a checkpoint that the client may forget: its accesses come again, on the same leaves",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "        if self.begins_new_file(bytes_max) {",
            replacement: "        anchor::write(live.array.store_mut(), &self.keys.anchor, &self.checkpoint)?;
        if self.begins_new_file(bytes_max) {",
        }],
        found_by: &[VOLUME_PRIVACY.tests(&[
            "apart::storage_never_knows_more_than_a_directory_that_lost_its_power",
        ])],
    },
    Leak {
        name: "volume-flushes-storage",
        shows: "when the owner flushes",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "self.unless_broken(|volume| Ok(volume.ledger.log.sync()?))",
            replacement: "self.unless_broken(|volume| {
            volume.ledger.log.sync()?;
            Ok(volume.live.array.flush()?)
        })",
        }],
        found_by: &[VOLUME_PRIVACY.tests(&["requests::flushes_of_a_volume_are_not_seen"])],
    },
    Leak {
        name: "volume-trim-makes-an-access",
        shows: "that there was a trim",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "volume.ledger.forget(&range)?;",
            replacement: "volume.make_room(1)?;
            volume.carry_out(&[Want::Nothing], &mut nothing_to_do(1))?;
            volume.ledger.forget(&range)?;",
        }],
        found_by: &[
            VOLUME_PRIVACY.tests(&["requests::trims_of_a_volume_are_not_seen"]),
            VOLUME_SCHEDULE.tests(&["all_clients_look_alike"]),
        ],
    },
    Leak {
        name: "volume-never-written-blocks-read-nothing",
        shows: "whether any block was ever written",
        edits: &[Edit {
            file: "volume/src/volume/window.rs",
            find: "if !self.finds_on_client(request.address)? {",
            replacement: "if let Op::Read(block) = &mut request.op
            && !self.live.array.may_hold_contents()
        {
            block.fill(0);
            return Ok(true);
        }
        if !self.finds_on_client(request.address)? {",
        }],
        found_by: &[
            VOLUME_VIEW.tests(&["two_workloads_of_one_length_look_alike_across_crashes"]),
            VOLUME_PRIVACY
                .tests(&["requests::batches_look_alike_whether_their_blocks_were_ever_written"]),
        ],
    },
    Leak {
        name: "volume-announces-only-blocks-that-are-alive",
        shows: "which blocks of a batch were ever written",
        edits: &[Edit {
            file: "core/src/durable/rotating/moves.rs",
            find: "self.backend.announce(ahead, step.from);",
            replacement: "let mapping = self.positions.get(step.address).ok().and_then(Result::ok).flatten();
                if step.is_of_nothing() || mapping.is_some_and(|mapping| mapping.live) {
                    self.backend.announce(ahead, step.from);
                }",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["requests::batches_look_alike_whether_their_blocks_were_ever_written"])],
    },
    Leak {
        name: "volume-closing-empties-the-stash",
        shows: "how full the stash is",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "            volume.ledger.checkpoint(&mut volume.live, IsClean(true), bytes_max)?;",
            replacement: "            let mut sections = 0;
            let save = oblivio_core::durable::Save::Changes;
            volume.live.array.save(save, &mut |_| sections += 1);
            if sections > 2 {
                volume.checkpoint()?;
                volume.live.array.evict()?;
            }
            volume.ledger.checkpoint(&mut volume.live, IsClean(true), bytes_max)?;",
        }],
        found_by: &[VOLUME_PRIVACY.tests(&["requests::closings_look_alike_whatever_is_on_the_client"])],
    },
    Leak {
        name: "disk-zeros-are-trimmed",
        shows: "which writes are of zeros: they make no access",
        edits: &[Edit {
            file: "volume/src/disk/pending.rs",
            find: "if part.is_whole(*block_bytes) {",
            replacement: "if part.is_whole(*block_bytes) && bytes.iter().all(|byte| *byte == 0) {
                cache.remove_range(part.block..part.block + 1);
                blocks.volume.forget(part.block..part.block + 1).expect(\"a whole volume\");
            } else if part.is_whole(*block_bytes) {",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["requests::writes_to_a_disk_look_alike_whatever_they_write"])],
    },
    Leak {
        name: "disk-unchanged-blocks-are-not-written-back",
        shows: "which writes change nothing: they make no access",
        edits: &[Edit {
            file: "volume/src/disk/pending.rs",
            find: "if part.is_whole(*block_bytes) {",
            replacement: "if cache.get(part.block).is_some_and(|block| *block == *bytes) {
            } else if part.is_whole(*block_bytes) {",
        }],
        found_by: &[VOLUME_PRIVACY
            .tests(&["requests::writes_to_a_disk_look_alike_whatever_they_write"])],
    },
    Leak {
        name: "disk-without-a-cache-goes-through-one",
        shows: "whether requests that wait together read or write: writes come one by one",
        edits: &[Edit {
            file: "volume/src/disk/worker.rs",
            find: "if self.cache_blocks_max == 0 {",
            replacement: "if self.cache_blocks_max == usize::MAX {",
        }],
        found_by: &[VOLUME_PRIVACY.tests(&["uncached::reads_and_writes_make_equal_batches"])],
    },
    Leak {
        name: "disk-without-a-cache-reads-and-writes-apart",
        shows: "when reads follow writes among requests that wait together",
        edits: &[Edit {
            file: "volume/src/disk/uncached.rs",
            find: "self.blocks.len() < WINDOW_ACCESSES_MAX || self.places.contains_key(&block)",
            replacement: "let last = self.steps.last();
                let is_alike = last.is_none_or(|(_, last)| last.new.is_some() == step.new.is_some());
                is_alike && self.blocks.len() < WINDOW_ACCESSES_MAX || self.places.contains_key(&block)",
        }],
        found_by: &[VOLUME_PRIVACY.tests(&["uncached::reads_and_writes_make_equal_batches"])],
    },
    Leak {
        name: "disk-without-a-cache-leaves-out-writes-that-are-trimmed",
        shows: "whether what is written is trimmed at once",
        edits: &[Edit {
            file: "volume/src/disk/uncached.rs",
            find: "let steps_of = |op| steps(op, block_bytes, &zeros);",
            replacement: "let is_trimmed = ops.iter().any(|op| matches!(op, DiskOp::Trim { .. }));
    let steps_of = |op| steps(if is_trimmed { &DiskOp::Flush } else { op }, block_bytes, &zeros);",
        }],
        found_by: &[VOLUME_PRIVACY.tests(&["uncached::a_write_that_is_trimmed_at_once_makes_its_access"])],
    },
];
