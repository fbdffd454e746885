//! The finite fields whose elements are shares.

pub mod gf256;
pub mod mersenne61;

use std::fmt::Debug;

pub use gf256::Gf256;
pub use mersenne61::Mersenne61;
use rand_core::CryptoRng;
use zeroize::Zeroize;

/// A finite field, with a lossless packing of bytes into its elements, and arithmetic on rows of
/// elements.
pub trait Field: Copy + Debug + Send + Sync + 'static {
    /// The type of an element. Each element of the field is represented by exactly one value.
    type Element: Copy + Eq + Debug + Zeroize + Send + Sync + 'static;

    /// The neutral element of addition.
    const ZERO: Self::Element;
    /// The neutral element of multiplication.
    const ONE: Self::Element;
    /// Bytes of an encoded element. This can be more than [`Self::PACKED_BYTES`].
    const ELEMENT_BYTES: usize;
    /// Bytes of data that an element carries.
    const PACKED_BYTES: usize;

    /// The point of party `number`: the value of a secret's polynomial there is the party's share.
    /// Party 0 stands for the secret, at point zero. Different numbers have different points.
    fn place(number: u8) -> Self::Element;

    /// `a + b`.
    fn add(a: Self::Element, b: Self::Element) -> Self::Element;

    /// `a − b`.
    fn subtract(a: Self::Element, b: Self::Element) -> Self::Element;

    /// `a · b`.
    fn multiply(a: Self::Element, b: Self::Element) -> Self::Element;

    /// The multiplicative inverse of `a`; `None` for zero.
    fn inverse(a: Self::Element) -> Option<Self::Element>;

    /// Draws each element of `out` uniformly and independently.
    fn draw(coins: &mut dyn CryptoRng, out: &mut [Self::Element]);

    /// Whether a received value is an element of the field.
    fn is_element(_: Self::Element) -> bool {
        true
    }

    /// The number of elements into which `bytes` bytes are packed.
    fn packed_elements(bytes: usize) -> usize {
        bytes.div_ceil(Self::PACKED_BYTES)
    }

    /// Packs data into elements. `out` holds [`Self::packed_elements`] elements.
    fn pack(data: &[u8], out: &mut [Self::Element]);

    /// Unpacks elements into `data`. Elements that were not made by [`Self::pack`] give arbitrary
    /// bytes.
    fn unpack(elements: &[Self::Element], data: &mut [u8]);

    /// Appends the encoded elements to `out`.
    fn encode(elements: &[Self::Element], out: &mut Vec<u8>);

    /// Decodes elements into `out`. After an error, the contents of `out` are arbitrary.
    ///
    /// # Errors
    /// If the number of bytes does not match `out`, or the bytes do not encode elements of the
    /// field.
    fn decode(bytes: &[u8], out: &mut [Self::Element]) -> Result<(), NotElements>;

    /// Adds `factor` times `row` to `out`, which has the same length.
    fn add_multiple(out: &mut [Self::Element], factor: Self::Element, row: &[Self::Element]);

    /// Computes the product of the vector `rows` and a matrix: `out[j] = Σ_i matrix[i][j] ·
    /// rows[i]`, elementwise over each row.
    ///
    /// `matrix` has `columns` elements for each of `rows`, and `out` has `columns` rows, one after
    /// the other. All rows have the same length, and there is at least one row.
    fn combine(
        out: &mut [Self::Element],
        matrix: &[Self::Element],
        columns: usize,
        rows: &[&[Self::Element]],
    );
}

