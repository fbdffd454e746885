//! Studies that need not be made again: initial trees, and what was under way.
//!
//! Nothing here fails a run. What cannot be used is remarked and made again, and what cannot be kept is
//! remarked.

use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use oblivio_sim::MODEL;
use oblivio_sim::controller::{Initial, OramSpec};
use oblivio_sim::functional::{Study, StudyImage};

use crate::LabError;
use crate::records::{Trees, first_model};

/// What is noted beside the study of an initial tree: one that another model made would not be the same.
fn initial_note(model: u32) -> String {
    match first_model() == model {
        true => "initial tree".to_owned(),
        false => format!("initial tree, model {model}"),
    }
}

/// A place for studies, if there is one.
pub(crate) struct KeptStudies<'a> {
    trees: Option<&'a dyn Trees>,
    remark: &'a (dyn Fn(&str) + Sync),
    /// One initial tree is made at a time: whoever wants the same one waits for it.
    making: Mutex<()>,
    /// The initial tree that was asked for last, by its name, for all threads: 1.4 GB while its leaves are on level 24, and
    /// half for each level less. To read it and look at every block takes ten times as long as to copy it.
    last: Mutex<Option<(String, Arc<StudyImage>)>>,
}

impl<'a> KeptStudies<'a> {
    pub(crate) fn new(trees: Option<&'a dyn Trees>, remark: &'a (dyn Fn(&str) + Sync)) -> Self {
        Self { trees, remark, making: Mutex::new(()), last: Mutex::new(None) }
    }

    /// The study of `spec` and `seed` before its first request. It is made if it is not there, and kept if
    /// it holds anything. `progress` is told the paths that it takes.
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
        let kept = self.get(&name, spec, seed, |study, note| match note == initial_note(MODEL) {
            true => Ok(study),
            false => Err(LabError::Input(format!("it is no initial tree of model {MODEL}"))),
        });
        kept.map_or_else(make, Ok)
    }

    /// The same, copied from memory if it is the one that was asked for last. While one is read or made, whoever asks
    /// waits for it.
    pub(crate) fn initial_copy(&self, spec: &OramSpec, seed: u64) -> Result<Study, LabError> {
        let name = initial_name(spec, seed)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let image = match last.take() {
            Some((of, image)) if of == name => image,
            // The memory of that one is free before there is another.
            other => {
                drop(other);
                let study = self.initial(spec, seed, &mut |_| ())?;
                Arc::new(StudyImage::of(&study)?)
            }
        };
        *last = Some((name, Arc::clone(&image)));
        drop(last);
        Ok(image.study()?)
    }

    fn is_there(&self, name: &str) -> bool {
        self.trees.is_some_and(|trees| !matches!(trees.open(name), Ok(None)))
    }

    /// What `judge` makes of the study that is kept as `name`, and of the note.
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
            (self.remark)(&format!("{name} is not used, and made again: {error}"));
            None
        })
    }

    /// Keeps a study as `name`, and a note.
    pub(crate) fn keep(&self, name: &str, study: &Study, note: &str) {
        let kept =
            self.trees.map(|trees| trees.replace(name, &mut |file| Ok(study.save(note, file)?)));
        if let Some(Err(error)) = kept {
            self.remark_not_kept(name, &error);
        }
    }

    /// Keeps nothing as `name`.
    pub(crate) fn forget(&self, name: &str) {
        if let Some(Err(error)) = self.trees.map(|trees| trees.remove(name)) {
            (self.remark)(&format!("{name} is not removed: {error}"));
        }
    }

    pub(crate) fn remark_not_kept(&self, name: &str, error: &LabError) {
        (self.remark)(&format!("{name} is not kept: {error}"));
    }
}

/// How an initial tree is called, whoever begins with it. Where names are the same, trees are.
pub(crate) fn initial_name(spec: &OramSpec, seed: u64) -> Result<String, LabError> {
    let sum = crc32fast::hash(serde_json::to_string(spec)?.as_bytes());
    Ok(format!("initial-L{}-seed{seed}-{sum:08x}.tree", spec.leaf_level()))
}
