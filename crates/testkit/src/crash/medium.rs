//! A file or a disk whose latest writes are not durable yet.
//!
//! A crash keeps or drops each write. A torn write is kept or dropped sector by sector. That covers
//! every order in which a cache may write back. Take two writes to one sector. If only the later
//! one is kept, the result equals that of both in order. If only the earlier one is kept, it equals
//! that of both in reverse order.

use std::io;
use std::ops::Range;

use rand::RngExt;
use rand::rngs::StdRng;

use super::fault::{FailedSync, Survival, Verdict};

/// Number of bytes that a disk writes atomically.
pub(super) const SECTOR_BYTES: usize = 512;

/// Maximum bytes of pending writes. Above this, the oldest writes become durable without a sync, as
/// in a kernel that is short of memory.
const PENDING_BYTES_MAX: usize = 64 << 20;

#[derive(Clone, Default)]
pub(super) struct Medium {
    /// The contents after a power failure that keeps no unsynced write.
    durable: Vec<u8>,
    /// The contents that reads return.
    cached: Vec<u8>,
    /// Writes since the last sync, oldest first.
    pending: Vec<Write>,
    pending_bytes: usize,
    /// Number of pending writes that the current sync makes durable.
    being_synced: Option<usize>,
}

#[derive(Clone)]
struct Write {
    offset: usize,
    bytes: Vec<u8>,
}

impl Medium {
    /// Creates a medium that contains `bytes` durably.
    pub(super) fn holding(bytes: Vec<u8>) -> Self {
        Self { cached: bytes.clone(), durable: bytes, ..Self::default() }
    }

    /// Replaces the contents with `bytes`, durably. Reuses the memory.
    pub(super) fn hold(&mut self, bytes: &[u8]) {
        for held in [&mut self.cached, &mut self.durable] {
            held.clear();
            held.extend_from_slice(bytes);
        }
        self.pending.clear();
        self.pending_bytes = 0;
        self.being_synced = None;
    }

