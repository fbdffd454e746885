//! Kills a real server at random moments while fio writes and reads the disk. Afterwards,
//! everything flushed must be there, and every block that was being written must hold its old or
//! its new contents.
//!
//! `OBLIVIO_KILL_ROUNDS` is the number of rounds and `OBLIVIO_KILL_SEED` the seed. The seed is
//! printed, so that a failure can be reproduced as far as timing allows.

mod remote;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::Duration;

use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng, TryRng};

use super::test_dir::{Bytes, MIB, Server, TestDir, VOLUME, end, wait, wait_until};
use super::tools::{run, start};

const REGIONS: u64 = 8;
const BLOCK_BYTES: usize = 4096;

/// A kind of disk whose server is killed while the disk is in use.
#[derive(Clone, Copy)]
struct Killed {
    scheme: &'static str,
    /// Bytes of a region of the disk. One fio job writes one region.
    region_bytes: u64,
    rounds: u64,
}

const RAW: Killed = Killed { scheme: "raw", region_bytes: 2 * MIB, rounds: 3 };

/// The scheme `range`. A region has the size of two ranges of the largest class.
const RANGE: Killed = Killed { scheme: "range", region_bytes: 2 * MIB, rounds: 2 };

/// The scheme `scan`, with small regions, because every access reads all blocks.
const SCAN: Killed = Killed { scheme: "scan", region_bytes: MIB / 8, rounds: 2 };

/// The contents of a region.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Zeros,
    /// fio wrote the whole region with this seed, and flushed it.
    Verified(u64),
    /// The region was being written when the server was killed.
    Interrupted,
}

/// Sums over all rounds.
#[derive(Default)]
struct Tally {
    kills: u64,
    kills_in_recovery: u64,
    accesses_repeated: u64,
    bytes_verified: u64,
    blocks_old: u64,
    blocks_new: u64,
}

#[test]
fn a_server_killed_at_any_moment_loses_nothing_that_was_flushed() {
    kill(RAW);
}

#[test]
fn a_killed_server_with_ranges_loses_nothing_that_was_flushed() {
    kill(RANGE);
}

#[test]
fn a_killed_server_with_the_trivial_oram_loses_nothing_that_was_flushed() {
    kill(SCAN);
}

fn kill(disk: Killed) {
    let (rounds, seed) = rounds_and_seed(disk.rounds);
    let mut coins = StdRng::seed_from_u64(seed);
    let Killed { scheme, region_bytes, .. } = disk;
    let test_dir = TestDir::new();
    let size = REGIONS * region_bytes;
    test_dir.succeeds(&format!("create {VOLUME} --scheme {scheme} --size {size}"));
    let mut contents = [Content::Zeros; REGIONS as usize];
    let mut tally = Tally::default();
    for round in 0..rounds {
        disk.play(round, &test_dir, &mut contents, &mut coins, &mut tally);
    }
    test_dir.succeeds(&format!("check {VOLUME}"));
    println!(
        "{rounds} rounds: {} kills, {} of them in a recovery; {} accesses made again; {} MiB \
         flushed and verified, 0 bytes lost; {} blocks of interrupted writes are old, {} are new, \
         0 are neither",
        tally.kills,
        tally.kills_in_recovery,
        tally.accesses_repeated,
        tally.bytes_verified / MIB,
        tally.blocks_old,
        tally.blocks_new
    );
}

/// The number of rounds and the seed, from the environment. The defaults are `rounds` and a random
/// seed.
fn rounds_and_seed(rounds: u64) -> (u64, u64) {
    let number = |name, default| {
        env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}")))
    };
    let rounds = number("OBLIVIO_KILL_ROUNDS", rounds);
    let seed = number("OBLIVIO_KILL_SEED", SysRng.try_next_u64().unwrap());
    println!("OBLIVIO_KILL_SEED={seed}");
    (rounds, seed)
}

/// A child process. Killed when dropped.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        end(&mut self.0);
    }
}

