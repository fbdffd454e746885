//! Tests of complete machines with short traces.

use oblivio_core::geometry::Leaf;
use oblivio_core::store::TreeId;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::oram::DramBus;
use super::*;
use crate::MODEL;
use crate::controller::{
    Bus, OldCopyPolicy, OramSpec, Pace, PathAccess, PositionMap, Purpose, Remap, RhoSpec, Scheme,
    WriteWatermarks, Writes,
};
use crate::dram::checker::Checker;
use crate::trace::AccessKind;

const LEAF_LEVEL: u8 = 12;

/// Makes reads and writes of a hot and a cold part of memory.
pub(super) fn trace(records: usize, seed: u64) -> Vec<Record> {
    let mut coins = StdRng::seed_from_u64(seed);
    let blocks = 4 << LEAF_LEVEL;
    let record = |_| {
        let lines = if coins.random() { 500 } else { blocks };
        Record {
            gap: coins.random_range(0..60),
            kind: if coins.random_bool(0.4) { AccessKind::Write } else { AccessKind::Read },
            line: coins.random_range(0..lines),
        }
    };
    (0..records).map(record).collect()
}

/// Makes records like [`trace`], with long gaps, so that some slots are unused.
fn quiet(records: usize, seed: u64) -> impl Iterator<Item = Record> {
    trace(records, seed).into_iter().map(|record| Record { gap: record.gap * 100, ..record })
}

/// A small machine: an LLC of 256 lines.
pub(super) fn machine(oram: Option<OramSpec>) -> SystemSpec {
    let mut spec = SystemSpec { oram, ..SystemSpec::paper(LEAF_LEVEL).unwrap() };
    spec.processor.llc_bytes = 16 << 10;
    spec
}

pub(super) fn machines() -> Vec<SystemSpec> {
    let paper = OramSpec::paper(LEAF_LEVEL);
    let in_sets = OramSpec { tree_top_levels: 5, tree_top_ways: Some(4), ..paper.clone() };
    let small = RhoSpec { blocks: 512, small_per_main: 2, old_copy: OldCopyPolicy::TakenOut };
    let raw = OramSpec {
        scheme: Scheme::Raw { evict_period: 5 },
        slots: vec![5; usize::from(LEAF_LEVEL) + 1],
        ..paper.clone()
    };
    let rho = OramSpec { rho: Some(small.clone()), ..paper.clone() };
    let old_copy = OldCopyPolicy::LeftBehind;
    let left_behind = OramSpec { rho: Some(RhoSpec { old_copy, ..small }), ..paper.clone() };
    let recursive = OramSpec {
        position_map: PositionMap::OwnTrees,
        client_entries_max: 1 << 6,
        ..paper.clone()
    };
    let orams = [paper.clone(), in_sets.clone(), raw, rho.clone(), left_behind, recursive];
    let mut machines: Vec<_> = orams.into_iter().map(|oram| machine(Some(oram))).collect();
    for pace in [Pace::Free, Pace::StartToStart(1000), Pace::Gap(100)] {
        let mut spec = machine(Some(in_sets.clone()));
        spec.controller.pace = pace;
        spec.controller.early_write_backs = true;
        machines.push(spec);
    }
    let of_four_lines = OramSpec { block_lines: 4, fan_out: 64, ..OramSpec::paper(LEAF_LEVEL - 2) };
    machines.push(machine(Some(of_four_lines)));
    machines.push(switched());
    for oram in [in_sets, rho] {
        let mut delayed = machine(Some(OramSpec { remap: Remap::Delayed, ..oram }));
        delayed.processor.fetch_on_write_miss = true;
        machines.push(delayed);
    }
    machines
}

/// The number of levels on the chip.
const TREE_TOP_LEVELS: u8 = 5;

/// A machine whose program is switched out regularly.
fn switched() -> SystemSpec {
    let oram = OramSpec {
        tree_top_levels: TREE_TOP_LEVELS,
        tree_top_ways: Some(4),
        ..OramSpec::paper(LEAF_LEVEL)
    };
    let mut spec = machine(Some(oram));
    spec.controller.context_switch = Some(200_000);
    spec
}

