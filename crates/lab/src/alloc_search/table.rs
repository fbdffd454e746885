//! The search as tables for a terminal, which are Markdown too.

use std::fmt::Write;

use super::{Candidate, PAPER_PROFILES, Search, Verdict};

const HEAD: &str = "\
| profile    | levels: slots of a bucket                    |  PL | space lost | evictions/access | slots/access | verdict            |
|------------|----------------------------------------------|----:|-----------:|-----------------:|-------------:|--------------------|
";

const PAPER_HEAD: &str = "\
| profile    | PL | paper's PL | space lost | paper's | evictions/access | paper's       | slots/access |
|------------|---:|-----------:|-----------:|---------|-----------------:|---------------|-------------:|
";

impl Search {
    /// A row for the uniform tree and each profile of the search.
    pub fn table(&self) -> String {
        let rows = std::iter::once(&self.baseline).chain(&self.tried);
        rows.fold(HEAD.to_owned(), |mut table, candidate| {
            let shown = Shown::new(candidate, self);
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {:10} | {:44} | {:3} | {} | {} | {} | {:18} |",
                candidate.name,
                candidate.profile,
                shown.path_slots,
                shown.space_loss,
                shown.evictions,
                shown.slots,
                match candidate.verdict {
                    Verdict::Compared => "",
                    Verdict::Taken => "taken",
                    Verdict::Passed => "another is better",
                    Verdict::NoGain => "no gain",
                    Verdict::TooManyEvictions => "too many evictions",
                    Verdict::TooMuchSpace => "too much space",
                    Verdict::NotOnLastTree => "not on last tree",
                }
            );
            table
        })
    }

    /// The profiles of the paper and the one found, beside what the paper states.
    pub fn paper_table(&self) -> String {
        let stated = PAPER_PROFILES.map(|paper| Some(paper.stated_path_slots));
        let rows = self.paper.iter().zip(stated).chain([(self.found(), None)]);
        rows.fold(PAPER_HEAD.to_owned(), |mut table, (candidate, stated)| {
            let shown = Shown::new(candidate, self);
            let (name, path_slots, space_loss, evictions) = match stated {
                Some(stated) => (
                    candidate.name.as_str(),
                    stated.to_string(),
                    "< 1 %",
                    "15 % more, max",
                ),
                None => ("found", String::new(), "", ""),
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                table,
                "| {name:10} | {:2} | {path_slots:>10} | {} | {space_loss:7} | {} | {evictions:13} | {} |",
                shown.path_slots, shown.space_loss, shown.evictions, shown.slots
            );
            table
        })
    }

    /// What the profile found gains, and what it endured, in three lines.
    pub fn summary(&self) -> String {
        let (found, baseline, endurance) = (self.found(), &self.baseline, &self.endurance);
        let top = self.plan.tree_top_levels;
        let saved =
            match (found.slots_per_access(&self.plan), baseline.slots_per_access(&self.plan)) {
                (Some(now), Some(before)) => {
                    format!("{:.1} % fewer slots an access", 100.0 * (1.0 - now / before))
                }
                _ => "the uniform tree is too full".to_owned(),
            };
        let endured = if endurance.ran_away {
            "the last run had too many background evictions to go on".to_owned()
        } else {
            format!(
                "{} accesses in the last run: no failure, {} background evictions, {} at once at most",
                endurance.accesses, endurance.evictions, endurance.evictions_at_once_max
            )
        };
        format!(
            "found: {}\nPL {} instead of {}: {saved}\n{endured}",
            found.profile,
            found.profile.path_slots(top),
            baseline.profile.path_slots(top),
        )
    }
}

/// The figures of a candidate as text, as wide as their columns.
struct Shown {
    path_slots: u64,
    space_loss: String,
    evictions: String,
    slots: String,
}

impl Shown {
    fn new(candidate: &Candidate, search: &Search) -> Self {
        let missing = || if candidate.ran_away() { "ran away" } else { "" }.to_owned();
        let evictions = candidate.evictions_per_access().map(|evictions| format!("{evictions:.4}"));
        let slots = candidate.slots_per_access(&search.plan).map(|slots| format!("{slots:.2}"));
        Self {
            path_slots: candidate.profile.path_slots(search.plan.tree_top_levels),
            space_loss: format!(
                "{:8.2} %",
                100.0 * candidate.profile.space_loss(&search.baseline.profile)
            ),
            evictions: format!("{:>16}", evictions.unwrap_or_else(missing)),
            slots: format!("{:>12}", slots.unwrap_or_default()),
        }
    }
}
