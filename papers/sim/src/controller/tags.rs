//! A scheme whose tree holds tags but no block contents. The cost of a path does not depend on
//! contents, and eight gigabytes of contents would only take memory.
//!
//! The contents of position-map blocks are needed, though. They are stored outside of the tree, by
//! address. As for any block, the tree determines the location of these blocks and the path that
//! finds them.

use std::io::{self, Read, Write};
use std::ops::Range;

use oblivio_core::geometry::Leaf;
use oblivio_core::image::Image;
use oblivio_core::memory::Region;
use oblivio_core::scheme::{Location, Op, Scheme, StepHook};
use oblivio_core::stash::StashView;
use oblivio_core::{Error, TreeConfig};
use rand::CryptoRng;

use super::path_log::{PathLog, Purpose};
use crate::SimError;

/// A scheme over a tree of tags. To the frontend, blocks seem to have contents. Data blocks always
/// read as zeros.
pub(crate) struct TagScheme<B, W> {
    tags: B,
    /// The tree's parameters as seen by the frontend.
    config: TreeConfig,
    contents: Contents,
    observer: W,
    /// The paths to prefetch. One path is prefetched at the start of each access, since prefetches
    /// that are made at once wait for each other.
    fetched_soon: Vec<Leaf>,
}

/// An observer of accesses to a tree of tags. It is called before each access. Only [`Self::hit`]
/// is called afterwards.
pub(crate) trait AccessObserver<B> {
    /// Notes that the block `address` of level `level` is looked up on the path to `leaf`. Level 0
    /// is the data; higher levels are those of the position map.
    fn access(&mut self, tags: &mut B, level: usize, address: u64, leaf: Leaf);

    /// Notes that the block `address` of level `level` was served from the client, and stays there.
    fn hit(&mut self, _tags: &B, _level: usize, _address: u64) {}

    /// Notes that the block `address` of level `level` is looked up on the client, and taken out if
    /// found.
    fn look_up(&mut self, _tags: &B, _level: usize, _address: u64) {}

    /// Notes that a dummy or eviction reads a path and writes it back.
    fn idle(&mut self);
}

impl<B> AccessObserver<B> for PathLog {
    fn access(&mut self, _: &mut B, level: usize, _: u64, _: Leaf) {
        self.set_purpose(match level {
            0 => Purpose::Data,
            level => Purpose::PositionMap(level as u8),
        });
    }

    fn idle(&mut self) {
        self.set_purpose(Purpose::Dummy);
    }
}

impl<B: Scheme, W: AccessObserver<B>> TagScheme<B, W> {
    /// Creates a scheme over `tags`, whose blocks have no contents.
    pub(crate) fn new(tags: B, contents: Contents, observer: W) -> Self {
        let config = tags.config().clone().with_block_bytes(contents.block_bytes);
        Self { tags, config, contents, observer, fetched_soon: Vec::new() }
    }

    /// Splits the scheme into tags and contents, which another observer can then use.
    pub(crate) fn into_parts(self) -> (B, Contents) {
        (self.tags, self.contents)
    }

    /// The observer of accesses.
    pub(crate) fn observer(&self) -> &W {
        &self.observer
    }

    /// The observer of accesses.
    pub(crate) fn observer_mut(&mut self) -> &mut W {
        &mut self.observer
    }

    /// The tree of tags.
    pub(crate) fn tags_mut(&mut self) -> &mut B {
        &mut self.tags
    }

    /// The contents of a position-map block, stale while it is taken out; `None` for data blocks.
    pub(crate) fn contents(&self, address: u64) -> Option<&[u8]> {
        self.contents.bytes.bytes().get(self.contents.byte_range(address)?)
    }

    /// Announces that the path to `leaf` will be read soon. It is prefetched when one of the next
    /// accesses begins.
    pub(crate) fn prefetch_soon(&mut self, leaf: Leaf) {
        self.fetched_soon.push(leaf);
    }

    /// Prefetches all paths that [`Self::prefetch_soon`] announced and that are not prefetched yet.
    pub(crate) fn prefetch_rest(&mut self) {
        for leaf in self.fetched_soon.drain(..) {
            self.tags.announce(&[leaf]);
        }
    }

    /// Prefetches the contents of a position-map block.
    pub(crate) fn prefetch_contents(&self, address: u64) {
        if let Some(byte_range) = self.contents.byte_range(address) {
            self.contents.bytes.prefetch(byte_range);
        }
    }

    fn begin(&mut self, address: u64, leaf: Leaf) {
        if let Some(leaf) = self.fetched_soon.pop() {
            self.tags.announce(&[leaf]);
        }
        let level = self.contents.level(address);
        self.observer.access(&mut self.tags, level, address, leaf);
    }
}

/// The contents of the position-map blocks.
pub(crate) struct Contents {
    /// The first address of each position-map level.
    starts: Vec<u64>,
    block_bytes: usize,
    bytes: Region,
}

