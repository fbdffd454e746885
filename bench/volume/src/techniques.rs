//! The gain of IR-ORAM's techniques for a volume with a fixed rate: the same loads on volumes with
//! and without them.
//!
//! | technique | with it | without it |
//! |---|---|---|
//! | IR-DWB | default | `serve --no-early-write-backs` |
//! | IR-Stash | `create --tree-top-ways 4`, `serve --serve-hits` | default |
//! | IR-Alloc | `create --alloc-from FILE` | default |
//!
//! A server with a fixed rate is always busy, even without requests. So only one server runs at a
//! time: it is started for one variant, load and round. Volumes are used again in later rounds. The
//! baseline is the same volumes served without a fixed rate.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::Path;
use std::time::Instant;

use crate::growth::Model;
use crate::load::TECHNIQUE_LOADS;
use crate::rounds::{self, BenchPlan, Round, Rounds};
use crate::spread::Spread;
use crate::subjects::oblivio::{self, Volume};
use crate::subjects::{Subject, Testbed};
use crate::tools::End;

/// Accesses per second that a busy machine with two processors can sustain most of the time.
pub const ACCESSES_PER_SECOND: u32 = 1500;

/// Accesses per tick.
pub const BURST: u32 = 16;

const IN_SETS: [&str; 2] = ["--tree-top-ways", "4"];
const ALLOC_FROM: &str = "--alloc-from";

/// A volume with the options of its server.
pub struct Variant {
    pub name: String,
    /// Index of the volume in [`shapes`].
    shape: usize,
    pub has_rate: bool,
    serve_options: Vec<String>,
}

/// The results of one variant.
pub struct Technique {
    pub variant: Variant,
    /// Number of bytes per access according to `oblivio plan`.
    pub planned_bytes: f64,
    /// The results of each load, in the order of the loads.
    pub loads: Vec<Turns>,
}

/// The results of one load in all rounds.
pub struct Turns {
    pub rounds: Rounds,
    /// Fraction of skipped ticks in each round.
    left_out: Vec<f64>,
    /// Bytes moved per access in each round.
    bytes_per_access: Vec<f64>,
}

impl Turns {
    /// The fraction of skipped ticks. `None` if the server had no fixed rate, and so no ticks.
    pub fn left_out(&self) -> Option<Spread> {
        spread(&self.left_out)
    }

    /// The number of bytes that the server read and wrote per access. Known only at a fixed rate.
    pub fn bytes_per_access(&self) -> Option<Spread> {
        spread(&self.bytes_per_access)
    }
}

fn spread(values: &[f64]) -> Option<Spread> {
    (!values.is_empty()).then(|| Spread::from_values(values.iter().copied()))
}

/// Creates and fills the volumes, and measures them in turns. Skips volumes with slots per level if
/// `alloc` is missing, or the program lacks the option.
pub fn measure(
    plan: &BenchPlan,
    alloc: Option<&Path>,
    testbed: &Testbed,
    end: &End,
) -> Result<Vec<Technique>, String> {
    let is_known = oblivio::can_create_with(ALLOC_FROM, testbed, end)?;
    let shapes = shapes(alloc.filter(|_| is_known));
    if shapes.len() < 3 {
        let reason = if is_known { "needs --alloc FILE" } else { "the program lacks it" };
        println!("no volume with slots per level (IR-Alloc): {reason}\n");
    }
    let variants = variants(&shapes);
    let loads = TECHNIQUE_LOADS.len() as u64;
    let progress = rounds::progress(
        shapes.len() as u64 + u64::from(plan.rounds) * loads * variants.len() as u64,
    );
    let (mut volumes, mut planned) = (Vec::new(), Vec::new());
    for (name, options) in &shapes {
        progress.set_message(format!("{name}: fill"));
        planned
            .push(Model::for_options(plan.disk_bytes, options, testbed, end)?.bytes_per_access());
        let volume = Volume::create(plan.disk_bytes, options, testbed, end)?;
        volumes.push(volume.filled(testbed, end)?);
        progress.inc(1);
    }
    let technique = |variant: Variant| {
        let loads = TECHNIQUE_LOADS.map(|load| Turns {
            rounds: Rounds { load, rounds: Vec::new() },
            left_out: Vec::new(),
            bytes_per_access: Vec::new(),
        });
        Technique { planned_bytes: planned[variant.shape], variant, loads: loads.into() }
    };
    let mut techniques: Vec<_> = variants.into_iter().map(technique).collect();
    for round in 0..plan.rounds {
        for index in 0..TECHNIQUE_LOADS.len() {
            for Technique { variant, loads, .. } in &mut techniques {
                let turns = &mut loads[index];
                progress.set_message(format!("{}: {}", variant.name, turns.rounds.load.name));
                let volume = volumes.remove(variant.shape);
                let seed = round * TECHNIQUE_LOADS.len() as u32 + index as u32 + 1;
                let volume = turn(variant, volume, turns, plan, seed, testbed, end)
                    .map_err(|error| format!("{}: {error}", variant.name))?;
                volumes.insert(variant.shape, volume);
                progress.inc(1);
            }
        }
    }
    progress.finish_and_clear();
    Ok(techniques)
}

