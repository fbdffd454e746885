//! Reports results: a human-readable table, and records in JSON.

use std::{fs, ops::Range, path::Path};

use serde_json::{Value, json};

use crate::{interleave::Measured, subject::Row};

/// Prints the facts about the machine that affect the figures.
pub fn print_machine() {
    let line = |file, key: &str| {
        let text = fs::read_to_string(file).ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches([':', ' ', '\t']).to_owned())
    };
    let unknown = || "unknown".to_owned();
    let processor = line("/proc/cpuinfo", "model name").unwrap_or_else(unknown);
    let pages = line("/sys/kernel/mm/transparent_hugepage/enabled", "").unwrap_or_else(unknown);
    let vectors = if cfg!(target_feature = "avx512f") {
        "AVX-512"
    } else if cfg!(target_feature = "avx2") {
        "AVX2"
    } else {
        "none beyond the target's baseline"
    };
    println!("processor:               {processor}");
    println!("transparent huge pages:  {pages}");
    println!("vectors compiled in:     {vectors}");
}

/// Prints the table for `row`: one line per subject, with the microseconds per access over the
/// rounds.
pub fn print(row: Row, measured: &[Measured]) {
    let ruler = ruler(measured);
    let mut table = vec![HEAD.map(str::to_owned)];
    table[0][0] = row.to_string();
    table.extend(measured.iter().map(|subject| cells(subject, &ruler)));

    println!();
    let width = |column: usize| table.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..HEAD.len()).map(width).collect();
    for line in &table {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if FIGURES.contains(&column) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        });
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }

    let parts = measured.iter().filter(|subject| subject.description.ruler);
    let parts: Vec<_> = parts.map(|subject| subject.description.name.as_str()).collect();
    let (rounds, ruler) = (ruler.len(), microseconds(Spread::from_values(&ruler).median));
    println!("min, median, max: us per access, over {rounds} rounds");
    println!("x floor: over {ruler} us = {}", parts.join(" + "));
}

/// Prints the ratios of pairs of subjects, each computed round by round.
pub fn print_compared(measured: &[Measured], compared: &[(String, String)]) {
    for (name, Spread { min, median, max, .. }) in over(measured, compared) {
        println!("{name}: {median:.2} ({min:.2} to {max:.2})");
    }
}

/// Returns the ratios of the pairs in `compared` that were measured.
fn over(measured: &[Measured], compared: &[(String, String)]) -> Vec<(String, Spread)> {
    let find = |name: &str| measured.iter().find(|subject| subject.description.name == name);
    let ratio = |(name, base): &(String, String)| {
        let (subject, base_subject) = (find(name)?, find(base)?);
        Some((
            format!("{name} over {base}"),
            Spread::from_values(&ratios(subject, &base_subject.rounds)),
        ))
    };
    compared.iter().filter_map(ratio).collect()
}

/// The headings of the columns. [`print()`] replaces the first one with the capacity and block size
/// of the table.
const HEAD: [&str; 9] =
    ["", "min", "median", "max", "x floor", "set-up", "filled", "encrypts", "constant time"];
/// The indices of the right-aligned columns.
const FIGURES: Range<usize> = 1..7;

fn cells(subject: &Measured, ruler: &[f64]) -> [String; 9] {
    let Measured { description, set_up, filled, rounds } = subject;
    let access = Spread::from_values(rounds);
    let filled = *filled as f64 / description.row.blocks() as f64;
    [
        description.name.clone(),
        microseconds(access.min),
        microseconds(access.median),
        microseconds(access.max),
        format!("{:.2}", Spread::from_values(&ratios(subject, ruler)).median),
        format!("{:.2} s", set_up.as_secs_f64()),
        format!("{:.1} %", filled * 100.0),
        description.encrypts.to_owned(),
        description.constant_time.to_owned(),
    ]
}

fn microseconds(nanoseconds: f64) -> String {
    format!("{:.2}", nanoseconds / 1e3)
}

/// A named count, which has no spread.
#[derive(Clone)]
pub struct Count {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
}

/// Prints the counts.
pub fn print_counts(counts: &[Count]) {
    println!("\ncounted");
    for Count { name, value, unit } in counts {
        println!("{name}: {value:.2} {unit}");
    }
}

/// Writes every figure as a record `{name, value, unit, spread, command}`.
pub fn write(
    path: &Path,
    measured: &[Vec<Measured>],
    compared: &[(String, String)],
    counts: &[Count],
    command: &str,
) -> Result<(), String> {
    let counted = counts.iter().map(|Count { name, value, unit }| {
        let spread = json!({ "min": value, "max": value, "rounds": 1 });
        json!({ "name": name, "value": value, "unit": unit, "spread": spread, "command": command })
    });
    let timed = measured.iter().flat_map(|row| records(row, command));
    let ratios = measured.iter().flat_map(|row| {
        over(row, compared).into_iter().map(|(name, Spread { min, median, max, rounds })| {
            let spread = json!({ "min": min, "max": max, "rounds": rounds });
            let name = format!("{}: {name}", row[0].description.row);
            json!({
                "name": name,
                "value": median,
                "unit": "ratio",
                "spread": spread,
                "command": command,
            })
        })
    });
    let records: Vec<Value> = timed.chain(ratios).chain(counted).collect();
    let text = serde_json::to_string_pretty(&records).expect("records are plain JSON");
    fs::write(path, text + "\n")
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn records(row: &[Measured], command: &str) -> Vec<Value> {
    let ruler = ruler(row);
    row.iter()
        .flat_map(|subject| {
            let blocks = subject.description.row.blocks() as f64;
            [
                ("access", "ns", Spread::from_values(&subject.rounds)),
                ("access over floor", "ratio", Spread::from_values(&ratios(subject, &ruler))),
                ("set-up", "s", Spread::from_values(&[subject.set_up.as_secs_f64()])),
                ("filled", "fraction", Spread::from_values(&[subject.filled as f64 / blocks])),
            ]
            .map(|(figure, unit, Spread { min, median, max, rounds })| {
                let description = &subject.description;
                json!({
                    "name": format!("{}: {}: {figure}", description.row, description.name),
                    "value": median,
                    "unit": unit,
                    "spread": { "min": min, "max": max, "rounds": rounds },
                    "command": command,
                })
            })
        })
        .collect()
}

/// Returns the times of a row's baseline, round by round.
fn ruler(row: &[Measured]) -> Vec<f64> {
    let rounds = row.first().map_or(0, |subject| subject.rounds.len());
    let parts = || row.iter().filter(|subject| subject.description.ruler);
    (0..rounds).map(|round| parts().map(|subject| subject.rounds[round]).sum()).collect()
}

/// Returns the ratios of a subject's times to `ruler`, which holds the times of the baseline or of
/// another subject. Dividing round by round cancels disturbances of the machine.
fn ratios(subject: &Measured, ruler: &[f64]) -> Vec<f64> {
    subject.rounds.iter().zip(ruler).map(|(access, ruler)| access / ruler).collect()
}

/// The minimum, median and maximum of values over rounds.
struct Spread {
    min: f64,
    median: f64,
    max: f64,
    rounds: usize,
}

impl Spread {
    fn from_values(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let rounds = sorted.len();
        let median = (sorted[(rounds - 1) / 2] + sorted[rounds / 2]) / 2.0;
        Self { min: sorted[0], median, max: sorted[rounds - 1], rounds }
    }
}
