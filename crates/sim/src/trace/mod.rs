//! What a program asked memory for, as it was recorded.

mod record;

pub use record::{Kind, Record};
