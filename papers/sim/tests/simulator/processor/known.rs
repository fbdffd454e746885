//! Compares with results worked out by hand. The processor has the parameters of Table I, with an
//! LLC latency of 10 cycles.

use oblivio_sim::Cycle;
use oblivio_sim::processor::{Processor, ProcessorEvent, ProcessorSpec, Request, Stalls};
use oblivio_sim::trace::{AccessKind, Record};

use super::driver::{Driver, Style};
use super::memory::{Memory, MemoryBehaviour, MemoryRequest, TurnOrder};
use super::{LINE_BYTES, Outcome};

const MEMORY: MemoryBehaviour =
    MemoryBehaviour { every: 0, order: TurnOrder::Oldest, latency: 400, spread: 0, stops: 0 };

fn reads(gap: u32, lines: impl IntoIterator<Item = u64>) -> Vec<Record> {
    lines.into_iter().map(|line| Record { gap, kind: AccessKind::Read, line }).collect()
}

fn writes(lines: impl IntoIterator<Item = u64>) -> Vec<Record> {
    lines.into_iter().map(|line| Record { gap: 0, kind: AccessKind::Write, line }).collect()
}

fn run(spec: &ProcessorSpec, trace: Vec<Record>) -> Outcome {
    Driver::new(spec, trace.into_iter(), Memory::new(MEMORY)).run(Style::Ahead, &[])
}

/// Instruction 31 is the first read. It is fetched in cycle 31 / 4 = 7, its request reaches memory
/// at 17, and its line arrives at 417. Reads 2, 3 and 4 are in the ROB with it, 8 cycles apart:
/// 425, 433, 441. Read 5 is instruction 159 = 31 + 128. It takes the entry of read 1, is fetched at
/// 417, and has its line at 827: 410 cycles later. The same holds for the next three. In all there
/// are 250 such groups, and the last read of the last group has its line at 441 + 249 * 410.
#[test]
fn four_misses_overlap_in_a_rob_of_128() {
    let outcome = run(&ProcessorSpec::default(), reads(31, 0..1000));
    assert_eq!(outcome.end, 441 + 249 * 410);
    assert_eq!(
        outcome.asked[3..5],
        [(41, MemoryRequest::Fetch(3)), (427, MemoryRequest::Fetch(4))]
    );
    // From cycle 40 on, instruction 159 waits for room in the ROB. Later groups fetch during 32 of
    // the 410 cycles.
    assert_eq!(outcome.tally.stalls.rob, (417 - 40) + 248 * (410 - 32));
    assert_eq!((outcome.tally.instructions, outcome.tally.read_misses), (32_000, 1000));
}

/// With one read at a time in the ROB, the first line arrives at 417, and each further line 410
/// cycles after the previous one. A large ROB with one fetch at a time behaves in the same way: the
/// next read is fetched in the cycle of the answer.
#[test]
fn one_miss_at_a_time() {
    let small_rob = ProcessorSpec { rob: 32, ..ProcessorSpec::default() };
    let one_fetch = ProcessorSpec { fetch_room: 1, ..ProcessorSpec::default() };
    for spec in [small_rob, one_fetch] {
        assert_eq!(run(&spec, reads(31, 0..1000)).end, 417 + 999 * 410);
    }
}

/// 2^32 instructions at 4 per cycle. The last one is fetched in cycle 2^30 - 1 and completes 10
/// cycles later. The simulation takes no longer than for a short trace.
#[test]
fn instructions_without_memory_run_at_full_width() {
    let store = Record { gap: u32::MAX, kind: AccessKind::Write, line: 0 };
    let outcome = run(&ProcessorSpec::default(), vec![store]);
    assert_eq!(outcome.end, (1 << 30) - 1 + 10);
    assert_eq!(outcome.tally.stalls, Stalls::default());
}

/// While the ROB has room, four instructions are fetched per cycle; later only two, the number that
/// retires. The 2^30 instructions retire two per cycle from cycle 10 on.
#[test]
fn instructions_without_memory_retire_at_the_retire_width() {
    let store = Record { gap: (1 << 30) - 1, kind: AccessKind::Write, line: 0 };
    let spec = ProcessorSpec { retire_width: Some(2), ..ProcessorSpec::default() };
    let outcome = run(&spec, vec![store]);
    assert_eq!(outcome.end, (1 << 29) - 1 + 10);
    assert_eq!(outcome.tally.stalls, Stalls::default());
}

