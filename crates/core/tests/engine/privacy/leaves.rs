//! Tests of the leaves that storage sees.

use oblivio_core::view::Operation;
use oblivio_core::{HitPolicy, Integrity};
use oblivio_testkit::statistics::{
    Return, Verdicts, contingency, histogram, homogeneity, repeats, returns, serial_correlation,
    uniformity, uniformity_of_pairs,
};
use oblivio_testkit::workload::Request;

use super::FALSE_ALARMS;
use super::run::{CAPACITY, LEAVES, Run, Scheme, Setup, States};
use super::trips::{Purpose, leaves, schedule, trips};

pub(crate) const ACCESSES: usize = 12_000;

/// Number of bins per value in tests of pairs of values.
const PAIR_BINS: u64 = 8;

/// Minimum number of samples for a row of a contingency table with a column per leaf.
const ROW_MIN: usize = 30 * LEAVES as usize;

#[test]
fn are_uniform_independent_and_fresh() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    for scheme in Scheme::each(3) {
        let states = judge_all(Setup::new(scheme, ACCESSES), &mut verdicts);
        states.assert_rare_ones_occurred(100);
        assert!(states.repeats_in_batch >= 1000, "{states:?}");
    }
    verdicts.conclude();
}

/// Tests that all leaves of Freecursive ORAM are uniform, independent and used once: those of data,
/// of the position map, and of blocks moved by group resets.
#[test]
fn of_freecursive_are_uniform_independent_and_fresh() {
    let mut verdicts = Verdicts::new(FALSE_ALARMS);
    for scheme in [Scheme::Path, Scheme::Raw(3)] {
        for integrity in [Integrity::None, Integrity::Pmmac] {
            let setup = Setup { integrity, ..Setup::freecursive(scheme, ACCESSES) };
            let states = judge_all(setup, &mut verdicts);
            states.assert_rare_ones_occurred(100);
            states.assert_rare_ones_of_the_frontend_occurred(10_000);
        }
    }
    verdicts.conclude();
}

/// Tests the leaves of all runs of `alone`, and of the same setup with batches and a tree top. Also
/// tests that the leaves of each workload have the same distribution as those of the first.
pub(crate) fn judge_all(alone: Setup, verdicts: &mut Verdicts) -> States {
    let mut states = States::default();
    let tree_top_levels = alone.tree_top_levels.max(2);
    for setup in [alone, Setup { batched: true, tree_top_levels, seed: 2, ..alone }] {
        let mut first = None;
        for run in setup.runs() {
            states += run.states;
            let leaves = leaves(&run, Purpose::Access);
            judge(&run, &leaves, verdicts);
            let counts = histogram(leaves, LEAVES, LEAVES);
            let first = first.get_or_insert_with(|| counts.clone());
            if *first != counts {
                let name = format!("{} like the first, {:?}", run.workload, run.setup);
                verdicts.add(name, homogeneity(first, &counts));
            }
        }
    }
    states
}

/// Tests the leaves of one run as in [`judge_leaves`]. Also tests that they do not depend on the
/// address, on the operation, or on whether an access is to data or to the position map.
pub(crate) fn judge(run: &Run, leaves: &[u64], verdicts: &mut Verdicts) {
    let name = format!("{}, {:?}", run.workload, run.setup);
    let are_independent = run.setup.hits == HitPolicy::Access;
    judge_leaves(&name, Some(&run.accesses), leaves, LEAVES, are_independent, verdicts);
    let mut add = |test: &str, p_value| verdicts.add(format!("{test}, {name}"), p_value);
    let mut addresses: Vec<_> = run.accesses.iter().map(|request| request.address).collect();
    addresses.sort_unstable();
    let median = addresses[addresses.len() / 2];
    if let Some(p_value) = independence(run, leaves, |request| request.address < median) {
        add("independent of the address", p_value);
    }
    if let Some(p_value) = independence(run, leaves, |request| request.is_write) {
        add("independent of the operation", p_value);
    }
    if let Some(p_value) = independence(run, leaves, |request| request.address < CAPACITY) {
        add("the same for data and position map", p_value);
    }
}

