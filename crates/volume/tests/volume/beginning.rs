//! Volumes that are created with contents.

use oblivio_core::durable::Contents;
use oblivio_core::{Access, Error, ErrorKind, Op};
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, SmallVolume};
use oblivio_volume::Volume;
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The byte that fills a block, if the block has contents.
fn fill(address: u64) -> Option<u8> {
    (!address.is_multiple_of(3)).then_some(address as u8 | 1)
}

/// Contents for all blocks before this one, and an error from there on.
struct Until(u64);

impl Contents for Until {
    fn block(&mut self, address: u64, data: &mut [u8]) -> Result<bool, Error> {
        if address >= self.0 {
            return Err(Error::new(
                ErrorKind::InvalidRequest,
                "no block has contents from here on",
            ));
        }
        assert!(data.iter().all(|byte| *byte == 0), "the buffer is not zeroed");
        let fill = fill(address);
        fill.into_iter().for_each(|fill| data.fill(fill));
        Ok(fill.is_some())
    }
}

fn block(volume: &mut Volume, address: u64) -> Vec<u8> {
    let mut data = vec![0xee; BLOCK_BYTES as usize];
    volume.access(&mut [Access { address, op: Op::Read(&mut data) }]).unwrap();
    data
}

#[test]
fn what_a_volume_of_any_scheme_holds_from_its_beginning_is_there() {
    for setup in SmallVolume::default().on_each_scheme() {
        let (world, coins) = (setup.world(), StdRng::seed_from_u64(1));
        let mut contents = Until(u64::MAX);
        let made = setup.create_with(world.store(), world.dir(), coins, Some(&mut contents));
        made.unwrap().close().unwrap();
        let coins = StdRng::seed_from_u64(2);
        let (mut volume, _) = setup.open(world.store(), world.dir(), coins).unwrap();
        for address in 0..volume.blocks() {
            let expected = fill(address).unwrap_or(0);
            assert_eq!(block(&mut volume, address), [expected; BLOCK_BYTES as usize], "{setup:?}");
        }
        let live = (0..volume.blocks()).filter_map(fill).count() as u64;
        assert_eq!(volume.check(&mut |_| ()).unwrap(), live, "{setup:?}");
    }
}

#[test]
fn a_creation_that_fails_leaves_no_volume() {
    let setup = SmallVolume::default();
    let (world, coins) = (setup.world(), StdRng::seed_from_u64(1));
    let mut contents = Until(20);
    let made = setup.create_with(world.store(), world.dir(), coins, Some(&mut contents));
    assert!(made.map(drop).unwrap_err().to_string().contains("no block has contents from here on"));
    let coins = StdRng::seed_from_u64(2);
    assert!(setup.open(world.store(), world.dir(), coins).is_err());
}
