//! Bytes that a client has sealed, for the server that stores them.

use super::blanks::{Blanks, Sealed};

/// The sealed pieces of one write from a client of a server, concatenated.
///
/// A server that stores volumes for clients has no key and no plaintext. It cannot seal, and
/// everything it receives has already left the client. So this type cannot leak plaintext unless a
/// client uses it. A test checks that only the bucket server and the test suite for stores name it.
///
/// ```
/// use oblivio_core::store::{Blanks, SealedByClient, Span};
///
/// let mut storage = [0; 8];
/// let spans = [(4, 3), (0, 2)].map(|(start, bytes)| Span { start, bytes });
/// SealedByClient::new(b"abcde").put(Blanks::new(&mut storage, &spans));
/// assert_eq!(&storage, b"de\0\0abc\0");
/// ```
#[derive(Clone, Copy)]
pub struct SealedByClient<'b>(&'b [u8]);

impl<'b> SealedByClient<'b> {
    /// Wraps bytes that a client has sealed.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Fills the blanks with the sealed bytes, in order.
    ///
    /// # Panics
    /// If there are more or fewer bytes than the blanks hold: compare the lengths first.
    pub fn put<'a>(&self, blanks: Blanks<'a>) -> Sealed<'a> {
        blanks.put_client_sealed(self.0)
    }
}
