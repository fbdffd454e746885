//! How fast this machine computes on shares, on one thread: measured, because a model of servers needs it.

use std::hint::black_box;
use std::time::Duration;

use oblivio_shares::field::{Field, Gf256, Mersenne61};
use oblivio_shares::sharing::{Parties, recover, share};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::Clock;
use super::spread::Spread;
use super::work::{Sizes, THREE};
use crate::LabError;

/// Elements a second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Multiplied and added in an inner product, of what comes from memory.
    pub inner: f64,
    /// Multiplied and added in a product with a matrix.
    pub matrix: f64,
    /// Shared among all servers.
    pub share: f64,
    /// Recovered from what as many servers have as give back a product.
    pub recover: f64,
}

/// Of both fields.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Bytes: this project's shares.
    pub bytes: Rates,
    /// Mersenne-61, for the elements of eight bytes of the published form.
    pub words: Rates,
}

/// How much is computed for a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Bytes of elements that an inner product goes through: more than caches hold.
    pub stored_bytes: usize,
    /// So long each is done again.
    pub at_least: Duration,
}

impl Effort {
    /// Some seconds.
    pub const FULL: Self = Self { stored_bytes: 256 << 20, at_least: Duration::from_millis(400) };
    /// No second, and rough.
    pub const QUICK: Self = Self { stored_bytes: 8 << 20, at_least: Duration::from_millis(10) };
}

/// Slots of a path, and bytes of one.
const PATH_SLOTS: usize = 1024;
const ROW_BYTES: usize = 4096;

/// Slots of a bucket, and bytes of a part of one: as large as a server multiplies at once.
const SLOTS: usize = 333;
const PART_BYTES: usize = 1024;

/// What is shared at once, about: a block.
const SECRET_BYTES: usize = 128 << 10;

impl Machine {
    /// Measures all rates.
    ///
    /// # Errors
    /// [`LabError::Plan`] when nothing can be shared.
    pub fn measure(effort: Effort, clock: &Clock) -> Result<Self, LabError> {
        Ok(Self {
            bytes: rates::<Gf256>(effort, clock)?,
            words: rates::<Mersenne61>(effort, clock)?,
        })
    }
}

fn rates<F: Field>(effort: Effort, clock: &Clock) -> Result<Rates, LabError> {
    let mut coins = StdRng::seed_from_u64(1);
    let mut drawn = |count: usize| {
        let mut elements = vec![F::ZERO; count];
        F::draw(&mut coins, &mut elements);
        elements
    };
    let elements = |bytes: usize| bytes / size_of::<F::Element>();

    let row = elements(ROW_BYTES);
    let stored = drawn(elements(effort.stored_bytes));
    let query = drawn(PATH_SLOTS);
    let slots: Vec<_> = stored.chunks_exact(row).collect();
    let mut paths = slots.chunks_exact(PATH_SLOTS).cycle();
    let mut answer = vec![F::ZERO; row];
    let inner = per_second(PATH_SLOTS * row, effort, clock, || {
        if let Some(path) = paths.next() {
            F::combine(&mut answer, &query, 1, path);
        }
        black_box(&answer);
    });

    let part = elements(PART_BYTES);
    let matrix = drawn(2 * SLOTS * SLOTS);
    let parts = drawn(2 * SLOTS * part);
    let rows: Vec<_> = parts.chunks_exact(part).collect();
    let mut product = vec![F::ZERO; SLOTS * part];
    let matrix = per_second(2 * SLOTS * SLOTS * part, effort, clock, || {
        F::combine(&mut product, &matrix, SLOTS, &rows);
        black_box(&product);
    });

    let secret = &stored[..elements(SECRET_BYTES)];
    let [share, recover] = of_sharing::<F>(THREE, secret, effort, clock)?;
    Ok(Rates { inner, matrix, share, recover })
}

/// Elements a second that are shared among so many servers, and recovered from as many shares as give back a product.
fn of_sharing<F: Field>(
    (servers, colluding): Sizes,
    secret: &[F::Element],
    effort: Effort,
    clock: &Clock,
) -> Result<[f64; 2], LabError> {
    let parties = Parties::new(servers, colluding);
    let parties = parties.map_err(|error| LabError::Plan(error.to_string()))?;
    let mut turn = 0;
    let mut coins = StdRng::seed_from_u64(2);
    let shared = per_second(secret.len(), effort, clock, || {
        turn += 1;
        black_box(share::<F>(parties, secret, turn, &mut coins));
    });
    let numbers: Vec<u8> = parties.numbers().take(parties.for_product()).collect();
    let shares = vec![secret; numbers.len()];
    let recovered = per_second(secret.len(), effort, clock, || {
        black_box(recover::<F>(&numbers, &shares));
    });
    Ok([shared, recovered])
}

impl Rates {
    /// The same of bytes that are shared among so many servers.
    pub(super) fn among(
        self,
        sizes: Sizes,
        effort: Effort,
        clock: &Clock,
    ) -> Result<Self, LabError> {
        if sizes == THREE {
            return Ok(self);
        }
        let mut secret = vec![0; SECRET_BYTES];
        Gf256::draw(&mut StdRng::seed_from_u64(3), &mut secret);
        let [share, recover] = of_sharing::<Gf256>(sizes, &secret, effort, clock)?;
        Ok(Self { share, recover, ..self })
    }
}

/// Does it over and over, and answers how many of the `elements` that it is each time are done in a second. That is short, and the median counts: others who take the processor
/// meanwhile are not to be measured.
fn per_second(elements: usize, effort: Effort, clock: &Clock, mut work: impl FnMut()) -> f64 {
    // Memory is there the second time.
    work();
    let (start, mut times) = (clock(), Vec::new());
    let mut last = start;
    while last.saturating_sub(start) < effort.at_least {
        work();
        let now = clock();
        times.push(now.saturating_sub(last).as_secs_f64());
        last = now;
    }
    elements as f64 / Spread::of(times).median
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// A clock that goes on by a millisecond whenever somebody looks.
    #[test]
    fn a_rate_is_what_was_done_by_the_clock() {
        let looks = AtomicU64::new(0);
        let clock: Clock = std::sync::Arc::new(move || {
            Duration::from_millis(looks.fetch_add(1, Ordering::Relaxed))
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
