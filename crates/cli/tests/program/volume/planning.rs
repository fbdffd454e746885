//! The output of `plan` and `create` about a volume.

use std::fs;

use serde_json::Value;

use super::test_dir::{MIB, TestDir, VOLUME, bytes};
use crate::common::{fails_with, oblivio};

/// A disk has whole blocks. If another size was requested, the plan shows both.
#[test]
fn a_rounded_size_is_reported() {
    let test_dir = TestDir::new();
    for command_line in ["plan --size 5000", &format!("create {VOLUME} --size 5000")] {
        let text = test_dir.succeeds(command_line);
        assert!(text.contains("8.0 KiB (8192 bytes, rounded up from 5000)"), "{text}");
    }
    assert!(!test_dir.succeeds("plan --size 1P").contains("rounded"));
    assert!(test_dir.succeeds("plan --size 1P").contains("1.0 PiB (1125899906842624 bytes)"));
}

#[test]
fn less_client_memory_makes_the_tree_top_smaller() {
    let test_dir = TestDir::new();
    for memory in [20, 8, 3] {
        let plan = test_dir.json(&format!("plan --size 1G --client-memory {memory}M --json"));
        assert!(plan["client_bytes"].as_u64().unwrap() <= memory * MIB, "{memory} MiB: {plan}");
    }
    let plan = test_dir.json("plan --size 1G --client-memory 3M --json");
    assert!(plan["tree_top_levels"].as_u64().unwrap() >= 5, "as many levels as fit: {plan}");
}

#[test]
fn too_little_client_memory_is_refused_with_the_minimum() {
    let test_dir = TestDir::new();
    for requirements in
        ["--size 1G", "--size 16T", "--size 1G --block 1M", "--size 1G --tree-top-ways 4"]
    {
        let message =
            fails_with(test_dir.path(""), &format!("plan {requirements} --client-memory 100K"), 3);
        let least = message.split(" bytes").next().unwrap().rsplit(' ').next().unwrap();
        let least: u64 = least.parse().unwrap_or_else(|_| panic!("no number in {message}"));
        let plan = test_dir.json(&format!("plan {requirements} --client-memory {least} --json"));
        assert_eq!(plan["client_bytes"], least, "{requirements}");
        test_dir.fails_with(
            &format!("create {VOLUME} {requirements} --client-memory {}", least - 1),
            3,
            "allow",
        );
        assert!(!test_dir.path("disk.obl").exists());
    }
}

/// On share servers, the client needs memory for the matrices of an eviction and for the position
/// map. The error reports the minimum and both parts.
#[test]
fn the_minimum_client_memory_on_share_servers_is_reported_with_its_purpose() {
    let test_dir = TestDir::new();
    for requirements in
        ["--size 64M --block 4K --slots 74 --evict-period 16", "--size 40G", "--size 1M"]
    {
        let requirements = format!("plan --servers 3 {requirements}");
        let message =
            fails_with(test_dir.path(""), &format!("{requirements} --client-memory 1K"), 3);
        let numbers = message.split(|c: char| !c.is_ascii_digit());
        let numbers: Vec<u64> = numbers.filter_map(|it| it.parse().ok()).collect();
        let [least, matrices, map] = numbers[..] else { panic!("{message}") };
        assert_eq!(least, matrices + map, "{message}");
        let plan = test_dir.json(&format!("{requirements} --client-memory {least} --json"));
        assert_eq!(
            (&plan["client_bytes"], &plan["blocks_on_client_bytes"]),
            (&least.into(), &matrices.into()),
            "{requirements}"
        );
        test_dir.fails_with(
            &format!("{requirements} --client-memory {}", least - 1),
            3,
            "--client-memory",
        );
        let plan = test_dir.succeeds(&format!("{requirements} --client-memory {least}"));
        assert!(plan.contains("for the matrices of an eviction with a block"), "{plan}");
    }
}

