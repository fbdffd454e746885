//! Measures the rates of this machine's computations on shares, on one thread, for the model of
//! servers.
//!
//! Rates are elements per second of processor time, so that other load on the machine does not
//! count.

use std::hint::black_box;
use std::time::Duration;

use oblivio_shares::field::{Field, Gf256, Mersenne61};
use oblivio_shares::host::TILES_AT_ONCE;
use oblivio_shares::sharing::{Parties, Seed, Share, recover, share};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::Clock;
use super::spread::Spread;
use super::work::{Sizes, THREE};
use crate::LabError;

/// Elements per second of each operation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Multiply-adds per second in an inner product with data from memory.
    pub inner: f64,
    /// Multiply-adds per second in a product with a matrix.
    pub matrix: f64,
    /// Elements per second that are shared among all servers.
    pub share: f64,
    /// Elements per second that are reconstructed from the number of shares that a product needs.
    pub recover: f64,
    /// Elements per second that are derived from a seed. Results of earlier versions lack this
    /// field.
    #[serde(default)]
    pub draw: f64,
}

/// The computing rates of a machine in both fields.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The rates for bytes, the elements of this project's shares.
    pub bytes: Rates,
    /// The rates for Mersenne-61, the field of the published form's elements of eight bytes.
    pub words: Rates,
}

/// The amount of work for measuring a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Bytes of the stored elements that successive inner products read. They must exceed the
    /// caches.
    pub stored_bytes: usize,
    /// The minimum time for which each measurement is repeated.
    pub at_least: Duration,
}

impl Effort {
    /// An effort that takes some seconds.
    pub const FULL: Self = Self { stored_bytes: 256 << 20, at_least: Duration::from_millis(400) };
    /// An effort that takes less than a second, and gives rough rates.
    pub const QUICK: Self = Self { stored_bytes: 8 << 20, at_least: Duration::from_millis(10) };
}

/// Slots of a path in the measurement of inner products.
const PATH_SLOTS: usize = 1024;
/// Bytes per slot of that path.
const ROW_BYTES: usize = 4096;

/// Slots of a bucket in the measurement of products with a matrix.
const SLOTS: usize = 333;
/// Bytes of the part of each slot that a server multiplies at once.
const PART_BYTES: usize = 1024;

/// Bytes of a secret that is shared at once: about a block.
const SECRET_BYTES: usize = 128 << 10;

impl Machine {
    /// Measures all rates. `clock` returns the processor time of the calling thread.
    ///
    /// # Errors
    /// [`LabError::Plan`] if the sharing parameters are invalid.
    pub fn measure(effort: Effort, clock: &Clock) -> Result<Self, LabError> {
        Ok(Self {
            bytes: rates::<Gf256>(effort, clock)?,
            words: rates::<Mersenne61>(effort, clock)?,
        })
    }
}

fn rates<F: Field>(effort: Effort, clock: &Clock) -> Result<Rates, LabError> {
    let elements = |bytes: usize| bytes / size_of::<F::Element>();

    let row = elements(ROW_BYTES);
    let stored = drawn::<F>(1, elements(effort.stored_bytes));
    let query = drawn::<F>(5, PATH_SLOTS);
    let slots: Vec<_> = stored.chunks_exact(row).collect();
    let mut paths = slots.chunks_exact(PATH_SLOTS).cycle();
    let mut answer = vec![F::ZERO; row];
    let inner = per_second(PATH_SLOTS * row, effort, clock, || {
        if let Some(path) = paths.next() {
            F::combine(&mut answer, &query, 1, path);
        }
        black_box(&answer);
    });

    let matrix = of_products::<F>(SLOTS, elements(PART_BYTES), 1, effort, clock);
    let secret = &stored[..elements(SECRET_BYTES)];
    let [share, recover, draw] = of_sharing::<F>(THREE, &[secret], effort, clock)?;
    Ok(Rates { inner, matrix, share, recover, draw })
}

fn drawn<F: Field>(seed: u64, count: usize) -> Vec<F::Element> {
    let mut elements = vec![F::ZERO; count];
    F::draw(&mut StdRng::seed_from_u64(seed), &mut elements);
    elements
}