/// A ROB of 8 empties once per 10 cycles, the depth of the pipeline. 800 instructions take 100
/// rounds. In each round, the last instruction is fetched one cycle after the first.
#[test]
fn a_rob_smaller_than_the_pipeline_holds_it_up() {
    let spec = ProcessorSpec { rob: 8, ..ProcessorSpec::default() };
    let outcome = run(&spec, vec![Record { gap: 799, kind: AccessKind::Write, line: 0 }]);
    assert_eq!(outcome.end, 99 * 10 + 1 + 10);
}

/// The second read is instruction 1. It is also fetched in cycle 0, and completes when its line
/// arrives, at 410. From then on the ROB is full and 4 instructions retire per cycle. The last
/// instruction, number 4001, retires a thousand cycles later. It is a read that hits the LLC. It
/// was fetched 32 cycles before it retired, and completed 20 cycles after its fetch.
#[test]
fn reads_of_a_line_under_way_wait_together() {
    let mut trace = reads(0, [7, 7, 7]);
    trace[2].gap = 3999;
    let outcome = run(&ProcessorSpec::default(), trace);
    assert_eq!(outcome.asked, [(10, MemoryRequest::Fetch(7))]);
    assert_eq!((outcome.tally.merges, outcome.tally.read_hits), (1, 2));
    assert_eq!(outcome.end, 410 + 4001 / 4);
}

/// The first read hits the filled LLC: it is fetched in cycle 7, and completes 20 cycles later. The
/// second read evicts a dirty line, which is written back.
#[test]
fn an_llc_that_was_filled_hits() {
    let spec = ProcessorSpec { llc_bytes: LINE_BYTES, llc_ways: 1, ..ProcessorSpec::default() };
    let trace = [writes([0, 1]), reads(31, [1, 2])].concat();
    let mut processor = Processor::new(&spec, trace.into_iter()).unwrap();
    processor.fill_llc(2, &mut |_| Ok(())).unwrap();
    let ProcessorEvent::Request { at: 25, request: Request::Fetch { id, line: 2 } } =
        processor.next(15)
    else {
        panic!("the second read is fetched in cycle 15")
    };
    let write_back = ProcessorEvent::Request { at: 25, request: Request::WriteBack { line: 1 } };
    assert_eq!(processor.next(15), write_back);
    assert_eq!(processor.next(15), ProcessorEvent::Blocked);
    processor.answer(id, 30);
    assert_eq!(
        processor.next(15),
        ProcessorEvent::Done { at: 35 },
        "not before a hit would be complete"
    );
    assert_eq!(processor.tally().read_hits, 1);
}

/// An LLC of one line, room for two write-backs, and a memory that accepts one every 100 cycles.
/// Write 0 finds the LLC empty. The victims of writes 1 and 2 take all the room in cycle 0. Write 3
/// is fetched at 100, and write `n` at `100 * (n - 2)`.
#[test]
fn write_backs_that_memory_does_not_take_hold_up_fetch() {
    let spec = ProcessorSpec {
        llc_bytes: LINE_BYTES,
        llc_ways: 1,
        write_back_room: 2,
        ..ProcessorSpec::default()
    };
    let mut processor = Processor::new(&spec, writes(0..10).into_iter()).unwrap();
    let mut asked = Vec::new();
    let mut taken = (1..).map(|turn| 100 * turn);
    let end = loop {
        match processor.next(Cycle::MAX) {
            ProcessorEvent::Request { at, .. } => asked.push(at),
            ProcessorEvent::Blocked => processor.written_back(taken.next().unwrap()),
            ProcessorEvent::Done { at } => break at,
            ProcessorEvent::Idle { .. } | ProcessorEvent::WarmupDone { .. } => unreachable!(),
        }
    };
    assert_eq!(asked, [10, 10, 110, 210, 310, 410, 510, 610, 710]);
    assert_eq!(end, 710);
    assert_eq!(processor.tally().stalls, Stalls { write_backs: 700 - 7, ..Stalls::default() });
}

