//! Products of rows of bytes in GF(2^8), with vector instructions. This file has the only `unsafe`
//! code of the crate.
//!
//! No branch and no address depends on the bytes. The instructions used depend only on the
//! processor. Tests compare each set of instructions with the portable code.
#![allow(unsafe_code)]

use super::product;

/// Computes `out += factor · row`. Both rows have the same length.
pub(super) fn add_multiple(out: &mut [u8], factor: u8, row: &[u8]) {
    add_products(InstructionSet::best(), out, &[factor], 1, &[row]);
}

/// Computes products of rows with a matrix: see [`Field::combine`](crate::field::Field::combine).
pub(super) fn combine(out: &mut [u8], matrix: &[u8], columns: usize, rows: &[&[u8]]) {
    combine_by(InstructionSet::best(), out, matrix, columns, rows);
}

/// A set of vector instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstructionSet {
    /// Portable code for any processor.
    Portable,
    /// AVX2: looks up 32 products at once.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX-512 with GFNI: one instruction computes 64 products.
    #[cfg(target_arch = "x86_64")]
    Gfni512,
}

impl InstructionSet {
    fn best() -> Self {
        *Self::all().last().expect("the portable code runs on every processor")
    }

    /// The instruction sets that this processor supports, the fastest last.
    fn all() -> &'static [Self] {
        #[cfg(target_arch = "x86_64")]
        {
            if !is_x86_feature_detected!("avx2") {
                return &[Self::Portable];
            }
            let has_gfni512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("gfni");
            if !has_gfni512 {
                return &[Self::Portable, Self::Avx2];
            }
            &[Self::Portable, Self::Avx2, Self::Gfni512]
        }
        #[cfg(not(target_arch = "x86_64"))]
        &[Self::Portable]
    }
}

/// The number of rows whose products are added at once if there is one column. With GFNI, each sum
/// is loaded and stored once for all of these rows.
const ROWS: usize = 8;

/// The maximum number of columns whose products are computed together. With GFNI, each loaded byte
/// is used for all of these columns.
const COLUMNS: usize = 4;

/// The maximum number of bytes of each row that are processed together: a tile. Tiles of several
/// hundred rows fit together into the second-level cache.
const TILE_BYTES: usize = 1024;

fn combine_by(
    instructions: InstructionSet,
    out: &mut [u8],
    matrix: &[u8],
    columns: usize,
    rows: &[&[u8]],
) {
    let length = rows[0].len();
    assert_eq!((out.len(), matrix.len()), (columns * length, columns * rows.len()));
    if columns == 1 {
        out.fill(0);
        // Read each row once, from beginning to end.
        let mut later = rows.chunks(ROWS);
        for factors in matrix.chunks(ROWS) {
            let Some(rows) = later.next() else { break };
            // Each row begins on another page, and hardware prefetchers do not cross pages.
            later.clone().next().into_iter().flatten().for_each(|row| will_need(row));
            add_products(instructions, out, factors, 1, rows);
        }
        return;
    }
    let mut tile = vec![0; rows.len() * TILE_BYTES.min(length)];
    let mut sums = [0; COLUMNS * TILE_BYTES];
    for start in (0..length).step_by(TILE_BYTES) {
        let bytes = TILE_BYTES.min(length - start);
        for (near, row) in tile.chunks_exact_mut(bytes).zip(rows) {
            near.copy_from_slice(&row[start..start + bytes]);
        }
        let near: Vec<_> = tile.chunks_exact(bytes).take(rows.len()).collect();
        for first in (0..columns).step_by(COLUMNS) {
            let count = COLUMNS.min(columns - first);
            let factors = matrix.chunks_exact(columns).flat_map(|row| &row[first..first + count]);
            let factors: Vec<_> = factors.copied().collect();
            let sums = &mut sums[..count * bytes];
            sums.fill(0);
            add_products(instructions, sums, &factors, count, &near);
            for (sum, column) in sums.chunks_exact(bytes).zip(first..) {
                out[column * length + start..][..bytes].copy_from_slice(sum);
            }
        }
    }
}

