//! Runs fio, the load generator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::load::Load;
use crate::tools::{self, End};

/// The access path from fio to the disk of a subject.
#[derive(Clone)]
pub enum Target {
    /// The URI of an NBD export. fio uses one connection, with `depth` requests in flight.
    Nbd(String),
    /// A file. fio uses `depth` threads with one request each, because the kernel makes
    /// asynchronous requests synchronous for many kinds of files.
    File {
        path: PathBuf,
        /// Whether to bypass the page cache, to measure the disk and not memory.
        direct: bool,
    },
}

impl Target {
    /// Returns the default export of an NBD server that listens on a Unix socket.
    pub fn nbd_socket(path: &Path) -> Self {
        Self::Nbd(format!("nbd+unix:///?socket={}", path.display()))
    }
}

/// The condition that ends a load.
#[derive(Clone, Copy)]
pub enum Until {
    Time(Duration),
    /// Ends after fio has gone through the disk once. A sequential load then has requested every
    /// byte.
    End,
}

/// The results of one run of fio.
#[derive(Clone, Debug)]
pub struct Answers {
    pub requests: u64,
    pub seconds: f64,
    pub requests_per_second: f64,
    pub bytes_per_second: f64,
    /// Latencies in milliseconds at each of [`PERCENTILES`]; 0 if fio reports none. For a load that
    /// flushes, latencies of the flushes.
    pub latencies: [f64; PERCENTILES.len()],
}

/// The percentiles whose latency is reported.
pub const PERCENTILES: [f64; 4] = [50.0, 95.0, 99.0, 99.9];

/// Runs a load on a disk of `bytes` bytes. Equal seeds give equal offsets.
pub fn run(
    target: &Target,
    bytes: u64,
    load: &Load,
    until: Until,
    seed: u32,
    end: &End,
) -> Result<Answers, String> {
    let report = tempfile::NamedTempFile::new()
        .map_err(|error| format!("cannot create a temporary file: {error}"))?;
    let mut fio = Command::new("fio");
    fio.args(["--name=load", "--norandommap", "--output-format=json", "--group_reporting"])
        .args(["--lat_percentiles=1", "--clat_percentiles=0"])
        .arg(format!("--percentile_list={}", PERCENTILES.map(|p| p.to_string()).join(":")))
        .arg(format!("--output={}", report.path().display()))
        .arg(format!("--rw={}", load.pattern))
        .arg(format!("--bs={}", load.request_bytes))
        // Without --randrepeat=0, fio ignores the seed.
        .arg("--randrepeat=0")
        .arg(format!("--randseed={seed}"));
    if let Until::Time(time) = until {
        fio.args(["--time_based".into(), format!("--runtime={}", time.as_secs())]);
    }
    if load.flushes {
        fio.arg("--fsync=1");
    } else if load.writes() || load.is_mixed() {
        // Data that a cache still holds at the end must be written back within the measured time.
        fio.arg("--end_fsync=1");
    }
    if load.is_mixed() {
        fio.arg("--unified_rw_reporting=mixed");
    }
    fio.args(load.more);
    place(&mut fio, target, bytes, load);
    tools::run_to_its_end(&mut fio, end)?;
    let text = fs::read_to_string(report.path())
        .map_err(|error| format!("cannot read the report of fio: {error}"))?;
    parse(&text, load).ok_or_else(|| format!("cannot parse the report of fio:\n{text}"))
}

fn place(fio: &mut Command, target: &Target, bytes: u64, load: &Load) {
    match target {
        Target::Nbd(uri) => {
            fio.arg("--ioengine=nbd")
                .arg(format!("--uri={uri}"))
                .arg(format!("--size={bytes}"))
                .arg(format!("--iodepth={}", load.depth));
        }
        Target::File { path, direct } => {
            fio.args(["--ioengine=psync", "--thread", "--allow_file_create=0"])
                .arg(format!("--direct={}", u8::from(*direct)))
                .arg(format!("--filename={}", escaped(path)))
                .arg(format!("--numjobs={}", load.depth));
            if load.pattern.starts_with("rand") {
                fio.arg(format!("--size={bytes}"));
            } else {
                // Each thread gets its own part of the disk.
                let part = bytes / u64::from(load.depth);
                fio.args([format!("--size={part}"), format!("--offset_increment={part}")]);
            }
        }
    }
}

/// Escapes colons in `path`, which fio treats as separators.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(':', "\\:")
}

fn parse(text: &str, load: &Load) -> Option<Answers> {
    // Engines may print before the report begins.
    let report: Value = serde_json::from_str(&text[text.find("{\n")?..]).ok()?;
    let job = &report["jobs"][0];
    let side = match (load.is_mixed(), load.writes()) {
        (true, _) => &job["mixed"],
        (false, true) => &job["write"],
        (false, false) => &job["read"],
    };
    let timed = if load.flushes { &job["sync"] } else { side };
    let latency = |percent: f64| {
        let nanos = timed["lat_ns"]["percentile"][format!("{percent:.6}")].as_f64();
        nanos.unwrap_or(0.0) / 1e6
    };
    Some(Answers {
        requests: side["total_ios"].as_u64().filter(|requests| *requests > 0)?,
        seconds: side["runtime"].as_f64()? / 1e3,
        requests_per_second: side["iops"].as_f64()?,
        bytes_per_second: side["bw_bytes"].as_f64()?,
        latencies: PERCENTILES.map(latency),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{FILL, LOADS, SINGLE_READ, TECHNIQUE_LOADS};

    #[test]
    fn every_load_is_understood_by_fio() {
        let bytes = 8 << 20;
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(bytes).unwrap();
        let target = Target::File { path: file.path().to_owned(), direct: false };
        let end = End::listen().unwrap();
        let filled = run(&target, bytes, &FILL, Until::End, 1, &end).unwrap();
        assert_eq!(filled.requests, 8);
        for load in LOADS.iter().chain(&TECHNIQUE_LOADS).chain(&[SINGLE_READ]) {
            let until = Until::Time(Duration::from_secs(1));
            let answers = run(&target, bytes, load, until, 1, &end).unwrap();
            assert!(answers.requests_per_second > 0.0, "{}: {answers:?}", load.name);
            let rate = answers.bytes_per_second / load.request_bytes as f64;
            assert!((rate / answers.requests_per_second - 1.0).abs() < 0.1, "{answers:?}");
            assert!(answers.latencies.is_sorted() && answers.latencies[3] > 0.0, "{answers:?}");
        }
    }

    #[test]
    fn a_missing_disk_is_an_error() {
        let target = Target::nbd_socket(Path::new("/nowhere/socket"));
        let until = Until::Time(Duration::from_secs(1));
        let error = run(&target, 4096, &LOADS[0], until, 1, &End::listen().unwrap()).unwrap_err();
        assert!(error.contains("fio"), "{error}");
    }
}
