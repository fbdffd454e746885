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

#[test]
fn a_plan_states_requests_and_money_of_an_object_store() {
    let test_dir = TestDir::new();
    let plan = test_dir.json("plan --size 1G --store s3 --block 4K --json");
    let on_store = &plan["on_store"];
    let planned = &on_store["volumes"][0];
    let of = |row: &Value, what: &str| {
        row[what].as_f64().unwrap_or_else(|| panic!("no {what} in {row}"))
    };
    // Six levels: a GET for each, and a tenth of a GET for each fifth access.
    let near = |ours: f64, theirs: f64| assert!((ours / theirs - 1.0).abs() < 0.01, "{ours}");
    near(of(planned, "gets_per_access"), 6.12);
    near(of(planned, "puts_per_access"), 0.024);
    near(of(planned, "down_bytes_per_access"), plan["read_bytes_per_access"].as_f64().unwrap());
    near(of(planned, "up_bytes_per_access"), plan["written_bytes_per_access"].as_f64().unwrap());
    near(of(planned, "lists_per_access"), 2.0 / 20_480.0);
    near(of(planned, "objects_max"), 5652.0);
    assert_eq!((&planned["trips_per_read"], &planned["levels"]), (&1.0.into(), &6.into()));
    let money = &planned["money"];
    near(of(money, "requests_per_1000_accesses"), 6.12 * 0.0004 + 0.024 * 0.005);
    near(of(money, "requests_per_gib_read"), 262.144 * (6.12 * 0.0004 + 0.024 * 0.005));
    near(of(money, "egress_per_1000_accesses"), 144.6 * 1024.0 * 1000.0 / 1e9 * 0.09);
    near(of(money, "storage_per_month"), 5.413 * 0.023);
    near(of(planned, "accesses_per_second"), 128.0 / (6.12 * (0.030 + 24e3 / 60e6)));
    assert_eq!(on_store["is_egress_charged"], false);
    near(of(on_store, "server_requests_per_access"), 1.4);
    let blocks: Vec<_> = on_store["volumes"].as_array().unwrap().iter().collect();
    let blocks: Vec<_> = blocks.iter().map(|row| of(row, "block_bytes") as u64).collect();
    assert_eq!(blocks, [4096, 16 << 10, 64 << 10, 256 << 10]);

    let text = test_dir.succeeds("plan --size 1G --store s3 --block 4K");
    for part in [
        "on s3",
        "an access makes 6.11 GETs and 0.0240 PUTs",
        "4.0 PUTs and 2 LISTs",
        "1 for a read",
        "0.0026 $ per 1,000 accesses and 0.67 $ per GiB read",
        "0.12 $ a month for storage",
        "S3 Standard in us-east-1, 28 November 2026",
        "needs 1.4 requests per access where this store needs 6.13",
        "100 accesses/s all month cost 67",
        "egress would cost 5.17 times as much as requests",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    assert!(!text.contains("--block 4K"), "{text}");
}

#[test]
fn a_plan_chooses_blocks_that_suit_an_object_store() {
    let test_dir = TestDir::new();
    let block = |options: &str| {
        let plan = test_dir.json(&format!("plan {options} --json"));
        plan["block_bytes"].as_u64().unwrap() >> 10
    };
    for (options, kib) in [
        ("--size 64G --store s3", 64),
        ("--size 64G --store gs --link home", 16),
        ("--size 64G --store az --block 4K", 4),
        ("--size 16G --store redis", 4),
        ("--size 17G --store folder", 16),
        ("--size 64G --store file", 4),
        ("--size 64G --store server", 4),
    ] {
        assert_eq!(block(options), kib, "{options}");
    }
    let text = test_dir.succeeds("plan --size 64G --store s3");
    assert!(text.contains("create the volume with --block 64K"), "{text}");
    let small = test_dir.succeeds("plan --size 64G --store s3 --block 4K");
    assert!(small.contains("times as many GETs per GiB read as blocks of 64.0 KiB"), "{small}");
    let fits = test_dir.succeeds("plan --size 16G --store s3 --block 4K");
    assert!(!fits.contains("times as many GETs"), "{fits}");
    // A position map in the tree costs a second round trip.
    let large = test_dir.succeeds("plan --size 1T --store s3");
    assert!(large.contains("2 for a read, one after the other"), "{large}");
    assert!(large.contains("with --client-memory 96M, the position map fits"), "{large}");
    assert!(!large.contains("ext4"), "{large}");
    let flat = test_dir.json("plan --size 1T --store s3 --client-memory 96M --json");
    assert_eq!(flat["on_store"]["volumes"][0]["accesses_per_block"], 1.0);
}

#[test]
fn a_near_file_has_as_many_levels_as_fit() {
    let test_dir = TestDir::new();
    let planned = |options: &str| {
        let plan = test_dir.json(&format!("plan --size 1G --block 4K --store s3 {options} --json"));
        plan["on_store"]["volumes"][0].clone()
    };
    let (far, half, none) = (planned(""), planned("--near 1G"), planned("--near 100M"));
    assert_eq!((&half["near_levels"], &none["near_levels"]), (&3.into(), &0.into()));
    assert!(half["near_bytes"].as_f64().unwrap() < f64::from(1 << 30), "{half}");
    let gets = |row: &Value| row["gets_per_access"].as_f64().unwrap();
    assert!((gets(&half) / gets(&far) - 0.5).abs() < 0.01, "{half}");
    assert_eq!(half["puts_per_access"], far["puts_per_access"]);
    assert_eq!(none["gets_per_access"], far["gets_per_access"]);
    let near = |options: &str| {
        test_dir.succeeds(&format!("plan --size 1G --block 4K --store s3 --near {options}"))
    };
    let text = near("1G");
    assert!(text.contains("3 of 6 levels in 803.4 MiB: 3.07 GETs instead of 6.11"), "{text}");
    assert!(text.contains("0.0013 $ instead of 0.0026 $"), "{text}");
    let text = near("100M");
    assert!(text.contains("none: the highest of 6 levels needs 160.7 MiB"), "{text}");
    let all = near("10G");
    assert!(all.contains("0 for a read") && all.contains("0 GETs instead of"), "{all}");
}

#[test]
fn egress_is_charged_to_a_client_behind_a_link() {
    let test_dir = TestDir::new();
    let over = |link: &str| {
        let plan =
            test_dir.json(&format!("plan --size 1G --block 4K --store s3 --link {link} --json"));
        assert_eq!(plan.get("on_link"), None);
        plan["on_store"].clone()
    };
    let slow = over("8/8/20");
    assert_eq!(
        (&slow["is_egress_charged"], &slow["latency_seconds"]),
        (&true.into(), &0.03.into())
    );
    let planned = &slow["volumes"][0];
    let of = |what: &str| planned[what].as_f64().unwrap();
    // A byte takes a microsecond.
    assert!((of("accesses_per_second") * of("down_bytes_per_access") / 1e6 - 1.0).abs() < 1e-9);
    assert!((of("read_seconds") - 0.05 - of("down_bytes_per_access") / 1.2e6).abs() < 0.002);
    let text = test_dir.succeeds("plan --size 1G --store s3 --link home");
    assert!(text.contains("egress costs") && text.contains("run the client in the"), "{text}");
    let latency = test_dir.json("plan --size 1G --store redis --latency 2 --json");
    let row = &latency["on_store"]["volumes"][0];
    assert!(row["accesses_per_second"].as_f64().unwrap() > 1000.0, "{row}");
}

#[test]
fn stores_without_prices_show_no_money() {
    let test_dir = TestDir::new();
    let text = test_dir.succeeds("plan --size 20G --store redis");
    assert!(!text.contains(" $ per"), "{text}");
    assert!(text.contains("--latency") && text.contains("cluster memory"), "{text}");
    let plan = test_dir.json("plan --size 20G --store folder --json");
    let on_store = &plan["on_store"];
    assert_eq!(on_store["prices"], Value::Null);
    assert_eq!(on_store["volumes"][0].get("money"), None);
    assert!(test_dir.succeeds("plan --size 1G --store gs").contains("prices are those of S3"));
    let large = test_dir.succeeds("plan --size 64G --store redis");
    assert!(large.contains("for disks above some 50 GiB"), "{large}");
    for (options, code, advice) in [
        ("--store file --near 1G", 2, "--near needs a store over objects"),
        ("--store server --prices p.toml", 2, "--prices needs a store over objects"),
        ("--store file --latency 5", 2, "--latency needs a store over objects"),
        ("--near 1G", 2, "--store"),
        ("--store s3 --servers 3", 2, "--servers"),
        ("--store s3 --medium hdd", 2, "--medium"),
        ("--store tape", 2, "possible values: s3, gs, az, redis, folder, file, server"),
        ("--store s3 --block 4K --scheme s3oram", 3, "leave --store out"),
    ] {
        test_dir.fails_with(&format!("plan --size 1G {options}"), code, advice);
    }
}

#[test]
fn prices_come_from_a_file_and_invalid_files_are_refused() {
    let test_dir = TestDir::new();
    let help = test_dir.succeeds("plan --help");
    let fields = ["put", "get", "list"].map(|request| format!("{request}_per_1000"));
    let fields = [&fields[..], &["storage_per_gib_month".into(), "egress_per_gb".into()]].concat();
    let file = |price: &str| {
        let prices = fields.iter().map(|field| format!("{field} = {price}\n"));
        format!("about = \"a test\"\n{}", prices.collect::<String>())
    };
    assert!(fields.iter().all(|field| help.contains(&format!("{field} = 0."))), "{help}");
    let prices = |text: &str| fs::write(test_dir.path("prices.toml"), text).unwrap();
    let command = "plan --size 1G --block 4K --store redis --prices prices.toml";
    prices(&file("1000.0"));
    let plan = test_dir.json(&format!("{command} --json"));
    let planned = &plan["on_store"]["volumes"][0];
    let of = |what: &str| planned[what].as_f64().unwrap();
    let requests = of("gets_per_access") + of("puts_per_access");
    let money = planned["money"]["requests_per_1000_accesses"].as_f64().unwrap();
    assert!((money / requests / 1000.0 - 1.0).abs() < 0.01, "{planned}");
    assert!(test_dir.succeeds(command).contains("prices            a test: 1000 $ per 1,000 PUTs"));
    for (text, advice) in [
        (file("0.1").replace("list_per_1000 = 0.1\n", ""), "missing field `list_per_1000`"),
        (
            file("0.1").replace("egress_per_gb = 0.1", "egress_per_gb = -0.1"),
            "egress_per_gb is -0.1",
        ),
        (file("0.1") + "delete_per_1000 = 0.0\n", "line 7: unknown field `delete_per_1000`"),
        (file("nan"), "put_per_1000 is NaN"),
        (
            file("0.1").replace("get_per_1000 = 0.1", "get_per_1000 = \"free\""),
            "line 3: invalid type: string",
        ),
        ("{}".into(), "line 1: "),
    ] {
        prices(&text);
        test_dir.fails_with(command, 3, advice);
        test_dir.fails_with(command, 3, "price file prices.toml: ");
        test_dir.fails_with(command, 3, "`oblivio plan --help` shows a complete file");
    }
    test_dir.fails_with(&command.replace("prices.toml", "none.toml"), 3, "none.toml");
}
