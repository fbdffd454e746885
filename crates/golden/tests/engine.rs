//! Compares the model with the plain engine, and checks a controller that follows the model.

#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::cell::RefCell;
use std::collections::HashMap;
use std::convert::Infallible;
use std::rc::Rc;

use oblivio_core::pieces::{Part, Piece};
use oblivio_core::rand_core::{TryCryptoRng, TryRng};
use oblivio_core::scheme::{PathScheme, RawScheme, Scheme};
use oblivio_core::view::{self, Event, Recorder};
use oblivio_core::{
    ErrorKind, Geometry, Key, Leaf, MemoryStore, Op, RawConfig, Sealer, TreeConfig,
};
use oblivio_golden::expected::ResponseBeat;
use oblivio_golden::image::Image;
use oblivio_golden::{Command, Golden, Mix, Operation, Params, Problem, SchemeKind};

const COMMANDS: u64 = 400;

fn params(scheme: SchemeKind, leaf_level: u8) -> Params {
    Params {
        scheme,
        leaf_level,
        slots: 3,
        stash_blocks_max: 6,
        evict_period: 3,
        capacity: (3 * ((2 << leaf_level) - 1) / 2).max(1),
        block_bytes: 128,
        bus_bits: 512,
        subtree_levels: 2,
        seed: 11,
    }
}

fn shapes() -> Vec<Params> {
    let mut all = Vec::new();
    for scheme in [SchemeKind::Path, SchemeKind::Raw] {
        for leaf_level in 0..=6 {
            all.push(params(scheme, leaf_level));
        }
        all.push(Params { bus_bits: 1024, subtree_levels: 4, ..params(scheme, 4) });
        all.push(Params { block_bytes: 64, slots: 5, seed: 12, ..params(scheme, 5) });
        all.push(Params { block_bytes: 4096, evict_period: 1, ..params(scheme, 3) });
        all.push(Params { capacity: 1 << 20, ..params(scheme, 19) });
    }
    all
}

/// Operation, piece and bytes of each event of the engine.
type View = Rc<RefCell<Vec<(view::Operation, Piece, Vec<u8>)>>>;

/// A controller that consists of the plain engine. Computes addresses by the formula of the
/// interface document.
struct Controller {
    params: Params,
    engine: Box<dyn Scheme>,
    view: View,
    image: Image,
    leaves: HashMap<u64, u64>,
}

/// A generator that yields one fixed number.
struct Fixed(u64);

impl TryRng for Fixed {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        unimplemented!("a leaf is drawn as one word")
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Infallible> {
        unimplemented!("a leaf is drawn as one word")
    }
}

impl TryCryptoRng for Fixed {}

impl Controller {
    fn new(golden: &Golden) -> Self {
        let params = golden.params().clone();
        let geometry = Geometry::uniform(params.leaf_level, params.slots).unwrap();
        let tree =
            TreeConfig::new(params.capacity, params.block_bytes, geometry, params.stash_blocks_max);
        let store =
            MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
        let view = View::default();
        let events = Rc::clone(&view);
        let store = Recorder::new(store, move |event: &Event, bytes: &[u8]| {
            if let Some(piece) = event.piece {
                events.borrow_mut().push((event.operation, piece, bytes.to_vec()));
            }
        });
        let sealer = Sealer::aes128_of_tree_key(Key::from_bytes(*golden.tree_key()));
        let engine: Box<dyn Scheme> = match params.scheme {
            SchemeKind::Path => Box::new(PathScheme::new(&tree, sealer, store).unwrap()),
            SchemeKind::Raw => {
                let config = RawConfig::of_tree(tree, params.evict_period);
                Box::new(RawScheme::new(&config, sealer, store).unwrap())
            }
        };
        Self { engine, view, image: golden.empty_image(), leaves: HashMap::new(), params }
    }

