//! A controller on a bus of fixed speed, under random requests.

use std::cell::RefCell;
use std::rc::Rc;

use oblivio_core::scheme::PathScheme;
use oblivio_core::store::TreeId;
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{FreecursiveOram, Front, HitPolicy, Key, MemoryStore, Oram, Sealer};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::*;
use crate::cache::{Cache, CacheShape};
use crate::functional::Study;

const READ: Cycle = 300;
const PATH: Cycle = 700;

/// Cycles for moving the tree top to memory and back.
const MOVE: Cycle = 5000;

/// The carried paths with their start times.
type Carried = Rc<RefCell<Vec<(PathAccess, Cycle)>>>;

struct FixedBus(Carried);

impl Bus for FixedBus {
    fn carry(&mut self, path: &PathAccess, start: Cycle) -> PathTimes {
        self.0.borrow_mut().push((*path, start));
        PathTimes { read: start + READ, end: start + PATH }
    }

    fn carry_writes(&mut self, path: &PathAccess, start: Cycle) -> PathTimes {
        self.0.borrow_mut().push((*path, start));
        PathTimes { read: start, end: start + PATH - READ }
    }

    fn move_tree_top(&mut self, start: Cycle) -> Cycle {
        start + MOVE
    }
}

/// A controller on a [`FixedBus`], an LLC for early write-backs, and the events so far.
struct Bench {
    controller: Controller<FixedBus, usize>,
    cache: Cache,
    carried: Carried,
    answers: Vec<Option<Cycle>>,
    taken: usize,
    reads: Vec<(Cycle, Cycle)>,
    now: Cycle,
}

impl Bench {
    fn new(oram: &OramSpec, spec: &ControllerSpec) -> Self {
        let carried = Carried::default();
        let bus = FixedBus(Rc::clone(&carried));
        let controller = Controller::new(oram, spec, bus, InitialOram::Seed(1), 1).unwrap();
        let cache = Cache::new(CacheShape { lines: 64, ways: 4 }).unwrap();
        let (answers, reads) = (Vec::new(), Vec::new());
        Self { controller, cache, carried, answers, taken: 0, reads, now: 0 }
    }

    /// Runs the controller up to cycle `until`.
    fn run(&mut self, until: Cycle) {
        let mut events = Vec::new();
        while let Some(slot) = self.controller.next_slot().filter(|slot| *slot < until) {
            self.controller.act(slot, &mut self.cache, &mut events).unwrap();
            self.handle_events(&mut events);
        }
        self.now = until;
    }

    fn read(&mut self, line: u64) {
        let (name, mut events) = (self.answers.len(), Vec::new());
        self.answers.push(None);
        self.controller.read(name, line, self.now, &mut events).unwrap();
        self.handle_events(&mut events);
    }

    fn handle_events(&mut self, events: &mut Vec<ControllerEvent<usize>>) {
        for event in events.drain(..) {
            match event {
                ControllerEvent::ReadAnswered(name, at) => {
                    assert!(at >= self.now || self.controller.spec.pace == Pace::Free);
                    assert_eq!(self.answers[name].replace(at), None, "answered once");
                }
                ControllerEvent::WriteBackAccepted(_) => self.taken += 1,
                ControllerEvent::BusReading { from, until } => self.reads.push((from, until)),
            }
        }
    }

    fn starts(&self) -> Vec<Cycle> {
        self.carried.borrow().iter().map(|(_, start)| *start).collect()
    }
}

fn small() -> OramSpec {
    OramSpec { stash_blocks_max: 60, plb_blocks: 16, ..OramSpec::paper(9) }
}

fn in_sets() -> OramSpec {
    OramSpec { tree_top_levels: 4, tree_top_ways: Some(4), ..small() }
}

fn with_rho() -> OramSpec {
    OramSpec {
        rho: Some(RhoSpec { blocks: 128, small_per_main: 2, old_copy: OldCopyPolicy::TakenOut }),
        ..small()
    }
}

fn with_rho_that_leaves_copies() -> OramSpec {
    let rho = with_rho().rho.map(|rho| RhoSpec { old_copy: OldCopyPolicy::LeftBehind, ..rho });
    OramSpec { rho, ..small() }
}

fn with_delayed_rho() -> OramSpec {
    OramSpec { remap: Remap::Delayed, ..with_rho() }
}

