//! Detects two ciphertexts under one key stream.

/// The length of the longest run of bytes in which `one` is the bitwise complement of `other`.
///
/// Zero bytes and 0xFF bytes sealed under one key stream are complements. Under independent
/// streams, a run of eight bytes occurs at a given position with probability 2^-64.
pub fn longest_complement(one: &[u8], other: &[u8]) -> usize {
    let pairs: Vec<_> = one.iter().zip(other).collect();
    let runs = pairs.split(|(a, b)| *a ^ *b != 0xFF);
    runs.map(<[_]>::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_counted_to_the_end_of_the_shorter() {
        assert_eq!(longest_complement(&[], &[1]), 0);
        assert_eq!(longest_complement(&[0, 1, 2, 3, 4], &[0xFF, 0xFE, 2, 0xFC, 0xFB, 0]), 2);
        assert_eq!(longest_complement(&[5; 9], &[0xFA; 8]), 8);
    }
}
