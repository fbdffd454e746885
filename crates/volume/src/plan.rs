//! The parameters of a volume and their cost, computed before anything is created.

pub use oblivio_core::durable::{ArrayRequirements, Cost, Slots};
use oblivio_core::{BLOCK_BYTES_MAX, BLOCK_BYTES_MIN};

use crate::error::{VolumeError, VolumeErrorKind};
use crate::schemes;
pub use crate::state::room::StateRoom;
use crate::superblock::VolumeParams;

impl VolumeParams {
    /// The parameters of a volume that meets the requirements.
    ///
    /// # Errors
    /// [`VolumeErrorKind::InvalidConfig`] when the scheme does not exist, or has no volume that
    /// meets the requirements within the client's memory.
    pub fn plan(requirements: &ArrayRequirements) -> Result<Self, VolumeError> {
        if requirements.bytes == 0 {
            return Err(invalid("a volume has at least one byte"));
        }
        if !(BLOCK_BYTES_MIN..=BLOCK_BYTES_MAX).contains(&(requirements.block_bytes as usize)) {
            return Err(invalid(format!(
                "a block has {BLOCK_BYTES_MIN} to {BLOCK_BYTES_MAX} bytes: choose another size"
            )));
        }
        let config = schemes::named(&requirements.scheme)?.plan(requirements)?;
        Ok(Self::of(&*config))
    }

    /// The cost of a volume of these parameters.
    ///
    /// # Errors
    /// The errors of [`Self::config`].
    pub fn cost(&self) -> Result<Cost, VolumeError> {
        Ok(self.config()?.cost()?)
    }
}

fn invalid(message: impl Into<String>) -> VolumeError {
    VolumeError::new(VolumeErrorKind::InvalidConfig, message)
}

#[cfg(test)]
mod tests {
    use oblivio_core::durable::Fact;
    use oblivio_core::durable::FactValue;
    use oblivio_core::durable::RangePolicy;

    use super::*;
    use crate::schemes::requirements;

    fn fact(params: &VolumeParams, name: &str) -> u64 {
        let value = params.config().unwrap().facts().into_iter().find_map(|fact| match fact {
            Fact::Value(its, FactValue::Number(number)) if its == name => Some(number),
            _ => None,
        });
        value.unwrap()
    }

    #[test]
    fn a_gibibyte_is_planned_as_tiny_oram_would() {
        let params = VolumeParams::plan(&requirements(1 << 30)).unwrap();
        assert_eq!(params.blocks, 1 << 18);
        assert_eq!((fact(&params, "levels"), fact(&params, "tree_top_levels")), (18, 12));
        let cost = params.cost().unwrap();
        // Six levels in storage, five slots of a block, and a head.
        let path = 6.0 * (5.0 * 4096.0 + 5.0 * 6.0 + 56.0);
        assert!((cost.written_bytes_per_access - path / 5.0).abs() < 100.0, "{cost:?}");
        assert!((cost.read_bytes_per_access - path * 1.2).abs() < 500.0, "{cost:?}");
        assert_eq!((cost.position_map_bytes, cost.accesses_per_checkpoint), (1 << 20, 20_480));
    }

    #[test]
    fn a_small_disk_does_not_live_on_the_client() {
        for bytes in [1 << 20, 16 << 20, 100 << 20] {
            let cost = VolumeParams::plan(&requirements(bytes)).unwrap().cost().unwrap();
            let in_stash = (64 + 100) * 4096;
            assert!(cost.blocks_on_client_bytes <= bytes / 2 + in_stash, "{bytes}: {cost:?}");
        }
    }

    /// With the position map in the tree, the client would have memory for more tree top levels,
    /// but every request would make two accesses. The plan must keep the map on the client.
    #[test]
    fn a_plan_counts_the_accesses_that_a_position_map_takes() {
        let requirements =
            ArrayRequirements { client_bytes_max: 64 << 20, ..requirements(32 << 30) };
        let params = VolumeParams::plan(&requirements).unwrap();
        assert_eq!(params.cost().unwrap().position_map_depth, 0);
        assert_eq!(fact(&params, "tree_top_levels"), 11);
    }

    #[test]
    fn every_size_has_a_plan_and_impossible_ones_do_not() {
        for bytes in [1, 4096, 4097, 1 << 20, (1 << 40) + 1, 1 << 50] {
            let params = VolumeParams::plan(&requirements(bytes)).unwrap();
            assert!(params.blocks * 4096 >= bytes && params.cost().unwrap().tree_bytes >= bytes);
        }
        for requirements in [
            requirements(0),
            requirements(u64::MAX),
            ArrayRequirements { block_bytes: 0, ..requirements(1) },
            ArrayRequirements { block_bytes: 15, ..requirements(1) },
            ArrayRequirements { block_bytes: (1 << 20) + 1, ..requirements(1) },
            ArrayRequirements { client_bytes_max: 0, ..requirements(1) },
            // There is memory for the table of taken slots, but for no tree top.
            ArrayRequirements { client_bytes_max: 30 << 20, ..requirements(1 << 51) },
            ArrayRequirements { evict_period: Some(0), ..requirements(1) },
            ArrayRequirements { slots: Some(Slots::Same(0)), ..requirements(1) },
            ArrayRequirements::new(1, "nothing like it"),
        ] {
            let error = VolumeParams::plan(&requirements).unwrap_err();
            assert_eq!(error.kind(), VolumeErrorKind::InvalidConfig, "{requirements:?}");
        }
        assert!(VolumeParams::plan(&requirements(1 << 51)).is_ok());
    }

