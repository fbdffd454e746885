//! The ORAM of a study: Freecursive Path ORAM over a tree of tags, with memory fetched ahead.
//!
//! Nearly all the time goes to waiting for memory. The requests to come are known here, and so are
//! their paths as far as the position map says by now: so each is fetched a request ahead of the time
//! that it is read. A path may turn out to be another, or none; nothing follows from that but time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::rc::Rc;

use oblivio_core::image::{Image, read_below, read_count, refuse, write_number};
use oblivio_core::scheme::{Location, PathScheme, Scheme as _, TagTree};
use oblivio_core::{FreecursiveOram, Front, Oram};

use super::coins::Coins;
use super::found::AllFound;
use super::migration::Migration;
use super::snapshot::PathCounts;
use crate::SimError;
use crate::controller::tags::{Contents, TagScheme};
use crate::controller::{OramSpec, PositionMap, Remap, Scheme};

pub(crate) type Tags = TagScheme<PathScheme<TagTree>, AllFound>;

/// See the [module](self).
pub(super) struct WatchedOram {
    oram: FreecursiveOram<Tags, Coins>,
    /// What is written into a block.
    zeros: Vec<u8>,
    evictions: u64,
    stash_blocks_max: usize,
    /// What was counted before counting began.
    before: PathCounts,
    /// Counted while someone watches: it takes time.
    migration: Option<Rc<RefCell<Migration>>>,
}

impl WatchedOram {
    /// An empty one.
    pub(super) fn new(spec: &OramSpec, coins: Coins) -> Result<Self, SimError> {
        let is_one_tree = spec.rho.is_none() && spec.position_map == PositionMap::InTree;
        if spec.scheme != Scheme::Path || !is_one_tree || spec.remap == Remap::Delayed {
            let message = "the functional mode has Path ORAM in one tree alone: no RAW ORAM, no rho, no plain recursion and \
                           no delayed remapping";
            return Err(SimError::Spec(message.to_owned()));
        }
        let frontend = spec.frontend()?;
        let tags = PathScheme::of_tags(&spec.tree()?)?;
        let contents = Contents::new(&frontend.level_addresses()?, frontend.block_bytes)?;
        let scheme = TagScheme::new(tags, contents, AllFound::default());
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

    /// The ORAM itself.
    pub(super) fn into_oram(self) -> FreecursiveOram<Tags, Coins> {
        self.oram
    }

    /// How many requests to come [`Self::serve`] wants to know.
    pub(super) fn looks_ahead(&self) -> usize {
        self.oram.depth() + 2
    }

    /// Serves a request for a data block, before those that are `coming`.
    pub(super) fn serve(&mut self, block: u64, coming: &VecDeque<u64>) -> Result<(), SimError> {
        // The path of each level of a chain is known once the level above is where it will be: so they
        // are fetched one after the other, as the request comes nearer.
        self.oram.scheme_mut().prefetch_rest();
        for (level, block) in (0..=self.oram.depth()).zip(coming) {
            let leaf = self.oram.foresee(level, *block, TagScheme::contents);
            if let Some(leaf) = leaf {
                self.oram.scheme_mut().prefetch_soon(leaf);
            }
        }
        // What the position map says of the last of them is fetched a request before it is looked at.
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

    /// Counts the blocks on each level, and answers how many are in the stash.
    pub(super) fn count_blocks(&mut self, levels: &mut [u64]) -> Result<usize, SimError> {
        self.oram.scheme_mut().visit_blocks(&mut |location, _, _| {
            if let Location::Bucket(bucket) = location {
                levels[usize::from(bucket.level())] += 1;
            }
        })?;
        Ok(self.oram.stash().blocks())
    }

    /// Forgets what was counted.
    pub(super) fn clear_counts(&mut self) {
        self.before = self.all_counts();
        self.stash_blocks_max = self.oram.stash().blocks();
        *self.oram.scheme_mut().watch_mut() = AllFound::default();
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

    /// All paths since counting began.
    pub(super) fn paths(&self) -> u64 {
        self.counts().paths()
    }

    pub(super) fn found(&self) -> &AllFound {
        self.oram.scheme().watch()
    }

    /// Counts from now on where blocks go.
    pub(super) fn watch_migration(&mut self) {
        let levels = self.oram.scheme().config().geometry.levels();
        let migration = Rc::new(RefCell::new(Migration::new(levels)));
        let counted = Rc::clone(&migration);
        let tags = self.oram.scheme_mut().tags_mut();
        tags.tell_moves(move |moved| counted.borrow_mut().count(moved));
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
        if read_below(from, 2, "a watch that is neither there nor not")? == 1 {
            self.watch_migration();
            let mut counted = Migration::new(0);
            counted.read_image(from)?;
            if let Some(migration) = &self.migration {
                if counted.pre_existing.len() != migration.borrow().pre_existing.len() {
                    return Err(refuse("moves in a tree of other levels"));
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
