//! What the owner does: four phases, each with a pattern that shows on any ordinary storage.

use std::time::Duration;

use oblivio_core::Oram;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::source::{Source, sha256};
use crate::error::CliError;

/// A part of the story.
pub(super) struct Phase {
    pub(super) name: &'static str,
    writes: bool,
    addresses: Vec<u64>,
}

/// The owner, before and during the story.
pub(super) struct Owner<'a> {
    source: &'a Source,
    phases: Vec<Phase>,
    read_back: Vec<u8>,
    differing_reads: u64,
}

/// What the owner did and found. Secret, all of it but the number of accesses, time and AES blocks.
pub(super) struct Diary {
    pub(super) blocks: u64,
    pub(super) phases: Vec<Phase>,
    /// Of the file put together again.
    pub(super) sha256_read_back: String,
    /// Reads that gave other bytes than were written.
    pub(super) differing_reads: u64,
    pub(super) elapsed: Duration,
    pub(super) aes_blocks: u64,
    pub(super) stash_peak_blocks: usize,
}

impl Phase {
    /// How many accesses.
    pub(super) fn len(&self) -> usize {
        self.addresses.len()
    }
}

impl Diary {
    /// All accesses in order, as the addresses asked for.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u64> {
        self.phases.iter().flat_map(|phase| phase.addresses.iter().copied())
    }

    pub(super) fn accesses(&self) -> u64 {
        total(&self.phases)
    }
}

impl<'a> Owner<'a> {
    pub(super) fn new(source: &'a Source, coins: StdRng) -> Self {
        let phases = story(source.block_count(), coins);
        Self { source, phases, read_back: vec![0; source.bytes.len()], differing_reads: 0 }
    }

    pub(super) fn total_accesses(&self) -> u64 {
        total(&self.phases)
    }

    /// Goes through all phases. Every read is compared with the file.
    pub(super) fn use_all(
        &mut self,
        oram: &mut impl Oram,
        accessed: &dyn Fn(),
    ) -> Result<(), CliError> {
        let mut buffer = vec![0; self.source.block_bytes];
        for phase in &self.phases {
            for address in &phase.addresses {
                let block = self.source.block(*address);
                if phase.writes {
                    buffer.fill(0);
                    buffer[..block.len()].copy_from_slice(block);
                    oram.write(*address, &buffer)?;
                } else {
                    oram.read(*address, &mut buffer)?;
                    let bytes = &buffer[..block.len()];
                    self.differing_reads += u64::from(bytes != block);
                    let start = *address as usize * self.source.block_bytes;
                    self.read_back[start..start + bytes.len()].copy_from_slice(bytes);
                }
                accessed();
            }
        }
        Ok(())
    }

    pub(super) fn into_diary(
        self,
        elapsed: Duration,
        aes_blocks: u64,
        stash_peak_blocks: usize,
    ) -> Diary {
        Diary {
            blocks: self.source.block_count(),
            phases: self.phases,
            sha256_read_back: sha256(&self.read_back),
            differing_reads: self.differing_reads,
            elapsed,
            aes_blocks,
            stash_peak_blocks,
        }
    }
}

fn story(blocks: u64, mut coins: StdRng) -> Vec<Phase> {
    // So that a file of a few blocks makes a picture too.
    const SHORT_PHASE_MIN: u64 = 64;
    let short_phase = (blocks / 2).max(SHORT_PHASE_MIN);

    let mut shuffled: Vec<_> = (0..blocks).collect();
    shuffled.shuffle(&mut coins);
    let hot = [1, 5, 6].map(|eighths| blocks * eighths / 8);
    let hot = (0..short_phase).map(|_| hot[coins.random_range(0..hot.len())]).collect();
    let (loop_start, loop_blocks) = (blocks / 4, blocks.div_ceil(8));
    let round = (0..short_phase).map(|i| loop_start + i % loop_blocks).collect();

    let read = |name, addresses| Phase { name, writes: false, addresses };
    vec![
        Phase { name: "write all", writes: true, addresses: (0..blocks).collect() },
        read("read all, shuffled", shuffled),
        read("three hot blocks", hot),
        read("a loop", round),
    ]
}

fn total(phases: &[Phase]) -> u64 {
    phases.iter().map(|phase| phase.addresses.len() as u64).sum()
}
