//! The facts at the top of a report.

/// Facts about a report. Empty values are omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The title of the page.
    pub title: String,
    /// The version of the program that made the report.
    pub version: String,
    /// The name of the machine of the measurements.
    pub machine: String,
    /// The date of the measurement, as free text.
    pub when: String,
}

impl About {
    /// The names and values of all facts except the title.
    pub(super) fn facts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let facts = [("Version", &self.version), ("Machine", &self.machine), ("When", &self.when)];
        facts
            .into_iter()
            .map(|(name, text)| (name, text.trim()))
            .filter(|(_, text)| !text.is_empty())
    }
}
