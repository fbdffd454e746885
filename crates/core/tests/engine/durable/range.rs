//! Tests of range ORAM as a durable scheme: its answers with any range classes, with and without
//! crashes, its saved states, and its costs.

use oblivio_core::durable::range::RangeParams;
use oblivio_core::durable::{
    AccessPlan, Durable, DurableConfig, EncodedPlan, EraStart, RangePolicy, Save, Want,
};
use oblivio_core::view::{Event, Operation, Recorder};
use oblivio_core::{ErrorKind, MasterKey, Op};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

use super::{BLOCK_BYTES, key, range, sections, store};

/// Draws parameters that are as small as the range classes allow, so that leaves coincide and
/// buckets overflow.
fn any_params(coins: &mut StdRng) -> RangeParams {
    let classes: &[&[u8]] = &[&[0], &[0, 1], &[0, 3], &[0, 1, 2, 3, 4], &[0, 4]];
    let classes = classes.choose(coins).unwrap().to_vec();
    let evict_period = *[1, 2, 3, 5].choose(coins).unwrap();
    let leaf_level = *[4, 5].choose(coins).unwrap();
    let params = RangeParams {
        blocks: coins.random_range(20..=50),
        leaf_level,
        tree_top_levels: coins.random_range(2..=leaf_level),
        slots: *[4, 5].choose(coins).unwrap(),
        evict_period,
        classes,
        ..range(&[])
    };
    let fits = 1u64 << params.classes.last().unwrap()
        <= (u64::from(evict_period) << params.tree_top_levels) - u64::from(evict_period) + 1;
    if fits { params } else { RangeParams { tree_top_levels: 4, ..params } }
}

/// The log since a state was saved: the plans, and the data that they wrote.
type Log = Vec<(EncodedPlan, Vec<Option<Vec<u8>>>)>;

/// Carries out a plan. Entry `i` of `data` is written to block `i` of the plan; if the entry is
/// `None`, the block is read. Returns one buffer per entry: the contents if the block was read,
/// filler bytes if it was written.
fn carry_out(array: &mut dyn Durable, plan: &AccessPlan, data: &[Option<Vec<u8>>]) -> Vec<Vec<u8>> {
    let mut read = vec![vec![0xee; BLOCK_BYTES]; data.len()];
    let ops = data.iter().zip(&mut read);
    let ops = ops.map(|(data, read)| data.as_ref().map_or(Op::Read(read), |data| Op::Write(data)));
    array.carry_out(plan, &mut ops.collect::<Vec<_>>()).unwrap();
    read
}

