//! The tables, for a terminal and for Markdown.

use std::fmt::Write;

use super::{Counts, Results, Row, Run};

/// The width of the column of names.
const NAME_WIDTH: usize = 29;

const DETAIL_HEAD: &str = "\
| technique                     |  paths |   data | position map | remap | background \
| due evictions | small tree | dummies |    KiB | AES blocks | stash |
|-------------------------------|-------:|-------:|-------------:|------:|-----------:\
|--------------:|-----------:|--------:|-------:|-----------:|------:|
";

impl Results {
    /// Formats all tables: one per workload, then the gains, then the papers' numbers.
    pub fn text(&self) -> String {
        let details = (0..self.workloads().count()).map(|number| self.detail_table(number));
        let tables = details.chain([self.gain_table(), self.paper_table()]);
        tables.collect::<Vec<_>>().join("\n")
    }

    /// A table of the cost per request under workload `number`: path accesses by purpose, bytes and
    /// AES blocks. It also has the maximum number of blocks in the stash.
    pub fn detail_table(&self, number: usize) -> String {
        let runs = self.rows.iter().filter_map(|row| row.runs.get(number).map(|run| (row, run)));
        let head = self.workloads().nth(number).unwrap_or_default();
        runs.fold(format!("{head}, per request:\n\n{DETAIL_HEAD}"), |mut table, (row, run)| {
            let Run { counts, stash_blocks_peak, .. } = run;
            let each = |count| counts.per_request(count);
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {:NAME_WIDTH$} | {:6.3} | {:6.3} | {:12.3} | {:5.3} | {:10.4} | {:13.3} \
                 | {:10.3} | {:7.3} | {:6.2} | {:10.1} | {stash_blocks_peak:5} |",
                row.technique,
                each(counts.paths()),
                each(counts.data),
                each(counts.position_map),
                each(counts.remap),
                each(counts.background_evictions),
                each(counts.due_evictions),
                each(counts.small),
                each(counts.dummies),
                each(counts.bytes) / 1024.0,
                each(counts.aes_blocks),
            );
            table
        })
    }

    /// A table of bytes per request, as a ratio to the row that a technique is compared with. A
    /// ratio below 1 is a gain. The last column is the geometric mean. Rows that are only compared
    /// with themselves are omitted.
    pub fn gain_table(&self) -> String {
        let columns: Vec<_> = self.workloads().chain(["mean"]).collect();
        let widths: Vec<_> = columns.iter().map(|column| column.len().max(5)).collect();
        let line = |start: &str, cells: Vec<String>| {
            let cells = cells.iter().zip(&widths).map(|(cell, width)| format!(" {cell:>width$} |"));
            format!("| {start} |{}\n", cells.collect::<String>())
        };
        let head = line(
            &format!("{:29} | {:19}", "technique", "bytes over"),
            columns.iter().map(|column| (*column).to_owned()).collect(),
        );
        let rules = widths.iter().map(|width| format!("{}:|", "-".repeat(width + 1)));
        let rule =
            format!("|{}|{}|{}\n", "-".repeat(31), "-".repeat(21), rules.collect::<String>());
        let rows = self.rows.iter().filter(|row| row.technique != row.against).map(|row| {
            let mut over = self.over(&row.technique, &row.against, |counts| counts.bytes);
            over.push(mean(&over));
            let cells = over.iter().map(|ratio| format!("{ratio:.3}"));
            let start = format!("{:NAME_WIDTH$} | {:19}", row.technique, row.against);
            line(&start, cells.collect())
        });
        format!("{head}{rule}{}", rows.collect::<String>())
    }

    /// The ratio of `count` per request between one row and another, for each workload. Empty if a
    /// row is missing.
    pub(super) fn over(
        &self,
        technique: &str,
        against: &str,
        count: impl Fn(&Counts) -> u64,
    ) -> Vec<f64> {
        let runs = |name| self.row(name).map_or(&[][..], |row: &Row| &row.runs);
        let each = |run: &Run| run.counts.per_request(count(&run.counts));
        runs(technique).iter().zip(runs(against)).map(|(a, b)| each(a) / each(b)).collect()
    }
}

/// The geometric mean, which is usual for ratios.
pub(super) fn mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}
