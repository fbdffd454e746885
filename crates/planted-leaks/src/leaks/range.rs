//! Leaks of ranges: what storage learns beside their classes.

use super::{Edit, Leak};
use crate::targets::{CORE_RANGE, VOLUME_PRIVACY, VOLUME_RANGE, VOLUME_SCHEDULE, VOLUME_VIEW};

const ACCESS: &str = "core/src/durable/range/access.rs";
const ARRAY: &str = "core/src/durable/range/array.rs";
const STORED: &str = "core/src/scheme/rotating/stored.rs";
const BLOCKS: &str = "volume/src/disk/blocks.rs";
const PENDING: &str = "volume/src/disk/pending.rs";
const SCHEDULED: &str = "volume/src/disk/scheduled.rs";
const UNCACHED: &str = "volume/src/disk/uncached.rs";
const DISK: &str = "volume/src/disk/mod.rs";
const WORKER: &str = "volume/src/disk/worker.rs";
const RANGES: &str = "volume/src/volume/ranges.rs";

const VIEW: &str = "what_storage_sees_follows_from_the_classes_alone";
const PATHS: &str = "a_range_is_read_from_a_fresh_path_on_and_evictions_follow_from_their_count";
const FAILURES: &str = "whether_and_when_an_access_fails_does_not_depend_on_what_it_is_for";
const CLASSES: &str = "a_read_that_covers_a_range_reads_it_at_once_whatever_is_at_hand_of_it";
const FIXED: &str = "all_accesses_are_to_ranges_of_one_class_whatever_is_asked";
const AT_A_RATE: &str = "at_a_fixed_rate_all_accesses_are_to_ranges_of_one_class";
const EXACT: &str = "a_request_takes_two_ranges_that_are_as_long_wherever_it_lies";
const AT_HAND: &str = "what_is_at_hand_of_a_request_does_not_change_what_it_takes";
const WRITES: &str = "a_range_is_written_at_once_if_all_of_it_is_dirty";
const ANNOUNCED: &str = "what_is_announced_is_what_is_read";
const FLOW: &str = "reads_that_are_begun_look_alike";