fn fio(server: &Server, jobs: &[Vec<String>], options: &[&str]) -> Vec<String> {
    let mut arguments = vec!["--thread".into(), "--group_reporting".into()];
    for job in jobs {
        arguments.extend(job.iter().cloned());
        arguments.extend(["--ioengine=nbd".into(), format!("--uri={}", server.uri())]);
        arguments.extend(options.iter().map(|option| (*option).to_owned()));
    }
    arguments
}

/// The options of a fio job of 4 KiB requests in random order.
fn random_job(name: &str, action: &str) -> Vec<String> {
    let (name, action) = (format!("--name={name}"), format!("--rw={action}"));
    vec![name, action, "--bs=4k".into(), "--iodepth=16".into()]
}

impl Killed {
    /// One round: writes and flushes a region. Then kills the server while fio writes another
    /// region and reads the disk, and up to twice during recovery. Finally verifies the interrupted
    /// region, all regions that fio wrote completely, and one region of zeros.
    fn play(
        &self,
        round: u64,
        test_dir: &TestDir,
        contents: &mut [Content; REGIONS as usize],
        coins: &mut StdRng,
        tally: &mut Tally,
    ) {
        // A small cache is written back all the time, a large cache on a flush.
        let options = ["--cache 64K", "--cache 1M", "--cache 32M"][coins.random_range(0..3)];
        let whole = coins.random_range(0..REGIONS);
        let interrupted = (whole + coins.random_range(1..REGIONS)) % REGIONS;
        let mut server = test_dir.serve(options);
        let seed = coins.random_range(0..u64::from(u32::MAX));
        run(
            "fio",
            &fio(&server, &[self.crc_job(whole, seed)], &["--end_fsync=1", "--do_verify=0"]),
        );
        contents[whole as usize] = Content::Verified(seed);
        if round.is_multiple_of(2) {
            // The flush is the last request before the kill.
            server.kill();
            tally.kills += 1;
            server = test_dir.serve(options);
        }
        let old = self.region(&server, interrupted, &test_dir.path("region"));

        // The server is killed at a random length of the log. The log grows with the written data,
        // so the moment does not depend on the speed of the machine.
        let file = test_dir.state_file();
        let log = Bytes::of(&file);
        let log_bytes = || log.appended();
        let kill_at = log_bytes() + coins.random_range(0..self.region_bytes * 11 / 10);
        let pattern = coins.random();
        let jobs = [self.pattern_job(interrupted, pattern), self.reading_job()];
        let arguments = fio(&server, &jobs, &["--do_verify=0"]);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let mut writer = Guard(start("fio", &arguments));
        wait_until("fio writes", || {
            log_bytes() >= kill_at || writer.0.try_wait().unwrap().is_some()
        });
        thread::sleep(Duration::from_micros(coins.random_range(0..2000)));
        server.kill();
        tally.kills += 1;
        wait(&mut writer.0);
        contents[interrupted as usize] = Content::Interrupted;

        for _ in 0..coins.random_range(0..=2) {
            let before = test_dir.state_file();
            let server = Server::start(test_dir, options);
            if coins.random() {
                thread::sleep(Duration::from_micros(coins.random_range(0..80_000)));
            } else {
                // Kill the server just after the recovery: a new state file shows that client and
                // storage agree.
                wait_until("recovery ends", || test_dir.state_file() != before);
            }
            server.kill();
            tally.kills_in_recovery += 1;
        }
        test_dir.fails_with(&format!("info {VOLUME} --require-clean"), 14, "recovers");
        let server = test_dir.serve(options);
        tally.accesses_repeated += server.repeated();
        let new = self.region(&server, interrupted, &test_dir.path("region"));
        let mut kinds = [0; 2];
        for (n, block) in new.chunks(BLOCK_BYTES).enumerate() {
            let is_new = self.is_of(block, n, interrupted, pattern);
            let is_old = block == &old[n * BLOCK_BYTES..][..BLOCK_BYTES];
            assert!(is_old || is_new, "round {round}: block {n} is neither old nor new");
            kinds[usize::from(is_new)] += 1;
        }
        tally.blocks_old += kinds[0];
        tally.blocks_new += kinds[1];
        let jobs: Vec<_> = contents
            .iter()
            .zip(0..)
            .filter_map(|(content, region)| match content {
                Content::Verified(seed) => Some(self.crc_job(region, *seed)),
                _ => None,
            })
            .collect();
        run("fio", &fio(&server, &jobs, &["--verify_only=1"]));
        tally.bytes_verified += jobs.len() as u64 * self.region_bytes;
        for region_of_zeros in
            (0..REGIONS).filter(|n| contents[*n as usize] == Content::Zeros).take(1)
        {
            let found = self.region(&server, region_of_zeros, &test_dir.path("region"));
            assert!(found.iter().all(|byte| *byte == 0), "round {round}: unexpected contents");
        }
        // End cleanly in about half of the rounds, so that the next round begins without a
        // recovery.
        if coins.random() {
            assert_eq!(server.stop(), (0, fs::read_to_string(test_dir.path("messages")).unwrap()));
            test_dir.succeeds(&format!("check {VOLUME}"));
        } else {
            server.kill();
            tally.kills += 1;
        }
        println!("round {round}: {options}, {} blocks old, {} new", kinds[0], kinds[1]);
    }

