//! ORAMs behind links, by a model of bytes and round trips, and the delay that S³ORAM states for
//! Path ORAM.
//!
//! Nothing is stored or sent. Parameters determine the traffic of an access, and a [`Link`]
//! determines the time of the traffic.

mod figures;
mod forms;
mod results;
mod steps;
mod table;

pub use forms::Form;
#[cfg(test)]
pub(crate) use forms::shares;
pub(crate) use forms::{SERVERS, ShareEncoding, matrix_elements, path};
pub use results::{Cell, Results};
pub use steps::{LinkStep, StepCell};

use std::num::NonZeroUsize;

use crate::experiment::named_json;
use crate::report::Figure;
use crate::{Experiment, Host, LabError};
use figures::figures;
use oblivio_models::link::{LINKS, Link};

/// The link of S³ORAM's Table 1. The paper gives the rates; the delay is the one that the paper
/// states for a phone.
pub const TABLE1_LINK: Link = Link::new(27.0, 6.0, 25.0);

/// Size in bytes of the disk in S³ORAM's Table 1.
pub const PAPER_DISK_BYTES: u64 = 40 << 30;

/// Size in bytes of the blocks in S³ORAM's Table 1.
pub const PAPER_BLOCK_BYTES: u32 = 128 << 10;

/// Sizes of blocks in bytes, from 4 to 512 KiB.
const BLOCKS: [u32; 8] =
    [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10];

/// The named links, and the link of the paper's table.
fn all_links() -> impl Iterator<Item = Link> {
    LINKS.iter().map(|named| named.link).chain([TABLE1_LINK])
}

/// The name of a link in files.
fn id(link: Link) -> &'static str {
    link.name().unwrap_or("table1")
}

/// The plan: evaluates all ORAMs on all links, and the steps from the paper's Path ORAM to a
/// volume.
#[derive(Clone, Copy, Debug)]
pub struct LinksPlan {
    /// Bytes of the disk.
    pub disk_bytes: u64,
}

impl Experiment for LinksPlan {
    const NAME: &'static str = "links";
    const STEPS: &'static str = "block sizes";
    type Record = ();
    type Results = Results;

    fn run(self, _: &[()], _: NonZeroUsize, host: &impl Host<()>) -> Result<Results, LabError> {
        let Self { disk_bytes } = self;
        host.planned(BLOCKS.len() as u64);
        let mut cells = Vec::new();
        for block_bytes in BLOCKS {
            for form in Form::ALL {
                let Some(traffic) = form.traffic(disk_bytes, block_bytes)? else { continue };
                cells.extend(all_links().map(|link| Cell::new(form, link, block_bytes, &traffic)));
            }
            host.made(1);
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Results { version, disk_bytes, cells, steps: steps::run()? })
    }

    fn to_json(results: &Results) -> Result<String, LabError> {
        named_json::<Self>(results)
    }

    fn figures(results: &Results) -> Vec<Figure> {
        figures(results)
    }
}