#[test]
fn the_clients_directory_takes_no_more_room_than_planned() {
    let test_dir = TestDir::new();
    let plan = test_dir.json("plan --size 16M --json");
    let [closed, in_use] = ["state_bytes_closed_max", "state_bytes_in_use_max"]
        .map(|field| plan[field].as_u64().unwrap());
    assert!(closed < in_use, "{plan}");
    test_dir.succeeds(&format!("create {VOLUME} --size 16M"));
    fs::write(test_dir.path("data"), bytes(2, 16 * MIB)).unwrap();
    let room = || -> u64 {
        let files = fs::read_dir(test_dir.state()).unwrap();
        files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
    };
    for _ in 0..3 {
        test_dir.fill();
        assert!((10 * MIB..=closed).contains(&room()), "{} of {closed}", room());
    }
    for command in ["plan", "create other.obl --key-file key"] {
        let text = test_dir.succeeds(&format!("{command} --size 16M"));
        assert!(text.contains("client's directory"), "{text}");
    }
}

#[test]
fn a_plan_reports_memory_for_opening_the_cache_and_requests() {
    let text = TestDir::new().succeeds("plan --size 1T");
    for part in
        ["memory in use", "for the cache", "for requests", "passphrase", "up to 1.0 GiB more"]
    {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn creating_a_volume_with_a_passphrase_reports_the_memory_for_opening_it() {
    let test_dir = TestDir::new();
    fs::write(test_dir.path("phrase"), "correct horse battery staple").unwrap();
    let made =
        test_dir.succeeds("create p.obl --size 1M --passphrase-file phrase --unlock-millis 1");
    assert!(made.contains("64.0 MiB"), "{made}");
    assert!(test_dir.succeeds("info p.obl --passphrase-file phrase").contains("64.0 MiB"));
    let made = test_dir.succeeds(&format!("create {VOLUME} --size 1M"));
    assert!(!made.contains("passphrase"), "{made}");
}

#[test]
fn a_file_too_large_for_ext4_is_noted() {
    let test_dir = TestDir::new();
    assert!(test_dir.succeeds("plan --size 4T").contains("ext4"));
    assert!(!test_dir.succeeds("plan --size 2T").contains("ext4"));
}

#[test]
fn a_file_system_with_less_room_than_the_volume_may_need_is_reported() {
    let test_dir = TestDir::new();
    let (code, text, remarks) = oblivio(test_dir.path(""), &format!("create {VOLUME} --size 2T"));
    assert_eq!(code, 0, "{remarks}");
    assert!(remarks.contains("less than the volume may need"), "{remarks}{text}");
    let (_, _, remarks) = oblivio(test_dir.path(""), "create s.obl --key-file key --size 1M");
    assert_eq!(remarks, "");
}

#[test]
fn sizes_up_to_exabytes_have_a_unit() {
    let test_dir = TestDir::new();
    assert_eq!(test_dir.json("plan --size 1P --json")["disk_bytes"], 1u64 << 50);
    test_dir.fails_with("plan --size 1E --block 16", 3, "");
    test_dir.fails_with("plan --size 1X", 2, "K, M, G, T, P or E");
    test_dir.fails_with("plan --size 16E", 2, "2^64");
}

#[test]
fn a_size_that_is_not_a_whole_number_of_blocks_is_reported_as_made() {
    let test_dir = TestDir::new();
    let text = test_dir.succeeds(&format!("create {VOLUME} --size 1000001"));
    assert!(text.contains("1003520 bytes"), "{text}");
}

#[test]
fn an_impossible_block_size_is_refused_in_the_users_terms() {
    let test_dir = TestDir::new();
    for block in ["1", "15", "2M"] {
        let message = fails_with(test_dir.path(""), &format!("plan --size 1G --block {block}"), 3);
        assert!(message.contains("16 to 1048576 bytes"), "{message}");
        assert!(!message.contains("simulation"), "{message}");
    }
}

#[test]
fn removing_a_path_that_is_not_a_file_is_not_advised() {
    let test_dir = TestDir::new();
    for (path, what) in [("/dev/null", "a device"), (".", "a directory")] {
        let message =
            fails_with(test_dir.path(""), &format!("create {path} --key-file key --size 1M"), 3);
        assert!(message.contains(what) && !message.contains("remove"), "{message}");
    }
    fs::write(test_dir.path("disk.obl"), "").unwrap();
    test_dir.fails_with(&format!("create {VOLUME} --size 1M"), 3, "remove it first");
}

#[test]
fn a_scheme_is_chosen_by_name_and_accepts_only_its_own_options() {
    let test_dir = TestDir::new();
    let plan = test_dir.json("plan --size 1M --scheme scan --json");
    assert_eq!((&plan["scheme"], plan.get("levels")), (&"scan".into(), None), "{plan}");
    assert_eq!(test_dir.json("plan --size 1M --json")["scheme"], "raw");
    test_dir.succeeds(&format!("create {VOLUME} --size 1M --scheme scan"));
    assert_eq!(test_dir.json(&format!("info {VOLUME} --json"))["scheme"], "scan");
    assert!(test_dir.succeeds(&format!("info {VOLUME}")).contains("every access reads all blocks"));
    for (requirements, advice) in [
        ("--size 1M --scheme skan", "`raw`, `range`, `scan`"),
        ("--size 1G --scheme scan", "choose another scheme"),
        ("--size 1M --scheme scan --slots 5", "leave it out"),
        ("--size 1M --scheme scan --evict-period 5", "leave it out"),
        ("--size 1M --scheme scan --stash 64", "leave it out"),
        ("--size 1M --scheme scan --tree-top 1M", "leave it out"),
        ("--size 1M --scheme scan --tree-top-ways 0", "leave it out"),
        ("--size 1M --scheme scan --alloc-from key", "--scheme raw"),
        ("--size 1M --scheme scan --range-classes 4K", "choose another scheme"),
        ("--size 1M --range-classes 4K", "choose the scheme `range`"),
        ("--size 1M --scheme range --range-classes 8K", "the size of a block"),
        ("--size 1M --scheme range --range-classes 64K,4K", "ascend"),
        ("--size 1M --scheme range --range-classes 4K,12K", "1, 2, 4, 8"),
        ("--size 1M --scheme range --range-classes 4K,2M", "larger than the disk"),
        ("--size 1M --range-policy fixed=4K", "choose the scheme `range`"),
        ("--size 1M --scheme range --range-policy fixed=12K", "1, 2, 4, 8"),
        ("--size 1M --scheme range --range-classes 4K,64K --range-policy fixed=8K", "add it"),
        ("--size 1M --scheme range --range-policy fixed=2M", "larger than the disk"),
        ("--size 1M --range-policy exact", "choose the scheme `range`"),
        ("--size 1G --scheme range --client-memory 1M", "--client-memory"),
        ("--size 1M --scheme range --tree-top-ways 4", "leave them out"),
        ("--size 1M --scheme range --alloc-from key", "--scheme raw"),
    ] {
        test_dir.fails_with(&format!("plan {requirements}"), 3, advice);
        test_dir.fails_with(&format!("create other.obl --key-file key {requirements}"), 3, advice);
        assert!(!test_dir.path("other.obl").exists());
    }
    test_dir.fails_with("plan --size 1M --scheme scan --alloc", 3, "--scheme raw");
    let plan = test_dir.json("plan --size 8M --scheme range --range-classes 4K,64K,1M --json");
    assert_eq!(plan["range_bytes"], serde_json::json!([4096, 65_536, 1_048_576]), "{plan}");
    assert!(test_dir.succeeds("plan --size 8M --scheme range").contains("of 4 KiB, 1024 KiB"));
    let fixed = "plan --size 9000K --scheme range --range-policy fixed=64K";
    let plan = test_dir.json(&format!("{fixed} --json"));
    assert_eq!(
        (&plan["fixed_range_bytes"], &plan["disk_bytes"]),
        (&65_536.into(), &9_240_576.into())
    );
    assert_eq!(plan["blocks_per_access"], 16);
    let text = test_dir.succeeds(fixed);
    assert!(text.contains("the number of accesses, all of 64 KiB"), "{text}");
    assert!(text.contains("an access         to 64.0 KiB reads"), "{text}");
    assert!(text.contains("a range           of 64.0 KiB: an access reads"), "{text}");
    let exact = test_dir.json("plan --size 9000K --scheme range --range-policy exact --json");
    assert_eq!(
        (&exact["range_policy"], &exact["range_bytes"], &exact["disk_bytes"]),
        (
            &"exact".into(),
            &serde_json::json!([4096, 32_768, 262_144, 1_048_576]),
            &(9 << 20).into()
        )
    );
    let sizes = test_dir.succeeds("plan --sizes --scheme range");
    assert!(sizes.contains("from ") && sizes.contains("--client-memory"), "{sizes}");
    let rows = test_dir.json("plan --sizes --scheme range --json");
    assert!((1..8).contains(&rows.as_array().unwrap().len()), "{rows}");
}

#[test]
fn a_plan_compares_schemes_on_a_medium_and_shows_when_ranges_lose() {
    let test_dir = TestDir::new();
    let plan = test_dir.json("plan --size 1G --scheme range --medium hdd --json");
    let reads = plan["on_medium"]["reads"].as_array().unwrap();
    let of = |scheme: &str, bytes: u64, what: &str| {
        let mut reads = reads.iter();
        let read = reads.find(|read| read["scheme"] == scheme && read["read_bytes"] == bytes);
        read.unwrap()[what].as_f64().unwrap()
    };
    let factor = |bytes| of("raw", bytes, "seconds") / of("range", bytes, "seconds");
    assert!(factor(MIB) > 20.0 && factor(4096) < 1.0, "{plan}");
    assert!(of("raw", MIB, "seeks") / of("range", MIB, "seeks") > 40.0, "{plan}");
    let text = test_dir.succeeds("plan --size 1G --medium hdd");
    assert!(text.contains("ranges win from 1.0 MiB on"), "{text}");
    let far = test_dir.json("plan --size 64M --medium link=100,10000 --json");
    assert_eq!(far["on_medium"]["medium"], "a link (100 ms, 10000 Mbit/s)");
    test_dir.fails_with("plan --size 1G --medium tape", 2, "link=MILLISECONDS,MEGABITS");
    test_dir.fails_with("plan --size 64K --scheme scan --medium hdd", 3, "leave --medium out");
    test_dir.fails_with("plan --sizes --medium hdd", 2, "--sizes");
}

#[test]
fn a_plan_estimates_the_speed_behind_a_link() {
    let test_dir = TestDir::new();
    let plan = test_dir.json("plan --size 1G --link 80/40/20 --json");
    let on_link = &plan["on_link"];
    assert_eq!(on_link["link"]["round_trip_millis"], 20.0);
    let volumes = on_link["volumes"].as_array().unwrap();
    let of = |scheme: &str, block: u64, what: &str| {
        let mut volumes = volumes.iter();
        let is_it = |it: &&Value| it["scheme"] == scheme && it["block_bytes"] == block;
        volumes.find(is_it).unwrap()[what].as_f64().unwrap()
    };
    // A byte takes 0.1 µs down, and a read at least one round trip.
    let down = of("raw", 4096, "down_bytes_per_access");
    let up = of("raw", 4096, "up_bytes_per_access");
    let seconds = f64::max(down / 1e7, up / 5e6);
    assert!((of("raw", 4096, "reads_per_second") * seconds - 1.0).abs() < 1e-9, "{plan}");
    let read = plan["read_bytes_per_access"].as_f64().unwrap();
    assert!(down > read && down < read + 100.0, "{plan}");
    let read = of("raw", 4096, "read_seconds");
    assert!(read > 0.02 && read < 0.02 + down / 1e7, "{plan}");
    assert!(of("raw", 4096, "read_with_evictions_seconds") > read, "{plan}");
    assert!(of("range", 4096, "fill_seconds") > of("raw", 4096, "fill_seconds"), "{plan}");
    let halves = of("raw", 65536, "writes_per_second") * 2.0 / of("raw", 65536, "reads_per_second");
    assert!((halves - 1.0).abs() < 1e-9, "{plan}");
    assert!(on_link["left_out"][0].as_str().unwrap().contains("512.0 KiB"), "{plan}");

    let text = test_dir.succeeds("plan --size 1G --link home");
    let first = text.lines().find(|line| line.starts_with("on home")).unwrap();
    assert!(
        first.contains("29/5 Mbit/s") && first.contains("both directions are used at once"),
        "{first}"
    );
    assert!(text.contains("waits for the client's log, and not for the link"), "{text}");
    let large = test_dir.succeeds("plan --size 40G --link cloud --client-memory 24M");
    assert!(large.contains("all but one for the position map"), "{large}");
    test_dir.fails_with("plan --size 1G --link dsl", 2, "such as 29/5/15");
    test_dir.fails_with("plan --size 1G --link 29/0/15", 2, "0.01 to 100000 Mbit/s");
    test_dir.fails_with("plan --sizes --link home", 2, "--sizes");
}
