//! The tables of the evaluation, in Markdown.

use std::collections::BTreeMap;

use super::Results;
use super::beside::OramComparison;
use super::claim::Claim;
use super::figures::Cell;
use super::ground::Testbed;
use super::points::{Measured, MeasuredTree, OFF_MAX, Timed, is_near};
use super::spread::Spread;
use super::work::Scheme;
use crate::markdown;
use crate::report::Verdict;

impl Results {
    /// Formats all results as text.
    pub fn text(&self) -> String {
        let mut parts = vec![
            self.machine_text(),
            format!("## Numbers of the paper\n\n{}", claims(&self.claims)),
            self.figures_text(),
        ];
        if let Some(ground) = &self.ground {
            let meanwhile = self.meanwhile.as_ref().map(|it| format!("Meanwhile: {it}.\n"));
            parts.push(measured(ground, &self.measured, &meanwhile.unwrap_or_default()));
            if !self.beside.is_empty() {
                parts.push(beside(&self.measured, &self.beside));
            }
            parts.push(format!("## Targets\n\n{}", claims(&self.targets)));
        }
        parts.join("\n")
    }

    /// A line with the number of claims and targets for each verdict. Claims for which the paper
    /// states nothing do not count.
    pub fn summary(&self) -> String {
        let count = |verdict| {
            let all = self.claims.iter().chain(&self.targets);
            let stated = all.filter(|claim| claim.says.is_some());
            stated.filter(|claim| claim.verdict() == verdict).count()
        };
        format!(
            "{} numbers agree, {} differ, {} are open",
            count(Verdict::Agrees),
            count(Verdict::Differs),
            count(Verdict::Open)
        )
    }

    fn machine_text(&self) -> String {
        const HEAD: &str = "\
| elements a second, one thread | inner product | product with a matrix | shared | recovered | \
drawn from a seed |
|---|---:|---:|---:|---:|---:|
";
        let rows = [("GF(2^8)", &self.machine.bytes), ("modulo 2^61 - 1", &self.machine.words)];
        let rows = rows.map(|(name, rates)| {
            let each = [rates.inner, rates.matrix, rates.share, rates.recover, rates.draw];
            let cells = each.map(|rate| format!("{:.3e}", rate));
            format!("| {name} | {} |", cells.join(" | "))
        });
        format!("## This machine\n\n{}", markdown::table(HEAD, rows))
    }

    fn figures_text(&self) -> String {
        const ABOUT: &str = "\
By the model. The paper's text states no numbers for these points, except for those above. Seconds \
of an access with its share of an eviction.
";
        let seconds = |cell: &Cell| format!("{:.2}", cell.parts.seconds());
        let size = |cell: &Cell| {
            let database = cell.database_bytes as f64 / f64::from(1 << 30);
            format!("{database} GB in {} KiB", cell.block_bytes >> 10)
        };
        let rate = |cell: &Cell| format!("{} Mbit/s", cell.link.down_megabits);
        let parts = |cell: &Cell| {
            let parts = &cell.parts;
            let each =
                [parts.client, parts.servers, parts.client_server, parts.server_server, parts.disk];
            each.map(|part| format!("{part:.3}")).join(" / ")
        };
        let of = |figure: u8, row: &dyn Fn(&Cell) -> String, shown: &dyn Fn(&Cell) -> String| {
            grid(self.cells.iter().filter(|cell| cell.figure == figure), row, shown)
        };
        let disk = |cell: &Cell| format!("{} KiB, disk {}", cell.block_bytes >> 10, cell.disk);
        let broken_down = "client / servers / client-server / between servers / disk";
        [
            format!("## The paper's figures\n\n{ABOUT}"),
            format!("Fig. 3, home, fitted disk:\n\n{}", of(3, &size, &seconds)),
            format!("Fig. 4, home, 40 GB, fitted disk:\n\n{}", of(4, &size, &seconds)),
            format!("Fig. 5, home, 40 GB, {broken_down}:\n\n{}", of(5, &disk, &parts)),
            format!("Fig. 6, LTE, fitted disk:\n\n{}", of(6, &size, &seconds)),
            format!("Fig. 7, LTE, 40 GB, {broken_down}:\n\n{}", of(7, &disk, &parts)),
            format!(
                "Fig. 8, equal rates up and down, 40 GB in 128 KiB, fitted disk:\n\n{}",
                of(8, &rate, &seconds)
            ),
        ]
        .join("\n")
    }
}

