//! How to see what storage sees.
//!
//! A [`Recorder`](crate::view::Recorder) wraps any store. It sits below the seal, so it *cannot*
//! see a secret: it records what an adversary sees.
//!
//! ```
//! use oblivio_core::store::Part;
//! use oblivio_core::view::{Event, Operation, Recorder};
//! use oblivio_core::{Key, MemoryStore, Oram, PathOram, Sealer, TreeConfig};
//! use rand::{SeedableRng, rngs::StdRng};
//!
//! let mut coins = StdRng::seed_from_u64(1);
//! let config = TreeConfig::path(8, 64)?;
//! let store = MemoryStore::new(&[config.shape()?], MemoryStore::default_layout())?;
//! // Neither durable nor authenticated: see "Limitations" on the first page of this crate.
//! let sealer = Sealer::aes128(Key::draw(&mut coins), config.tree);
//! let recorder = Recorder::new(store, Vec::<Event>::new());
//! let mut oram = PathOram::path(&config, sealer, recorder, coins)?;
//!
//! oram.write(3, &[42; 64])?;
//! let events = oram.store_mut().sink();
//! // Storage sees one path of four buckets read and written back, and nothing else.
//! assert_eq!(events.len(), 8);
//! assert!(events[..4].iter().all(|event| event.operation == Operation::Read));
//! assert!(events[4..].iter().all(|event| event.operation == Operation::Write));
//! assert!(events.iter().all(|event| event.piece.unwrap().part == Part::Whole));
//! # Ok::<(), oblivio_core::Error>(())
//! ```