/// Tests that `leaves`, which are numbers below `range`, are uniform and serially independent. If
/// the requests are known, also tests whether a block's leaf depends on the leaf of the block's
/// previous access.
///
/// `are_independent` is false if hits are served, because paths then [depend](HitPolicy::Serve) on
/// earlier ones. One test is skipped then.
pub(crate) fn judge_leaves(
    name: &str,
    accesses: Option<&[Request]>,
    leaves: &[u64],
    range: u64,
    are_independent: bool,
    verdicts: &mut Verdicts,
) {
    let mut add = |test: &str, p_value| verdicts.add(format!("{test}, {name}"), p_value);
    add("uniform", uniformity(&histogram(leaves.iter().copied(), range, range)));
    add("uncorrelated", serial_correlation(leaves));
    let (pairs, _) = leaves.as_chunks::<2>();
    let pairs = pairs.iter().map(|pair| (pair[0], pair[1]));
    add("serially independent", uniformity_of_pairs(pairs, range, PAIR_BINS));
    if are_independent {
        add("shares levels with the previous one only by chance", shared_levels(leaves));
    }

    let Some(accesses) = accesses else { return };
    let returns = returns(accesses.iter().map(|request| request.address).zip(leaves.to_vec()));
    let pairs = returns.iter().map(|Return { earlier, later }| (*earlier, *later));
    add("fresh", uniformity_of_pairs(pairs, range, PAIR_BINS));
    add("fresh exactly", repeats(&returns, range));
}

/// Tests whether consecutive paths share levels near the root as often as by chance. Returns a
/// p-value. Leaves are read from the lowest bit.
pub(crate) fn shared_levels(leaves: &[u64]) -> f64 {
    let parts = leaves.windows(2).map(|pair| (pair[0] ^ pair[1]) % PAIR_BINS);
    uniformity(&histogram(parts, PAIR_BINS, PAIR_BINS))
}

/// Returns the p-value of a test that the leaf of an access is independent of a secret boolean.
/// `None` if one of the two values occurs too rarely.
fn independence(run: &Run, leaves: &[u64], secret: impl Fn(&Request) -> bool) -> Option<f64> {
    let accesses = run.accesses.iter().zip(leaves.iter().copied());
    let (yes, no): (Vec<_>, Vec<_>) = accesses.partition(|(request, _)| secret(request));
    let rows = [yes, no];
    rows.iter().all(|row| row.len() >= ROW_MIN).then(|| {
        contingency(&rows.map(|row| histogram(row.iter().map(|access| access.1), LEAVES, LEAVES)))
    })
}

/// The leaf of eviction `g` in reverse-lexicographic order. This is plain counting if a leaf is
/// read from its lowest bit (Tiny ORAM, Fig. 5). Deliberately not the engine's own function.
fn eviction_leaf(g: u64) -> u64 {
    g % LEAVES
}

#[test]
fn evictions_come_in_the_public_order() {
    let mut states = States::default();
    let raw = [1, 3, 5].map(|evict_period| (evict_period, Scheme::Raw(evict_period)));
    let rotating = [1, 3, 5].map(|evict_period| (evict_period, Scheme::Rotating(evict_period)));
    for (evict_period, scheme) in raw.into_iter().chain(rotating) {
        let flat = Setup::new(scheme, 1000).variants();
        let freecursive = Setup::freecursive(scheme, 300).variants();
        let freecursive = freecursive.filter(|_| matches!(scheme, Scheme::Raw(_)));
        for setup in flat.chain(freecursive) {
            for run in setup.runs() {
                states += run.states;
                let leaves = leaves(&run, Purpose::Eviction);
                let place = format!("{}, {:?}", run.workload, run.setup);
                assert_eq!(leaves.len(), run.accesses.len() / evict_period as usize, "{place}");
                let order = (0..leaves.len() as u64).map(eviction_leaf);
                assert!(order.eq(leaves), "{place}");
            }
        }
    }
    states.assert_rare_ones_occurred(100);
}

