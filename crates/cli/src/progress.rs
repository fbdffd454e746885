//! Progress bars: on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `accesses` accesses, on standard error.
pub(crate) fn bar(accesses: u64) -> ProgressBar {
    bar_of(accesses, "accesses")
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
