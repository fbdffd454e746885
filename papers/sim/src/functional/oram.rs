//! The ORAM of a study: Freecursive Path ORAM over a tree of tags, with prefetching of memory.
//!
//! Without prefetching, a study spends nearly all its time waiting for memory. A study knows the
//! coming requests, and the position map has their current paths. So the study prefetches each path
//! one request before the path is read. The actual path may differ, or the request may need none.
//! This affects only the running time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;

use oblivio_core::image::{Image, read_below, read_count, refuse, write_number};
use oblivio_core::scheme::{Location, PathScheme, Scheme as _, TagTree};
use oblivio_core::{FreecursiveOram, Front, Oram};

use super::coins::Coins;
use super::found::AllFoundCounts;
use super::migration::Migration;
use super::snapshot::PathCounts;
use crate::SimError;
use crate::controller::tags::{Contents, TagScheme};
use crate::controller::{OramSpec, PositionMap, Remap, Scheme};

pub(crate) type Tags = TagScheme<PathScheme<TagTree>, AllFoundCounts>;

/// The ORAM of a study; see the [module](self).
pub(super) struct WatchedOram {
    oram: FreecursiveOram<Tags, Coins>,
    /// Zeros: the data of every write.
    zeros: Vec<u8>,
    evictions: u64,
    stash_blocks_max: usize,
    /// The counts of paths at the time when counting began.
    before: PathCounts,
    /// Moves of blocks. They are counted only on request, since this takes time.
    migration: Option<Rc<RefCell<Migration>>>,
}

impl WatchedOram {
    /// Creates an ORAM without blocks.
    pub(super) fn new(spec: &OramSpec, coins: Coins) -> Result<Self, SimError> {
        let is_one_tree = spec.rho.is_none() && spec.position_map == PositionMap::InTree;
        if spec.scheme != Scheme::Path || !is_one_tree || spec.remap == Remap::Delayed {
            let message = "the functional mode supports only Path ORAM in one tree: no RAW ORAM, \
                           rho, plain recursion or delayed remapping";
            return Err(SimError::Spec(message.to_owned()));
        }
        let frontend = spec.frontend()?;
        let tags = PathScheme::of_tags(&spec.tree()?)?;
        let contents = Contents::new(&frontend.level_addresses()?, frontend.block_bytes)?;
        let scheme = TagScheme::new(tags, contents, AllFoundCounts::default());
        Ok(Self {
            oram: FreecursiveOram::new(&frontend, scheme, coins)?,
            zeros: vec![0; frontend.block_bytes],
            evictions: 0,
            stash_blocks_max: 0,
            before: PathCounts::default(),
            migration: None,
        })
    }

    pub(super) fn populate(&mut self) -> Result<(), SimError> {
        Ok(self.oram.populate()?)
    }

    /// Returns the ORAM without the counts.
    pub(super) fn into_oram(self) -> FreecursiveOram<Tags, Coins> {
        self.oram
    }

    /// The number of coming requests that [`Self::serve`] uses for prefetching.
    pub(super) fn lookahead_requests(&self) -> usize {
        self.oram.depth() + 2
    }

    /// Serves a request for a data block. `coming` holds the requests after this one.
    pub(super) fn serve(&mut self, block: u64, coming: &VecDeque<u64>) -> Result<(), SimError> {
        // The path of a level is known once the position-map block above it is in its final place.
        // So paths are prefetched level by level, as a request comes closer.
        self.oram.scheme_mut().prefetch_rest();
        for (level, block) in (0..=self.oram.depth()).zip(coming) {
            let leaf = self.oram.foresee(level, *block, TagScheme::contents);
            if let Some(leaf) = leaf {
                self.oram.scheme_mut().prefetch_soon(leaf);
            }
        }
        // Prefetch the position-map contents of the last coming request one request before they are
        // looked up.
        if let Some(block) = coming.back() {
            let fetch = |tags: &Tags, parent| {
                tags.prefetch_contents(parent);
                None
            };
            for level in 0..self.oram.depth() {
                let _ = self.oram.foresee(level, *block, fetch);
            }
        }
        while self.oram.scheme().check_ready().is_err() {
            self.oram.evict()?;
            self.evictions += 1;
        }
        self.oram.write(block, &self.zeros)?;
        self.stash_blocks_max = self.stash_blocks_max.max(self.oram.stash().blocks());
        Ok(())
    }

