//! The damage that a rescue reports.

/// The damage in storage and in the client's directory, one entry for each problem found. Public.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    entries: Vec<String>,
    count: u64,
}

/// Maximum number of entries that are listed: all of a store may be damaged.
const ENTRIES_MAX: usize = 1000;

impl Damage {
    /// Adds an entry.
    pub fn push(&mut self, what: String) {
        self.count += 1;
        let is_new = self.entries.last() != Some(&what);
        if is_new && self.entries.len() < ENTRIES_MAX {
            self.entries.push(what);
        }
    }

    /// The number of entries that were added, including those not listed.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first entries added. Repetitions in a row are listed once.
    pub fn entries(&self) -> &[String] {
        &self.entries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_damage_is_counted_and_part_of_it_listed() {
        let mut damage = Damage::default();
        (0..3 * ENTRIES_MAX).for_each(|n| damage.push(n.to_string()));
        assert_eq!((damage.count(), damage.entries().len()), (3 * ENTRIES_MAX as u64, ENTRIES_MAX));
        assert_eq!(damage.entries()[ENTRIES_MAX - 1], (ENTRIES_MAX - 1).to_string());

        let mut damage = Damage::default();
        ["cut", "off", "off", "off"].into_iter().for_each(|what| damage.push(what.into()));
        assert_eq!((damage.count(), damage.entries()), (4, &["cut".into(), "off".into()][..]));
    }
}