/// Tests that a range ORAM is an array that survives crashes. Reads, writes and forgets blocks and
/// ranges at random. After a crash, the client restores its last state and replays the log, on
/// storage that has already seen every access.
#[test]
fn a_range_oram_is_an_array_that_survives() {
    for seed in 0..150 {
        let mut coins = StdRng::seed_from_u64(seed);
        let params = any_params(&mut coins);
        let (trees, memory) = store(&params);
        let mut array = params.create(key(), &trees, Box::new(memory), &mut coins).unwrap();
        let mut model = vec![vec![0; BLOCK_BYTES]; params.blocks as usize];
        let mut saved = sections(&*array);
        let mut log = Log::new();
        for step in 0..150u8 {
            let class = *params.classes.choose(&mut coins).unwrap();
            let blocks = 1u64 << class;
            let first = coins.random_range(0..params.blocks / blocks) << class;
            if array.headroom().unwrap().accesses < blocks {
                array.flush().unwrap();
                array.begin_era(EraStart::Checkpoint, &mut coins);
                saved = sections(&*array);
                array.mark_durable();
                log.clear();
            }
            assert!(!array.headroom().unwrap().must_evict, "seed {seed}: {params:?}");
            let wanted = match (class, coins.random_range(0..10)) {
                (0, 0) => Want::Dummy,
                (0, _) => Want::Block(first),
                (_, 0) => Want::DummyRange { class },
                _ => Want::Range { first, class },
            };
            let writes = *[0.0, 0.3, 1.0].choose(&mut coins).unwrap();
            let data: Vec<_> = (0..blocks)
                .map(|_| coins.random_bool(writes).then(|| vec![step; BLOCK_BYTES]))
                .collect();
            let plan = array.plan(&[wanted], &[], &mut coins).unwrap();
            let read = carry_out(&mut *array, &plan, &data);
            log.push((plan.encoded().clone(), data.clone()));
            if !matches!(wanted, Want::Dummy | Want::DummyRange { .. }) {
                for ((block, data), read) in (first as usize..).zip(data).zip(read) {
                    match data {
                        Some(data) => model[block] = data,
                        None => assert_eq!(
                            read, model[block],
                            "seed {seed}, step {step}, block {block}: {params:?}"
                        ),
                    }
                }
            }
            if coins.random_bool(0.05) {
                // A crash: the state is older than storage.
                let store = array.into_store();
                let mut restore = params.restore().unwrap();
                restore.begin_state().unwrap();
                saved.iter().for_each(|section| restore.section(section).unwrap());
                array = restore.finish(key(), &trees, store).unwrap();
                saved.iter().for_each(|section| array.restore_client_block(section).unwrap());
                array.begin_era(EraStart::Opening, &mut coins);
                for (plan, data) in &log {
                    let plan = array.decode_plan(plan).unwrap();
                    carry_out(&mut *array, &plan, data);
                }
                array.flush().unwrap();
                saved = sections(&*array);
                array.mark_durable();
                log.clear();
            }
            if log.is_empty() && coins.random_bool(0.3) {
                let start = coins.random_range(0..params.blocks);
                let end = coins.random_range(start..=params.blocks);
                array.forget(start..end).unwrap();
                model[start as usize..end as usize].fill(vec![0; BLOCK_BYTES]);
                saved = sections(&*array);
            }
        }
        let live = model.iter().filter(|block| **block != [0; BLOCK_BYTES]).count() as u64;
        let found = array
            .check(&mut |_| ())
            .unwrap_or_else(|error| panic!("seed {seed}: {error}, {params:?}"));
        assert!(found >= live, "seed {seed}: {params:?}");
    }
}

/// Tests that nothing is lost if buckets are too small. Blocks then stay on the client, and
/// evictions come early.
#[test]
fn too_small_buckets_cost_evictions_and_no_data() {
    let mut evictions = 0;
    for seed in 0..40 {
        let mut coins = StdRng::seed_from_u64(seed);
        let params = RangeParams {
            blocks: 60,
            leaf_level: 5,
            tree_top_levels: coins.random_range(2..=3),
            slots: *[2, 3].choose(&mut coins).unwrap(),
            evict_period: *[2, 5, 8].choose(&mut coins).unwrap(),
            stash_blocks_max: 1,
            ..range(&[0, 3])
        };
        let (trees, memory) = store(&params);
        let mut array = params.create(key(), &trees, Box::new(memory), &mut coins).unwrap();
        let mut model = vec![vec![0; BLOCK_BYTES]; params.blocks as usize];
        for step in 0..400u16 {
            let room = array.headroom().unwrap();
            if room.accesses < 8 || room.must_evict && room.evictions == 0 {
                array.mark_durable();
            }
            if room.must_evict {
                array.evict().unwrap();
                evictions += 1;
                if array.headroom().unwrap().must_evict && evictions < 20_000 {
                    continue;
                }
            }
            if seed < 10 {
                // Whatever is on the client, its state can be restored.
                assert_restorable(&params, &*array);
            }
            let class = *[0, 3].choose(&mut coins).unwrap();
            let first = coins.random_range(0..params.blocks >> class) << class;
            let wanted = if class == 0 { Want::Block(first) } else { Want::Range { first, class } };
            let data: Vec<_> = (0..1 << class)
                .map(|_| coins.random::<bool>().then(|| vec![step as u8; BLOCK_BYTES]))
                .collect();
            if array.headroom().unwrap().accesses < 8 {
                array.mark_durable();
            }
            let plan = array.plan(&[wanted], &[], &mut coins).unwrap();
            let read = carry_out(&mut *array, &plan, &data);
            for ((block, data), read) in (first as usize..).zip(data).zip(read) {
                match data {
                    Some(data) => model[block] = data,
                    None => assert_eq!(read, model[block], "seed {seed}, step {step}: {params:?}"),
                }
            }
        }
    }
    assert!(evictions > 0);
}

