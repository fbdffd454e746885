//! Progress bars: on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar of `accesses` accesses, on standard error.
pub(crate) fn bar(accesses: u64) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:40} {human_pos} of {human_len} accesses, {per_sec}, {eta} left",
    );
    match style {
        Ok(style) => ProgressBar::new(accesses).with_style(style),
        Err(_) => ProgressBar::new(accesses),
    }
}
