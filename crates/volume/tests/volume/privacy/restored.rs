//! Both sides of a volume are restored from a backup. Storage may have seen the accesses after it.

use oblivio_core::{Access, Op};
use oblivio_testkit::crash::Survival;
use oblivio_testkit::crash::small_volume::{BLOCK_BYTES, BLOCKS, SmallScheme, SmallVolume};
use oblivio_testkit::statistics::longest_complement;

use crate::support::bench::{Bench, get, places};

/// Evictions after a restored backup have the same names as the first time, so they must be sealed
/// under another key. The volume was closed when it was copied: no recovery is needed.
#[test]
fn what_comes_after_a_restored_backup_is_sealed_under_another_key() {
    for scheme in SmallScheme::each() {
        let sealed_twice = check_what_comes_after_a_restored_backup(scheme);
        assert!(sealed_twice > 40, "{sealed_twice} of {scheme:?}");
    }
}

/// Checks that accesses after a restored backup are sealed under another key. Returns the number of
/// places checked.
fn check_what_comes_after_a_restored_backup(scheme: SmallScheme) -> u32 {
    let mut bench = Bench::new(SmallVolume { scheme, ..SmallVolume::default() }, 1);
    let backup = bench.world.snapshot();
    let places: Vec<_> = places(&bench.setup).collect();
    let before: Vec<_> = places.iter().map(|piece| get(&bench.world, *piece)).collect();
    let [first, second] = [0; 2].map(|_| {
        bench.world.restore_store(&backup);
        bench.world.restore_dir(&backup);
        let (mut volume, _) = bench.open().unwrap();
        for address in 0..BLOCKS {
            let data = [1; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
        bench.world.crash(&mut bench.coins, Survival::All);
        places.iter().map(|piece| get(&bench.world, *piece)).collect::<Vec<_>>()
    });
    let mut sealed_twice = 0;
    for (i, piece) in places.iter().enumerate() {
        let (first, second) = (&first[i], &second[i]);
        if *first == before[i] || *second == before[i] {
            continue;
        }
        let chunks = first.chunks_exact(16).zip(second.chunks_exact(16));
        assert!(!chunks.clone().any(|(a, b)| a == b), "a mask was used twice in {piece:?}");
        sealed_twice += 1;
    }
    sealed_twice
}

/// State files need a key of their own after a restored backup: they are sealed with a key stream,
/// and the first session after each restoration writes a file of the same name.
#[test]
fn state_files_after_a_restored_backup_have_keys_of_their_own() {
    let mut bench = Bench::new(SmallVolume::default(), 1);
    let backup = bench.world.snapshot();
    let [one, other] = [0x00, 0xFF].map(|fill| {
        bench.world.restore_store(&backup);
        bench.world.restore_dir(&backup);
        let (mut volume, _) = bench.open().unwrap();
        for address in 0..4 {
            let data = [fill; BLOCK_BYTES as usize];
            volume.access(&mut [Access { address, op: Op::Write(&data) }]).unwrap();
        }
        drop(volume);
        bench.world.snapshot().files().clone()
    });
    let is_state = |name: &String| name.starts_with("state-");
    let name = one.keys().find(|name| is_state(name)).unwrap();
    let longest = longest_complement(&one[name], &other[name]);
    assert!(one[name].len() > 2000 && longest < 8, "the XOR of {longest} bytes of plaintext");
}