pub(super) const LEAKS: &[Leak] = &[
    Leak {
        name: "range-moves-nowhere",
        shows: "that the same range is asked for again: its path is shown twice",
        edits: &[
            Edit {
                file: ARRAY,
                find: "let fresh = self.subs[at].draw(&mut coins);",
                replacement: "let fresh = match *want {
                Want::Range { first, class } => self.subs[at].positions.of_range(first >> class),
                _ => self.subs[at].draw(&mut coins),
            };",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[PATHS])],
    },
    Leak {
        name: "range-moves-to-half-of-the-leaves",
        shows: "nothing at once; but what was moved is told from what was not",
        edits: &[
            Edit {
                file: ARRAY,
                find: "let fresh = self.subs[at].draw(&mut coins);",
                replacement: "let mut fresh = self.subs[at].draw(&mut coins);
            fresh.0 &= !1;",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[PATHS])],
    },
    Leak {
        name: "range-on-the-client-reads-nothing",
        shows: "that all blocks of a range are on the client, or none was ever written",
        edits: &[
            Edit {
                file: ACCESS,
                find: "        self.read_range(at, step)?;",
                replacement: "        let blocks = step.first..step.first.saturating_add(step.blocks() as u64);
        if self.held.within(blocks.clone()).len() < step.blocks() && !step.is_of_nothing() {
            self.read_range(at, step)?;
        }",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[VIEW, PATHS])],
    },
    Leak {
        name: "range-reads-paths-of-what-is-alive",
        shows: "how many blocks of a range have contents",
        edits: &[
            Edit {
                file: ACCESS,
                find: "        let run = Run { first: step.from, paths: step.blocks() as u64 };
        let wanted",
                replacement: "        let alive = (step.first..).take(step.blocks()).filter(|it| live.contains(*it)).count();
        let run = Run { first: step.from, paths: (alive as u64).max(1) };
        let wanted",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[VIEW])],
    },
    Leak {
        name: "range-evicts-for-what-is-alive",
        shows: "how many blocks of a range have contents: so many paths are evicted",
        edits: &[
            Edit {
                file: ACCESS,
                find: "        self.finish(step.blocks())",
                replacement: "        let alive = (step.first..).take(step.blocks()).filter(|it| self.live.contains(*it)).count();
        self.finish(alive.max(1))",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[VIEW, PATHS])],
    },
    Leak {
        name: "range-reads-evict-nothing",
        shows: "which accesses read",
        edits: &[
            Edit {
                file: ACCESS,
                find: "            for (address, op) in addresses.zip(ops) {",
                replacement: "            if ops.iter().all(|op| matches!(op, Op::Read(_))) {
                self.blocks_since_eviction = 0;
            }
            for (address, op) in addresses.zip(ops) {",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[VIEW, PATHS])],
    },
    Leak {
        name: "range-evicts-to-its-own-tree-alone-if-it-reads",
        shows: "which accesses read: other trees get no eviction",
        edits: &[
            Edit {
                file: ACCESS,
                find: "(0..self.subs.len()).try_for_each(|at| self.batch_evict(at, evictions))?;",
                replacement: "for at in 0..self.subs.len() {
                if self.subs[at].waiting() > 0 {
                    self.batch_evict(at, evictions)?;
                }
            }",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[VIEW, PATHS])],
    },
    Leak {
        name: "range-announces-what-is-alive",
        shows: "which ranges have contents",
        edits: &[
            Edit {
                file: ACCESS,
                find: "                let Self { subs, store, evictions, .. } = self;
                subs[at].tree.prefetch(store, *evictions, run);",
                replacement: "                let Self { subs, store, evictions, live, .. } = self;
                if (step.first..).take(step.blocks()).any(|it| live.contains(it)) {
                    subs[at].tree.prefetch(store, *evictions, run);
                }",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[FLOW])],
    },
    Leak {
        name: "range-evictions-are-announced-if-something-waits",
        shows: "whether blocks are on the client",
        edits: &[Edit {
            file: ACCESS,
            find: "        if count > 0 {
            let Self { subs, store,",
            replacement: "        if count > 0 && self.held.len() > 0 {
            let Self { subs, store,",
        }],
        found_by: &[VOLUME_RANGE.tests(&[ANNOUNCED])],
    },
    Leak {
        name: "range-stops-where-its-blocks-are",
        shows: "how deep the blocks of a range lie",
        edits: &[Edit {
            file: STORED,
            find: "        trips.into_iter().try_for_each(|versions| {
            self.io.over(store).open_buckets(g, versions, blocks, opened_min, wanted)
        })",
            replacement: "        let mut found = 0;
        for versions in trips {
            if found >= opened_min {
                break;
            }
            let mut counted = |blocks: &mut BlockRoom, address: u64, leaf: Leaf| {
                let place = wanted(blocks, address, leaf);
                found += usize::from(place.is_some());
                place
            };
            self.io.over(store).open_buckets(g, versions, blocks, opened_min, &mut counted)?;
        }
        Ok(())",
        }],
        found_by: &[VOLUME_RANGE.tests(&[VIEW])],
    },
    Leak {
        name: "range-announces-where-it-goes",
        shows: "where a range will be read the next time",
        edits: &[Edit {
            file: ACCESS,
            find: "                let run = Run { first: step.from, paths: step.blocks() as u64 };
                let Self",
            replacement: "                let run = Run { first: step.to, paths: step.blocks() as u64 };
                let Self",
        }],
        found_by: &[VOLUME_RANGE.tests(&[ANNOUNCED])],
    },
    Leak {
        name: "range-fails-where-something-was-missed",
        shows: "whether a changed bucket is on the way to what has contents",
        edits: &[Edit {
            file: ACCESS,
            find: "        tree.read_by_level(store, *evictions, run, room, &mut |room, address, leaf| {",
            replacement: "        if !wanted.clone().any(|address| is_missing(held, address)) {
            return Ok(drop(tree.read_by_level(store, *evictions, run, room, &mut |_, _, _| None)));
        }
        tree.read_by_level(store, *evictions, run, room, &mut |room, address, leaf| {",
        }],
        found_by: &[VOLUME_RANGE.tests(&[FAILURES])],
    },
    Leak {
        name: "range-class-by-what-is-at-hand",
        shows: "what is in the cache: a range of which a part is at hand is read block by block",
        edits: &[
            Edit {
                file: WORKER,
                find: "            if needed.clone().any(is_missing) {",
                replacement: "            let is_in_part = cover.blocks.clone().any(|block| blocks.cache.contains(block));
            if is_in_part && cover.class() > 0 {
                let parts: Vec<_> = cover.blocks.clone().filter(|block| is_missing(*block)).collect();
                missing.extend(parts.into_iter().map(crate::volume::Extent::of_block).map(Cover::whole));
            } else if needed.clone().any(is_missing) {",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[CLASSES])],
    },
    Leak {
        name: "range-class-by-data",
        shows: "which ranges are written with zeros",
        edits: &[
            Edit {
                file: BLOCKS,
                find: "                && extent.blocks().all(|block| self.cache.is_dirty(block))",
                replacement: "                && extent.blocks().all(|block| {
                        self.cache.dirty(block).is_some_and(|data| data.iter().any(|byte| *byte != 0))
                            && self.cache.is_dirty(block)
                    })",
            }
        ],
        found_by: &[VOLUME_RANGE.tests(&[WRITES])],
    },
    Leak {
        name: "range-fixed-writes-blocks",
        shows: "that a single block was written, where all accesses are to be alike",
        edits: &[Edit {
            file: BLOCKS,
            find: "            RangePolicy::Fixed(class) => Cover::whole(Extent::around(block, class)),",
            replacement: "            RangePolicy::Fixed(_) => Cover::whole(self.dirty_range_around(block)),",
        }],
        found_by: &[VOLUME_RANGE.tests(&[FIXED])],
    },
    Leak {
        name: "range-fixed-reads-blocks-of-writes",
        shows: "that a write has brought a part of a block",
        edits: &[Edit {
            file: PENDING,
            find: "let cover = Cover::whole(Extent::around(block, class));",
            replacement: "let cover = Cover::whole(Extent::around(block, if self.is_write { 0 } else { class }));",
        }],
        found_by: &[VOLUME_RANGE.tests(&[FIXED])],
    },
    Leak {
        name: "range-fixed-reads-blocks-that-have-left",
        shows: "that what was at hand of a request was trimmed before its turn",
        edits: &[Edit {
            file: WORKER,
            find: "            && cover.class() > 0",
            replacement: "            && cover.class() > 200",
        }],
        found_by: &[VOLUME_RANGE.tests(&[
            "what_left_the_cache_before_its_turn_is_read_by_ranges_too",
        ])],
    },
    Leak {
        name: "range-reads-blocks-that-have-left",
        shows: "that what was at hand of a request was trimmed before its turn",
        edits: &[Edit {
            file: WORKER,
            find: "            && cover.class() > 0",
            replacement: "            && (cover.class() > 0 && blocks.policy != RangePolicy::Exact)",
        }],
        found_by: &[VOLUME_RANGE.tests(&[
            "what_left_the_cache_before_its_turn_is_read_as_it_was_asked_for",
        ])],
    },
    Leak {
        name: "range-class-by-what-is-left-to-do",
        shows: "that the cache had the beginning of what was asked for, and it was answered already",
        edits: &[Edit {
            file: PENDING,
            find: "self.needs_from(self.looked_at, blocks.block_bytes)",
            replacement: "self.needs_from(self.looked_at.max(self.done), blocks.block_bytes)",
        }],
        found_by: &[VOLUME_RANGE.tests(&[CLASSES])],
    },
    Leak {
        name: "range-fixed-without-a-cache-reads-blocks",
        shows: "which blocks of a range were asked for together",
        edits: &[Edit {
            file: UNCACHED,
            find: "        RangePolicy::Fixed(class @ 1..) => vec![Extent::around(first.address, class)],",
            replacement: "        RangePolicy::Fixed(1..) => return volume.access(&mut batch),",
        }],
        found_by: &[VOLUME_RANGE
            .tests(&["without_a_cache_each_range_of_a_request_is_an_access"])],
    },
    Leak {
        name: "range-fixed-at-a-fixed-rate-is-of-blocks",
        shows: "accesses to blocks, which the policy excludes",
        edits: &[Edit {
            file: SCHEDULED,
            find: "            RangePolicy::Fixed(class @ 1..) => self.exchange_ranges(class)?,",
            replacement: "            RangePolicy::Fixed(1..) => self.exchange_blocks()?,",
        }],
        found_by: &[VOLUME_RANGE.tests(&[AT_A_RATE])],
    },
    Leak {
        name: "range-exact-takes-the-second-if-it-is-needed",
        shows: "which requests go over the border of a range",
        edits: &[Edit {
            file: RANGES,
            find: "        if class == 0 || next == first {",
            replacement: "        if class == 0 || next == first || blocks.end <= first.blocks().end {",
        }],
        found_by: &[VOLUME_RANGE.tests(&[EXACT])],
    },
    Leak {
        name: "range-exact-has-no-second-at-the-end",
        shows: "which requests are to the last range of the disk",
        edits: &[Edit {
            file: RANGES,
            find: "        if class == 0 || next == first {",
            replacement: "        if class == 0 || next.first == 0 {",
        }],
        found_by: &[VOLUME_RANGE.tests(&[EXACT])],
    },
    Leak {
        name: "range-exact-class-by-what-is-at-hand",
        shows: "that the cache had the beginning of what was asked for",
        edits: &[Edit {
            file: PENDING,
            find: "                    Extent::exactly(&blocks.classes, needed.clone(), blocks.volume.blocks());",
            replacement: "                    Extent::exactly(&blocks.classes, block.max((self.offset + self.done as u64) / block_bytes)..needed.end, blocks.volume.blocks());",
        }],
        found_by: &[VOLUME_RANGE.tests(&[AT_HAND])],
    },
    Leak {
        name: "range-exact-keeps-what-was-not-asked-for",
        shows: "whether a request lies in what another has brought beside its own",
        edits: &[Edit {
            file: BLOCKS,
            find: "            self.begin_windows(&[extents], |block| blocks.contains(&block))?;",
            replacement: "            self.begin_windows(&[extents], |block| blocks.start <= block || true)?;",
        }],
        found_by: &[VOLUME_RANGE.tests(&[AT_HAND])],
    },
    Leak {
        name: "range-exact-writes-what-else-is-dirty",
        shows: "how what was written lies between the borders of ranges",
        edits: &[Edit {
            file: BLOCKS,
            find: "        self.cache.mark_clean(&cover.blocks.clone().collect::<Vec<_>>());",
            replacement: "        for extent in &cover.extents {
            self.cache.mark_clean(&extent.blocks().collect::<Vec<_>>());
        }",
        }, Edit {
            file: BLOCKS,
            find: "cache.dirty(block).filter(|_| cover.blocks.contains(&block))",
            replacement: "cache.dirty(block).filter(|_| !cover.blocks.is_empty())",
        }],
        found_by: &[VOLUME_RANGE.tests(&[EXACT])],
    },
    Leak {
        name: "range-exact-answers-after-one-range",
        shows: "in which of the two ranges an answer was, by when the next request comes",
        edits: &[Edit {
            file: BLOCKS,
            find: "            self.begin_windows(&[extents], |block| blocks.contains(&block))?;",
            replacement: "            let windows: Vec<_> = extents.into_iter().map(|extent| vec![extent]).collect();
            self.begin_windows(&windows, |block| blocks.contains(&block))?;",
        }],
        found_by: &[VOLUME_RANGE.tests(&["nobody_is_answered_before_both_ranges_are_read"])],
    },
    Leak {
        name: "range-exact-without-a-cache-joins-requests",
        shows: "which requests that wait together follow each other on the disk",
        edits: &[Edit {
            file: UNCACHED,
            find: "                *of_request == request && following.contains(&block)",
            replacement: "                (*of_request == request || *of_request < request) && following.contains(&block)",
        }],
        found_by: &[VOLUME_RANGE.tests(&["requests_that_wait_together_stay_apart"])],
    },
    Leak {
        name: "range-ticks-leave-a-dummy-out",
        shows: "whether all ranges of a tick were asked for",
        edits: &[Edit {
            file: RANGES,
            find: "            for access in 0..accesses {",
            replacement: "            for access in 0..accesses - usize::from(extents.len() < accesses) {",
        }],
        found_by: &[
            VOLUME_RANGE.tests(&[AT_A_RATE]),
            VOLUME_SCHEDULE.tests(&["all_clients_look_alike"]),
        ],
    },
    Leak {
        name: "range-dummies-are-of-blocks",
        shows: "which accesses of a tick were to ranges, and which to none",
        edits: &[Edit {
            file: RANGES,
            find: "volume.carry_out(&[want], &mut with_rest(&mut given, &mut rest))?;",
            replacement: "let wanted = if extent.is_none() { vec![Want::Nothing; rest.len()] } else { vec![want] };
                volume.carry_out(&wanted, &mut with_rest(&mut given, &mut rest))?;",
        }],
        found_by: &[
            VOLUME_RANGE.tests(&[AT_A_RATE]),
            VOLUME_SCHEDULE.tests(&["all_clients_look_alike"]),
        ],
    },
    Leak {
        name: "range-dummies-are-of-the-first-leaf",
        shows: "which accesses of a tick were to ranges: those to none are of one path",
        edits: &[Edit {
            file: ARRAY,
            find: "                steps.push(Step { class, first, from: fresh, to: fresh });",
            replacement: "                let from = if class == 0 { fresh } else { Leaf(0) };
                steps.push(Step { class, first, from, to: fresh });",
        }],
        found_by: &[VOLUME_RANGE
            .tests(&["at_a_fixed_rate_every_range_is_read_from_a_fresh_path_on"])],
    },
    Leak {
        name: "range-closing-takes-as-many-ticks-as-there-are-dirty-ranges",
        shows: "how many ranges were dirty at the end",
        edits: &[Edit {
            file: SCHEDULED,
            find: "            return self.dirty_blocks_max.min(ranges).div_ceil(self.accesses);",
            replacement: "            return self.dirty_ranges(class).len().min(ranges).div_ceil(self.accesses);",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["closing_looks_alike_whatever_is_dirty"])],
    },
    Leak {
        name: "range-openings-begin-no-era-in-other-trees",
        shows: "what changed between a bucket that was lost and the one made in its place",
        edits: &[Edit {
            file: ARRAY,
            find: "        for sub in &mut self.subs {
            let sealer",
            replacement: "        for sub in &mut self.subs[..1] {
            let sealer",
        }],
        found_by: &[
            VOLUME_VIEW.tests(&["what_recovery_writes_again_is_sealed_under_another_key"]),
            VOLUME_PRIVACY.tests(&[
                "restored::what_comes_after_a_restored_backup_is_sealed_under_another_key",
            ]),
        ],
    },
    Leak {
        name: "range-to-none-may-fail",
        shows: "to storage that has changed a bucket, which accesses of a tick were to no range",
        edits: &[Edit {
            file: ACCESS,
            find: "        self.read_range(at, step)?;",
            replacement: "        match self.read_range(at, step) {
            Err(_) if step.is_of_nothing() && step.class > 0 => {}
            other => other?,
        }",
        }],
        found_by: &[CORE_RANGE.tests(&["accesses_to_ranges_and_to_none_fail_alike"])],
    },
    Leak {
        name: "range-exact-class-by-what-is-dirty",
        shows: "how much of the end of a request was written lately",
        edits: &[Edit {
            file: PENDING,
            find: "                let needed = block..behind.min(block + blocks.longest_range() as u64);",
            replacement: "                let needed = block..behind.min(block + blocks.longest_range() as u64);
                let dirty = (block + 1..needed.end).rev().take_while(|it| blocks.cache.is_dirty(*it)).count();
                let needed = block..needed.end - dirty as u64;",
        }],
        found_by: &[VOLUME_RANGE.tests(&[AT_HAND])],
    },
    Leak {
        name: "range-exact-idles-at-a-fixed-rate",
        shows: "that nobody has asked, or written, since the last tick",
        edits: &[Edit {
            file: SCHEDULED,
            find: "            RangePolicy::Fixed(0) | RangePolicy::Exact | RangePolicy::Classes => {
                self.exchange_blocks()?;",
            replacement: "            RangePolicy::Exact if self.blocks.cache.dirty_blocks() + self.unanswered() == 0 => (),
            RangePolicy::Fixed(0) | RangePolicy::Exact | RangePolicy::Classes => {
                self.exchange_blocks()?;",
        }],
        found_by: &[VOLUME_SCHEDULE.tests(&["all_clients_look_alike"])],
    },
    Leak {
        name: "range-exact-is-divided-where-ranges-end",
        shows: "where a long request lies between the borders of ranges",
        edits: &[Edit {
            file: DISK,
            find: "let from_request = volume.range_policy() == RangePolicy::Exact;",
            replacement: "let from_request = false;",
        }],
        found_by: &[VOLUME_RANGE.tests(&["a_disk_says_how_requests_may_be_divided"])],
    },
    Leak {
        name: "range-exact-writes-zeros-apart",
        shows: "which of the blocks that were written are zeros",
        edits: &[Edit {
            file: BLOCKS,
            find: "        let is_dirty = |block: &u64| self.cache.is_dirty(*block);
        let before",
            replacement: "        let is_dirty = |block: &u64| {
            self.cache.dirty(*block).is_some_and(|data| data.iter().any(|byte| *byte != 0))
        };
        let before",
        }],
        found_by: &[VOLUME_RANGE.tests(&[EXACT])],
    },
    Leak {
        name: "range-of-zeros-is-forgotten",
        shows: "that all of a range was written with zeros",
        edits: &[Edit {
            file: BLOCKS,
            find: "        self.finish_all_windows()?;
        let Self { volume, cache, .. } = self;
        volume.access_ranges(",
            replacement: "        self.finish_all_windows()?;
        let is_zero = |block| self.cache.dirty(block).is_some_and(|data| data.iter().all(|it| *it == 0));
        if matches!(self.policy, RangePolicy::Fixed(_)) && cover.blocks.clone().all(is_zero) {
            self.cache.mark_clean(&cover.blocks.clone().collect::<Vec<_>>());
            return self.volume.forget(cover.blocks.clone());
        }
        let Self { volume, cache, .. } = self;
        volume.access_ranges(",
        }],
        found_by: &[VOLUME_RANGE.tests(&["a_read_of_a_part_reads_the_range_and_so_does_a_write"])],
    },
    Leak {
        name: "range-exact-writes-that-wait-together-join",
        shows: "which writes that wait together lie side by side",
        edits: &[Edit {
            file: UNCACHED,
            find: "                *of_request == request && following.contains(&block)",
            replacement: "                (*of_request == request || step.new.is_some()) && following.contains(&block)",
        }],
        found_by: &[VOLUME_RANGE.tests(&["requests_that_wait_together_stay_apart"])],
    },
    Leak {
        name: "range-fixed-requests-that-wait-together-join",
        shows: "which requests that wait together lie in one range",
        edits: &[Edit {
            file: UNCACHED,
            find: "                *of_request == request
                    && Extent",
            replacement: "                request >= *of_request
                    && Extent",
        }],
        found_by: &[VOLUME_RANGE.tests(&["requests_that_wait_together_stay_apart"])],
    },
];