/// Tests that every announced path is read next. Before each access of a batch but the last, the
/// leaf of the next access is announced. The leaf must still be current at that access. Rotating
/// RAW ORAM announces all paths of a batch, including its evictions' paths, before it reads the
/// first, unless the batch is a single access. All other announcements are the next path of the
/// public order of evictions.
#[test]
fn announced_leaves_are_read_next() {
    for (scheme, tree_top_levels) in [
        (Scheme::Path, 0),
        (Scheme::Raw(3), 0),
        // A batch that would exceed the limits of the state is split. No batch here is that long.
        (Scheme::Rotating(3), 4),
    ] {
        let mut states = States::default();
        let alone = Setup::new(scheme, ACCESSES / 4);
        for run in (Setup { batched: true, tree_top_levels, ..alone }).runs() {
            states += run.states;
            assert_shown_ahead_are_read_next(&run);
        }
        assert!(states.repeats_in_batch >= 1000, "{states:?}");
    }
}

/// The paths of a batch and of its evictions, in the order in which they are announced. If the
/// period exceeds 1, omits an eviction after the first access, which was announced after the
/// previous access.
fn whole_batch(batch: &[u64], before: u64, period: u64) -> impl Iterator<Item = u64> {
    (before + 1..).zip(batch).flat_map(move |(accesses, leaf)| {
        let is_shown = accesses.is_multiple_of(period) && (accesses > before + 1 || period == 1);
        let eviction = is_shown.then(|| eviction_leaf(accesses / period - 1));
        std::iter::once(*leaf).chain(eviction)
    })
}

#[track_caller]
pub(crate) fn assert_shown_ahead_are_read_next(run: &Run) {
    let accessed = leaves(run, Purpose::Access);
    // The leaves announced before each access: the next one of the same batch, or the whole batch.
    let mut ahead: Vec<Vec<u64>> = Vec::new();
    let period = match run.setup.scheme {
        Scheme::Rotating(period) => Some(u64::from(period)),
        Scheme::Path | Scheme::Raw(_) => None,
    };
    let batches = match run.setup.hits {
        HitPolicy::Access => run.setup.batches(),
        // With served hits, it is unknown whether there will be a next access.
        HitPolicy::Serve => vec![1; accessed.len()],
    };
    for length in batches {
        let before = ahead.len();
        let batch = &accessed[before..][..length];
        ahead.extend((1..=length).map(|next| match period {
            Some(period) if next == 1 && length > 1 => {
                whole_batch(batch, before as u64, period).collect()
            }
            Some(_) => vec![],
            None => batch[next..length.min(next + 1)].to_vec(),
        }));
    }
    let mut ahead = ahead.into_iter();
    let mut schedule = schedule(run).into_iter();
    let mut evictions = 0;
    let mut shown = Vec::new();
    for trip in trips(run) {
        match trip.operation {
            Operation::Prefetch => shown.push(trip.leaf()),
            Operation::Read => {
                let purpose = schedule.next().expect("the schedule has every read");
                let next = match purpose {
                    Purpose::Access => ahead.next().unwrap_or_default(),
                    Purpose::Eviction => vec![],
                };
                let place = format!("{}, {:?}", run.workload, run.setup);
                // In the order of the reads: any other order could reveal something.
                let mut from = 0;
                for next in next {
                    let at = shown[from..].iter().position(|leaf| *leaf == next);
                    from +=
                        at.unwrap_or_else(|| panic!("{next} was not announced in order, {place}"));
                    shown.remove(from);
                }
                let is_eviction = |leaf| match run.setup.scheme {
                    Scheme::Path => false,
                    Scheme::Raw(_) | Scheme::Rotating(_) => leaf == eviction_leaf(evictions),
                };
                assert!(shown.iter().all(|leaf| is_eviction(*leaf)), "{shown:?}, {place}");
                shown.clear();
                evictions += u64::from(purpose == Purpose::Eviction);
            }
            _ => {}
        }
    }
}
