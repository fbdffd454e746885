//! The ORAM controller on the chip, made of the engine. It turns requests of the LLC into paths on
//! the bus.
//!
//! ```text
//!  LLC ──► requests ──► engine (core) ──► paths ──► slots of a pace ──► DRAM
//!              │            │
//!              └── answered at once: in the stash, the tree top, or waiting to be written
//! ```
//!
//! This module implements no scheme. The engine serves a request as usual, and the store under it
//! logs the paths ([`PathAccess`]). The controller then plays them on the bus one by one, in slots
//! that the [`Pace`] allows. No other path comes between the paths of one request. So it makes no
//! difference that the engine has made all of them when the first one starts.
//!
//! | slot | use |
//! |---|---|
//! | the program is switched out | eviction of the stash, then move of the tree top and back |
//! | the stash is over its bound | background eviction |
//! | a request waits | the next path of its chain: position map, position map, data |
//! | nothing waits, and IR-DWB is on | a stage of an early write-back |
//! | nothing waits, and there is a pace | a dummy |

mod context_switch;
mod early;
mod engine;
mod initial;
mod pace;
mod path_log;
mod recursive;
mod requests;
mod spec;
pub(crate) mod tags;
mod tally;

#[cfg(test)]
mod tests;

pub use early::LastLevel;
pub use initial::InitialOram;
pub use pace::Pace;
pub use path_log::{PathAccess, Purpose, Writes};
pub use requests::WriteWatermarks;
pub use spec::{Initial, OldCopyPolicy, OramSpec, PositionMap, Remap, RhoSpec, Scheme};
pub use tally::ControllerTally;

use std::collections::VecDeque;

use oblivio_core::store::TreeId;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use crate::{Cycle, SimError};
use context_switch::ContextSwitches;
use early::EarlyWriter;
use engine::Engine;
use pace::Slots;
use path_log::PathLog;
use requests::{NextRequest, PendingRequest, Requests};

/// The times at which a path has been read, and has been written back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathTimes {
    /// The time at which the last block of the path has arrived.
    pub read: Cycle,
    /// The time at which the last block of the path has been sent.
    pub end: Cycle,
}

/// The bus to memory. It carries one path at a time.
pub trait Bus {
    /// Reads a path and writes it back, starting at `start`.
    fn carry(&mut self, path: &PathAccess, start: Cycle) -> PathTimes;

    /// Writes a path whose reads are answered from the queue of these writes. The path counts as
    /// read at `start`.
    fn carry_writes(&mut self, path: &PathAccess, start: Cycle) -> PathTimes;

    /// Writes the tree top to memory, starting at `start`, and then reads it again. Returns the
    /// time at which the last bucket has arrived.
    fn move_tree_top(&mut self, start: Cycle) -> Cycle;
}

/// The timing parameters of a controller. [`Default`] is Table I of IR-ORAM, with
/// [`Pace::DEFAULT`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerSpec {
    /// The rule for when paths start.
    pub pace: Pace,
    /// Whether unused slots write back dirty lines (IR-DWB).
    pub early_write_backs: bool,
    /// Latency on the chip in cycles: for a hit in the stash, and from the bus to the LLC.
    pub on_chip: Cycle,
    /// Numbers of waiting write-backs at which write-backs gain or lose priority over reads.
    pub write_marks: WriteWatermarks,
    /// Whether DRAM answers the reads of evictions and dummies from the queue of their own writes.
    /// Such a path costs half, and never [stops
    /// retirement](crate::processor::ProcessorSpec::paths_stop_retirement). No paper mentions this,
    /// but published simulators seem to do it.
    #[serde(default)]
    pub write_queue_answers: bool,
    /// Cycles that the program runs until it is switched out and the ORAM's state on the chip is
    /// flushed. `None` if it is never switched out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_switch: Option<Cycle>,
}

impl Default for ControllerSpec {
    fn default() -> Self {
        Self {
            pace: Pace::DEFAULT,
            early_write_backs: false,
            on_chip: 10,
            write_marks: WriteWatermarks { high: 40, low: 20 },
            write_queue_answers: false,
            context_switch: None,
        }
    }
}

/// The main tree. In ρ, an access to it ends a round.
const MAIN_TREE: TreeId = TreeId(0);

