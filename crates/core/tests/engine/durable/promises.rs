//! Tests of the guarantees that every durable scheme gives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use oblivio_core::durable::{EraStart, PositionUse, Save, Want};
use oblivio_core::view::Operation;
use oblivio_core::{ErrorKind, MemoryStore, Op};
use oblivio_testkit::{Call, Faulty, whole_buckets};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::{BLOCK_BYTES, configs, key, plan, sections, store};

#[test]
fn the_blocks_of_a_plan_are_those_that_were_wanted() {
    for config in configs() {
        let (trees, store) = store(&*config);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
        plan(&mut *array, 7).unwrap();
        let mut wanted = vec![Want::Block(7), Want::Dummy, Want::Block(7)];
        let mut blocks = vec![Some(7), None, Some(7)];
        // Positions have addresses, too, but are not blocks.
        let last = [config.blocks() - 1];
        let missing = array.missing_positions(PositionUse::Access(&last)).unwrap();
        if let Some(position) = missing.first() {
            let twice = array.plan(&[Want::Position(*position); 2], &[], &mut coins);
            assert_eq!(twice.unwrap_err().kind(), ErrorKind::InvalidRequest, "{config:?}");
            wanted.push(Want::Position(*position));
            blocks.push(None);
        }
        let plan = array.plan(&wanted, &[], &mut coins).unwrap();
        assert_eq!(array.blocks_of(&plan).unwrap(), blocks, "{config:?}");
    }
}

/// Tests that plans can be drawn while earlier plans are not yet carried out, so that a volume can
/// commit plans while storage reads. Arrays with positions in the tree must refuse this.
#[test]
fn plans_start_where_those_before_them_end() {
    for config in configs() {
        let (trees, store) = store(&*config);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
        let first = plan(&mut *array, 7).unwrap();
        let wanted = [Want::Block(7), Want::Block(8), Want::Dummy, Want::Block(7)];
        if array.facts().position_levels > 0 {
            let refused = array.plan(&wanted, &[&first], &mut coins).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidRequest, "{config:?}");
            continue;
        }
        let second = array.plan(&wanted, &[&first], &mut coins).unwrap();
        let third = array.plan(&wanted[..2], &[&first, &second], &mut coins).unwrap();
        let [one, two, three] = [1, 2, 3].map(|fill| [fill; BLOCK_BYTES]);
        array.announce(&first).unwrap();
        array.announce(&second).unwrap();
        array.carry_out(&first, &mut [Op::Write(&one)]).unwrap();
        let mut read = [0; BLOCK_BYTES];
        let ops = &mut [Op::Read(&mut read), Op::Write(&two), Op::Write(&[]), Op::Write(&three)];
        array.carry_out(&second, ops).unwrap();
        let mut last = [[0; BLOCK_BYTES]; 2];
        let [last_7, last_8] = &mut last;
        array.carry_out(&third, &mut [Op::Read(last_7), Op::Read(last_8)]).unwrap();
        assert_eq!((read, last), (one, [three, two]), "{config:?}");
    }
}

/// Tests that a plan is refused, and nothing changes, if it was carried out before or if the data
/// of a write has a wrong length. A copy decoded from the log is refused, too, except by the
/// trivial ORAM.
#[test]
fn plans_out_of_turn_are_refused_before_anything_is_touched() {
    for config in configs() {
        let (trees, store) = store(&*config);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
        let first = plan(&mut *array, 7).unwrap();
        array.carry_out(&first, &mut [Op::Write(&[1; BLOCK_BYTES])]).unwrap();
        let before = sections(&*array);
        let refused = array.carry_out(&first, &mut [Op::Write(&[2; BLOCK_BYTES])]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidRequest, "{config:?}");
        // The block has moved, so the plan no longer fits. Only the trivial ORAM moves no block.
        let decoded = array.decode_plan(first.encoded()).unwrap();
        if config.scheme() != "scan" {
            let refused = array.carry_out(&decoded, &mut [Op::Write(&[2; BLOCK_BYTES])]);
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidRequest, "{config:?}");
        }
        let third = plan(&mut *array, 7).unwrap();
        let short = array.carry_out(&third, &mut [Op::Write(&[3])]).unwrap_err();
        assert_eq!(short.kind(), ErrorKind::InvalidRequest, "{config:?}");
        assert!(sections(&*array) == before, "{config:?}");
        let mut read = [0; BLOCK_BYTES];
        array.carry_out(&third, &mut [Op::Read(&mut read)]).unwrap();
        assert_eq!(read, [1; BLOCK_BYTES], "{config:?}");
    }
}

