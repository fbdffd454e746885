//! What a reader must know before any figure.

/// What a report is about. What is empty is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The title of the page.
    pub title: String,
    /// The version of the program that made it.
    pub version: String,
    /// The machine that measured.
    pub machine: String,
    /// When it was measured, as people write it.
    pub when: String,
}

impl About {
    /// All but the title: what each is, and what it says.
    pub(super) fn facts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let facts = [("Version", &self.version), ("Machine", &self.machine), ("When", &self.when)];
        facts
            .into_iter()
            .map(|(name, text)| (name, text.trim()))
            .filter(|(_, text)| !text.is_empty())
    }
}
