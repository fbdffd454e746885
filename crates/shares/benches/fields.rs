//! Field operations of S³ORAM servers and clients, compared with reading the same bytes.
//!
//! `docs/adr/0015-field-of-shares.md` has the results. Byte counts are of the shared data and not
//! of its elements, unless a benchmark says otherwise.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::BytesCount;
use oblivio_shares::field::{Field, Gf256, Mersenne61};
use oblivio_shares::multiplication::{reduce, reshare};
use oblivio_shares::sharing::{Parties, share};
use rand::SeedableRng;
use rand::rngs::StdRng;

const MIB: usize = 1 << 20;

/// Bytes of stored shares: more than any cache holds.
const STORED_BYTES: usize = 512 * MIB;

/// Number of slots of a path with `Z = 333` and `H = 4`.
const PATH_SLOTS: usize = 5 * 333;

const BLOCK_BYTES: [usize; 2] = [4 << 10, 128 << 10];

fn main() {
    divan::main();
}

fn drawn<F: Field>(count: usize) -> Vec<F::Element> {
    let mut elements = vec![F::ZERO; count];
    F::draw(&mut StdRng::seed_from_u64(1), &mut elements);
    elements
}

/// Measures the inner products of queries and paths. Each path is read from memory.
#[divan::bench(types = [Gf256, Mersenne61], args = BLOCK_BYTES, sample_count = 5)]
fn inner_product<F: Field>(bencher: Bencher, block_bytes: usize) {
    let elements = F::packed_elements(block_bytes);
    let stored = drawn::<F>(STORED_BYTES / block_bytes * elements);
    let query = drawn::<F>(PATH_SLOTS);
    let slots: Vec<_> = stored.chunks_exact(elements).collect();
    let mut answer = vec![F::ZERO; elements];
    bencher.counter(BytesCount::new(STORED_BYTES)).bench_local(|| {
        for slots in slots.chunks(PATH_SLOTS) {
            F::combine(&mut answer, &query[..slots.len()], 1, slots);
        }
        black_box(&answer);
    });
}

/// Measures memory bandwidth: reads [`STORED_BYTES`] bytes, and computes only their XOR.
#[divan::bench(sample_count = 5)]
fn reading_alone(bencher: Bencher) {
    let stored = drawn::<Gf256>(STORED_BYTES);
    bencher.counter(BytesCount::new(STORED_BYTES)).bench_local(|| {
        let (words, _) = stored.as_chunks::<64>();
        words.iter().fold([0; 64], |mut sum, word| {
            sum.iter_mut().zip(word).for_each(|(sum, byte)| *sum ^= byte);
            sum
        })
    });
}

/// Measures the matrix products of one level of an eviction. The reported bytes are the lengths of
/// all products of a slot and a matrix element: 2Z slots for each of Z columns.
#[divan::bench(types = [Gf256, Mersenne61], args = [74, 333], sample_count = 3)]
fn matrix_product<F: Field>(bencher: Bencher, slots: usize) {
    let elements = F::packed_elements(4096);
    let stored = drawn::<F>(2 * slots * elements);
    let matrix = drawn::<F>(2 * slots * slots);
    let rows: Vec<_> = stored.chunks_exact(elements).collect();
    let mut out = vec![F::ZERO; slots * elements];
    bencher
        .counter(BytesCount::new(2 * slots * slots * 4096))
        .bench_local(|| F::combine(&mut out, &matrix, slots, &rows));
}

/// Measures sharing a bucket of 74 slots of 4 KiB among three servers, as a dealer does.
#[divan::bench(types = [Gf256, Mersenne61])]
fn dealing<F: Field>(bencher: Bencher) {
    let parties = Parties::new(3, 1).expect("three servers");
    let product = drawn::<F>(F::packed_elements(74 * 4096));
    let mut coins = StdRng::seed_from_u64(2);
    bencher
        .counter(BytesCount::new(74 * 4096usize))
        .bench_local(|| reshare::<F>(parties, 1, &product, &mut coins));
}

/// Measures how a server combines the shares that it receives from three dealers.
#[divan::bench(types = [Gf256, Mersenne61])]
fn reducing<F: Field>(bencher: Bencher) {
    let dealt = drawn::<F>(F::packed_elements(74 * 4096));
    let dealt = [&dealt[..]; 3];
    bencher
        .counter(BytesCount::new(74 * 4096usize))
        .bench_local(|| reduce::<F>(&[1, 2, 3], &dealt));
}

/// Measures sharing the matrices of an eviction with `Z = 333` and `H = 4`. The reported bytes are
/// those of the elements before sharing.
#[divan::bench(types = [Gf256, Mersenne61], sample_count = 5)]
fn sharing_matrices<F: Field>(bencher: Bencher) {
    let parties = Parties::new(3, 1).expect("three servers");
    let matrices = vec![F::ZERO; 5 * 2 * 333 * 333];
    let mut coins = StdRng::seed_from_u64(3);
    bencher
        .counter(BytesCount::new(matrices.len() * F::ELEMENT_BYTES))
        .bench_local(|| share::<F>(parties, &matrices, 0, &mut coins));
}
