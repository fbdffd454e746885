//! The model: runs the engine one command ahead of the controller.

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::rc::Rc;

use oblivio_core::rand_core::{TryCryptoRng, TryRng};
use oblivio_core::scheme::{PathScheme, RawScheme, Scheme};
use oblivio_core::{ErrorKind, Leaf, Op};
use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

use crate::commands::{Command, Generator, Mix, Operation};
use crate::expected::{Expected, Hex, ResponseBeat, StateAfterCommand};
use crate::image::{Image, Memory, MemoryImageStore};
use crate::layout::ImageLayout;
use crate::params::{Params, SchemeKind, TreeKey, sealer};
use crate::position::Blocks;
use crate::{Problem, misuse};

/// Number of consecutive background evictions after which the controller shuts down.
const EVICTIONS_IN_A_ROW_MAX: u64 = 1023;

/// The leaf level of the deepest tree that [`Golden::check_image`] scans completely.
const SCANNED_LEAF_LEVEL_MAX: u8 = 12;

/// The golden model of a controller.
pub struct Golden {
    params: Params,
    key: TreeKey,
    engine: Box<dyn Scheme>,
    memory: Rc<RefCell<Memory>>,
    blocks: Blocks,
    generator: Generator,
    /// Source of random choices outside of commands: the first leaf of a block, and the leaves of
    /// background evictions in a warm-up.
    coins: StdRng,
    tape: Tape,
    expected: Expected,
    /// Number of commands run so far, without the warm-up.
    commands: u64,
    evictions: u64,
    accesses_since_eviction: u32,
    background_evictions: u64,
    latest: Option<Command>,
}

impl Golden {
    /// Creates the model of a controller with an empty memory.
    ///
    /// # Errors
    /// [`Problem::Misuse`] if no controller has these parameters.
    pub fn new(params: &Params) -> Result<Self, Problem> {
        // Check first: the rest assumes consistent parameters.
        params.tree_config()?;
        let bucket_beats = 1 + u64::from(params.slots) * params.block_beats() as u64;
        let layout = ImageLayout::new(params.leaf_level, params.subtree_levels, bucket_beats);
        let image = Image::new(layout, params.beat_bytes());
        let memory = Rc::new(RefCell::new(Memory::new(image)));
        let mut seeds = StdRng::seed_from_u64(params.seed);
        let mut key = TreeKey::default();
        seeds.fill_bytes(&mut key);
        Ok(Self {
            params: params.clone(),
            key,
            engine: engine(params, &key, &memory)?,
            memory,
            blocks: Blocks::new(params.leaf_level, params.slots),
            generator: Generator::new(params, &mut seeds),
            coins: StdRng::from_rng(&mut seeds),
            tape: Tape::new(StdRng::from_rng(&mut seeds), params.leaf_level),
            expected: Expected::new(layout, params.beat_bytes()),
            commands: 0,
            evictions: 0,
            accesses_since_eviction: 0,
            background_evictions: 0,
            latest: None,
        })
    }

    /// The parameters of the controller.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The key of the tree, for the controller's start port.
    pub fn tree_key(&self) -> &[u8; 16] {
        &self.key
    }

    /// Changes the mix of random commands.
    ///
    /// # Errors
    /// [`Problem::Misuse`] if the sum of the weights is 0 or exceeds 2^32 - 1.
    pub fn set_mix(&mut self, mix: Mix) -> Result<(), Problem> {
        let sum: u64 = mix.weights.iter().map(|weight| u64::from(*weight)).sum();
        if sum == 0 || sum > u64::from(u32::MAX) {
            return Err(misuse("the weights of a mix must add up to 1 to 2^32 - 1"));
        }
        self.generator.set_mix(mix);
        Ok(())
    }

    /// Draws the next command, runs it, and queues the output expected for it.
    ///
    /// # Errors
    /// [`Problem::Misuse`] if the engine fails or the stash stays over its bound.
    pub fn next_command(&mut self) -> Result<&Command, Problem> {
        let command = self.generator.draw(&mut self.blocks);
        self.run(command)
    }

    /// Runs a given command. If `data` is `None`, the model draws it. The old leaf comes from the
    /// model's position map.
    ///
    /// # Errors
    /// [`Problem::Misuse`] if the address or the leaf does not exist, `data` is not one block long,
    /// or the block to append is present; the model is then unchanged. Also if the stash stays over
    /// its bound.
    pub fn command(
        &mut self,
        operation: Operation,
        address: u64,
        new_leaf: u64,
        data: Option<&[u8]>,
    ) -> Result<&Command, Problem> {
        let data = match data {
            Some(data) => data.into(),
            None => self.generator.draw_data(),
        };
        self.run(Command { operation, address, old_leaf: 0, new_leaf, data })
    }

