//! The steps of an access, for a model that runs in lock step with another implementation.

use alloc::boxed::Box;

use crate::geometry::Leaf;
use crate::stash::StashView;

/// An action of a scheme on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathAction {
    /// The scheme reads all blocks of the path into the stash.
    Read,
    /// The scheme takes one block out of the path, or none in a dummy access (access-only accesses
    /// of RAW ORAM).
    Take,
    /// The scheme fills the path from the stash and writes it.
    Write,
}

/// Whether a step is before or after its action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    /// The step is before the action.
    Before,
    /// The step is after the action. After [`PathAction::Read`] and [`PathAction::Take`], the
    /// access has not served its block yet.
    After,
}

/// A point of an access at which the scheme calls the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The leaf of the path.
    pub leaf: Leaf,
    /// The action of the scheme on the path.
    pub action: PathAction,
    /// Whether the step is before or after the action.
    pub phase: StepPhase,
}

/// A hook that is called before and after each action of a scheme on a path, with the stash at that
/// moment. The arguments are secret, and must not reach storage. An action that fails has no
/// [`StepPhase::After`].
///
/// Golden models of hardware use the hook to compare their state in the middle of an access.
pub trait StepHook: Send {
    /// Called at every step. `stash` is the stash at this step.
    fn step(&mut self, step: PathStep, stash: StashView<'_>);
}

impl<F: FnMut(PathStep, StashView<'_>) + Send> StepHook for F {
    fn step(&mut self, step: PathStep, stash: StashView<'_>) {
        self(step, stash);
    }
}

pub(super) type AnyStepHook = Box<dyn StepHook>;
