//! The simulator's DRAM compared with published simulators: bandwidths under load, and the latency
//! of a read of idle DRAM.
//!
//! The model of DRAM limits the accuracy of an ORAM's timed figures.
//! [`oblivio_sim::dram::published`] has the numbers that USIMM, `DRAMsim3` and Ramulator 1
//! measured. This experiment measures the same quantities on our model.

mod figures;
mod results;

pub use results::Results;

use std::num::NonZeroUsize;

use figures::figures;
use oblivio_sim::dram::DramSpec;
use oblivio_sim::dram::published::{PART, published};

use crate::experiment::named_json;
use crate::report::Figure;
use crate::{Experiment, Host, LabError};

/// Measures on the simulator's DRAM each quantity for which other DRAM simulators have a published
/// number.
#[derive(Clone, Copy, Debug)]
pub struct DramPlan {
    /// The seed of all requests.
    pub seed: u64,
}

impl Experiment for DramPlan {
    const NAME: &'static str = "dram";
    const STEPS: &'static str = "numbers";
    type Record = ();
    type Results = Results;

    fn run(self, _: &[()], _: NonZeroUsize, host: &impl Host<()>) -> Result<Results, LabError> {
        let (part, published) = (DramSpec::built_in(PART)?, published());
        host.planned(published.len() as u64);
        let measured = published.iter().map(|cell| {
            let verdict = cell.measure(&part, self.seed);
            host.made(1);
            verdict
        });
        let measured = measured.collect::<Result<_, _>>()?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        Ok(Results { version, part, seed: self.seed, measured })
    }

    fn to_json(results: &Results) -> Result<String, LabError> {
        named_json::<Self>(results)
    }

    fn figures(results: &Results) -> Vec<Figure> {
        figures(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::{assert_survive_their_file, results_of};
    use crate::report::{Plot, Verdict, section};

    fn run(seed: u64) -> Result<Results, LabError> {
        results_of(DramPlan { seed }, 1)
    }

    #[test]
    fn every_number_is_drawn_once_and_agrees() {
        let results = run(1).unwrap();
        let figures = figures(&results);
        let stated = figures.iter().flat_map(|figure| &figure.stated);
        assert_eq!(stated.count(), results.measured.len());
        for (figure, labels) in figures.iter().zip([10, 4]) {
            assert_eq!(figure.verdict(), Verdict::Agrees, "{}", section(figure));
            assert_eq!(figure.stated_drawn(), labels, "{}", figure.id);
            let Plot::Bars(bars) = &figure.plot else { panic!("bars") };
            assert_eq!(bars.labels.len(), labels);
            assert!(bars.series.iter().all(|series| series.values.len() == labels));
            assert!(bars.series[3].values.iter().all(Option::is_some), "ours");
        }
        let Plot::Bars(bars) = &figures[0].plot else { panic!("bars") };
        // Stream reads on one channel come from USIMM; no other simulator measured paths there.
        assert_eq!(
            (bars.labels[0].as_str(), bars.series[0].values[0]),
            ("stream read, 1 channel", Some(12.37))
        );
        assert_eq!(
            (bars.labels[4].as_str(), bars.series[1].values[4]),
            ("path-like, 1 channel", None)
        );
    }

    #[test]
    fn a_number_outside_its_band_differs() {
        let mut results = run(1).unwrap();
        results.measured[0].ours *= 0.9;
        assert!(!results.measured[0].agrees());
        assert_eq!(figures(&results)[0].verdict(), Verdict::Differs);
        assert_eq!(figures(&results)[1].verdict(), Verdict::Agrees);
    }

    #[test]
    fn results_survive_their_file() {
        let results = run(2).unwrap();
        assert_survive_their_file::<DramPlan>(&results);
        assert_eq!(run(2).unwrap(), results);
        assert_ne!(run(3).unwrap().measured, results.measured);
    }
}
