//! Volumes at a fixed rate.

use serde_json::Value;

use super::test_dir::{TestDir, VOLUME};

/// Number of attempts, one of which must succeed: a busy machine skips ticks in some attempts.
const ATTEMPTS: usize = 6;

#[test]
fn a_copy_at_a_fixed_rate_is_a_copy() {
    let test_dir = TestDir::with_data(1);
    test_dir.succeeds(&format!(
        "serve nbd {VOLUME} --rate 2000/s --burst 16 --run \
         'nbdcopy --flush data \"$uri\" && nbdcopy \"$uri\" back && cmp data back'"
    ));
    test_dir.assert_nothing_is_lost();
}

#[test]
fn a_copy_without_early_write_backs_is_a_copy() {
    let test_dir = TestDir::with_data(1);
    test_dir.succeeds(&format!(
        "serve nbd {VOLUME} --rate 4000/s --no-early-write-backs --run \
         'nbdcopy data \"$uri\" && nbdcopy \"$uri\" back && cmp data back'"
    ));
    test_dir.assert_nothing_is_lost();
}

/// Storage sees the same rates of trips and bytes whether the disk is busy or idle. A difference of
/// 15 % is allowed, because processes start and end earlier or later.
#[test]
fn recordings_of_equal_time_are_alike() {
    let test_dir = TestDir::with_data(1);
    let serve = |view: &str, command: &str| {
        test_dir.succeeds(&format!(
            "serve nbd {VOLUME} --period 10 --burst 8 --cache 256K --record-view {view} \
             --run '{command}'"
        ));
        let shown: Value = test_dir.json(&format!("view show {view} --json"));
        shown
    };
    let busy_command = "(nbdcopy --flush data \"$uri\"; nbdcopy \"$uri\" back) & sleep 3; wait";
    let difference = |attempt| {
        let idle = serve(&format!("idle-{attempt}"), "sleep 3");
        let busy = serve(&format!("busy-{attempt}"), busy_command);
        let parts = ["read", "write"].map(|it| ["trips", "bytes"].map(|field| (it, field)));
        parts.into_iter().flatten().find_map(|(operation, field)| {
            let per_second = |shown: &Value| {
                shown[operation][field].as_f64().unwrap()
                    / shown["rates"]["seconds"].as_f64().unwrap()
            };
            let [idle, busy] = [&idle, &busy].map(per_second);
            let is_alike = (idle / busy - 1.0).abs() < 0.15;
            (!is_alike).then(|| format!("{operation} {field}: {idle}, {busy}"))
        })
    };
    // A busy machine leaves out ticks in some attempts; a leak shows in all of them.
    let differences: Vec<_> = (0..ATTEMPTS).map_while(difference).collect();
    assert!(differences.len() < ATTEMPTS, "{differences:?}");
}

#[test]
fn a_rate_that_cannot_be_kept_is_refused() {
    let test_dir = TestDir::with_volume(1);
    for (options, code, advice) in [
        ("--rate 2000", 2, "2000/s"),
        ("--rate 0/s", 2, "above 0"),
        ("--period 0", 2, "such as 8"),
        ("--rate 10/s --period 5", 2, "cannot be used with"),
        ("--rate 10/s --burst 0", 2, "1..=4096"),
        ("--rate 4000000/s --burst 1", 3, "make more accesses at a tick"),
        ("--burst 4", 3, "--rate or --period"),
        ("--no-early-write-backs", 3, "--rate or --period"),
    ] {
        test_dir.fails_with(&format!("serve nbd {VOLUME} {options} --run true"), code, advice);
    }
}