fn raw() -> OramSpec {
    let slots = vec![5; 10];
    OramSpec { scheme: Scheme::Raw { evict_period: 5 }, slots, data_blocks: 1000, ..small() }
}

/// A specification with two levels of position map in trees of their own.
fn recursive() -> OramSpec {
    OramSpec { position_map: PositionMap::OwnTrees, client_entries_max: 8, ..small() }
}

fn at(pace: Pace) -> ControllerSpec {
    ControllerSpec { pace, ..ControllerSpec::default() }
}

const PACES: [Pace; 4] =
    [Pace::Free, Pace::StartToStart(1000), Pace::Gap(200), Pace::WhenIdle(1000)];

/// The number of lines in the LLC of [`random_requests`].
const HELD: usize = 20;

/// Makes random reads and write-backs of a few lines, and checks properties that hold for any ORAM
/// and pace.
fn random_requests(oram: &OramSpec, spec: &ControllerSpec, seed: u64) -> Bench {
    let mut bench = Bench::new(oram, spec);
    let mut coins = StdRng::seed_from_u64(seed);
    // Lines in the LLC. With delayed remapping, a block must leave the LLC before the next request
    // for it.
    let mut held = Vec::new();
    let mut dirty_left = 0;
    for _ in 0..400 {
        let line = coins.random_range(0..oram.data_blocks.min(900));
        if !held.contains(&line) {
            bench.read(line);
            held.push(line);
        }
        if held.len() > HELD {
            let is_dirty = coins.random();
            let line = held.swap_remove(coins.random_range(0..held.len()));
            // A line leaves the LLC only after it has arrived.
            bench.run(bench.now + 20_000);
            dirty_left += usize::from(is_dirty);
            bench.controller.evict_line(line, is_dirty, bench.now);
        }
        bench.run(bench.now + coins.random_range(0..3000));
    }
    bench.run(bench.now + 1_000_000);
    assert!(bench.answers.iter().all(Option::is_some), "each read is answered");
    assert_eq!(bench.taken, dirty_left, "each write-back is accepted");
    let tally = bench.controller.tally();
    assert_eq!(tally.paths(), bench.carried.borrow().len() as u64);
    assert_eq!(tally.busy, PATH * tally.paths());
    assert!(bench.starts().is_sorted_by(|a, b| a + PATH <= *b), "one path at a time");
    let reads = bench.starts().into_iter().map(|start| (start, start + READ));
    assert!(reads.eq(bench.reads.iter().copied()), "each path is read");
    bench.controller.check_invariants().unwrap();
    bench
}

#[test]
fn every_request_is_answered_once_whatever_the_scheme_and_the_pace() {
    let delayed = OramSpec { remap: Remap::Delayed, ..small() };
    let delayed_in_sets = OramSpec { remap: Remap::Delayed, ..in_sets() };
    let empty = OramSpec { initial: Initial::Empty, ..in_sets() };
    let each_once = [small(), with_rho(), with_delayed_rho(), raw(), recursive()];
    let each_once = each_once.map(|oram| OramSpec { initial: Initial::EachOnce, ..oram });
    let aged = [small(), in_sets(), raw(), recursive()];
    let aged = aged.map(|oram| OramSpec { initial: Initial::Aged(100), ..oram });
    let empty_rho = OramSpec { initial: Initial::Empty, ..with_delayed_rho() };
    let others = [small(), in_sets(), with_rho(), raw(), delayed, delayed_in_sets, empty];
    let delayed_rho = [with_delayed_rho(), empty_rho, with_rho_that_leaves_copies()];
    for oram in
        others.into_iter().chain([recursive()]).chain(delayed_rho).chain(each_once).chain(aged)
    {
        for pace in PACES {
            random_requests(&oram, &at(pace), 1);
        }
    }
}

