//! The tables of a search, for a terminal and for Markdown.

use std::fmt::Write;

use super::{Candidate, Judge, PAPER_PROFILES, Run, Search, Time, Verdict};

const HEAD: &str = "\
| profile    | levels: slots of a bucket                    |  PL | space lost | evictions/access \
| slots/access | verdict            |
|------------|----------------------------------------------|----:|-----------:|-----------------:\
|-------------:|--------------------|
";

/// The header of a search by time.
const TIMED_HEAD: &str = "\
| profile    | levels: slots of a bucket                    |  PL | space lost | evictions/access \
| cycles/record |  speed | verdict            |
|------------|----------------------------------------------|----:|-----------:|-----------------:\
|--------------:|-------:|--------------------|
";

const PAPER_HEAD: &str = "\
| profile    | PL | paper's PL | space lost | paper's | evictions/access | paper's       \
| slots/access |
|------------|---:|-----------:|-----------:|---------|-----------------:|---------------\
|-------------:|
";

const TIMED_PAPER_HEAD: &str = "\
| profile    | PL | paper's PL | space lost | paper's | evictions/access | paper's       \
| cycles/record |  speed |
|------------|---:|-----------:|-----------:|---------|-----------------:|---------------\
|--------------:|-------:|
";

/// A search as tables and a summary.
pub trait SearchTables {
    /// A table with a row for the uniform tree, and a row per tried profile.
    fn table(&self) -> String;

    /// A table that compares the paper's profiles, the found profile, and the numbers that the
    /// paper states.
    fn paper_table(&self) -> String;

    /// The gain of the found profile and its final run, in three lines.
    fn summary(&self) -> String;
}

impl SearchTables for Search {
    fn table(&self) -> String {
        let rows = std::iter::once(&self.baseline).chain(&self.tried);
        rows.fold(head(self, HEAD, TIMED_HEAD), |mut table, candidate| {
            let shown = CandidateRow::new(candidate, self);
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {:10} | {:44} | {:3} | {} | {} | {} | {:18} |",
                candidate.name,
                candidate.profile,
                shown.path_slots,
                shown.space_loss,
                shown.evictions,
                shown.cost,
                match candidate.verdict {
                    Verdict::ComparisonOnly => "",
                    Verdict::Taken => "taken",
                    Verdict::NotBest => "another is better",
                    Verdict::NoGain => "no gain",
                    Verdict::TooManyEvictions => "too many evictions",
                    Verdict::TooMuchSpace => "too much space",
                    Verdict::NotOnLastTree => "not on last tree",
                }
            );
            table
        })
    }

    fn paper_table(&self) -> String {
        let stated = PAPER_PROFILES.map(|paper| Some(paper.stated_path_slots));
        let rows = self.paper.iter().zip(stated).chain([(self.found(), None)]);
        rows.fold(head(self, PAPER_HEAD, TIMED_PAPER_HEAD), |mut table, (candidate, stated)| {
            let shown = CandidateRow::new(candidate, self);
            let (name, path_slots, space_loss, evictions) = match stated {
                Some(stated) => {
                    (candidate.name.as_str(), stated.to_string(), "< 1 %", "15 % more, max")
                }
                None => ("found", String::new(), "", ""),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {name:10} | {:2} | {path_slots:>10} | {} | {space_loss:7} | {} | {evictions:13} \
                 | {} |",
                shown.path_slots, shown.space_loss, shown.evictions, shown.cost
            );
            table
        })
    }

    fn summary(&self) -> String {
        let (found, baseline, endurance) = (self.found(), &self.baseline, &self.endurance);
        let top = self.plan.tree_top_levels;
        let less = match self.plan.judge {
            Judge::Slots => "fewer slots an access",
            Judge::Time(_) => "less time",
        };
        let saved = match (found.cost(&self.plan), baseline.cost(&self.plan)) {
            (Some(now), Some(before)) => format!("{:.1} % {less}", 100.0 * (1.0 - now / before)),
            _ => "the uniform tree is too full".to_owned(),
        };
        format!(
            "found: {}\nPL {} instead of {}: {saved}\n{}",
            found.profile,
            found.profile.path_slots(top),
            baseline.profile.path_slots(top),
            endured(endurance),
        )
    }
}

fn head(search: &Search, by_slots: &str, by_time: &str) -> String {
    match search.plan.judge {
        Judge::Slots => by_slots.to_owned(),
        Judge::Time(_) => by_time.to_owned(),
    }
}

fn endured(Run { accesses, evictions, evictions_at_once_max, ran_away, time, .. }: &Run) -> String {
    if *ran_away {
        return "the last run had too many background evictions to go on".to_owned();
    }
    match time {
        None => format!(
            "{accesses} accesses in the last run: no failure, {evictions} background evictions, \
             {evictions_at_once_max} at once at most"
        ),
        Some(Time { cycles, records }) => format!(
            "the last run, with another seed: {:.0} cycles/record, {:.4} background evictions an \
             access",
            *cycles as f64 / *records as f64,
            *evictions as f64 / *accesses as f64
        ),
    }
}

/// The figures of a candidate as text, padded to the width of their columns.
struct CandidateRow {
    path_slots: u64,
    space_loss: String,
    evictions: String,
    /// The quantity that the search minimizes; for time, also the speed over the uniform tree.
    cost: String,
}

impl CandidateRow {
    fn new(candidate: &Candidate, search: &Search) -> Self {
        let missing = || if candidate.ran_away() { "ran away" } else { "" }.to_owned();
        let evictions = candidate.evictions_per_access().map(|evictions| format!("{evictions:.4}"));
        let cost = candidate.cost(&search.plan);
        Self {
            path_slots: candidate.profile.path_slots(search.plan.tree_top_levels),
            space_loss: format!(
                "{:8.2} %",
                100.0 * candidate.profile.space_loss(&search.baseline.profile)
            ),
            evictions: format!("{:>16}", evictions.unwrap_or_else(missing)),
            cost: match (search.plan.judge, search.baseline.cycles_per_record()) {
                (Judge::Time(_), Some(uniform)) => {
                    let cycles = cost.map(|cycles| format!("{cycles:.0}")).unwrap_or_default();
                    let speed =
                        cost.map(|cycles| format!("{:.3}", uniform / cycles)).unwrap_or_default();
                    format!("{cycles:>13} | {speed:>6}")
                }
                _ => {
                    let slots = cost.map(|slots| format!("{slots:.2}")).unwrap_or_default();
                    format!("{slots:>12}")
                }
            },
        }
    }
}