/// A table with a row per point of a figure, and a column per scheme.
fn grid<'c>(
    cells: impl Iterator<Item = &'c Cell>,
    row: &dyn Fn(&Cell) -> String,
    shown: &dyn Fn(&Cell) -> String,
) -> String {
    let mut rows: Vec<(String, BTreeMap<usize, String>)> = Vec::new();
    for cell in cells {
        let name = row(cell);
        if rows.last().is_none_or(|(last, _)| *last != name) {
            rows.push((name, BTreeMap::new()));
        }
        let column = Scheme::ALL.iter().position(|scheme| *scheme == cell.scheme);
        if let (Some(column), Some((_, of_row))) = (column, rows.last_mut()) {
            of_row.insert(column, shown(cell));
        }
    }
    let names: Vec<_> = Scheme::ALL.iter().map(Scheme::to_string).collect();
    let head = format!("| | {} |\n|---|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    let lines = rows.into_iter().map(|(name, cells)| {
        format!("| {name} | {} |", cells.into_values().collect::<Vec<_>>().join(" | "))
    });
    markdown::table(&head, lines)
}

fn claims(claims: &[Claim]) -> String {
    const HEAD: &str = "\
| where | what | stated | ours | ratio | | |
|---|---|---:|---:|---:|---|---|
";
    let rows = claims.iter().map(|claim| {
        let Claim { place, what, unit, says, ours, remark } = claim;
        let verdict = claim.verdict().words();
        let stated = says
            .map_or_else(|| "not stated in the text".to_owned(), |says| format!("{says} {unit}"));
        let ours = ours.map_or_else(|| "–".to_owned(), |ours| format!("{} {unit}", short(ours)));
        let ratio = claim.ratio().map_or_else(|| "–".to_owned(), short);
        format!("| {place} | {what} | {stated} | {ours} | {ratio} | {verdict} | {remark} |")
    });
    markdown::table(HEAD, rows)
}

/// Formats a number with zero to four decimals: fewer for larger numbers.
fn short(number: f64) -> String {
    match number.abs() {
        100.0.. => format!("{number:.0}"),
        10.0.. => format!("{number:.1}"),
        0.1.. => format!("{number:.2}"),
        _ => format!("{number:.4}"),
    }
}

fn measured(ground: &Testbed, measured: &[Measured], meanwhile: &str) -> String {
    const HEAD: &str = "\
| tree | reached | what | measured, ms: mean ± deviation (median; least to most; times) \
| client, ms | model, ms | model is off the mean by | the median | all processors, ms | model, ms \
| off by |
|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|
";
    let rows = measured.iter().flat_map(|point| {
        let tree = tree_of(point.shape);
        let by = point
            .link
            .map_or("loopback".to_owned(), |link| link.name().unwrap_or("a link").to_owned());
        let timed = [("access", &point.access), ("eviction", &point.eviction)]
            .map(|(what, timed)| format!("| {tree} | {by} | {what} | {} |", timed_cells(timed)));
        let questions =
            ["its query", "its write"].into_iter().zip(&point.questions).map(|(what, spread)| {
                format!("| {tree} | {by} | {what} | {} | | | | | | | |", shown(spread))
            });
        let [access, eviction] = timed;
        let [seconds, modelled] = [point.with_evictions(), point.with_evictions_modelled()];
        let together = format!(
            "| {tree} | {by} | access with its share of an eviction | {:.2} | | {:.2} | {} \
             | | | | |",
            1e3 * seconds,
            1e3 * modelled,
            off(point.with_evictions_off_by())
        );
        [access]
            .into_iter()
            .chain(questions.collect::<Vec<_>>())
            .chain([eviction, together])
            .collect::<Vec<_>>()
    });
    // Messages have the same lengths behind a link.
    let is_shown = |point: &&Measured| point.link.is_some() || point.shape.evictions[1] == 0;
    let bytes = measured.iter().filter(is_shown).filter_map(|point| {
        let [access, eviction] = point.modelled_bytes().ok()?;
        let line = |what: &str, counted: [f64; 2], modelled: [f64; 2]| {
            format!(
                "{what} {:.0} up and {:.0} down, by the model {:.0} and {:.0}",
                counted[0], counted[1], modelled[0], modelled[1]
            )
        };
        Some(format!(
            "- {}: bytes of {}; of {}.\n",
            tree_of(point.shape),
            line("an access", point.access_bytes, access),
            line("an eviction", point.eviction_bytes, eviction)
        ))
    });
    let means: Vec<_> = measured
        .iter()
        .flat_map(|point| [&point.access, &point.eviction])
        .filter(|timed| timed.whole.count > 0)
        .collect();
    let fitting = means.iter().filter(|timed| timed.fits()).count();
    // The points that figures show.
    let behind: Vec<_> = measured
        .iter()
        .filter(|point| point.link.is_some())
        .map(Measured::with_evictions_off_by)
        .collect();
    let fitting_behind = behind.iter().filter(|by| is_near(**by)).count();
    format!(
        "## Measured: servers, TLS and files on this machine, shared with the client\n\n{}\n\
         {}The model is within {:.0} % of {fitting} of {} means, and within that of \
         {fitting_behind} of {} accesses with their share of evictions behind a link, which \
         figures show. It uses these rates of the machine: a question takes {:.3} ms; TLS and \
         sockets carry {:.0} MB/s and take {:.2} ns of processors a byte; {} processors.\
         \n\n{}\n{}",
        markdown::table(HEAD, rows),
        meanwhile,
        100.0 * OFF_MAX,
        means.len(),
        behind.len(),
        1e3 * ground.question_seconds,
        ground.bytes_per_second / 1e6,
        1e9 * ground.byte_worked,
        ground.processors,
        files(measured),
        bytes.collect::<String>()
    )
}

