//! Progress bars: on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `accesses` accesses, on standard error.
pub(crate) fn bar(accesses: u64) -> ProgressBar {
    bar_of(accesses, "accesses")
}

/// What a bar of parts counts of each part.
const STEPS_PER_PART: u64 = 1000;

/// A bar of things that go on for some time each, and are named by its message.
pub(crate) fn bar_of_parts(parts: u64) -> ProgressBar {
    let bar = ProgressBar::new(parts * STEPS_PER_PART);
    match ProgressStyle::with_template("{bar:40} {percent:>3} %  {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// The position of a bar of parts, when some parts are done, and so much of the next.
pub(crate) fn position(parts_done: u64, part: f64) -> u64 {
    parts_done * STEPS_PER_PART + (part.clamp(0.0, 1.0) * STEPS_PER_PART as f64) as u64
}

/// A bar of `count` things, on standard error.
pub(crate) fn bar_of(count: u64, things: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!(
        "{{bar:40}} {{human_pos}} of {{human_len}} {things}, {{per_sec}}, {{eta}} left"
    ));
    match style {
        Ok(style) => ProgressBar::new(count).with_style(style),
        Err(_) => ProgressBar::new(count),
    }
}