/// The controller, with its ORAM. `T` identifies a read.
pub struct Controller<B, T> {
    engine: Engine,
    log: PathLog,
    bus: B,
    remap: Remap,
    old_copy: OldCopyPolicy,
    spec: ControllerSpec,
    slots: Slots,
    requests: Requests<T>,
    /// Remaining paths of the current request.
    chain: VecDeque<PathAccess>,
    /// The read to answer when the chain is complete.
    reader: Option<T>,
    early: EarlyWriter,
    switches: ContextSwitches,
    /// Whether untimed paths may have ended in the middle of a round of ρ's two trees.
    is_round_open: bool,
    tally: ControllerTally,
}

/// Checks that the two specifications can be combined.
pub(crate) fn check(oram: &OramSpec, spec: &ControllerSpec) -> Result<(), SimError> {
    if oram.remap == Remap::Delayed && spec.early_write_backs {
        let message = "delayed remapping cannot be combined with early write-backs, since a cached \
                       block is not in the ORAM: leave one of them out";
        return Err(SimError::Spec(message.to_owned()));
    }
    if oram.remap == Remap::Delayed && oram.block_lines > 1 {
        let message = "with delayed remapping, the LLC may hold one line of a block that is out of \
                       the ORAM, but not the others: set block_lines = 1";
        return Err(SimError::Spec(message.to_owned()));
    }
    let is_recursive = oram.position_map == PositionMap::OwnTrees;
    if (oram.rho.is_some() || is_recursive) && spec.context_switch.is_some() {
        let message = "a context switch is simulated for one tree only, not for rho or plain \
                       recursion: leave context_switch out";
        return Err(SimError::Spec(message.to_owned()));
    }
    if is_recursive && oram.block_lines > 1 {
        let message = "position_map = \"own-trees\" (plain recursion) needs one line per block: \
                       set block_lines = 1";
        return Err(SimError::Spec(message.to_owned()));
    }
    if is_recursive && (oram.remap == Remap::Delayed || spec.early_write_backs) {
        let message = "position_map = \"own-trees\" (plain recursion) keeps all blocks in the ORAM \
                       and makes the paths of a request together: leave delayed remapping and \
                       early write-backs out";
        return Err(SimError::Spec(message.to_owned()));
    }
    if spec.write_marks.low >= spec.write_marks.high {
        let message = "the low mark of write-backs must be below the high mark";
        return Err(SimError::Spec(message.to_owned()));
    }
    Ok(())
}

/// An event that the controller reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerEvent<T> {
    /// A read is answered at this cycle.
    ReadAnswered(T, Cycle),
    /// The write-back of a dirty line leaves the queue at this cycle: it starts, or is cancelled
    /// because the LLC requests the line again.
    WriteBackAccepted(Cycle),
    /// The bus is busy reading a path of any purpose, or moving the tree top to memory and back.
    BusReading {
        /// The time at which the path or the move starts.
        from: Cycle,
        /// The time at which the last block of the path or of the tree top has arrived. Equal to
        /// `from` if the [write queue answers](ControllerSpec::write_queue_answers) the reads.
        until: Cycle,
    },
}

impl<B: Bus, T: Copy> Controller<B, T> {
    /// Creates a controller whose ORAM has served no request. All later randomness follows from
    /// `seed`.
    ///
    /// # Errors
    /// [`SimError::Spec`] if the specifications cannot be combined, or `initial` belongs to another
    /// ORAM. [`SimError::Engine`] if the engine does not support the ORAM.
    pub fn new(
        oram: &OramSpec,
        spec: &ControllerSpec,
        bus: B,
        initial: InitialOram,
        seed: u64,
    ) -> Result<Self, SimError> {
        check(oram, spec)?;
        let log = PathLog::new();
        let mut coins = request_rng(seed);
        let engine = Engine::new(oram, &log, initial, &mut coins)?;
        log.turn_on();
        Ok(Self {
            engine,
            log,
            bus,
            remap: oram.remap,
            old_copy: oram.rho.as_ref().map_or_else(OldCopyPolicy::default, |rho| rho.old_copy),
            spec: spec.clone(),
            slots: Slots::new(spec.pace),
            requests: Requests::new(spec.write_marks),
            chain: VecDeque::new(),
            reader: None,
            early: EarlyWriter::new(StdRng::from_rng(&mut coins)),
            switches: ContextSwitches::new(spec.context_switch),
            is_round_open: false,
            tally: ControllerTally::default(),
        })
    }