    /// The contents that reads return.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.cached
    }

    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) {
        let write = Write { offset, bytes: bytes.to_vec() };
        put(&mut self.cached, offset, bytes);
        self.pending_bytes += bytes.len();
        self.pending.push(write);
        if self.pending_bytes > PENDING_BYTES_MAX {
            self.write_back();
        }
    }

    /// Does a failed write: writes a random subset of its sectors.
    pub(super) fn write_sectors(&mut self, offset: usize, bytes: &[u8], coins: &mut StdRng) {
        for range in sectors(offset, bytes.len()) {
            if coins.random() {
                self.write(offset + range.start, &bytes[range]);
            }
        }
    }

    /// Does a failed append: writes a random prefix.
    pub(super) fn write_prefix(&mut self, offset: usize, bytes: &[u8], coins: &mut StdRng) {
        let most = match coins.random_range(0..4) {
            0 => 0,
            1 => bytes.len(),
            _ => coins.random_range(0..=bytes.len()),
        };
        if most > 0 {
            self.write(offset, &bytes[..most]);
        }
    }

    /// Does a sync with the outcome `verdict`. A sync during a crash may have worked.
    pub(super) fn answer_sync(
        &mut self,
        verdict: Verdict,
        mode: FailedSync,
        coins: &mut StdRng,
    ) -> io::Result<()> {
        self.being_synced = None;
        self.answer_sync_of(self.pending.len(), verdict, mode, coins)
    }

    /// Begins a sync of the writes so far. The sync takes effect when it is finished, or in a
    /// crash.
    pub(super) fn begin_sync(&mut self) {
        self.being_synced = Some(self.pending.len());
    }

    /// Finishes the sync that was begun, with the outcome `verdict`. If no sync was begun, syncs
    /// all writes.
    pub(super) fn answer_begun_sync(
        &mut self,
        verdict: Verdict,
        mode: FailedSync,
        coins: &mut StdRng,
    ) -> io::Result<()> {
        let writes = self.being_synced.take().unwrap_or(self.pending.len());
        self.answer_sync_of(writes, verdict, mode, coins)
    }

    fn answer_sync_of(
        &mut self,
        writes: usize,
        verdict: Verdict,
        mode: FailedSync,
        coins: &mut StdRng,
    ) -> io::Result<()> {
        match verdict {
            Verdict::Go => self.write_back_first(writes),
            Verdict::Fail(_) => self.fail_sync(mode, coins),
            Verdict::Crash if coins.random() => self.write_back_first(writes),
            Verdict::Crash => {}
        }
        verdict.answer()
    }

    /// Makes the oldest pending writes durable: `writes` of them.
    fn write_back_first(&mut self, writes: usize) {
        for write in self.pending.drain(..writes) {
            put(&mut self.durable, write.offset, &write.bytes);
            self.pending_bytes -= write.bytes.len();
        }
        self.being_synced = self.being_synced.map(|count| count.saturating_sub(writes));
    }

    fn fail_sync(&mut self, mode: FailedSync, coins: &mut StdRng) {
        match mode {
            FailedSync::Drops => self.keep_some(0.5, true, None, coins),
            FailedSync::Retains => {}
        }
    }

    /// Crashes. If survival is random, each pending write survives with probability `kept_share`,
    /// and holes can remain in the part by which the medium grew since the last sync. The holes
    /// show the bytes of `beneath`, and zeros after its end.
    pub(super) fn crash(
        &mut self,
        survival: Survival,
        kept_share: f64,
        beneath: Option<&[u8]>,
        coins: &mut StdRng,
    ) {
        match survival {
            Survival::All => {}
            Survival::None => self.keep_some(0.0, false, None, coins),
            Survival::Random { torn } => self.keep_some(kept_share, torn, beneath, coins),
        }
        self.being_synced = None;
        self.cached.clone_from(&self.durable);
        for write in &self.pending {
            put(&mut self.cached, write.offset, &write.bytes);
        }
    }

    /// Replaces bytes without a write: in the cache, in pending writes and durably.
    pub(super) fn tamper(&mut self, offset: usize, bytes: &[u8]) {
        for write in &mut self.pending {
            let both = overlap(offset..offset + bytes.len(), write.offset, write.bytes.len());
            for at in both {
                write.bytes[at - write.offset] = bytes[at - offset];
            }
        }
        put(&mut self.cached, offset, bytes);
        let durable = overlap(offset..offset + bytes.len(), 0, self.durable.len());
        for at in durable {
            self.durable[at] = bytes[at - offset];
        }
    }

    /// Makes each pending write durable with probability `kept_share`, and forgets the others. If
    /// `torn`, chooses the sectors of a write that becomes durable in the same way.
    fn keep_some(
        &mut self,
        kept_share: f64,
        torn: bool,
        beneath: Option<&[u8]>,
        coins: &mut StdRng,
    ) {
        let grown_from = self.durable.len();
        let mut is_hole: Vec<bool> = Vec::new();
        for write in std::mem::take(&mut self.pending) {
            if !coins.random_bool(kept_share) {
                continue;
            }
            let kept: Vec<_> = sectors(write.offset, write.bytes.len())
                .filter(|_| !torn || coins.random_bool(kept_share))
                .collect();
            // The file may reach its full length without its last bytes, or end with the last
            // sector that was kept.
            let reaches = match kept.last() {
                Some(last) if coins.random() => write.offset + last.end,
                _ => write.offset + write.bytes.len(),
            };
            if reaches > self.durable.len() {
                self.durable.resize(reaches, 0);
                is_hole.resize(reaches - grown_from, true);
            }
            for range in kept {
                let start = write.offset + range.start;
                put(&mut self.durable, start, &write.bytes[range.clone()]);
                for at in start.max(grown_from)..start + range.len() {
                    is_hole[at - grown_from] = false;
                }
            }
        }
        self.pending_bytes = 0;
        self.being_synced = self.being_synced.map(|_| 0);
        let beneath = beneath.unwrap_or_default();
        for (at, _) in (grown_from..).zip(is_hole).filter(|(_, is_hole)| *is_hole) {
            self.durable[at] = beneath.get(at).copied().unwrap_or(0);
        }
    }

    fn write_back(&mut self) {
        let mut left = self.pending_bytes;
        let is_too_much = |write: &&Write| {
            let is_too_much = left > PENDING_BYTES_MAX / 2;
            left -= write.bytes.len();
            is_too_much
        };
        let count = self.pending.iter().take_while(is_too_much).count();
        self.write_back_first(count);
    }
}