#[test]
fn more_accesses_than_there_is_room_for_are_refused_before_anything_is_touched() {
    for config in configs() {
        let (trees, store) = store(&*config);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
        while array.headroom().unwrap().accesses > 1 {
            let plan = array.plan(&[Want::Dummy], &[], &mut coins).unwrap();
            array.carry_out(&plan, &mut [Op::Write(&[])]).unwrap();
        }
        let before = sections(&*array);
        for accesses in [2, 3] {
            let plan = array.plan(&vec![Want::Dummy; accesses], &[], &mut coins).unwrap();
            let mut ops: Vec<_> = (0..accesses).map(|_| Op::Write(&[])).collect();
            let refused = array.carry_out(&plan, &mut ops).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidRequest, "{config:?}");
        }
        assert!(sections(&*array) == before, "{config:?}");
        array.mark_durable();
        assert!(array.headroom().unwrap().accesses > 1, "{config:?}");
    }
}

/// Tests that a state saved with padding, which hides its length, restores the same array.
#[test]
fn a_padded_state_brings_back_what_a_whole_one_does() {
    for config in configs() {
        let (trees, memory) = store(&*config);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(memory), &mut coins).unwrap();
        for step in 0..200 {
            let plan = plan(&mut *array, step * 7 % config.blocks()).unwrap();
            array.carry_out(&plan, &mut [Op::Write(&[step as u8; BLOCK_BYTES])]).unwrap();
            array.mark_durable();
        }
        let mut padded = Vec::new();
        array.save(Save::WholePadded, &mut |section| padded.push(section.to_vec()));
        let before = sections(&*array);
        let mut restore = config.restore().unwrap();
        restore.begin_state().unwrap();
        padded.iter().for_each(|section| restore.section(section).unwrap());
        let mut restored = restore.finish(key(), &trees, array.into_store()).unwrap();
        padded.iter().for_each(|section| restored.restore_client_block(section).unwrap());
        assert!(sections(&*restored) == before, "{config:?}");
        restored.check(&mut |_| ()).unwrap();
    }
}

/// Tests that no saved state exceeds the size that the configuration states. The states are as
/// large as possible: each write is in an era of its own, as if the array were reopened for each
/// write.
#[test]
fn a_state_is_never_larger_than_it_says() {
    for config in configs() {
        let (trees, store) = store(&*config);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
        let bytes_max = config.state_size().unwrap().whole;
        let bytes_max: u64 = bytes_max.iter().map(|it| it.sections * it.bytes).sum();
        for step in 0..1000 {
            array.begin_era(EraStart::Opening, &mut coins);
            let plan = plan(&mut *array, step % config.blocks()).unwrap();
            array.carry_out(&plan, &mut [Op::Write(&[1; BLOCK_BYTES])]).unwrap();
            array.begin_era(EraStart::Opening, &mut coins);
            let saved: usize = sections(&*array).iter().map(Vec::len).sum();
            assert!(
                saved as u64 <= bytes_max,
                "{saved} of {bytes_max} bytes after {step}: {config:?}"
            );
            array.mark_durable();
        }
    }
}

/// Tests that durable schemes request only whole buckets, so that volumes work on every store.
#[test]
fn only_whole_buckets_are_requested() {
    for config in configs() {
        let (trees, memory) = store(&*config);
        let store = Box::new(whole_buckets(memory));
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, store, &mut coins).unwrap();
        for step in 0..100 {
            let plan = plan(&mut *array, step * 7 % config.blocks()).unwrap();
            array.announce(&plan).unwrap();
            array.carry_out(&plan, &mut [Op::Write(&[step as u8; BLOCK_BYTES])]).unwrap();
            array.mark_durable();
        }
        array.check(&mut |_| ()).unwrap();
        array.salvage(&mut |_, _| (), &mut |_| panic!("{config:?}"), &mut |_| ()).unwrap();
    }
}

#[test]
fn an_answer_of_another_length_is_damage_to_a_rescue_and_tampering_to_an_access() {
    for config in configs() {
        let (trees, store) = store(&*config);
        let is_faulty = Arc::new(AtomicBool::new(false));
        let adds_pieces = is_faulty.clone();
        let rule = move |store: &mut MemoryStore, call: &mut Call<'_>| {
            if call.operation == Operation::Read && adds_pieces.load(Ordering::Relaxed) {
                call.pieces.push(call.pieces[0]);
            }
            call.forward(store)
        };
        let store = Faulty::new(store, rule);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
        for address in 0..9 {
            let plan = plan(&mut *array, address).unwrap();
            array.carry_out(&plan, &mut [Op::Write(&[1; BLOCK_BYTES])]).unwrap();
            array.mark_durable();
        }
        is_faulty.store(true, Ordering::Relaxed);
        let mut damaged = 0;
        let salvaged = array.salvage(&mut |_, _| (), &mut |_| damaged += 1, &mut |_| ());
        assert!(salvaged.is_ok() && damaged > 1, "{damaged} of {config:?}");
        let plan = array.plan(&[Want::Dummy], &[], &mut coins).unwrap();
        let error = array.carry_out(&plan, &mut [Op::Write(&[])]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{config:?}");
    }
}