    /// Runs `command`, and passes all signals at the ports to the model.
    fn run(&mut self, command: &Command, golden: &mut Golden) -> Result<(), Problem> {
        let Command { operation, address, old_leaf, new_leaf, data } = command;
        let (from, to) = (Leaf(*old_leaf), Leaf(*new_leaf));
        let is_found = self.leaves.contains_key(address);
        let mut block = vec![0; self.params.block_bytes];
        match operation {
            Operation::Read => {
                self.engine.access(*address, from, to, &mut Op::Read(&mut block)).unwrap();
            }
            Operation::ReadRemove => {
                let was_there = self.engine.take(*address, from, &mut block).unwrap();
                assert_eq!(was_there, is_found);
            }
            Operation::Write => {
                let mut replace = |stored: &mut [u8]| {
                    block.copy_from_slice(stored);
                    stored.copy_from_slice(data);
                };
                self.engine.access(*address, from, to, &mut Op::Update(&mut replace)).unwrap();
            }
            Operation::Append => self.engine.append(*address, to, data).unwrap(),
        }
        let adds = matches!(operation, Operation::Write | Operation::Append);
        if *operation == Operation::ReadRemove {
            self.leaves.remove(address);
        } else if is_found || adds {
            self.leaves.insert(*address, *new_leaf);
        }
        self.finish(&block, is_found, golden)
    }

    /// Evicts while the stash is over its bound, then has the model check the command.
    fn finish(&mut self, block: &[u8], is_found: bool, golden: &mut Golden) -> Result<(), Problem> {
        while let Err(error) = self.engine.check_ready() {
            assert_eq!(error.kind(), ErrorKind::StashFull);
            let leaf = match self.params.scheme {
                SchemeKind::Path => golden.next_entropy(),
                SchemeKind::Raw => u64::MAX,
            };
            self.engine.evict(&mut Fixed(leaf)).unwrap();
        }
        for (operation, piece, bytes) in self.view.take() {
            match operation {
                view::Operation::Read => self.read(piece, golden)?,
                view::Operation::Write => self.write(piece, &bytes, golden)?,
                view::Operation::Prefetch | view::Operation::Flush => (),
            }
        }
        let beats = block.chunks(self.params.beat_bytes());
        let count = beats.len();
        for (i, data) in (1..).zip(beats) {
            golden.check_response(ResponseBeat {
                data,
                is_last: i == count,
                status: 0,
                is_found,
            })?;
        }
        let number = golden.commands() - 1;
        let stash: Vec<u64> = self.engine.stash().addresses().collect();
        assert_eq!(golden.state_after(number)?.stash.len(), stash.len());
        for (index, address) in stash.into_iter().enumerate() {
            golden.check_stash(number, index, address, self.leaves[&address])?;
        }
        golden.check_is_done()
    }

    fn read(&mut self, piece: Piece, golden: &mut Golden) -> Result<(), Problem> {
        assert_eq!(piece.part, Part::Whole);
        let beat_bytes = self.params.beat_bytes();
        for address in self.addresses(piece) {
            golden.check_memory_command(false, address)?;
            let zeros = vec![0; beat_bytes];
            golden.check_read_beat(self.image.beat(address).unwrap_or(&zeros))?;
        }
        Ok(())
    }

    fn write(&mut self, piece: Piece, bytes: &[u8], golden: &mut Golden) -> Result<(), Problem> {
        let beat_bytes = self.params.beat_bytes();
        let blocks_bytes = usize::from(self.params.slots) * self.params.block_bytes;
        let (tables, blocks) = match piece.part {
            Part::Whole => bytes.split_at(bytes.len() - blocks_bytes),
            _ => (bytes, &[][..]),
        };
        let mut first = tables.to_vec();
        // The bytes of beat 0 after the tables are zeros, or have no strobe.
        let is_whole = piece.part == Part::Whole;
        first.resize(beat_bytes, if is_whole { 0 } else { 0xEE });
        let strobed = if is_whole { beat_bytes } else { tables.len() };
        let beats = [first.as_slice()].into_iter().chain(blocks.chunks(beat_bytes));
        for (i, (data, address)) in beats.zip(self.addresses(piece)).enumerate() {
            golden.check_memory_command(true, address)?;
            let strobed = if i == 0 { strobed } else { beat_bytes };
            golden.check_write_beat(data, u128::MAX >> (128 - strobed))?;
            let mut stored = match self.image.beat(address) {
                Some(beat) => beat.to_vec(),
                None => vec![0; beat_bytes],
            };
            stored[..strobed].copy_from_slice(&data[..strobed]);
            self.image.put_beat(address, &stored);
        }
        Ok(())
    }

