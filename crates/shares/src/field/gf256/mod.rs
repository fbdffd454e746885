//! GF(2^8) with the polynomial of AES, x^8 + x^4 + x^3 + x + 1. A byte is an element, so shares are
//! as long as the data.
//!
//! The field has 255 nonzero points, one for each party: far more than the maximum number of
//! servers. Addition and subtraction are XOR.

mod kernels;

use rand_core::CryptoRng;

use super::{Field, NotElements};

/// GF(2^8) with the polynomial of AES: see the [module](self).
#[derive(Clone, Copy, Debug)]
pub struct Gf256;

impl Field for Gf256 {
    type Element = u8;

    const ZERO: u8 = 0;
    const ONE: u8 = 1;
    const ELEMENT_BYTES: usize = 1;
    const PACKED_BYTES: usize = 1;

    fn place(number: u8) -> u8 {
        number
    }

    fn add(a: u8, b: u8) -> u8 {
        a ^ b
    }

    fn subtract(a: u8, b: u8) -> u8 {
        a ^ b
    }

    fn multiply(a: u8, b: u8) -> u8 {
        product(a, b)
    }

    /// The inverse of `a`, computed as `a` to the power of 254; `None` for zero.
    fn inverse(a: u8) -> Option<u8> {
        let square = |a| product(a, a);
        let (mut power, mut factor) = (1, square(a));
        for _ in 0..7 {
            power = product(power, factor);
            factor = square(factor);
        }
        (a != 0).then_some(power)
    }

    fn draw(coins: &mut dyn CryptoRng, out: &mut [u8]) {
        coins.fill_bytes(out);
    }

    fn pack(data: &[u8], out: &mut [u8]) {
        out.copy_from_slice(data);
    }

    fn unpack(elements: &[u8], data: &mut [u8]) {
        data.copy_from_slice(elements);
    }

    fn encode(elements: &[u8], out: &mut Vec<u8>) {
        out.extend(elements);
    }

    fn decode(bytes: &[u8], out: &mut [u8]) -> Result<(), NotElements> {
        if bytes.len() != out.len() {
            return Err(NotElements);
        }
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn add_multiple(out: &mut [u8], factor: u8, row: &[u8]) {
        assert_eq!(out.len(), row.len());
        kernels::add_multiple(out, factor, row);
    }

    fn combine(out: &mut [u8], matrix: &[u8], columns: usize, rows: &[&[u8]]) {
        kernels::combine(out, matrix, columns, rows);
    }
}

/// The product of two polynomials, modulo the polynomial of the field. Constant time.
const fn product(a: u8, b: u8) -> u8 {
    let (mut sum, mut multiple, mut bit) = (0, a, 0);
    while bit < 8 {
        sum ^= multiple & 0u8.wrapping_sub(b >> bit & 1);
        multiple = multiple << 1 ^ 0x1b & 0u8.wrapping_sub(multiple >> 7);
        bit += 1;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_match_aes() {
        // FIPS 197, section 4.2.
        assert_eq!(product(0x57, 0x83), 0xc1);
        assert_eq!(product(0x57, 0x13), 0xfe);
        assert_eq!(Gf256::inverse(0x53), Some(0xca));
    }
}