/// A table of other ORAMs, and their times relative to the tree that they are compared with.
fn beside(measured: &[Measured], beside: &[OramComparison]) -> String {
    const HEAD: &str = "\
| ORAM of as many blocks, behind the same link | with its share of evictions, one after the other, \
s: mean ± deviation (times) | model, s | of S³ORAM's | several in flight, s | model, s \
| of S³ORAM's |
|---|---|---:|---:|---|---:|---:|
";
    let shares = measured.iter().find(|point| point.link.is_some()).map(Measured::with_evictions);
    let of_shares = |seconds: f64| {
        shares.map_or_else(|| "–".to_owned(), |shares| format!("{:.1} times", seconds / shares))
    };
    let spread = |spread: &Spread| {
        format!("{:.2} ± {:.2} ({})", spread.mean, spread.deviation, spread.count)
    };
    let rows = beside.iter().map(|it| {
        let together = match (&it.together, it.together_modelled) {
            (Some(timed), Some(modelled)) => {
                format!("{} | {modelled:.2} | {}", spread(timed), of_shares(timed.mean))
            }
            _ => "– | – | –".to_owned(),
        };
        format!(
            "| {}, {} blocks of {} KiB | {} | {:.2} | {} | {together} |",
            it.other.name(),
            it.blocks,
            it.block_bytes >> 10,
            spread(&it.alone),
            it.alone_modelled,
            of_shares(it.alone.mean)
        )
    });
    let shares = shares
        .map(|seconds| format!("S³ORAM takes {seconds:.2} s, with its share of an eviction.\n"));
    format!(
        "## Measured for comparison\n\n{}{}",
        markdown::table(HEAD, rows),
        shares.unwrap_or_default()
    )
}

/// A table of the times of files, in the pieces in which they are read and written.
fn files(measured: &[Measured]) -> String {
    const HEAD: &str = "\
| tree | files, in pieces of | read, ns of a processor a byte | written | until it is durable, \
ns a byte | a little, ms |
|---|---:|---:|---:|---:|---:|
";
    let direct = measured.iter().filter(|point| point.link.is_none());
    let rows = direct.flat_map(|point| {
        // Results of earlier versions lack the times of files.
        point.files.iter().filter(|files| files.piece_bytes > 0).map(|files| {
            format!(
                "| {} | {} B | {:.2} | {:.2} | {:.2} | {:.2} |",
                tree_of(point.shape),
                files.piece_bytes,
                1e9 * files.read_byte_worked,
                1e9 * files.written_byte_worked,
                1e9 * files.written_byte_waited,
                1e3 * files.sync_seconds
            )
        })
    });
    markdown::table(HEAD, rows)
}

/// The parameters of a tree in words, and the number of its servers if it is not three.
fn tree_of(shape: MeasuredTree) -> String {
    let MeasuredTree { block_bytes, height, slots, accesses, servers, colluding, .. } = shape;
    let tree = format!("{} KiB, H {height}, Z {slots}, A {accesses}", block_bytes >> 10);
    match servers {
        3 => tree,
        _ => format!("{tree}, {servers} servers of which {colluding} may collude"),
    }
}

fn timed_cells(timed: &Timed) -> String {
    // Results of earlier versions lack the processor time.
    let worked = match timed.worked.count {
        0 => "– | – | –".to_owned(),
        _ => format!(
            "{:.2} ± {:.2} | {:.2} | {:+.0} %",
            1e3 * timed.worked.mean,
            1e3 * timed.worked.deviation,
            1e3 * timed.modelled_worked,
            100.0 * (timed.modelled_worked / timed.worked.mean - 1.0)
        ),
    };
    format!(
        "{} | {:.2} | {:.2} | {} | {:+.0} % | {worked}",
        shown(&timed.whole),
        1e3 * timed.client.mean,
        1e3 * timed.modelled.seconds(),
        off(timed.off_by()),
        100.0 * timed.off_median_by()
    )
}

/// Formats a relative error of the model, in a table.
fn off(by: f64) -> String {
    let remark = if is_near(by) { "" } else { ", more than 5 %" };
    format!("{:+.0} %{remark}", 100.0 * by)
}

fn shown(spread: &Spread) -> String {
    let [mean, deviation, median, least, most] =
        [spread.mean, spread.deviation, spread.median, spread.least, spread.most]
            .map(|it| 1e3 * it);
    format!("{mean:.2} ± {deviation:.2} ({median:.2}; {least:.2} to {most:.2}; {})", spread.count)
}
