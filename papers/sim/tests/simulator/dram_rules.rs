//! Tests of the DRAM scheduler with the independent checker.

use oblivio_sim::dram::checker::Checker;
use oblivio_sim::dram::{Clock, Command, Completion, Dram, DramSpec, Observer, Request, Timing};
use oblivio_sim::trace::AccessKind;
use proptest::prelude::*;

/// Parameters of a random load. `longest_pause` is the maximum number of clocks between two
/// arrivals.
#[derive(Clone, Copy, Debug)]
struct Load {
    requests: u64,
    writes_percent: u64,
    longest_pause: u64,
    /// The number of rows of each bank from which lines are chosen.
    rows: u64,
    /// The number of neighbouring lines from which a line is chosen, within a row of all channels.
    columns: u64,
    seed: u64,
}

impl Load {
    fn requests(self, spec: &DramSpec, channels: u32) -> Vec<Request> {
        let mut state = self.seed;
        let mut below = |bound: u64| {
            // Knuth's MMIX generator; good enough here.
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let span = u64::from(channels) * spec.row_lines();
        let banks = u64::from(spec.ranks * spec.banks);
        let mut arrival = 0;
        let request = |id| {
            arrival += below(self.longest_pause + 1);
            let row = below(self.rows) * banks + below(banks);
            let line = row * span + below(self.columns) % span;
            let kind =
                if below(100) < self.writes_percent { AccessKind::Write } else { AccessKind::Read };
            Request { id, line, kind, arrival }
        };
        (0..self.requests).map(request).collect()
    }
}

fn any_load() -> impl Strategy<Value = Load> {
    let pauses = prop_oneof![Just(0u64), Just(3), Just(20), Just(3000)];
    (
        1u64..1500,
        0u64..=100,
        pauses,
        1u64..5,
        prop_oneof![Just(1u64), Just(9), Just(600)],
        any::<u64>(),
    )
        .prop_map(|(requests, writes_percent, longest_pause, rows, columns, seed)| Load {
            requests,
            writes_percent,
            longest_pause,
            rows,
            columns,
            seed,
        })
}

/// Runs a load on a DRAM with the parameters `scheduled`. Returns the completions, and a checker
/// that has compared all commands with the rules of `allowed`.
fn run(
    scheduled: &DramSpec,
    allowed: &DramSpec,
    channels: u32,
    load: Load,
) -> (Vec<Completion>, Checker) {
    let checker = Checker::new(allowed, channels);
    let mut dram = Dram::observed(scheduled, channels, checker).unwrap();
    for request in load.requests(scheduled, channels) {
        dram.enqueue(request).unwrap();
    }
    let mut done = Vec::new();
    dram.run_until_idle(&mut done);
    (done, dram.into_observer())
}

fn ids(done: &[Completion]) -> Vec<u64> {
    let mut ids: Vec<_> = done.iter().map(|done| done.id).collect();
    ids.sort_unstable();
    ids
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn no_rule_is_broken_and_each_request_is_done_once(
        load in any_load(),
        part in 0usize..5,
        channels in prop_oneof![Just(1u32), Just(2), Just(4)],
        small in any::<bool>(),
    ) {
        let mut spec = DramSpec::built_ins().unwrap().swap_remove(part);
        if small {
            // Many refreshes, and windows that are always full.
            spec.timing.refi = 700;
            (spec.queues.read, spec.queues.write) = (3, 4);
            (spec.queues.drain_high, spec.queues.drain_low) = (4, 1);
        }
        let (done, checker) = run(&spec, &spec, channels, load);
        prop_assert_eq!(checker.verdict(), Ok(()));
        prop_assert_eq!(ids(&done), (0..load.requests).collect::<Vec<_>>());
        prop_assert!(done.is_sorted_by_key(|done| done.clock));
    }

    /// Checks that the completions do not depend on which functions run the DRAM, or on how far
    /// each call runs it.
    #[test]
    fn all_ways_to_run_give_the_same_completions(load in any_load(), step in 1u64..500) {
        let spec = DramSpec::built_in("DDR3-1600").unwrap();
        let (done, _) = run(&spec, &spec, 4, load);
        let mut dram = Dram::new(&spec, 4).unwrap();
        let mut stepped = dram.clone();
        for request in load.requests(&spec, 4) {
            dram.enqueue(request).unwrap();
            stepped.enqueue(request).unwrap();
        }
        let mut one_by_one: Vec<_> = std::iter::from_fn(|| dram.next_completion()).collect();
        prop_assert!(one_by_one.is_sorted_by_key(|done| done.clock));
        let mut in_steps = Vec::new();
        for clock in (0..).step_by(step as usize) {
            stepped.run_until(clock, &mut in_steps);
            if in_steps.len() == done.len() {
                break;
            }
        }
        let mut done = done;
        for list in [&mut done, &mut one_by_one, &mut in_steps] {
            list.sort_by_key(|done| (done.clock, done.id));
        }
        prop_assert_eq!(&one_by_one, &done);
        prop_assert_eq!(&in_steps, &done);
    }

    /// Checks that a read is complete before the next write to the same line.
    #[test]
    fn requests_for_a_line_keep_their_order(load in any_load()) {
        let spec = DramSpec::built_in("DDR3-1600").unwrap();
        let load = Load { columns: 1, rows: 1, ..load };
        let (done, _) = run(&spec, &spec, 1, load);
        let mut clocks = vec![0; done.len()];
        for Completion { id, clock } in done {
            clocks[id as usize] = clock;
        }
        let requests = load.requests(&spec, 1);
        for (first, read) in requests.iter().enumerate() {
            let next = requests[first + 1..].iter().find(|next| next.line == read.line);
            if let Some(next) =
                next.filter(|next| (read.kind, next.kind) == (AccessKind::Read, AccessKind::Write))
            {
                prop_assert!(clocks[first] < clocks[next.id as usize]);
            }
        }
    }
}

#[test]
fn a_read_of_a_line_with_a_waiting_write_takes_no_burst() {
    let spec = DramSpec::built_in("DDR3-1600").unwrap();
    let mut dram = Dram::new(&spec, 1).unwrap();
    let request = |id, line, kind, arrival| Request { id, line, kind, arrival };
    dram.enqueue(request(0, 0, AccessKind::Write, 0)).unwrap();
    dram.enqueue(request(1, 0, AccessKind::Read, 5)).unwrap();
    let mut done = Vec::new();
    assert_eq!(dram.finish_reads(&mut done), Some(6));
    assert_eq!(done, [Completion { id: 1, clock: 6 }]);
    // Row, write, burst: 11 + 5 + 4. The clock is not past this point, so the next request may
    // follow at once.
    assert_eq!(dram.next_completion(), Some(Completion { id: 0, clock: 20 }));
    assert_eq!(dram.next_completion(), None);
    dram.enqueue(request(2, 1, AccessKind::Read, 30)).unwrap();
    assert_eq!(dram.run_until_idle(&mut done), Some(30 + 11 + 4));
    assert!(dram.enqueue(request(3, dram.lines(), AccessKind::Read, 0)).is_err());
}

#[test]
fn writes_wait_for_reads_until_the_high_mark_and_then_go_until_the_low_one() {
    let spec = DramSpec::built_in("DDR3-1600").unwrap();
    let high = u64::from(spec.queues.drain_high);
    for (writes, before_the_last_read) in
        [(high - 1, 0), (high, spec.queues.drain_high - spec.queues.drain_low)]
    {
        let mut dram = Dram::new(&spec, 1).unwrap();
        for line in 0..128 {
            let kind = if line < writes { AccessKind::Write } else { AccessKind::Read };
            dram.enqueue(Request { id: line, line, kind, arrival: 0 }).unwrap();
        }
        let mut done = Vec::new();
        dram.finish_reads(&mut done);
        let written = done.iter().filter(|done| done.id < writes).count();
        assert_eq!(written, before_the_last_read as usize);
    }
}

/// Returns a part with changed timings, none of which follows from the others. So each timing can
/// be violated alone.
fn tight(part: &str) -> DramSpec {
    let mut spec = DramSpec::built_in(part).unwrap();
    spec.timing.refi = 900;
    spec.timing.rc = spec.timing.ras + spec.timing.rp + 5;
    spec.timing.ccd = spec.burst_clocks + 1;
    spec.timing.rtrs = 3;
    if let Some(groups) = &mut spec.bank_groups {
        groups.ccd = spec.timing.ccd + 2;
    }
    spec
}

/// Schedules five loads with the timings of `part` after `change`, and checks the commands against
/// the unchanged timings. Returns the first violation, if any.
fn violation(part: &str, change: impl Fn(&mut DramSpec)) -> Option<String> {
    let allowed = tight(part);
    let mut scheduled = allowed.clone();
    change(&mut scheduled);
    let loads = [(50, 4, 600), (50, 1, 600), (0, 4, 9), (100, 4, 9), (20, 2, 9)];
    loads.into_iter().find_map(|(writes_percent, rows, columns)| {
        let load =
            Load { requests: 4000, writes_percent, longest_pause: 0, rows, columns, seed: 1 };
        run(&scheduled, &allowed, 1, load).1.verdict().err()
    })
}

#[test]
fn a_scheduler_that_is_a_clock_too_fast_is_caught_for_each_timing() {
    type Pick = fn(&mut Timing) -> &mut u32;
    let timings: [(&str, Pick); 14] = [
        ("data bus", |t| &mut t.cas),
        ("tRCD", |t| &mut t.rcd),
        ("tRP", |t| &mut t.rp),
        ("tRAS", |t| &mut t.ras),
        ("tRC", |t| &mut t.rc),
        ("tRRD", |t| &mut t.rrd),
        ("tFAW", |t| &mut t.faw),
        ("tWR", |t| &mut t.wr),
        ("tWTR", |t| &mut t.wtr),
        ("tRTP", |t| &mut t.rtp),
        ("tCCD", |t| &mut t.ccd),
        ("", |t| &mut t.cwd),
        ("data bus", |t| &mut t.rtrs),
        ("tRFC", |t| &mut t.rfc),
    ];
    for part in ["DDR3-1600", "DDR4-2400"] {
        assert_eq!(violation(part, |_| {}), None);
        for (rule, pick) in timings {
            let found = violation(part, |spec| *pick(&mut spec.timing) -= 1);
            assert!(found.as_ref().is_some_and(|found| found.contains(rule)), "{rule}: {found:?}");
        }
    }
}

#[test]
fn bank_groups_and_bursts_that_are_a_clock_too_fast_are_caught() {
    let part = "DDR4-2400";
    let shorter = |change: fn(&mut DramSpec)| violation(part, change).unwrap_or_default();
    let group = |spec: &mut DramSpec| spec.bank_groups.unwrap();
    assert!(group(&mut tight(part)).ccd > tight(part).timing.ccd);
    let found = [
        ("tCCD", shorter(|spec| spec.bank_groups.as_mut().unwrap().ccd -= 1)),
        ("tRRD", shorter(|spec| spec.bank_groups.as_mut().unwrap().rrd -= 1)),
        ("tWTR", shorter(|spec| spec.bank_groups.as_mut().unwrap().wtr -= 1)),
        // A shorter burst violates whichever rule comes first after it.
        ("", shorter(|spec| spec.burst_clocks -= 1)),
    ];
    for (rule, found) in found {
        assert!(!found.is_empty() && found.contains(rule), "{rule}: {found}");
    }
}

#[test]
fn a_rank_that_is_refreshed_a_clock_too_seldom_is_caught_in_time() {
    let allowed = tight("DDR3-1600");
    let mut scheduled = allowed.clone();
    scheduled.timing.refi += 1;
    let refi = Clock::from(allowed.timing.refi);
    for (spec, caught) in [(&allowed, false), (&scheduled, true)] {
        let mut dram = Dram::observed(spec, 1, Checker::new(&allowed, 1)).unwrap();
        // By then, the refreshes are one interval later than the ranks' turns can explain.
        dram.run_until((3 * refi + 10) * refi, &mut Vec::new());
        assert_eq!(dram.observer().verdict().is_err_and(|what| what.contains("tREFI")), caught);
    }
}

/// A checker that sees only the commands of channel 0.
struct Deaf(Checker);

impl Observer for Deaf {
    fn observe(&mut self, command: Command) {
        if command.channel == 0 {
            self.0.observe(command);
        }
    }

    fn passed(&mut self, clock: Clock) {
        self.0.passed(clock);
    }
}

#[test]
fn a_channel_without_commands_or_refreshes_is_caught() {
    let spec = DramSpec::built_in("DDR3-1600").unwrap();
    let refi = Clock::from(spec.timing.refi);
    for channels in [1, 2] {
        let deaf = Deaf(Checker::new(&spec, channels));
        let mut dram = Dram::observed(&spec, channels, deaf).unwrap();
        dram.run_until(3 * refi, &mut Vec::new());
        let verdict = dram.observer().0.verdict();
        let is_caught = verdict.is_err_and(|what| what.contains("channel 1: tREFI"));
        assert_eq!(is_caught, channels == 2);
    }
}