#[test]
fn plain_recursion_takes_a_path_of_each_tree_for_each_request() {
    let bench = random_requests(&recursive(), &at(Pace::Gap(200)), 1);
    let carried = bench.carried.borrow();
    // The last chain may be incomplete.
    let chains = carried.chunks_exact(3);
    let (all, [mut requests, mut dummies]) = (chains.len(), [0, 0]);
    for chain in chains {
        let chain: Vec<_> = chain.iter().map(|(path, _)| (path.tree.0, path.purpose)).collect();
        let alike = |purpose| [2, 1, 0].map(|tree| (tree, purpose));
        let request =
            [(2, Purpose::PositionMap(2)), (1, Purpose::PositionMap(1)), (0, Purpose::Data)];
        requests += usize::from(chain == request);
        dummies += usize::from(chain == alike(Purpose::Dummy) || chain == alike(Purpose::Eviction));
    }
    assert!(requests > 300 && requests + dummies == all, "{requests} {dummies} {all}");
    let tally = bench.controller.tally();
    assert_eq!((tally.data, tally.served_on_client, tally.small), (requests as u64, 0, 0));
    // The same load as in the tree of the data: 64 times fewer blocks and leaves.
    let trees = recursive().recursive_trees().unwrap();
    let levels: Vec<_> = trees.iter().map(|tree| tree.geometry.leaf_level()).collect();
    assert_eq!(levels, [9, 5, 1]);
}

#[test]
fn what_does_not_go_with_plain_recursion_is_refused() {
    let early = ControllerSpec { early_write_backs: true, ..ControllerSpec::default() };
    let usual = ControllerSpec::default();
    let of = |oram: OramSpec| OramSpec { position_map: PositionMap::OwnTrees, ..oram };
    let delayed = OramSpec { remap: Remap::Delayed, ..recursive() };
    let wide = OramSpec { fan_out: 8, ..recursive() };
    for (oram, spec) in [
        (of(with_rho()), &usual),
        (of(in_sets()), &usual),
        (of(raw()), &usual),
        (delayed, &usual),
        (wide, &usual),
        (recursive(), &early),
    ] {
        let bus = FixedBus(Carried::default());
        let made = Controller::<_, usize>::new(&oram, spec, bus, InitialOram::Seed(1), 1);
        let error = made.err().expect("the combination is refused").to_string();
        assert!(error.contains("own-trees"), "{error}");
    }
    let study = Study::new(&recursive(), 1, &mut |_| ()).err().unwrap().to_string();
    assert!(study.contains("plain recursion"), "{study}");
}

#[test]
fn the_starts_of_a_fixed_rate_do_not_depend_on_requests() {
    for pace in [Pace::StartToStart(1000), Pace::Gap(200)] {
        let rho = [with_rho(), with_rho_that_leaves_copies(), with_delayed_rho()];
        for oram in [small(), in_sets(), raw(), recursive()].into_iter().chain(rho) {
            let busy = random_requests(&oram, &at(pace), 1);
            let mut idle = Bench::new(&oram, &at(pace));
            idle.run(busy.now);
            assert_eq!(bus_view(&busy), bus_view(&idle), "{pace:?}");
        }
    }
}

/// An observer's view of the bus, without leaves: the start times, and the tree and the written
/// part of each path.
fn bus_view(bench: &Bench) -> (Vec<Cycle>, Vec<(TreeId, Writes)>) {
    let carried = bench.carried.borrow();
    (bench.starts(), carried.iter().map(|(path, _)| (path.tree, path.writes)).collect())
}

/// At a fixed pace, the use of a slot is invisible: IR-DWB, evictions of a narrow tree, and the
/// priority of write-backs. It becomes visible if the write queue answers reads, since a dummy then
/// ends sooner. Such a machine is not oblivious.
#[test]
fn the_use_of_a_slot_is_visible_only_if_the_write_queue_answers() {
    let mut narrow = small();
    narrow.slots[2..9].fill(1);
    (narrow.slots[9], narrow.stash_blocks_max) = (6, 5);
    for pace in [Pace::StartToStart(1000), Pace::Gap(200)] {
        let usual = at(pace);
        let early = ControllerSpec { early_write_backs: true, ..usual.clone() };
        let at_once =
            ControllerSpec { write_marks: WriteWatermarks { high: 1, low: 0 }, ..usual.clone() };
        let queue = ControllerSpec { write_queue_answers: true, ..usual.clone() };
        for (oram, spec, is_alike) in [
            (small(), &early, true),
            (in_sets(), &early, true),
            (with_rho(), &early, true),
            (small(), &at_once, true),
            (narrow.clone(), &usual, true),
            // From start to start only the reads are missing, and this bench does not compare when
            // a path is read.
            (small(), &queue, pace == Pace::StartToStart(1000)),
            (narrow.clone(), &queue, pace == Pace::StartToStart(1000)),
        ] {
            let busy = with_dirty_lines(&oram, spec);
            let mut idle = Bench::new(&oram, spec);
            idle.run(busy.now);
            assert_eq!(bus_view(&busy) == bus_view(&idle), is_alike, "{spec:?}");
            let tally = busy.controller.tally();
            assert!(tally.early_write_backs > 0 || !spec.early_write_backs, "{tally:?}");
            assert!(tally.evictions > 0 || oram.slots[2] > 1, "{tally:?}");
        }
    }
}

