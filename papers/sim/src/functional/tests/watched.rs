//! Tests of the counts of found position-map blocks and of moved blocks.

use super::*;

#[test]
fn position_map_blocks_are_found_in_the_same_way_as_data() {
    for ways in [None, Some(4)] {
        let spec = OramSpec { tree_top_levels: 4, tree_top_ways: ways, ..OramSpec::paper(12) };
        let mut study = study(&spec, Initial::Placed);
        let snapshot = study.run(&[random(4000)], &[4000], &mut |_| ()).unwrap().remove(0);
        let found = &snapshot.found_position_map;
        assert_eq!(found.nowhere, 0);
        // A position-map request without a path is a hit.
        let hits = found.requests() - snapshot.paths.position_map;
        let on_client = found.stash + ways.map_or(0, |_| found.levels[..4].iter().sum::<u64>());
        assert_eq!(hits, on_client, "{snapshot:?}");
        assert!(hits > 0 || ways.is_none(), "{snapshot:?}");
        // Position-map blocks are used more often than data, so they are nearer to the root.
        let near =
            |found: &FoundCounts| found.levels[..8].iter().sum::<u64>() * 4 > found.requests();
        assert!(near(found) && !near(&snapshot.found), "{snapshot:?}");
    }
}

#[test]
fn where_blocks_go_is_counted_and_changes_nothing() {
    let spec = OramSpec::paper(9);
    let run = |watched: bool| {
        let mut study = study(&spec, Initial::Placed);
        if watched {
            study.watch_migration();
        }
        study.run(&[random(3000)], &[1000, 3000], &mut |_| ()).unwrap()
    };
    let (seen, unseen) = (run(true), run(false));
    for (seen, unseen) in seen.iter().zip(unseen) {
        assert_eq!(Snapshot { migration: None, ..seen.clone() }, unseen);
    }
    let [first, last] = [&seen[0], &seen[1]];
    let moved = last.migration.as_ref().unwrap().since(first.migration.as_ref().unwrap());
    // Blocks on a level now are the earlier ones, plus those that arrived, minus those that left.
    for level in 0..10 {
        let went: u64 = moved.from_path[level].iter().sum();
        let came = moved.pre_existing[level]
            + moved.requested[level]
            + moved.from_path.iter().map(|from| from[level]).sum::<u64>();
        let found = |snapshot: &Snapshot| {
            [&snapshot.found, &snapshot.found_position_map]
                .map(|found| found.levels.get(level).copied().unwrap_or(0))
                .iter()
                .sum::<u64>()
        };
        let asked = found(last) - found(first);
        assert_eq!(first.blocks[level] + came, last.blocks[level] + went + asked, "{level}");
    }
    let upper: u64 = moved.pre_existing[..5].iter().sum();
    assert!(upper * 2 > moved.pre_existing.iter().sum(), "near the root: {moved:?}");
}