/// An LLC of one line, room for one write-back, and a memory that never accepts it. The instruction
/// that would evict the second dirty line waits until that line is written early. The LLC does not
/// change past the horizon.
#[test]
fn a_line_written_early_is_not_in_the_way() {
    let spec = ProcessorSpec {
        llc_bytes: LINE_BYTES,
        llc_ways: 1,
        write_back_room: 1,
        ..ProcessorSpec::default()
    };
    let trace = [writes(0..3), reads(399, [2])].concat();
    let mut processor = Processor::new(&spec, trace.into_iter()).unwrap();
    assert_eq!(
        processor.next(49),
        ProcessorEvent::Request { at: 10, request: Request::WriteBack { line: 0 } }
    );
    assert_eq!(processor.next(49), ProcessorEvent::Blocked);
    assert!(!processor.written_early(0, 50) && processor.written_early(1, 50));
    let dropped = ProcessorEvent::Request { at: 60, request: Request::Dropped { line: 1 } };
    assert_eq!(processor.next(50), dropped);
    // The read comes 400 instructions later.
    assert_eq!(processor.next(50), ProcessorEvent::Idle { at: 150 });
    assert_eq!(processor.next(150), ProcessorEvent::Done { at: 170 });
}

#[test]
fn an_empty_trace_is_over_at_once() {
    let mut processor = Processor::new(&ProcessorSpec::default(), [].into_iter()).unwrap();
    assert_eq!(processor.next(0), ProcessorEvent::Done { at: 0 });
    assert_eq!(processor.next(0), ProcessorEvent::Done { at: 0 });
}

/// Makes a processor with one fetch in flight, requested at 10.
fn asked_once() -> (Processor<impl Iterator<Item = Record>>, oblivio_sim::processor::FetchId) {
    let spec = ProcessorSpec { fetch_room: 2, ..ProcessorSpec::default() };
    let mut processor = Processor::new(&spec, reads(0, 0..2).into_iter()).unwrap();
    let ProcessorEvent::Request { at: 10, request: Request::Fetch { id, .. } } = processor.next(0)
    else {
        panic!("the first instruction misses")
    };
    (processor, id)
}

#[test]
#[should_panic(expected = "answered twice")]
fn nothing_is_answered_twice() {
    let (mut processor, id) = asked_once();
    processor.answer(id, 10);
    processor.answer(id, 11);
}

#[test]
#[should_panic(expected = "was requested at 10")]
fn nothing_is_answered_before_its_request() {
    let (mut processor, id) = asked_once();
    processor.answer(id, 9);
}

/// The first line to arrive makes room, although the other answer is passed in first.
#[test]
fn answers_that_make_room_may_overtake_each_other() {
    let spec = ProcessorSpec { fetch_room: 2, ..ProcessorSpec::default() };
    let mut processor = Processor::new(&spec, reads(0, 0..3).into_iter()).unwrap();
    let [first, second] = [(); 2].map(|()| match processor.next(19) {
        ProcessorEvent::Request { request: Request::Fetch { id, .. }, .. } => id,
        other => panic!("it misses: {other:?}"),
    });
    assert_eq!(processor.next(19), ProcessorEvent::Blocked);
    processor.answer(second, 30);
    assert_eq!(processor.next(19), ProcessorEvent::Idle { at: 30 });
    processor.answer(first, 20);
    assert_eq!(processor.next(19), ProcessorEvent::Idle { at: 20 });
    assert!(matches!(processor.next(20), ProcessorEvent::Request { at: 30, .. }));
}

/// From cycle 10 on, four instructions retire per cycle, but none in the cycles 12 to 49. So 8 of
/// 400 instructions retire before the stop, and the last instruction retires in cycle 147. The ROB
/// of 128 is full when 136 instructions are fetched, in cycle 33. Fetch stalls in the cycles 34 to
/// 49.
#[test]
fn a_path_stops_retirement_until_it_is_read() {
    let spec =
        ProcessorSpec { fetch_room: 1, paths_stop_retirement: true, ..ProcessorSpec::default() };
    let trace = vec![Record { gap: 399, kind: AccessKind::Write, line: 0 }];
    let mut processor = Processor::new(&spec, trace.into_iter()).unwrap();
    assert_eq!(processor.next(11), ProcessorEvent::Idle { at: 99 });
    processor.stop_retirement(12, 50);
    assert_eq!(processor.next(49), ProcessorEvent::Idle { at: 50 });
    assert_eq!(processor.next(120), ProcessorEvent::Idle { at: 125 });
    assert_eq!(processor.next(147), ProcessorEvent::Done { at: 147 });
    assert_eq!(processor.tally().stalls, Stalls { rob: 16, ..Stalls::default() });
}

#[test]
#[should_panic(expected = "no place is in use")]
fn no_write_back_is_taken_that_was_not_asked_for() {
    let (mut processor, _) = asked_once();
    processor.written_back(10);
}
