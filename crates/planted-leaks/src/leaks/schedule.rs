//! Leaks of disks at a fixed rate.

use super::{Edit, Leak};
use crate::targets::{VOLUME_PADDING, VOLUME_SCHEDULE};

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "schedule-dummies-show-the-leaf-of-a-block",
        shows: "which accesses are dummies: the paths of others are shown again",
        edits: &[Edit {
            file: "core/src/durable/rotating/positions.rs",
            find: "return Ok(Move::of_nothing(self.draw(coins)));",
            replacement: "let leaf = match self.get(coins.next_u64() % self.table().capacity()) {
                    Ok(Ok(Some(mapping))) => mapping.leaf,
                    _ => self.draw(coins),
                };
                return Ok(Move::of_nothing(leaf));",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["leaves_are_uniform_whoever_asks"])],
    },
    Leak {
        name: "schedule-dummies-are-announced-and-not-read",
        shows: "which accesses are dummies",
        edits: &[Edit {
            file: "core/src/durable/rotating/moves.rs",
            find: "self.backend.access_nothing(from)?;",
            replacement: "self.backend.announce(0, from);",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-dummies-leave-out-the-bucket-of-the-leaf",
        shows: "which accesses are dummies",
        edits: &[Edit {
            file: "core/src/scheme/rotating/io.rs",
            find: "        self.io.aim(g, leaf);
        let Self { io, store } = self;
        let RotatingIo {",
            replacement: "        self.io.aim(g, leaf);
        let Self { io, store } = self;
        let depth = io.versions.len();
        if wanted.is_none() && depth > 0 {
            for last in [2 * depth - 1, depth - 1] {
                io.pieces.remove(last);
                io.piece_bytes.remove(last);
            }
            io.versions.pop();
        }
        let RotatingIo {",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-dummies-are-not-announced",
        shows: "which accesses are dummies",
        edits: &[Edit {
            file: "core/src/durable/rotating/moves.rs",
            find: "self.backend.announce(ahead, step.from);",
            replacement: "if !step.is_of_nothing() {
                    self.backend.announce(ahead, step.from);
                }",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-idle-tick-makes-no-access",
        shows: "when nobody asks for anything",
        edits: &[Edit {
            file: "volume/src/disk/scheduled.rs",
            find: "        self.reads_first = !self.reads_first;
        match",
            replacement: "        if self.blocks.cache.dirty_blocks() + self.unanswered() == 0 {
            pace.ticked();
            return Ok(());
        }
        match",
        }],
        found_by: &[VOLUME_SCHEDULE
            .tests(&["all_clients_look_alike", "closing_looks_alike_whatever_is_dirty"])],
    },
    Leak {
        name: "schedule-reads-come-in-a-batch-of-their-own",
        shows: "how many of a tick's accesses are reads",
        edits: &[Edit {
            file: "volume/src/disk/scheduled.rs",
            find: "self.blocks.exchange_exactly(reads, shares.write_backs, &positions, self.accesses)",
            replacement: "self.blocks.exchange_exactly(reads, 0, &positions, reads.len())?;
        let rest = self.accesses - reads.len();
        self.blocks.exchange_exactly(&[], shares.write_backs, &positions, rest)",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-cache-hit-skips-an-access",
        shows: "how many requests the cache answers",
        edits: &[
            Edit {
                file: "volume/src/disk/scheduled.rs",
                find: "            self.wait_for_storage.push_back((self.blocks.cache.mark(), pending));
        } else {",
                replacement: "            self.wait_for_storage.push_back((self.blocks.cache.mark(), pending));
        } else {
            crate::PLANTED_NOTE.set(crate::PLANTED_NOTE.get() + 1);",
            },
            Edit {
                file: "volume/src/disk/scheduled.rs",
                find: "self.blocks.exchange_exactly(reads, shares.write_backs, &positions, self.accesses)",
                replacement: "let used = shares.reads + shares.write_backs;
        let saved = crate::PLANTED_NOTE.take().min(self.accesses - used);
        let made = self.accesses - saved;
        self.blocks.exchange_exactly(reads, shares.write_backs, &positions, made)",
            },
        ],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-write-backs-do-not-wait-for-the-tick",
        shows: "when many blocks are dirty",
        edits: &[Edit {
            file: "volume/src/disk/scheduled.rs",
            find: "self.blocks.cache.shrink(self.cache_blocks_max);",
            replacement: "if self.blocks.cache.dirty_blocks() >= self.dirty_blocks_max {
            self.blocks.exchange(&[], 1)?;
        }
        self.blocks.cache.shrink(self.cache_blocks_max);",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-flush-flushes-storage",
        shows: "when the owner flushes",
        edits: &[
            Edit {
                file: "volume/src/volume.rs",
                find: "self.unless_broken(|volume| Ok(volume.ledger.log.sync()?))",
                replacement: "self.unless_broken(|volume| {
            volume.live.array.flush()?;
            Ok(volume.ledger.log.sync()?)
        })",
            },
            Edit {
                file: "volume/src/disk/scheduled.rs",
                find: "self.wait_for_storage.push_back(",
                replacement: "let _ = self.blocks.volume.flush();
            self.wait_for_storage.push_back(",
            },
        ],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-closing-takes-as-long-as-it-must",
        shows: "how much is dirty when the disk is closed",
        edits: &[Edit {
            file: "volume/src/disk/scheduled.rs",
            find: "        self.dirty_blocks_max.div_ceil(at_a_tick)",
            replacement: "        self.blocks.cache.dirty_blocks().div_ceil(at_a_tick)",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["closing_looks_alike_whatever_is_dirty"])],
    },
    Leak {
        name: "schedule-trims-do-not-wait-for-a-checkpoint",
        shows: "that there were many trims: they cause a checkpoint",
        edits: &[Edit {
            file: "volume/src/disk/pending.rs",
            find: "if !has_room || ",
            replacement: "if has_room && ",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-trims-fetch-what-they-need",
        shows: "which trims cover a part of what a block of the position map is about",
        edits: &[Edit {
            file: "volume/src/disk/pending.rs",
            find: "if !has_room || !blocks.volume.needs_to_forget(start..end)?.is_empty() {",
            replacement: "if !has_room {",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-fetches-are-not-counted",
        shows: "how many blocks of the position map a tick fetches: it makes so many accesses more",
        edits: &[Edit {
            file: "volume/src/volume.rs",
            find: "fetches_left -= wanted.len() - ops.len();",
            replacement: "fetches_left -= wanted.len() - ops.len();
                left += wanted.len() - ops.len();",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-short-windows-where-the-stash-fills",
        shows: "how full the stash is",
        edits: &[Edit {
            file: "core/src/durable/rotating/array.rs",
            find: "        self.window_accesses_max()",
            replacement: "        match self.backend.stash().blocks() {
            0..=3 => self.window_accesses_max(),
            _ => 1,
        }",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-eviction-ahead-where-the-stash-fills",
        shows: "how full the stash is",
        edits: &[Edit {
            file: "core/src/durable/rotating/array.rs",
            find: "Ok(()) => false,",
            replacement: "Ok(()) => {
                self.backend.stash().blocks() > 3 && self.backend.evictions_left() > 1
            }",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "schedule-log-is-as-long-as-what-is-written",
        shows: "how many accesses of a tick write: their log takes longer",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "let bytes = plan.accesses() * self.block_bytes - written;",
            replacement: "let bytes = written.min(0);",
        }],
        found_by: &[VOLUME_PADDING.tests(&["the_clients_directory_takes_as_long_whoever_asks"])],
    },
    Leak {
        name: "schedule-padding-is-appended-by-itself",
        shows: "in which ticks filler is written ahead, which follows from how long the last append was",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "Ok(self.log.append_both(put, |out| record::put_padding(out, bytes as u32))?)",
            replacement: "self.log.append(put)?;
        Ok(self.log.append(|out| record::put_padding(out, bytes as u32))?)",
        }],
        found_by: &[VOLUME_PADDING.tests(&["the_clients_directory_takes_as_long_whoever_asks"])],
    },
    Leak {
        name: "schedule-checkpoint-is-as-long-as-the-stash-is-full",
        shows: "how many blocks are on the client, and so whether the disk was busy",
        edits: &[Edit {
            file: "core/src/durable/rotating/state.rs",
            find: "for _ in blocks..self.config.client_blocks_max() {",
            replacement: "for _ in self.config.client_blocks_max()..blocks {",
        }],
        found_by: &[VOLUME_PADDING.tests(&["the_clients_directory_takes_as_long_whoever_asks"])],
    },
    Leak {
        name: "schedule-checkpoint-is-as-long-as-slots-were-taken",
        shows: "how many accesses since the last rounds were to blocks that there are",
        edits: &[Edit {
            file: "core/src/durable/rotating/state.rs",
            find: "let missing = fitting.saturating_sub(taken.len());",
            replacement: "let missing = fitting.saturating_sub(fitting.max(taken.len()));",
        }],
        found_by: &[VOLUME_PADDING.tests(&["the_clients_directory_takes_as_long_whoever_asks"])],
    },
    Leak {
        name: "schedule-checkpoint-is-as-long-as-there-are-positions",
        shows: "what part of the disk was ever written",
        edits: &[Edit {
            file: "core/src/durable/rotating/state.rs",
            find: "if is_padded || !map.is_unmapped(range.clone()) {",
            replacement: "if !map.is_unmapped(range.clone()) {",
        }],
        found_by: &[VOLUME_PADDING.tests(&["the_clients_directory_takes_as_long_whoever_asks"])],
    },
    Leak {
        name: "schedule-new-state-file-where-much-came-in",
        shows: "how much was trimmed and written since the last one: a checkpoint with all of the state takes longer",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "self.opening.lengths == Lengths::Constant
            || self.log.bytes()",
            replacement: "self.log.bytes()",
        }],
        found_by: &[VOLUME_PADDING.tests(&["the_clients_directory_takes_as_long_whoever_asks"])],
    },
    Leak {
        name: "schedule-opening-takes-as-long-as-the-state",
        shows: "whether the disk was busy when it was closed: the snapshot of the next opening comes between two trips",
        edits: &[Edit {
            file: "volume/src/ledger.rs",
            find: "let state = (&*live.array, whole(opening.lengths));",
            replacement: "let state = (&*live.array, Save::Whole);",
        }],
        found_by: &[VOLUME_PADDING.tests(&["closing_and_opening_take_as_long_whoever_asked"])],
    },
];
