//! A store of one's own: buckets as records of a database (redb), and an array on it.
//!
//! A store knows nothing of ORAM: it is asked for pieces of buckets, and gives them back as they were last written. `oblivio_testkit::conformance`
//! says whether one does; the test at the end asks it.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example is read, and says what it does"
)]

use std::error::Error;
use std::path::Path;

use oblivio::ArrayOptions;
use oblivio::oblivio_core::store::{
    Blanks, BucketStore, Capabilities, Fill, Frames, Piece, Span, TreeId, TreeShape,
};
use oblivio::oblivio_core::{StoreError, StoreErrorKind};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

/// Tree, level and index of a bucket, and its bytes.
const BUCKETS: TableDefinition<'_, (u16, u8, u64), &[u8]> = TableDefinition::new("buckets");

struct RedbStore {
    database: Database,
    shapes: Vec<TreeShape>,
    /// The pieces of one trip, one after the other, and where each lies.
    buffer: Vec<u8>,
    spans: Vec<Span>,
}

impl RedbStore {
    fn create(path: &Path, shapes: Vec<TreeShape>) -> Result<Self, redb::Error> {
        let database = Database::create(path)?;
        let begun = database.begin_write()?;
        begun.open_table(BUCKETS)?;
        begun.commit()?;
        Ok(Self { database, shapes, buffer: Vec::new(), spans: Vec::new() })
    }

    /// Makes room for the pieces. One that is in no tree is refused before anything is done.
    fn place(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        self.spans.clear();
        let mut start = 0;
        for piece in pieces {
            let (_, bytes) = self.part(piece)?;
            self.spans.push(Span { start, bytes: bytes as usize });
            start += bytes as usize;
        }
        self.buffer.clear();
        self.buffer.resize(start, 0);
        Ok(())
    }

    /// Where a piece lies in its bucket, and how long it is.
    fn part(&self, piece: &Piece) -> Result<(u64, u64), StoreError> {
        let shape = self.shape(piece.tree).and_then(|shape| shape.level_of(piece.bucket));
        let within = shape.and_then(|level| level.part(piece.part));
        within.ok_or_else(|| StoreError::new(StoreErrorKind::Refused, "there is no such piece"))
    }

    fn bucket_bytes(&self, piece: &Piece) -> usize {
        let level = self.shape(piece.tree).and_then(|shape| shape.level_of(piece.bucket));
        level.map_or(0, |level| level.bucket_bytes as usize)
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
            let (from, bytes) = self.part(piece)?;
            // A bucket that was never written reads as zeros.
            if let Some(bucket) = buckets.get(key(piece)).map_err(failed)? {
                let part = &bucket.value()[from as usize..(from + bytes) as usize];
                let start = self.spans[i].start;
                self.buffer[start..start + part.len()].copy_from_slice(part);
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
                let (from, bytes) = self.part(piece)?;
                let before = buckets.get(key(piece)).map_err(failed)?;
                let mut bucket = before.map_or_else(
                    || vec![0; self.bucket_bytes(piece)],
                    |bucket| bucket.value().to_vec(),
                );
                let start = self.spans[i].start;
                bucket[from as usize..(from + bytes) as usize]
                    .copy_from_slice(&self.buffer[start..start + bytes as usize]);
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
        .on(|shape| Ok(RedbStore::create(&path, vec![shape]).map_err(failed)?))?;
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
    let mut number = 0;
    oblivio_testkit::conformance::check_store(|shapes| {
        number += 1;
        RedbStore::create(&folder.path().join(number.to_string()), shapes.to_vec()).unwrap()
    });
}
