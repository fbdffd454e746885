//! What storage sees: two very different programs, recorded and drawn.
//!
//! The first program requests the same block again and again, the second all blocks in turn. A row
//! of the picture is a twentieth of the time, a column a sixteenth of the leaves. The shade is the
//! number of paths read that end there. The diagonal shows the evictions, which go through all
//! leaves in a public order. All other marks are requests, which look random in both cases.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints what it does, and may panic"
)]

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use oblivio::ArrayOptions;
use oblivio::oblivio_core::MemoryStore;
use oblivio::oblivio_core::view::{Event, Operation, Recorder};

const BLOCKS: u64 = 4096;
const REQUESTS: u64 = 4000;
const ROWS: usize = 20;
const COLUMNS: usize = 16;

/// Number of paths read, by time (row) and leaves (column).
type Picture = [[u64; COLUMNS]; ROWS];

/// Records what storage sees of the requests.
fn record(address_of: impl Fn(u64) -> u64) -> Result<Vec<Event>, Box<dyn Error>> {
    let seen = Arc::new(Mutex::new(Vec::<Event>::new()));
    let mut array = ArrayOptions::new(BLOCKS, 64).on(|shape| {
        let store = MemoryStore::new(&[shape], MemoryStore::default_layout())?;
        Ok(Recorder::new(store, seen.clone()))
    })?;
    for request in 0..REQUESTS {
        // Every other request writes. Storage cannot tell which.
        match request % 2 {
            0 => array.write(address_of(request), &[request as u8; 64])?,
            _ => array.read(address_of(request), &mut [0; 64])?,
        }
    }
    drop(array);
    let seen = Arc::into_inner(seen).ok_or("the array still uses the recorder")?;
    Ok(seen.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Counts the paths that were read, by time and leaf. The deepest bucket of a path has the leaf as
/// its index.
fn draw(seen: &[Event]) -> Picture {
    let reads = seen.iter().filter(|event| event.operation == Operation::Read);
    let buckets: Vec<_> =
        reads.filter_map(|event| Some((event.trip, event.piece?.bucket))).collect();
    let deepest = buckets.iter().map(|(_, bucket)| bucket.level()).max().unwrap_or(0);
    let mut leaves: Vec<_> =
        buckets.into_iter().filter(|(_, bucket)| bucket.level() == deepest).collect();
    // A trip reads several pieces of a bucket.
    leaves.dedup();
    let mut picture = Picture::default();
    for (i, (_, leaf)) in leaves.iter().enumerate() {
        let column = (leaf.index() * COLUMNS as u64) >> deepest;
        picture[i * ROWS / leaves.len()][column as usize] += 1;
    }
    picture
}

fn print(picture: &Picture) {
    let most = picture.iter().flatten().max().copied().unwrap_or(1);
    for row in picture {
        let shade = |count: &u64| [" ", "░", "▒", "▓", "█"][(count * 4).div_ceil(most) as usize];
        println!("  {}", row.iter().map(|count| shade(count).repeat(2)).collect::<String>());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let one_block = draw(&record(|_| 7)?);
    let all_blocks = draw(&record(|request| request % BLOCKS)?);
    println!("the same block {REQUESTS} times:");
    print(&one_block);
    println!("all blocks, one after the other:");
    print(&all_blocks);
    // Apart from the diagonal, each column has its share, up to random deviations.
    for picture in [one_block, all_blocks] {
        for column in COLUMNS / 2..COLUMNS {
            let paths: u64 = picture.iter().map(|row| row[column]).sum();
            assert!(paths.abs_diff(REQUESTS / COLUMNS as u64) < 80, "{paths} in column {column}");
        }
    }
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}
