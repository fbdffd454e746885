//! Four copies of the superblock, so that neither damage nor a crash loses the volume.
//!
//! ```text
//! TreeId(0) FRONT: copy 0, copy 1   …anchors, first tree…   TreeId(3) BACK: copy 2, copy 3
//! ```
//!
//! Two trees hold the copies, before and after the scheme's first tree. Each has two buckets of one
//! superblock. A new superblock is written to one pair, flushed, and written to the other pair: a
//! crash damages at most one pair.

use std::cmp::Reverse;

use oblivio_core::records::{self, RecordPlace, RecordStore};
use oblivio_core::store::{TreeId, TreeShape};

use super::error::{SuperblockError, SuperblockErrorKind};
use super::{LockedSuperblock, MAC_BYTES, SUPERBLOCK_BYTES, Superblock, Unlocked};
use crate::keys::{Budget, Secret, UnlockLimits};

/// The tree with the first pair of copies.
pub const FRONT: TreeId = TreeId(0);

/// The tree with the second pair of copies.
pub const BACK: TreeId = TreeId(3);

/// The number of copies.
pub const COPIES: usize = 4;

const PAIRS: [TreeId; 2] = [FRONT, BACK];
const COPIES_OF_PAIR: usize = records::PAIR as usize;

/// The shape of [`FRONT`] and of [`BACK`].
pub fn shape() -> TreeShape {
    records::pair_shape(SUPERBLOCK_BYTES)
}

/// The result of reading all copies.
#[derive(Debug)]
pub struct Copies {
    found: [Result<LockedSuperblock, SuperblockError>; COPIES],
    /// Further values that servers hold for the copies, because some servers were missing when the
    /// newest was written.
    others: Vec<LockedSuperblock>,
}

/// Reads all copies, each in its own trip: if one cannot be read, others can.
pub fn read_copies(store: &mut (impl RecordStore + ?Sized)) -> Copies {
    let mut sound: Vec<(Vec<u8>, LockedSuperblock)> = Vec::new();
    let mut others = Vec::new();
    let found = std::array::from_fn(|copy| {
        let mut decoded = Vec::new();
        read(store, copy, &mut |bytes| {
            // Most copies are equal: the checksum of equal bytes is computed once.
            if let Some((_, same)) = sound.iter().find(|(seen, _)| seen == bytes) {
                return decoded.push(Ok(same.clone()));
            }
            let found = LockedSuperblock::decode(bytes);
            sound.extend(found.iter().map(|found| (bytes.to_vec(), found.clone())));
            decoded.push(found);
        })?;
        decoded.sort_by_key(|found| Reverse(rank(found)));
        let mut decoded = decoded.into_iter();
        let first = decoded.next().unwrap_or_else(|| Err(not_one()));
        others.extend(decoded.flatten());
        first
    });
    Copies { found, others }
}

/// Ranks the values of one copy. The value with the highest rank is taken.
fn rank(found: &Result<LockedSuperblock, SuperblockError>) -> u64 {
    match found {
        // A newer program knows better which value is valid.
        Err(problem) if problem.kind() == SuperblockErrorKind::UnknownVersion => u64::MAX,
        Err(_) => 0,
        Ok(found) => found.unauthenticated_sequence(),
    }
}

impl Copies {
    /// Each copy, or its error: the front pair, then the back pair.
    pub fn each(&self) -> &[Result<LockedSuperblock, SuperblockError>; COPIES] {
        &self.found
    }

    /// If any copy is sound, treats copies with an unknown version or scheme as damaged.
    pub(crate) fn leave_out_newer(&mut self) {
        if self.sound().next().is_none() {
            return;
        }
        for copy in &mut self.found {
            if let Err(problem) = copy
                && problem.kind() == SuperblockErrorKind::UnknownVersion
            {
                let message = format!("others are sound: {problem}");
                *copy = Err(SuperblockError::new(SuperblockErrorKind::Damaged, message));
            }
        }
    }

    /// The sound copy with the highest sequence number. Not authenticated.
    ///
    /// # Errors
    /// [`SuperblockErrorKind::UnknownVersion`] when any copy has a version or scheme that this
    /// program does not know, even if other copies are sound. If no copy is sound:
    /// [`SuperblockErrorKind::Store`] when one could not be read, [`SuperblockErrorKind::Tampered`]
    /// or [`SuperblockErrorKind::Damaged`] when one at least begins like a superblock, otherwise
    /// [`SuperblockErrorKind::NotAVolume`].
    pub fn newest(&self) -> Result<&LockedSuperblock, SuperblockError> {
        self.newest_first().map(|copies| copies[0])
    }

    /// Unlocks the newest authentic copy. A copy that does not open, or that was changed without
    /// the key, does not hide the good ones.
    ///
    /// # Errors
    /// The errors of [`Self::newest`], and of [`LockedSuperblock::unlock`] for the newest copy, if
    /// none opens. If the secret opens an older copy but not a newer authentic one, the secret was
    /// removed: the error is that of the newer copy.
    pub fn unlock(
        &self,
        secret: &Secret,
        limits: UnlockLimits,
    ) -> Result<Unlocked, SuperblockError> {
        self.unlock_named(secret, limits, |_| None)
    }

