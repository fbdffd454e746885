//! Fixed-width little-endian fields: the encoding of slots and superblocks.

/// Writes fields in sequence.
#[derive(Default)]
pub(crate) struct FieldWriter {
    bytes: Vec<u8>,
}

impl FieldWriter {
    /// Adds a field.
    pub(crate) fn put(&mut self, field: &[u8]) {
        self.bytes.extend_from_slice(field);
    }

    /// Adds a field, padded with zeros to `bytes` bytes.
    pub(crate) fn put_padded(&mut self, field: &[u8], bytes: usize) {
        assert!(field.len() <= bytes, "the caller has bounded the field");
        let end = self.bytes.len() + bytes;
        self.put(field);
        self.bytes.resize(end, 0);
    }

    /// Adds zeros up to `offset` from the start.
    pub(crate) fn zeros_until(&mut self, offset: usize) {
        assert!(self.bytes.len() <= offset, "the earlier fields end before the offset");
        self.bytes.resize(offset, 0);
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// Reads fields. The caller has checked that there are enough bytes.
pub(crate) struct FieldReader<'a> {
    rest: &'a [u8],
}

impl<'a> FieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next `N` bytes.
    pub(crate) fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.rest.split_first_chunk().expect("the length was checked");
        self.rest = rest;
        *field
    }

    pub(crate) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.take())
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// The next `bytes` bytes.
    pub(crate) fn slice(&mut self, bytes: usize) -> &'a [u8] {
        let (field, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        field
    }

    /// Whether the next `bytes` bytes are all zero.
    pub(crate) fn zeros(&mut self, bytes: usize) -> bool {
        self.slice(bytes).iter().all(|byte| *byte == 0)
    }

    /// Whether all remaining bytes are zero.
    pub(crate) fn only_zeros_left(&mut self) -> bool {
        self.zeros(self.rest.len())
    }
}
