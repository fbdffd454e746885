//! XOR of byte strings, in steps of a cache line so that it becomes vector code.

const STEP_BYTES: usize = 64;

/// `out[i] = a[i] ^ b[i]`. All three have the same length.
#[inline]
pub(super) fn xor(out: &mut [u8], a: &[u8], b: &[u8]) {
    assert!(
        out.len() == a.len() && out.len() == b.len(),
        "xor takes strings of one length"
    );
    let (out_steps, out_rest) = out.as_chunks_mut::<STEP_BYTES>();
    let (a_steps, a_rest) = a.as_chunks::<STEP_BYTES>();
    let (b_steps, b_rest) = b.as_chunks::<STEP_BYTES>();
    for ((out, a), b) in out_steps.iter_mut().zip(a_steps).zip(b_steps) {
        for i in 0..STEP_BYTES {
            out[i] = a[i] ^ b[i];
        }
    }
    for ((out, a), b) in out_rest.iter_mut().zip(a_rest).zip(b_rest) {
        *out = a ^ b;
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
        }
    }
}
