//! The verdict on one leak.

use serde_json::json;

use crate::leaks::Leak;
use crate::report::ReportLine;
use crate::test_runs::{DoesNotCompile, TestRuns};
use crate::tests::{Test, by_program};

/// The verdict on one leak.
pub(crate) enum Verdict {
    /// All tests listed for the leak failed.
    Found { by: Vec<String> },
    /// At least one test listed for the leak passed.
    Survived { missed_by: Vec<String>, found_by: Vec<String> },
    /// The leak cannot be planted, because a source has changed.
    NoLongerApplies(String),
    /// The leak does not compile, because a source has changed.
    DoesNotCompile(DoesNotCompile),
}

impl Verdict {
    /// Runs the tests listed for `leak`, which is planted in the copy. If the leak has a switch,
    /// turns it on.
    ///
    /// # Errors
    /// See [`TestRuns::run`].
    pub(crate) fn judge(
        leak: &Leak,
        tests: &TestRuns<'_>,
        switch: Option<usize>,
    ) -> Result<Self, String> {
        let mut found_by = Vec::new();
        for (program, names) in by_program(&leak.found_by) {
            found_by.extend(tests.run(program, &names, switch)?);
        }
        let missed = leak.found_by.iter().map(Test::to_string);
        let missed_by: Vec<_> = missed.filter(|test| !found_by.contains(test)).collect();
        Ok(match missed_by.is_empty() {
            true => Self::Found { by: found_by },
            false => Self::Survived { missed_by, found_by },
        })
    }

    pub(crate) fn is_found(&self) -> bool {
        matches!(self, Self::Found { .. })
    }

    pub(crate) fn line(&self, leak: &Leak) -> ReportLine {
        let name = &leak.name;
        match self {
            Self::Found { by } => ReportLine {
                json: json!({ "leak": name, "verdict": "found", "by": by }),
                text: format!("found     {name}: {}", by.join(", ")),
            },
            Self::Survived { missed_by, found_by } => ReportLine {
                json: json!({
                    "leak": name,
                    "verdict": "survived",
                    "missed_by": missed_by,
                    "found_by": found_by,
                }),
                text: format!(
                    "SURVIVED  {name}: missed by {}; found by: {}",
                    missed_by.join(", "),
                    if found_by.is_empty() { "none".to_owned() } else { found_by.join(", ") },
                ),
            },
            Self::NoLongerApplies(reason) => ReportLine {
                json: json!({ "leak": name, "verdict": "no longer applies", "reason": reason }),
                text: format!("OUTDATED  {name}: {reason}"),
            },
            Self::DoesNotCompile(errors) => ReportLine {
                json: json!({
                    "leak": name,
                    "verdict": "does not compile",
                    "reason": errors.to_string(),
                }),
                text: format!("OUTDATED  {name}: it does not compile\n{errors}"),
            },
        }
    }
}