/// Makes reads at random times, by a program whose lines in the LLC are all dirty.
fn with_dirty_lines(oram: &OramSpec, spec: &ControllerSpec) -> Bench {
    // Long enough to leave slots unused, but not so long that dummies replace evictions. In ρ every
    // third slot is for the main tree.
    let pause_max = if oram.rho.is_some() { 30_000 } else { 12_000 };
    let mut coins = StdRng::seed_from_u64(1);
    let mut bench = Bench::new(oram, spec);
    for line in 0..64 {
        bench.cache.insert(line * 31 % 64, true);
    }
    for _ in 0..300 {
        bench.read(coins.random_range(0..900));
        bench.run(bench.now + coins.random_range(0..pause_max));
        for line in 0..64 {
            bench.cache.touch(line, true);
        }
    }
    bench
}

#[test]
fn rho_keeps_to_two_small_paths_and_a_main_one() {
    for oram in [with_rho(), with_rho_that_leaves_copies(), with_delayed_rho()] {
        for pace in PACES {
            let bench = random_requests(&oram, &at(pace), 2);
            for (number, (path, _)) in bench.carried.borrow().iter().enumerate() {
                assert_eq!(path.tree, TreeId(u16::from(number % 3 != 2)), "{pace:?}");
            }
            assert!(bench.controller.tally().small > 100);
        }
    }
}

#[test]
fn with_delayed_rho_what_the_llc_gives_back_costs_no_data_path_of_the_main_tree() {
    let bench = random_requests(&with_delayed_rho(), &at(Pace::Free), 1);
    let tally = bench.controller.tally();
    let data = |tree| {
        let carried = bench.carried.borrow();
        let paths = carried.iter().map(|(path, _)| (path.tree.0, path.purpose));
        paths.filter(|path| *path == (tree, Purpose::Data)).count() as u64
    };
    let reads = bench.answers.len() as u64;
    let fetched = reads - tally.served_on_client - tally.forwarded;
    let given_back = reads - HELD as u64 - tally.forwarded;
    // A read takes a path of one of the trees, and a line that is given back takes a path of the
    // small tree.
    assert_eq!(data(0) + data(1), fetched + given_back, "{tally:?}");
    let read_from_small = data(1) - given_back;
    assert!(data(0) < fetched && read_from_small > 10, "{read_from_small}, {tally:?}");
}

/// If ρ leaves copies behind, a write-back takes no data path of the main tree, only a path of the
/// small tree and the position-map paths of the block that leaves it. A read takes at most one data
/// path of the main tree.
#[test]
fn a_block_that_leaves_a_copy_behind_takes_no_data_path_of_the_main_tree() {
    let data_of_main = |oram: &OramSpec| {
        let bench = random_requests(oram, &at(Pace::Free), 1);
        let carried = bench.carried.borrow();
        let is_data = |path: &PathAccess| path.tree == MAIN_TREE && path.purpose == Purpose::Data;
        let count = carried.iter().filter(|(path, _)| is_data(path)).count();
        (count, bench.answers.len(), bench.taken)
    };
    let (taken_out, reads, write_backs) = data_of_main(&with_rho());
    let (left_behind, ..) = data_of_main(&with_rho_that_leaves_copies());
    assert!(left_behind <= reads && write_backs > 100);
    assert!(left_behind + write_backs / 2 < taken_out, "{left_behind} and {taken_out}");
}

