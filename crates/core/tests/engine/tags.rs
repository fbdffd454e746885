//! Tests of trees whose blocks have no bytes, for simulations. The blocks must be in the same
//! places as in trees whose blocks have bytes.

use std::cell::RefCell;
use std::rc::Rc;

use oblivio_core::geometry::Leaf;
use oblivio_core::scheme::{BlockMove, Location, Origin, PathScheme, RawScheme, Scheme, TagTree};
use oblivio_core::seal::NoSecrecy;
use oblivio_core::store::Piece;
use oblivio_core::view::{Event, Recorder};
use oblivio_core::{
    ErrorKind, FlatOram, Front, Geometry, MemoryStore, Op, Oram, RawConfig, Sealer, TreeConfig,
    TreeTopKind,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const CAPACITY: u64 = 300;

type PieceLog = Rc<RefCell<Vec<Option<Piece>>>>;

fn tree(block_bytes: usize) -> TreeConfig {
    let geometry = Geometry::profile(&[4, 4, 3, 3, 3, 4, 5, 5]).unwrap();
    TreeConfig::new(CAPACITY, block_bytes, geometry, 100)
        .with_tree_top_levels(2)
        .with_tree_top(TreeTopKind::SetAssociative { ways: 2 })
}

/// Serves a workload. Returns the pieces requested from storage, and the final number of blocks on
/// each level.
fn run<B: Scheme>(
    tree: &TreeConfig,
    scheme: impl FnOnce(Sealer, Recorder<MemoryStore, Box<dyn FnMut(&Event, &[u8])>>) -> B,
) -> (Vec<Option<Piece>>, Vec<u64>) {
    let seen = PieceLog::default();
    let log = Rc::clone(&seen);
    let sink = move |event: &Event, _: &[u8]| log.borrow_mut().push(event.piece);
    let memory = MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
    let store = Recorder::new(memory, Box::new(sink) as Box<dyn FnMut(&Event, &[u8])>);
    let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let scheme = scheme(sealer, store);
    let mut oram = FlatOram::new(scheme, StdRng::seed_from_u64(5)).unwrap();
    let mut coins = StdRng::seed_from_u64(6);
    let mut block = vec![0; tree.block_bytes];
    for _ in 0..1000 {
        let address = coins.random_range(0..CAPACITY);
        if coins.random() {
            oram.read(address, &mut block).unwrap();
        } else {
            oram.write(address, &block).unwrap();
        }
    }
    let requested = seen.take();
    oram.check_invariants().unwrap();
    (requested, oram.blocks_on_levels().unwrap())
}

#[test]
fn path_oram_moves_tags_as_it_moves_blocks() {
    let of = |bytes| {
        let tree = tree(bytes);
        run(&tree, |sealer, store| PathScheme::new(&tree, sealer, store).unwrap())
    };
    let (pieces, levels) = of(0);
    assert_eq!((&pieces, &levels), (&of(64).0, &of(64).1));
    assert!(levels.iter().sum::<u64>() > 200, "{levels:?}");
}

#[test]
fn raw_oram_moves_tags_as_it_moves_blocks() {
    let of = |bytes| {
        let config = RawConfig::of_tree(tree(bytes), 3);
        run(&config.tree, |sealer, store| RawScheme::new(&config, sealer, store).unwrap())
    };
    let (tags, blocks) = (of(0), of(64));
    assert_eq!(tags, blocks);
    assert!(tags.1.iter().sum::<u64>() > 200);
}

#[test]
fn a_tag_is_served_like_a_block() {
    let tree = tree(0);
    let memory = MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
    let sealer = Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    let scheme = PathScheme::new(&tree, sealer, memory).unwrap();
    let mut oram = FlatOram::new(scheme, StdRng::seed_from_u64(5)).unwrap();
    oram.write(7, &[]).unwrap();
    let mut served = 0;
    let mut count = |block: &mut [u8]| served += 1 + block.len();
    oram.access(&mut [oblivio_core::Access { address: 7, op: Op::Update(&mut count) }]).unwrap();
    assert_eq!(served, 1);
    assert!(oram.read(7, &mut [0]).is_err(), "a tag has no bytes");
}

/// Populates a scheme if `full`, and makes random operations on it: accesses, hits, blocks taken
/// out and put back, background evictions. Returns a log: the results of takes and hits, the stash
/// after each operation, and the location of each block after every 100 operations.
fn work<B: Scheme + Scheme>(scheme: &mut B, full: bool) -> Vec<String> {
    let mut coins = StdRng::seed_from_u64(3);
    let leaves = scheme.config().geometry.leaves();
    let mut map: Vec<_> = (0..CAPACITY).map(|_| Leaf(coins.random_range(0..leaves))).collect();
    let mut out = vec![false; CAPACITY as usize];
    let mut seen = Vec::new();
    if full {
        scheme.populate(&mut (0..).zip(map.iter().copied())).unwrap();
    }
    for step in 0..2000 {
        let address = coins.random_range(0..CAPACITY);
        let (i, fresh) = (address as usize, Leaf(coins.random_range(0..leaves)));
        if scheme.check_ready().is_err() || step % 7 == 0 {
            scheme.evict(&mut coins).unwrap();
        } else if out[i] {
            scheme.append(address, map[i], &[]).unwrap();
            out[i] = false;
        } else if step % 5 == 0 {
            seen.push(format!("{}", scheme.take(address, map[i], &mut []).unwrap()));
            (map[i], out[i]) = (fresh, true);
        } else if step % 3 != 0 && scheme.serve_on_client(address, &mut Op::Write(&[])).unwrap() {
            seen.push(format!("hit {address}"));
        } else {
            scheme.announce(&map[i..=i]);
            scheme.access(address, map[i], fresh, &mut Op::Write(&[])).unwrap();
            map[i] = fresh;
        }
        seen.push(format!("{:?}", scheme.stash().addresses().collect::<Vec<_>>()));
        if step % 100 == 99 {
            let mut blocks = Vec::new();
            let mut note = |at, address, leaf| blocks.push((format!("{at:?}"), address, leaf));
            scheme.visit_blocks(&mut note).unwrap();
            // Each implementation visits its buckets in its own order.
            blocks.sort_by(|(at, ..), (other, ..)| at.cmp(other));
            seen.extend(blocks.iter().map(|block| format!("{block:?}")));
        }
    }
    seen
}

#[test]
fn a_tree_of_tags_behaves_like_a_store() {
    let sealer = || Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    for tree_top in [TreeTopKind::Dedicated, TreeTopKind::SetAssociative { ways: 2 }] {
        for (full, tree_top_levels) in [(false, 0), (true, 2), (true, 7)] {
            let tree = tree(0).with_tree_top(tree_top).with_tree_top_levels(tree_top_levels);
            let memory =
                MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
            let mut store = PathScheme::new(&tree, sealer(), memory).unwrap();
            let mut tags = PathScheme::of_tags(&tree).unwrap();
            let (expected, seen) = (work(&mut store, full), work(&mut tags, full));
            assert!(expected == seen, "{tree:?}");
            assert!(expected.len() > 6000);
        }
    }
}

#[test]
fn raw_oram_behaves_the_same_on_a_tree_of_tags_and_on_a_store() {
    let sealer = || Sealer::null(NoSecrecy::this_is_a_simulation_without_secrets());
    for tree_top in [TreeTopKind::Dedicated, TreeTopKind::SetAssociative { ways: 2 }] {
        for tree_top_levels in [0, 2, 7] {
            let tree = tree(0).with_tree_top(tree_top).with_tree_top_levels(tree_top_levels);
            let memory =
                MemoryStore::new(&[tree.shape().unwrap()], MemoryStore::default_layout()).unwrap();
            let config = RawConfig::of_tree(tree, 3);
            let mut store = RawScheme::new(&config, sealer(), memory).unwrap();
            let mut tags = RawScheme::of_tags(&config).unwrap();
            let (expected, seen) = (work(&mut store, false), work(&mut tags, false));
            assert!(expected == seen, "{config:?}");
            assert!(expected.len() > 6000);
        }
    }
}

#[test]
fn a_tree_of_tags_locates_blocks() {
    for tree_top in [TreeTopKind::Dedicated, TreeTopKind::SetAssociative { ways: 2 }] {
        let mut scheme: PathScheme<TagTree> =
            PathScheme::of_tags(&tree(0).with_tree_top(tree_top)).unwrap();
        work(&mut scheme, true);
        let mut blocks = Vec::new();
        scheme.visit_blocks(&mut |at, address, leaf| blocks.push((at, address, leaf))).unwrap();
        for (at, address, leaf) in &blocks {
            assert_eq!(scheme.locate(*address, *leaf), Some(*at));
        }
        let levels = |on: &dyn Fn(u8) -> bool| {
            let is = |at: &Location| matches!(at, Location::Bucket(bucket) if on(bucket.level()));
            blocks.iter().filter(|(at, ..)| is(at)).count()
        };
        assert!(levels(&|level| level < 2) > 0 && levels(&|level| level >= 2) > 150);
        let (_, address, leaf) = blocks[blocks.len() - 1];
        scheme.take(address, leaf, &mut []).unwrap();
        assert_eq!(scheme.locate(address, leaf), None);
    }
}

/// Tests that a tree of tags reports exactly one move for each block that is on the accessed path
/// before or after the access.
#[test]
fn a_tree_of_tags_reports_each_move() {
    let geometry = Geometry::profile(&[2, 2, 1, 1, 2, 3]).unwrap();
    let tree = TreeConfig::new(100, 0, geometry, 100);
    let mut scheme = PathScheme::of_tags(&tree).unwrap();
    let reported = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&reported);
    scheme.observe_moves(move |BlockMove { from, to }| log.borrow_mut().push((from, to)));
    let mut coins = StdRng::seed_from_u64(3);
    let mut map: Vec<_> = (0..100).map(|_| Leaf(coins.random_range(0..32))).collect();
    let mut kinds = [0; 4];
    for step in 0..3000 {
        let where_all_are = |scheme: &mut PathScheme<TagTree>| {
            let mut all = vec![None; 100];
            scheme.visit_blocks(&mut |at, address, _| all[address as usize] = Some(at)).unwrap();
            all
        };
        let before = where_all_are(&mut scheme);
        let address = coins.random_range(0..100);
        let (requested, fresh) = (address as usize, Leaf(coins.random_range(0..32)));
        let from = std::mem::replace(&mut map[requested], fresh);
        let is_taken = step % 5 == 0 && before[requested].is_some();
        reported.borrow_mut().clear();
        if is_taken {
            assert!(scheme.take(address, from, &mut []).unwrap());
        } else {
            scheme.access(address, from, fresh, &mut Op::Write(&[])).unwrap();
        }
        let after = where_all_are(&mut scheme);

        let on_path = |at: Option<Location>| match at {
            Some(Location::Bucket(bucket)) if bucket.is_on_path(from) => Some(bucket.level()),
            _ => None,
        };
        let expected = (0..100).filter_map(|block| {
            let (was, is) = (on_path(before[block]), on_path(after[block]));
            was.or(is)?;
            let origin = match was {
                _ if block == requested => Origin::Requested,
                Some(level) => Origin::Level(level),
                None => Origin::Stash,
            };
            Some((origin, is))
        });
        let [mut expected, mut seen] = [expected.collect::<Vec<_>>(), reported.borrow().clone()];
        expected.sort_by_key(|a| format!("{a:?}"));
        seen.sort_by_key(|a| format!("{a:?}"));
        assert_eq!(seen, expected, "{step}");
        for (from, to) in seen {
            kinds[0] += u32::from(from == Origin::Stash);
            kinds[1] += u32::from(from == Origin::Requested);
            kinds[2] += u32::from(matches!((from, to), (Origin::Level(_), None)));
            kinds[3] += u32::from(matches!((from, to), (Origin::Level(a), Some(b)) if a > b));
        }
        if is_taken {
            scheme.append(address, fresh, &[]).unwrap();
        }
        if scheme.check_ready().is_err() {
            scheme.evict(&mut coins).unwrap();
        }
    }
    assert!(kinds.iter().all(|seen| *seen > 20), "{kinds:?}");
}

