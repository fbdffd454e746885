//! A view as text for a terminal.

use std::fmt::Write;
use std::time::Duration;

use oblivio_core::view::Operation;

use super::counts::{LevelCounts, TreeCounts};
use super::evaluation::ViewEvaluation;
use super::exchanges::{Evictions, Exchanges, MessageCount};
use super::leaves::LeafCounts;
use super::parties::Parties;
use super::rates::Rates;
use super::uniformity::Uniformity;

/// Columns of the longest bar.
const BAR_COLUMNS: u64 = 22;
/// Columns of the time axis.
const TIME_COLUMNS: usize = 60;

/// The view as lines of text.
pub(super) fn text(evaluation: &ViewEvaluation) -> String {
    let mut text = totals(evaluation);
    let parties = evaluation.counts.parties.as_ref();
    let parts = [
        parties.map(parties_line),
        rates(evaluation.counts.rates.as_ref()),
        levels(evaluation),
        leaves(evaluation),
        parties.map(|parties| exchanges(parties, &evaluation.counts.exchanges)),
    ];
    parts.into_iter().flatten().for_each(|part| {
        let _ = write!(text, "\n\n{part}");
    });
    text
}

fn totals(evaluation: &ViewEvaluation) -> String {
    let mut lines = vec!["storage saw      trips     pieces          bytes".to_owned()];
    lines.extend(Operation::ALL.map(|operation| {
        let total = evaluation.counts.tally.of(operation);
        format!(
            "{:<10} {:>11} {:>10} {:>14}",
            operation.name(),
            total.trips,
            total.events,
            total.bytes
        )
    }));
    let could = evaluation.counts.capabilities;
    let could = could.map_or("not recorded".to_owned(), |these| these.to_string());
    lines.push(format!("capabilities of storage, besides whole buckets: {could}"));
    lines.join("\n")
}

/// A line that names the servers whose view is shown, and says if they are more than may collude.
fn parties_line(Parties { servers, shown, .. }: &Parties) -> String {
    let (count, colluding) = (servers.count(), servers.colluding());
    let of = format!("of {count} servers, of which {colluding} may collude");
    match (&shown[..], colluding) {
        ([one], _) => format!("this is what server {one} saw, {of}"),
        (all, _) if all.len() <= usize::from(colluding) => {
            format!("this is what servers {} saw together, {of}", listed(all))
        }
        (all, _) if all.len() == usize::from(count) => format!(
            "this is what all {count} servers saw, and {colluding} of them may collude: choose \
             with --parties which servers to show together"
        ),
        (all, _) => format!(
            "this is what servers {} saw together: MORE than may collude, {colluding} of \
             {count}.\nTogether they recover all blocks, though encrypted, and learn which slot \
             each access is for, and so when a block is\naccessed again; if the position map is on \
             the servers, also which blocks are neighbours. Nothing below shows that",
            listed(all)
        ),
    }
}

