//! A target for rescued blocks.

use std::io;

use oblivio_testkit::crash::World;
use oblivio_testkit::crash::small_volume::owner_of;
use oblivio_volume::rescue::{Damage, RescueTarget, Rescued, rescue};

/// The rescued blocks.
pub(crate) struct Target(pub(crate) Vec<Option<Vec<u8>>>);

impl RescueTarget for Target {
    fn put(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        self.0[block as usize] = Some(data.to_vec());
        Ok(())
    }

    fn clear(&mut self, block: u64) -> io::Result<()> {
        self.0[block as usize] = None;
        Ok(())
    }
}

/// Rescues a volume of `blocks` blocks.
pub(crate) fn rescue_of(world: &World, blocks: usize) -> (Target, Rescued) {
    let mut target = Target(vec![None; blocks]);
    let mut store = world.store();
    let owner = owner_of(&mut store).unwrap();
    let dir = world.dir();
    let rescued =
        rescue(store, &dir, &owner, Damage::default(), &mut target, &mut |_, _| ()).unwrap();
    (target, rescued)
}
