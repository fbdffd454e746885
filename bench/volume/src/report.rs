//! Reports results: human-readable tables, and a JSON file.

use std::env;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::fio::PERCENTILES;
use crate::floor::Floor;
use crate::growth::{Creation, Grown};
use crate::links::Linked;
use crate::load::Load;
use crate::machine;
use crate::rounds::{BenchPlan, Measured, Rounds};
use crate::spread::Spread;
use crate::techniques::{ACCESSES_PER_SECOND, BURST, Technique};
use crate::verdict::Target;

/// Prints facts about the machine, the size of the disks, and the lengths of the measurement.
pub fn print_head(plan: &BenchPlan) {
    if let Value::Object(facts) = machine::describe() {
        for (name, value) in facts {
            println!("{name:<11} {}", value.as_str().map_or(value.to_string(), str::to_owned));
        }
    }
    println!(
        "disks of {} MiB, {} rounds, {} s for each load in each round\n",
        plan.disk_bytes >> 20,
        plan.rounds,
        plan.time.as_secs()
    );
}

/// Prints every subject under every load.
pub fn print_loads(measured: &[Measured], floor: Option<&Floor>, plan: &BenchPlan) {
    if measured.is_empty() {
        return;
    }
    let mut table = vec![HEAD.map(str::to_owned).to_vec()];
    for index in 0..measured[0].loads.len() {
        table.push(vec![measured[0].loads[index].load.name.to_owned()]);
        table.extend(measured.iter().map(|subject| row(subject, index)));
    }
    print_table(&table);
    println!(
        "medians over {} rounds, also of latencies; for loads that flush, of the flushes; \
         CPU, read, written: of the server, per request; write x: bytes written per byte of a \
         request; floor: requests per second, and how many times slower this is\n",
        plan.rounds
    );
    if let Some(floor) = floor.and_then(Floor::describe) {
        println!("{floor}\n");
    }
    for Measured { description, disk_bytes, set_up, fill, .. } in measured {
        let fill = fill.as_ref().map_or("not filled".to_owned(), |fill| {
            format!("filled in {:.1} s, {:.1} MB/s", fill.seconds, fill.bytes_per_second / 1e6)
        });
        println!(
            "{}: {}. {} MiB, set up in {:.2} s, {fill}",
            description.name,
            description.note,
            disk_bytes.div_ceil(1 << 20),
            set_up.as_secs_f64()
        );
    }
    println!();
}

const HEAD: [&str; 15] = [
    "",
    "req/s",
    "min",
    "max",
    "MB/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "p99.9 ms",
    "CPU us",
    "read KiB",
    "written KiB",
    "write x",
    "floor",
    "x floor",
];

fn row(subject: &Measured, index: usize) -> Vec<String> {
    let (rounds, floor) = (&subject.loads[index], subject.floors[index]);
    let rate = rounds.requests_per_second();
    let mut cells = vec![
        format!("  {}", subject.description.name),
        format!("{:.0}", rate.median),
        format!("{:.0}", rate.min),
        format!("{:.0}", rate.max),
        format!("{:.1}", rounds.bytes_per_second().median / 1e6),
    ];
    cells.extend(rounds.latencies().map(|latency| format!("{:.2}", latency.median)));
    let optional = |value: Option<f64>, digits: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
    };
    cells.extend([
        optional(rounds.cpu_microseconds().map(|spread| spread.median), 0),
        optional(rounds.read_bytes().map(|spread| spread.median / 1024.0), 1),
        optional(rounds.written_bytes().map(|spread| spread.median / 1024.0), 1),
        optional(write_amplification(rounds), 1),
        optional(floor, 0),
        optional(floor.map(|floor| floor / rate.median), 2),
    ]);
    cells
}

fn write_amplification(rounds: &Rounds) -> Option<f64> {
    let written = rounds.written_bytes().filter(|_| rounds.load.writes())?;
    Some(written.median / rounds.load.request_bytes as f64)
}

