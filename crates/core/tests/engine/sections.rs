//! Sections that no scheme wrote. They come under a seal, so a defect of ours wrote them: it is refused, or taken for
//! a state that could be, and never breaks the client.

use oblivio_core::durable::rotating::{MapRecursion, RawParams};
use oblivio_core::durable::scan::ScanParams;
use oblivio_core::durable::{Durable, DurableConfig, EraStart, Plan, Save, Slots, Want};
use oblivio_core::store::TreeId;
use oblivio_core::{Error, MasterKey, MemoryStore, Op};
use rand::SeedableRng;
use rand::rngs::StdRng;
use zeroize::Zeroizing;

const BLOCK_BYTES: usize = 64;

fn raw(tree_top_ways: u16, recursion: Option<MapRecursion>) -> RawParams {
    RawParams {
        blocks: 60,
        block_bytes: BLOCK_BYTES as u32,
        leaf_level: 6,
        slots: Slots::Same(4),
        evict_period: 3,
        stash_blocks_max: 40,
        tree_top_levels: 2,
        tree_top_ways,
        recursion,
    }
}

fn configs() -> [Box<dyn DurableConfig>; 4] {
    let recursion = Some(MapRecursion { client_entries_max: 4, plb_blocks: 8 });
    [
        Box::new(raw(0, None)),
        Box::new(raw(2, None)),
        Box::new(raw(0, recursion)),
        Box::new(ScanParams { blocks: 20, block_bytes: BLOCK_BYTES as u32, spare: 10 }),
    ]
}

fn key() -> MasterKey {
    MasterKey::from_bytes([7; 32])
}

fn store(config: &dyn DurableConfig) -> (Vec<TreeId>, MemoryStore) {
    let shapes = config.shapes().unwrap();
    let trees = (0..shapes.len() as u16).map(TreeId).collect();
    (trees, MemoryStore::new(&shapes, MemoryStore::default_layout()).unwrap())
}

fn sections(array: &dyn Durable) -> Vec<Vec<u8>> {
    let mut sections = Vec::new();
    array.save(Save::Whole, &mut |section| sections.push(section.to_vec()));
    sections
}

/// Draws an access to a block, and fetches the positions that it needs before.
fn plan(array: &mut dyn Durable, address: u64) -> Result<Plan, Error> {
    let mut coins = StdRng::seed_from_u64(address);
    while let Some(position) = array.needs(&[address])?.first() {
        let plan = array.plan(&[Want::Position(*position)], &mut coins)?;
        array.carry_out(&plan, &mut [Op::Write(&[])])?;
    }
    array.plan(&[Want::Block(address)], &mut coins)
}

/// The sections of an array that is in use, and the plan of its next access.
fn in_use(config: &dyn DurableConfig) -> (Vec<Vec<u8>>, Plan) {
    let (trees, store) = store(config);
    let mut coins = StdRng::seed_from_u64(1);
    let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
    for address in 0..20 {
        let plan = plan(&mut *array, address).unwrap();
        array.carry_out(&plan, &mut [Op::Write(&[1; BLOCK_BYTES])]).unwrap();
        array.begin_era(EraStart::Checkpoint, &mut coins);
        array.settle();
    }
    let sections = sections(&*array);
    (sections, plan(&mut *array, 3).unwrap())
}

/// Everything that is done with a state that came back. Its storage was never written.
fn use_state(config: &dyn DurableConfig, sections: &[Vec<u8>], plan: &Plan) -> Result<(), Error> {
    let mut restore = config.restore()?;
    restore.begin_state()?;
    sections.iter().try_for_each(|section| restore.section(section))?;
    restore.carried_out(plan, &[true])?;
    let (trees, store) = store(config);
    let mut array = restore.finish(key(), &trees, Box::new(store))?;
    sections.iter().try_for_each(|section| array.bring_back(section))?;
    let room = array.room()?;
    let _ = array.sight(room.accesses, 0);
    let _ = array.blocks_of(plan);
    array.save(Save::Whole, &mut |_| ());
    array.begin_era(EraStart::Opening, &mut StdRng::seed_from_u64(2));
    array.settle();
    array.carry_out(plan, &mut [Op::Write(&[2; BLOCK_BYTES])])
}

/// The bytes with something else in every place.
fn variations(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    const NUMBERS: [u64; 7] = [0, 1, 63, 1 << 32, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    let shorter = (0..bytes.len()).map(|length| bytes[..length].to_vec());
    let longer = [[bytes, &[0]].concat()];
    let other = (0..bytes.len().min(80)).flat_map(move |at| {
        NUMBERS.into_iter().map(move |number| {
            let end = bytes.len().min(at + 8);
            let mut other = bytes.to_vec();
            other[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
            other
        })
    });
    shorter.chain(longer).chain(other)
}

#[test]
fn the_blocks_of_a_plan_are_those_that_were_wanted() {
    for config in configs() {
        let (trees, store) = store(&*config);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
        plan(&mut *array, 7).unwrap();
        let mut wanted = vec![Want::Block(7), Want::Nothing, Want::Block(7)];
        let mut blocks = vec![Some(7), None, Some(7)];
        // Positions have addresses, too, and are no blocks.
        if let Some(position) = array.needs(&[config.blocks() - 1]).unwrap().first() {
            wanted.push(Want::Position(*position));
            blocks.push(None);
        }
        let plan = array.plan(&wanted, &mut coins).unwrap();
        assert_eq!(array.blocks_of(&plan).unwrap(), blocks, "{config:?}");
    }
}

#[test]
fn no_section_breaks_the_client_whatever_it_says() {
    for config in configs() {
        let (sections, plan) = in_use(&*config);
        let mut refused = 0;
        for (i, section) in sections.iter().enumerate() {
            for changed in variations(section) {
                let mut sections = sections.clone();
                sections[i] = changed;
                refused += u64::from(use_state(&*config, &sections, &plan).is_err());
            }
        }
        assert!(refused > 100, "{refused} of {config:?}");
    }
}

#[test]
fn no_plan_breaks_the_client_whatever_it_says() {
    for config in configs() {
        let (sections, plan) = in_use(&*config);
        let mut refused = 0;
        for changed in variations(plan.section()) {
            let changed = Plan::new(plan.accesses(), Zeroizing::new(changed));
            refused += u64::from(use_state(&*config, &sections, &changed).is_err());
        }
        for accesses in [0, 2, u32::MAX as usize] {
            let changed = Plan::new(accesses, Zeroizing::new(plan.section().to_vec()));
            assert!(use_state(&*config, &sections, &changed).is_err());
        }
        assert!(refused > 20, "{refused} of {config:?}");
    }
}

/// Of the sections of a state, as large as they can be: an era for each write, as if every one were in an opening of
/// its own.
#[test]
fn a_state_is_never_larger_than_it_says() {
    for config in configs() {
        let (trees, store) = store(&*config);
        let mut coins = StdRng::seed_from_u64(1);
        let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
        let said = config.state_size().unwrap().whole;
        let said: u64 = said.iter().map(|it| it.sections * it.bytes).sum();
        for step in 0..1000 {
            array.begin_era(EraStart::Opening, &mut coins);
            let plan = plan(&mut *array, step % config.blocks()).unwrap();
            array.carry_out(&plan, &mut [Op::Write(&[1; BLOCK_BYTES])]).unwrap();
            array.begin_era(EraStart::Opening, &mut coins);
            let saved: usize = sections(&*array).iter().map(Vec::len).sum();
            assert!(saved as u64 <= said, "{saved} of {said} bytes after {step}: {config:?}");
            array.settle();
        }
    }
}
