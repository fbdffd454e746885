//! Reads numbers from untrusted bytes.

/// The unread part of some bytes. Each method takes a field from the front, and returns `None` past
/// the end.
pub(crate) struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of at most `max`.
    pub(crate) fn count(&mut self, max: usize) -> Option<usize> {
        usize::try_from(self.u64()?).ok().filter(|count| *count <= max)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (field, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(field)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