    /// Maps an absent block to `leaf`, so that the next access to the block reads that path.
    ///
    /// # Errors
    /// [`Problem::Misuse`] if the address or the leaf is out of range, or the block is present.
    pub fn set_leaf(&mut self, address: u64, leaf: u64) -> Result<(), Problem> {
        self.check_names(address, leaf)?;
        if self.blocks.is_present(address) {
            return Err(misuse(format!("block {address} is present, so it has a leaf already")));
        }
        self.blocks.set(address, leaf, None);
        Ok(())
    }

    /// The last command that the model ran.
    pub fn latest(&self) -> Option<&Command> {
        self.latest.as_ref()
    }

    /// Number of commands run so far, without the warm-up.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Number of background evictions so far, without the warm-up: dummy accesses in Path ORAM,
    /// unscheduled EO accesses in RAW ORAM.
    pub fn background_evictions(&self) -> u64 {
        self.background_evictions
    }

    /// The leaf and contents of each block.
    pub fn blocks(&self) -> &Blocks {
        &self.blocks
    }

    /// Checks a memory command of the controller.
    ///
    /// # Errors
    /// [`Problem::Mismatch`] if the model expects another command.
    pub fn check_memory_command(&mut self, is_write: bool, address: u64) -> Result<(), Problem> {
        self.expected.check_memory_command(is_write, address)
    }

    /// Checks a write beat. Bytes without a strobe may have any value.
    ///
    /// # Errors
    /// [`Problem::Mismatch`] if data or strobe differ, or no write beat is expected.
    /// [`Problem::Misuse`] if `data` is shorter than a beat.
    pub fn check_write_beat(&mut self, data: &[u8], strobe: u128) -> Result<(), Problem> {
        self.check_beat(data)?;
        self.expected.check_write_beat(data, strobe)
    }

    /// Returns the next beat that memory returns, for a test bench without a memory of its own.
    ///
    /// # Errors
    /// [`Problem::Mismatch`] if no read is outstanding.
    pub fn take_read_beat(&mut self) -> Result<Box<[u8]>, Problem> {
        self.expected.take_read_beat()
    }

    /// Checks the next beat that the memory of the test bench returns to the controller.
    ///
    /// # Errors
    /// [`Problem::Mismatch`] if the engine read other data, or no read is outstanding.
    /// [`Problem::Misuse`] if `data` is shorter than a beat.
    pub fn check_read_beat(&mut self, data: &[u8]) -> Result<(), Problem> {
        self.check_beat(data)?;
        self.expected.check_read_beat(data)
    }

    /// Checks a response beat.
    ///
    /// # Errors
    /// [`Problem::Mismatch`] if data, status or flags differ, or no response is expected.
    /// [`Problem::Misuse`] if the data is shorter than a beat.
    pub fn check_response(&mut self, beat: ResponseBeat<'_>) -> Result<(), Problem> {
        self.check_beat(beat.data)?;
        self.expected.check_response(beat)
    }

    /// Returns the next leaf for the entropy port. The sequence is endless. A controller may take
    /// leaves ahead of their use.
    pub fn next_entropy(&mut self) -> u64 {
        self.tape.next_for_controller()
    }

    /// Returns the controller's state after `command` and its evictions. Drops the states of
    /// earlier commands.
    ///
    /// # Errors
    /// [`Problem::Misuse`] if that state is not available.
    pub fn state_after(&mut self, command: u64) -> Result<&StateAfterCommand, Problem> {
        self.expected.state_after(command)
    }

    /// Checks the block at `index` in the stash, oldest first, after `command`.
    ///
    /// # Errors
    /// [`Problem::Mismatch`] if it is another block or has another leaf. The errors of
    /// `state_after`.
    pub fn check_stash(
        &mut self,
        command: u64,
        index: usize,
        address: u64,
        leaf: u64,
    ) -> Result<(), Problem> {
        let stash = &self.state_after(command)?.stash;
        let expected = stash.get(index).copied();
        if expected == Some((address, leaf)) {
            return Ok(());
        }
        let expected = expected.map_or_else(
            || format!("only {} blocks", stash.len()),
            |(address, leaf)| format!("block {address} with leaf {leaf}"),
        );
        Err(Problem::Mismatch(format!(
            "after command {command}: stash entry {index} is block {address} with leaf {leaf}, \
             expected {expected}"
        )))
    }

