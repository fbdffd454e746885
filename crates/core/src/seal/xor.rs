//! XOR of byte strings, in steps that compile to vector code.

/// The width of the narrowest vectors on the supported processors.
const STEP_BYTES: usize = 16;

/// Computes `out[i] = a[i] ^ b[i]`. All three slices have the same length.
#[inline(always)]
pub(super) fn xor(out: &mut [u8], a: &[u8], b: &[u8]) {
    assert!(out.len() == a.len() && out.len() == b.len(), "xor needs strings of equal length");
    let (out, out_rest) = out.as_chunks_mut::<STEP_BYTES>();
    let (a, a_rest) = a.as_chunks::<STEP_BYTES>();
    let (b, b_rest) = b.as_chunks::<STEP_BYTES>();
    for ((out, a), b) in out.iter_mut().zip(a).zip(b) {
        *out = (u128::from_ne_bytes(*a) ^ u128::from_ne_bytes(*b)).to_ne_bytes();
    }
    for ((out, a), b) in out_rest.iter_mut().zip(a_rest).zip(b_rest) {
        *out = a ^ b;
    }
}

/// Computes `out[i] ^= mask[i]`. The slices have the same length.
#[inline]
pub(super) fn xor_in_place(out: &mut [u8], mask: &[u8]) {
    assert!(out.len() == mask.len(), "xor needs strings of equal length");
    for (out, mask) in out.iter_mut().zip(mask) {
        *out ^= mask;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_loop_for_every_length() {
        let a: Vec<u8> = (0..300).map(|i| (i * 7) as u8).collect();
        let b: Vec<u8> = (0..300).map(|i| (i * 31 + 5) as u8).collect();
        for length in 0..300 {
            let mut out = vec![0; length];
            xor(&mut out, &a[..length], &b[..length]);
            assert!((0..length).all(|i| out[i] == a[i] ^ b[i]));
            xor_in_place(&mut out, &b[..length]);
            assert_eq!(out, a[..length]);
        }
    }
}