#[test]
fn the_purposes_match_the_requests() {
    let bench = random_requests(&small(), &at(Pace::Free), 1);
    let tally = bench.controller.tally();
    assert_eq!(tally.dummies, 0, "a free pace makes none");
    assert!(tally.position_map[0] > tally.position_map[1], "{tally:?}");
    let requests = bench.answers.len() + bench.taken;
    assert_eq!(tally.data + tally.served_on_client + tally.forwarded, requests as u64);
    let delayed = OramSpec { remap: Remap::Delayed, ..small() };
    let bench = random_requests(&delayed, &at(Pace::Free), 1);
    let tally = bench.controller.tally();
    let reads = bench.answers.len() as u64;
    assert_eq!(
        tally.data + tally.served_on_client + tally.forwarded,
        reads,
        "victims take no data path"
    );
}

#[test]
fn a_tree_top_in_sets_saves_what_a_dedicated_one_reads() {
    let [dedicated, sets] = [OramSpec { tree_top_ways: None, ..in_sets() }, in_sets()]
        .map(|oram| random_requests(&oram, &at(Pace::Free), 1).controller.tally());
    assert!(sets.served_on_client > dedicated.served_on_client + 20, "{sets:?} {dedicated:?}");
}

/// If the write queue answers a dummy or an eviction, the path takes only the time of its writes.
/// Paths of requests are still read.
#[test]
fn evictions_and_dummies_may_be_answered_from_the_write_queue() {
    let mut oram = small();
    oram.slots[2..9].fill(1);
    (oram.slots[9], oram.stash_blocks_max) = (6, 5);
    let spec = ControllerSpec { write_queue_answers: true, ..at(Pace::Gap(200)) };
    let mut bench = Bench::new(&oram, &spec);
    let mut coins = StdRng::seed_from_u64(3);
    for _ in 0..300 {
        bench.read(coins.random_range(0..oram.data_blocks));
        bench.run(bench.now + 2500);
    }
    let tally = bench.controller.tally();
    let halved = tally.evictions + tally.dummies;
    assert!(tally.evictions > 10 && tally.dummies > 10, "{tally:?}");
    assert_eq!(tally.busy, PATH * tally.paths() - READ * halved);
    assert_eq!(tally.busy_evicting, (PATH - READ) * tally.evictions);
    assert_eq!(bench.reads.iter().filter(|(from, until)| from == until).count() as u64, halved);
}

/// The stash is empty at a switch, and nothing else happens until the tree top is back. At a free
/// pace, a program without requests is not switched out again.
#[test]
fn a_program_is_switched_out_with_an_empty_stash() {
    const SLICE: Cycle = 30_000;
    let mut narrow = in_sets();
    narrow.slots[4..9].fill(1);
    narrow.slots[9] = 6;
    let mut evictions = 0;
    for (oram, pace) in
        [small(), narrow, raw()].iter().flat_map(|oram| PACES.map(|pace| (oram, pace)))
    {
        let spec = ControllerSpec { context_switch: Some(SLICE), ..at(pace) };
        let mut bench = Bench::new(oram, &spec);
        let mut coins = StdRng::seed_from_u64(4);
        let (mut switches, mut resumed, mut events) = (0, 0, Vec::new());
        for number in 0..600 {
            let line = coins.random_range(0..oram.data_blocks);
            bench.answers.push(None);
            bench.controller.read(number, line, bench.now, &mut events).unwrap();
            bench.now += 900;
            while let Some(slot) = bench.controller.next_slot().filter(|slot| *slot < bench.now) {
                bench.controller.act(slot, &mut bench.cache, &mut events).unwrap();
                let now = bench.controller.tally().context_switches;
                if now > switches {
                    assert_eq!(now, switches + 1);
                    assert_eq!(bench.controller.engine.stash_blocks(), 0);
                    assert!(slot >= resumed + SLICE, "{slot} and {resumed}");
                    assert!(
                        events.contains(&ControllerEvent::BusReading {
                            from: slot,
                            until: slot + MOVE
                        })
                    );
                    (switches, resumed) = (now, slot + MOVE);
                } else {
                    assert!(slot >= resumed);
                }
            }
        }
        let tally = bench.controller.tally();
        assert!(switches > 5, "{pace:?} {tally:?}");
        evictions += tally.flush_evictions;
        assert_eq!(tally.moving_tree_top, MOVE * switches);
        assert!(tally.busy_flushing <= tally.busy_evicting);
        bench.controller.check_invariants().unwrap();
        // At a free pace, only work in progress and at most one switch may follow.
        if pace == Pace::Free {
            bench.run(bench.now + 100 * SLICE);
            let then = bench.controller.tally().context_switches;
            bench.run(bench.now + 100 * SLICE);
            assert_eq!(bench.controller.tally().context_switches, then);
        }
    }
    assert!(evictions > 100, "{evictions}");
}