    /// Requests `line` at cycle `at`, as the read `name`. The request is answered at once if the
    /// line's block is on the client, or waits to be written.
    ///
    /// # Errors
    /// [`SimError::Engine`] if the line does not exist.
    pub fn read(
        &mut self,
        name: T,
        line: u64,
        at: Cycle,
        events: &mut Vec<ControllerEvent<T>>,
    ) -> Result<(), SimError> {
        if self.forward(line, at, events) {
            self.tally.forwarded += 1;
        } else if self.find_on_client(line)? {
            self.tally.served_on_client += 1;
        } else {
            self.requests.add_read(name, line, at);
            return Ok(());
        }
        events.push(ControllerEvent::ReadAnswered(name, at + self.spec.on_chip));
        Ok(())
    }

    /// Evicts a line from the LLC at `at`. If it is dirty, [`ControllerEvent::WriteBackAccepted`]
    /// reports when its write-back leaves the queue. A clean line matters only to delayed
    /// remapping.
    pub fn evict_line(&mut self, line: u64, is_dirty: bool, at: Cycle) {
        if is_dirty || self.remap == Remap::Delayed {
            self.requests.add_write(line, is_dirty, at);
        }
    }

    /// Notes that the LLC holds `line` before the timed run begins. With delayed remapping, this
    /// takes the block out of the ORAM, by untimed paths. Otherwise it does nothing.
    ///
    /// # Errors
    /// [`SimError::Engine`] if the line does not exist.
    pub fn preload_line(&mut self, line: u64) -> Result<(), SimError> {
        if self.remap == Remap::Delayed {
            self.make_ready()?;
            if !self.engine.take_on_client(line)? {
                self.engine.take(line)?;
            }
        }
        Ok(())
    }

    /// Notes that a line left the LLC before the timed run begins. In ρ, this moves the block to
    /// the small tree as in the timed run, by untimed paths. It does nothing without ρ, or for a
    /// clean line unless remapping is delayed.
    ///
    /// # Errors
    /// [`SimError::Engine`] if the line does not exist.
    pub fn preload_victim(&mut self, line: u64, is_dirty: bool) -> Result<(), SimError> {
        if !self.engine.has_small_tree() || (self.remap == Remap::AtAccess && !is_dirty) {
            return Ok(());
        }
        self.is_round_open = true;
        let log = self.log.clone();
        log.without_logging(|| {
            self.preload_line(line)?;
            self.make_ready()?;
            match self.remap {
                Remap::Delayed => self.engine.put_back(line)?,
                Remap::AtAccess if self.keeps_old_copy(line) => {
                    self.engine.take_and_resume(line)?;
                    self.engine.put_back(line)?;
                }
                Remap::AtAccess => {
                    if !self.find_on_client(line)? {
                        self.engine.access(line, true)?;
                    }
                }
            }
            Ok(())
        })
    }

    /// Ends the untimed phase of [`Self::preload_line`] and [`Self::preload_victim`]. The timed run
    /// begins at the start of a round of ρ.
    ///
    /// # Errors
    /// [`SimError::Engine`] for errors of the paths.
    pub fn start_timed_run(&mut self) -> Result<(), SimError> {
        self.make_ready()?;
        let mut untimed = Vec::new();
        self.log.move_to(&mut untimed);
        while untimed.pop().is_some_and(|last: PathAccess| last.tree != MAIN_TREE) {
            self.engine.dummy()?;
            self.log.move_to(&mut untimed);
        }
        if std::mem::take(&mut self.is_round_open) {
            self.log.without_logging(|| self.engine.end_round())?;
        }
        Ok(())
    }

    fn make_ready(&mut self) -> Result<(), SimError> {
        while !self.engine.is_ready() {
            self.engine.evict()?;
        }
        Ok(())
    }

    /// The time at which the controller acts next, if no other request arrives. `None` if it would
    /// only act after another request.
    pub fn next_slot(&self) -> Option<Cycle> {
        let is_under_way =
            !self.chain.is_empty() || !self.engine.is_ready() || self.switches.is_under_way();
        let waits = || [self.requests.first(), self.switches.due()].into_iter().flatten().min();
        self.slots.next(if is_under_way { Some(0) } else { waits() })
    }