    #[test]
    fn a_scheme_takes_what_it_has_and_refuses_the_rest_with_what_would_work() {
        let scan = |bytes| ArrayRequirements::new(bytes, "scan");
        let ranges = |sizes: &[u64]| ArrayRequirements {
            range_bytes: Some(sizes.to_vec()),
            ..ArrayRequirements::new(1 << 21, "range")
        };
        assert!(VolumeParams::plan(&ranges(&[4096, 1 << 16, 1 << 20])).is_ok());
        let fixed = |sizes: &[u64], size| ArrayRequirements {
            range_policy: Some(RangePolicy::Fixed(size)),
            ..ranges(sizes)
        };
        // The disk consists of whole ranges.
        let larger = ArrayRequirements { bytes: (2 << 20) + 1, ..fixed(&[4096, 1 << 20], 1 << 20) };
        assert_eq!(VolumeParams::plan(&larger).unwrap().capacity_bytes(), 3 << 20);
        let of_policy = ArrayRequirements { range_bytes: None, ..fixed(&[], 1 << 16) };
        assert!(VolumeParams::plan(&of_policy).is_ok());
        assert!(VolumeParams::plan(&scan(16 << 20)).is_ok());
        for (requirements, advice) in [
            (scan((16 << 20) + 1), "choose another scheme"),
            (ArrayRequirements { slots: Some(Slots::Same(5)), ..scan(1 << 20) }, "leave it out"),
            (ArrayRequirements { evict_period: Some(5), ..scan(1 << 20) }, "leave it out"),
            (ArrayRequirements { stash_blocks_max: Some(64), ..scan(1 << 20) }, "leave it out"),
            (ArrayRequirements { tree_top_bytes_max: Some(1), ..scan(1 << 20) }, "leave it out"),
            (ArrayRequirements { tree_top_ways: Some(0), ..scan(1 << 20) }, "leave it out"),
            (ArrayRequirements { client_bytes_max: 10, ..scan(1 << 20) }, "allow more"),
            (ArrayRequirements { client_bytes_max: 10, ..requirements(1 << 20) }, "allow more"),
            (
                ArrayRequirements {
                    client_bytes_max: 10,
                    ..ArrayRequirements::new(1 << 20, "s3oram")
                },
                "allow more",
            ),
            (ArrayRequirements { range_bytes: Some(vec![4096]), ..scan(1 << 20) }, "leave it out"),
            (
                ArrayRequirements { range_bytes: Some(vec![4096]), ..requirements(1 << 20) },
                "scheme `range`",
            ),
            (ranges(&[4096, 3 << 12]), "and so on"),
            (ranges(&[4096, 6000]), "and so on"),
            (ranges(&[4096, 64 << 20]), "up to 32 MiB"),
            (ranges(&[8192, 16384]), "the size of a block"),
            (ranges(&[8192, 4096]), "ascend"),
            (ranges(&[]), "ascend"),
            (fixed(&[4096, 1 << 16], 1 << 20), "add it"),
            (fixed(&[4096, 1 << 16], 5000), "and so on"),
            (
                ArrayRequirements {
                    range_policy: Some(RangePolicy::Classes),
                    ..requirements(1 << 20)
                },
                "scheme `range`",
            ),
            (
                ArrayRequirements { range_policy: Some(RangePolicy::Fixed(4096)), ..scan(1 << 20) },
                "leave it out",
            ),
            (ranges(&[4096, 4 << 20]), "larger than the disk"),
            (
                ArrayRequirements { client_bytes_max: 1 << 20, ..ranges(&[4096, 1 << 20]) },
                "smaller ranges",
            ),
            (
                ArrayRequirements { slots: Some(Slots::PerLevel(vec![4; 9])), ..ranges(&[4096]) },
                "profile",
            ),
            (ArrayRequirements { tree_top_ways: Some(2), ..ranges(&[4096]) }, "ways"),
            (ArrayRequirements::new(1 << 20, "skan"), "`raw`, `range`, `scan`"),
        ] {
            let error = VolumeParams::plan(&requirements).unwrap_err();
            assert_eq!(error.kind(), VolumeErrorKind::InvalidConfig, "{requirements:?}");
            assert!(error.to_string().contains(advice), "{error}");
        }
    }
}
