//! `oblivio rescue`: what is left of a damaged volume, as a plain image.

use std::fs::{File, Permissions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};

use oblivio_store::container::HEADER_COPIES;
use oblivio_store::{FileOptions, FileStore};
use oblivio_volume::rescue::{Damage, RescueTarget, Rescued, rescue as rescue_volume};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use super::opening::{self, Unlocking};
use super::state_home;
use crate::args::RescueArgs;
use crate::error::CliError;
use crate::files::Unnamed;
use crate::{files, output, progress};

/// So many ranges, and so much damage, are told one by one.
const TOLD_MAX: usize = 20;

/// `oblivio rescue`.
pub(crate) fn rescue(args: &RescueArgs) -> Result<(), CliError> {
    let options = FileOptions { read_only: true, may_be_cut_off: true, ..FileOptions::default() };
    let Unlocking { store, owner, state } = opening::unlock(&args.at, &options)?;
    let damage = damage_to_file(&store);
    let dir = state_home::open_to_read(&state)?;
    let params = owner.superblock.params();
    let block_bytes = u64::from(params.block_bytes);
    // It has its name once it is whole. Who reads it reads the disk.
    let unnamed = Unnamed::begin_new(&args.output)?;
    let file = unnamed.file();
    file.set_permissions(Permissions::from_mode(0o600))
        .and_then(|()| file.set_len(params.capacity_bytes()))
        .map_err(|error| files::cannot_write(&args.output, &error))?;
    let mut image = Image { file, block_bytes };

    let bar = progress::bar_of(0, "buckets");
    let rescued = rescue_volume(store, &dir, &owner, damage, &mut image, &mut |read, of| {
        bar.set_length(of);
        bar.set_position(read);
    });
    bar.finish_and_clear();
    let rescued = rescued?;
    image.file.sync_all().map_err(|error| files::cannot_write(&args.output, &error))?;
    unnamed.name_new()?;

    output::print(&if args.json {
        format!("{:#}", report(&rescued, block_bytes))
    } else {
        text(&rescued, block_bytes, &args.output.display().to_string())
    })?;
    if rescued.state_is_behind {
        return Err(CliError::StateRolledBack(
            "the client's directory is older than the store: every block may be older than the latest. \
             Use the latest directory, if there is one"
                .into(),
        ));
    }
    if rescued.damage.count() == 0 && rescued.lost.is_empty() {
        return Ok(());
    }
    Err(CliError::Tampered(format!(
        "damage: {}; blocks that are lost: {}; blocks that may be older than the latest: {}",
        rescued.damage.count(),
        count(&rescued.lost),
        count(&rescued.doubtful)
    )))
}

/// What is wrong with the file, whoever opens it.
fn damage_to_file(store: &FileStore) -> Damage {
    let mut damage = Damage::default();
    let (whole, missing) = (store.bytes(), store.missing_bytes());
    if missing > 0 {
        damage.push(format!("{missing} of {whole} bytes were cut off the end of the file"));
    }
    let copies = store.damaged_header_copies();
    if copies > 0 {
        damage.push(format!("{copies} of {HEADER_COPIES} copies of the file's header are damaged"));
    }
    damage
}

/// A file that is zeros where nothing was put.
struct Image<'f> {
    file: &'f File,
    block_bytes: u64,
}

impl RescueTarget for Image<'_> {
    fn put(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, block * self.block_bytes)
    }

    fn clear(&mut self, block: u64) -> io::Result<()> {
        // What was never put is a hole, and stays one.
        let mut there = Zeroizing::new(vec![0; self.block_bytes as usize]);
        self.file.read_exact_at(&mut there, block * self.block_bytes)?;
        if there.iter().any(|byte| *byte != 0) {
            there.fill(0);
            self.put(block, &there)?;
        }
        Ok(())
    }
}

fn report(rescued: &Rescued, block_bytes: u64) -> Value {
    let ranges = |blocks: &[Range<u64>]| -> Vec<Value> {
        let range = |range: &Range<u64>| json!({ "offset": range.start * block_bytes, "bytes": (range.end - range.start) * block_bytes });
        blocks.iter().map(range).collect()
    };
    json!({
        "blocks": rescued.blocks,
        "lost": ranges(&rescued.lost),
        "doubtful": ranges(&rescued.doubtful),
        "state_is_behind": rescued.state_is_behind,
        "damage": rescued.damage.told(),
        "damage_left_out": untold(&rescued.damage, rescued.damage.told().len()),
    })
}

fn text(rescued: &Rescued, block_bytes: u64, image: &str) -> String {
    let mut lines = vec![format!("{} blocks are in {image}", rescued.blocks)];
    for (blocks, what) in
        [(&rescued.lost, "lost"), (&rescued.doubtful, "may be older than the latest")]
    {
        let ranges = blocks.iter().map(|range| {
            let bytes = (range.end - range.start) * block_bytes;
            format!("{bytes} bytes from {} on: {what}", range.start * block_bytes)
        });
        let left_out = blocks.len().saturating_sub(TOLD_MAX);
        lines.extend(ranges.take(TOLD_MAX));
        lines.extend(more(left_out as u64, ": --json has all of them"));
    }
    let damage = &rescued.damage;
    lines.extend(damage.told().iter().take(TOLD_MAX).cloned());
    let in_json = damage.told().len();
    let advice = if in_json > TOLD_MAX { format!(": --json has {in_json}") } else { String::new() };
    lines.extend(more(untold(damage, in_json.min(TOLD_MAX)), &advice));
    lines.join("\n")
}

/// What is said instead of lines that are too many to be read.
fn more(left_out: u64, advice: &str) -> Option<String> {
    (left_out > 0).then(|| format!("... and {left_out} more like this{advice}"))
}

/// How much damage there is beyond what was told.
fn untold(damage: &Damage, told: usize) -> u64 {
    damage.count().saturating_sub(told as u64)
}

fn count(blocks: &[Range<u64>]) -> u64 {
    blocks.iter().map(|range| range.end - range.start).sum()
}