    /// Uses the slot that starts at `slot`, as returned by [`Self::next_slot`], and appends the
    /// resulting events to `events`.
    ///
    /// # Errors
    /// [`SimError::Engine`] for errors of the paths, and [`SimError::Spec`] if the evictions at a
    /// context switch do not empty the stash. The simulation ends then.
    pub fn act(
        &mut self,
        slot: Cycle,
        cache: &mut impl LastLevel,
        events: &mut Vec<ControllerEvent<T>>,
    ) -> Result<(), SimError> {
        if self.chain.is_empty() {
            self.switches.begin(slot);
        }
        while self.chain.is_empty() {
            if self.switches.is_under_way() {
                if self.engine.stash_blocks() == 0 {
                    self.move_tree_top(slot, events);
                    return Ok(());
                }
                self.switches.evict()?;
                self.evict()?;
                self.tally.flush_evictions += self.chain.len() as u64;
            } else if !self.engine.is_ready() {
                self.evict()?;
            } else if let Some(turn) = self.requests.take(slot) {
                self.start(turn, slot, events)?;
            } else if !(self.spec.early_write_backs && self.write_early(slot, cache)?) {
                if self.spec.pace == Pace::Free {
                    return Ok(());
                }
                self.engine.dummy()?;
                self.log.move_to(&mut self.chain);
            }
        }
        let Some(path) = self.chain.pop_front() else { return Ok(()) };
        let is_background = matches!(path.purpose, Purpose::Eviction | Purpose::Dummy);
        let times = match is_background && self.spec.write_queue_answers {
            true => self.bus.carry_writes(&path, slot),
            false => self.bus.carry(&path, slot),
        };
        events.push(ControllerEvent::BusReading { from: slot, until: times.read });
        self.slots.take(slot, times.end);
        self.switches.ran();
        self.tally.count(&path, times.end - slot);
        if self.switches.is_under_way() {
            self.tally.busy_flushing += times.end - slot;
        }
        self.tally.small += u64::from(self.engine.is_small_tree(path.tree));
        self.tally.stash_blocks_max = self.tally.stash_blocks_max.max(self.engine.stash_blocks());
        if self.chain.is_empty() {
            let at = times.read + self.spec.on_chip;
            events.extend(self.reader.take().map(|name| ControllerEvent::ReadAnswered(name, at)));
        }
        Ok(())
    }

    /// The bus to memory.
    pub fn bus(&self) -> &B {
        &self.bus
    }

    /// The counts of the controller so far.
    pub fn tally(&self) -> ControllerTally {
        ControllerTally { early_given_up: self.early.given_up, ..self.tally.clone() }
    }

    /// Checks the invariants of the ORAM. This scans the whole tree.
    ///
    /// # Errors
    /// [`SimError::Engine`] with the first violation.
    pub fn check_invariants(&mut self) -> Result<(), SimError> {
        Ok(self.engine.check_invariants()?)
    }

    /// Whether `line` waits to be written, so that it can be forwarded instead of read. With
    /// delayed remapping, its block is not in the ORAM. The write-back is then cancelled and the
    /// block stays with the LLC.
    fn forward(&mut self, line: u64, at: Cycle, events: &mut Vec<ControllerEvent<T>>) -> bool {
        match self.remap {
            Remap::AtAccess => self.requests.waits_to_be_written(line),
            Remap::Delayed => {
                let cancelled = self.requests.cancel_write(line);
                events.extend(
                    cancelled
                        .filter(|is_dirty| *is_dirty)
                        .map(|_| ControllerEvent::WriteBackAccepted(at)),
                );
                cancelled.is_some()
            }
        }
    }

    /// Whether a block for the LLC is found on the client, without a path.
    fn find_on_client(&mut self, line: u64) -> Result<bool, SimError> {
        Ok(match self.remap {
            Remap::AtAccess => self.engine.serve_on_client(line)?,
            Remap::Delayed => self.engine.take_on_client(line)?,
        })
    }

