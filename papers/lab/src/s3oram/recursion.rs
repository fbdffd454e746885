//! The cost of section 3.3: the position map in smaller trees on the same servers.
//!
//! The paper gives no number for this cost. This module computes it for trees that are evicted
//! often, for two clients. The first is not durable, and sends each write with the request to the
//! next tree. This client is not implemented; its cost follows from the shapes of the trees. The
//! second is a volume: each message is for one tree, all servers report the contents of slots, and
//! blocks of the map are sealed.

use oblivio_core::durable::{Cost, DurableConfig};
use oblivio_shares::durable::S3OramParams;
use oblivio_shares::field::Gf256;
use oblivio_shares::map_trees::{Levels, MapShape};
use oblivio_shares::sharing::Parties;
use oblivio_shares::tree::Preset;

use super::claim::{Claim, Statement};
use super::model::{DATABASE, HOME, KIB, Model};
use super::place::{Deployment, Disk};
use super::work::{Scheme, THREE, Work, Works, shares};
use crate::LabError;
use oblivio_models::link::FRAME_BYTES;

/// The number of servers that send metadata: one more than may collude.
const METADATA_SERVERS: f64 = 2.0;

/// The trees of data and position map, for a database of `database_bytes` in blocks of
/// `block_bytes`.
fn levels(database_bytes: u64, block_bytes: u32) -> Result<Levels, LabError> {
    let blocks = database_bytes / u64::from(block_bytes);
    Levels::new::<Gf256>(blocks, block_bytes as usize, Preset::LARGE, MapShape::default())
        .map_err(|error| LabError::Plan(error.to_string()))
}

/// The work of an access to each tree in turn, and of an eviction of all trees at once. An access
/// first reads the metadata of its slots.
fn works(levels: &Levels) -> Works {
    let mut all = Works {
        access: Work::default(),
        eviction: Work::default(),
        accesses: Preset::LARGE.accesses.into(),
    };
    for level in levels.iter() {
        let Works { access, eviction, .. } =
            shares(THREE, level.tree, level.slot_elements() as f64);
        let path_bytes = (level.tree.path_slots() * level.metadata_elements) as f64;
        let metadata = Work {
            down_bytes: METADATA_SERVERS * path_bytes + FRAME_BYTES,
            up_bytes: FRAME_BYTES,
            disk_read_bytes: path_bytes,
            // One byte per slot: its mark, which says whether its block was taken to the root.
            disk_written_bytes: level.tree.path_slots() as f64,
            recovered: path_bytes,
            ..Work::default()
        };
        all.access = all.access.plus(access, 1.0).plus(metadata, 1.0);
        // An eviction reads two paths: the evicted one, and the one to the sibling leaf.
        all.eviction = all.eviction.plus(eviction, 1.0).plus(metadata, 2.0);
    }
    // The metadata of a tree are requested with the write to the previous tree, so the last write
    // needs one more round trip. All trees are evicted in the same round trips.
    all.access.trips += 1.0;
    all.eviction.trips /= levels.count() as f64;
    all
}

/// The mean costs of an access to a volume, as `oblivio plan` computes them: first with the map on
/// the client, and then with the map in trees.
fn costs_of_a_volume(database_bytes: u64, block_bytes: u32) -> Result<[Cost; 2], LabError> {
    let blocks = database_bytes / u64::from(block_bytes);
    let parties = Parties::new(THREE.0, THREE.1);
    let parties = parties.map_err(|error| LabError::Plan(error.to_string()))?;
    let on_client = S3OramParams::new(blocks, block_bytes, parties, Preset::LARGE)?;
    let in_trees = on_client.clone().with_map_in_trees(MapShape::default())?;
    Ok([on_client.cost()?, in_trees.cost()?])
}

/// The work of an access to a volume with its share of an eviction. The work of servers and disks
/// is that of the client that is not durable. Bytes and round trips of the client are those of a
/// volume.
fn of_a_volume(database_bytes: u64, block_bytes: u32) -> Result<Work, LabError> {
    let [before, cost] = costs_of_a_volume(database_bytes, block_bytes)?;
    let without = Scheme::Large.works(database_bytes, block_bytes)?.mean();
    let not_durable = works(&levels(database_bytes, block_bytes)?).mean();
    Ok(Work {
        trips: without.trips + cost.trips_per_access - before.trips_per_access,
        down_bytes: without.down_bytes + cost.read_bytes_per_access - before.read_bytes_per_access,
        up_bytes: without.up_bytes + cost.written_bytes_per_access
            - before.written_bytes_per_access,
        ..not_durable
    })
}

