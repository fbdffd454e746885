//! A custom store: buckets as records of a database (redb), and an array on it.
//!
//! A store knows nothing of ORAM. It reads and writes pieces of buckets, and makes them durable on
//! a flush. `oblivio_conformance` checks that it does; see the test at the end.
//!
//! The array on it is authenticated, but not durable: its position map is lost when the program
//! ends.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example prints what it does, and may panic"
)]

#[cfg(test)]
use std::cell::Cell;
use std::error::Error;
#[cfg(test)]
use std::fs;
use std::path::Path;

use oblivio::ArrayOptions;
#[cfg(test)]
use oblivio::ErrorKind;
use oblivio::oblivio_core::store::{
    Blanks, BucketStore, Capabilities, Fill, Frames, Piece, Span, TreeId, TreeShape,
};
use oblivio::oblivio_core::{StoreError, StoreErrorKind};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

/// Maps the tree, level and index of a bucket to its bytes.
const BUCKETS: TableDefinition<'_, (u16, u8, u64), &[u8]> = TableDefinition::new("buckets");

struct RedbStore {
    database: Database,
    shapes: Vec<TreeShape>,
    /// The pieces of the current read or write, one after the other. `spans` locates each piece.
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl RedbStore {
    /// Creates the database if it does not exist. The shapes must be those for which it was
    /// created.
    fn open(path: &Path, shapes: Vec<TreeShape>) -> Result<Self, redb::Error> {
        let database = Database::create(path)?;
        let begun = database.begin_write()?;
        begun.open_table(BUCKETS)?;
        begun.commit()?;
        Ok(Self { database, shapes, buffer: Vec::new(), spans: Vec::new() })
    }

    /// Lays out a zeroed `buffer` for the pieces. Fails if a piece is in no tree; nothing was read
    /// or written then.
    fn place(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        self.spans.clear();
        let mut start = 0;
        for piece in pieces {
            let bytes = self.part(piece)?.bytes;
            self.spans.push(Span { start, bytes });
            start += bytes;
        }
        self.buffer.clear();
        self.buffer.resize(start, 0);
        Ok(())
    }

    /// The span of a piece in its bucket.
    fn part(&self, piece: &Piece) -> Result<Span, StoreError> {
        let within = self.shape(piece.tree).and_then(|shape| shape.span(piece));
        within.ok_or_else(|| StoreError::new(StoreErrorKind::Refused, "no tree has this piece"))
    }

    fn bucket_bytes(&self, piece: &Piece) -> usize {
        let level = self.shape(piece.tree).and_then(|shape| shape.level_of(piece.bucket));
        level.map_or(0, |level| level.bucket_bytes as usize)
    }

    /// The bytes of a record, if it is a whole bucket. Others can change the file, so the length is
    /// checked.
    fn whole<'r>(&self, piece: &Piece, record: &'r [u8]) -> Result<&'r [u8], StoreError> {
        if record.len() == self.bucket_bytes(piece) {
            return Ok(record);
        }
        let message = "a record is not as long as its bucket: the database is damaged";
        Err(StoreError::new(StoreErrorKind::Damaged, message))
    }
}

fn key(piece: &Piece) -> (u16, u8, u64) {
    (piece.tree.0, piece.bucket.level(), piece.bucket.index())
}

fn failed(error: impl Into<redb::Error>) -> StoreError {
    let error = error.into();
    StoreError::caused_by(StoreErrorKind::Failed, format!("the database failed: {error}"), error)
}

impl BucketStore for RedbStore {
    fn shape(&self, tree: TreeId) -> Option<&TreeShape> {
        self.shapes.get(usize::from(tree.0))
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::PARTS
    }

    fn prefetch(&mut self, _: &[Piece]) {}

