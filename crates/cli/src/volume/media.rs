//! `oblivio plan --medium`: estimates the times that schemes take on a medium, by a model.

use oblivio_models::medium::{Medium, Tally, VolumeModel};
use oblivio_store::StoreKind;
use oblivio_volume::VolumeError;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use super::plan::{VolumePlan, size};
use crate::args::VolumeRequirementsArgs;
use crate::error::CliError;
use crate::table;

/// Schemes, with default parameters, that are compared with the planned one.
pub(super) const COMPARED_SCHEMES: [&str; 2] = ["raw", "range"];

/// Bytes of the longest read of the table, at a random position.
const READ_BYTES_MAX: u64 = 16 << 20;

/// Number of bytes over which an estimate is averaged, in at least [`READS_MIN`] and at most
/// [`READS_MAX`] reads.
const BYTES_PER_FIGURE: u64 = 16 << 20;
const READS_MIN: u64 = 4;
const READS_MAX: u64 = 256;

const HEAD: [&str; 5] = ["scheme", "a read of", "seeks", "moves", "takes"];

/// Estimates for schemes on a medium.
pub(super) struct MediumEstimate {
    medium: Medium,
    rows: Vec<Row>,
}

/// The estimate for reads of one length.
struct Row {
    scheme: String,
    read_bytes: u64,
    seeks: f64,
    moved_bytes: f64,
    seconds: f64,
}

impl MediumEstimate {
    /// Estimates the planned scheme, and others with the same block size.
    pub(super) fn of(
        plan: &VolumePlan,
        requirements: &VolumeRequirementsArgs,
        medium: Medium,
    ) -> Result<Self, CliError> {
        let mut rows = rows(plan, medium)?;
        for scheme in
            COMPARED_SCHEMES.into_iter().filter(|scheme| *scheme != plan.params.scheme.as_str())
        {
            let requirements = requirements.with_scheme(scheme);
            // A scheme that cannot have this disk is left out.
            if let Ok(plan) =
                VolumePlan::new(plan.params.capacity_bytes(), &requirements, StoreKind::default())
            {
                rows.extend(self::rows(&plan, medium)?);
            }
        }
        if !rows.iter().any(|row| row.scheme == plan.params.scheme.as_str()) {
            return Err(CliError::Input(format!(
                "there is no model of the scheme `{}`: leave --medium out, or plan another scheme",
                plan.params.scheme.as_str()
            )));
        }
        Ok(Self { medium, rows })
    }

    /// The estimates as text: for a block, for 1 MiB and for the longest read, and the length from
    /// which ranges are faster.
    pub(super) fn text(&self) -> String {
        let lengths = self.lengths();
        let shown = |row: &&Row| {
            Some(&row.read_bytes) == lengths.first()
                || row.read_bytes == 1 << 20
                || Some(&row.read_bytes) == lengths.last()
        };
        let rows = self.rows.iter().filter(shown).map(|row| {
            [
                row.scheme.clone(),
                size(row.read_bytes as f64),
                format!("{:.0}", row.seeks),
                size(row.moved_bytes),
                milliseconds(row.seconds),
            ]
        });
        let table = [HEAD.map(str::to_owned)].into_iter().chain(rows).collect::<Vec<_>>();
        format!(
            "on {}, by a model: reads of whole ranges at random positions, one request after the \
             other, with the evictions that they cause\n{}{}",
            self.medium,
            table::aligned(&table),
            self.verdict()
        )
    }

    fn lengths(&self) -> Vec<u64> {
        let scheme = self.rows.first().map(|row| row.scheme.as_str());
        let of_first = self.rows.iter().filter(|row| Some(row.scheme.as_str()) == scheme);
        of_first.map(|row| row.read_bytes).collect()
    }

    fn seconds(&self, scheme: &str, read_bytes: u64) -> Option<f64> {
        let row = |row: &&Row| row.scheme == scheme && row.read_bytes == read_bytes;
        self.rows.iter().find(row).map(|row| row.seconds)
    }

    /// A sentence that says from which length of reads ranges are faster than `raw`.
    fn verdict(&self) -> String {
        let lengths = self.lengths();
        let factor = |bytes| Some(self.seconds("raw", bytes)? / self.seconds("range", bytes)?);
        let (Some(block), Some(factor_of_block)) =
            (lengths.first(), lengths.first().and_then(|bytes| factor(*bytes)))
        else {
            return String::new();
        };
        let of_block = size(*block as f64);
        // The shortest length from which on ranges are faster for every length.
        let wins = |bytes: &&u64| factor(**bytes).is_some_and(|factor| factor > 1.0);
        let winning = lengths.iter().rev().take_while(wins).last();
        let from = match winning {
            Some(bytes) => format!("ranges win from {} on", size(*bytes as f64)),
            None => "ranges win at no length".to_owned(),
        };
        match factor_of_block {
            factor if factor > 1.0 => {
                format!("{from}; a read of {of_block} is {factor:.1} times as fast as with `raw`")
            }
            factor => format!(
                "{from}; a read of {of_block} takes {:.1} times as long as with `raw`",
                1.0 / factor
            ),
        }
    }

    pub(super) fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            json!({
                "scheme": row.scheme,
                "read_bytes": row.read_bytes,
                "seeks": row.seeks,
                "moved_bytes": row.moved_bytes,
                "seconds": row.seconds,
            })
        });
        json!({ "medium": self.medium.to_string(), "reads": rows.collect::<Vec<_>>() })
    }
}

/// Estimates for all read lengths with the planned scheme; empty if there is no model of the
/// scheme.
fn rows(plan: &VolumePlan, medium: Medium) -> Result<Vec<Row>, CliError> {
    let config = plan.params.config()?;
    let Some(mut model) = VolumeModel::from_config(&*config).map_err(VolumeError::from)? else {
        return Ok(Vec::new());
    };
    let mut coins = StdRng::seed_from_u64(1);
    let mut rows = Vec::new();
    let mut blocks = 1;
    while blocks <= plan.params.blocks {
        let read_bytes = blocks * u64::from(plan.params.block_bytes);
        if read_bytes > READ_BYTES_MAX {
            break;
        }
        let reads = (BYTES_PER_FIGURE / read_bytes).clamp(READS_MIN, READS_MAX);
        let mut tally = Tally::new(medium);
        for _ in 0..reads {
            let first = coins.random_range(0..plan.params.blocks / blocks) * blocks;
            model.read(first, blocks, &mut coins, &mut |request| tally.add(&request));
        }
        let each = |sum: f64| sum / reads as f64;
        rows.push(Row {
            scheme: plan.params.scheme.as_str().to_owned(),
            read_bytes,
            seeks: each(tally.seeks as f64),
            moved_bytes: each(tally.bytes as f64),
            seconds: each(tally.seconds),
        });
        blocks *= 2;
    }
    Ok(rows)
}

pub(super) fn milliseconds(seconds: f64) -> String {
    match seconds * 1e3 {
        millis if millis < 10.0 => format!("{millis:.2} ms"),
        millis if millis < 10_000.0 => format!("{millis:.0} ms"),
        millis => format!("{:.0} s", millis / 1e3),
    }
}