    /// Addresses of the beats of a bucket, by the formula of the interface document.
    fn addresses(&self, piece: Piece) -> std::ops::Range<u64> {
        let (d, index) = (u64::from(piece.bucket.level()), piece.bucket.index());
        let (k, l) = (u64::from(self.params.subtree_levels), u64::from(self.params.leaf_level));
        let (g, j) = (d / k, d % k);
        let h = k.min(l + 1 - g * k);
        let roots = 1u64 << (g * k);
        let place =
            (roots - 1) + index % roots * ((1 << h) - 1) + ((1 << j) - 1) + (index >> (g * k));
        let beats = 1 + u64::from(self.params.slots) * self.params.block_beats() as u64;
        place * beats..(place + 1) * beats
    }
}

/// Runs `commands` random commands on the model and the controller.
fn run(golden: &mut Golden, controller: &mut Controller, commands: u64) {
    for _ in 0..commands {
        let command = golden.next_command().unwrap().clone();
        controller.run(&command, golden).unwrap();
    }
}

#[test]
fn random_runs_equal_the_plain_engine() {
    for params in shapes() {
        let mut golden = Golden::new(&params).unwrap();
        let mut controller = Controller::new(&golden);
        run(&mut golden, &mut controller, COMMANDS);
        golden.check_image(&controller.image).unwrap_or_else(|problem| {
            panic!("{params:?}: {problem}");
        });
    }
}

#[test]
fn a_stash_over_its_bound_is_evicted_in_the_background() {
    for scheme in [SchemeKind::Path, SchemeKind::Raw] {
        let params = Params { stash_blocks_max: 2, evict_period: 5, ..params(scheme, 5) };
        let mut golden = Golden::new(&params).unwrap();
        golden.set_mix(Mix { weights: [20, 50, 5, 25], crowding: 50 }).unwrap();
        let mut controller = Controller::new(&golden);
        run(&mut golden, &mut controller, 2000);
        assert!(golden.background_evictions() > 10, "{}", golden.background_evictions());
        let state = golden.state_after(1999).unwrap().clone();
        assert!(state.stash.len() <= 2 + state.accesses_since_eviction as usize);
        if scheme == SchemeKind::Raw {
            assert!(state.evictions > 1999 / 10);
        }
        golden.check_image(&controller.image).unwrap();
    }
}

#[test]
fn every_operation_is_drawn_on_present_and_absent_blocks() {
    let mut golden = Golden::new(&params(SchemeKind::Raw, 4)).unwrap();
    let mut controller = Controller::new(&golden);
    let mut seen = HashMap::new();
    for _ in 0..2000 {
        let was_present = golden.blocks().present();
        let command = golden.next_command().unwrap().clone();
        let is_present = was_present.iter().any(|(address, _)| *address == command.address);
        *seen.entry((command.operation as u8, is_present)).or_insert(0) += 1;
        controller.run(&command, &mut golden).unwrap();
    }
    assert_eq!(seen.len(), 7, "only absent blocks are appended: {seen:?}");
    assert!(seen.values().all(|count| *count > 20), "{seen:?}");
}