/// Prints the times of creating volumes.
pub fn print_creation(created: &[Creation]) {
    for Creation { disk_bytes, time, allocated_bytes } in created {
        println!(
            "creating a volume of {} GiB: {:.2} s, {} KiB of the file allocated",
            disk_bytes >> 30,
            time.as_secs_f64(),
            allocated_bytes >> 10
        );
    }
}

/// Prints the results for volumes of several sizes.
pub fn print_growth(grown: &[Grown]) {
    if grown.is_empty() {
        return;
    }
    let head = [
        "size MiB",
        "reads/s",
        "min",
        "max",
        "model",
        "writes/s",
        "min",
        "max",
        "model",
        "reads KiB",
        "writes KiB",
        "map levels",
        "map MiB",
        "plan MiB",
        "peak MiB",
    ];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for one in grown {
        let mut cells = vec![format!("{}", one.disk_bytes >> 20)];
        for (index, modelled) in one.modelled.into_iter().enumerate() {
            let rate = one.loads.get(index).map(Rounds::requests_per_second);
            let figures = rate.map(|Spread { min, median, max }| [median, min, max]);
            cells.extend(figures.map_or([const { String::new() }; 3], |figures| {
                figures.map(|figure| format!("{figure:.0}"))
            }));
            cells.push(modelled.map_or_else(String::new, |rate| format!("{rate:.0}")));
        }
        cells.extend([
            format!("{:.1}", one.model.read_bytes / 1024.0),
            format!("{:.1}", one.model.written_bytes / 1024.0),
            one.model.map_depth.to_string(),
            mebibytes(one.model.position_map_bytes),
            mebibytes(one.model.client_bytes),
            one.peak_memory.map_or_else(String::new, |bytes| mebibytes(bytes as f64)),
        ]);
        table.push(cells);
    }
    println!();
    print_table(&table);
    println!(
        "oblivio nbd, 4 KiB random requests, qd 16, disks not filled; reads and writes KiB, map \
         levels (in the tree), map (on the client), plan (client memory without the cache): from \
         `oblivio plan`; peak: peak resident memory of the server, with its 16 MiB cache; model: \
         the rate at 1 GiB, scaled by the bytes moved, with one more access for each level of the \
         map in the tree\n"
    );
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1024.0 / 1024.0)
}

/// Prints the results of the techniques.
pub fn print_techniques(techniques: &[Technique]) {
    let Some(first) = techniques.first() else { return };
    let head =
        ["", "req/s", "min", "max", "p50 ms", "p95 ms", "left out %", "access KiB", "plan KiB"];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    for index in 0..first.loads.len() {
        table.push(vec![first.loads[index].rounds.load.name.to_owned()]);
        table.extend(techniques.iter().map(|technique| {
            let turns = &technique.loads[index];
            let rate = turns.rounds.requests_per_second();
            let [p50, p95, ..] = turns.rounds.latencies();
            let optional = |spread: Option<Spread>, scale: f64| {
                spread.map_or_else(|| "-".into(), |it| format!("{:.1}", it.median * scale))
            };
            vec![
                format!("  {}", technique.variant.name),
                format!("{:.0}", rate.median),
                format!("{:.0}", rate.min),
                format!("{:.0}", rate.max),
                format!("{:.2}", p50.median),
                format!("{:.2}", p95.median),
                optional(turns.left_out(), 100.0),
                optional(turns.bytes_per_access(), 1.0 / 1024.0),
                format!("{:.1}", technique.planned_bytes / 1024.0),
            ]
        }));
    }
    println!();
    print_table(&table);
    println!(
        "oblivio nbd at {ACCESSES_PER_SECOND} accesses per second, {BURST} per tick, or without a \
         rate (the tree top in sets with --serve-hits); one server at a time; left out: skipped \
         ticks; access: bytes read and written per access, including the client's directory; \
         plan: bytes per access according to `oblivio plan`\n"
    );
}

