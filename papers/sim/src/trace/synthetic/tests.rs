use super::*;
use crate::trace::{AccessKind, TraceStats};

const PLAIN: Synthetic = Synthetic {
    pattern: Pattern::PointerChase,
    lines: 64,
    gap: Gap::Constant(9),
    records: 6400,
    seed: 1,
};

fn scan(writes: f64) -> Pattern {
    Pattern::Workload { workload: Workload::Scan, writes }
}

fn made(pattern: Pattern) -> Vec<Record> {
    Synthetic { pattern, ..PLAIN }.make("made").unwrap().records().to_vec()
}

fn lines(records: &[Record]) -> Vec<u64> {
    records.iter().map(|record| record.line).collect()
}

fn writes(records: &[Record]) -> usize {
    records.iter().filter(|record| record.kind == AccessKind::Write).count()
}

#[test]
fn scans_and_strides_go_around() {
    let records = made(scan(0.0));
    assert!(lines(&records).into_iter().eq((0..6400).map(|i| i % 64)));
    assert!(records.iter().all(|record| record.gap == 9 && record.kind == AccessKind::Read));
    let strided = made(Pattern::Stride { lines: 64 * 5 + 24, writes: 1.0 });
    assert!(lines(&strided).into_iter().eq((0..6400).map(|i| i * 24 % 64)));
    assert_eq!(writes(&strided), 6400);
}

#[test]
fn a_chase_is_one_cycle_through_all_lines() {
    for lines_max in [1, 2, 64, 1000] {
        let synthetic = Synthetic { lines: lines_max, records: 2000, ..PLAIN };
        let records = synthetic.make("chase").unwrap().records().to_vec();
        let (lines, around) = (lines(&records), lines_max as usize);
        let mut first = lines[..around].to_vec();
        first.sort_unstable();
        assert!(first.into_iter().eq(0..lines_max));
        assert!(lines.iter().zip(&lines[around..]).all(|(line, later)| line == later));
        assert_eq!(writes(&records), 0);
    }
    let chase = lines(&made(Pattern::PointerChase));
    let neighbours = chase.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count();
    assert!(neighbours < 6400 / 8, "the order is random");
}

#[test]
fn stores_only_write_and_updates_write_what_they_read() {
    let stores = made(Pattern::StoreStream);
    assert_eq!((lines(&stores), writes(&stores)), (lines(&made(scan(0.0))), 6400));
    let updates = made(Pattern::HashUpdates);
    for pair in updates.chunks(2) {
        assert_eq!((pair[0].kind, pair[0].gap), (AccessKind::Read, 9));
        assert_eq!(pair[1], Record { kind: AccessKind::Write, gap: 0, ..pair[0] });
    }
    let stats = TraceStats::from_trace(
        &Synthetic { pattern: Pattern::HashUpdates, ..PLAIN }.make("a").unwrap(),
    );
    assert_eq!((stats.lines, stats.reads_per_1000()), (64, Some(100.0)));
}

#[test]
fn coins_fall_as_often_as_they_should() {
    for workload in [Workload::Scan, Workload::Uniform, Workload::Zipf] {
        let records = made(Pattern::Workload { workload, writes: 0.25 });
        assert!((1450..1750).contains(&writes(&records)), "{workload}: {}", writes(&records));
    }
    for mean in [0.0, 0.5, 49.0] {
        let synthetic = Synthetic { gap: Gap::Geometric { mean }, records: 100_000, ..PLAIN };
        let trace = synthetic.make("gaps").unwrap();
        let gaps = || trace.records().iter().map(|record| f64::from(record.gap));
        let measured = gaps().sum::<f64>() / 100_000.0;
        assert!((measured - mean).abs() <= 0.02 * mean, "{mean}: {measured}");
        // A constant would have the same mean, but another fraction of zeros.
        let zeros = gaps().filter(|gap| *gap == 0.0).count() as f64 / 100_000.0;
        assert!((zeros - 1.0 / (1.0 + mean)).abs() < 0.01, "{mean}: {zeros}");
    }
}

#[test]
fn the_seed_determines_the_trace() {
    for pattern in [
        Pattern::Workload { workload: Workload::Zipf, writes: 0.5 },
        Pattern::PointerChase,
        Pattern::HashUpdates,
    ] {
        let again = Synthetic { pattern, ..PLAIN };
        assert_eq!(again.make("a").unwrap(), again.make("a").unwrap());
        assert_ne!(again.make("a").unwrap(), Synthetic { seed: 2, ..again }.make("a").unwrap());
    }
}

#[test]
fn what_cannot_be_made_is_refused_with_the_number_to_change() {
    let geometric = |mean| Synthetic { gap: Gap::Geometric { mean }, ..PLAIN };
    for (synthetic, why) in [
        (Synthetic { records: 0, ..PLAIN }, "records"),
        (Synthetic { records: RECORDS_MAX + 1, ..PLAIN }, "records"),
        (Synthetic { lines: 0, ..PLAIN }, "lines"),
        (Synthetic { lines: CHASE_LINES_MAX + 1, ..PLAIN }, "lines"),
        (Synthetic { lines: LINES_MAX + 1, pattern: Pattern::StoreStream, ..PLAIN }, "lines"),
        (Synthetic { pattern: scan(1.01), ..PLAIN }, "fraction of writes"),
        (Synthetic { pattern: scan(f64::NAN), ..PLAIN }, "fraction of writes"),
        (Synthetic { pattern: Pattern::Stride { lines: 0, writes: 0.0 }, ..PLAIN }, "stride"),
        (geometric(-1.0), "mean gap"),
        (geometric(f64::INFINITY), "mean gap"),
    ] {
        let error = synthetic.make("a").unwrap_err().to_string();
        assert!(error.contains(why), "{synthetic:?}: {error}");
    }
    geometric(f64::MIN_POSITIVE).make("a").unwrap();
    geometric(f64::from(u32::MAX)).make("a").unwrap();
}
