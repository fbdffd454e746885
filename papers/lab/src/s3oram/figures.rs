//! The grids of the paper's Figs. 3 to 8, as our model computes them. The paper draws their points
//! without stating numbers.

use serde::{Deserialize, Serialize};

use super::model::{DATABASE, HOME, KIB, LTE, Model};
use super::place::{DelayParts, Disk};
use super::work::Scheme;
use crate::LabError;
use oblivio_models::link::Link;

/// A point of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The number of the figure in the paper.
    pub figure: u8,
    /// The scheme whose delay this is.
    pub scheme: Scheme,
    /// The link of the client.
    pub link: Link,
    /// The name of the disk of each server.
    pub disk: String,
    /// Bytes of the database.
    pub database_bytes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// The time of an access with its share of an eviction.
    pub parts: DelayParts,
}

/// Sizes of databases in halves of a GiB, from 0.5 to 40 GB.
const DATABASES: [u64; 6] = [1, 2, 10, 20, 40, 80];

/// Sizes of blocks in KiB.
const BLOCKS: [u32; 3] = [128, 256, 512];
const ALL_BLOCKS: [u32; 7] = [4, 16, 64, 128, 256, 512, 768];

/// Rates in Mbit/s, which are equal in both directions.
const RATES: [f64; 8] = [10.0, 30.0, 60.0, 110.0, 180.0, 240.0, 400.0, 1000.0];

/// All points of all figures.
pub(super) fn cells(model: &Model) -> Result<Vec<Cell>, LabError> {
    let mut cells = Vec::new();
    let mut add = |figure: u8, link: Link, disk: &Disk, database_bytes: u64, kib: u32| {
        for scheme in Scheme::ALL {
            let block_bytes = kib * KIB;
            let parts = model.parts(scheme, (link, disk), database_bytes, block_bytes)?;
            let disk = disk.name.clone();
            cells.push(Cell { figure, scheme, link, disk, database_bytes, block_bytes, parts });
        }
        Ok::<_, LabError>(())
    };
    for (figure, link) in [(3, HOME), (6, LTE)] {
        for kib in BLOCKS {
            for halves in DATABASES {
                add(figure, link, &model.fitted, halves << 29, kib)?;
            }
        }
    }
    for kib in ALL_BLOCKS {
        add(4, HOME, &model.fitted, DATABASE, kib)?;
    }
    for (figure, link) in [(5, HOME), (7, LTE)] {
        for disk in [Disk::ebs(), model.fitted.clone(), Disk::memory()] {
            for kib in BLOCKS {
                add(figure, link, &disk, DATABASE, kib)?;
            }
        }
    }
    for megabits in RATES {
        let link = Link::new(megabits, megabits, HOME.round_trip_millis);
        add(8, link, &model.fitted, DATABASE, 128)?;
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::machine;
    use super::*;

    #[test]
    fn every_figure_has_all_schemes_at_all_of_its_points() {
        let cells = cells(&Model::new(machine()).unwrap()).unwrap();
        let of = |figure: u8| cells.iter().filter(|cell| cell.figure == figure).count() / 6;
        assert_eq!([3, 4, 5, 6, 7, 8].map(of), [18, 7, 9, 18, 9, 8]);
        // As in the paper, larger blocks never take less time.
        for scheme in Scheme::ALL {
            let of = cells.iter().filter(|cell| cell.figure == 4 && cell.scheme == scheme);
            assert!(of.map(|cell| cell.parts.seconds()).is_sorted(), "{scheme}");
        }
    }
}
