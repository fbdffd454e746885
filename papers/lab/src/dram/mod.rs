//! The simulator's DRAM beside published simulators: bandwidths under load, and what a read takes at rest.
//!
//! Timed figures of an ORAM are no better than the DRAM under it. What USIMM, `DRAMsim3` and Ramulator 1
//! measured stands in [`oblivio_sim::dram::published`]; here it is measured again, and kept with them.

mod figures;
mod results;

pub use figures::figures;
pub use results::Results;

use oblivio_sim::dram::DramSpec;
use oblivio_sim::dram::published::{PART, published};

use crate::LabError;

/// How the command line calls this experiment.
pub const NAME: &str = "dram";

/// Measures all that others have published. `seed` is where all coins come from.
///
/// # Errors
/// [`LabError::Simulation`] if the built-in DRAM is none.
pub fn run(seed: u64) -> Result<Results, LabError> {
    let spec = DramSpec::built_in(PART)?;
    let measured =
        published().iter().map(|cell| cell.measure(&spec, seed)).collect::<Result<_, _>>()?;
    Ok(Results::new(spec, seed, measured))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Plot, Verdict, section};

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
        // Stream reads on one channel, of USIMM; nobody else measured paths there.
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
    fn what_is_outside_of_the_band_differs() {
        let mut results = run(1).unwrap();
        results.measured[0].ours *= 0.9;
        assert!(!results.measured[0].agrees());
        assert_eq!(figures(&results)[0].verdict(), Verdict::Differs);
        assert_eq!(figures(&results)[1].verdict(), Verdict::Agrees);
    }

    #[test]
    fn results_survive_their_file() {
        let results = run(2).unwrap();
        let file = results.to_json().unwrap();
        assert_eq!(crate::experiment_of(&file).unwrap(), NAME);
        // JSON may cost the last bit of a number.
        let texts = |results| figures(results).iter().map(section).collect::<Vec<_>>();
        assert_eq!(texts(&Results::from_json(&file).unwrap()), texts(&results));
        assert_eq!(run(2).unwrap(), results);
        assert_ne!(run(3).unwrap().measured, results.measured);
        assert!(Results::from_json("{}").is_err());
    }
}
