//! Tests of states with invalid sections. Real sections are sealed, so only a bug of this program
//! could write such a section. Each must be refused, or be read as a possible state, and must never
//! cause a panic.

use oblivio_core::durable::{DurableConfig, EncodedPlan, EraStart, Save};
use oblivio_core::{Error, Op};
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::{BLOCK_BYTES, configs, key, plan, sections, store};

/// The sections of an array after some accesses, and the plan of its next access.
fn in_use(config: &dyn DurableConfig) -> (Vec<Vec<u8>>, EncodedPlan) {
    let (trees, store) = store(config);
    let mut coins = StdRng::seed_from_u64(1);
    let mut array = config.create(key(), &trees, Box::new(store), &mut coins).unwrap();
    for address in 0..20 {
        let plan = plan(&mut *array, address).unwrap();
        array.carry_out(&plan, &mut [Op::Write(&[1; BLOCK_BYTES])]).unwrap();
        array.begin_era(EraStart::Checkpoint, &mut coins);
        array.mark_durable();
    }
    let sections = sections(&*array);
    (sections, plan(&mut *array, 3).unwrap().encoded().clone())
}

/// Restores a state and calls every operation on it. The array's storage was never written.
fn use_state(
    config: &dyn DurableConfig,
    sections: &[Vec<u8>],
    plan: &EncodedPlan,
) -> Result<(), Error> {
    let mut restore = config.restore()?;
    restore.begin_state()?;
    sections.iter().try_for_each(|section| restore.section(section))?;
    restore.replay(plan, &[true])?;
    let (trees, store) = store(config);
    let mut array = restore.finish(key(), &trees, Box::new(store))?;
    sections.iter().try_for_each(|section| array.restore_client_block(section))?;
    let room = array.headroom()?;
    let _ = array.probe_rollback(room.accesses, 0);
    let plan = array.decode_plan(plan)?;
    let _ = array.blocks_of(&plan);
    array.save(Save::Whole, &mut |_| ());
    for start in [EraStart::Checkpoint, EraStart::Opening] {
        array.begin_era(start, &mut StdRng::seed_from_u64(2));
    }
    array.mark_durable();
    array.carry_out(&plan, &mut [Op::Write(&[2; BLOCK_BYTES])])
}

/// Variations of `bytes`: shortened, extended by a zero byte, or with up to eight bytes from one of
/// the first 80 positions on replaced by another number.
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
            let changed = EncodedPlan::new(plan.accesses(), changed[..].into());
            refused += u64::from(use_state(&*config, &sections, &changed).is_err());
        }
        for accesses in [0, 2, u32::MAX as usize] {
            let changed = EncodedPlan::new(accesses, plan.section().into());
            assert!(use_state(&*config, &sections, &changed).is_err());
        }
        assert!(refused > 20, "{refused} of {config:?}");
    }
}
