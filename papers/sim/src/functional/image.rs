//! A copy of a study in memory, from which many studies can start.
//!
//! [Resuming](Study::resume) from a file checks every block, since the file is untrusted. An image
//! never left this process, so it only needs to be copied. With leaves on level 24, this takes a
//! tenth of the time.

use super::Study;
use crate::SimError;
use crate::controller::OramSpec;

/// A saved state of a study. It has the size of the study's file: 1.4 GB for a tree with leaves on
/// level 24, and half as much for each level less.
pub struct StudyImage {
    spec: OramSpec,
    seed: u64,
    bytes: Vec<u8>,
}

impl StudyImage {
    /// Copies the current state of `study`.
    ///
    /// # Errors
    /// [`SimError::Output`] after an earlier error of the engine.
    pub fn from_study(study: &Study) -> Result<Self, SimError> {
        let mut bytes = Vec::new();
        study.write_state(&mut bytes).map_err(SimError::Output)?;
        Ok(Self { spec: study.spec.clone(), seed: study.seed, bytes })
    }

    /// Creates a study that continues from the copied state.
    ///
    /// # Errors
    /// [`SimError::Spec`] and [`SimError::Engine`] if memory does not suffice. [`SimError::Saved`]
    /// if the image cannot be read, which is a defect of the simulator.
    pub fn study(&self) -> Result<Study, SimError> {
        let mut study = Study::empty(&self.spec, self.seed)?;
        study.read_state(&mut &self.bytes[..]).map_err(|error| {
            SimError::Saved(format!(
                "cannot read the image of a study (a defect of the simulator): {error}"
            ))
        })?;
        Ok(study)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::Initial;
    use crate::functional::{Phase, Requests};

    fn saved(study: &Study) -> Vec<u8> {
        let mut file = Vec::new();
        study.save("", &mut file).unwrap();
        file
    }

    fn run_paths(study: &mut Study, paths: u64) {
        study.run(&[Phase { requests: Requests::Uniform, paths }], &[paths], &mut |_| ()).unwrap();
    }

    #[test]
    fn many_go_on_from_an_image_as_the_study_does() {
        let placed = OramSpec { tree_top_levels: 3, ..OramSpec::paper(9) };
        let in_sets = OramSpec { tree_top_ways: Some(4), ..placed.clone() };
        for spec in [placed, in_sets] {
            for initial in [Initial::Empty, Initial::Placed, Initial::EachOnce] {
                let spec = OramSpec { initial, ..spec.clone() };
                let mut study = Study::new(&spec, 7, &mut |_| ()).unwrap();
                run_paths(&mut study, 500);
                let (image, then) = (StudyImage::from_study(&study).unwrap(), saved(&study));
                run_paths(&mut study, 3000);
                for _ in 0..2 {
                    let mut copy = image.study().unwrap();
                    assert!(saved(&copy) == then, "{initial:?}");
                    run_paths(&mut copy, 3000);
                    assert!(saved(&copy) == saved(&study), "{initial:?}");
                    copy.check_invariants().unwrap();
                }
            }
        }
    }
}
