//! What storage sees: two programs that could not be more different, recorded and drawn.
//!
//! One asks for the same block again and again, the other goes through all of them. A row of the picture is a twentieth of the time, a column a sixteenth of
//! the leaves, and its shade how many of the paths that were read end there. The diagonal is the evictions: they go through all leaves in an order that
//! everybody knows. The rest is the requests, and looks like nothing, whatever they are.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example is read, and says what it does"
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

/// How often each part of the leaves was read in each part of the time.
type Picture = [[u64; COLUMNS]; ROWS];

/// What storage saw of these requests.
fn record(address_of: impl Fn(u64) -> u64) -> Result<Vec<Event>, Box<dyn Error>> {
    let seen = Arc::new(Mutex::new(Vec::<Event>::new()));
    let mut array = ArrayOptions::new(BLOCKS, 64).on(|shape| {
        let store = MemoryStore::new(&[shape], MemoryStore::default_layout())?;
        Ok(Recorder::new(store, seen.clone()))
    })?;
    for request in 0..REQUESTS {
        // Every other one writes. Nobody can tell.
        match request % 2 {
            0 => array.write(address_of(request), &[request as u8; 64])?,
            _ => array.read(address_of(request), &mut [0; 64])?,
        }
    }
    drop(array);
    let seen = Arc::into_inner(seen).ok_or("the array is still there")?;
    Ok(seen.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Of the bucket at the end of each path that was read: its index is the leaf.
fn draw(seen: &[Event]) -> Picture {
    let reads = seen.iter().filter(|event| event.operation == Operation::Read);
    let buckets: Vec<_> =
        reads.filter_map(|event| Some((event.trip, event.piece?.bucket))).collect();
    let deepest = buckets.iter().map(|(_, bucket)| bucket.level()).max().unwrap_or(0);
    let mut leaves: Vec<_> =
        buckets.into_iter().filter(|(_, bucket)| bucket.level() == deepest).collect();
    // A trip asks for several pieces of a bucket.
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
    // Behind the diagonal, each part of the leaves has its share, give or take what chance does.
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