impl Contents {
    /// Creates contents for `levels`, the address ranges from the data level on. A block has
    /// `block_bytes`.
    ///
    /// # Errors
    /// [`SimError::Spec`] if memory does not suffice.
    pub(crate) fn new(levels: &[Range<u64>], block_bytes: usize) -> Result<Self, SimError> {
        let starts: Vec<_> = levels.iter().skip(1).map(|level| level.start).collect();
        let end = levels.last().map_or(0, |level| level.end);
        let blocks = starts.first().map_or(0, |first| end - first);
        let bytes = Region::new(blocks.saturating_mul(block_bytes as u64)).map_err(|cause| {
            SimError::Spec(format!("no memory for a position map of {blocks} blocks: {cause}"))
        })?;
        Ok(Self { starts, block_bytes, bytes })
    }

    fn level(&self, address: u64) -> usize {
        self.starts.partition_point(|start| *start <= address)
    }

    fn get(&mut self, address: u64) -> Option<&mut [u8]> {
        let byte_range = self.byte_range(address)?;
        self.bytes.bytes_mut().get_mut(byte_range)
    }

    /// The byte range of a position-map block; `None` for data blocks.
    fn byte_range(&self, address: u64) -> Option<Range<usize>> {
        let number = address.checked_sub(*self.starts.first()?)? as usize;
        Some(number * self.block_bytes..(number + 1) * self.block_bytes)
    }

    fn read(&mut self, address: u64, block: &mut [u8]) {
        match self.get(address) {
            Some(contents) => block.copy_from_slice(contents),
            None => block.fill(0),
        }
    }

    fn write(&mut self, address: u64, block: &[u8]) {
        if let Some(contents) = self.get(address) {
            contents.copy_from_slice(block);
        }
    }

    fn apply(&mut self, address: u64, op: &mut Op<'_>) {
        match op {
            Op::Read(buffer) => self.read(address, buffer),
            Op::Write(data) => self.write(address, data),
            Op::Update(update) => match self.get(address) {
                Some(contents) => update(contents),
                None => update(&mut vec![0; self.block_bytes]),
            },
        }
    }
}

impl<B: Scheme, W: AccessObserver<B>> Scheme for TagScheme<B, W> {
    fn config(&self) -> &TreeConfig {
        &self.config
    }

    fn stash(&self) -> StashView<'_> {
        self.tags.stash()
    }

    fn set_step_hook(&mut self, hook: Box<dyn StepHook>) {
        self.tags.set_step_hook(hook);
    }

    fn record_stash_histogram(&mut self) {
        self.tags.record_stash_histogram();
    }

    fn aes_blocks(&self) -> u64 {
        self.tags.aes_blocks()
    }

    fn check_ready(&self) -> Result<(), Error> {
        self.tags.check_ready()
    }

    fn announce(&mut self, leaves: &[Leaf]) {
        self.tags.announce(leaves);
    }

    /// Accesses a block. In a simulation, the first access creates it.
    fn access(&mut self, address: u64, from: Leaf, to: Leaf, op: &mut Op<'_>) -> Result<(), Error> {
        self.begin(address, from);
        self.tags.access(address, from, to, &mut Op::Write(&[]))?;
        self.contents.apply(address, op);
        Ok(())
    }

    fn serve_on_client(&mut self, address: u64, op: &mut Op<'_>) -> Result<bool, Error> {
        let served = self.tags.serve_on_client(address, &mut Op::Write(&[]))?;
        if served {
            self.observer.hit(&self.tags, self.contents.level(address), address);
            self.contents.apply(address, op);
        }
        Ok(served)
    }

    fn dummy(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.observer.idle();
        self.tags.dummy(coins)
    }

    fn evict(&mut self, coins: &mut dyn CryptoRng) -> Result<(), Error> {
        self.observer.idle();
        self.tags.evict(coins)
    }

    fn visit_blocks(&mut self, visit: &mut dyn FnMut(Location, u64, Leaf)) -> Result<(), Error> {
        self.tags.visit_blocks(visit)
    }

    fn take(&mut self, address: u64, from: Leaf, block: &mut [u8]) -> Result<bool, Error> {
        self.begin(address, from);
        self.contents.read(address, block);
        self.tags.take(address, from, &mut [])
    }

    fn take_on_client(&mut self, address: u64, block: &mut [u8]) -> Result<Option<Leaf>, Error> {
        self.observer.look_up(&self.tags, self.contents.level(address), address);
        let leaf = self.tags.take_on_client(address, &mut [])?;
        if leaf.is_some() {
            self.contents.read(address, block);
        }
        Ok(leaf)
    }

    fn append(&mut self, address: u64, leaf: Leaf, block: &[u8]) -> Result<(), Error> {
        self.tags.append(address, leaf, &[])?;
        self.contents.write(address, block);
        Ok(())
    }

    fn populate(&mut self, blocks: &mut dyn Iterator<Item = (u64, Leaf)>) -> Result<(), Error> {
        self.tags.populate(blocks)
    }
}

/// The image omits the pending prefetches, which affect only the running time.
impl<B: Image, W: Image> Image for TagScheme<B, W> {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        self.observer.write_image(to)?;
        to.write_all(self.contents.bytes.bytes())?;
        self.tags.write_image(to)
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.observer.read_image(from)?;
        from.read_exact(self.contents.bytes.bytes_mut())?;
        self.tags.read_image(from)
    }

    fn check_image(&mut self) -> io::Result<()> {
        self.tags.check_image()
    }
}
