//! Cuts connections on purpose.

use std::sync::atomic::{AtomicBool, Ordering};

/// The rule for cutting connections: after a number of bytes, in both directions together.
#[derive(Debug)]
pub struct Cuts {
    after_bytes: u64,
    is_each_cut: bool,
    was_one_cut: AtomicBool,
}

impl Cuts {
    /// Cuts the first connection that carries `bytes`.
    pub fn once_after(bytes: u64) -> Self {
        Self { after_bytes: bytes, is_each_cut: false, was_one_cut: AtomicBool::new(false) }
    }

    /// Cuts every connection that carries `bytes`.
    pub fn each_after(bytes: u64) -> Self {
        Self { is_each_cut: true, ..Self::once_after(bytes) }
    }

    /// Decides whether a connection that has carried `carried` bytes is cut within the next `bytes`
    /// bytes. If so, returns how many of these bytes it carries before the cut. With
    /// [`Self::once_after`], only one connection is cut.
    pub(super) fn end_within(&self, carried: u64, bytes: u64) -> Option<u64> {
        let left = self.after_bytes.checked_sub(carried)?;
        let is_due = left <= bytes;
        let is_cut = is_due && (self.is_each_cut || !self.was_one_cut.swap(true, Ordering::SeqCst));
        is_cut.then_some(left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_connection_is_cut_or_each() {
        let once = Cuts::once_after(100);
        assert_eq!(once.end_within(0, 99), None);
        assert_eq!(once.end_within(99, 10), Some(1));
        assert_eq!(once.end_within(0, 100), None);
        let each = Cuts::each_after(100);
        assert_eq!(each.end_within(0, 100), Some(100));
        assert_eq!(each.end_within(60, 80), Some(40));
        assert_eq!(each.end_within(101, 80), None);
    }
}