/// Checks that the state of an array can be saved and restored, over an empty store.
fn assert_restorable(params: &RangeParams, array: &dyn Durable) {
    let saved = sections(array);
    let mut restore = params.restore().unwrap();
    restore.begin_state().unwrap();
    saved.iter().for_each(|section| restore.section(section).unwrap());
    let (trees, memory) = store(params);
    let mut restored = restore.finish(key(), &trees, Box::new(memory)).unwrap();
    saved.iter().for_each(|section| restored.restore_client_block(section).unwrap());
}

/// Tests that the data that an access reads is verified, for ranges and for dummies alike.
/// Verification always fails here, because the array was restored with another key.
#[test]
fn accesses_to_ranges_and_to_none_fail_alike() {
    // The accesses below make no eviction, because that would fail as well.
    let params = RangeParams { evict_period: 20, ..range(&[0, 3]) };
    let (trees, memory) = store(&params);
    let mut coins = StdRng::seed_from_u64(1);
    let mut array = params.create(key(), &trees, Box::new(memory), &mut coins).unwrap();
    for step in 0..40 {
        let wanted = Want::Range { first: step % 7 * 8, class: 3 };
        let plan = array.plan(&[wanted], &[], &mut coins).unwrap();
        carry_out(&mut *array, &plan, &vec![Some(vec![1; BLOCK_BYTES]); 8]);
        array.mark_durable();
    }
    let saved = sections(&*array);
    let mut store = Some(array.into_store());
    for wanted in [Want::Range { first: 8, class: 3 }, Want::DummyRange { class: 3 }] {
        let mut restore = params.restore().unwrap();
        restore.begin_state().unwrap();
        saved.iter().for_each(|section| restore.section(section).unwrap());
        let other = MasterKey::from_bytes([8; 32]);
        let mut array = restore.finish(other, &trees, store.take().unwrap()).unwrap();
        saved.iter().for_each(|section| array.restore_client_block(section).unwrap());
        let plan = array.plan(&[wanted], &[], &mut coins).unwrap();
        let mut read = vec![[0; BLOCK_BYTES]; 8];
        let mut ops: Vec<_> = read.iter_mut().map(|read| Op::Read(read)).collect();
        let refused = array.carry_out(&plan, &mut ops).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Corrupt, "{wanted:?}");
        store = Some(array.into_store());
    }
}

#[test]
fn what_is_no_range_is_refused() {
    let params = range(&[0, 2]);
    let (trees, memory) = store(&params);
    let mut coins = StdRng::seed_from_u64(1);
    let mut array = params.create(key(), &trees, Box::new(memory), &mut coins).unwrap();
    let wrong = [(1, 2), (60, 2), (0, 1), (0, 3), (u64::MAX, 2), (u64::MAX - 3, 2), (58, 2)];
    for (first, class) in wrong {
        let refused = array.plan(&[Want::Range { first, class }], &[], &mut coins).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest, "{first}, {class}");
    }
    assert!(array.plan(&[Want::Range { first: 56, class: 2 }], &[], &mut coins).is_ok());
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    let sound = range(&[0, 2]);
    assert!(sound.shapes().is_ok());
    let decode = |params: &RangeParams| {
        use oblivio_core::durable::DurableScheme;
        oblivio_core::durable::range::DurableRange.decode(
            params.blocks,
            params.block_bytes,
            &params.encode(),
        )
    };
    assert!(decode(&sound).is_ok());
    let wrong = [
        (range(&[]), "the size of a block"),
        (range(&[1, 2]), "the size of a block"),
        (range(&[0, 6]), "larger than the disk"),
        (range(&[0, 5]), "evicts"),
        (range(&[0, 30]), "at most"),
        (RangeParams { evict_period: 0, ..range(&[0]) }, "accesses"),
        (RangeParams { slots: 0, ..range(&[0]) }, ""),
        (RangeParams { leaf_level: 2, ..range(&[0]) }, ""),
        (RangeParams { slots: 1, tree_top_levels: 5, ..range(&[0]) }, "do not hold"),
        (RangeParams { tree_top_levels: 6, ..range(&[0]) }, ""),
        (RangeParams { tree_top_levels: 200, ..range(&[0]) }, ""),
        (RangeParams { stash_blocks_max: 0, ..range(&[0]) }, "stash"),
        (RangeParams { policy: RangePolicy::Fixed(1), ..range(&[0, 2]) }, "add it"),
        (RangeParams { policy: RangePolicy::Fixed(253), ..range(&[0, 2]) }, "add it"),
        (
            RangeParams { blocks: 59, policy: RangePolicy::Fixed(1), ..range(&[0, 1]) },
            "multiple of 2",
        ),
        (RangeParams { blocks: 58, policy: RangePolicy::Exact, ..range(&[0, 2]) }, "multiple of 4"),
    ];
    for (params, problem) in wrong {
        let refused = decode(&params).map(drop).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidConfig, "{params:?}");
        assert!(refused.to_string().contains(problem), "{refused}: {params:?}");
    }
}