/// Returns the name of each volume, and its options of `create`.
fn shapes(alloc: Option<&Path>) -> Vec<(&'static str, Vec<String>)> {
    let in_sets = IN_SETS.map(str::to_owned);
    let mut shapes = vec![("default", Vec::new()), ("IR-Stash", in_sets.to_vec())];
    if let Some(file) = alloc {
        let per_level = [ALLOC_FROM.to_owned(), file.display().to_string()];
        shapes.push(("IR-Alloc", per_level.to_vec()));
        shapes.push(("all together", [in_sets, per_level].concat()));
    }
    shapes
}

/// Lists the variants: the first volume at the fixed rate without IR-DWB, then every volume at the
/// fixed rate, and then every volume without a rate.
fn variants(shapes: &[(&str, Vec<String>)]) -> Vec<Variant> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (rate, burst) = (format!("{ACCESSES_PER_SECOND}/s"), BURST.to_string());
    let at_rate = ["--rate", &rate, "--burst", &burst];
    let mut variants = vec![Variant {
        name: "without IR-DWB".into(),
        shape: 0,
        has_rate: true,
        serve_options: words(&[&at_rate[..], &["--no-early-write-backs"]].concat()),
    }];
    for has_rate in [true, false] {
        for (shape, (name, options)) in shapes.iter().enumerate() {
            let is_in_sets = options.iter().any(|option| option == IN_SETS[0]);
            let rate = if has_rate { &at_rate[..] } else { &[] };
            let hits = if is_in_sets { &["--serve-hits"][..] } else { &[] };
            let name = format!("{name}, {}", if has_rate { "with IR-DWB" } else { "no rate" });
            let serve_options = words(&[rate, hits].concat());
            variants.push(Variant { name, shape, has_rate, serve_options });
        }
    }
    variants
}

/// Serves a volume for the duration of one load.
fn turn(
    variant: &Variant,
    volume: Volume,
    turns: &mut Turns,
    plan: &BenchPlan,
    seed: u32,
    testbed: &Testbed,
    end: &End,
) -> Result<Volume, String> {
    let failed = |error: std::io::Error| format!("cannot read the messages of the server: {error}");
    let mut remarks = tempfile::tempfile().map_err(failed)?;
    let stderr: File = remarks.try_clone().map_err(failed)?;
    let mut served = volume.serve_nbd(&variant.serve_options, stderr.into(), testbed, end)?;
    let clock = Instant::now();
    let round = rounds::one_round(&served, &turns.rounds.load, plan, seed, end)?;
    let seconds = clock.elapsed().as_secs_f64();
    served.stop()?;
    let mut text = String::new();
    remarks.rewind().and_then(|()| remarks.read_to_string(&mut text)).map_err(failed)?;
    if variant.has_rate {
        let left_out = left_out(&text)
            .ok_or_else(|| format!("cannot parse the messages of the server: {text}"))?;
        turns.left_out.push(left_out);
        turns.bytes_per_access.extend(bytes_per_access(&round, seconds, left_out));
    }
    turns.rounds.rounds.push(round);
    Ok(served.volume)
}

/// Computes the bytes per access of a server with a fixed rate, given the fraction of skipped
/// ticks.
fn bytes_per_access(round: &Round, seconds: f64, left_out: f64) -> Option<f64> {
    let usage = round.usage?;
    let accesses = seconds * f64::from(ACCESSES_PER_SECOND) * (1.0 - left_out);
    Some((usage.read_bytes + usage.written_bytes) as f64 / accesses)
}

/// Returns the fraction of skipped ticks from the message about the fixed rate in `text`. 0 without
/// such a message. `None` if the message cannot be parsed.
fn left_out(text: &str) -> Option<f64> {
    let Some(start) = text.find("at the fixed rate, ") else { return Some(0.0) };
    let numbers: Vec<f64> = text[start..]
        .split_whitespace()
        .filter(|word| word.bytes().all(|byte| byte.is_ascii_digit()))
        .filter_map(|word| word.parse().ok())
        .collect();
    let [made, left_out] = numbers[..] else { return None };
    Some(left_out / (made + left_out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_message_of_a_server_is_parsed() {
        let warned = "oblivio: the rate is not kept: 3 of 100 ticks were left out, because\n";
        let ended = "oblivio: at the fixed rate, 900 ticks were made and 100 were left out; the \
                     latest tick began 6.1 ms late\n";
        assert_eq!(left_out(&[warned, ended].concat()), Some(0.1));
        assert_eq!(left_out(""), Some(0.0));
        assert_eq!(left_out("at the fixed rate, many ticks were made"), None);
    }

    #[test]
    fn every_shape_is_served_with_a_rate_and_without() {
        for (file, count) in [(None, 2), (Some(Path::new("slots")), 4)] {
            let shapes = shapes(file);
            assert_eq!(shapes.len(), count);
            let variants = variants(&shapes);
            assert_eq!(variants.len(), 2 * count + 1);
            for shape in 0..count {
                let of_shape = || variants.iter().filter(move |variant| variant.shape == shape);
                assert!(of_shape().any(|variant| variant.has_rate));
                assert!(of_shape().any(|variant| !variant.has_rate));
            }
            for Variant { has_rate, serve_options, .. } in &variants {
                assert_eq!(serve_options.iter().any(|option| option == "--rate"), *has_rate);
            }
        }
    }
}