/// A machine with an in-order front end, in which requests wait for each other wherever possible.
fn of_an_order() -> SystemSpec {
    of_an_order_with(OramSpec { plb_ways: 2, ..OramSpec::paper(LEAF_LEVEL) })
}

/// A machine like [`of_an_order`], with another ORAM.
fn of_an_order_with(oram: OramSpec) -> SystemSpec {
    let mut spec = machine(Some(oram));
    spec.processor.fetch_room = 1;
    spec.processor.paths_stop_retirement = true;
    spec.controller.write_queue_answers = true;
    spec.controller.write_marks = WriteWatermarks { high: 1, low: 0 };
    spec
}

/// In-order machines: one for each of [`machines`]; one whose write queue does not answer reads;
/// the same machine with IR-DWB; and the machine with IR-DWB that retires only two instructions per
/// cycle.
fn machines_of_an_order() -> Vec<SystemSpec> {
    let ordered = |spec: SystemSpec| {
        let fetches = spec.processor.fetch_on_write_miss;
        let mut ordered = of_an_order_with(spec.oram.expect("each of these machines has an ORAM"));
        ordered.processor.fetch_on_write_miss = fetches;
        ordered.controller.early_write_backs = spec.controller.early_write_backs;
        ordered.controller.context_switch = spec.controller.context_switch;
        ordered
    };
    let mut ordered: Vec<_> = machines().into_iter().map(ordered).collect();
    let mut waits = of_an_order();
    waits.controller.write_queue_answers = false;
    ordered.push(waits.clone());
    waits.controller.early_write_backs = true;
    ordered.push(waits.clone());
    waits.processor.retire_width = Some(2);
    ordered.push(waits);
    ordered
}

/// A warm-up of timed records only.
pub(super) fn timed(records: u64) -> WarmUp {
    WarmUp { records, ..WarmUp::default() }
}

fn outcome(spec: &SystemSpec, seed: u64) -> Outcome {
    run(spec, trace(3000, 1), timed(500), seed, &()).unwrap()
}

#[test]
fn the_processor_asks_for_the_same_whatever_is_behind_it() {
    let mut plain = machine(None);
    let asked = |outcome: &Outcome| {
        let tally = outcome.processor;
        (
            tally.instructions,
            tally.read_misses,
            tally.read_hits,
            tally.write_misses,
            outcome.records,
        )
    };
    for spec in machines() {
        plain.processor = spec.processor.clone();
        let (without, with) = (outcome(&plain, 1), outcome(&spec, 1));
        assert_eq!(asked(&without), asked(&with));
        assert!(with.cycles > 3 * without.cycles, "{} against {}", with.cycles, without.cycles);
    }
}

#[test]
fn every_request_is_a_data_path_or_was_served_without_one() {
    let mut all_early = 0;
    // Delayed remapping serves no victims, and in ρ blocks move between trees.
    let is_plain = |spec: &&SystemSpec| {
        let oram = spec.oram.as_ref();
        oram.is_some_and(|oram| oram.remap == Remap::AtAccess && oram.rho.is_none())
    };
    let traces = [trace(3000, 1), quiet(3000, 1).collect()];
    let mut machines = machines();
    machines.push(of_an_order());
    let machines = machines.iter().filter(is_plain);
    for (spec, trace) in machines.flat_map(|spec| traces.each_ref().map(|trace| (spec, trace))) {
        // A long gap before a last record, so that no write-back is pending when the last
        // instruction retires. The line of the last record is in the LLC.
        let last = Record { gap: 3_000_000, kind: AccessKind::Read, ..*trace.last().unwrap() };
        let whole = run(spec, trace.iter().copied().chain([last]), timed(0), 1, &()).unwrap();
        let tally = whole.memory.controller.clone().unwrap();
        let early = tally.early_write_backs;
        all_early += early;
        let asked = whole.processor.read_misses + whole.processor.dirty_victims;
        let served = tally.data + tally.served_on_client + tally.forwarded;
        assert_eq!(served - early, asked, "{spec:?}");
    }
    assert!(all_early > 0);
}