/// Tests that the length of a padded state does not depend on the number of blocks on the client:
/// see [`Save::WholePadded`].
#[test]
fn a_padded_state_has_one_length() {
    let params = range(&[0, 2, 3]);
    let lengths = [0, 1, 2].map(|what| {
        let (trees, memory) = store(&params);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = params.create(key(), &trees, Box::new(memory), &mut coins).unwrap();
        for first in (0..40).step_by(8) {
            let wanted = match what {
                0 => vec![Want::Dummy; 8],
                1 => (first..first + 8).map(Want::Block).collect(),
                _ => vec![Want::Range { first, class: 3 }],
            };
            let plan = array.plan(&wanted, &[], &mut coins).unwrap();
            carry_out(&mut *array, &plan, &vec![Some(vec![3; BLOCK_BYTES]); 8]);
            array.mark_durable();
        }
        let mut lengths = Vec::new();
        array.save(Save::WholePadded, &mut |section| lengths.push(section.len()));
        lengths.sort_unstable();
        lengths
    });
    assert_eq!(lengths[0], lengths[1]);
    assert_eq!(lengths[0], lengths[2]);
}

/// Tests that the bytes that accesses move, as counted by storage, equal the cost computed from the
/// parameters.
#[test]
fn accesses_cost_what_the_parameters_promise() {
    for class in [0u8, 3] {
        let policy = if class == 0 { RangePolicy::Classes } else { RangePolicy::Fixed(class) };
        let params = RangeParams { blocks: 64, leaf_level: 6, policy, ..range(&[0, 3]) };
        let (trees, memory) = store(&params);
        let mut coins = StdRng::seed_from_u64(1);
        let (sender, seen) = std::sync::mpsc::channel();
        let view = Recorder::new(memory, move |event: &Event, _: &[u8]| {
            sender.send((event.trip, event.operation, event.bytes)).unwrap();
        });
        let mut array = params.create(key(), &trees, Box::new(view), &mut coins).unwrap();
        // The last access ends with an eviction, so the averages are exact.
        let accesses = 30 * params.evict_period;
        for access in 0..accesses {
            let wanted = match class {
                0 => Want::Block(u64::from(access) % 64),
                _ => Want::Range { first: u64::from(access) * 8 % 64, class },
            };
            let plan = array.plan(&[wanted], &[], &mut coins).unwrap();
            carry_out(&mut *array, &plan, &vec![None; 1 << class]);
            array.mark_durable();
        }
        let seen: Vec<_> =
            seen.try_iter().filter(|(_, operation, _)| *operation != Operation::Prefetch).collect();
        let bytes_of = |wanted: Operation| {
            let bytes = seen.iter().filter(|(_, operation, _)| *operation == wanted);
            bytes.map(|(.., bytes)| bytes).sum::<u64>() as f64 / f64::from(accesses)
        };
        let mut trips: Vec<_> = seen.iter().map(|(trip, ..)| trip).collect();
        trips.dedup();
        let cost = params.cost().unwrap();
        assert_eq!(cost.blocks_per_access, 1 << class);
        let alike = |stated: f64, counted: f64| (stated / counted - 1.0).abs() < 1e-9;
        let read = bytes_of(Operation::Read);
        assert!(alike(cost.read_bytes_per_access, read), "{cost:?}, read {read}");
        let written = bytes_of(Operation::Write);
        assert!(alike(cost.written_bytes_per_access, written), "{cost:?}, written {written}");
        let trips = trips.len() as f64 / f64::from(accesses);
        assert!(alike(cost.trips_per_access, trips), "{cost:?}, {trips} trips");
    }
}