    /// Starts a request. Its paths become the chain. If it needs no path, the request is served at
    /// once.
    fn start(
        &mut self,
        turn: NextRequest<T>,
        slot: Cycle,
        events: &mut Vec<ControllerEvent<T>>,
    ) -> Result<(), SimError> {
        let (line, reader) = match turn {
            NextRequest::Read(waiting) => (waiting.line, Some(waiting.what)),
            NextRequest::Write(PendingRequest { line, what: is_dirty, .. }) => {
                self.tally.write_backs += u64::from(is_dirty);
                events.extend(is_dirty.then_some(ControllerEvent::WriteBackAccepted(slot)));
                (line, None)
            }
        };
        match (self.remap, reader) {
            (Remap::Delayed, None) => self.engine.put_back(line)?,
            (Remap::AtAccess, None) if self.keeps_old_copy(line) => {
                self.log.without_logging(|| self.engine.take_and_resume(line))?;
                self.engine.put_back(line)?;
            }
            _ if self.find_on_client(line)? => self.tally.served_on_client += 1,
            (Remap::Delayed, Some(_)) => self.engine.take(line)?,
            (Remap::AtAccess, reader) => self.engine.access(line, reader.is_none())?,
        }
        self.log.move_to(&mut self.chain);
        match reader {
            Some(name) if self.chain.is_empty() => {
                events.push(ControllerEvent::ReadAnswered(name, slot + self.spec.on_chip));
            }
            reader => self.reader = reader,
        }
        Ok(())
    }

    /// Whether the write-back of `line` to the small tree leaves the block's old copy in the main
    /// tree.
    fn keeps_old_copy(&self, line: u64) -> bool {
        self.old_copy == OldCopyPolicy::LeftBehind && !self.engine.is_in_small_tree(line)
    }

    /// Ends a context switch: writes the tree top to memory, and reads it again. In between, the
    /// chip holds no block of the stash or the tree top.
    fn move_tree_top(&mut self, slot: Cycle, events: &mut Vec<ControllerEvent<T>>) {
        let until = self.bus.move_tree_top(slot);
        events.push(ControllerEvent::BusReading { from: slot, until });
        self.slots.take(slot, until);
        self.switches.end(until);
        self.tally.context_switches += 1;
        self.tally.moving_tree_top += until - slot;
    }

    /// Makes a background eviction.
    fn evict(&mut self) -> Result<(), SimError> {
        self.engine.evict()?;
        self.log.move_to(&mut self.chain);
        self.chain.iter_mut().for_each(|path| path.purpose = Purpose::Eviction);
        Ok(())
    }

    /// Makes the next stage of an early write-back. Returns whether a stage was made; it may have
    /// made no path.
    fn write_early(&mut self, slot: Cycle, cache: &mut impl LastLevel) -> Result<bool, SimError> {
        // IR-ORAM, Section IV-D: the dirty LRU line to which Ptr points.
        let Some(line) = self.early.line(slot, cache) else { return Ok(false) };
        // IR-ORAM, Section IV-D, Stage = 3 or 2: a path for the position map.
        let was_path = self.engine.fetch_position(line)?;
        if !was_path && !self.engine.is_ready() {
            // A position-map block was in the tree top, and displaced another block into the stash.
            return Ok(true);
        }
        if !was_path {
            // IR-ORAM, Section IV-D, Stage = 1: write the dirty block.
            if self.engine.serve_on_client(line)? {
                self.tally.served_on_client += 1;
            } else {
                self.engine.access(line, true)?;
            }
            // IR-ORAM, Section IV-D, Stage = 0: mark the line as clean.
            cache.written_early(line, slot);
            self.early.done();
            self.tally.write_backs += 1;
            self.tally.early_write_backs += 1;
        }
        self.log.move_to(&mut self.chain);
        self.tally.converted += self.chain.len() as u64;
        Ok(true)
    }
}

/// The random generator of a run, independent of the one of its initial ORAM.
///
/// The initial ORAM has a seed of its own, used by [`SeedableRng::seed_from_u64`], and many runs
/// start from it. If both seeds are equal and expanded in the same way, the same numbers occur
/// twice: first as the positions of blocks, and then as the paths of dummies and evictions. These
/// paths would lead to exactly these blocks. So the seed of a run is expanded into the key in
/// another way.
fn request_rng(seed: u64) -> StdRng {
    let mut key = *b"........coins of requests.......";
    key[..size_of::<u64>()].copy_from_slice(&seed.to_le_bytes());
    StdRng::from_seed(key)
}