/// The number of bytes of an upcoming row to prefetch. Prefetching 256 to 512 bytes makes rows of 4
/// KiB an eighth faster; 2048 bytes gain nothing.
const AHEAD_BYTES: usize = 512;

/// Prefetches the first bytes of a row that is needed soon.
fn will_need(row: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    row.iter().take(AHEAD_BYTES).step_by(64).for_each(|byte| {
        // SAFETY: a prefetch only loads a valid address into a cache.
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(
                std::ptr::from_ref(byte).cast(),
            )
        }
    });
}

/// Adds the products of `rows` with the matrix to `out`. `out` has `columns` rows, at most
/// [`COLUMNS`].
fn add_products(
    instructions: InstructionSet,
    out: &mut [u8],
    matrix: &[u8],
    columns: usize,
    rows: &[&[u8]],
) {
    if out.is_empty() {
        return;
    }
    let length = out.len() / columns;
    assert!((1..=COLUMNS).contains(&columns) && rows.iter().all(|row| row.len() == length));
    assert_eq!((out.len(), matrix.len()), (columns * length, columns * rows.len()));
    let whole = match instructions {
        InstructionSet::Portable => 0,
        // SAFETY: `InstructionSet::all` has this variant only if the processor supports it.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx2 => unsafe { x86::avx2(out, matrix, columns, rows) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Gfni512 => unsafe { x86::gfni512(out, matrix, columns, rows) },
    };
    for (row, factors) in rows.iter().zip(matrix.chunks_exact(columns)) {
        for (out, factor) in out.chunks_exact_mut(length).zip(factors) {
            let bytes = out[whole..].iter_mut().zip(&row[whole..]);
            bytes.for_each(|(sum, byte)| *sum ^= product(*factor, *byte));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{COLUMNS, product};

    /// For each bit of a factor, the products of that bit: first with every low half of a byte,
    /// then with every high half.
    static PRODUCTS_OF_BITS: [[u8; 32]; 8] = products_of_bits();

    const fn products_of_bits() -> [[u8; 32]; 8] {
        let mut tables = [[0; 32]; 8];
        let mut at = 0;
        while at < 8 * 16 {
            let (bit, half) = (at / 16, (at % 16) as u8);
            tables[bit][at % 16] = product(1 << bit, half);
            tables[bit][16 + at % 16] = product(1 << bit, half << 4);
            at += 1;
        }
        tables
    }

    /// Two tables of a factor's products, in both lanes: with each low half of a byte, and with
    /// each high half.
    #[target_feature(enable = "avx2")]
    fn tables(factor: u8) -> (__m256i, __m256i) {
        let mut table = _mm256_setzero_si256();
        for (bit, products) in PRODUCTS_OF_BITS.iter().enumerate() {
            // SAFETY: `products` has 32 bytes.
            let products = unsafe { _mm256_loadu_si256(products.as_ptr().cast()) };
            let is_set = _mm256_set1_epi8(0i8.wrapping_sub((factor >> bit & 1) as i8));
            table = _mm256_xor_si256(table, _mm256_and_si256(products, is_set));
        }
        (
            _mm256_permute2x128_si256::<0x00>(table, table),
            _mm256_permute2x128_si256::<0x11>(table, table),
        )
    }

    /// Adds products as [`super::add_products`] does, but only for the part of each row that fills
    /// whole vectors. The caller has checked the lengths. Returns the number of bytes of each row
    /// that were processed.
    #[target_feature(enable = "avx2")]
    pub(super) fn avx2(out: &mut [u8], matrix: &[u8], columns: usize, rows: &[&[u8]]) -> usize {
        const VECTOR: usize = size_of::<__m256i>();
        let length = out.len() / columns;
        let whole = length - length % VECTOR;
        let low_half = _mm256_set1_epi8(0x0f);
        for (row, factors) in rows.iter().zip(matrix.chunks_exact(columns)) {
            for (out, factor) in out.chunks_exact_mut(length).zip(factors) {
                let (low, high) = tables(*factor);
                for at in (0..whole).step_by(VECTOR) {
                    // SAFETY: `at + VECTOR <= whole <= length`, the length of `row` and `out`.
                    unsafe {
                        let byte = _mm256_loadu_si256(row.as_ptr().add(at).cast());
                        let sum = out.as_mut_ptr().add(at).cast();
                        let of_low = _mm256_shuffle_epi8(low, _mm256_and_si256(byte, low_half));
                        let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(byte), low_half);
                        let of_high = _mm256_shuffle_epi8(high, upper);
                        let both = _mm256_xor_si256(of_low, of_high);
                        _mm256_storeu_si256(sum, _mm256_xor_si256(_mm256_loadu_si256(sum), both));
                    }
                }
            }
        }
        whole
    }

    /// Adds products as [`avx2`] does, but up to the last byte of each row.
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    pub(super) fn gfni512(out: &mut [u8], matrix: &[u8], columns: usize, rows: &[&[u8]]) -> usize {
        match columns {
            1 => gfni512_of::<1>(out, matrix, rows),
            2 => gfni512_of::<2>(out, matrix, rows),
            3 => gfni512_of::<3>(out, matrix, rows),
            COLUMNS => gfni512_of::<COLUMNS>(out, matrix, rows),
            _ => 0,
        }
    }

    const VECTOR: usize = size_of::<__m512i>();

    /// Bytes of a row that are processed at once.
    const STEP: usize = 2 * VECTOR;

    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    fn gfni512_of<const C: usize>(out: &mut [u8], matrix: &[u8], rows: &[&[u8]]) -> usize {
        let length = out.len() / C;
        let whole = length - length % STEP;
        for at in (0..whole).step_by(STEP) {
            // SAFETY: `at + STEP <= whole <= length`. `out` has `C` rows of `length` bytes, and so
            // has each of `rows`.
            unsafe { step::<C, false>(out, matrix, rows, at) };
        }
        if whole < length {
            // SAFETY: as above. A partial step accesses no byte at or after `length`.
            unsafe { step::<C, true>(out, matrix, rows, whole) };
        }
        length
    }

    /// Adds the products of [`STEP`] bytes of each row, beginning at byte `at`. Keeps all sums in
    /// registers until all rows are added. With `PART`, rows may end within the step.
    ///
    /// # Safety
    /// `out` has `C` rows, each as long as each of `rows`: at least `at + STEP` bytes, or with
    /// `PART` more than `at` bytes.
    #[target_feature(enable = "avx512f,avx512bw,gfni")]
    unsafe fn step<const C: usize, const PART: bool>(
        out: &mut [u8],
        matrix: &[u8],
        rows: &[&[u8]],
        at: usize,
    ) {
        let length = out.len() / C;
        let masks = [mask(length - at), mask((length - at).saturating_sub(VECTOR))];
        let mut sums = [[_mm512_setzero_si512(); 2]; C];
        for (column, sums) in sums.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *sums = unsafe { load::<PART>(out.as_ptr().wrapping_add(column * length + at), masks) };
        }
        for (row, factors) in rows.iter().zip(matrix.as_chunks::<C>().0) {
            // SAFETY: guaranteed by the caller.
            let bytes = unsafe { load::<PART>(row.as_ptr().wrapping_add(at), masks) };
            for (sums, factor) in sums.iter_mut().zip(factors) {
                let factor = _mm512_set1_epi8(*factor as i8);
                for (sum, bytes) in sums.iter_mut().zip(bytes) {
                    *sum = _mm512_xor_si512(*sum, _mm512_gf2p8mul_epi8(bytes, factor));
                }
            }
        }
        for (column, sums) in sums.into_iter().enumerate() {
            let to = out.as_mut_ptr().wrapping_add(column * length + at);
            for ((sum, mask), i) in sums.into_iter().zip(masks).zip(0..) {
                let to = to.wrapping_add(i * VECTOR).cast();
                // SAFETY: guaranteed by the caller.
                unsafe {
                    if PART {
                        _mm512_mask_storeu_epi8(to, mask, sum);
                    } else {
                        _mm512_storeu_si512(to.cast(), sum);
                    }
                }
            }
        }
    }

    /// The mask of the bytes of a vector that exist if `left` bytes remain.
    fn mask(left: usize) -> __mmask64 {
        if left >= VECTOR { !0 } else { (1 << left) - 1 }
    }

    /// Loads [`STEP`] bytes from `from`. With `PART`, bytes outside the masks are zero and not
    /// accessed.
    ///
    /// # Safety
    /// Without `PART` all bytes must be readable, with `PART` those inside the masks.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn load<const PART: bool>(from: *const u8, masks: [__mmask64; 2]) -> [__m512i; 2] {
        let second = from.wrapping_add(VECTOR);
        // SAFETY: guaranteed by the caller.
        unsafe {
            if PART {
                let [first_mask, second_mask] = masks;
                [
                    _mm512_maskz_loadu_epi8(first_mask, from.cast()),
                    _mm512_maskz_loadu_epi8(second_mask, second.cast()),
                ]
            } else {
                [_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(second.cast())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Gf256;
    use crate::field::tests::drawn;

    #[test]
    fn every_instruction_set_agrees_with_portable_code() {
        let lengths = [1, 31, 32, 33, 63, 127, 128, 129, 255, 1000, 1024, 1025, 1153, 4096];
        for (length, (inputs, columns)) in lengths.into_iter().flat_map(|length| {
            [(1, 1), (7, 1), (9, 1), (3, 2), (5, 3), (2, 4), (17, 5), (6, 11)]
                .map(|it| (length, it))
        }) {
            let elements = drawn::<Gf256>(1, inputs * length);
            let rows: Vec<_> = elements.chunks_exact(length).collect();
            let matrix = drawn::<Gf256>(2, inputs * columns);
            let mut expected = vec![7; columns * length];
            combine_by(InstructionSet::Portable, &mut expected, &matrix, columns, &rows);
            for instructions in InstructionSet::all() {
                let mut out = vec![9; columns * length];
                combine_by(*instructions, &mut out, &matrix, columns, &rows);
                assert!(out == expected, "{instructions:?}: {inputs} × {columns} of {length}");
            }
        }
    }

    /// Rows and sums are parts of longer buffers. Bytes after them must be neither used nor
    /// changed.
    #[test]
    fn bytes_after_a_row_are_not_used_or_changed() {
        let (longer, row) = ([9; 400], [5; 400]);
        for (length, instructions) in (1..=260).flat_map(|length| {
            InstructionSet::all().iter().map(move |instructions| (length, instructions))
        }) {
            let mut out = longer;
            add_products(*instructions, &mut out[..length], &[3], 1, &[&row[..length]]);
            let expected = [&vec![9 ^ product(3, 5); length][..], &longer[length..]].concat();
            assert!(out[..] == expected, "{instructions:?}: {length}");
        }
    }

    #[test]
    fn every_product_of_two_bytes_is_right() {
        let all: Vec<u8> = (0..=255).collect();
        for instructions in InstructionSet::all() {
            for factor in 0..=255 {
                let mut out = [0; 256];
                add_products(*instructions, &mut out, &[factor], 1, &[&all]);
                for (byte, found) in all.iter().zip(out) {
                    assert_eq!(
                        found,
                        product(factor, *byte),
                        "{instructions:?}: {factor} · {byte}"
                    );
                }
            }
        }
    }
}