/// With delayed remapping, lines that the LLC holds at first are taken out of the ORAM by untimed
/// paths. In ρ, the timed run begins with a whole round.
#[test]
fn what_is_held_at_first_is_out_of_an_oram_with_delayed_remapping() {
    for oram in [OramSpec { remap: Remap::Delayed, ..in_sets() }, with_delayed_rho(), small()] {
        let mut bench = Bench::new(&oram, &at(Pace::Free));
        let held = 0..200;
        held.clone().for_each(|line| bench.controller.preload_line(line).unwrap());
        bench.controller.start_timed_run().unwrap();
        assert!(bench.carried.borrow().is_empty());
        if oram.remap == Remap::Delayed {
            held.clone().for_each(|line| bench.controller.evict_line(line, true, 0));
        }
        bench.run(10_000_000);
        held.for_each(|line| bench.read(line));
        bench.run(20_000_000);
        assert!(bench.answers.iter().all(Option::is_some));
        bench.controller.check_invariants().unwrap();
        if oram.rho.is_some() {
            for (number, (path, _)) in bench.carried.borrow().iter().enumerate() {
                assert_eq!(path.tree, TreeId(u16::from(number % 3 != 2)));
            }
        }
    }
}

#[test]
fn unused_slots_write_dirty_lines_back() {
    let spec = ControllerSpec { early_write_backs: true, ..at(Pace::Gap(300)) };
    let mut bench = Bench::new(&small(), &spec);
    for line in 0..64 {
        bench.cache.insert(line * 31 % 64, true);
    }
    bench.run(400 * (PATH + 300));
    let tally = bench.controller.tally();
    // In each set only the LRU line is written back.
    assert_eq!((tally.early_write_backs, tally.early_given_up), (16, 0));
    assert!((0..16).all(|set| bench.cache.next_victim(set).is_some_and(|victim| !victim.dirty)));
    let needed = tally.data + tally.position_map.iter().sum::<u64>();
    assert_eq!(tally.converted, needed);
    assert_eq!(tally.dummies, 400 - needed, "{tally:?}");
}

/// With a tree top in sets, some blocks are found by address. They count in `served_on_client`.
#[test]
fn early_write_backs_are_data_paths_or_served_without_one() {
    let spec = ControllerSpec { early_write_backs: true, ..at(Pace::Gap(300)) };
    let mut bench = Bench::new(&in_sets(), &spec);
    (0..64).for_each(|line| assert!(bench.cache.insert(line * 31 % 64, true).is_none()));
    for round in 1..=20 {
        bench.run(round * 18 * (PATH + 300));
        (0..64).for_each(|line| assert!(bench.cache.touch(line, true)));
    }
    let tally = bench.controller.tally();
    assert!(tally.served_on_client > 0 && tally.early_write_backs > 32, "{tally:?}");
    assert_eq!(tally.data + tally.served_on_client, tally.early_write_backs, "{tally:?}");
}

#[test]
fn a_line_that_is_used_before_its_last_stage_is_not_written() {
    let spec = ControllerSpec { early_write_backs: true, ..at(Pace::Gap(300)) };
    let mut bench = Bench::new(&small(), &spec);
    [0, 16, 32, 48].into_iter().for_each(|line| assert!(bench.cache.insert(line, true).is_none()));
    bench.run(301);
    assert_eq!(bench.controller.tally().position_map.iter().sum::<u64>(), 1);
    bench.cache.touch(0, false);
    bench.run(20_000);
    let tally = bench.controller.tally();
    assert_eq!((tally.early_given_up, tally.early_write_backs), (1, 1), "line 16 instead");
    assert!(bench.cache.next_victim(0).is_some_and(|victim| !victim.dirty && victim.line == 16));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let refused = |oram: &OramSpec, spec: &ControllerSpec| {
        let bus = FixedBus(Carried::default());
        Controller::<_, usize>::new(oram, spec, bus, InitialOram::Seed(1), 1)
            .err()
            .unwrap()
            .to_string()
    };
    let early = ControllerSpec { early_write_backs: true, ..ControllerSpec::default() };
    let delayed = OramSpec { remap: Remap::Delayed, ..small() };
    assert!(refused(&delayed, &early).contains("early"));
    let raw_rho = OramSpec { rho: with_rho().rho, ..raw() };
    assert!(refused(&raw_rho, &ControllerSpec::default()).contains("RAW"));
    let marks = WriteWatermarks { high: 5, low: 5 };
    assert!(refused(&small(), &ControllerSpec { write_marks: marks, ..early }).contains("mark"));
    let no_tree = OramSpec { slots: vec![4; 3], ..small() };
    assert!(refused(&no_tree, &ControllerSpec::default()).contains("engine refused"));
}