/// Writes `bytes` at `offset`, padding with zeros if the medium is shorter.
fn put(medium: &mut Vec<u8>, offset: usize, bytes: &[u8]) {
    let end = offset + bytes.len();
    if medium.len() < end {
        medium.resize(end, 0);
    }
    medium[offset..end].copy_from_slice(bytes);
}

/// Splits a write of `length` bytes at `offset` at sector boundaries. Ranges are relative to the
/// start of the write.
fn sectors(offset: usize, length: usize) -> impl Iterator<Item = Range<usize>> {
    let first = offset / SECTOR_BYTES;
    let last = (offset + length).div_ceil(SECTOR_BYTES);
    (first..last).filter(move |_| length > 0).map(move |sector| {
        let start = (sector * SECTOR_BYTES).max(offset);
        let end = ((sector + 1) * SECTOR_BYTES).min(offset + length);
        start - offset..end - offset
    })
}

fn overlap(range: Range<usize>, offset: usize, length: usize) -> Range<usize> {
    range.start.max(offset)..range.end.min(offset + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    fn coins(seed: u64) -> StdRng {
        StdRng::seed_from_u64(seed)
    }

    fn crashed(medium: &Medium, survival: Survival, seed: u64) -> Medium {
        let mut medium = medium.clone();
        let mut coins = coins(seed);
        medium.crash(survival, 0.5, None, &mut coins);
        medium
    }

    #[test]
    fn sectors_lie_on_the_grid_of_the_medium() {
        let of = |offset, length| sectors(offset, length).collect::<Vec<_>>();
        assert_eq!(of(0, 1024), [0..512, 512..1024]);
        assert_eq!(of(500, 24), [0..12, 12..24]);
        assert_eq!(of(1024, 1000), [0..512, 512..1000]);
        assert_eq!(of(700, 0), []);
    }

    #[test]
    fn writes_of_one_sector_survive_in_each_combination() {
        let mut medium = Medium::holding(vec![b'0'; 2]);
        medium.write(0, b"11");
        medium.write(1, b"2");
        let outcomes: std::collections::BTreeSet<_> = (0..200)
            .map(|seed| crashed(&medium, Survival::Random { torn: true }, seed).cached)
            .collect();
        let expected = ["00", "02", "11", "12"].map(|text| text.as_bytes().to_vec());
        assert_eq!(outcomes, expected.into());
    }

    #[test]
    fn unsynced_writes_survive_a_kill_but_not_the_next_power_cut() {
        let mut medium = Medium::holding(b"old".to_vec());
        medium.write(0, b"new");
        let killed = crashed(&medium, Survival::All, 0);
        assert_eq!(killed.bytes(), b"new");
        assert_eq!(crashed(&killed, Survival::None, 0).bytes(), b"old");
        let mut synced = killed.clone();
        synced.write_back_first(1);
        assert_eq!(crashed(&synced, Survival::None, 0).bytes(), b"new");
    }

    #[test]
    fn a_begun_sync_covers_only_earlier_writes() {
        let mut medium = Medium::default();
        let mut coins = coins(1);
        let mut finish = |medium: &mut Medium| {
            medium.answer_begun_sync(Verdict::Go, FailedSync::Drops, &mut coins).unwrap();
            crashed(medium, Survival::None, 0).cached
        };
        medium.write(0, b"before");
        medium.begin_sync();
        medium.write(6, b" meanwhile");
        assert_eq!(crashed(&medium, Survival::None, 0).bytes(), b"");
        assert_eq!(finish(&mut medium), b"before");
        // No sync was begun, so this is a whole one.
        assert_eq!(finish(&mut medium), b"before meanwhile");
    }

    #[test]
    fn no_later_sync_recovers_the_writes_that_a_failed_sync_dropped() {
        let mut medium = Medium::holding(vec![0; 64 * SECTOR_BYTES]);
        medium.write(0, &[1; 64 * SECTOR_BYTES]);
        let mut retained = medium.clone();
        medium.fail_sync(FailedSync::Drops, &mut coins(1));
        assert!(medium.bytes().iter().all(|byte| *byte == 1), "the cache still shows it");
        medium.write_back_first(medium.pending.len());
        let left = crashed(&medium, Survival::None, 0).cached;
        let kept = left.iter().filter(|byte| **byte == 1).count();
        assert!(kept.is_multiple_of(SECTOR_BYTES) && kept < left.len(), "{kept} bytes");
        retained.fail_sync(FailedSync::Retains, &mut coins(1));
        retained.write_back_first(1);
        assert_eq!(crashed(&retained, Survival::None, 0).bytes(), [1; 64 * SECTOR_BYTES]);
    }

    #[test]
    fn holes_show_zeros_or_old_contents() {
        let mut medium = Medium::holding(b"kept".to_vec());
        medium.write(4, b"AAAA");
        medium.write(8, b"BBBB");
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            for beneath in [None, Some(&b"0123456789abcdef"[..])] {
                let mut medium = medium.clone();
                medium.crash(Survival::Random { torn: false }, 0.5, beneath, &mut coins(seed));
                seen.insert(String::from_utf8(medium.cached).unwrap());
            }
        }
        let expected = ["kept", "keptAAAA", "keptAAAABBBB", "kept\0\0\0\0BBBB", "kept4567BBBB"];
        assert_eq!(seen, expected.map(String::from).into());
    }

    #[test]
    fn the_length_of_a_file_may_survive_without_its_last_sectors() {
        let mut medium = Medium::default();
        medium.write(0, &[7; 3 * SECTOR_BYTES]);
        let outcomes: Vec<_> = (0..200)
            .map(|seed| crashed(&medium, Survival::Random { torn: true }, seed).cached)
            .collect();
        assert!(outcomes.iter().any(Vec::is_empty));
        assert!(outcomes.iter().any(|file| file.len() == SECTOR_BYTES));
        assert!(outcomes.iter().any(|file| file.len() == 3 * SECTOR_BYTES && file[1024] == 0));
        assert!(outcomes.contains(&vec![7; 3 * SECTOR_BYTES]));
    }

    #[test]
    fn tampering_reaches_every_copy() {
        let mut medium = Medium::holding(b"abcdef".to_vec());
        medium.write(2, b"CD");
        medium.tamper(1, b"xyz");
        assert_eq!(medium.bytes(), b"axyzef");
        for survival in Survival::MODES {
            assert_eq!(crashed(&medium, survival, 3).bytes(), b"axyzef");
        }
    }

    #[test]
    fn excess_pending_writes_are_written_back_oldest_first() {
        let mut medium = Medium::holding(vec![0; 8 << 20]);
        for round in 1..=9 {
            medium.write(0, &vec![round; 8 << 20]);
        }
        assert!(medium.pending_bytes <= PENDING_BYTES_MAX);
        assert_eq!(crashed(&medium, Survival::None, 0).bytes()[0], 5);
        assert_eq!(crashed(&medium, Survival::All, 0).bytes()[0], 9);
    }
}
