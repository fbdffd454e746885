//! Tests of measures on small outcomes, with values computed by hand.

use oblivio_sim::dram::DramTally;
use oblivio_sim::system::{MemoryTally, SystemSpec};

use super::*;
use crate::evaluation::record::Scale;

/// Evaluates the measure on runs with these outcomes, on Baseline with a small tree.
fn number(measure: &Measure, outcomes: &[(&Outcome, &Outcome)], mean: Mean) -> Option<f64> {
    let records: Vec<_> = outcomes
        .iter()
        .map(|(run, reference)| (ran((*run).clone()), ran((*reference).clone())))
        .collect();
    let pairs: Vec<_> = records.iter().map(|(run, reference)| (run, reference)).collect();
    measure.evaluate(&pairs, mean)
}

fn ran(outcome: Outcome) -> RunRecord {
    RunRecord {
        key: String::new(),
        variant: String::new(),
        workload: String::new(),
        samples: false,
        trace: 0,
        scale: Scale { leaf_level: 12, records: 100, warm_up: 0, llc_warm_up: 0 },
        seed: 1,
        initial_seed: None,
        spec: SystemSpec::paper(12).unwrap(),
        outcome,
        checked_commands: None,
        model: oblivio_sim::MODEL,
        seconds: 1.0,
        machine: String::new(),
        version: String::new(),
    }
}

fn outcome(cycles: u64, paths: [u64; 5], busy_evicting: u64) -> Outcome {
    let [data, first, second, evictions, dummies] = paths;
    let position_map = vec![first, second];
    let tally = ControllerTally {
        data,
        position_map,
        evictions,
        dummies,
        busy_evicting,
        ..ControllerTally::default()
    };
    let memory = MemoryTally { controller: Some(tally), ..MemoryTally::default() };
    Outcome { cycles, records: 100, memory, ..Outcome::default() }
}

fn over(name: fn(String) -> Measure) -> Measure {
    name("baseline".to_owned())
}

#[test]
fn measures_by_hand() {
    let baseline = outcome(1000, [56, 24, 8, 1, 11], 10);
    let run = outcome(800, [50, 12, 4, 20, 14], 200);
    let of = |measure: Measure| number(&measure, &[(&run, &baseline)], Mean::Arithmetic).unwrap();
    assert_eq!(of(over(Measure::SpeedOver)), 1.25);
    assert_eq!(of(over(Measure::SpeedOf)), 0.8);
    assert_eq!(of(over(Measure::TimeWithoutEvictionsOver)), 0.6);
    assert_eq!(of(over(Measure::EvictionTimeOver)), 0.2);
    assert_eq!(of(over(Measure::PositionMapOver)), 0.5);
    assert_eq!(of(Measure::Share(PathPart::Data)), 0.5);
    assert_eq!(of(Measure::Share(PathPart::PositionMap)), 0.16);
    assert_eq!(of(Measure::Share(PathPart::PositionMap1)), 0.12);
    assert_eq!(of(Measure::Share(PathPart::Evictions)), 0.2);
    assert_eq!(of(Measure::Share(PathPart::Dummies)), 0.14);
    assert_eq!(of(Measure::EvictionsForEachAccess), 20.0 / 66.0);
    assert_eq!(of(Measure::Times(PathPart::PositionMap1, PathPart::PositionMap2)), 3.0);
}

#[test]
fn means_omit_runs_without_the_number() {
    let (slow, fast) = (outcome(400, [1, 3, 0, 0, 0], 0), outcome(100, [1, 0, 1, 0, 0], 0));
    let speed = over(Measure::SpeedOver);
    let pairs = [(&fast, &slow), (&slow, &slow)];
    assert_eq!(number(&speed, &pairs, Mean::Arithmetic), Some(2.5));
    assert_eq!(number(&speed, &pairs, Mean::Geometric), Some(2.0));
    assert_eq!(Mean::ALL.map(|mean| number(&speed, &[], mean)), [None; 2]);
    // 4 and 1 are each 1.5 from their mean, so the deviation is the root of (2.25 + 2.25) / 1.
    assert_eq!(number(&speed, &pairs, Mean::Deviation), Some(4.5f64.sqrt()));
    assert_eq!(number(&speed, &pairs[..1], Mean::Deviation), None);
    // A ratio of means: (3/4 + 0) / (0 + 1/2). The second pair alone has no ratio.
    let times = Measure::Times(PathPart::PositionMap1, PathPart::PositionMap2);
    let of = |pairs| number(&times, pairs, Mean::Arithmetic);
    assert_eq!([&pairs[..1], &pairs[1..], &pairs].map(of), [Some(0.0), None, Some(1.5)]);
}

#[test]
fn cycles_and_paths_are_compared_for_equal_records() {
    let baseline = outcome(1000, [50, 40, 0, 0, 0], 0);
    let half = Outcome { records: 50, ..outcome(400, [20, 10, 0, 0, 0], 100) };
    let of = |measure: Measure| number(&measure, &[(&half, &baseline)], Mean::Arithmetic).unwrap();
    assert_eq!(of(over(Measure::SpeedOver)), 1.25);
    assert_eq!(of(over(Measure::TimeWithoutEvictionsOver)), 0.6);
    assert_eq!(of(over(Measure::EvictionTimeOver)), 0.2);
    assert_eq!(of(over(Measure::PositionMapOver)), 0.5);
}

