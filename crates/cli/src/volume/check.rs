//! `oblivio check`: whether everything is as it was left.

use serde_json::json;

use super::opening;
use crate::args::{CheckArgs, RunArgs};
use crate::error::CliError;
use crate::{output, progress};

/// `oblivio check`.
pub(crate) fn check(args: &CheckArgs) -> Result<(), CliError> {
    let after_tampering = args.after_tampering;
    let run = RunArgs { cache: 0, after_tampering, ..RunArgs::default() };
    let opened = opening::open(&args.at, &run)?;
    let mut volume = opened.volume;
    let buckets = volume.buckets_in_storage();
    let bar = progress::bar_of(buckets, "buckets");
    let blocks = volume.check(&mut |read| bar.set_position(read))?;
    bar.finish_and_clear();
    volume.close()?;
    if args.json {
        output::print(&format!(
            "{:#}",
            json!({ "buckets": buckets, "blocks": blocks, "recovered": opened.recovery.was_needed })
        ))
    } else {
        output::print(&format!(
            "{buckets} buckets are what was written last; {blocks} blocks hold data, and each is in \
             its place"
        ))
    }
}
