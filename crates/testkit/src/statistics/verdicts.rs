//! From p-values to a verdict.

/// Collects the p-values of a family of tests and judges them together.
///
/// Bonferroni: with `n` tests, one alarms when its p-value is below `false_alarms / n`. So whatever
/// the tests have to do with each other, a family on which nothing is wrong alarms at most once in
/// `1 / false_alarms` runs over fresh coins.
#[must_use = "nothing is judged before `conclude`"]
#[derive(Debug)]
pub struct Verdicts {
    false_alarms: f64,
    tests: Vec<(String, f64)>,
}

impl Verdicts {
    /// A family with this rate of false alarms over all of its tests.
    pub fn new(false_alarms: f64) -> Self {
        Self { false_alarms, tests: Vec::new() }
    }

    /// Adds the p-value of one test.
    pub fn add(&mut self, name: impl Into<String>, p_value: f64) {
        self.tests.push((name.into(), p_value));
    }

    /// The tests that alarm, the worst first.
    pub fn alarms(&self) -> Vec<(&str, f64)> {
        let threshold = self.false_alarms / self.tests.len() as f64;
        let mut alarms: Vec<_> = self
            .tests
            .iter()
            // A p-value that is no number comes from no data: that is an alarm too.
            .filter(|(_, p_value)| p_value.is_nan() || *p_value < threshold)
            .map(|(name, p_value)| (name.as_str(), *p_value))
            .collect();
        alarms.sort_by(|a, b| a.1.total_cmp(&b.1));
        alarms
    }

    /// Judges.
    ///
    /// # Panics
    /// When a test alarms, or there was none.
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
    fn no_number_is_an_alarm() {
        let mut verdicts = Verdicts::new(1e-2);
        verdicts.add("fine", 0.5);
        verdicts.add("no data", f64::NAN);
        verdicts.conclude();
    }

    #[test]
    #[should_panic = "no test was added"]
    fn silence_is_no_acquittal() {
        Verdicts::new(1e-6).conclude();
    }
}
