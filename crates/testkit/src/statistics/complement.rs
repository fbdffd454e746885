//! What two ciphertexts under one key stream give away.

/// In how many bytes in a row one is the other with every bit turned.
///
/// Zeros and ones that are sealed under one key stream differ in just that. With streams of their own, eight in
/// a row come by chance once in 2^64 places.
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
