//! The slots that a cluster distributes keys over.

/// The number of slots of a cluster.
pub(super) const SLOTS: u16 = 16384;

/// The slot of a key: CRC16 of the key, or of its hash tag if it has one.
pub(super) fn slot_of(key: &[u8]) -> u16 {
    crc16(hash_tag(key).unwrap_or(key)) % SLOTS
}

/// The part of a key between the first `{` and the next `}`, if it is not empty.
fn hash_tag(key: &[u8]) -> Option<&[u8]> {
    let start = key.iter().position(|byte| *byte == b'{')? + 1;
    let bytes = key[start..].iter().position(|byte| *byte == b'}')?;
    (bytes > 0).then(|| &key[start..start + bytes])
}

/// CRC-16/XMODEM: polynomial 0x1021, initially zero.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let index = usize::from((crc >> 8) ^ u16::from(*byte));
        (crc << 8) ^ CRC16_OF_BYTE[index]
    })
}

const CRC16_OF_BYTE: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// A set of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SlotSet(Box<[u64; SLOTS as usize / 64]>);

impl Default for SlotSet {
    fn default() -> Self {
        Self(Box::new([0; SLOTS as usize / 64]))
    }
}

impl SlotSet {
    /// Adds a slot. A number that is no slot is ignored.
    pub(super) fn insert(&mut self, slot: u16) {
        if let Some(word) = self.0.get_mut(usize::from(slot / 64)) {
            *word |= 1 << (slot % 64);
        }
    }

    pub(super) fn contains(&self, slot: u16) -> bool {
        self.0.get(usize::from(slot / 64)).is_some_and(|word| word >> (slot % 64) & 1 == 1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.iter().next().is_none()
    }

    /// The slots of this set, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u16> {
        (0..SLOTS).filter(|slot| self.contains(*slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        assert_eq!(crc16(b"123456789"), 0x31c3);
        // Answers of `CLUSTER KEYSLOT` of Redis 7.0.
        for (key, slot) in
            [("foo", 12182), ("", 0), ("{user1000}.following", 3443), ("foo{}{bar}", 8363)]
        {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
        assert_eq!(slot_of(b"{user1000}.followers"), slot_of(b"user1000"));
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
        assert_eq!(hash_tag(b"a}{b"), None);
    }

    #[test]
    fn sets_hold_what_was_inserted() {
        let mut set = SlotSet::default();
        assert!(set.is_empty());
        for slot in [0, 63, 64, SLOTS - 1, SLOTS, u16::MAX] {
            set.insert(slot);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, SLOTS - 1]);
        assert!(!set.contains(SLOTS));
    }
}