/// The claims about recursion.
pub(super) fn claims(model: &Model) -> Result<Vec<Claim>, LabError> {
    let claim = |what: &str, unit: &str, says, ours, remark: String| Claim {
        place: "3.3, recursion".to_owned(),
        what: what.to_owned(),
        unit: unit.to_owned(),
        says,
        ours: Some(ours),
        remark,
    };
    let levels_of_16_tb = levels(16 << 40, 512 * KIB)?;
    let client_bytes = levels_of_16_tb.client_entries() * size_of::<u32>();
    let trees = levels_of_16_tb.count() - 1;
    let (with, without) = (
        works(&levels(DATABASE, 128 * KIB)?).mean(),
        Scheme::Large.works(DATABASE, 128 * KIB)?.mean(),
    );
    let volume = of_a_volume(DATABASE, 128 * KIB)?;
    let place = Deployment::paper(HOME, Disk::memory());
    let [seconds, before, of_volume] =
        [with, without, volume].map(|work| place.parts(&work, &model.machine.bytes).seconds());
    let more = |work: &Work| {
        format!(
            "{:.1} trips instead of {:.1}, {:.0} KB more up and {:.0} more down",
            work.trips,
            without.trips,
            (work.up_bytes - without.up_bytes) / 1e3,
            (work.down_bytes - without.down_bytes) / 1e3,
        )
    };
    Ok(vec![
        claim(
            "Map on the client, 16 TB in 512 KiB",
            "KiB",
            None,
            client_bytes as f64 / f64::from(KIB),
            format!(
                "The paper says O(1), for any constant. The rest of the map is in {trees} smaller \
                 trees."
            ),
        ),
        claim(
            "Not durable, Z 333 A 176, 40 GB in 128 KiB, home, in memory",
            "s",
            None,
            seconds,
            format!("{before:.2} s with the map on the client."),
        ),
        claim(
            "The same, times as long as with the map on the client",
            "times",
            Some(Statement::Above(1.0)),
            seconds / before,
            format!("\"Might significantly increase the delay\": {}.", more(&with)),
        ),
        claim(
            "A volume, the same",
            "s",
            None,
            of_volume,
            format!(
                "{}: each message is for one tree, and all servers send metadata.",
                more(&volume)
            ),
        ),
        claim(
            "The same, times as long as with the map on the client",
            "times",
            Some(Statement::Above(1.0)),
            of_volume / before,
            "A client that is not durable needs one round trip less.".to_owned(),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::model::tests::machine;
    use super::*;

    /// Compares the cost with values computed by hand, for 40 GiB in blocks of 128 KiB: a tree of
    /// 12 levels and a tree of 3 levels.
    #[test]
    fn the_cost_of_smaller_trees_matches_a_count_by_hand() {
        let of = |levels: &Levels| works(levels).mean();
        let with = of(&levels(DATABASE, 128 * KIB).unwrap());
        let without = Scheme::Large.works(DATABASE, 128 * KIB).unwrap().mean();
        // Metadata of 3 + 2 + 1 bytes in 12 · 333 slots, and of 2 + 1 + 1 bytes in 3 · 333, once
        // for each access and twice for each eviction; and the slots of both trees, with a seal
        // each.
        let [data, map] = [12.0 * 333.0 * 6.0, 3.0 * 333.0 * 4.0];
        let seal = oblivio_core::seal::BLOCK_SEAL_BYTES as f64;
        let slots = 6.0 + 1024.0 + 4.0 + seal;
        let down = 2.0 * (data + map) * (1.0 + 2.0 / 176.0) + 3.0 * slots;
        assert!((with.down_bytes - without.down_bytes - down).abs() < 10.0 * FRAME_BYTES);
        // Two of three shares are sent: a query, a slot and the 176th part of the matrices.
        let up = 2.0 * (3.0 * 333.0 + slots + 3.0 * 2.0 * 333.0 * 333.0 / 176.0);
        assert!((with.up_bytes - without.up_bytes - up).abs() < 10.0 * FRAME_BYTES);
        assert!((with.trips - without.trips - 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_map_on_the_client_only_adds_metadata() {
        let one = levels(4096 * u64::from(128 * KIB), 128 * KIB).unwrap();
        assert_eq!(one.count(), 1);
        let without = Scheme::Large.works(4096 * u64::from(128 * KIB), 128 * KIB).unwrap();
        assert!((works(&one).mean().trips - without.mean().trips - 1.0).abs() < 1e-9);
    }

    #[test]
    fn recursion_takes_longer_and_keeps_little() {
        let claims = claims(&Model::new(machine()).unwrap()).unwrap();
        let [on_client, seconds, times, of_volume, times_of_volume] = &claims[..] else {
            panic!("five claims")
        };
        assert!(on_client.ours.unwrap() < 1.0 && seconds.ours.unwrap() < 1.0);
        assert!((1.05..1.3).contains(&times.ours.unwrap()), "{times:?}");
        // One more round trip of 15 ms, and metadata from three servers instead of two.
        let longer = of_volume.ours.unwrap() - seconds.ours.unwrap();
        assert!((0.015..0.05).contains(&longer), "{longer}");
        assert!(times_of_volume.ours.unwrap() > times.ours.unwrap());
    }

    /// Compares the round trips of a volume with a count by hand: three per tree for an access, and
    /// four for an eviction of a tree, one of which requests the servers' progress. Compares the
    /// transferred bytes with `oblivio plan`.
    #[test]
    fn a_volume_takes_six_trips_for_two_trees() {
        let [before, cost] = costs_of_a_volume(DATABASE, 128 * KIB).unwrap();
        assert!((before.trips_per_access - (2.0 + 2.0 / 176.0)).abs() < 1e-9, "{before:?}");
        assert!((cost.trips_per_access - 2.0 * (3.0 + 4.0 / 176.0)).abs() < 1e-9, "{cost:?}");
        let volume = of_a_volume(DATABASE, 128 * KIB).unwrap();
        assert!((volume.trips - 6.0).abs() < 0.1, "{volume:?}");
        // Apart from message headers, the model of a volume's accesses equals `plan`.
        let down = volume.down_bytes - cost.read_bytes_per_access;
        let up = volume.up_bytes - cost.written_bytes_per_access;
        assert!(down.abs() < 10.0 * FRAME_BYTES && up.abs() < 10.0 * FRAME_BYTES, "{down} {up}");
    }
}
