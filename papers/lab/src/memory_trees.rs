//! Test helper: storage for trees, in memory.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Mutex;

use crate::{LabError, Trees};

/// Stored trees, the history of writes, and the names of trees that were read.
#[derive(Default)]
pub(crate) struct MemoryTrees {
    pub(crate) trees: Mutex<BTreeMap<String, Vec<u8>>>,
    pub(crate) history: Mutex<Vec<(String, Vec<u8>)>>,
    /// The names of trees that were read, in order.
    pub(crate) read: Mutex<Vec<String>>,
    pub(crate) is_full: bool,
}

impl MemoryTrees {
    pub(crate) fn with(trees: &[(String, Vec<u8>)]) -> Self {
        Self { trees: Mutex::new(trees.iter().cloned().collect()), ..Self::default() }
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.trees.lock().unwrap().keys().cloned().collect()
    }

    /// The name of each stored tree, in the order of storing, including replaced and removed trees.
    pub(crate) fn put(&self) -> Vec<String> {
        self.history.lock().unwrap().iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Trees for MemoryTrees {
    fn open(&self, name: &str) -> Result<Option<Box<dyn Read>>, LabError> {
        let tree = self.trees.lock().unwrap().get(name).cloned();
        self.read.lock().unwrap().extend(tree.is_some().then(|| name.to_owned()));
        Ok(tree.map(|bytes| Box::new(std::io::Cursor::new(bytes)) as Box<dyn Read>))
    }

    fn replace(
        &self,
        name: &str,
        write: &mut dyn FnMut(&mut dyn Write) -> Result<(), LabError>,
    ) -> Result<(), LabError> {
        if self.is_full {
            return Err(LabError::Output("no space is left".to_owned()));
        }
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        self.history.lock().unwrap().push((name.to_owned(), bytes.clone()));
        self.trees.lock().unwrap().insert(name.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), LabError> {
        self.trees.lock().unwrap().remove(name);
        Ok(())
    }
}