/// A run may have the same seed as its initial ORAM. The test checks that their random numbers
/// differ.
#[test]
fn a_run_throws_other_coins_than_its_initial_oram() {
    for seed in 0..100 {
        let (mut of_initial, mut of_run) = (StdRng::seed_from_u64(seed), request_rng(seed));
        let mut forks = [&mut of_initial, &mut of_run].map(StdRng::from_rng);
        assert_ne!(of_initial.random::<u64>(), of_run.random::<u64>(), "{seed}");
        assert_ne!(forks[0].random::<u64>(), forks[1].random::<u64>(), "{seed}");
    }
}

#[test]
fn an_initial_oram_serves_its_own_specification_alone() {
    let begin = |spec: &OramSpec, studied: &OramSpec| {
        let study = Study::new(studied, 1, &mut |_| ()).unwrap();
        let (bus, spec_of_time) = (FixedBus(Carried::default()), ControllerSpec::default());
        let initial = InitialOram::Made(study.into());
        Controller::<_, usize>::new(spec, &spec_of_time, bus, initial, 1)
    };
    // The tree of the baseline is also the main tree of ρ, and the tree of delayed remapping.
    for spec in [small(), with_rho(), with_delayed_rho()] {
        begin(&spec, &small()).unwrap().check_invariants().unwrap();
    }
    for spec in [in_sets(), raw(), OramSpec { plb_ways: 2, ..small() }] {
        let error = begin(&spec, &small()).err().unwrap().to_string();
        assert!(error.contains("make it from a seed"), "{error}");
    }
}

/// Compares the controller with the encrypted engine on blocks of 64 bytes. The same requests make
/// the same paths and leave the same stash.
#[test]
fn it_reads_the_paths_that_the_engine_reads() {
    for oram in [small(), in_sets()] {
        let (mut bench, mut coins) = (Bench::new(&oram, &at(Pace::Free)), StdRng::seed_from_u64(9));
        let leaves = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&leaves);
        let sink = move |event: &Event, _: &[u8]| {
            if let (Operation::Write, Some(piece)) = (event.operation, event.piece) {
                let bucket = piece.bucket;
                log.borrow_mut().extend((bucket.level() == 9).then_some(bucket.index()));
            }
        };
        let tree = oram.tree().unwrap().with_block_bytes(64);
        let memory =
            MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
        let sealer = Sealer::aes128(Key::draw(&mut coins), tree.tree);
        let scheme = PathScheme::new(&tree, sealer, Recorder::new(memory, sink)).unwrap();
        let mut seed = StdRng::seed_from_u64(1);
        let frontend = oram.frontend().unwrap();
        assert_eq!(frontend.hits, HitPolicy::Serve);
        let mut engine =
            FreecursiveOram::new(&frontend, scheme, StdRng::from_rng(&mut seed)).unwrap();
        engine.populate().unwrap();
        let mut engine = engine.rewrapped(Ok, StdRng::from_rng(&mut request_rng(1))).unwrap();
        leaves.borrow_mut().clear();

        for _ in 0..500 {
            let line = coins.random_range(0..200);
            bench.read(line);
            bench.run(bench.now + 10_000);
            engine.write(line, &[1; 64]).unwrap();
            assert_eq!(engine.stash().blocks(), bench.controller.engine.stash_blocks());
        }
        let carried: Vec<_> = bench.carried.borrow().iter().map(|(path, _)| path.leaf.0).collect();
        assert_eq!(carried, *leaves.borrow());
        assert!(carried.len() > 400);
    }
}