    /// Checks that the controller has given all expected output, and has taken at least as many
    /// leaves from the entropy port as the engine has used.
    ///
    /// # Errors
    /// [`Problem::Mismatch`] with the first missing output, or with the numbers of leaves.
    pub fn check_is_done(&self) -> Result<(), Problem> {
        self.expected.check_is_done()?;
        self.tape.check_is_used_up()
    }

    /// Returns the memory after all commands so far, as the engine wrote it.
    pub fn image(&self) -> Image {
        self.memory.borrow().image.clone()
    }

    /// Returns a memory of zeros with this controller's layout.
    pub fn empty_image(&self) -> Image {
        Image::new(*self.memory.borrow().image.layout(), self.params.beat_bytes())
    }

    /// Compares `image` with the engine's memory beat by beat. Then a fresh engine reads each block
    /// of the tree from `image`. In trees of up to 13 levels this also checks that the image holds
    /// no other blocks.
    ///
    /// # Errors
    /// [`Problem::Mismatch`] if a beat, a block or its leaf differs. [`Problem::Misuse`]
    /// if the fresh engine cannot evict to its stash bound.
    pub fn check_image(&self, image: &Image) -> Result<(), Problem> {
        let zeros = vec![0; self.params.beat_bytes()];
        let memory = self.memory.borrow();
        let mut addresses = memory.image.addresses();
        addresses.extend(image.addresses());
        addresses.sort_unstable();
        addresses.dedup();
        for address in addresses {
            let actual = image.beat(address).unwrap_or(&zeros);
            let expected = memory.image.beat(address).unwrap_or(&zeros);
            if actual != expected {
                let at = image.layout().beat_at(address);
                return Err(Problem::Mismatch(format!(
                    "image, address {address:#x}, {at:?}\n  actual   {}\n  expected {}",
                    Hex(actual),
                    Hex(expected)
                )));
            }
        }
        drop(memory);
        self.read_back(image)
    }

    /// Checks that a fresh engine with this key can read from `image` all blocks that are not in
    /// the stash.
    fn read_back(&self, image: &Image) -> Result<(), Problem> {
        let memory = Rc::new(RefCell::new(Memory::new(self.empty_image())));
        let mut engine = engine(&self.params, &self.key, &memory)?;
        let mut coins = StdRng::seed_from_u64(0);
        // RAW ORAM seals bodies under the eviction count. So the fresh engine first makes the same
        // number of evictions, on a memory of zeros.
        for _ in 0..self.evictions {
            engine.evict(&mut coins).map_err(misuse)?;
        }
        memory.borrow_mut().image = image.clone();
        let in_stash: HashSet<u64> = self.engine.stash().addresses().collect();
        let mut stored = self.blocks.present();
        stored.retain(|(address, _)| !in_stash.contains(address));
        if self.params.leaf_level <= SCANNED_LEAF_LEVEL_MAX {
            let mut found = Vec::new();
            let mut visit = |_, address, leaf: Leaf| found.push((address, leaf.0));
            engine.visit_blocks(&mut visit).map_err(mismatch_in_image)?;
            found.sort_unstable();
            if found != stored {
                return Err(Problem::Mismatch(format!(
                    "a fresh engine finds blocks {found:?} in the image, expected {stored:?}"
                )));
            }
        }
        let mut block = vec![0; self.params.block_bytes];
        for (address, leaf) in stored {
            let found = engine.take(address, Leaf(leaf), &mut block).map_err(mismatch_in_image)?;
            if !found || self.blocks.contents(address) != Some(&block) {
                return Err(Problem::Mismatch(format!(
                    "a fresh engine finds block {address} of the image missing or different"
                )));
            }
            evict_to_bound(&mut *engine, &mut coins)?;
        }
        Ok(())
    }

    /// Runs at least `commands` random commands before the controller starts, and moves all blocks
    /// into the tree. RAW ORAM ends with an EO access. The controller can then take over the tree
    /// with the counts of [`Golden::start_counts`].
    ///
    /// # Errors
    /// [`Problem::Misuse`] if the model still expects output from the controller, or if blocks stay
    /// in the stash.
    pub fn warm_up(&mut self, commands: u64) -> Result<(), Problem> {
        self.check_is_done().map_err(misuse)?;
        let mut done = 0;
        while done < commands || self.accesses_since_eviction != 0 {
            let mut command = self.generator.draw(&mut self.blocks);
            self.apply(&mut command)?;
            let evictions = evict_to_bound(&mut *self.engine, &mut self.coins)?;
            self.count_evictions(evictions);
            done += 1;
        }
        let mut evictions = 0;
        while self.engine.stash().blocks() > 0 {
            evictions += 1;
            if evictions > EVICTIONS_IN_A_ROW_MAX {
                return Err(misuse("blocks stay in the stash: use fewer blocks or a deeper tree"));
            }
            self.engine.evict(&mut self.coins).map_err(misuse)?;
        }
        self.count_evictions(evictions);
        Ok(())
    }