    fn read(&mut self, pieces: &[Piece]) -> Result<Frames<'_>, StoreError> {
        self.place(pieces)?;
        let begun = self.database.begin_read().map_err(failed)?;
        let buckets = begun.open_table(BUCKETS).map_err(failed)?;
        for (i, piece) in pieces.iter().enumerate() {
            // A bucket that was never written reads as zeros.
            if let Some(record) = buckets.get(key(piece)).map_err(failed)? {
                let bucket = self.whole(piece, record.value())?;
                let part = self.part(piece)?.range();
                self.buffer[self.spans[i].range()].copy_from_slice(&bucket[part]);
            }
        }
        Ok(Frames::new(&self.buffer, &self.spans))
    }

    fn write(&mut self, pieces: &[Piece], fill: &mut Fill<'_>) -> Result<(), StoreError> {
        self.place(pieces)?;
        fill(Blanks::new(&mut self.buffer, &self.spans));
        let mut begun = self.database.begin_write().map_err(failed)?;
        begun.set_durability(Durability::None).map_err(failed)?;
        {
            let mut buckets = begun.open_table(BUCKETS).map_err(failed)?;
            for (i, piece) in pieces.iter().enumerate() {
                let part = self.part(piece)?.range();
                let mut bucket = match buckets.get(key(piece)).map_err(failed)? {
                    Some(record) => self.whole(piece, record.value())?.to_vec(),
                    None => vec![0; self.bucket_bytes(piece)],
                };
                bucket[part].copy_from_slice(&self.buffer[self.spans[i].range()]);
                buckets.insert(key(piece), &bucket[..]).map_err(failed)?;
            }
        }
        begun.commit().map_err(failed)
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        let mut begun = self.database.begin_write().map_err(failed)?;
        begun.set_durability(Durability::Immediate).map_err(failed)?;
        begun.commit().map_err(failed)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("buckets.redb");
    let mut array = ArrayOptions::new(1000, 256)
        .on(|shape| Ok(RedbStore::open(&path, vec![shape]).map_err(failed)?))?;
    for address in 0..100 {
        array.write(address, &[address as u8; 256])?;
    }
    let mut block = [0; 256];
    array.read(42, &mut block)?;
    println!("block 42 holds {}, and the database {} bytes", block[0], path.metadata()?.len());
    assert_eq!(block, [42; 256]);
    Ok(())
}

#[test]
fn it_runs() -> Result<(), Box<dyn Error>> {
    main()
}

#[test]
fn it_keeps_to_the_contract_of_stores() {
    let folder = tempfile::tempdir().unwrap();
    let number = Cell::new(0);
    let path = |add| {
        number.set(number.get() + add);
        folder.path().join(number.get().to_string())
    };
    oblivio_conformance::check_durable_store(
        |shapes| RedbStore::open(&path(1), shapes.to_vec()).unwrap(),
        |store| {
            // As after a crash: without what the database writes when it is closed.
            fs::copy(path(0), path(1)).unwrap();
            RedbStore::open(&path(0), store.shapes.clone()).unwrap()
        },
    );
}

#[test]
fn a_truncated_record_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("buckets.redb");
    let options = ArrayOptions::new(100, 64);
    let make = |shape| Ok(RedbStore::open(&path, vec![shape]).map_err(failed)?);
    let mut array = options.on(make).unwrap();
    array.write(7, &[42; 64]).unwrap();
    let store: RedbStore = array.into_store().unwrap();
    // Truncate all records to one byte.
    let begun = store.database.begin_write().unwrap();
    {
        let mut buckets = begun.open_table(BUCKETS).unwrap();
        let keys: Vec<_> = buckets.iter().unwrap().map(|it| it.unwrap().0.value()).collect();
        assert!(!keys.is_empty());
        keys.iter().for_each(|key| drop(buckets.insert(key, &[1][..]).unwrap()));
    }
    begun.commit().unwrap();
    drop(store);
    let mut array = options.on(make).unwrap();
    let error = (0..100).find_map(|at| array.read(at, &mut [0; 64]).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::Tampered, "{error}");
}