    /// A fio job that writes a region in random order. Each block holds a checksum and its own
    /// position, so that a read can verify both.
    fn crc_job(&self, region: u64, seed: u64) -> Vec<String> {
        let mut job = self.job(region);
        job.extend(["--verify=crc32c".into(), format!("--randseed={seed}")]);
        job
    }

    /// A fio job that writes a region in random order. Each block is filled with `pattern` and its
    /// own position, in turn.
    fn pattern_job(&self, region: u64, pattern: u64) -> Vec<String> {
        let mut job = self.job(region);
        job.extend([
            "--verify=pattern".into(),
            format!("--verify_pattern=0x{pattern:016x}%o"),
            format!("--randseed={}", pattern >> 32),
            "--fsync=50".into(),
        ]);
        job
    }

    fn job(&self, region: u64) -> Vec<String> {
        let mut job = random_job(&format!("region{region}"), "randwrite");
        job.extend([
            format!("--offset={}", region * self.region_bytes),
            format!("--size={}", self.region_bytes),
            "--verify_fatal=1".into(),
            "--verify_state_save=0".into(),
        ]);
        job
    }

    /// A fio job that reads twice as many bytes as a region has, all over the disk, with many reads
    /// in flight, so that reads overlap.
    fn reading_job(&self) -> Vec<String> {
        let mut job = random_job("reads", "randread");
        job.extend([
            format!("--size={}", REGIONS * self.region_bytes),
            format!("--io_size={}", 2 * self.region_bytes),
        ]);
        job
    }

    /// Whether `block` holds the contents that [`Self::pattern_job`] writes to block `n` of a
    /// region.
    fn is_of(&self, block: &[u8], n: usize, region: u64, pattern: u64) -> bool {
        let place = region * self.region_bytes + (n * BLOCK_BYTES) as u64;
        let unit = [pattern.to_be_bytes(), place.to_le_bytes()].concat();
        block.chunks(unit.len()).all(|found| found == unit)
    }

    /// The contents of a region, which qemu copies to the file `copy`.
    fn region(&self, server: &Server, region: u64, copy: &Path) -> Vec<u8> {
        let source = serde_json::json!({
            "driver": "raw",
            "offset": region * self.region_bytes,
            "size": self.region_bytes,
            "file": { "driver": "nbd", "server": { "type": "unix", "path": server.socket() } },
        });
        let source = format!("json:{source}");
        run("qemu-img", &["convert", "-O", "raw", &source, copy.to_str().unwrap()]);
        let bytes = fs::read(copy).unwrap();
        assert_eq!(bytes.len() as u64, self.region_bytes);
        bytes
    }
}