    /// How many operations and EO (eviction-only) accesses the tree has had, as the start port
    /// takes them. The first is read from the root, which holds the number of the last operation.
    pub fn start_counts(&self) -> (u64, u64) {
        let memory = self.memory.borrow();
        let root = memory.image.beat(0).and_then(|beat| beat.first_chunk());
        (root.map_or(0, |number| u64::from_be_bytes(*number)), self.evictions)
    }

    /// Adds background evictions to the number of EO accesses in RAW ORAM. Path ORAM has no such
    /// number.
    fn count_evictions(&mut self, evictions: u64) {
        if self.params.scheme == SchemeKind::Raw {
            self.evictions += evictions;
        }
    }

    fn run(&mut self, mut command: Command) -> Result<&Command, Problem> {
        self.check_names(command.address, command.new_leaf)?;
        if command.data.len() != self.params.block_bytes {
            return Err(misuse(format!(
                "data must be one block: {} bytes given, {} expected",
                command.data.len(),
                self.params.block_bytes
            )));
        }
        let is_append = command.operation == Operation::Append;
        if is_append && self.blocks.is_present(command.address) {
            return Err(misuse(format!(
                "block {} is present already; append takes absent blocks",
                command.address
            )));
        }
        self.memory.borrow_mut().start_trace();
        let before = self.apply(&mut command)?;
        let evictions = evict_to_bound(&mut *self.engine, &mut self.tape)?;
        self.background_evictions += evictions;
        self.count_evictions(evictions);
        let beats = self.memory.borrow_mut().take_trace();
        let number = self.commands;
        self.commands += 1;
        self.expected.push_beats(number, beats);
        let is_found = before.is_some();
        let zeros = || vec![0; self.params.block_bytes].into();
        self.expected.push_response(number, before.unwrap_or_else(zeros), is_found);
        let leaf_of = |address| (address, self.blocks.leaf(address).unwrap_or_default());
        self.expected.push_state_after(StateAfterCommand {
            command: number,
            stash: self.engine.stash().addresses().map(leaf_of).collect(),
            evictions: self.evictions,
            accesses_since_eviction: self.accesses_since_eviction,
        });
        Ok(self.latest.insert(command))
    }

    /// Runs a command on the engine, without background evictions. Returns the contents of the
    /// block before the command, if it was present.
    fn apply(&mut self, command: &mut Command) -> Result<Option<Box<[u8]>>, Problem> {
        let Command { operation, address, new_leaf, ref data, .. } = *command;
        let before: Option<Box<[u8]>> = self.blocks.contents(address).map(Into::into);
        let mut block = vec![0; self.params.block_bytes];
        let old_leaf = match operation {
            // The port must carry some valid leaf, which the controller ignores.
            Operation::Append => self.generator.draw_uniform_leaf(),
            _ => self.blocks.leaf_or_draw(address, &mut self.coins),
        };
        let (from, to) = (Leaf(old_leaf), Leaf(new_leaf));
        let is_removed = match operation {
            Operation::Read => {
                self.engine.access(address, from, to, &mut Op::Read(&mut block)).map(|()| None)
            }
            Operation::Write => {
                let mut replace = |stored: &mut [u8]| {
                    block.copy_from_slice(stored);
                    stored.copy_from_slice(data);
                };
                self.engine.access(address, from, to, &mut Op::Update(&mut replace)).map(|()| None)
            }
            Operation::ReadRemove => self.engine.take(address, from, &mut block).map(Some),
            Operation::Append => self.engine.append(address, to, data).map(|()| None),
        }
        .map_err(|error| misuse(format!("the engine failed: {error}")))?;
        let is_as_before = match &before {
            Some(before) => block[..] == before[..],
            None => block.iter().all(|byte| *byte == 0),
        };
        if !is_as_before || is_removed.is_some_and(|was_there| was_there != before.is_some()) {
            return Err(misuse(format!("the engine returned other contents of block {address}")));
        }
        match operation {
            Operation::Read => self.blocks.set(address, new_leaf, before.clone()),
            Operation::Write | Operation::Append => {
                self.blocks.set(address, new_leaf, Some(data.clone()));
            }
            Operation::ReadRemove => self.blocks.forget(address),
        }
        command.old_leaf = old_leaf;
        if operation != Operation::Append && self.params.scheme == SchemeKind::Raw {
            self.accesses_since_eviction += 1;
            if self.accesses_since_eviction == self.params.evict_period {
                self.evictions += 1;
                self.accesses_since_eviction = 0;
            }
        }
        Ok(before)
    }

