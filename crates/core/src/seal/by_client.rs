//! What somebody else has sealed, on the machine that only keeps it.

use super::blanks::{Blanks, Sealed};

/// The pieces of one write, as the client of a server has sealed them: one after the other.
///
/// A server that keeps stores for others has no key and no plaintext: it cannot seal, and whatever it is sent has left the client
/// already. So there is nothing that could get to storage unsealed by this way, as long as nobody who has a key uses it. Sources
/// that name this type are those of the bucket server, and of the suite that stores pass in tests, which a test of the house sees to.
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
    /// What came from a client that sealed it.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self(bytes)
    }

    /// Fills each blank with the bytes that are next.
    ///
    /// # Panics
    /// When there are more or fewer bytes than room: compare before.
    pub fn put<'a>(&self, blanks: Blanks<'a>) -> Sealed<'a> {
        blanks.put_of_client(self.0)
    }
}
