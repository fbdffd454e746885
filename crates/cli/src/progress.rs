//! Progress bars. They are shown on a terminal only.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Shows `what` on a terminal while `work` runs.
pub fn with_spinner<T>(what: &str, work: impl FnOnce() -> T) -> T {
    const TICK: Duration = Duration::from_millis(200);
    let spinner = ProgressBar::new_spinner();
    let spinner = match ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
        Ok(style) => spinner.with_style(style),
        Err(_) => spinner,
    };
    spinner.set_message(what.to_owned());
    spinner.enable_steady_tick(TICK);
    let done = work();
    spinner.finish_and_clear();
    done
}

/// Shows a growing count on a terminal, for work of unknown length.
pub struct Counter(ProgressBar);

impl Counter {
    /// A counter, which starts at 0. `things` names what is counted.
    pub fn new(things: &str) -> Self {
        let counter = ProgressBar::new_spinner();
        let style = format!("{{spinner}} {{human_pos}} {things} ({{elapsed}})");
        // The output of a command goes to the same terminal, so redraw rarely.
        counter.set_draw_target(ProgressDrawTarget::stderr_with_hz(COUNTS_PER_SECOND));
        Self(match ProgressStyle::with_template(&style) {
            Ok(style) => counter.with_style(style),
            Err(_) => counter,
        })
    }

    /// Makes the counter show `count`.
    pub fn set(&self, count: u64) {
        self.0.set_position(count);
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

const COUNTS_PER_SECOND: u8 = 2;

/// A bar of `accesses` accesses, on standard error.
pub fn bar(accesses: u64) -> ProgressBar {
    bar_of(accesses, "accesses")
}

/// Number of steps of a progress bar for each part of the work.
const STEPS_PER_PART: u64 = 1000;

/// Creates a progress bar for work in `parts` parts, which moves also within a part. The caller
/// sets its message to the name of the current part.
pub fn bar_of_parts(parts: u64) -> ProgressBar {
    let bar = ProgressBar::new(parts * STEPS_PER_PART);
    match ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The position of a bar made by [`bar_of_parts`], when `parts_done` parts and the fraction `part`
/// of the next one are complete.
pub fn position(parts_done: u64, part: f64) -> u64 {
    parts_done * STEPS_PER_PART + (part.clamp(0.0, 1.0) * STEPS_PER_PART as f64) as u64
}

/// A bar that counts to `count`, on standard error. `things` names what is counted.
pub fn bar_of(count: u64, things: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!(
        "{{bar:40}} {{human_pos}} of {{human_len}} {things}, {{rate}}, {{eta}} left"
    ));
    let rate = |state: &ProgressState, out: &mut dyn Write| {
        let _ = out.write_str(&rate(state.per_sec()));
    };
    match style {
        Ok(style) => ProgressBar::new(count).with_style(style.with_key("rate", rate)),
        Err(_) => ProgressBar::new(count),
    }
}

/// A rate per second, with a digit after the point only if it is below 10.
fn rate(per_second: f64) -> String {
    if per_second < 10.0 {
        format!("{per_second:.1}/s")
    } else {
        format!("{}/s", HumanCount(per_second.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_rate_has_a_digit_after_the_point() {
        let rates = [0.0, 0.26, 9.96, 33_125.6].map(rate);
        assert_eq!(rates, ["0.0/s", "0.3/s", "10.0/s", "33,126/s"]);
    }
}