    fn check_names(&self, address: u64, leaf: u64) -> Result<(), Problem> {
        if address >= self.params.capacity {
            let capacity = self.params.capacity;
            return Err(misuse(format!("address {address} is not below the capacity {capacity}")));
        }
        if leaf >> self.params.leaf_level != 0 {
            let level = self.params.leaf_level;
            return Err(misuse(format!("leaf {leaf} is not below 2^{level}")));
        }
        Ok(())
    }

    fn check_beat(&self, data: &[u8]) -> Result<(), Problem> {
        if data.len() < self.params.beat_bytes() {
            return Err(misuse(format!("a beat is longer than {} bytes", data.len())));
        }
        Ok(())
    }
}

fn mismatch_in_image(error: oblivio_core::Error) -> Problem {
    Problem::Mismatch(format!("a fresh engine refuses the image: {error}"))
}

/// Creates an engine over `memory` with this key, an empty stash and zero counters.
fn engine(
    params: &Params,
    key: &TreeKey,
    memory: &Rc<RefCell<Memory>>,
) -> Result<Box<dyn Scheme>, Problem> {
    let tree = params.tree_config()?;
    let store = MemoryImageStore::new(tree.shape().map_err(misuse)?, Rc::clone(memory));
    Ok(match params.scheme {
        SchemeKind::Path => Box::new(PathScheme::new(&tree, sealer(key), store).map_err(misuse)?),
        SchemeKind::Raw => {
            let config = params.raw_config(tree);
            Box::new(RawScheme::new(&config, sealer(key), store).map_err(misuse)?)
        }
    })
}

/// Evicts while the stash is over its bound. Returns the number of evictions.
fn evict_to_bound(
    engine: &mut dyn Scheme,
    coins: &mut dyn rand::CryptoRng,
) -> Result<u64, Problem> {
    let mut count = 0;
    loop {
        match engine.check_ready() {
            Ok(()) => return Ok(count),
            Err(error) if error.kind() != ErrorKind::StashFull => {
                return Err(misuse(format!("the engine failed: {error}")));
            }
            Err(_) if count == EVICTIONS_IN_A_ROW_MAX => {
                return Err(misuse(format!(
                    "the stash is over its bound after {count} evictions in a row: use fewer \
                     blocks or a larger bound"
                )));
            }
            Err(_) => engine.evict(coins).map_err(misuse)?,
        }
        count += 1;
    }
}

/// The sequence of random leaves that both sides take: the controller through its entropy port, and
/// the engine for its dummy accesses.
#[derive(Debug)]
struct Tape {
    coins: StdRng,
    leaf_level: u8,
    /// The leaves from number `first` on that the engine or the controller has not taken yet.
    leaves: VecDeque<u64>,
    first: u64,
    engine_at: u64,
    controller_at: u64,
}

impl Tape {
    fn new(coins: StdRng, leaf_level: u8) -> Self {
        let leaves = VecDeque::new();
        Self { coins, leaf_level, leaves, first: 0, engine_at: 0, controller_at: 0 }
    }

    fn next_for_engine(&mut self) -> u64 {
        let leaf = self.at(self.engine_at);
        self.engine_at += 1;
        self.trim();
        leaf
    }

    fn next_for_controller(&mut self) -> u64 {
        let leaf = self.at(self.controller_at);
        self.controller_at += 1;
        self.trim();
        leaf
    }

    fn at(&mut self, at: u64) -> u64 {
        while self.first + self.leaves.len() as u64 <= at {
            self.leaves.push_back(self.coins.random_range(0..1 << self.leaf_level));
        }
        self.leaves[(at - self.first) as usize]
    }

    fn trim(&mut self) {
        while self.first < self.engine_at.min(self.controller_at) {
            self.leaves.pop_front();
            self.first += 1;
        }
    }

    fn check_is_used_up(&self) -> Result<(), Problem> {
        let Self { engine_at, controller_at, .. } = self;
        if controller_at >= engine_at {
            return Ok(());
        }
        Err(Problem::Mismatch(format!(
            "the controller took {controller_at} leaves from the entropy port, expected {engine_at}"
        )))
    }
}

/// Yields the leaves as random words. The engine draws one word per dummy access and uses its low
/// bits as the leaf.
impl TryRng for Tape {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.next_for_engine() as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_for_engine())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_for_engine().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

impl TryCryptoRng for Tape {}