/// Multiply-adds per second in products of a matrix with two buckets of `slots` slots with
/// `elements` elements each. The products cycle through `buckets` pairs of buckets.
fn of_products<F: Field>(
    slots: usize,
    elements: usize,
    buckets: usize,
    effort: Effort,
    clock: &Clock,
) -> f64 {
    let matrix = drawn::<F>(4, 2 * slots * slots);
    let parts = drawn::<F>(6, buckets * 2 * slots * elements);
    let rows: Vec<_> = parts.chunks_exact(elements).collect();
    let mut pairs = rows.chunks_exact(2 * slots).cycle();
    per_second(2 * slots * slots * elements, effort, clock, || {
        // Servers also allocate the product each time.
        let mut product = vec![F::ZERO; slots * elements];
        if let Some(rows) = pairs.next() {
            F::combine(&mut product, &matrix, slots, rows);
        }
        black_box(&product);
    })
}

/// Elements per second that are shared, that are reconstructed from the shares that a product
/// needs, and that are derived from a seed. The measurement cycles through `secrets`, which have
/// equal lengths.
fn of_sharing<F: Field>(
    (servers, colluding): Sizes,
    secrets: &[&[F::Element]],
    effort: Effort,
    clock: &Clock,
) -> Result<[f64; 3], LabError> {
    let parties = Parties::new(servers, colluding);
    let parties = parties.map_err(|error| LabError::Plan(error.to_string()))?;
    let length = secrets.first().map_or(0, |secret| secret.len());
    let mut turn = 0;
    let mut coins = StdRng::seed_from_u64(2);
    let mut next = secrets.iter().cycle();
    let shared = per_second(length, effort, clock, || {
        turn += 1;
        if let Some(secret) = next.next() {
            black_box(share::<F>(parties, secret, turn, &mut coins));
        }
    });
    let numbers: Vec<u8> = parties.numbers().take(parties.for_product()).collect();
    let mut next = secrets.iter().cycle();
    let recovered = per_second(length, effort, clock, || {
        let shares: Vec<_> = next.by_ref().take(numbers.len()).copied().collect();
        black_box(recover::<F>(&numbers, &shares));
    });
    let drawn = per_second(length, effort, clock, || {
        turn += 1;
        let mut seed = Seed::default();
        seed[..8].copy_from_slice(&turn.to_le_bytes());
        black_box(Share::Drawn(seed).into_elements::<F>(length));
    });
    Ok([shared, recovered, drawn])
}

impl Rates {
    /// Returns these rates with new measurements for evictions among `sizes.0` servers on this
    /// machine, with bytes as elements. Each server works on parts of a bucket: `part_bytes` bytes
    /// of each of its `slots` slots. The parts in progress compete for the caches.
    pub(super) fn of_evictions(
        self,
        sizes: Sizes,
        (slots, part_bytes): (usize, usize),
        effort: Effort,
        clock: &Clock,
    ) -> Result<Self, LabError> {
        let under_way = usize::from(sizes.0) * TILES_AT_ONCE;
        let matrix = of_products::<Gf256>(slots, part_bytes, under_way, effort, clock);
        let parts = drawn::<Gf256>(3, under_way * slots * part_bytes);
        let secrets: Vec<_> = parts.chunks_exact(slots * part_bytes).collect();
        let [share, recover, draw] = of_sharing::<Gf256>(sizes, &secrets, effort, clock)?;
        Ok(Self { matrix, share, recover, draw, ..self })
    }
}

/// Repeats `work`, which processes `elements` elements, and returns the median rate by the clock.
fn per_second(elements: usize, effort: Effort, clock: &Clock, mut work: impl FnMut()) -> f64 {
    // Run once before timing, so that memory is mapped.
    work();
    let (start, mut times) = (clock(), Vec::new());
    let mut last = start;
    while last.saturating_sub(start) < effort.at_least {
        work();
        let now = clock();
        times.push(now.saturating_sub(last).as_secs_f64());
        last = now;
    }
    elements as f64 / Spread::from_values(times).median
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Measures a rate with a clock that advances by a millisecond each time it is read.
    #[test]
    fn a_rate_is_the_work_divided_by_the_time() {
        let reads = AtomicU64::new(0);
        let clock: Clock = std::sync::Arc::new(move || {
            Duration::from_millis(reads.fetch_add(1, Ordering::Relaxed))
        });
        let effort = Effort { stored_bytes: 4 << 20, at_least: Duration::from_millis(5) };
        let mut done = 0;
        let rate = per_second(100, effort, &clock, || done += 1);
        assert!((rate - 100_000.0).abs() < 1e-6, "{rate}");
        assert_eq!(done, 6);
        // A path of 1,024 slots of 4 KiB in a millisecond.
        let Machine { bytes, words } = Machine::measure(effort, &clock).unwrap();
        assert!((bytes.inner / f64::from(4 << 20) - 1e3).abs() < 1e-6, "{bytes:?}");
        assert!((words.inner / f64::from(4 << 17) - 1e3).abs() < 1e-6, "{words:?}");
    }
}
