//! The costs by which a search compares profiles: slots moved or simulated time.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The cost by which a search compares profiles. The default is the number of slots moved.
pub trait Judge:
    Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync
{
    /// The number of memory channels that a path uses, for a judge by time. `None` for a judge by
    /// slots moved.
    fn channels(&self) -> Option<u32>;
}

/// Judges by slots moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BySlots;

impl Judge for BySlots {
    fn channels(&self) -> Option<u32> {
        None
    }
}
