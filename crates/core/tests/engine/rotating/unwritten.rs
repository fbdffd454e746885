//! Tests of checks of trees in which most buckets were never written.

use std::collections::BTreeSet;

use super::*;

/// Makes trees of many forms, makes up to 119 writes to each, and checks each. Returns the trees
/// with the pieces that the checks read.
fn checked_trees() -> impl Iterator<Item = (RotatingConfig, Rotating, Vec<Piece>)> {
    (0..60).map(|seed| {
        let mut coins = StdRng::seed_from_u64(seed);
        let config = match seed % 3 {
            0 => RotatingConfig::flat(any_config(&mut coins)),
            _ => any_recursive_config(&mut coins),
        };
        let mut oram = make_any(&config, seed);
        let block = vec![7; config.raw.tree.block_bytes];
        for _ in 0..coins.random_range(0..120) {
            oram.write(coins.random_range(0..config.data_blocks()), &block).unwrap();
            oram.backend_mut().mark_durable();
        }
        let seen = oram.backend_mut().store_mut().sink().len();
        let mut progress = Vec::new();
        oram.check(&mut |done| progress.push(done)).unwrap();
        let written = oram.backend().buckets_written();
        assert!(progress.into_iter().eq(1..=written), "seed {seed}: each bucket is counted once");
        let read = &oram.backend_mut().store_mut().sink()[seen..];
        let read = read.iter().filter_map(|event| event.piece).collect();
        (config, oram, read)
    })
}

/// The trees of slots, of heads, and of pages, which record the slots that are taken.
fn trees(config: &RotatingConfig) -> [TreeId; 3] {
    [0, 1, 2].map(|more| TreeId(config.raw.tree.tree.0 + more))
}

#[test]
fn a_check_reads_exactly_what_was_written() {
    let (mut unwritten, mut early_pages) = (0, 0);
    for (config, mut oram, read) in checked_trees() {
        let [slots, heads, pages] = trees(&config);
        let scheme = oram.backend();
        let written = scheme.buckets_written();
        unwritten += scheme.buckets_in_storage() - written;
        let of = |tree| read.iter().filter(move |piece| piece.tree == tree);
        assert_eq!([slots, heads].map(|tree| of(tree).count() as u64), [written; 2]);

        let events = oram.backend_mut().store_mut().sink();
        let writes = events.iter().filter(|event| event.operation == Operation::Write);
        let writes: BTreeSet<_> = writes.filter_map(|event| event.piece).map(key).collect();
        assert!(read.iter().all(|piece| writes.contains(&key(*piece))), "never written");

        // A page has two places.
        let page = |(_, level, index): (u16, u8, u64)| (level, index / 2);
        let swept: BTreeSet<_> =
            writes.iter().copied().filter(|it| it.0 == pages.0).map(page).collect();
        let looked_at: Vec<_> = of(pages).map(|piece| page(key(*piece))).collect();
        early_pages += looked_at.len();
        assert_eq!(looked_at.len(), swept.len(), "each page once");
        assert!(looked_at.into_iter().collect::<BTreeSet<_>>() == swept);
    }
    assert!(unwritten > 1000 && early_pages > 100, "{unwritten}, {early_pages}");
}

/// The tree of a piece, and the level and index of its bucket.
fn key(piece: Piece) -> (u16, u8, u64) {
    (piece.tree.0, piece.bucket.level(), piece.bucket.index())
}

/// Tests that a check detects written buckets that storage presents as never written. The client
/// knows which buckets were written from its own counts.
#[test]
fn storage_cannot_pass_off_written_buckets_as_unwritten() {
    let mut hidden = [0; 3];
    for (config, mut oram, read) in
        checked_trees().filter(|(config, ..)| config.recursion.is_some())
    {
        let saved = save(&mut oram);
        let mut store = take_store(&mut oram, &config);
        for piece in read.iter().step_by(7) {
            let mut oram = resume(&config, &saved, store, 1);
            let was = bytes_of(&mut oram, piece.tree, piece.bucket).to_vec();
            bytes_of(&mut oram, piece.tree, piece.bucket).fill(0);
            let error = oram.check(&mut |_| {}).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            bytes_of(&mut oram, piece.tree, piece.bucket).copy_from_slice(&was);
            store = take_store(&mut oram, &config);
            hidden[usize::from(piece.tree.0 - config.raw.tree.tree.0)] += 1;
        }
    }
    assert!(hidden.iter().all(|count| *count > 20), "slots, heads and pages: {hidden:?}");
}
