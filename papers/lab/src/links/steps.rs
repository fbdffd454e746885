//! From the Path ORAM of S³ORAM's Table 1 to a volume of this project, one change after the other.

use serde::{Deserialize, Serialize};

use super::forms::path;
use super::{Form, PAPER_BLOCK_BYTES, PAPER_DISK_BYTES, TABLE1_LINK};
use crate::LabError;
use oblivio_models::link::{LINKS, Link, Traffic};

/// What is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// Nothing: Path ORAM Z5 with 19 levels on the link of the table, down and then up.
    Paper,
    /// The link is that of the paper's laptop. Back after this.
    HomeLink,
    /// The link is that of the paper's phone. Back after this.
    LteLink,
    /// Four blocks a bucket. Back after this.
    FourSlots,
    /// The next path comes down while the last goes up.
    BothWays,
    /// RAW ORAM instead of Path ORAM: paths are written every fifth time, sealed, and with heads.
    Raw,
    /// The client keeps the upper levels.
    Default,
}

/// What a request takes after a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepCell {
    /// Which.
    pub step: Step,
    /// What one takes, or the time between two that are done at the same time.
    pub seconds: f64,
}

impl Step {
    /// In a few words.
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

/// All steps.
pub(super) fn run() -> Result<Vec<StepCell>, LabError> {
    let named = |name| LINKS.iter().find(|it| it.name == name).map_or(TABLE1_LINK, |it| it.link);
    let volume = |form: Form| form.traffic(PAPER_DISK_BYTES, PAPER_BLOCK_BYTES);
    let five = path(19, 5, PAPER_BLOCK_BYTES);
    let four = path(19, 4, PAPER_BLOCK_BYTES);
    let serial = |traffic: &Traffic, link: Link| traffic.serial_seconds(link);
    let mut steps = vec![
        (Step::Paper, serial(&five, TABLE1_LINK)),
        (Step::HomeLink, serial(&five, named("home"))),
        (Step::LteLink, serial(&five, named("lte"))),
        (Step::FourSlots, serial(&four, TABLE1_LINK)),
        (Step::BothWays, five.pipelined_seconds(TABLE1_LINK)),
    ];
    for (step, form) in [(Step::Raw, Form::Raw), (Step::Default, Form::Default)] {
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
        assert!((seconds(Step::Paper) - expected).abs() < 0.01, "{steps:?}");
        assert!((seconds(Step::Paper) - 20.3).abs() < 0.06, "{steps:?}");
        assert!((seconds(Step::HomeLink) - 23.4).abs() < 0.1, "{steps:?}");
        assert!((seconds(Step::FourSlots) - 0.8 * (expected - 0.05) - 0.05).abs() < 0.01);
        // Each of those that follow each other is shorter.
        let last = [Step::Paper, Step::BothWays, Step::Raw, Step::Default].map(seconds);
        assert!(last.is_sorted_by(|longer, shorter| longer > shorter), "{last:?}");
    }
}
