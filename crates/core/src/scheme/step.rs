//! The steps of an access, for a model that runs in lock step with another implementation.

use alloc::boxed::Box;

use crate::geometry::Leaf;
use crate::stash::StashView;

/// What a scheme does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAction {
    /// Reads all blocks of the path into the stash.
    Read,
    /// Reads one block of the path (AO access of RAW ORAM). A dummy access does the same.
    Take,
    /// Fills the path from the stash and writes it.
    Write,
}

/// Before or after an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    /// Before the action.
    Before,
    /// After the action, before the access serves its block.
    After,
}

/// A point of an access at which the hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The leaf of the path.
    pub leaf: Leaf,
    /// What is done with the path.
    pub action: PathAction,
    /// Before or after the action.
    pub phase: StepPhase,
}

/// Called before and after each path that a scheme reads or writes, with the stash at that moment.
/// Its arguments are secret, and must not reach storage. An action that fails has no
/// [`StepPhase::After`].
///
/// Golden models of hardware compare their state in the middle of an access with it.
pub trait StepHook: Send {
    /// Runs at one step.
    fn step(&mut self, step: PathStep, stash: StashView<'_>);
}

impl<F: FnMut(PathStep, StashView<'_>) + Send> StepHook for F {
    fn step(&mut self, step: PathStep, stash: StashView<'_>) {
        self(step, stash);
    }
}

pub(super) type AnyStepHook = Box<dyn StepHook>;
