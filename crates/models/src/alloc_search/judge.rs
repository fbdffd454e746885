//! What judges a profile.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What judges a profile. The default judges by slots.
pub trait Judge:
    Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync
{
    /// The channels of memory that a path is spread over, if runs take time and time judges. `None`
    /// if the slots that an access moves judge, its share of background evictions included.
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
