//! For any calls and faults, the remote store behaves like a store in memory. Apart from
//! repetitions, its requests do not depend on the faults.

use std::time::Duration;

use proptest::prelude::*;

use oblivio_store::RemoteOptions;

use crate::bench::{create_with, memory, options, steps, take};
use crate::line::Cut;
use crate::server::{Server, ServerAction};

/// The requests that the server receives for the same calls without faults.
fn frames_without_faults(
    calls: &[crate::bench::StoreCall],
    options: &RemoteOptions,
) -> Vec<Vec<u8>> {
    let server = Server::new();
    take(calls, &mut create_with(&server, options.clone()), &mut memory());
    let frames = server.world().frames.clone();
    assert!(frames == server.world().frames_once(), "requests were repeated without a fault");
    frames
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn faults_change_neither_results_nor_requests(
        seed: u64,
        count in 1usize..80,
        unflushed_bytes_max in prop::sample::select(&[0usize, 500, 1 << 20][..]),
        cuts in prop::collection::vec((1usize..3000, 1usize..3000), 0..12),
        deeds in prop::collection::btree_map(0usize..150, (0u8..6, any::<u64>()), 0..15),
    ) {
        let calls = steps(count, seed);
        // Longer than all attempts take if no link lasts long enough for progress.
        let retry_for = Duration::from_secs(60);
        let options = options()
            .with_unflushed_bytes_max(unflushed_bytes_max)
            .with_retry_for(retry_for);
        let server = Server::new();
        let mut store = create_with(&server, options.clone());
        server.plan(move |n, _| match deeds.get(&n) {
            Some((0, _)) => ServerAction::Cut,
            Some((1, _)) => ServerAction::CutAnswer,
            Some((2, _)) => ServerAction::Late,
            Some((_, mask)) => ServerAction::Restart(*mask),
            None => ServerAction::Serve,
        });
        let cuts = cuts.into_iter().map(|(to_server, to_client)| Cut { to_server, to_client });
        server.world().cuts = cuts.collect();
        let mut memory = memory();
        take(&calls, &mut store, &mut memory);
        let frames = server.world().frames_once();
        prop_assert!(frames == frames_without_faults(&calls, &options));
    }
}
