//! Measures the records of a trace per second that the processor model handles, with a memory of
//! fixed latency.

#![expect(clippy::unwrap_used, reason = "what cannot run cannot be measured")]

use divan::Bencher;
use divan::counter::ItemsCount;
use oblivio_sim::Cycle;
use oblivio_sim::processor::{Processor, ProcessorEvent, ProcessorSpec, Request};
use oblivio_sim::trace::{AccessKind, Record};

const RECORDS: usize = 1 << 20;

/// The numbers of lines that the traces use: a quarter of the LLC, the whole LLC, and 16 times its
/// size.
const LINES: [u64; 3] = [1 << 13, 1 << 15, 1 << 19];

fn main() {
    divan::main();
}

/// Makes records for random lines, a quarter of them writes, 31 instructions apart on average.
fn trace(lines: u64) -> Vec<Record> {
    let mut state = 1u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 33
    };
    let record = |_| Record {
        gap: (draw() % 63) as u32,
        kind: if draw().is_multiple_of(4) { AccessKind::Write } else { AccessKind::Read },
        line: draw() % lines,
    };
    (0..RECORDS).map(record).collect()
}

#[divan::bench(args = LINES, sample_count = 10)]
fn fixed_latency(bencher: Bencher, lines: u64) {
    let trace = trace(lines);
    bencher.counter(ItemsCount::new(RECORDS)).bench_local(|| {
        let records = trace.iter().copied();
        let mut processor = Processor::new(&ProcessorSpec::default(), records).unwrap();
        loop {
            match processor.next(Cycle::MAX) {
                ProcessorEvent::Request { at, request: Request::Fetch { id, .. } } => {
                    processor.answer(id, at + 400);
                }
                ProcessorEvent::Request { at, request: Request::WriteBack { .. } } => {
                    processor.written_back(at)
                }
                ProcessorEvent::Done { at } => return at,
                _ => {}
            }
        }
    });
}