#[test]
fn a_seed_gives_one_outcome() {
    for spec in machines() {
        assert_eq!(outcome(&spec, 1), outcome(&spec, 1));
        assert_ne!(outcome(&spec, 1), outcome(&spec, 2), "the tree differs");
    }
    assert_eq!(outcome(&machine(None), 1), outcome(&machine(None), 2), "it uses no randomness");
}

/// Checks that the cycles of each machine are unchanged, because saved results of this model are
/// reused. A change that alters results on purpose must also raise [`MODEL`].
#[test]
fn the_same_model_gives_the_same_results() {
    let plain = machine(None);
    let machines = machines();
    let cycles: Vec<_> =
        machines.iter().chain([&plain]).map(|spec| outcome(spec, 1).cycles).collect();
    let of_model_1 = [
        4_530_980, 3_453_940, 4_512_312, 9_341_684, 6_165_660, 4_322_960, 2_132_252, 5_203_996,
        2_656_396, 7_236_488, 3_476_496, 5_176_808, 11_795_648, 64_635,
    ];
    assert_eq!((MODEL, &cycles[..]), (1, &of_model_1[..]));
    let ordered = machines_of_an_order();
    let ends = |spec| run(spec, quiet(3000, 1), timed(500), 1, &()).unwrap().cycles;
    let cycles: Vec<_> = ordered.iter().map(ends).collect();
    let of_model_1 = [
        5_835_794, 4_980_190, 5_616_684, 9_698_426, 6_708_030, 6_158_154, 4_272_456, 4_272_456,
        4_272_456, 8_222_790, 5_035_954, 6_331_938, 11_700_214, 6_458_814, 5_153_142, 7_892_128,
    ];
    assert_eq!(cycles, of_model_1);
}

#[test]
fn lines_in_flight_or_waiting_to_be_written_exist_once() {
    // Few lines in few sets, so that victims are soon requested again.
    let delayed = OramSpec { remap: Remap::Delayed, ..OramSpec::paper(LEAF_LEVEL) };
    let rho = Some(RhoSpec { blocks: 16, small_per_main: 2, old_copy: OldCopyPolicy::TakenOut });
    let specs = [delayed.clone(), OramSpec { rho, ..delayed }].map(|oram| machine(Some(oram)));
    let mut coins = StdRng::seed_from_u64(5);
    for (seed, mut spec) in (0..20).zip(specs.into_iter().cycle()) {
        spec.processor.fetch_on_write_miss = true;
        // In the smaller cache, lines are evicted before they arrive.
        spec.processor.llc_bytes = if seed % 4 < 2 { 2 << 10 } else { 512 };
        let record = |_| Record {
            gap: coins.random_range(0..4),
            kind: if coins.random() { AccessKind::Write } else { AccessKind::Read },
            line: coins.random_range(0..50),
        };
        let records: Vec<_> = (0..2000).map(record).collect();
        let outcome = run(&spec, records, timed(0), seed, &()).unwrap();
        assert!(outcome.memory.controller.unwrap().forwarded > 20);
    }
}

#[test]
fn warm_up_is_not_counted() {
    let spec = machine(Some(OramSpec::paper(LEAF_LEVEL)));
    let [whole, part] =
        [0, 1000].map(|warm_up| run(&spec, trace(3000, 1), timed(warm_up), 1, &()).unwrap());
    assert_eq!((whole.records, part.records), (3000, 2000));
    assert!(part.cycles < whole.cycles && part.cycles > whole.cycles / 2);
    let nothing = run(&spec, trace(30, 1), timed(30), 1, &()).unwrap();
    assert_eq!((nothing.records, nothing.cycles), (0, 0));
}

