//! Tests that each durable scheme must pass.

mod promises;
mod range;
mod sections;

use oblivio_core::durable::range::RangeParams;
use oblivio_core::durable::rotating::{MapRecursion, RawParams};
use oblivio_core::durable::scan::ScanParams;
use oblivio_core::durable::{
    AccessPlan, Durable, DurableConfig, PositionUse, RangePolicy, Save, Slots, Want,
};
use oblivio_core::schemes::VolumeScheme;
use oblivio_core::store::TreeId;
use oblivio_core::{Error, MasterKey, MemoryStore, Op};
use rand::SeedableRng;
use rand::rngs::StdRng;

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

fn range(classes: &[u8]) -> RangeParams {
    RangeParams {
        blocks: 60,
        block_bytes: BLOCK_BYTES as u32,
        leaf_level: 5,
        tree_top_levels: 2,
        slots: 4,
        evict_period: 3,
        stash_blocks_max: 40,
        classes: classes.to_vec(),
        policy: RangePolicy::Classes,
    }
}

/// Configurations of every durable scheme that this crate implements.
fn configs() -> Vec<Box<dyn DurableConfig>> {
    let of = |scheme: &VolumeScheme| -> Vec<Box<dyn DurableConfig>> {
        let recursion = Some(MapRecursion { client_entries_max: 4, plb_blocks: 8 });
        match scheme {
            VolumeScheme::Raw => {
                vec![Box::new(raw(0, None)), Box::new(raw(2, None)), Box::new(raw(0, recursion))]
            }
            VolumeScheme::Range => vec![Box::new(range(&[0, 2, 3]))],
            VolumeScheme::Scan => {
                let block_bytes = BLOCK_BYTES as u32;
                vec![Box::new(ScanParams { blocks: 20, block_bytes, spare: 10 })]
            }
            VolumeScheme::S3Oram => Vec::new(),
        }
    };
    VolumeScheme::ALL.iter().flat_map(of).collect()
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

/// Plans an access to a block, after fetching the positions that the access needs.
fn plan(array: &mut dyn Durable, address: u64) -> Result<AccessPlan, Error> {
    let mut coins = StdRng::seed_from_u64(address);
    while let Some(position) = array.missing_positions(PositionUse::Access(&[address]))?.first() {
        let plan = array.plan(&[Want::Position(*position)], &[], &mut coins)?;
        array.carry_out(&plan, &mut [Op::Write(&[])])?;
    }
    array.plan(&[Want::Block(address)], &[], &mut coins)
}