    /// Counts the blocks on each level, and returns the number of blocks in the stash.
    pub(super) fn count_blocks(&mut self, levels: &mut [u64]) -> Result<usize, SimError> {
        self.oram.scheme_mut().visit_blocks(&mut |location, _, _| {
            if let Location::Bucket(bucket) = location {
                levels[usize::from(bucket.level())] += 1;
            }
        })?;
        Ok(self.oram.stash().blocks())
    }

    /// Resets the counts of paths, of the stash, and of found blocks.
    pub(super) fn clear_counts(&mut self) {
        self.before = self.all_counts();
        self.stash_blocks_max = self.oram.stash().blocks();
        *self.oram.scheme_mut().observer_mut() = AllFoundCounts::default();
    }

    pub(super) fn counts(&self) -> PathCounts {
        let PathCounts { data, position_map, evictions, .. } = self.before;
        let now = self.all_counts();
        PathCounts {
            data: now.data - data,
            position_map: now.position_map - position_map,
            evictions: now.evictions - evictions,
            ..now
        }
    }

    /// The number of paths since counting began.
    pub(super) fn paths(&self) -> u64 {
        self.counts().paths()
    }

    pub(super) fn found(&self) -> &AllFoundCounts {
        self.oram.scheme().observer()
    }

    /// Starts to count the moves of blocks.
    pub(super) fn watch_migration(&mut self) {
        let levels = self.oram.scheme().config().geometry.levels();
        let migration = Rc::new(RefCell::new(Migration::new(levels)));
        let counted = Rc::clone(&migration);
        let tags = self.oram.scheme_mut().tags_mut();
        tags.observe_moves(move |moved| counted.borrow_mut().count(moved));
        self.migration = Some(migration);
    }

    pub(super) fn migration(&self) -> Option<Migration> {
        self.migration.as_ref().map(|migration| migration.borrow().clone())
    }

    pub(super) fn check_invariants(&mut self) -> Result<(), SimError> {
        Ok(self.oram.check_invariants()?)
    }

    fn all_counts(&self) -> PathCounts {
        let tally = self.oram.tally();
        PathCounts {
            data: tally.data_accesses,
            position_map: tally.position_map_accesses + tally.remap_accesses,
            evictions: self.evictions,
            stash_blocks_max: self.stash_blocks_max,
        }
    }
}

impl Image for WatchedOram {
    fn write_image(&self, to: &mut dyn Write) -> io::Result<()> {
        let PathCounts { data, position_map, evictions, stash_blocks_max } = self.before;
        [self.evictions, self.stash_blocks_max as u64, data, position_map, evictions]
            .into_iter()
            .chain([stash_blocks_max as u64])
            .try_for_each(|count| write_number(to, count))?;
        write_number(to, self.migration.is_some().into())?;
        if let Some(migration) = &self.migration {
            migration.borrow().write_image(to)?;
        }
        self.oram.write_image(to)
    }

    fn read_image(&mut self, from: &mut dyn Read) -> io::Result<()> {
        self.evictions = read_count(from)?;
        self.stash_blocks_max = read_count(from)? as usize;
        self.before = PathCounts {
            data: read_count(from)?,
            position_map: read_count(from)?,
            evictions: read_count(from)?,
            stash_blocks_max: read_count(from)? as usize,
        };
        if read_below(from, 2, "a migration flag that is neither 0 nor 1")? == 1 {
            self.watch_migration();
            let mut counted = Migration::new(0);
            counted.read_image(from)?;
            if let Some(migration) = &self.migration {
                if counted.pre_existing.len() != migration.borrow().pre_existing.len() {
                    return Err(refuse("migration of a tree with other levels"));
                }
                *migration.borrow_mut() = counted;
            }
        }
        self.oram.read_image(from)?;
        let (before, now) = (self.before, self.all_counts());
        if before.data > now.data
            || before.position_map > now.position_map
            || before.evictions > now.evictions
        {
            return Err(refuse("fewer paths than before counting began"));
        }
        Ok(())
    }

    fn check_image(&mut self) -> io::Result<()> {
        self.oram.check_image()
    }
}