/// Lists numbers as a sentence does: `1, 2 and 3`.
fn listed(numbers: &[u8]) -> String {
    let names: Vec<_> = numbers.iter().map(u8::to_string).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

/// Lines about the messages between servers, and whether all evictions looked alike.
fn exchanges(parties: &Parties, exchanges: &Exchanges) -> String {
    if parties.watched.is_empty() {
        return "messages between servers were not recorded: start each server with --record-views \
                to see them"
            .into();
    }
    let mut text = "messages between servers\n   from     to   messages          bytes".to_owned();
    for ((from, to), MessageCount { messages, bytes }) in &exchanges.sent {
        let _ = write!(text, "\n{from:>7} {to:>6} {messages:>10} {bytes:>14}");
    }
    if exchanges.sent.is_empty() {
        text += "\n   none: no path was evicted";
    }
    for Evictions { party, tree, attempts, alike, messages, bytes } in exchanges.evictions() {
        let _ = write!(text, "\nserver {party}, tree {tree}: {attempts} evictions, ");
        if alike == attempts {
            let _ = write!(text, "each with the same {messages} messages of {bytes} bytes");
        } else {
            let _ = write!(
                text,
                "of which {alike} had the same {messages} messages of {bytes} bytes, and {} had \
                 OTHERS. Servers can learn from that,\n   unless these attempts were broken off \
                 because a server or a link failed",
                attempts - alike
            );
        }
    }
    if exchanges.unannounced > 0 {
        let _ = write!(
            text,
            "\n{} evictions were begun by other servers, and the client did not announce them to \
             this one",
            exchanges.unannounced
        );
    }
    text
}

/// Lines with the trips per second over time, or a note that times were not recorded.
fn rates(rates: Option<&Rates>) -> Option<String> {
    let Some(rates) = rates else {
        return Some("times of trips were not recorded: record the view again to see them".into());
    };
    let (column, _) = rates.per_second(Operation::Read, TIME_COLUMNS);
    let mut text = format!(
        "trips per second, over {} ({} per column)",
        seconds(rates.duration()),
        seconds(column)
    );
    for operation in Operation::ALL {
        let (_, per_second) = rates.per_second(operation, TIME_COLUMNS);
        let most = per_second.iter().copied().fold(0.0, f64::max);
        if most > 0.0 {
            let _ = write!(
                text,
                "\n{:<9}{}  {:.0} at most, {:.1} on average",
                operation.name(),
                per_second.iter().map(|rate| block(rate / most)).collect::<String>(),
                most,
                rates.average(operation)
            );
        }
    }
    Some(text)
}

fn seconds(duration: Duration) -> String {
    match duration.as_secs_f64() {
        seconds if seconds < 1.0 => format!("{:.0} ms", seconds * 1e3),
        seconds if seconds < 600.0 => format!("{seconds:.1} s"),
        seconds => format!("{:.0} min", seconds / 60.0),
    }
}

/// Returns a block character that is filled from below to the fraction `part`, from 0 to 1.
fn block(part: f64) -> char {
    const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let eighths = (part * 8.0).ceil().clamp(0.0, 8.0) as usize;
    BLOCKS[eighths]
}

/// Lines with the reads and writes of each level of each tree.
fn levels(evaluation: &ViewEvaluation) -> Option<String> {
    let trees = &evaluation.counts.trees;
    if trees.is_empty() {
        return None;
    }
    let mut text =
        "how often each level was read and written, in buckets (or parts of them)".to_owned();
    for (id, tree) in trees {
        let alike = trees.range(..id).find(|(_, other)| other.is_like(tree));
        match alike {
            Some((other, _)) => {
                let _ = write!(text, "\ntree {id}: as tree {other}");
            }
            None => write_levels(&mut text, *id, tree),
        }
    }
    if evaluation.counts.pieces_left_out > 0 {
        let _ = write!(text, "\nother trees: {} pieces", evaluation.counts.pieces_left_out);
    }
    if trees.keys().any(|id| *id >= 2) {
        text += "\nIn a volume, trees 0 and 3 hold the superblock, tree 1 the anchor, and all \
                 others the data. On share servers, tree 100 is what the first server sees of \
                 the data, and tree 101 what the second sees; trees from 110 on are the same for \
                 the position map.";
    }
    Some(text)
}

fn write_levels(text: &mut String, id: u16, tree: &TreeCounts) {
    let most = tree.levels().map(|(_, counts)| counts.read.max(counts.written)).max();
    let most = most.unwrap_or(0).max(1);
    if let [(level, LevelCounts { read, written })] = tree.levels().collect::<Vec<_>>()[..] {
        let _ = write!(text, "\ntree {id}: level {level} alone, {read} read, {written} written");
        return;
    }
    let _ = write!(
        text,
        "\ntree {id}\n   level       read {:bars$}     written",
        "",
        bars = BAR_COLUMNS as usize
    );
    for (level, LevelCounts { read, written }) in tree.levels() {
        let _ = write!(
            text,
            "\n{level:>8} {read:>10} {:<bars$} {written:>11} {}",
            bar(read, most),
            bar(written, most),
            bars = BAR_COLUMNS as usize
        );
    }
    while text.ends_with(' ') {
        text.pop();
    }
}

/// Returns a bar of block characters for `count`, on a scale on which `most` has [`BAR_COLUMNS`].
/// The bar has at least one character unless `count` is 0.
fn bar(count: u64, most: u64) -> String {
    let columns = (u128::from(count) * u128::from(BAR_COLUMNS)).div_ceil(u128::from(most));
    "█".repeat(columns as usize)
}

/// Lines that say whether leaves are uniform, for each tree that shows leaves.
fn leaves(evaluation: &ViewEvaluation) -> Option<String> {
    if evaluation.leaves.is_empty() {
        return Some("no tree shows which leaf an access goes to".into());
    }
    let mut text = "where accesses went".to_owned();
    let mut shown: Vec<(u16, &LeafCounts)> = Vec::new();
    for (id, tree) in &evaluation.leaves {
        match shown.iter().find(|(_, other)| other.is_like(tree)) {
            Some((other, _)) => {
                let _ = write!(text, "\ntree {id}: as tree {other}");
            }
            None => {
                let _ = write!(text, "\n{}", tree_line(*id, tree));
                shown.push((*id, tree));
            }
        }
    }
    Some(text)
}

fn tree_line(id: u16, tree: &LeafCounts) -> String {
    let evictions = match tree.evictions() {
        Some(evictions) => format!(", and {evictions} evictions in their order"),
        None => String::new(),
    };
    let mut text = format!(
        "tree {id}: {} accesses to paths of {} leaves{evictions}",
        tree.accesses(),
        tree.leaves()
    );
    if tree.unknown() > 0 {
        let _ = write!(
            text,
            "\n   {} accesses to unknown leaves: they came before the first eviction that was seen",
            tree.unknown()
        );
    }
    let Some(tested) = Uniformity::of(tree.bins()) else {
        text += "\n   too few to test whether they are uniform";
        return text;
    };
    let counts: Vec<_> = tested.bins.iter().map(u64::to_string).collect();
    let _ = write!(
        text,
        "\n   in {} runs of leaves: {}\n   chi-square {:.1} with {} degrees of freedom, p = {}: {}",
        counts.len(),
        counts.join(" "),
        tested.chi_square,
        tested.degrees_of_freedom,
        probability(tested.p),
        tested.words()
    );
    text
}

fn probability(p: f64) -> String {
    if p >= 0.001 { format!("{p:.3}") } else { format!("{p:.0e}") }
}