    /// Like [`Self::unlock`], but chooses between different authentic copies with the highest
    /// number, which exist if a lost change was repeated. Takes the copy with the MAC that `named`
    /// returns, which the client's directory names; without such a copy, the first one.
    pub(crate) fn unlock_named(
        &self,
        secret: &Secret,
        limits: UnlockLimits,
        named: impl FnOnce(&Unlocked) -> Option<[u8; MAC_BYTES]>,
    ) -> Result<Unlocked, SuperblockError> {
        let mut budget = Budget::new(limits);
        let mut refused: Vec<(&LockedSuperblock, SuperblockError)> = Vec::new();
        let copies = self.newest_first()?;
        for copy in &copies {
            let unlocked = match copy.unlock_within(secret, &mut budget) {
                Ok(unlocked) => unlocked,
                Err(error) => {
                    refused.push((copy, error));
                    continue;
                }
            };
            let authentic = copies.iter().filter(|it| it.is_authentic(&unlocked.volume_key));
            let authentic: Vec<_> = authentic.collect();
            let sequence = authentic[0].unauthenticated_sequence();
            let is_newest = |it: &&&LockedSuperblock| it.unauthenticated_sequence() == sequence;
            let newest: Vec<_> = authentic.into_iter().filter(is_newest).collect();
            let mac = if newest.len() > 1 { named(&unlocked) } else { None };
            let counts = newest.iter().copied().find(|it| Some(it.mac) == mac).unwrap_or(newest[0]);
            if counts.is(&unlocked.superblock) {
                return Ok(unlocked);
            }
            return match refused.into_iter().find(|(refused, _)| refused == counts) {
                Some((_, error)) => Err(error),
                None => counts.unlock_within(secret, &mut budget),
            };
        }
        Err(refused.swap_remove(0).1)
    }

    /// The sound copies, each once, by descending sequence number. At least one.
    fn newest_first(&self) -> Result<Vec<&LockedSuperblock>, SuperblockError> {
        use SuperblockErrorKind::{Damaged, NotAVolume, Store, Tampered, UnknownVersion};
        let problem = |kind| {
            let mut problems = self.found.iter().filter_map(|copy| copy.as_ref().err());
            problems.find(|problem| problem.kind() == kind)
        };
        if let Some(problem) = problem(UnknownVersion) {
            return Err(problem.clone());
        }
        let mut sound: Vec<&LockedSuperblock> = Vec::new();
        for copy in self.sound() {
            if !sound.contains(&copy) {
                sound.push(copy);
            }
        }
        sound.sort_by_key(|copy| Reverse(copy.unauthenticated_sequence()));
        if !sound.is_empty() {
            return Ok(sound);
        }
        Err(match [Store, Tampered, Damaged, NotAVolume].into_iter().find_map(problem) {
            Some(problem) if problem.kind() == Damaged => SuperblockError::new(
                Damaged,
                "all copies of the superblock are damaged: restore one from a backup",
            ),
            Some(problem) => problem.clone(),
            None => unreachable!("a copy that cannot be decoded has one of these problems"),
        })
    }

    fn sound(&self) -> impl Iterator<Item = &LockedSuperblock> {
        self.found.iter().flatten().chain(&self.others)
    }

    /// Whether one of the sound copies is `superblock`.
    pub(crate) fn contains(&self, superblock: &LockedSuperblock) -> bool {
        self.sound().any(|copy| copy == superblock)
    }

    /// Whether some copies are authentic, and each of these is older than `newest`, or has its
    /// number and differs from it.
    pub(crate) fn are_older_than(&self, newest: &Unlocked) -> bool {
        let Unlocked { superblock, volume_key, .. } = newest;
        let mut authentic = self.sound().filter(|copy| copy.is_authentic(volume_key)).peekable();
        let is_older = |copy: &LockedSuperblock| {
            copy.unauthenticated_sequence() <= superblock.sequence() && !copy.is(superblock)
        };
        authentic.peek().is_some() && authentic.all(is_older)
    }

    /// The newest authentic superblock: `owner`'s, unless a copy has a higher number. `None` if no
    /// copy is authentic.
    pub(crate) fn newest_of(&self, owner: &Unlocked) -> Option<Box<[u8; SUPERBLOCK_BYTES]>> {
        let Unlocked { superblock, volume_key, .. } = owner;
        let authentic = self.sound().filter(|copy| copy.is_authentic(volume_key));
        let newest = authentic.max_by_key(|copy| copy.unauthenticated_sequence())?;
        let is_newer = newest.unauthenticated_sequence() > superblock.sequence();
        Some(if is_newer { newest.encode() } else { superblock.encode() })
    }

    /// Number of copies in the pair that have the highest sequence number of all copies.
    fn newest_of_pair(&self, pair: usize) -> usize {
        let sequence = LockedSuperblock::unauthenticated_sequence;
        let newest = self.sound().map(sequence).max();
        let of_pair = self.of_pair(pair).iter().flatten();
        of_pair.filter(|copy| Some(sequence(copy)) == newest).count()
    }

