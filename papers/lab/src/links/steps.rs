//! The steps from the Path ORAM of S³ORAM's Table 1 to a volume of this project, each with one
//! change.

use serde::{Deserialize, Serialize};

use super::forms::path;
use super::{Form, PAPER_BLOCK_BYTES, PAPER_DISK_BYTES, TABLE1_LINK};
use crate::LabError;
use oblivio_models::link::{LINKS, Link, Traffic};

/// A step, which makes one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkStep {
    /// No change: Path ORAM Z5 with 19 levels on the link of Table 1. The client first reads the
    /// path, and then writes it.
    Paper,
    /// The link of the paper's laptop; later steps do not keep this change.
    HomeLink,
    /// The link of the paper's phone; later steps do not keep this change.
    LteLink,
    /// Four blocks per bucket; later steps do not keep this change.
    FourSlots,
    /// Reading the next path while the previous path is written.
    BothWays,
    /// RAW ORAM instead of Path ORAM: every fifth access writes a path, and buckets have headers
    /// and seals.
    Raw,
    /// The client keeps the upper levels, as in the default volume.
    Default,
}

/// The time of a request after a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepCell {
    /// The step after which the request takes this time.
    pub step: LinkStep,
    /// Seconds of a request, or between two requests if they overlap.
    pub seconds: f64,
}

impl LinkStep {
    /// A short label for the step.
    pub fn label(self) -> &'static str {
        match self {
            Self::Paper => "Path Z5, 19 levels, 27/6",
            Self::HomeLink => "that on 29/5",
            Self::LteLink => "that on 27/9",
            Self::FourSlots => "that with Z4",
            Self::BothWays => "that, both ways at once",
            Self::Raw => "… as RAW ORAM",
            Self::Default => "… as the default volume",
        }
    }
}

/// Computes the times of all steps.
pub(super) fn run() -> Result<Vec<StepCell>, LabError> {
    let named = |name| LINKS.iter().find(|it| it.name == name).map_or(TABLE1_LINK, |it| it.link);
    let volume = |form: Form| form.traffic(PAPER_DISK_BYTES, PAPER_BLOCK_BYTES);
    let five = path(19, 5, PAPER_BLOCK_BYTES);
    let four = path(19, 4, PAPER_BLOCK_BYTES);
    let serial = |traffic: &Traffic, link: Link| traffic.serial_seconds(link);
    let mut steps = vec![
        (LinkStep::Paper, serial(&five, TABLE1_LINK)),
        (LinkStep::HomeLink, serial(&five, named("home"))),
        (LinkStep::LteLink, serial(&five, named("lte"))),
        (LinkStep::FourSlots, serial(&four, TABLE1_LINK)),
        (LinkStep::BothWays, five.pipelined_seconds(TABLE1_LINK)),
    ];
    for (step, form) in [(LinkStep::Raw, Form::Raw), (LinkStep::Default, Form::Default)] {
        let traffic = volume(form)?;
        steps.extend(traffic.map(|traffic| (step, traffic.pipelined_seconds(TABLE1_LINK))));
    }
    Ok(steps.into_iter().map(|(step, seconds)| StepCell { step, seconds }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_20_3_seconds_are_99_6_megabits_down_and_as_many_up() {
        let steps = run().unwrap();
        let seconds = |step| steps.iter().find(|cell| cell.step == step).unwrap().seconds;
        let megabits = 19.0 * 5.0 * 131_072.0 * 8.0 / 1e6;
        let expected = megabits / 27.0 + megabits / 6.0 + 2.0 * 0.025;
        assert!((seconds(LinkStep::Paper) - expected).abs() < 0.01, "{steps:?}");
        assert!((seconds(LinkStep::Paper) - 20.3).abs() < 0.06, "{steps:?}");
        assert!((seconds(LinkStep::HomeLink) - 23.4).abs() < 0.1, "{steps:?}");
        assert!((seconds(LinkStep::FourSlots) - 0.8 * (expected - 0.05) - 0.05).abs() < 0.01);
        // Each of these steps is faster than the one before.
        let last =
            [LinkStep::Paper, LinkStep::BothWays, LinkStep::Raw, LinkStep::Default].map(seconds);
        assert!(last.is_sorted_by(|longer, shorter| longer > shorter), "{last:?}");
    }
}
