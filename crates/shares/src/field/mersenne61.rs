//! The integers modulo the prime 2^61 − 1: a prime field, as in the paper.
//!
//! Volumes do not use this field: an element takes eight bytes and carries only seven (ADR 15).
//! Tests of sharing and of the scheme use it. In GF(2^8) every number is its own negative, so tests
//! over that field alone would not notice a wrong sign.

use rand_core::CryptoRng;

use super::{Field, NotElements};

/// The integers modulo 2^61 − 1: see the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Mersenne61;

const PRIME: u64 = (1 << 61) - 1;

/// Reduces a number modulo the prime, using 2^61 = 1.
fn reduced(number: u128) -> u64 {
    let fold = |number: u128| (number & u128::from(PRIME)) + (number >> 61);
    let folded = fold(fold(number)) as u64;
    if folded >= PRIME { folded - PRIME } else { folded }
}

impl Field for Mersenne61 {
    type Element = u64;

    const ZERO: u64 = 0;
    const ONE: u64 = 1;
    const ELEMENT_BYTES: usize = 8;
    const PACKED_BYTES: usize = 7;

    fn place(number: u8) -> u64 {
        number.into()
    }

    fn add(a: u64, b: u64) -> u64 {
        reduced(u128::from(a) + u128::from(b))
    }

    fn subtract(a: u64, b: u64) -> u64 {
        reduced(u128::from(a) + u128::from(PRIME - b))
    }

    fn multiply(a: u64, b: u64) -> u64 {
        reduced(u128::from(a) * u128::from(b))
    }

    /// The inverse of `a`, computed as `a` to the power of `PRIME - 2` (Fermat's little theorem);
    /// `None` for zero.
    fn inverse(a: u64) -> Option<u64> {
        let (mut power, mut square, mut exponent) = (1, a, PRIME - 2);
        while exponent > 0 {
            if exponent & 1 == 1 {
                power = Self::multiply(power, square);
            }
            square = Self::multiply(square, square);
            exponent >>= 1;
        }
        (a != 0).then_some(power)
    }

    fn draw(coins: &mut dyn CryptoRng, out: &mut [u64]) {
        for element in out {
            *element = loop {
                let drawn = coins.next_u64() >> 3;
                if drawn < PRIME {
                    break drawn;
                }
            };
        }
    }

    fn is_element(value: u64) -> bool {
        value < PRIME
    }

    fn pack(data: &[u8], out: &mut [u64]) {
        for (element, bytes) in out.iter_mut().zip(data.chunks(Self::PACKED_BYTES)) {
            let mut number = [0; 8];
            number[..bytes.len()].copy_from_slice(bytes);
            *element = u64::from_le_bytes(number);
        }
    }

    fn unpack(elements: &[u64], data: &mut [u8]) {
        for (element, bytes) in elements.iter().zip(data.chunks_mut(Self::PACKED_BYTES)) {
            bytes.copy_from_slice(&element.to_le_bytes()[..bytes.len()]);
        }
    }

    fn encode(elements: &[u64], out: &mut Vec<u8>) {
        elements.iter().for_each(|element| out.extend(element.to_le_bytes()));
    }

    fn decode(bytes: &[u8], out: &mut [u64]) -> Result<(), NotElements> {
        if bytes.len() != out.len() * Self::ELEMENT_BYTES {
            return Err(NotElements);
        }
        let (numbers, _) = bytes.as_chunks();
        for (element, number) in out.iter_mut().zip(numbers) {
            *element = u64::from_le_bytes(*number);
            if !Self::is_element(*element) {
                return Err(NotElements);
            }
        }
        Ok(())
    }

    fn add_multiple(out: &mut [u64], factor: u64, row: &[u64]) {
        for (sum, element) in out.iter_mut().zip(row) {
            *sum = reduced(u128::from(*sum) + u128::from(factor) * u128::from(*element));
        }
    }

    /// Computes products as [`Field::combine`] does. Reduces each sum only after 63 products: 63
    /// products of 122 bits and a reduced sum fit into 128 bits.
    fn combine(out: &mut [u64], matrix: &[u64], columns: usize, rows: &[&[u64]]) {
        const PLACES: usize = 512;
        const PRODUCTS_MAX: usize = 63;
        let length = rows[0].len();
        let mut sums = [0u128; PLACES];
        for start in (0..length).step_by(PLACES) {
            let end = length.min(start + PLACES);
            let sums = &mut sums[..end - start];
            for column in 0..columns {
                sums.fill(0);
                let mut since_reduced = 0;
                for (row, factors) in rows.iter().zip(matrix.chunks_exact(columns)) {
                    if since_reduced == PRODUCTS_MAX {
                        sums.iter_mut().for_each(|sum| *sum = reduced(*sum).into());
                        since_reduced = 0;
                    }
                    since_reduced += 1;
                    let factor = u128::from(factors[column]);
                    for (sum, element) in sums.iter_mut().zip(&row[start..end]) {
                        *sum += factor * u128::from(*element);
                    }
                }
                let out = &mut out[column * length..][start..end];
                out.iter_mut().zip(&*sums).for_each(|(out, sum)| *out = reduced(*sum));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_reduced_to_one_value_each() {
        let prime = u128::from(PRIME);
        for number in
            [0, 1, prime - 1, prime, prime + 1, 2 * prime, prime * prime, u128::MAX >> 1, u128::MAX]
        {
            assert_eq!(u128::from(reduced(number)), number % prime, "{number}");
        }
        assert_eq!(Mersenne61::add(PRIME - 1, 1), 0);
        assert_eq!(Mersenne61::subtract(0, 0), 0);
        assert_eq!(Mersenne61::subtract(0, 1), PRIME - 1);
    }

    #[test]
    fn values_outside_the_field_are_refused() {
        for number in [PRIME, PRIME + 1, u64::MAX] {
            assert_eq!(Mersenne61::decode(&number.to_le_bytes(), &mut [0]), Err(NotElements));
        }
        let mut element = [0];
        Mersenne61::decode(&(PRIME - 1).to_le_bytes(), &mut element).unwrap();
        assert_eq!(element, [PRIME - 1]);
    }

    #[test]
    fn every_bit_is_drawn() {
        use crate::field::tests::drawn;
        const COUNT: usize = 10_000;
        let elements = drawn::<Mersenne61>(1, COUNT);
        for bit in 0..61 {
            let set = elements.iter().filter(|element| *element >> bit & 1 == 1).count();
            // Six standard deviations.
            assert!(set.abs_diff(COUNT / 2) < 300, "bit {bit}: {set}");
        }
    }

    /// Sums do not overflow. The test adds more of the largest products than a sum can hold without
    /// a reduction.
    #[test]
    fn sums_do_not_overflow() {
        let largest = PRIME - 1;
        let row = [largest; 3];
        let rows = vec![&row[..]; 200];
        let mut out = [0; 3];
        Mersenne61::combine(&mut out, &[largest; 200], 1, &rows);
        assert_eq!(out, [200; 3]);
    }
}