/// The error for bytes that do not encode elements of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes do not encode the expected number of field elements")]
pub struct NotElements;

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    use super::*;

    /// Calls a generic test function once for each field.
    macro_rules! over_all_fields {
        ($test:ident) => {
            $test::<crate::field::Gf256>();
            $test::<crate::field::Mersenne61>();
        };
    }
    pub(crate) use over_all_fields;

    pub(crate) fn drawn<F: Field>(seed: u64, count: usize) -> Vec<F::Element> {
        let mut elements = vec![F::ZERO; count];
        F::draw(&mut StdRng::seed_from_u64(seed), &mut elements);
        elements
    }

    fn is_a_field<F: Field>() {
        let elements = drawn::<F>(1, 60);
        assert_eq!(F::place(0), F::ZERO);
        assert_eq!(F::place(1), F::ONE);
        assert_eq!(F::inverse(F::ZERO), None);
        for (i, a) in elements.iter().enumerate() {
            let (a, b, c) = (*a, elements[(i + 7) % 60], elements[(i + 19) % 60]);
            assert_eq!(F::add(a, b), F::add(b, a));
            assert_eq!(F::multiply(a, b), F::multiply(b, a));
            assert_eq!(F::add(F::add(a, b), c), F::add(a, F::add(b, c)));
            assert_eq!(F::multiply(F::multiply(a, b), c), F::multiply(a, F::multiply(b, c)));
            let both = F::add(F::multiply(a, b), F::multiply(a, c));
            assert_eq!(F::multiply(a, F::add(b, c)), both);
            assert_eq!((F::add(a, F::ZERO), F::multiply(a, F::ONE)), (a, a));
            assert_eq!(F::add(F::subtract(a, b), b), a);
            assert_eq!(F::multiply(a, F::ZERO), F::ZERO);
            if a != F::ZERO {
                assert_eq!(F::multiply(a, F::inverse(a).unwrap()), F::ONE);
            }
        }
    }

    #[test]
    fn fields_are_fields() {
        over_all_fields!(is_a_field);
    }

    fn rows_are_combined<F: Field>() {
        for (inputs, columns, length) in
            [(1, 1, 1), (3, 2, 5), (9, 17, 130), (40, 1, 1000), (2, 9, 300)]
        {
            let elements = drawn::<F>(2, inputs * length);
            let rows: Vec<_> = elements.chunks_exact(length).collect();
            let matrix = drawn::<F>(3, inputs * columns);
            // `combine` must overwrite the previous contents.
            let mut out = drawn::<F>(4, columns * length);
            F::combine(&mut out, &matrix, columns, &rows);
            for (at, found) in out.iter().enumerate() {
                let (column, place) = (at / length, at % length);
                let sum = (0..inputs).fold(F::ZERO, |sum, i| {
                    F::add(sum, F::multiply(matrix[i * columns + column], rows[i][place]))
                });
                assert_eq!(*found, sum, "{inputs} × {columns}, place {at}");
            }
        }
    }

    #[test]
    fn matrix_products_match_their_definition() {
        over_all_fields!(rows_are_combined);
    }

    fn data_comes_back<F: Field>(data: &[u8]) {
        let mut elements = vec![F::ZERO; F::packed_elements(data.len())];
        F::pack(data, &mut elements);
        let mut back = vec![0; data.len()];
        F::unpack(&elements, &mut back);
        assert_eq!(back, data);
        let mut sent = Vec::new();
        F::encode(&elements, &mut sent);
        assert_eq!(sent.len(), elements.len() * F::ELEMENT_BYTES);
        let mut came = drawn::<F>(5, elements.len());
        F::decode(&sent, &mut came).unwrap();
        assert_eq!(came, elements);
        if !sent.is_empty() {
            assert_eq!(F::decode(&sent[1..], &mut came), Err(NotElements));
        }
    }

    proptest! {
        #[test]
        fn any_data_is_packed_without_loss(data: Vec<u8>) {
            data_comes_back::<Gf256>(&data);
            data_comes_back::<Mersenne61>(&data);
        }
    }

    #[test]
    fn extreme_data_is_packed_without_loss() {
        for byte in [0, 0xff] {
            for bytes in [0, 1, 6, 7, 8, 13, 14, 4096] {
                data_comes_back::<Gf256>(&vec![byte; bytes]);
                data_comes_back::<Mersenne61>(&vec![byte; bytes]);
            }
        }
    }
}
