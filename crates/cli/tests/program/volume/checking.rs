//! Checks of a large volume that is almost empty, and checks with a limited rate.

use std::time::Instant;

use super::test_dir::{TestDir, VOLUME};

/// The client knows that nothing was written, so the check reads no buckets, even of a volume of 1
/// TiB.
#[test]
fn a_new_volume_of_a_tib_is_checked_at_once() {
    let test_dir = TestDir::new();
    test_dir.succeeds(&format!("create {VOLUME} --size 1T"));
    let report = test_dir.json(&format!("check {VOLUME} --json"));
    assert_eq!((&report["buckets_written"], &report["blocks"]), (&0.into(), &0.into()));
    assert!(report["buckets"].as_u64().unwrap() > 1 << 26, "{report}");

    // Everything written afterwards is checked.
    let write = "qemu-io --format raw --cmd \"write -P 7 3G 1M\" \"$uri\"";
    test_dir.succeeds(&format!("serve nbd {VOLUME} --run '{write}'"));
    let report = test_dir.json(&format!("check {VOLUME} --json"));
    assert_eq!(report["blocks"], 256, "{report}");
    let written = report["buckets_written"].as_u64().unwrap();
    assert!((100..1 << 20).contains(&written), "{report}");
    let text = test_dir.succeeds(&format!("check {VOLUME}"));
    assert!(text.contains("were ever written") && text.contains("256 blocks hold data"), "{text}");
}

#[test]
fn the_rate_of_a_check_can_be_limited() {
    let test_dir = TestDir::with_data(4);
    #[expect(clippy::disallowed_methods, reason = "the test is about time")]
    let seconds = |options: &str| {
        let begin = Instant::now();
        let report = test_dir.json(&format!("check {VOLUME} {options} --json"));
        assert_eq!(report["blocks"], 1024, "{report}");
        begin.elapsed().as_secs_f64()
    };
    // About 20 MiB in storage.
    let slow = seconds("--rate-max 10M/s");
    assert!(slow > 1.0, "{slow}");
    for rate in ["10M", "0/s", "fast", "1X/s"] {
        test_dir.fails_with(&format!("check {VOLUME} --rate-max {rate}"), 2, "--rate-max");
    }
}