/// Prints the results of volumes on a bucket server.
pub fn print_links(links: &[Linked]) {
    if links.is_empty() {
        return;
    }
    let head = [
        "",
        "req/s",
        "min",
        "max",
        "p50 ms",
        "floor",
        "of floor",
        "client MiB",
        "plan MiB",
        "server MiB",
    ];
    let mut table = vec![head.map(str::to_owned).to_vec()];
    let mut loads: Vec<Load> = Vec::new();
    for load in links.iter().flat_map(|linked| linked.loads.iter().map(|rounds| rounds.load)) {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    for load in loads {
        table.push(vec![load.name.to_owned()]);
        table.extend(links.iter().filter_map(|linked| link_row(linked, &load)));
    }
    println!();
    print_table(&table);
    let disks = links.iter().map(|linked| format!("{} {}", linked.name, linked.disk_bytes >> 20));
    println!(
        "MiB of the disks: {}; floor: accesses per second that TLS on this machine, or the link, \
         can carry at the bytes of an access; client and server MiB: peak resident memory of each \
         process; plan: upper bound on the client's memory according to `oblivio info`\n",
        disks.collect::<Vec<_>>().join(", ")
    );
}

fn link_row(linked: &Linked, load: &Load) -> Option<Vec<String>> {
    let index = linked.loads.iter().position(|rounds| rounds.load == *load)?;
    let (rounds, floor) = (&linked.loads[index], linked.floors[index]);
    let rate = rounds.requests_per_second();
    let optional = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let memory = |bytes: Option<u64>| optional(bytes.map(|bytes| mebibytes(bytes as f64)));
    let planned = linked.model.map(|model| mebibytes(model.client_bytes_in_use_max));
    Some(vec![
        format!("  {}", linked.name),
        per_second(rate.median),
        per_second(rate.min),
        per_second(rate.max),
        format!("{:.2}", rounds.latencies()[0].median),
        optional(floor.map(per_second)),
        optional(floor.map(|floor| format!("{:.2}", rate.median / floor))),
        memory(rounds.server_peak()),
        optional(planned),
        memory(rounds.storage_peak()),
    ])
}

/// Formats a rate. Low rates, such as those behind slow links, get a decimal.
fn per_second(rate: f64) -> String {
    if rate < 100.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// Prints each target with its measured value, and whether it is met.
pub fn print_verdict(targets: &[Target]) {
    for Target { name, value, wanted, is_met } in targets {
        let verdict = if *is_met { "met" } else { "MISSED" };
        println!("{verdict:<7} {name}: {value:.2} ({wanted})");
    }
}

/// Prints a table with aligned columns: the first left-aligned, all others right-aligned.
fn print_table(table: &[Vec<String>]) {
    let columns = table.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        // A line with one cell is a heading.
        let cells = table.iter().filter(|line| line.len() > 1).filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    for line in table {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        println!("{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// The results of all parts.
pub struct Results {
    pub measured: Vec<Measured>,
    pub created: Vec<Creation>,
    pub grown: Vec<Grown>,
    pub techniques: Vec<Technique>,
    pub links: Vec<Linked>,
    pub verdict: Vec<Target>,
}

/// Writes all results as JSON.
pub fn write(path: &Path, plan: &BenchPlan, results: &Results) -> Result<(), String> {
    let Results { measured, created, grown, techniques, links, verdict } = results;
    let report = json!({
        "command": env::args().collect::<Vec<_>>(),
        "machine": machine::describe(),
        "rounds": plan.rounds,
        "seconds": plan.time.as_secs(),
        "disk_bytes": plan.disk_bytes,
        "subjects": measured.iter().map(subject_json).collect::<Vec<_>>(),
        "creation": created.iter().map(|creation| json!({
            "disk_bytes": creation.disk_bytes,
            "seconds": creation.time.as_secs_f64(),
            "allocated_bytes": creation.allocated_bytes,
        })).collect::<Vec<_>>(),
        "growth": grown.iter().map(growth_json).collect::<Vec<_>>(),
        "techniques": techniques.iter().map(technique_json).collect::<Vec<_>>(),
        "links": links.iter().map(linked_json).collect::<Vec<_>>(),
        "verdict": verdict.iter().map(|target| json!({
            "name": target.name,
            "value": target.value,
            "wanted": target.wanted,
            "is_met": target.is_met,
        })).collect::<Vec<_>>(),
    });
    fs::write(path, format!("{report:#}\n"))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn subject_json(subject: &Measured) -> Value {
    let Measured { description, disk_bytes, set_up, fill, loads, floors } = subject;
    json!({
        "name": description.name,
        "note": description.note,
        "disk_bytes": disk_bytes,
        "set_up_seconds": set_up.as_secs_f64(),
        "fill_seconds": fill.as_ref().map(|fill| fill.seconds),
        "loads": loads.iter().map(rounds_json).collect::<Vec<_>>(),
        "floors_requests_per_second": floors,
    })
}

fn rounds_json(rounds: &Rounds) -> Value {
    let latencies = PERCENTILES.iter().zip(rounds.latencies());
    json!({
        "name": rounds.load.name,
        "requests": rounds.rounds.iter().map(|round| round.answers.requests).sum::<u64>(),
        "requests_per_second": spread_json(Some(rounds.requests_per_second())),
        "bytes_per_second": spread_json(Some(rounds.bytes_per_second())),
        "latency_milliseconds": latencies
            .map(|(percent, latency)| (format!("p{percent}"), spread_json(Some(latency))))
            .collect::<serde_json::Map<_, _>>(),
        "cpu_microseconds_per_request": spread_json(rounds.cpu_microseconds()),
        "read_bytes_per_request": spread_json(rounds.read_bytes()),
        "written_bytes_per_request": spread_json(rounds.written_bytes()),
        "write_amplification": write_amplification(rounds),
    })
}

fn growth_json(grown: &Grown) -> Value {
    json!({
        "disk_bytes": grown.disk_bytes,
        "loads": grown.loads.iter().map(rounds_json).collect::<Vec<_>>(),
        "modelled_requests_per_second": grown.modelled,
        "read_bytes_per_access": grown.model.read_bytes,
        "written_bytes_per_access": grown.model.written_bytes,
        "position_map_depth": grown.model.map_depth,
        "position_map_bytes": grown.model.position_map_bytes,
        "client_bytes": grown.model.client_bytes,
        "peak_memory_bytes": grown.peak_memory,
    })
}

fn technique_json(technique: &Technique) -> Value {
    let turns = technique.loads.iter().map(|turns| {
        let mut load = rounds_json(&turns.rounds);
        load["ticks_left_out"] = spread_json(turns.left_out());
        load["bytes_per_access"] = spread_json(turns.bytes_per_access());
        load
    });
    json!({
        "name": technique.variant.name,
        "accesses_per_second": technique.variant.has_rate.then_some(ACCESSES_PER_SECOND),
        "planned_bytes_per_access": technique.planned_bytes,
        "loads": turns.collect::<Vec<_>>(),
    })
}

fn linked_json(linked: &Linked) -> Value {
    let loads = linked.loads.iter().zip(&linked.floors).map(|(rounds, floor)| {
        let mut load = rounds_json(rounds);
        load["floor_accesses_per_second"] = json!(floor);
        load["client_peak_memory_bytes"] = json!(rounds.server_peak());
        load["server_peak_memory_bytes"] = json!(rounds.storage_peak());
        load
    });
    json!({
        "name": linked.name,
        "disk_bytes": linked.disk_bytes,
        "planned_client_bytes": linked.model.map(|model| model.client_bytes_in_use_max),
        "read_bytes_per_access": linked.model.map(|model| model.read_bytes),
        "written_bytes_per_access": linked.model.map(|model| model.written_bytes),
        "loads": loads.collect::<Vec<_>>(),
    })
}

fn spread_json(spread: Option<Spread>) -> Value {
    spread.map_or(
        Value::Null,
        |Spread { min, median, max }| json!({ "median": median, "min": min, "max": max }),
    )
}