    fn of_pair(&self, pair: usize) -> &[Result<LockedSuperblock, SuperblockError>] {
        &self.found[pair * COPIES_OF_PAIR..][..COPIES_OF_PAIR]
    }
}

/// Stores `superblock` in all copies. At any crash, one pair is untouched or finished: if all
/// copies were good before, at least two are the old superblock or the new one.
///
/// The pair with fewer copies of the highest sequence number is written first.
///
/// # Errors
/// [`SuperblockErrorKind::Store`]. Some copies may then be old and some new: read them again.
pub fn write_copies(
    store: &mut (impl RecordStore + ?Sized),
    superblock: &Superblock,
) -> Result<(), SuperblockError> {
    let copies = read_copies(store);
    write_pairs(store, superblock, |pair| copies.newest_of_pair(pair))
}

/// Stores `superblock` in all copies, although storage shows it already: it may be in a cache only,
/// because a failed sync has dropped it.
///
/// The pair that holds it is written first. The other pair may hold the only durable copies of the
/// previous superblock.
///
/// # Errors
/// [`SuperblockErrorKind::Store`]. Some copies may then be old and some new: read them again.
pub fn rewrite_copies(
    store: &mut (impl RecordStore + ?Sized),
    superblock: &Superblock,
) -> Result<(), SuperblockError> {
    let copies = read_copies(store);
    let differing =
        |copy: &&Result<LockedSuperblock, _>| !copy.as_ref().is_ok_and(|copy| copy.is(superblock));
    write_pairs(store, superblock, |pair| copies.of_pair(pair).iter().filter(differing).count())
}

/// Writes the pairs in ascending order of `rank`. Each is durable before the next is touched.
fn write_pairs(
    store: &mut (impl RecordStore + ?Sized),
    superblock: &Superblock,
    rank: impl Fn(usize) -> usize,
) -> Result<(), SuperblockError> {
    let mut pairs: [usize; PAIRS.len()] = std::array::from_fn(|pair| pair);
    pairs.sort_by_key(|pair| rank(*pair));
    for pair in pairs {
        let first = pair * COPIES_OF_PAIR;
        write(store, first..first + COPIES_OF_PAIR, superblock)?;
    }
    Ok(())
}

/// Stores `superblock`, which must be unlocked, in the copies that are damaged or hold another
/// superblock. Returns the number of these copies. On a single store, good copies are not touched.
/// Share servers get all copies: a server that was missing may hold others, which the present
/// servers outvote.
///
/// # Errors
/// [`SuperblockErrorKind::Store`]. Good copies are then still good.
pub fn repair(
    store: &mut (impl RecordStore + ?Sized),
    superblock: &Superblock,
) -> Result<usize, SuperblockError> {
    let copies = read_copies(store);
    let is_good = |copy: usize| {
        let found = copies.found[copy].as_ref();
        found.is_ok_and(|found| found.is(superblock))
    };
    let bad: Vec<usize> = (0..COPIES).filter(|copy| !is_good(*copy)).collect();
    if superblock.params().is_on_servers() {
        rewrite_copies(store, superblock)?;
    } else if !bad.is_empty() {
        write(store, bad.iter().copied(), superblock)?;
    }
    Ok(bad.len())
}

/// The places of all copies.
pub(crate) fn places() -> impl Iterator<Item = RecordPlace> {
    (0..COPIES).map(place)
}

/// Passes the values that storage shows for a copy to `each`. Servers may show several.
fn read(
    store: &mut (impl RecordStore + ?Sized),
    copy: usize,
    each: &mut dyn FnMut(&[u8]),
) -> Result<(), SuperblockError> {
    check_shape(store)?;
    let mut is_one = true;
    store.read_records(&[place(copy)], &mut |i, bytes| match i {
        0 => each(bytes),
        _ => is_one = false,
    })?;
    if is_one { Ok(()) } else { Err(not_one()) }
}

fn not_one() -> SuperblockError {
    SuperblockError::new(
        SuperblockErrorKind::Store,
        "storage answered with more or fewer superblocks than were requested: check the disk or \
         server that holds it",
    )
}

/// Writes some copies, and returns once they are durable.
fn write(
    store: &mut (impl RecordStore + ?Sized),
    copies: impl Iterator<Item = usize>,
    superblock: &Superblock,
) -> Result<(), SuperblockError> {
    check_shape(store)?;
    let places: Vec<_> = copies.map(place).collect();
    store.write_records(&places, &superblock.encode()[..])?;
    Ok(store.flush_records()?)
}

fn place(copy: usize) -> RecordPlace {
    let (pair, index) = (copy / COPIES_OF_PAIR, copy % COPIES_OF_PAIR);
    RecordPlace { tree: PAIRS[pair], index: index as u64 }
}

fn check_shape(store: &(impl RecordStore + ?Sized)) -> Result<(), SuperblockError> {
    if PAIRS.iter().all(|tree| store.has_pair(*tree, SUPERBLOCK_BYTES)) {
        Ok(())
    } else {
        Err(SuperblockError::new(
            SuperblockErrorKind::Store,
            "storage has no room for superblocks: it was made for something else",
        ))
    }
}
