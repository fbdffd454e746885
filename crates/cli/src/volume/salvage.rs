//! Reads a damaged volume, and reports the damage and the lost blocks.

use std::ops::Range;
use std::path::Path;

use oblivio::Location;
use oblivio::opening::UnlockedStore;
use oblivio_store::StoreOptions;
use oblivio_volume::rescue::{Damage, RescueTarget, Rescued, rescue};
use oblivio_volume::superblock::VolumeParams;
use oblivio_volume::unlock::NewerCopies;
use serde_json::{Value, json};

use super::opening;
use crate::args::OpenArgs;
use crate::error::CliError;
use crate::progress;

/// Maximum number of ranges, and of damaged items, that are reported one by one.
const REPORTED_MAX: usize = 20;

/// A damaged volume, ready to be read.
pub(super) struct DamagedVolume {
    unlocked: UnlockedStore,
    is_on_share_servers: bool,
}

impl DamagedVolume {
    /// Opens the store and the client's directory read-only. On share servers, opens the store to
    /// write, which fences other clients.
    pub(super) fn begin(at: &OpenArgs) -> Result<Self, CliError> {
        // Share servers compute only for a client that opens to write, which fences off other
        // clients.
        let computes = matches!(at.volume.volume, Location::Shares(_));
        let options = StoreOptions::default().with_read_only(!computes).with_allow_incomplete(true);
        let unlocked = opening::unlock(at, &options, NewerCopies::LeaveOut)?;
        Ok(Self { unlocked, is_on_share_servers: computes })
    }

    pub(super) fn params(&self) -> &VolumeParams {
        self.unlocked.owner.superblock.params()
    }

    /// The client's directory.
    pub(super) fn state(&self) -> &Path {
        &self.unlocked.state
    }

    /// Reads all of storage into `target`, and closes everything.
    pub(super) fn finish(self, target: &mut dyn RescueTarget) -> Result<Report, CliError> {
        let block_bytes = u64::from(self.params().block_bytes);
        let Self { unlocked, is_on_share_servers } = self;
        let UnlockedStore { store, condition, owner, dir, .. } = unlocked;
        let mut damage = Damage::default();
        condition.damage.into_iter().for_each(|sentence| damage.push(sentence));
        let bar = progress::bar_of(0, "buckets");
        let rescued = rescue(store, &dir, &owner, damage, target, &mut |read, of| {
            bar.set_length(of);
            bar.set_position(read);
        });
        bar.finish_and_clear();
        Ok(Report { rescued: rescued?, block_bytes, is_on_share_servers })
    }
}

/// The result of a rescue.
pub(super) struct Report {
    pub(super) rescued: Rescued,
    block_bytes: u64,
    is_on_share_servers: bool,
}

impl Report {
    pub(super) fn json(&self) -> Value {
        let Self { rescued, block_bytes, .. } = self;
        let ranges = |blocks: &[Range<u64>]| -> Vec<Value> {
            let range = |range: &Range<u64>| {
                json!({
                    "offset": range.start * block_bytes,
                    "bytes": (range.end - range.start) * block_bytes,
                })
            };
            blocks.iter().map(range).collect()
        };
        json!({
            "blocks": rescued.blocks,
            "blocks_lost": block_count(&rescued.lost),
            "lost": ranges(&rescued.lost),
            "doubtful": ranges(&rescued.doubtful),
            "state_is_behind": rescued.state_is_behind,
            "damage": rescued.damage.entries(),
            "damage_left_out": unreported(&rescued.damage, rescued.damage.entries().len()),
            "missing": rescued.missing,
        })
    }

    /// The report as text. `became` completes the sentence "n blocks …".
    pub(super) fn text(&self, became: &str) -> String {
        let Self { rescued, block_bytes, .. } = self;
        let lost = match block_count(&rescued.lost) {
            0 => String::new(),
            lost => format!(", and {lost} are lost"),
        };
        let mut lines = vec![format!("{} blocks {became}{lost}", rescued.blocks)];
        for (blocks, what) in
            [(&rescued.lost, "lost"), (&rescued.doubtful, "may be older than the latest")]
        {
            let ranges = blocks.iter().map(|range| {
                let bytes = (range.end - range.start) * block_bytes;
                format!("{bytes} bytes from {} on: {what}", range.start * block_bytes)
            });
            let left_out = blocks.len().saturating_sub(REPORTED_MAX);
            lines.extend(ranges.take(REPORTED_MAX));
            lines.extend(more(left_out as u64, ": --json has all of them"));
        }
        let damage = &rescued.damage;
        lines.extend(damage.entries().iter().take(REPORTED_MAX).cloned());
        let in_json = damage.entries().len();
        let advice =
            if in_json > REPORTED_MAX { format!(": --json has {in_json}") } else { String::new() };
        lines.extend(more(unreported(damage, in_json.min(REPORTED_MAX)), &advice));
        lines.join("\n")
    }

    /// Succeeds if nothing is lost or damaged, no server is missing, and the client's directory is
    /// the latest. Otherwise, the error determines the exit code of the rescue.
    pub(super) fn verdict(&self) -> Result<(), CliError> {
        let rescued = &self.rescued;
        if rescued.state_is_behind {
            return Err(CliError::StateRolledBack(
                "the client's directory is older than storage: every block may be older than the \
                 latest. Use the latest directory, if it exists"
                    .into(),
            ));
        }
        let found = format!(
            "damage: {}; blocks that are lost: {}; blocks that may be older than the latest: {}",
            rescued.damage.count(),
            block_count(&rescued.lost),
            block_count(&rescued.doubtful)
        );
        if let Some(missing) = &rescued.missing {
            return Err(CliError::Unreachable(format!(
                "{missing}. The rescued data may lack newer blocks that the missing servers hold. \
                 {found}"
            )));
        }
        if rescued.damage.count() == 0 && rescued.lost.is_empty() {
            return Ok(());
        }
        let advice = match self.is_on_share_servers {
            true => {
                ". `oblivio check` names servers whose shares are wrong. If the folders of two \
                 servers were swapped, swap them back before any server is repaired"
            }
            false => "",
        };
        Err(CliError::Tampered(format!("{found}{advice}")))
    }
}

/// A line that reports the number of lines that are not shown. `None` if that number is 0.
fn more(left_out: u64, advice: &str) -> Option<String> {
    (left_out > 0).then(|| format!("... and {left_out} more like this{advice}"))
}

/// Number of items of damage beyond the `reported` ones.
fn unreported(damage: &Damage, reported: usize) -> u64 {
    damage.count().saturating_sub(reported as u64)
}

fn block_count(blocks: &[Range<u64>]) -> u64 {
    blocks.iter().map(|range| range.end - range.start).sum()
}
