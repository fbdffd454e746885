//! Compares the processor with a literal, cycle-by-cycle model of its description, and with results
//! worked out by hand.

mod driver;
mod known;
mod literal;
mod memory;

use oblivio_sim::processor::{FETCH_ROOM_MAX, ProcessorSpec, Tally};
use oblivio_sim::trace::{AccessKind, Record};
use oblivio_sim::{Cycle, LINE_BYTES};
use proptest::prelude::*;

use driver::{Driver, Style};
use literal::Literal;
use memory::{Memory, MemoryBehaviour, MemoryRequest, TurnOrder};

/// All observable results of a run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    asked: Vec<(Cycle, MemoryRequest)>,
    end: Cycle,
    tally: Tally,
}

/// An early write-back: at the start of cycle `at`, the LRU line of `set` in the LLC is written to
/// memory.
#[derive(Clone, Copy, Debug)]
struct Cleaning {
    at: Cycle,
    set: u64,
}

fn specs() -> impl Strategy<Value = ProcessorSpec> {
    let widths = (1u64..6).prop_flat_map(|width| {
        let fewer = prop_oneof![Just(None), (1..=width).prop_map(Some)];
        (Just(width), fewer)
    });
    let pipeline = (widths, 1u64..40, 1u64..12);
    let llc = (1u64..5, 1usize..4, 0u64..12, any::<bool>());
    let rooms = (1u64..5, prop_oneof![Just(FETCH_ROOM_MAX), 1u64..5]);
    (pipeline, llc, rooms).prop_map(|(((width, retire_width), rob, depth), llc, rooms)| {
        let (sets, llc_ways, llc_latency, fetch_on_write_miss) = llc;
        ProcessorSpec {
            width,
            retire_width,
            rob,
            depth,
            llc_bytes: sets * llc_ways as u64 * LINE_BYTES,
            llc_ways,
            llc_latency,
            fetch_on_write_miss,
            write_back_room: rooms.0,
            fetch_room: rooms.1,
            ..ProcessorSpec::default()
        }
    })
}

fn traces() -> impl Strategy<Value = Vec<Record>> {
    let gap = prop_oneof![3 => Just(0), 3 => 0u32..8, 2 => 0u32..100, 1 => 0u32..400];
    let kind = prop_oneof![Just(AccessKind::Read), Just(AccessKind::Write)];
    let record = (gap, kind, 0u64..24).prop_map(|(gap, kind, line)| Record { gap, kind, line });
    prop::collection::vec(record, 0..80)
}

fn memories() -> impl Strategy<Value = MemoryBehaviour> {
    let every = prop_oneof![Just(0u64), 1u64..60];
    let order =
        prop_oneof![Just(TurnOrder::Oldest), Just(TurnOrder::Newest), Just(TurnOrder::Random)];
    let spread = prop_oneof![Just(0u64), 0u64..80];
    (every, order, 1u64..80, spread).prop_map(|(every, order, latency, spread)| MemoryBehaviour {
        every,
        order,
        latency,
        spread,
        stops: 0,
    })
}

fn cleanings() -> impl Strategy<Value = Vec<Cleaning>> {
    // Before cycle 0 there is nothing to clean.
    let cleaning = (1u64..2000, 0u64..4).prop_map(|(at, set)| Cleaning { at, set });
    prop::collection::vec(cleaning, 0..60).prop_map(|mut cleanings| {
        cleanings.sort_by_key(|cleaning| cleaning.at);
        cleanings
    })
}

fn run(
    spec: &ProcessorSpec,
    trace: &[Record],
    behaviour: MemoryBehaviour,
    style: Style,
) -> Outcome {
    Driver::new(spec, trace.iter().copied(), Memory::new(behaviour)).run(style, &[])
}

/// Runs a processor as in Table I, in front of a memory that serves the newest request every 300
/// cycles. The trace uses few sets of the LLC, each with more lines than ways. Every order of
/// pulling requests must give the results of the literal model.
#[test]
fn it_matches_the_literal_model_at_full_size() {
    let spec = ProcessorSpec { fetch_on_write_miss: true, ..ProcessorSpec::default() };
    let lines = spec.llc_bytes / LINE_BYTES;
    let record = |number: u64| {
        // Two records per line, close to each other.
        let coin = (number / 2).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let kind =
            if (coin + number).is_multiple_of(3) { AccessKind::Write } else { AccessKind::Read };
        // Few sets, each with more lines than it can hold.
        let line = coin % 16 + (coin >> 8) % 12 * lines;
        Record { gap: (coin >> 16) as u32 % 63, kind, line }
    };
    let trace: Vec<_> = (0..3000).map(record).collect();
    let behaviour = MemoryBehaviour {
        every: 300,
        order: TurnOrder::Newest,
        latency: 50,
        spread: 100,
        stops: 0,
    };
    let expected = Literal::new(&spec, Memory::new(behaviour)).run(&trace, &[]);
    let Tally { merges, dirty_victims, clean_victims, stalls, .. } = expected.tally;
    let happens = [merges, dirty_victims, clean_victims, stalls.rob];
    assert!(happens.iter().all(|count| *count > 50), "{:?}", expected.tally);
    for style in [Style::Stepwise, Style::Ahead, Style::AheadAndEarly] {
        assert_eq!(run(&spec, &trace, behaviour, style), expected, "{style:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(3000)
    })]

    /// Compares random runs with the literal model. The results must not depend on the distance of
    /// the horizon, or on the times at which answers are passed in.
    #[test]
    fn it_matches_the_literal_model(spec in specs(), trace in traces(), behaviour in memories()) {
        let expected = Literal::new(&spec, Memory::new(behaviour)).run(&trace, &[]);
        prop_assert_eq!(&run(&spec, &trace, behaviour, Style::Stepwise), &expected);
        prop_assert_eq!(&run(&spec, &trace, behaviour, Style::Ahead), &expected);
        // If answers can overtake each other, passing them in early is not in order of time.
        if spec.fetch_room == FETCH_ROOM_MAX || behaviour.spread == 0 {
            prop_assert_eq!(&run(&spec, &trace, behaviour, Style::AheadAndEarly), &expected);
        }
    }

    /// Compares runs with the literal model if each request that memory serves stops retirement, as
    /// the paths of an ORAM do.
    #[test]
    fn retirement_stops_when_requested(
        spec in specs(),
        trace in traces(),
        behaviour in memories(),
        stops in 1u64..120,
    ) {
        let spec = ProcessorSpec { fetch_room: 1, paths_stop_retirement: true, ..spec };
        let behaviour = MemoryBehaviour { stops, ..behaviour };
        let expected = Literal::new(&spec, Memory::new(behaviour)).run(&trace, &[]);
        prop_assert_eq!(&run(&spec, &trace, behaviour, Style::Stepwise), &expected);
    }

    #[test]
    fn lines_may_be_written_early(
        spec in specs(),
        trace in traces(),
        behaviour in memories(),
        cleanings in cleanings(),
    ) {
        let expected = Literal::new(&spec, Memory::new(behaviour)).run(&trace, &cleanings);
        let driver = Driver::new(&spec, trace.iter().copied(), Memory::new(behaviour));
        prop_assert_eq!(&driver.run(Style::Stepwise, &cleanings), &expected);
    }
}
