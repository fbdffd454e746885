//! What judges a profile.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What judges a profile. The default judges by slots.
pub trait Judge:
    Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync
{
    /// Memory channels per path for a judge by time; `None` for a judge by slots moved.
    fn channels(&self) -> Option<u32>;
}

/// Judges by slots alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BySlots;

impl Judge for BySlots {
    fn channels(&self) -> Option<u32> {
        None
    }
}
