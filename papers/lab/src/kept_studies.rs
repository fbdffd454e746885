//! Saved studies ([`Study`]: the state of a simulated ORAM): initial trees, and interrupted runs.
//!
//! Errors of the storage never fail a run. An unusable saved study is reported and recreated; a
//! failure to save is reported.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use oblivio_sim::MODEL;
use oblivio_sim::controller::{Initial, OramSpec};
use oblivio_sim::functional::{Study, StudyImage};

use crate::LabError;
use crate::records::{Trees, first_model};

/// The note saved with an initial tree. It names the model, since another model would make another
/// tree.
fn initial_note(model: u32) -> String {
    match first_model() == model {
        true => "initial tree".to_owned(),
        false => format!("initial tree, model {model}"),
    }
}

/// Loads and saves studies, if the user has given storage for them.
pub(crate) struct KeptStudies<'a> {
    trees: Option<&'a dyn Trees>,
    remark: &'a (dyn Fn(&str) + Sync),
    /// Held while a thread makes an initial tree, so that threads that need the same tree wait for
    /// it.
    making: Mutex<()>,
    /// The initial tree that was requested last, with its name, for all threads. It takes 1.4 GB if
    /// its leaves are on level 24, and half per level less. Reading and checking a tree takes ten
    /// times as long as copying it.
    last: Mutex<Option<(String, Arc<StudyImage>)>>,
}

impl<'a> KeptStudies<'a> {
    pub(crate) fn new(trees: Option<&'a dyn Trees>, remark: &'a (dyn Fn(&str) + Sync)) -> Self {
        Self { trees, remark, making: Mutex::new(()), last: Mutex::new(None) }
    }

    /// Returns the study of `spec` and `seed` before its first request. If no usable study is
    /// saved, makes it, and saves it unless it is empty. While it is made, `progress` is called
    /// with the number of new paths.
    pub(crate) fn initial(
        &self,
        spec: &OramSpec,
        seed: u64,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Study, LabError> {
        let name = initial_name(spec, seed)?;
        let mut make = || -> Result<Study, LabError> {
            let study = Study::new(spec, seed, progress)?;
            if spec.initial != Initial::Empty {
                self.keep(&name, &study, &initial_note(MODEL));
            }
            Ok(study)
        };
        if self.trees.is_none() {
            return make();
        }
        let making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_there(&name) {
            return make();
        }
        drop(making);
        let saved = self.get(&name, spec, seed, |study, note| match note == initial_note(MODEL) {
            true => Ok(study),
            false => Err(LabError::Input(format!("it is not an initial tree of model {MODEL}"))),
        });
        saved.map_or_else(make, Ok)
    }

    /// A copy of the study that [`Self::initial`] returns. The study requested last is copied from
    /// memory. Other callers wait while a study is read or made.
    pub(crate) fn initial_copy(&self, spec: &OramSpec, seed: u64) -> Result<Study, LabError> {
        let name = initial_name(spec, seed)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let image = match last.take() {
            Some((of, image)) if of == name => image,
            // Free that tree's memory before making another.
            other => {
                drop(other);
                let study = self.initial(spec, seed, &mut |_| ())?;
                Arc::new(StudyImage::from_study(&study)?)
            }
        };
        *last = Some((name, Arc::clone(&image)));
        drop(last);
        Ok(image.study()?)
    }

    fn is_there(&self, name: &str) -> bool {
        self.trees.is_some_and(|trees| !matches!(trees.open(name), Ok(None)))
    }

    /// Reads the study saved as `name`, and returns the result of `judge` on the study and its
    /// note. `None` if no such study is saved. Also `None`, with a remark, if it cannot be read or
    /// `judge` refuses it.
    pub(crate) fn get<T>(
        &self,
        name: &str,
        spec: &OramSpec,
        seed: u64,
        judge: impl FnOnce(Study, &str) -> Result<T, LabError>,
    ) -> Option<T> {
        let read = |file: Box<dyn Read>| {
            let (study, note) = Study::resume(spec, seed, file)?;
            judge(study, &note)
        };
        let got = self.trees?.open(name).and_then(|file| file.map(read).transpose());
        got.unwrap_or_else(|error| {
            (self.remark)(&format!("{name} is unusable and is made again: {error}"));
            None
        })
    }

    /// Saves a study as `name`, with a note.
    pub(crate) fn keep(&self, name: &str, study: &Study, note: &str) {
        let saved =
            self.trees.map(|trees| trees.replace(name, &mut |file| Ok(study.save(note, file)?)));
        if let Some(Err(error)) = saved {
            self.remark_not_kept(name, &error);
        }
    }

    /// Removes the study saved as `name`.
    pub(crate) fn forget(&self, name: &str) {
        if let Some(Err(error)) = self.trees.map(|trees| trees.remove(name)) {
            (self.remark)(&format!("cannot remove {name}: {error}"));
        }
    }

    pub(crate) fn remark_not_kept(&self, name: &str, error: &LabError) {
        (self.remark)(&format!("cannot save {name}: {error}"));
    }
}

/// The name of an initial tree, which depends on `spec` and `seed`. The simulator's model is not
/// part of the name: see [`initial_note`].
pub(crate) fn initial_name(spec: &OramSpec, seed: u64) -> Result<String, LabError> {
    let sum = crc32fast::hash(serde_json::to_string(spec)?.as_bytes());
    Ok(format!("initial-L{}-seed{seed}-{sum:08x}.tree", spec.leaf_level()))
}