/// The warm-up stores to lines that fit ρ's small tree but not the LLC, and the timed run reads
/// them. Checks that filling the small tree saves most position-map paths, and that it does not
/// affect machines without ρ.
#[test]
fn a_warm_up_of_the_llc_can_fill_the_small_tree_of_rho() {
    let stores = (0..4000).map(|i| Record { gap: 3, kind: AccessKind::Write, line: i * 7 % 450 });
    let reads = (0..450).map(|line| Record { gap: 300, kind: AccessKind::Read, line });
    let records: Vec<_> = stores.chain(reads).collect();
    let rho = |old_copy, remap| {
        let rho = Some(RhoSpec { blocks: 512, small_per_main: 2, old_copy });
        let mut spec = machine(Some(OramSpec { rho, remap, ..OramSpec::paper(LEAF_LEVEL) }));
        spec.processor.fetch_on_write_miss = true;
        spec
    };
    let cold = WarmUp { llc_records: 4000, ..WarmUp::default() };
    let warm = WarmUp { fills_small_tree: true, ..cold };
    let tally = |spec: &SystemSpec, warm_up| {
        let outcome = run(spec, records.iter().copied(), warm_up, 1, &()).unwrap();
        assert_eq!(outcome.records, 450);
        (outcome.memory.controller.clone().unwrap(), outcome)
    };
    for spec in [
        rho(OldCopyPolicy::TakenOut, Remap::AtAccess),
        rho(OldCopyPolicy::LeftBehind, Remap::AtAccess),
        rho(OldCopyPolicy::TakenOut, Remap::Delayed),
    ] {
        let paths = |warm_up| tally(&spec, warm_up).0.position_map.iter().sum::<u64>();
        let [cold, warm] = [cold, warm].map(paths);
        // The tag array finds the lines in the small tree, without paths for the position map.
        assert!(warm * 3 < cold, "{warm} of {cold}: {spec:?}");
    }
    // Other machines have no small tree to fill.
    for spec in machines().iter().chain([&machine(None)]) {
        let has_rho = spec.oram.as_ref().is_some_and(|oram| oram.rho.is_some());
        let run = |warm_up| run(spec, records.iter().copied(), warm_up, 1, &()).unwrap();
        assert_eq!(run(warm) == run(cold), !has_rho, "{spec:?}");
    }
}

/// A trace that fits the filled LLC requests nothing, and another trace evicts dirty lines from its
/// first miss on. No record of the warm-up is counted. With delayed remapping, the lines of the LLC
/// are out of the ORAM.
#[test]
fn an_llc_that_was_filled_is_full_when_time_begins() {
    let fits = || (0..2000).map(|i| Record { gap: 3, kind: AccessKind::Read, line: i % 200 });
    let stores = || (0..4000).map(|i| Record { gap: 3, kind: AccessKind::Write, line: i % 2000 });
    let filled = WarmUp { llc_records: 1000, ..WarmUp::default() };
    for spec in machines().iter().chain([&machine(None)]) {
        let quiet = run(spec, fits(), filled, 1, &()).unwrap();
        assert_eq!((quiet.records, quiet.processor.read_hits), (1000, 1000));
        assert_eq!(quiet.processor.instructions, 4000);
        let [full, empty] = [filled, timed(0)].map(|warm_up| run(spec, stores(), warm_up, 1, &()));
        let [full, empty] = [full, empty].map(|outcome| outcome.unwrap().processor);
        assert_eq!((full.write_misses, full.dirty_victims), (3000, 3000));
        assert_eq!((empty.write_misses, empty.dirty_victims), (4000, 4000 - 256));
    }
}

/// Each path stops the program, whatever its purpose, so dummies cost time too. Conflicting
/// parameters are refused.
#[test]
fn a_front_end_in_order_waits_for_every_path() {
    let quiet = || trace(1000, 1).into_iter().map(|record| Record { gap: 5000, ..record });
    let is_fixed = |spec: &SystemSpec| spec.controller.pace.is_fixed();
    assert!(machines().iter().filter(|spec| is_fixed(spec)).count() > 4);
    for spec in machines().into_iter().filter(is_fixed) {
        let in_order = |stops| {
            let mut spec = spec.clone();
            spec.processor.fetch_room = 1;
            spec.processor.paths_stop_retirement = stops;
            run(&spec, quiet(), timed(500), 1, &()).unwrap()
        };
        let [free, stopped] = [false, true].map(in_order);
        assert_eq!(free.processor.instructions, stopped.processor.instructions);
        assert!(stopped.cycles * 25 > free.cycles * 26, "{} {}", stopped.cycles, free.cycles);
        assert_eq!(in_order(true), stopped);
    }
    let mut spec = machine(Some(OramSpec::paper(LEAF_LEVEL)));
    spec.processor.paths_stop_retirement = true;
    let refused = run(&spec, quiet(), timed(0), 1, &()).unwrap_err().to_string();
    assert!(refused.contains("one fetch at a time, not 16"), "{refused}");
    (spec.processor.fetch_room, spec.controller.pace) = (1, Pace::Free);
    let refused = run(&spec, quiet(), timed(0), 1, &()).unwrap_err().to_string();
    assert!(refused.contains("only at a fixed pace"), "{refused}");
}

