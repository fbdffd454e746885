//! Turns the p-values of tests into a verdict.

/// Collects the p-values of a family of tests and judges them together.
///
/// Bonferroni: with `n` tests, a test raises an alarm if its p-value is below `false_alarms / n`.
/// So even if the tests depend on each other, the probability of a false alarm is at most
/// `false_alarms` for the whole family.
#[must_use = "call `conclude` to judge the tests"]
#[derive(Debug)]
pub struct Verdicts {
    false_alarms: f64,
    tests: Vec<(String, f64)>,
}

impl Verdicts {
    /// Creates a family with this rate of false alarms over all of its tests.
    pub fn new(false_alarms: f64) -> Self {
        Self { false_alarms, tests: Vec::new() }
    }

    /// Adds the p-value of one test.
    pub fn add(&mut self, name: impl Into<String>, p_value: f64) {
        self.tests.push((name.into(), p_value));
    }

    /// The tests whose p-value is too small or NaN, the smallest first.
    pub fn alarms(&self) -> Vec<(&str, f64)> {
        let threshold = self.false_alarms / self.tests.len() as f64;
        let mut alarms: Vec<_> = self
            .tests
            .iter()
            // NaN means that there was no data, which is also an alarm.
            .filter(|(_, p_value)| p_value.is_nan() || *p_value < threshold)
            .map(|(name, p_value)| (name.as_str(), *p_value))
            .collect();
        alarms.sort_by(|a, b| a.1.total_cmp(&b.1));
        alarms
    }

    /// Judges all tests of the family.
    ///
    /// # Panics
    /// If a test alarms, or none was added.
    pub fn conclude(self) {
        assert!(!self.tests.is_empty(), "no test was added");
        let alarms: Vec<_> = self.alarms();
        assert!(
            alarms.is_empty(),
            "{} of {} tests alarm at a false-alarm rate of {:e} for all together: {alarms:?}",
            alarms.len(),
            self.tests.len(),
            self.false_alarms,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_shared_by_all_tests() {
        let mut verdicts = Verdicts::new(1e-2);
        verdicts.add("suspicious", 4e-3);
        assert_eq!(verdicts.alarms(), [("suspicious", 4e-3)]);
        verdicts.add("fine", 0.5);
        assert_eq!(verdicts.alarms(), [("suspicious", 4e-3)]);
        verdicts.add("fine too", 0.5);
        assert_eq!(verdicts.alarms(), []);
        verdicts.conclude();
    }

    #[test]
    #[should_panic = "1 of 2 tests alarm"]
    fn nan_is_an_alarm() {
        let mut verdicts = Verdicts::new(1e-2);
        verdicts.add("fine", 0.5);
        verdicts.add("no data", f64::NAN);
        verdicts.conclude();
    }

    #[test]
    #[should_panic = "no test was added"]
    fn a_family_without_tests_fails() {
        Verdicts::new(1e-6).conclude();
    }
}