#[test]
fn a_tree_of_tags_reports_each_path() {
    let mut scheme = PathScheme::of_tags(&tree(0)).unwrap();
    let reported = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&reported);
    scheme.populate(&mut (0..CAPACITY).map(|address| (address, Leaf(address % 128)))).unwrap();
    scheme.observe_paths(move |leaf| log.borrow_mut().push(leaf));
    scheme.access(5, Leaf(5), Leaf(9), &mut Op::Write(&[])).unwrap();
    scheme.take(6, Leaf(6), &mut []).unwrap();
    assert_eq!(reported.take(), [Leaf(5), Leaf(6)]);
    scheme.evict(&mut StdRng::seed_from_u64(1)).unwrap();
    assert_eq!(reported.take().len(), 1);
    assert!(!scheme.serve_on_client(7, &mut Op::Write(&[])).unwrap());
    assert_eq!(reported.take(), [], "a hit reads no path");
}

#[test]
fn a_tree_of_tags_may_have_one_bucket() {
    let tree = TreeConfig::new(3, 0, Geometry::uniform(0, 4).unwrap(), 100);
    let mut scheme = PathScheme::of_tags(&tree).unwrap();
    for address in [2, 0, 1, 2] {
        scheme.access(address, Leaf(0), Leaf(0), &mut Op::Write(&[])).unwrap();
    }
    let mut blocks = Vec::new();
    scheme.visit_blocks(&mut |_, address, _| blocks.push(address)).unwrap();
    blocks.sort_unstable();
    assert_eq!(blocks, [0, 1, 2]);
}

#[test]
fn a_tree_of_tags_refuses_bytes_and_invalid_addresses() {
    let refused = |tree: &TreeConfig| PathScheme::of_tags(tree).err().unwrap().kind();
    assert_eq!(refused(&tree(64)), ErrorKind::InvalidConfig);
    let wide = Geometry::uniform(40, 4).unwrap();
    let wide = TreeConfig::new(1 << 40, 0, wide, 100);
    assert_eq!(
        refused(&wide),
        ErrorKind::InvalidConfig,
        "an address and a leaf do not fit one slot"
    );
    let mut scheme = PathScheme::of_tags(&tree(0)).unwrap();
    let past_the_end = scheme.populate(&mut [(CAPACITY, Leaf(0))].into_iter());
    assert_eq!(past_the_end.unwrap_err().kind(), ErrorKind::InvalidRequest);
}