/// Reads answered by the write queue do not reach DRAM. Only evictions and dummies have such reads.
#[test]
fn dram_does_not_read_what_its_queue_of_writes_answers() {
    for mut spec in machines() {
        let quiet = || trace(2000, 1).into_iter().map(|record| Record { gap: 900, ..record });
        spec.controller.write_queue_answers = true;
        let outcome = run(&spec, quiet(), timed(0), 1, &()).unwrap();
        let (dram, tally) = (outcome.memory.dram, outcome.memory.controller.unwrap());
        let halved = tally.evictions + tally.dummies;
        let oram = spec.oram.unwrap();
        let is_one_tree = oram.rho.is_none() && oram.position_map == PositionMap::InTree;
        if oram.scheme == Scheme::Path && is_one_tree {
            let lines = dram.writes / tally.paths();
            assert_eq!(dram.writes - dram.reads, lines * halved, "{tally:?}");
        }
    }
}

/// Checks that counting begins right after the last record of the warm-up, even if no request
/// reaches memory for long before and after it.
#[test]
fn a_warm_up_ends_after_its_last_record() {
    for spec in machines() {
        let hits = || (0..20_000).map(|i| Record { gap: 3, kind: AccessKind::Read, line: i % 100 });
        for warm_up in [1, 100, 101, 10_000, 19_999] {
            let outcome = run(&spec, hits(), timed(warm_up), 1, &()).unwrap();
            assert_eq!(outcome.records, 20_000 - warm_up);
            let (misses, left) = (outcome.processor.read_misses, 100_u64.saturating_sub(warm_up));
            assert_eq!((misses, outcome.processor.instructions), (left, 4 * outcome.records));
        }
        let parts: Vec<_> = [0, 700, 701, 1400]
            .map(|warm_up| run(&spec, trace(1500, 1), timed(warm_up), 1, &()).unwrap())
            .to_vec();
        assert_eq!(parts[1].processor.records() + 700, parts[0].processor.records());
        assert!(parts.windows(2).all(|two| two[0].cycles >= two[1].cycles), "{parts:?}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let refused =
        |spec: &SystemSpec| run(spec, trace(10, 1), timed(0), 1, &()).unwrap_err().to_string();
    let delayed = OramSpec { remap: Remap::Delayed, ..OramSpec::paper(LEAF_LEVEL) };
    assert!(refused(&machine(Some(delayed))).contains("fetch_on_write_miss"));
    let mut small = machine(Some(OramSpec::paper(LEAF_LEVEL)));
    small.dram.rows = 1;
    small.channels = 1;
    assert!(refused(&small).contains("more rows"));
    let mut wide = machine(Some(OramSpec {
        block_lines: 4,
        remap: Remap::Delayed,
        ..OramSpec::paper(LEAF_LEVEL)
    }));
    wide.processor.fetch_on_write_miss = true;
    assert!(refused(&wide).contains("set block_lines = 1"));
    for (lines, says) in [(0, "block_lines = 0"), (1 << 11, "block_lines = 2048")] {
        let oram = OramSpec { block_lines: lines, ..OramSpec::paper(LEAF_LEVEL) };
        assert!(refused(&machine(Some(oram))).contains(says));
    }
    let rho = Some(RhoSpec { blocks: 512, small_per_main: 2, old_copy: OldCopyPolicy::TakenOut });
    let mut two_trees = switched();
    two_trees.oram = Some(OramSpec { rho, ..OramSpec::paper(LEAF_LEVEL) });
    assert!(refused(&two_trees).contains("leave context_switch out"));
    let far = [Record { gap: 0, kind: AccessKind::Read, line: 4 << LEAF_LEVEL }];
    let spec = machine(Some(OramSpec::paper(LEAF_LEVEL)));
    assert!(run(&spec, far, timed(0), 1, &()).unwrap_err().to_string().contains("past the end"));
}

/// At a context switch, only paths and the buckets of the tree top move. The buckets are written to
/// memory and read again.
#[test]
fn at_a_context_switch_the_tree_top_goes_to_memory_and_comes_back() {
    let spec = switched();
    let outcome = run(&spec, trace(3000, 1), timed(0), 1, &()).unwrap();
    let (dram, tally) = (outcome.memory.dram, outcome.memory.controller.unwrap());
    assert!(tally.context_switches > 5, "{tally:?}");
    assert!(tally.flush_evictions > 0 && tally.flush_evictions <= tally.evictions, "{tally:?}");
    let tree_top_lines = ((1 << TREE_TOP_LEVELS) - 1) * 4;
    let of_path = 4 * u64::from(LEAF_LEVEL + 1 - TREE_TOP_LEVELS);
    let lines = of_path * tally.paths() + tree_top_lines * tally.context_switches;
    assert_eq!((dram.reads, dram.writes), (lines, lines));
    let mut alone = spec;
    alone.controller.context_switch = None;
    let alone = run(&alone, trace(3000, 1), timed(0), 1, &()).unwrap();
    assert!(outcome.cycles > alone.cycles + tally.moving_tree_top);

    let (mut bus, _) = carried(&switched());
    let mut now = 10_000_000;
    for _ in 0..3 {
        let moved = bus.move_tree_top(now);
        // Each line moves twice. A move takes four cycles per line if all four buses are always
        // busy.
        let cycles = moved - now;
        assert!((tree_top_lines * 8..tree_top_lines * 16).contains(&cycles), "{cycles} cycles");
        now = moved;
    }
    bus.dram.observer().verdict().unwrap();
}

/// Compares blocks of one and of four lines. With four lines per block, the tree has two fewer
/// levels for the same memory, and a path moves four lines per slot.
#[test]
fn a_path_moves_all_lines_of_its_blocks() {
    let lines_of_path = |block_lines, levels| {
        let oram = OramSpec {
            block_lines,
            fan_out: 16 * block_lines,
            tree_top_levels: 0,
            ..OramSpec::paper(levels)
        };
        let whole = run(&machine(Some(oram)), trace(500, 1), timed(0), 1, &()).unwrap();
        let (dram, tally) = (whole.memory.dram, whole.memory.controller.unwrap());
        assert_eq!((dram.reads % tally.paths(), dram.writes), (0, dram.reads));
        dram.reads / tally.paths()
    };
    assert_eq!(lines_of_path(1, LEAF_LEVEL), 4 * 13);
    assert_eq!(lines_of_path(4, LEAF_LEVEL - 2), 4 * 4 * 11);
    // The last line, and the line after it.
    let oram = OramSpec { block_lines: 4, fan_out: 64, ..OramSpec::paper(LEAF_LEVEL - 2) };
    let ask = |line| {
        let record = Record { gap: 0, kind: AccessKind::Read, line };
        run(&machine(Some(oram.clone())), [record], timed(0), 1, &())
    };
    assert_eq!(oram.lines(), 4 << LEAF_LEVEL);
    ask(oram.lines() - 1).unwrap();
    assert!(ask(oram.lines()).unwrap_err().to_string().contains("past the end"));
}

/// The first access to a line brings the other lines of its block to the client. The position map
/// shrinks with the number of blocks.
#[test]
fn neighbours_share_their_block() {
    let scan =
        || (0..4 << LEAF_LEVEL).map(|line| Record { gap: 100, kind: AccessKind::Read, line });
    let paths = |block_lines, levels| {
        let oram = OramSpec {
            block_lines,
            fan_out: 16 * block_lines,
            tree_top_levels: 4,
            tree_top_ways: Some(16),
            plb_blocks: 16,
            ..OramSpec::paper(levels)
        };
        let mut spec = machine(Some(oram));
        spec.controller.pace = Pace::Free;
        run(&spec, scan(), timed(0), 1, &()).unwrap().memory.controller.unwrap()
    };
    let (one, four) = (paths(1, LEAF_LEVEL), paths(4, LEAF_LEVEL - 2));
    assert!(one.served_on_client < four.served_on_client / 2, "{one:?} {four:?}");
    assert!(four.position_map[0] < one.position_map[0], "{one:?} {four:?}");
}

/// Carries 300 random paths in sequence. Returns the observed bus, and the cycles per path.
fn carried(spec: &SystemSpec) -> (DramBus<Checker>, u64) {
    const PATHS: u64 = 300;
    let oram = spec.oram.as_ref().unwrap();
    let checker = Checker::new(&spec.dram, spec.channels);
    let mut bus = DramBus::new(spec, oram, checker).unwrap();
    let mut coins = StdRng::seed_from_u64(1);
    let mut now = 0;
    for _ in 0..PATHS {
        let leaf = Leaf(coins.random_range(0..1 << oram.leaf_level()));
        let path =
            PathAccess { tree: TreeId(0), leaf, writes: Writes::Buckets, purpose: Purpose::Data };
        let times = bus.carry(&path, now);
        assert!(now < times.read && times.read < times.end);
        now = times.end;
    }
    (bus, now / PATHS)
}

#[test]
fn a_path_of_the_paper_takes_its_time_and_breaks_no_rule() {
    for (channels, cycles) in [(4, 600..750), (1, 1900..2250)] {
        let mut spec = SystemSpec { channels, ..SystemSpec::paper(24).unwrap() };
        // With the gaps between its subtrees, the tree exceeds the capacity of one channel.
        spec.dram.rows = 1 << 17;
        let (bus, taken) = carried(&spec);
        bus.dram.observer().verdict().unwrap();
        assert!(cycles.contains(&taken), "{taken} cycles on {channels} channels");
    }
}

#[test]
fn the_way_from_memory_takes_its_cycles_once_for_each_path_or_line() {
    const LATENCY: u64 = 41;
    let small = SystemSpec::paper(LEAF_LEVEL).unwrap();
    let [near, far] = [0, LATENCY]
        .map(|memory_latency| carried(&SystemSpec { memory_latency, ..small.clone() }).1);
    // The larger latency may shift a refresh.
    assert!(far.abs_diff(near + LATENCY) <= 2, "{near} and {far} cycles");

    // Reads one at a time.
    let mut plain = machine(None);
    plain.processor.rob = 1;
    let cycles = |memory_latency| {
        let spec = SystemSpec { memory_latency, ..plain.clone() };
        let reads = (0..1000).map(|line| Record { gap: 0, kind: AccessKind::Read, line });
        run(&spec, reads, timed(0), 1, &()).unwrap().cycles
    };
    let more = cycles(LATENCY) - cycles(0);
    assert!(more.abs_diff(1000 * LATENCY) < 1000, "{more} cycles");
}

#[test]
fn uneven_buckets_gain_more_where_channels_are_loaded_alike() {
    let slots = [vec![4; 10], vec![1; 6], vec![2; 3], vec![4; 6]].concat();
    let oram = Some(OramSpec { slots, ..OramSpec::paper(24) });
    let [packed, balanced] = [Layout::Subtrees, Layout::Balanced].map(|layout| {
        carried(&SystemSpec { layout, oram: oram.clone(), ..SystemSpec::paper(24).unwrap() }).1
    });
    assert!(balanced * 10 < packed * 9, "{balanced} against {packed} cycles");
}

#[test]
fn an_early_write_back_makes_room_first_where_it_finds_positions_on_the_client() {
    let paper = OramSpec::paper(LEAF_LEVEL);
    let mut slots = paper.slots.clone();
    slots[5..9].fill(1);
    let oram = OramSpec {
        slots,
        tree_top_levels: 5,
        tree_top_ways: Some(4),
        plb_blocks: 16,
        stash_blocks_max: 10,
        ..paper
    };
    let mut spec = machine(Some(oram));
    spec.controller.early_write_backs = true;
    for seed in 1..=8 {
        let quiet = trace(4000, seed).into_iter().map(|record| Record { gap: 3000, ..record });
        let outcome = run(&spec, quiet, timed(0), seed, &()).unwrap();
        let tally = outcome.memory.controller.unwrap();
        assert!(tally.early_write_backs > 0 && tally.evictions > 0, "{tally:?}");
    }
}