#[test]
fn removed_blocks_can_be_appended_again() {
    for scheme in [SchemeKind::Path, SchemeKind::Raw] {
        let mut golden = Golden::new(&params(scheme, 3)).unwrap();
        let mut controller = Controller::new(&golden);
        let mut step = |operation, leaf, data: Option<&[u8]>| {
            let command = golden.command(operation, 7, leaf, data).unwrap().clone();
            controller.run(&command, &mut golden).unwrap();
            golden.blocks().contents(7).map(<[u8]>::to_vec)
        };
        let (first, second) = (vec![1; 128], vec![2; 128]);
        assert_eq!(step(Operation::Append, 5, Some(&first)), Some(first.clone()));
        assert_eq!(step(Operation::Read, 2, None), Some(first));
        assert_eq!(step(Operation::ReadRemove, 0, None), None);
        assert_eq!(step(Operation::ReadRemove, 0, None), None);
        assert_eq!(step(Operation::Append, 1, Some(&second)), Some(second.clone()));
        assert_eq!(step(Operation::Write, 1, Some(&second)), Some(second));
        let problem = golden.command(Operation::Append, 7, 0, None).unwrap_err();
        assert!(matches!(problem, Problem::Misuse(_)), "{problem}");
        assert!(golden.set_leaf(7, 0).is_err());
        golden.set_leaf(8, 6).unwrap();
        let command = golden.command(Operation::Read, 8, 3, None).unwrap().clone();
        assert_eq!(command.old_leaf, 6);
        controller.run(&command, &mut golden).unwrap();
        golden.check_image(&controller.image).unwrap();
    }
}

#[test]
fn a_controller_can_begin_on_a_memory_that_the_engine_has_filled() {
    for scheme in [SchemeKind::Path, SchemeKind::Raw] {
        let params = Params { capacity: 500, ..params(scheme, 8) };
        let mut golden = Golden::new(&params).unwrap();
        assert_eq!(golden.start_counts(), (0, 0));
        golden.warm_up(1000).unwrap();
        let (operations, evictions) = golden.start_counts();
        assert!(operations >= 850, "appends read no path: {operations}");
        assert_eq!(evictions > 150, scheme == SchemeKind::Raw, "{evictions}");
        golden.check_image(&golden.image()).unwrap();

        let present = golden.blocks().present();
        assert!(present.len() > 50);
        for (address, leaf) in present {
            let command = golden.command(Operation::Read, address, leaf, None).unwrap().clone();
            assert_eq!(command.old_leaf, leaf);
        }
        golden.check_image(&golden.image()).unwrap();
    }
}

#[test]
fn differences_are_named() {
    let text = |result: Result<(), Problem>| match result.unwrap_err() {
        Problem::Mismatch(text) => text,
        Problem::Misuse(text) => panic!("{text}"),
    };
    for scheme in [SchemeKind::Path, SchemeKind::Raw] {
        let mut golden = Golden::new(&params(scheme, 3)).unwrap();
        let mut controller = Controller::new(&golden);
        run(&mut golden, &mut controller, 30);
        golden.command(Operation::Write, 3, 5, None).unwrap();
        assert!(text(golden.check_is_done()).contains("memory commands are missing"));
        let found = text(golden.check_memory_command(true, 0));
        assert!(found.contains("command 30, trip 0") && found.contains("write 0x0"), "{found}");
        let mut beat = golden.take_read_beat().unwrap();
        assert!(golden.check_read_beat(&beat).is_err(), "the next beat is another one");
        beat[9] ^= 1;
        let found = text(golden.check_write_beat(&beat, u128::MAX));
        assert!(found.contains("trip 1") && found.contains("strobe"), "{found}");
        let mut response =
            ResponseBeat { data: &[0; 64], is_last: true, status: 0, is_found: false };
        assert!(text(golden.check_response(response)).contains("last true"));
        response.is_last = false;
        response.status = 3;
        assert!(text(golden.check_response(response)).contains("status 3"));
        let found = text(golden.check_stash(30, 40, 1, 2));
        assert!(found.contains("entry 40") && found.contains("only"), "{found}");

        let mut image = controller.image.clone();
        image.put_beat(0, &[7; 64]);
        assert!(text(golden.check_image(&image)).contains("address 0x0"));
    }
}

#[test]
fn a_fresh_engine_finds_blocks_that_an_image_lacks() {
    for scheme in [SchemeKind::Path, SchemeKind::Raw] {
        let mut golden = Golden::new(&params(scheme, 3)).unwrap();
        let mut controller = Controller::new(&golden);
        run(&mut golden, &mut controller, 100);
        golden.check_image(&golden.image()).unwrap();
        let problem = golden.check_image(&golden.empty_image()).unwrap_err();
        assert!(matches!(problem, Problem::Mismatch(_)), "{problem}");
    }
}