#[test]
fn busy_cycles_are_divided_by_requests_and_by_accesses() {
    let of = |data, [forwarded, served_on_client]: [u64; 2]| {
        let mut outcome = outcome(9999, [data, 24, 8, 5, 3], 100);
        let tally = outcome.memory.controller.as_mut().unwrap();
        (tally.busy, tally.forwarded, tally.served_on_client) = (1760, forwarded, served_on_client);
        outcome
    };
    let run = of(56, [6, 2]);
    assert_eq!(
        number(&Measure::CyclesForEachRequest, &[(&run, &run)], Mean::Arithmetic),
        Some(1760.0 / 64.0)
    );
    assert_eq!(
        number(&Measure::CyclesForEachAccess, &[(&run, &run)], Mean::Arithmetic),
        Some(20.0)
    );
    let mut run = run;
    (run.processor.stalls.rob, run.processor.read_misses) = (1200, 40);
    assert_eq!(number(&Measure::WaitForEachRead, &[(&run, &run)], Mean::Arithmetic), Some(30.0));
    let idle = of(0, [0, 0]);
    assert_eq!(number(&Measure::WaitForEachRead, &[(&idle, &idle)], Mean::Arithmetic), None);
    assert_eq!(number(&Measure::CyclesForEachRequest, &[(&idle, &idle)], Mean::Arithmetic), None);
}

#[test]
fn a_machine_without_oram_has_a_speed_and_no_paths() {
    let plain = Outcome { cycles: 10, records: 100, ..Outcome::default() };
    let oram = outcome(80, [1, 0, 0, 0, 0], 0);
    assert_eq!(number(&over(Measure::SpeedOver), &[(&plain, &oram)], Mean::Arithmetic), Some(8.0));
    assert_eq!(
        number(&Measure::Share(PathPart::Data), &[(&plain, &plain)], Mean::Arithmetic),
        None
    );
    assert_eq!(number(&Measure::CyclesForEachRequest, &[(&plain, &plain)], Mean::Arithmetic), None);
    assert_eq!(number(&Measure::CyclesForEachAccess, &[(&plain, &plain)], Mean::Arithmetic), None);
    assert_eq!(number(&over(Measure::PositionMapOver), &[(&plain, &oram)], Mean::Arithmetic), None);
    // A workload that fits the LLC makes no request.
    assert_eq!(number(&over(Measure::PositionMapOver), &[(&oram, &oram)], Mean::Arithmetic), None);
}

#[test]
fn energy_has_a_part_for_commands_and_a_part_for_time() {
    let with = |cycles, paths, busy_evicting, dram| {
        let mut outcome = outcome(cycles, paths, busy_evicting);
        outcome.memory.dram = dram;
        outcome
    };
    let many = DramTally { reads: 6000, writes: 6000, activates: 2400 };
    let few = DramTally { reads: 3000, writes: 3000, activates: 1200 };
    let baseline = with(32_000, [80, 10, 10, 0, 0], 0, many);
    let run = with(16_000, [40, 0, 0, 10, 0], 3200, few);
    let of = |measure: Measure, run| number(&measure, &[(run, &baseline)], Mean::Arithmetic);
    // Half of the commands in half of the time, for equal records and for half of the records.
    let half = of(over(Measure::LessEnergyThan), &run).unwrap();
    assert!((half - 2.0).abs() < 1e-9, "{half}");
    let short = Outcome { records: 50, ..run.clone() };
    let same = of(over(Measure::LessEnergyThan), &short).unwrap();
    assert!((same - 1.0).abs() < 1e-9, "{same}");
    // A fifth of the paths and a fifth of the time.
    let evictions = of(Measure::EvictionEnergy, &run).unwrap();
    assert!((evictions - 0.2).abs() < 1e-9, "{evictions}");
    // Ten microseconds of four channels with two ranks of eight chips, and a fifth of a row
    // activation for each line.
    let line = of(Measure::NanojoulesForEachLine, &baseline).unwrap();
    assert!((line - 10.739).abs() < 0.001, "{line}");
    let mut unknown_dram = ran(baseline.clone());
    unknown_dram.spec.dram.name = "mine".to_owned();
    let pair = [(&unknown_dram, &unknown_dram)];
    assert_eq!(Measure::NanojoulesForEachLine.evaluate(&pair, Mean::Arithmetic), None);
}

#[test]
fn a_context_switch_includes_evictions_and_the_move_of_the_tree_top() {
    let mut run = outcome(1000, [5, 0, 0, 6, 0], 60);
    let tally = run.memory.controller.as_mut().unwrap();
    (tally.context_switches, tally.flush_evictions) = (2, 5);
    (tally.busy_flushing, tally.moving_tree_top) = (50, 150);
    let of = |measure: Measure| number(&measure, &[(&run, &run)], Mean::Arithmetic);
    assert_eq!(of(Measure::ContextSwitchTime), Some(0.2));
    assert_eq!(of(Measure::EvictionsForEachSwitch), Some(2.5));
    let never = outcome(1000, [5, 0, 0, 6, 0], 60);
    let of = |measure: Measure| number(&measure, &[(&never, &never)], Mean::Arithmetic);
    assert_eq!(of(Measure::ContextSwitchTime), Some(0.0));
    assert_eq!(of(Measure::EvictionsForEachSwitch), None);
}

#[test]
fn pointers_are_as_large_as_the_paper_says() {
    let kib = |tree_top_levels, tree_top_ways| {
        let mut record = ran(Outcome::default());
        let oram = OramSpec { tree_top_levels, tree_top_ways, ..OramSpec::paper(24) };
        record.spec.oram = Some(oram);
        Measure::PointerTableKib.evaluate(&[(&record, &record)], Mean::Arithmetic)
    };
    // 1023 buckets of four pointers of 12 bits; 255 buckets of four pointers of 10 bits.
    assert_eq!(kib(10, Some(4)), Some(1023.0 * 4.0 * 12.0 / 8192.0));
    assert_eq!(kib(8, Some(4)), Some(255.0 * 4.0 * 10.0 / 8192.0));
    assert_eq!(kib(10, None), None);
}
