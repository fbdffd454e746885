//! Splits long reads and writes into portions, so that the server needs memory only for some
//! portions and not for a whole request.

use std::sync::{Arc, Mutex, PoisonError};

use oblivio_volume::device::{BlockDevice, Division};

use super::requests::Permit;
use super::wire::{Errno, RequestHead, command, command_flag};

/// The maximum length of a portion in bytes, unless a block or a range of the disk is longer.
pub(super) const PORTION_BYTES_MAX: u32 = 32 << 10;

/// The boundaries of portions. Portions never split a block: a block is written atomically, and its
/// parts would cost extra accesses. Portions never split a range, whose parts would be accessed
/// separately.
#[derive(Clone, Copy)]
pub(super) struct PortionBounds {
    /// The maximum length in bytes of a portion of a request that can be split.
    pub(super) portion_bytes: u32,
    /// The block size, if portions are aligned to the start of the request's first block. `None` if
    /// they are aligned to the start of the disk.
    from_request: Option<u32>,
}

impl PortionBounds {
    pub(super) fn for_device(device: &dyn BlockDevice) -> Self {
        let Division { bytes, from_request } = device.division();
        let bytes = bytes.max(1);
        Self {
            portion_bytes: bytes * (PORTION_BYTES_MAX / bytes).max(1),
            from_request: from_request.then(|| device.block_bytes().max(1)),
        }
    }

    /// The offset that portions of a request at `offset` are aligned to.
    fn origin(&self, offset: u64) -> u64 {
        self.from_request.map_or(0, |block_bytes| offset - offset % u64::from(block_bytes))
    }
}

/// Splits a request within the disk into portions, each a request of its own.
pub(super) fn portions(
    head: RequestHead,
    structured: bool,
    bounds: PortionBounds,
) -> impl Iterator<Item = RequestHead> + Clone {
    let is_divisible = match head.command {
        command::WRITE => true,
        // A simple reply states success before the data, so it cannot be sent in portions.
        command::READ => structured && head.flags & command_flag::DF == 0,
        _ => false,
    };
    let end = head.offset + u64::from(head.bytes);
    let (mut left, origin) = (Some(head.offset), bounds.origin(head.offset));
    std::iter::from_fn(move || {
        let offset = left?;
        let boundary = origin + (offset + 1 - origin).next_multiple_of(bounds.portion_bytes.into());
        let until = if is_divisible { end.min(boundary) } else { end };
        left = (until < end).then_some(until);
        Some(RequestHead { offset, bytes: (until - offset) as u32, ..head })
    })
}

/// A request that has unanswered portions.
pub(super) struct PendingRequest {
    pub(super) head: RequestHead,
    pub(super) portions: usize,
    progress: Mutex<Progress>,
    /// The connection's permit for this request, held until the reply is written.
    #[expect(dead_code, reason = "held")]
    place: Permit,
}

struct Progress {
    portions_left: usize,
    failure: Option<Errno>,
}

/// The progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Other portions of the request are unanswered.
    Underway,
    /// All portions of the request are answered. Holds the first error, if any.
    Over(Option<Errno>),
}

impl PendingRequest {
    pub(super) fn new(head: RequestHead, portions: usize, place: Permit) -> Arc<Self> {
        let progress = Progress { portions_left: portions, failure: None };
        Arc::new(Self { head, portions, progress: Mutex::new(progress), place })
    }

    /// Notes the answer to another portion of the request.
    pub(super) fn advance(&self, failure: Option<Errno>) -> Stage {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.portions_left -= 1;
        progress.failure = progress.failure.or(failure);
        match progress.portions_left {
            0 => Stage::Over(progress.failure),
            _ => Stage::Underway,
        }
    }
}

#[cfg(test)]
mod tests {
    use oblivio_volume::device::Request;

    use super::*;

    const LONGEST: u32 = PORTION_BYTES_MAX;

    /// A disk with ranges of this many bytes. The flag says whether ranges start at the request's
    /// first block.
    struct Disk(u32, bool);

    impl BlockDevice for Disk {
        fn bytes(&self) -> u64 {
            u64::MAX
        }

        fn block_bytes(&self) -> u32 {
            self.0.min(4096)
        }

        fn division(&self) -> Division {
            Division { bytes: self.0, from_request: self.1 }
        }

        fn request_bytes_max(&self) -> u32 {
            u32::MAX
        }

        fn submit(&self, _: Request) {}
    }

    #[test]
    fn portions_are_whole_blocks() {
        for (block_bytes, expected) in
            [(1, LONGEST), (4096, LONGEST), (1000, 32_000), (20_000, 20_000), (64 << 10, 64 << 10)]
        {
            assert_eq!(
                PortionBounds::for_device(&Disk(block_bytes, false)).portion_bytes,
                expected
            );
        }
    }

    fn divided(command: u16, flags: u16, structured: bool, offset: u64, bytes: u32) -> Vec<u32> {
        let head = RequestHead { flags, command, cookie: 7, offset, bytes };
        let mut at = offset;
        let all = portions(head, structured, PortionBounds::for_device(&Disk(4096, false)))
            .inspect(|portion| {
                assert_eq!((portion.offset, portion.cookie), (at, 7));
                at += u64::from(portion.bytes);
            });
        let all = all.map(|portion| portion.bytes).collect();
        assert_eq!(at, offset + u64::from(bytes));
        all
    }

    #[test]
    fn long_requests_are_split_if_the_protocol_allows_it() {
        let (read, write, trim) = (command::READ, command::WRITE, command::TRIM);
        for (command, structured) in [(read, true), (write, false), (write, true)] {
            let divided = |offset, bytes| divided(command, 0, structured, offset, bytes);
            assert_eq!(divided(0, LONGEST), [LONGEST]);
            assert_eq!(divided(5, 1), [1]);
            assert_eq!(divided(0, LONGEST + 1), [LONGEST, 1]);
            assert_eq!(divided(u64::from(LONGEST) - 1, LONGEST + 2), [1, LONGEST, 1]);
            assert_eq!(divided(u64::MAX / 2, 32 * LONGEST).len(), 33);
        }
        // Aligned to the block in which the request begins.
        for command in [read, write] {
            let head = RequestHead { flags: 0, command, cookie: 7, offset: 5000, bytes: 99_000 };
            let bounds = PortionBounds::for_device(&Disk(1 << 16, true));
            let ends: Vec<_> =
                portions(head, true, bounds).map(|it| it.offset + u64::from(it.bytes)).collect();
            assert_eq!(ends, [4096 + (1 << 16), 104_000]);
        }
        let whole = [9 * LONGEST];
        assert_eq!(divided(read, 0, false, 1, 9 * LONGEST), whole);
        assert_eq!(divided(read, command_flag::DF, true, 1, 9 * LONGEST), whole);
        assert_eq!(divided(trim, 0, true, 1, 9 * LONGEST), whole);
    }
}
